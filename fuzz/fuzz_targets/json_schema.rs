//! JSON Schemas and values, within limits and without.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_host::fuzzing::run("json_schema", data));
