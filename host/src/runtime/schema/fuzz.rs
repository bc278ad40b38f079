//! Schemas and values of any text: what is found of them here is what the validator finds without any
//! limits, and takes no longer than it may.

use jsonschema::{Keyword, PatternOptions, ValidationError};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tenon_config::limits::{LimitExceeded, Limits};
use tokio::runtime::{Builder, Runtime};

use super::bound::CostBound;
use super::{MAX_BACKTRACKS, MAX_COMPILED_PATTERN_BYTES, MAX_INLINE_STEPS, SchemaSandbox, compile};
use crate::call::Failure;

/// The component is compiled once for all that is tried.
pub(crate) static SANDBOX: LazyLock<SchemaSandbox> = LazyLock::new(SchemaSandbox::default);

static RUNTIME: LazyLock<Mutex<Runtime>> = LazyLock::new(|| {
    Mutex::new(Builder::new_current_thread().enable_all().build().expect("there is a runtime"))
});

/// How long a check may take, and somewhat more.
const TIME: Duration = Duration::from_secs(10);

/// What takes no longer within limits may be tried without.
const LITTLE: Duration = Duration::from_millis(300);

/// What a schema and a value come to.
#[derive(Debug, PartialEq)]
enum Verdict {
    Refused,
    Valid,
    Invalid,
    TooDear,
}

/// Any text, which is read as a recipe for a schema and a value.
pub(crate) fn json_schema(text: &str) {
    let mut recipe = ByteChoices { rest: text.bytes().collect::<Vec<_>>().into_iter() };
    let schema = recipe.document();
    let value = recipe.value(0);
    check(&schema, &value);
}

fn check(schema: &Value, value: &Value) {
    let limits = Limits { memory: 64 << 20, cpu: Duration::from_secs(1), ..Limits::default() };
    let text = schema.to_string();
    let runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    // It is compiled the first time, which takes long where cargo-fuzz has it count what is reached.
    runtime.block_on(SANDBOX.prepare()).expect("there is a checker");
    let began = Instant::now();
    let (confined, here) = runtime.block_on(async {
        let compiled = compile(vec![text.clone()], &SANDBOX, &limits).await;
        let Ok(kept) = compiled.expect("the host does not fail").remove(0) else {
            return (Verdict::Refused, None);
        };
        let here = kept.schema.problems(value);
        let confined = match SANDBOX.problems(&text, value, "it", &limits).await {
            Ok(problems) if problems.is_empty() => Verdict::Valid,
            Ok(_) => Verdict::Invalid,
            Err(Failure::LimitExceeded(LimitExceeded::Schema { .. })) => Verdict::TooDear,
            Err(failure) => panic!("{failure}: {schema}"),
        };
        (confined, here)
    });
    let took = began.elapsed();
    assert!(took < TIME, "{took:?}: {schema} of {value}");
    if let Some(problems) = &here {
        let verdict = if problems.is_empty() { Verdict::Valid } else { Verdict::Invalid };
        assert_eq!(verdict, confined, "{schema} of {value}");
    }
    if took < LITTLE {
        assert_eq!(confined, plainly(schema, value), "{schema} of {value}");
    }
    if let Some((bound, _)) = CostBound::of(schema)
        && bound.allows(value, MAX_INLINE_STEPS)
    {
        let checks = checks(schema, value);
        let is_enough = checks == 0 || !bound.allows(value, checks - 1);
        assert!(is_enough, "there are {checks} checks of {schema} of {value}");
    }
}

/// What the validator finds without any limits.
fn plainly(schema: &Value, value: &Value) -> Verdict {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(MAX_BACKTRACKS as usize)
        .size_limit(MAX_COMPILED_PATTERN_BYTES as usize)
        .dfa_size_limit(MAX_COMPILED_PATTERN_BYTES as usize);
    match jsonschema::options().with_pattern_options(patterns).build(schema) {
        Err(_) => Verdict::Refused,
        Ok(validator) if validator.is_valid(value) => Verdict::Valid,
        Ok(_) => Verdict::Invalid,
    }
}

thread_local! {
    static CHECKS: Cell<u64> = const { Cell::new(0) };
}

/// The member of each schema that counts how often it is checked against.
const COUNT: &str = "x-count";

struct CountingKeyword;

