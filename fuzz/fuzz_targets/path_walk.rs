//! What a hostile guest does with files against a model.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_host::fuzzing::run("path_walk", data));
