//! Streams of server-sent events that are cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_sdk::http::fuzzing::sse(data));