impl<'i> Keyword<'i> for CountingKeyword {
    fn validate(&self, _: &'i Value) -> Result<(), ValidationError<'i>> {
        CHECKS.set(CHECKS.get() + 1);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        CHECKS.set(CHECKS.get() + 1);
        true
    }
}

/// How often a value or a part of it is checked against a schema or a part of that, where all problems
/// are looked for.
fn checks(schema: &Value, value: &Value) -> u64 {
    let options =
        jsonschema::options().with_keyword(COUNT, |_, _, _| Ok(Box::new(CountingKeyword)));
    let Ok(validator) = options.build(schema) else { return 0 };
    CHECKS.set(0);
    drop(validator.iter_errors(value));
    CHECKS.get()
}

/// Bytes, each of which decides something.
struct ByteChoices {
    rest: std::vec::IntoIter<u8>,
}

const DIALECTS: [&str; 4] = [
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
];

const NAMES: [&str; 6] = ["a", "b", "id", "$ref", "$id", "~/%"];

const PATTERNS: [&str; 8] =
    ["^a", "b$", "^[a-z]{1,3}$", r"^\d+$", "^(?!a)", r"(a|b)\1", "^(a|a)*$", r"^\w+\s?\p{L}*$"];

impl ByteChoices {
    /// The next decision; without more bytes all are the first.
    fn below(&mut self, end: usize) -> usize {
        usize::from(self.rest.next().unwrap_or(0)) % end
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    /// A schema with definitions. Seldom there are so many that they fan out beyond all limits.
    fn document(&mut self) -> Value {
        let definitions = match self.below(100) {
            99 => 40,
            few => few % 6,
        };
        let mut document = match self.schema(0, definitions) {
            Value::Object(members) => members,
            other => Map::from_iter([("allOf".to_string(), json!([other]))]),
        };
        if self.below(3) == 1 {
            document.insert("$schema".into(), self.one_of(&DIALECTS).into());
        }
        if self.below(8) == 1 {
            document
                .insert("$id".into(), self.one_of(&["https://example.com/s", "s", "s#"]).into());
        }
        let definitions: Map<String, Value> =
            (0..definitions).map(|i| (format!("d{i}"), self.schema(1, definitions))).collect();
        document.insert("definitions".into(), definitions.into());
        document.into()
    }

    fn schema(&mut self, depth: usize, definitions: usize) -> Value {
        if depth > 4 || self.below(12) == 1 {
            return Value::Bool(self.below(4) != 1);
        }
        let mut schema = Map::from_iter([(COUNT.to_string(), json!(true))]);
        for _ in 0..self.below(4) {
            let (name, value) = self.keyword(depth + 1, definitions);
            schema.insert(name.into(), value);
        }
        schema.into()
    }

    fn schemas(&mut self, depth: usize, definitions: usize) -> Value {
        (0..=self.below(3)).map(|_| self.schema(depth, definitions)).collect()
    }

    fn named(&mut self, names: &[&str], depth: usize, definitions: usize) -> Value {
        let members = 0..=self.below(3);
        let members = members.map(|_| {
            let name = self.one_of(names).to_string();
            (name, self.schema(depth, definitions))
        });
        Value::Object(members.collect())
    }

    fn keyword(&mut self, depth: usize, definitions: usize) -> (&'static str, Value) {
        let number = |this: &mut Self| json!(this.below(4));
        match self.below(40) {
            0..=5 => ("$ref", self.reference(definitions).into()),
            6 => ("allOf", self.schemas(depth, definitions)),
            7 => ("anyOf", self.schemas(depth, definitions)),
            8 => ("oneOf", self.schemas(depth, definitions)),
            9 => ("not", self.schema(depth, definitions)),
            10 => ("if", self.schema(depth, definitions)),
            11 => ("then", self.schema(depth, definitions)),
            12 => ("else", self.schema(depth, definitions)),
            13..=15 => ("properties", self.named(&NAMES, depth, definitions)),
            16 => ("patternProperties", self.named(&PATTERNS, depth, definitions)),
            17 => ("additionalProperties", self.schema(depth, definitions)),
            18 => ("propertyNames", self.schema(depth, definitions)),
            19 => ("items", self.schema(depth, definitions)),
            20 => ("items", self.schemas(depth, definitions)),
            21 => ("prefixItems", self.schemas(depth, definitions)),
            22 => ("contains", self.schema(depth, definitions)),
            23 => ("dependentSchemas", self.named(&NAMES, depth, definitions)),
            24 => ("dependencies", self.named(&NAMES, depth, definitions)),
            25 => ("unevaluatedProperties", self.schema(depth, definitions)),
            26 => ("unevaluatedItems", self.schema(depth, definitions)),
            27 => ("additionalItems", self.schema(depth, definitions)),
            28 => ("type", self.one_of(&["object", "array", "string", "integer", "null"]).into()),
            29 => ("enum", (0..=self.below(3)).map(|_| self.value(2)).collect()),
            30 => ("const", self.value(2)),
            31 => ("pattern", self.one_of(&PATTERNS).into()),
            32 => ("minLength", number(self)),
            33 => ("required", json!([self.one_of(&NAMES)])),
            34 => ("uniqueItems", json!(true)),
            35 => ("multipleOf", self.one_of(&[1.0, 0.1, 1e-300, 1e308]).into()),
            36 => ("$anchor", self.one_of(&["x", "y"]).into()),
            37 => ("$dynamicAnchor", self.one_of(&["x", "y"]).into()),
            38 => ("$dynamicRef", "#x".into()),
            _ => ("$id", self.one_of(&["n/", "https://example.com/n", "#x"]).into()),
        }
    }

    fn reference(&mut self, definitions: usize) -> String {
        let definition = self.below(definitions.max(1));
        match self.below(12) {
            0..=5 => format!("#/definitions/d{definition}"),
            6 => format!("#/defini%74ions/d{definition}"),
            7 => "#".into(),
            8 => self.one_of(&["#x", "#y"]).into(),
            9 => self.one_of(&["n/", "https://example.com/n", "https://example.com/s"]).into(),
            10 => self.one_of(&["#/properties/a", "#/properties/~0~1%25", "#/allOf/0"]).into(),
            _ => "#/properties/b/properties/a".into(),
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        match self.below(if depth > 4 { 5 } else { 9 }) {
            0 => self.one_of(&["", "a", "ab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!", "12"]).into(),
            1 => json!(self.below(3)),
            2 => json!(self.one_of(&[0.1, -1.5, 1e300])),
            3 => Value::Null,
            4 => json!(self.below(2) == 1),
            5 | 6 => (0..self.below(4)).map(|_| self.value(depth + 1)).collect(),
            _ => {
                let members = 0..self.below(4);
                let members = members.map(|_| {
                    let name = self.one_of(&NAMES).to_string();
                    (name, self.value(depth + 1))
                });
                Value::Object(members.collect())
            }
        }
    }
}
