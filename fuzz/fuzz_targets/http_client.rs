//! URLs and headers of any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_sdk::http::fuzzing::http_client(data));
