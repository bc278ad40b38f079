//! Answers of MCP servers of any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_fuzz_bridge::fuzzing::tool_result(data));
