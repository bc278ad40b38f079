//! Conversations with MCP servers that say anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| mcp_client::fuzzing::conversation(data));
