//! Components of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_fuzz_cli::fuzzing::inspect(data));
