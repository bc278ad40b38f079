//! Streams of server-sent events that are cut anywhere.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| http_client::fuzzing::sse(data));
