//! Checks JSON against JSON Schemas that may cost any amount of time, memory and stack.
//!
//! The host embeds this component and treats it as a plugin that was granted nothing: what a schema
//! uses up is bounded by the limits of an instance, and the instance is thrown away.

use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::{self, Write};
use tenon_sdk::{Json, plugin, tool};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::Value;

plugin!(tools: [check, nulls]);

/// What was found.
#[derive(Default, Serialize, JsonSchema)]
pub struct CheckOutcome {
    /// Why the schema cannot be used.
    refused: Option<String>,
    /// Why the value cannot be checked.
    unreadable: Option<String>,
    /// Where the value is not what the schema asks for.
    place: Option<String>,
    /// What is wrong there.
    problem: Option<String>,
    /// The same without the value itself.
    masked: Option<String>,
}

/// Compiles a schema, and checks a value where there is one.
#[tool(read_only)]
pub async fn check(
    /// A JSON Schema.
    schema: String,
    /// JSON.
    value: Option<String>,
    /// The most steps of a pattern that backtracks, for one text.
    backtracks: u32,
    /// The most memory of a compiled pattern, in bytes.
    pattern: u32,
    /// The longest description of what is wrong, in bytes.
    description: u32,
) -> Json<CheckOutcome> {
    let most = description as usize;
    let validator = match compile(&schema, backtracks, pattern, most) {
        Ok(validator) => validator,
        Err(problem) => {
            return Json(CheckOutcome { refused: Some(problem), ..CheckOutcome::default() });
        }
    };
    let Some(value) = value else { return Json(CheckOutcome::default()) };
    let value: Value = match serde_json::from_str(&value) {
        Ok(value) => value,
        Err(error) => {
            return Json(CheckOutcome {
                unreadable: Some(error.to_string()),
                ..CheckOutcome::default()
            });
        }
    };
    // One problem and not all: a list of them can be longer than schema and value together.
    Json(match validator.validate(&value) {
        Ok(()) => CheckOutcome::default(),
        Err(error) => describe(&error, most),
    })
}

/// What a schema says of nulls in a value. Places are JSON Pointers.
#[derive(Default, Serialize, JsonSchema)]
pub struct NullViolations {
    /// The places of those that it does not take.
    refused: Vec<String>,
    /// The members that it requires and that are not there, each with the place of its object.
    missing: Vec<[String; 2]>,
}

/// Finds the nulls that a schema does not take, and what it misses. Of a schema or a value that cannot
/// be read nothing is found.
#[tool(read_only)]
pub async fn nulls(
    /// A JSON Schema.
    schema: String,
    /// JSON.
    value: String,
    /// The most problems that are looked at.
    most: u32,
    /// The most steps of a pattern that backtracks, for one text.
    backtracks: u32,
    /// The most memory of a compiled pattern, in bytes.
    pattern: u32,
) -> Json<NullViolations> {
    let mut nulls = NullViolations::default();
    let (Ok(validator), Ok(value)) =
        (compile(&schema, backtracks, pattern, 0), serde_json::from_str::<Value>(&value))
    else {
        return Json(nulls);
    };
    for error in validator.iter_errors(&value).take(most as usize) {
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
    Json(nulls)
}

/// Compiles a schema, or says in `most` bytes why it cannot be used.
fn compile(schema: &str, backtracks: u32, pattern: u32, most: usize) -> Result<Validator, String> {
    let patterns = PatternOptions::fancy_regex()
        .backtrack_limit(backtracks as usize)
        .size_limit(pattern as usize)
        .dfa_size_limit(pattern as usize);
    let schema: Value =
        serde_json::from_str(schema).map_err(|error| format!("it is not JSON: {error}"))?;
    let options = jsonschema::options().with_pattern_options(patterns);
    options.build(&schema).map_err(|error| refusal(&error, most))
}

/// Why a schema cannot be used.
fn refusal(error: &ValidationError<'_>, most: usize) -> String {
    let ValidationErrorKind::Referencing(ReferencingError::Unretrievable { uri, .. }) =
        error.kind()
    else {
        return beginning(error, most);
    };
    let uri = beginning(uri, most / 2);
    format!("it refers to {uri}, which is not fetched; what it leads to must be in the schema")
}

fn describe(error: &ValidationError<'_>, most: usize) -> CheckOutcome {
    CheckOutcome {
        place: Some(beginning(error.instance_path(), most)),
        problem: Some(beginning(error, most)),
        masked: Some(beginning(&error.masked(), most)),
        ..CheckOutcome::default()
    }
}

/// The beginning of what something is written as. The rest, which may be as long as the value, is not
/// even made.
fn beginning(written: &impl fmt::Display, most: usize) -> String {
    let mut beginning = TruncatingWriter { text: String::new(), most };
    let _ = write!(beginning, "{written}");
    beginning.text
}

struct TruncatingWriter {
    text: String,
    most: usize,
}

impl Write for TruncatingWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.most - self.text.len();
        self.text.push_str(&text[..text.floor_char_boundary(left)]);
        if text.len() > left { Err(fmt::Error) } else { Ok(()) }
    }
}
