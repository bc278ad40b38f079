//! Globs over paths against a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_config::fuzzing::run("path_glob", data));
