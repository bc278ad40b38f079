//! What is fuzzed: functions that take any bytes, and panic where the host and a model of it
//! disagree. Each stands beside what it is about.
//!
//! They are run in two ways. `fuzz/` has them as targets of cargo-fuzz, which finds its way through
//! the code by what an input reaches. The tests here run them with the inputs in `fuzz/seeds`, and
//! with what a generator makes of these; they need no other build than all tests do.

use crate::{approvals, entry, grant, lock, manifest, pins, secret, skills};

/// Something to run with any bytes.
pub type Target = fn(&[u8]);

/// What there is, by its name.
pub const TARGETS: [(&str, Target); 8] = [
    ("approval_file", |data| with_text(data, approvals::fuzz::approval_file)),
    ("lock_file", |data| with_text(data, lock::fuzz::lock_file)),
    ("manifest", |data| with_text(data, manifest::fuzz::manifest)),
    ("mcp_json", |data| with_text(data, entry::fuzz::mcp_json)),
    ("path_glob", |data| with_text(data, grant::path_glob)),
    ("pin_file", |data| with_text(data, pins::pin_file)),
    ("redactor", |data| with_text(data, secret::fuzz::redactor)),
    ("skill", |data| with_text(data, skills::fuzz::skill)),
];

/// Runs a target.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("it is a target");
    target(data);
}

/// All inputs are text, which people can read and write.
pub fn with_text(data: &[u8], target: fn(&str)) {
    if let Ok(text) = std::str::from_utf8(data) {
        target(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use tenon_inputs::{InputKind, folder};

    /// Those that are fuzzed elsewhere: what runs plugins, the guests, and the command.
    const ELSEWHERE: [&str; 11] = [
        "http",
        "http_client",
        "inspect",
        "json_schema",
        "mcp_client",
        "mcp_request",
        "oci_manifest",
        "path_walk",
        "sse",
        "tool_result",
        "url_pattern",
    ];

    #[test]
    fn approval_files() {
        fuzz("approval_file");
    }

    #[test]
    fn lock_files() {
        fuzz("lock_file");
    }

    #[test]
    fn manifests() {
        fuzz("manifest");
    }

    #[test]
    fn mcp_json_files() {
        fuzz("mcp_json");
    }

    #[test]
    fn path_globs() {
        fuzz("path_glob");
    }

    #[test]
    fn pin_files() {
        fuzz("pin_file");
    }

    #[test]
    fn redactors() {
        fuzz("redactor");
    }

    #[test]
    fn skills_of_any_text() {
        fuzz("skill");
    }

    #[test]
    fn every_target_is_one_of_cargo_fuzz() {
        let known = TARGETS.iter().map(|(name, _)| *name).chain(ELSEWHERE);
        let mut known: Vec<String> = known.map(Into::into).collect();
        known.sort();
        for of in ["fuzz_targets", "seeds", "dictionaries"] {
            let entries = fs::read_dir(folder().join(of)).unwrap();
            let name = |path: std::path::PathBuf| path.file_stem().unwrap().to_owned();
            let mut names: Vec<String> =
                entries.map(|entry| name(entry.unwrap().path()).into_string().unwrap()).collect();
            names.sort();
            assert_eq!(names, known, "{of}");
        }
    }

    fn fuzz(name: &str) {
        tenon_inputs::fuzz(name, InputKind::Text, |data| run(name, data));
    }
}
