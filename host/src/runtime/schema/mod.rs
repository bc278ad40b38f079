//! JSON Schemas that plugins bring: read, compiled, and checked against. Nothing is ever fetched.
//!
//! A schema is input, and checking against it is work: references that fan out make a small text
//! mean an exponential number of checks, a pattern may backtrack, a long chain of references takes
//! stack. So a schema is compiled in the host only if it is plain enough to tell what a check costs
//! at most ([`bound`]), and a value is checked in the host only if that is little. All else is done
//! by the same validator within an instance of WebAssembly, which has the limits of the plugin
//! ([`sandbox`]).

mod bound;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
pub(crate) mod nulls;
mod pattern_size;
mod sandbox;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, Validator};
use serde::Deserialize;
use serde_json::Value;
use std::thread;
use std::time::Instant;
use tenon_config::limits::Limits;
use tenon_config::secret::is_secret_name;
use tenon_types::text::beginning;
use tokio::sync::oneshot;

use crate::call::Failure;
use bound::{CostBound, SchemaSize};
#[cfg(test)]
pub(crate) use sandbox::CHECKER;
pub(crate) use sandbox::SchemaSandbox;

/// The longest schema, in bytes.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// The most steps of a pattern that backtracks, for one text.
const MAX_BACKTRACKS: u32 = 100_000;

/// The most memory of a compiled pattern, in bytes.
const MAX_COMPILED_PATTERN_BYTES: u32 = 1 << 20;

/// The most memory for what matching a plain pattern has found out, in bytes.
const MAX_DFA_CACHE_BYTES: usize = 128 << 10;

/// The most steps of a check that is done where it is asked for: a few milliseconds.
const MAX_INLINE_STEPS: u64 = 200_000;

/// The same for telling all that is wrong with a value, each of which takes memory.
const MAX_INLINE_PROBLEM_STEPS: u64 = 20_000;

/// The most problems of a value that are told.
const MAX_PROBLEMS: usize = 8;

/// The longest description of one of them, in bytes.
const MAX_PROBLEM_LENGTH: usize = 512;

/// What the schemas of one plugin may take that are kept compiled: less than 200 MiB of memory, and
/// a second for compiling them. What is more is compiled for each check.
const MAX_KEPT: SchemaSize = SchemaSize { subschemas: 100_000, states: 100_000 };

/// The most problems of a value that are looked at for nulls.
const MAX_NULLS: usize = 64;

/// The stack of the thread that compiles. Definitions are compiled within each other, each as deep as
/// JSON may be.
const STACK_BYTES: usize = 64 << 20;

/// A JSON Schema that can be checked against.
pub(crate) struct Schema(ValidationStrategy);

enum ValidationStrategy {
    /// It is compiled, and it is known what a check costs.
    Bounded(Box<BoundedValidator>),
    /// It is compiled within limits, each time anew.
    Confined,
}

struct BoundedValidator {
    validator: Validator,
    bound: CostBound,
}

/// What a schema says of nulls in a value. Places are JSON Pointers.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct NullViolations {
    /// The places of those that it does not take.
    pub(crate) refused: Vec<String>,
    /// The members that it requires and that are not there, each with the place of its object.
    pub(crate) missing: Vec<[String; 2]>,
}

/// A schema that was read, and whether it asks for objects.
pub(crate) struct ParsedSchema {
    pub(crate) schema: Schema,
    pub(crate) of_objects: bool,
}

impl Schema {
    /// What it says of nulls in a value, if that can be told in little time.
    pub(crate) fn nulls(&self, value: &Value) -> Option<NullViolations> {
        let ValidationStrategy::Bounded(plain) = &self.0 else { return None };
        let BoundedValidator { validator, bound } = &**plain;
        if !bound.allows(value, MAX_INLINE_PROBLEM_STEPS) {
            return None;
        }
        let mut nulls = NullViolations::default();
        if validator.is_valid(value) {
            return Some(nulls);
        }
        for error in validator.iter_errors(value).take(MAX_NULLS) {
            let place = error.instance_path().as_str();
            if error.instance().is_null() {
                nulls.refused.push(place.to_string());
            }
            if let ValidationErrorKind::Required { property } = error.kind()
                && let Some(property) = property.as_str()
            {
                nulls.missing.push([place.to_string(), property.to_string()]);
            }
        }
        Some(nulls)
    }

