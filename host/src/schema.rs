//! JSON Schemas that plugins bring: read, bounded and compiled. Nothing is ever fetched.
//!
//! A schema is input, and validating with it is work: references that fan out make a small text
//! mean an exponential number of checks, and a pattern may backtrack. What costs too much is
//! refused here, before it is used on a call.

use jsonschema::{PatternOptions, Validator};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// The longest schema, in bytes.
const LENGTH: usize = 256 << 10;

/// The most subschemas that one value may have to be checked against, references followed.
const SUBSCHEMAS: u64 = 50_000;

/// The most steps of a pattern that backtracks, for one text.
const BACKTRACKS: usize = 100_000;

/// The most memory of a compiled pattern, in bytes.
const PATTERN: usize = 1 << 20;

/// Reads and compiles a schema. The dialect is the one it names, or else 2020-12.
///
/// # Errors
///
/// A sentence on what is wrong with it.
pub(crate) fn compile(text: &str) -> Result<(Value, Validator), String> {
    if text.len() > LENGTH {
        return Err(format!("it is longer than {} KiB", LENGTH >> 10));
    }
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    if Extent::new(&schema).of(&schema) > SUBSCHEMAS {
        return Err(format!("its references make more than {SUBSCHEMAS} subschemas of it"));
    }
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(BACKTRACKS)
        .size_limit(PATTERN)
        .dfa_size_limit(PATTERN);
    let validator = jsonschema::options()
        .with_pattern_options(patterns)
        .build(&schema)
        .map_err(|error| error.to_string())?;
    Ok((schema, validator))
}

/// Gets ready what the first schema would wait for: the meta-schema that all are checked against
/// takes longer to compile than most schemas. It blocks for a few milliseconds.
pub(crate) fn prepare() {
    let _ = jsonschema::meta::is_valid(&Value::Bool(true));
}

/// How many subschemas there are with references followed.
struct Extent<'a> {
    root: &'a Value,
    /// Where anchors and ids lead.
    names: HashMap<&'a str, &'a Value>,
    /// What is known of a node, by its address; nothing while it is being counted.
    known: HashMap<*const Value, Option<u64>>,
}

impl<'a> Extent<'a> {
    fn new(root: &'a Value) -> Self {
        let mut extent = Self { root, names: HashMap::new(), known: HashMap::new() };
        extent.collect(root);
        extent
    }

    fn collect(&mut self, node: &'a Value) {
        match node {
            Value::Object(members) => {
                for key in ["$anchor", "$dynamicAnchor", "$id", "id"] {
                    if let Some(name) = members.get(key).and_then(Value::as_str) {
                        self.names.insert(name.trim_start_matches('#'), node);
                    }
                }
                members.values().for_each(|member| self.collect(member));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    fn of(&mut self, node: &'a Value) -> u64 {
        if !node.is_object() && !node.is_array() {
            return 0;
        }
        match self.known.get(&std::ptr::from_ref(node)) {
            Some(Some(extent)) => return *extent,
            // A cycle ends with the value that is checked.
            Some(None) => return 0,
            None => {}
        }
        self.known.insert(node, None);
        let extent = match node {
            Value::Object(members) => self.of_members(members),
            Value::Array(items) => {
                items.iter().fold(0, |sum: u64, i| sum.saturating_add(self.of(i)))
            }
            _ => 0,
        };
        self.known.insert(node, Some(extent));
        extent
    }

    fn of_members(&mut self, members: &'a Map<String, Value>) -> u64 {
        members.iter().fold(1, |sum: u64, (key, member)| {
            let extent = match (key.as_str(), member) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    self.target(reference).map_or(0, |target| self.of(target))
                }
                // Definitions count where they are used.
                ("$defs" | "definitions", _) => 0,
                _ => self.of(member),
            };
            sum.saturating_add(extent)
        })
    }

    fn target(&self, reference: &str) -> Option<&'a Value> {
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let root = match base {
            "" => self.root,
            id => self.names.get(id).copied()?,
        };
        match fragment {
            "" => Some(root),
            pointer if pointer.starts_with('/') => root.pointer(&pointer.replace("%25", "%")),
            anchor => self.names.get(anchor).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(schema: &Value, expected: Result<(), &str>) {
        match (compile(&schema.to_string()), expected) {
            (Ok(_), Ok(())) => {}
            (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
            (result, _) => panic!("{schema}: {:?}", result.map(drop)),
        }
    }

    /// Definitions of which each refers twice to the next.
    fn fan(
        depth: usize,
        reference: impl Fn(usize) -> String,
        mark: impl Fn(usize) -> Value,
    ) -> Value {
        let mut definitions = Map::new();
        for i in 0..depth {
            let next = json!({ "$ref": reference(i + 1) });
            let mut definition = mark(i);
            definition["allOf"] = json!([next, next]);
            definitions.insert(format!("d{i}"), definition);
        }
        definitions.insert(format!("d{depth}"), mark(depth));
        json!({ "$defs": definitions, "$ref": reference(0) })
    }

    #[test]
    fn what_means_more_than_it_says_is_refused() {
        let by_pointer = |depth| fan(depth, |i| format!("#/$defs/d{i}"), |_| json!({}));
        check(&by_pointer(10), Ok(()));
        check(&by_pointer(40), Err("more than 50000 subschemas"));
        let by_anchor = fan(40, |i| format!("#a{i}"), |i| json!({ "$anchor": format!("a{i}") }));
        check(&by_anchor, Err("more than 50000 subschemas"));
        check(&json!({ "description": "x".repeat(LENGTH) }), Err("longer than 256 KiB"));
    }

    #[test]
    fn what_refers_to_itself_is_fine() {
        check(&json!({ "properties": { "next": { "$ref": "#" } } }), Ok(()));
    }

    #[test]
    fn nothing_is_fetched() {
        check(&json!({ "$ref": "https://example.com/schema" }), Err("https://example.com/schema"));
        check(&json!({ "$ref": "file:///etc/passwd" }), Err("file:///etc/passwd"));
    }

    #[test]
    fn a_pattern_that_backtracks_ends() {
        let schema = json!({ "pattern": "^(a|a)*(?=b)$" });
        let (_, validator) = compile(&schema.to_string()).unwrap();
        assert!(!validator.is_valid(&json!("a".repeat(60))));
        check(&json!({ "pattern": "((a{100}){100}){100}" }), Err("is not a \"regex\""));
    }

    #[test]
    fn dialects_are_honoured() {
        let tuple = |key: &str, dialect: &str| {
            json!({ "$schema": dialect, key: [{ "type": "string" }] }).to_string()
        };
        let draft_7 =
            compile(&tuple("items", "http://json-schema.org/draft-07/schema#")).unwrap().1;
        assert!(!draft_7.is_valid(&json!([1])));
        let newest = compile(&tuple("prefixItems", "https://json-schema.org/draft/2020-12/schema"));
        assert!(!newest.unwrap().1.is_valid(&json!([1])));
        check(&json!({ "$schema": "https://example.com/dialect" }), Err("example.com/dialect"));
    }
}
