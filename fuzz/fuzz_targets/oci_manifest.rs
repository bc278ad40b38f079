//! What registries say.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenon_fuzz_cli::fuzzing::oci_manifest(data));