    /// What is wrong with a value, each with its place, if that can be told in little time.
    pub(crate) fn problems(&self, value: &Value) -> Option<Vec<String>> {
        let ValidationStrategy::Bounded(plain) = &self.0 else { return None };
        let BoundedValidator { validator, bound } = &**plain;
        if !bound.allows(value, MAX_INLINE_STEPS) {
            return None;
        }
        if validator.is_valid(value) {
            return Some(Vec::new());
        }
        if !bound.allows(value, MAX_INLINE_PROBLEM_STEPS) {
            return None;
        }
        let problems = validator.iter_errors(value).take(MAX_PROBLEMS).map(|error| {
            let place = beginning(error.instance_path(), MAX_PROBLEM_LENGTH);
            match is_secret(&place) {
                true => problem(&place, &beginning(&error.masked(), MAX_PROBLEM_LENGTH)),
                false => problem(&place, &beginning(&error, MAX_PROBLEM_LENGTH)),
            }
        });
        Some(problems.collect())
    }
}

/// Compiles the schemas of one plugin. The dialect of each is the one it names, or else 2020-12.
///
/// For each that cannot be used there is a sentence on what is wrong with it. Together they have as
/// much time as a call of the plugin.
///
/// # Errors
///
/// Where the host could not.
pub(crate) async fn compile(
    texts: Vec<String>,
    sandbox: &SchemaSandbox,
    limits: &Limits,
) -> Result<Vec<Result<ParsedSchema, String>>, Failure> {
    if texts.is_empty() {
        return Ok(Vec::new());
    }
    let (texts, mut compiled) = on_own_thread(move || {
        let mut room = MAX_KEPT;
        let compiled: Vec<_> = texts.iter().map(|text| compile_plain(text, &mut room)).collect();
        (texts, compiled)
    })
    .await?;
    let mut left = limits.cpu.max(sandbox::MIN_TIME);
    for (text, compiled) in texts.iter().zip(&mut compiled) {
        if matches!(compiled, Ok(ParsedSchema { schema: Schema(ValidationStrategy::Confined), .. }))
        {
            sandbox.prepare().await?;
            let began = Instant::now();
            let checked = match left.is_zero() {
                true => Err("the plugin's schemas take too long to compile; simplify them".into()),
                false => sandbox.compile(text, limits, left).await?,
            };
            left = left.saturating_sub(began.elapsed());
            if let Err(problem) = checked {
                *compiled = Err(problem);
            }
        }
    }
    Ok(compiled)
}

/// Compiles a schema if it is plain, and there is room to keep it. For one that is not it is not yet
/// known whether it can be used.
fn compile_plain(text: &str, room: &mut SchemaSize) -> Result<ParsedSchema, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("it is longer than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    let schema: Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    let of_objects = schema.get("type").and_then(Value::as_str) == Some("object");
    let confined = ParsedSchema { schema: Schema(ValidationStrategy::Confined), of_objects };
    let Some((bound, size)) = CostBound::of(&schema) else { return Ok(confined) };
    if size.subschemas > room.subschemas || size.states > room.states {
        return Ok(confined);
    }
    // Plain patterns are those that need no backtracking, and this engine has none.
    let patterns = PatternOptions::regex()
        .size_limit(MAX_COMPILED_PATTERN_BYTES as usize)
        .dfa_size_limit(MAX_DFA_CACHE_BYTES);
    let validator =
        jsonschema::options().with_pattern_options(patterns).build(&schema).map_err(|error| {
            let place = beginning(error.instance_path(), MAX_PROBLEM_LENGTH);
            problem(&place, &beginning(&error, MAX_PROBLEM_LENGTH))
        })?;
    room.subschemas -= size.subschemas;
    room.states -= size.states;
    let plain = BoundedValidator { validator, bound };
    Ok(ParsedSchema { schema: Schema(ValidationStrategy::Bounded(Box::new(plain))), of_objects })
}

