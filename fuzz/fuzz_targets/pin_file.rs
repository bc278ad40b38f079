//! Files of pins of any text, and servers that say anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_config::fuzzing::run("pin_file", data));
