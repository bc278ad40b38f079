//! What is fuzzed: functions that take any bytes, and panic where the host and a model of it
//! disagree. Each stands beside what it is about; see also `tenon_config::fuzzing`.
//!
//! They are run in two ways. `fuzz/` has them as targets of cargo-fuzz, which finds its way through
//! the code by what an input reaches. The tests here run them with the inputs in `fuzz/seeds`, and
//! with what a generator makes of these; they need no other build than all tests do.

use tenon_config::fuzzing::{Target, with_text};

use crate::capability;
use crate::runtime::schema;

/// What there is, by its name.
pub const TARGETS: [(&str, Target); 3] = [
    ("json_schema", |data| with_text(data, schema::fuzz::json_schema)),
    ("path_walk", |data| with_text(data, capability::filesystem::path_walk)),
    ("url_pattern", |data| with_text(data, capability::network::url_pattern)),
];

/// Runs a target.
pub fn run(name: &str, data: &[u8]) {
    let (_, target) = TARGETS.iter().find(|(known, _)| *known == name).expect("it is a target");
    target(data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_inputs::InputKind;

    #[test]
    fn json_schemas() {
        fuzz("json_schema");
    }

    #[test]
    fn path_walks() {
        fuzz("path_walk");
    }

    #[test]
    fn url_patterns() {
        fuzz("url_pattern");
    }

    fn fuzz(name: &str) {
        tenon_inputs::fuzz(name, InputKind::Text, |data| run(name, data));
    }
}