/// Compiles one schema if it is plain, and gives nothing for any other. It blocks for a moment.
pub(crate) fn compile_if_plain(text: &str) -> Option<Schema> {
    let compile = || compile_plain(text, &mut MAX_KEPT.clone()).ok();
    let compiled = thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, compile);
        thread.ok()?.join().ok().flatten()
    });
    compiled
        .map(|compiled| compiled.schema)
        .filter(|schema| matches!(schema.0, ValidationStrategy::Bounded(_)))
}

/// What is wrong with a value, each problem with its place, by a schema of the dialect 2020-12 that has to be plain. It blocks for a moment.
///
/// # Errors
///
/// Why the schema cannot be used.
pub(crate) fn problems_by(schema: &Value, value: &Value) -> Result<Vec<String>, String> {
    let mut schema = schema.clone();
    // The dialect may be said.
    let dialect = schema.as_object_mut().and_then(|members| members.remove("$schema"));
    if dialect.is_some_and(|dialect| dialect != DIALECT) {
        return Err(format!("its `$schema` is not {DIALECT}"));
    }
    let schema = &schema;
    let check = || {
        jsonschema::draft202012::meta::validate(schema).map_err(|error| {
            let place = beginning(error.instance_path(), MAX_PROBLEM_LENGTH);
            problem(&place, &beginning(&error, MAX_PROBLEM_LENGTH))
        })?;
        let compiled = compile_plain(&schema.to_string(), &mut MAX_KEPT.clone())?;
        compiled.schema.problems(value).ok_or_else(|| match bound::not_plain(schema) {
            Some(member) => {
                format!(
                    "it has {}, and is to be one document",
                    beginning(&member, MAX_PROBLEM_LENGTH)
                )
            }
            None => "checking against it could take too long: simplify it".to_string(),
        })
    };
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, check);
        let thread = thread.map_err(|error| format!("cannot start a thread for it: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the validator broke off on it".into()))
    })
}

/// The dialect of schemas that name none.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Compiles a schema of the host's own.
pub(crate) fn compile_own(text: &str) -> Schema {
    let compiled = compile_plain(text, &mut MAX_KEPT.clone()).expect("our own schemas can be used");
    compiled.schema
}

/// Gets ready what the first schema would wait for: the meta-schema that all are checked against
/// takes longer to compile than most schemas. It blocks for a few milliseconds.
pub(crate) fn prepare() {
    let _ = jsonschema::meta::is_valid(&Value::Bool(true));
}

/// Does something that blocks for up to a few seconds, and takes stack.
async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    let (done, result) = oneshot::channel();
    let thread = thread::Builder::new().name("tenon-schemas".into()).stack_size(STACK_BYTES);
    // Who is not there any more needs no result.
    let spawned = thread.spawn(move || drop(done.send(work())));
    spawned.map_err(|error| {
        Failure::Host(format!("cannot start a thread for its schemas: {error}"))
    })?;
    result.await.map_err(|_| Failure::Host("the validator broke off on its schemas".into()))
}

/// What goes under such a name is not repeated.
fn is_secret(place: &str) -> bool {
    place.split('/').any(is_secret_name)
}

