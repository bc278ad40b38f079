//! Strategies that score an output against what was expected of it, without a model.

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::eval::{Evaluation, Finding, Subject, finding, summarize};
use tenon_sdk::{Error, Result, Value, eval, plugin};

plugin!(evals: [exact, contains, regex, json_schema, length]);

/// Options of `exact`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub struct ExactOptions {
    /// Compare without regard to case.
    ignore_case: bool,
    /// Compare without white space at the ends.
    trim: bool,
}

/// Passes when the output equals `expected`: texts as texts, anything else as JSON.
#[eval]
pub async fn exact(subject: Subject, options: ExactOptions) -> Result<Evaluation> {
    let Some(expected) = &subject.expected else {
        return Err(Error::invalid_input("the subject has no `expected` to compare with").into());
    };
    let same = match (&subject.output, expected) {
        (Value::String(output), Value::String(expected)) => {
            let fold = |text: &str| {
                let text = if options.trim { text.trim() } else { text };
                if options.ignore_case { text.to_lowercase() } else { text.to_string() }
            };
            fold(output) == fold(expected)
        }
        (output, expected) => output == expected,
    };
    let reason = if same { "the output is as expected" } else { "the output differs" };
    Ok(summarize(vec![finding("equal", same, reason)]))
}

/// Options of `contains`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub struct ContainsOptions {
    /// Texts that must all be there.
    all: Vec<String>,
    /// Texts of which one must be there.
    any: Vec<String>,
    /// Texts that must not be there.
    none: Vec<String>,
    /// Compare without regard to case.
    ignore_case: bool,
}

/// Looks for texts in the output: each one of `all`, `any` as a whole, and each one of `none` is a
/// criterion, and the score is the share that holds.
#[eval]
pub async fn contains(subject: Subject, options: ContainsOptions) -> Result<Evaluation> {
    let fold =
        |text: &str| if options.ignore_case { text.to_lowercase() } else { text.to_string() };
    let output = fold(&subject.output_text());
    let has = |text: &str| output.contains(&fold(text));
    let mut findings: Vec<Finding> = Vec::new();
    for text in &options.all {
        let found = has(text);
        let reason = if found { "it is there" } else { "it is missing" };
        findings.push(finding(format!("contains \"{text}\""), found, reason));
    }
    if !options.any.is_empty() {
        let found = options.any.iter().find(|text| has(text));
        let reason = match found {
            Some(text) => format!("\"{text}\" is there"),
            None => "none is there".to_string(),
        };
        findings.push(finding("contains any", found.is_some(), reason));
    }
    for text in &options.none {
        let found = has(text);
        let reason = if found { "it is there" } else { "it is not there" };
        findings.push(finding(format!("does not contain \"{text}\""), !found, reason));
    }
    if findings.is_empty() {
        return Err(Error::invalid_input("name texts in `all`, `any` or `none`").into());
    }
    Ok(summarize(findings))
}

/// Options of `regex`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexOptions {
    /// A regular expression in the syntax of Rust's `regex`; it may match anywhere unless anchored.
    pattern: String,
}

/// Passes when a regular expression matches the output.
#[eval]
pub async fn regex(subject: Subject, options: RegexOptions) -> Result<Evaluation> {
    let regex = ::regex::RegexBuilder::new(&options.pattern)
        .size_limit(1 << 20)
        .build()
        .map_err(|error| Error::invalid_input(format!("options.pattern: {error}")))?;
    let output = subject.output_text();
    Ok(summarize(vec![match regex.find(&output) {
        Some(found) => finding("matches", true, format!("it matches at byte {}", found.start())),
        None => finding("matches", false, "it does not match"),
    }]))
}

/// Options of `json_schema`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JsonSchemaOptions {
    /// The schema.
    schema: Value,
}

/// Passes when the output is JSON that a JSON Schema allows. A text is parsed first.
#[eval]
pub async fn json_schema(subject: Subject, options: JsonSchemaOptions) -> Result<Evaluation> {
    let validator = jsonschema::validator_for(&options.schema)
        .map_err(|error| Error::invalid_input(format!("options.schema: {error}")))?;
    let parsed = match &subject.output {
        Value::String(text) => tenon_sdk::serde_json::from_str(text),
        other => Ok(other.clone()),
    };
    let value: Value = match parsed {
        Ok(value) => value,
        Err(error) => return Ok(summarize(vec![finding("is JSON", false, error.to_string())])),
    };
    let findings: Vec<Finding> = validator
        .iter_errors(&value)
        .map(|error| {
            let path = error.instance_path().to_string();
            let place = if path.is_empty() { "the whole".to_string() } else { path };
            finding(place, false, error.to_string())
        })
        .collect();
    Ok(match findings.is_empty() {
        true => summarize(vec![finding("the whole", true, "the schema allows it")]),
        false => summarize(findings),
    })
}

/// Options of `length`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(default, deny_unknown_fields)]
pub struct LengthOptions {
    /// The fewest characters.
    min: Option<usize>,
    /// The most characters.
    max: Option<usize>,
}

/// Passes when the output has a length within bounds, in characters. Beyond them the score falls
/// with the distance.
#[eval]
pub async fn length(subject: Subject, options: LengthOptions) -> Result<Evaluation> {
    let (min, max) = (options.min.unwrap_or(0), options.max.unwrap_or(usize::MAX));
    if min > max || (options.min.is_none() && options.max.is_none()) {
        return Err(Error::invalid_input("set `min`, `max` or both, `min` at most `max`").into());
    }
    let length = subject.output_text().chars().count();
    let passed = (min..=max).contains(&length);
    let degree = match length {
        _ if passed => 1.0,
        shorter if shorter < min => shorter as f64 / min as f64,
        longer => max as f64 / longer as f64,
    };
    let mut found = finding("length", passed, format!("it has {length} characters"));
    found.score = Some(degree);
    let mut evaluation = summarize(vec![found]);
    evaluation.score = degree;
    Ok(evaluation)
}
