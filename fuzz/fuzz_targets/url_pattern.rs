//! URL patterns against what their text says.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_host::fuzzing::run("url_pattern", data));
