//! Secrets in any text, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_config::fuzzing::run("redactor", data));
