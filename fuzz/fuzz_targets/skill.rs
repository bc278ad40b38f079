//! A `SKILL.md` of any text.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_config::fuzzing::run("skill", data));
