//! Secrets in any text, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_host::fuzzing::run("redactor", data));