fn problem(place: &str, problem: &str) -> String {
    if place.is_empty() { problem.to_string() } else { format!("at {place}: {problem}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};
    use std::time::Duration;
    use tenon_config::limits::{LimitExceeded, SchemaLimitExceeded};

    use super::fuzz::SANDBOX;

    fn limits() -> Limits {
        Limits { memory: 64 << 20, cpu: Duration::from_secs(1), ..Limits::default() }
    }

    /// The same with more time than anything here takes, also where others compute as well.
    fn unhurried() -> Limits {
        Limits { cpu: Duration::from_secs(30), ..limits() }
    }

    async fn compiled(schema: &Value) -> Result<Schema, String> {
        compiled_within(schema, &limits()).await
    }

    async fn compiled_within(schema: &Value, limits: &Limits) -> Result<Schema, String> {
        let compiled = compile(vec![schema.to_string()], &SANDBOX, limits).await;
        compiled.unwrap().remove(0).map(|compiled| compiled.schema)
    }

    async fn check(schema: &Value, expected: Result<(), &str>) {
        match (compiled(schema).await, expected) {
            (Ok(_), Ok(())) => {}
            (Err(problem), Err(expected)) => assert!(problem.contains(expected), "{problem}"),
            (result, _) => panic!("{schema}: {:?}", result.map(drop)),
        }
    }

    /// How a value is found, here or within limits: valid, invalid, or too dear.
    #[derive(Debug, PartialEq)]
    enum Verdict {
        Valid,
        Invalid(String),
        TooDear(SchemaLimitExceeded),
    }

    async fn verdict(schema: &Value, value: &Value) -> Verdict {
        verdict_within(schema, value, &limits()).await
    }

    async fn verdict_within(schema: &Value, value: &Value, limits: &Limits) -> Verdict {
        let kept = compiled_within(schema, limits).await;
        let kept = kept.unwrap_or_else(|problem| panic!("{schema}: {problem}"));
        let problems = match kept.problems(value) {
            Some(problems) => Ok(problems),
            None => SANDBOX.problems(&schema.to_string(), value, "it", limits).await,
        };
        match problems {
            Ok(problems) if problems.is_empty() => Verdict::Valid,
            Ok(problems) => Verdict::Invalid(problems.join("; ")),
            Err(Failure::LimitExceeded(LimitExceeded::Schema { limit, .. })) => {
                Verdict::TooDear(limit)
            }
            Err(failure) => panic!("{failure}"),
        }
    }

    fn is_plain(schema: &Value) -> bool {
        CostBound::of(schema).is_some()
    }

    fn inline(schema: &Value, value: &Value) -> bool {
        CostBound::of(schema).is_some_and(|(bound, _)| bound.allows(value, MAX_INLINE_STEPS))
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

    #[tokio::test]
    async fn what_means_more_than_it_says_is_ended() {
        let none = |_| json!({});
        let too_long = Verdict::TooDear(SchemaLimitExceeded::Time(Duration::from_secs(1)));
        let by_pointer = |depth| fan(depth, |i| format!("#/$defs/d{i}"), none);
        assert_eq!(verdict(&by_pointer(10), &json!({})).await, Verdict::Valid);
        for schema in [
            by_pointer(45),
            fan(45, |i| format!("#/$def%73/d{i}"), none),
            fan(45, |i| format!("#/%24defs/d{i}"), none),
            fan(45, |i| format!("#a{i}"), |i| json!({ "$anchor": format!("a{i}") })),
            fan(45, |i| format!("d{i}"), |i| json!({ "$id": format!("d{i}") })),
        ] {
            assert_eq!(verdict(&schema, &json!({})).await, too_long, "{schema}");
        }
        let long = json!({ "description": "x".repeat(MAX_SCHEMA_BYTES) });
        check(&long, Err("longer than 256 KiB")).await;
    }

    #[tokio::test]
    async fn many_alternatives_for_many_items_are_ended() {
        let alternatives: Vec<Value> = (0..8_000).map(|i| json!({ "const": i })).collect();
        let schema = json!({ "items": { "anyOf": alternatives } });
        let items: Vec<usize> = (0..20_000).map(|i| 100_000 + i).collect();
        // The first item is wrong, and to tell that takes little.
        let Verdict::Invalid(problem) = verdict(&schema, &json!(items)).await else { panic!() };
        assert!(problem.starts_with("at /0: 100000 is not valid"), "{problem}");
        let last = vec![7_999; 20_000];
        assert!(!matches!(verdict(&schema, &json!(last)).await, Verdict::Invalid(_)));
    }

    #[tokio::test]
    async fn what_takes_stack_is_ended() {
        let mut definitions = Map::new();
        for i in 0..8_000 {
            definitions.insert(format!("d{i}"), json!({ "$ref": format!("#/$defs/d{}", i + 1) }));
        }
        definitions.insert("d8000".into(), json!({}));
        let chain = json!({ "$ref": "#/$defs/d0", "$defs": definitions });
        let deep = Verdict::TooDear(SchemaLimitExceeded::Depth);
        assert_eq!(verdict_within(&chain, &json!({}), &unhurried()).await, deep);
        let circle = json!({ "allOf": [{ "$ref": "#" }] });
        assert_eq!(verdict(&circle, &json!({})).await, Verdict::Valid);
        let mut nested = json!({});
        for _ in 0..60 {
            nested = json!({ "not": { "allOf": [nested] } });
        }
        check(&nested, Err("recursion limit")).await;
    }

    #[test]
    fn what_costs_little_is_checked_at_once() {
        let arguments = json!({ "path": "/tmp/x", "text": "x".repeat(100_000), "tags": ["a"] });
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {
                "path": { "type": "string", "minLength": 1, "description": "where" },
                "text": { "type": "string" },
                "tags": { "type": "array", "items": { "$ref": "#/definitions/tag" } },
                "id": { "type": "string", "pattern": "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$" },
            },
            "required": ["path"],
            "additionalProperties": false,
            "definitions": { "tag": { "enum": ["a", "b"] } },
        });
        assert!(inline(&schema, &arguments));
        // What refers to itself costs by the depth of a value, once for each branch that it can take.
        let tree = json!({ "properties": { "l": { "$ref": "#" }, "r": { "$ref": "#" } } });
        let any = json!({ "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "$ref": "#" } },
            { "type": "object", "additionalProperties": { "$ref": "#" } },
        ] });
        let twice =
            json!({ "properties": { "l": { "allOf": [{ "$ref": "#" }, { "$ref": "#" }] } } });
        let mut value = json!({});
        for _ in 0..20 {
            value = json!({ "l": value });
        }
        assert!(inline(&tree, &value));
        assert!(inline(&any, &value));
        assert!(!inline(&twice, &value));
        assert!(inline(&twice, &json!({ "l": {} })));
    }

    #[test]
    fn what_is_read_in_another_way_has_no_bound() {
        for plain in [
            json!(true),
            json!({ "$id": "https://example.com/s", "$ref": "#/$defs/a", "$defs": { "a": {} } }),
            json!({ "properties": { "$id": {}, "id": {}, "$ref": {} } }),
            json!({ "enum": [{ "$ref": "#/nowhere" }], "default": { "$ref": 1 } }),
            json!({ "$ref": "#/properties/a", "properties": { "a": { "pattern": "^a$" } } }),
        ] {
            assert!(is_plain(&plain), "{plain}");
        }
        let draft_4 = "http://json-schema.org/draft-04/schema#";
        for other in [
            json!(3),
            json!({ "$ref": "#/%24defs/a", "$defs": { "a": {} } }),
            json!({ "$ref": "#/$defs/~0", "$defs": { "~": {} } }),
            json!({ "$ref": "#/nowhere" }),
            json!({ "$ref": "https://example.com/schema" }),
            json!({ "$ref": "" }),
            json!({ "$id": "http://json-schema.org/draft-07/schema", "$ref": "#/definitions/a" }),
            json!({ "$id": "a#b" }),
            json!({ "properties": { "a": { "$id": "a" } } }),
            json!({ "$defs": { "a": { "$anchor": "a" } } }),
            json!({ "enum": [{ "$dynamicAnchor": "a" }] }),
            json!({ "$recursiveAnchor": true }),
            json!({ "$dynamicRef": "#a" }),
            json!({ "items": { "$schema": draft_4 } }),
            json!({ "$schema": draft_4, "properties": { "a": { "id": "a" } } }),
            json!({ "unevaluatedProperties": false }),
            json!({ "format": "regex" }),
            json!({ "pattern": "^(?!a)" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
        ] {
            assert!(!is_plain(&other), "{other}");
        }
    }

    // MCP.md: E5
    #[tokio::test]
    async fn what_refers_to_itself_is_fine() {
        check(&json!({ "properties": { "next": { "$ref": "#" } } }), Ok(())).await;
    }

    // MCP.md: E5
    #[tokio::test]
    async fn nothing_is_fetched() {
        for url in ["https://example.com/schema", "file:///etc/passwd", "other.json"] {
            for url in [url.to_string(), format!("{url}#/a")] {
                let problem = compiled(&json!({ "items": { "$ref": url } })).await.err().unwrap();
                let is_told =
                    problem.starts_with("it refers to ") && problem.contains("not fetched");
                assert!(is_told && problem.contains(url.trim_end_matches("#/a")), "{problem}");
            }
        }
        check(&json!({ "$ref": "#/definitions/a" }), Err("'/definitions/a' does not exist")).await;
    }

    #[tokio::test]
    async fn patterns_end() {
        let schema = json!({ "pattern": "^(a|a)*(?=b)$" });
        let found = verdict(&schema, &json!("a".repeat(60))).await;
        assert!(matches!(found, Verdict::Invalid(_)), "{found:?}");
        check(&json!({ "pattern": "((a{100}){100}){100}" }), Err("is not a \"regex\"")).await;
        let many: Map<String, Value> =
            (0..5_000).map(|i| (format!("{i}\\p{{L}}{{30}}"), json!({}))).collect();
        check(&json!({ "patternProperties": many }), Err("compiling it reached the")).await;
    }

    #[tokio::test]
    async fn the_schemas_of_a_plugin_have_some_time_together() {
        let patterns: Map<String, Value> =
            (0..1_000).map(|i| (format!("\\p{{L}}{{{}}}", i % 60), json!({}))).collect();
        let schema = json!({ "patternProperties": patterns }).to_string();
        let compiled = compile(vec![schema; 100], &SANDBOX, &limits()).await.unwrap();
        let last = compiled.into_iter().next_back().unwrap();
        assert!(last.is_err_and(|problem| problem.contains("take too long")));
    }

    #[tokio::test]
    async fn what_is_kept_is_bounded() {
        let parts: Vec<Value> = (0..1_000).map(|i| json!({ "const": i })).collect();
        let schema = json!({ "anyOf": parts }).to_string();
        let compiled = compile(vec![schema; 200], &SANDBOX, &unhurried()).await.unwrap();
        let kept = compiled.iter().filter(|compiled| {
            matches!(
                compiled,
                Ok(ParsedSchema { schema: Schema(ValidationStrategy::Bounded(_)), .. })
            )
        });
        assert_eq!(kept.count(), MAX_KEPT.subschemas / 1_001);
    }

    // MCP.md: E4
    #[tokio::test]
    async fn dialects_are_honoured() {
        let tuple =
            |key: &str, dialect: &str| json!({ "$schema": dialect, key: [{ "type": "string" }] });
        for schema in [
            tuple("items", "http://json-schema.org/draft-07/schema#"),
            tuple("prefixItems", "https://json-schema.org/draft/2020-12/schema"),
        ] {
            assert!(matches!(verdict(&schema, &json!([1])).await, Verdict::Invalid(_)));
        }
        check(&json!({ "$schema": "https://example.com/dialect" }), Err("example.com/dialect"))
            .await;
    }

    #[tokio::test]
    async fn problems_are_few_and_short_and_tell_no_secret() {
        let schema = json!({ "additionalProperties": { "type": "integer" } });
        let long: Map<String, Value> =
            (0..50).map(|i| (format!("p{i}"), json!("x".repeat(5_000)))).collect();
        let problems = compiled(&schema).await.unwrap().problems(&json!(long)).unwrap();
        assert_eq!(problems.len(), MAX_PROBLEMS);
        assert!(
            problems.iter().all(|problem| problem.len() < MAX_PROBLEM_LENGTH + 20),
            "{problems:?}"
        );
        let value = json!({ "api_key": "hunter2" });
        let here = compiled(&schema).await.unwrap().problems(&value).unwrap();
        let there = SANDBOX.problems(&schema.to_string(), &value, "it", &limits()).await.unwrap();
        assert_eq!(here, there);
        assert!(here[0].starts_with("at /api_key: ") && !here[0].contains("hunter2"), "{here:?}");
    }
}
