//! Answers in HTTP of any kind, and requests about anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_fuzz_bridge::fuzzing::http(data));
