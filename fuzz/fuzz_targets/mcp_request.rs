//! A message of a client of any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_serve::fuzzing::mcp_request(data));
