//! Arguments of tools and options of strategies that are not what they should be: where, and what was expected.

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::eval::{Evaluation, Subject, summarize};
use tenon_sdk::testing::Host;
use tenon_sdk::tool::Tool;
use tenon_sdk::{ErrorCode, Result, Value, eval, json, tool};

/// Plans days.
#[tool]
async fn plan(
    /// Where to.
    city: String,
    days: Option<u32>,
    tags: Vec<String>,
    cold: Option<Vec<i32>>,
) -> String {
    format!("{city} {days:?} {tags:?} {cold:?}")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Stop {
    /// Its name.
    city: String,
    nights: Option<u8>,
}

/// How to go.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Way {
    /// On rails.
    Train,
    OnFoot,
}

/// Travels.
#[tool]
async fn travel(
    stops: Vec<Stop>,
    way: Option<Way>,
    #[serde(default)]
    #[schemars(email)]
    mail: Option<String>,
) -> String {
    format!("{stops:?} {way:?} {mail:?}")
}

#[derive(Deserialize, JsonSchema)]
#[serde(default)]
struct Options {
    most: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { most: 1 }
    }
}

/// Judges nothing.
#[eval]
async fn judge(_subject: Subject, options: Options) -> Evaluation {
    summarize(Vec::with_capacity(options.most))
}

fn refused(result: Result<tenon_sdk::ToolResult, tenon_sdk::Error>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidInput);
    error.message
}

#[test]
fn arguments_of_simple_types_are_explained() {
    let check = |arguments: Value, expected: &str| {
        let message = refused(Host::new().call_tool::<plan>(arguments.clone()));
        assert_eq!(message, format!("tool \"plan\": {expected}"), "{arguments}");
    };
    let tags = json!([]);
    check(json!({ "tags": tags }), "`city` (string) is missing: Where to.");
    check(json!({ "city": "x" }), "`tags` (array) is missing");
    check(json!({ "city": 3, "tags": tags }), "`city` is 3 and has to be a string");
    check(
        json!({ "city": "x", "tags": tags, "day": 3 }),
        "there is no `day`: did you mean `days`?",
    );
    check(
        json!({ "city": "x", "tags": tags, "days": 1, "cold": null, "size": 3 }),
        "there is no `size`: there are `city`, `days`, `tags`, `cold`",
    );
    check(json!({ "city": "x", "tags": ["a", null] }), "`tags[1]` is null and has to be a string");
    check(json!({ "city": "x", "tags": "a" }), "`tags` is \"a\" and has to be an array");
    check(
        json!({ "city": "x", "tags": tags, "days": "3" }),
        "`days` is \"3\" and has to be an integer or a null",
    );
    check(
        json!({ "city": "x", "tags": tags, "days": -1 }),
        "`days` is -1 and has to be at least 0",
    );
    check(
        json!({ "city": "x", "tags": tags, "cold": [3_000_000_000_u32] }),
        "`cold[0]` is 3000000000 and has to be at most 2147483647",
    );
    check(
        json!({ "city": "x", "tags": tags, "days": 1.5 }),
        "`days` is 1.5 and has to be an integer or a null",
    );
    check(
        json!({ "city": true, "day": 1 }),
        "`city` is true and has to be a string; `tags` (array) is missing; there is no `day`: did you mean `days`?",
    );
    check(json!([1]), "the value is [1] and has to be an object");
    let good = json!({ "city": "x", "tags": ["a"], "days": null, "cold": [-1] });
    assert!(Host::new().call_tool::<plan>(good).is_ok());
}

#[test]
fn arguments_of_types_of_the_author_are_explained() {
    let check = |arguments: Value, expected: &str| {
        let message = refused(Host::new().call_tool::<travel>(arguments.clone()));
        assert_eq!(message, format!("tool \"travel\": {expected}"), "{arguments}");
    };
    check(
        json!({ "stops": [{ "city": "x" }, { "city": 3 }] }),
        "`stops[1].city` is 3 and has to be a string",
    );
    check(
        json!({ "stops": [{ "city": "x", "night": 1 }] }),
        "there is no `stops[0].night`: did you mean `nights`?",
    );
    check(
        json!({ "stops": [{ "city": "x", "nights": 300 }] }),
        "`stops[0].nights` is 300 and has to be at most 255",
    );
    check(
        json!({ "stops": [], "way": "trian" }),
        "`way` is \"trian\" and has to be one of \"on_foot\", \"train\"; did you mean `train`?",
    );
    check(json!({ "stops": [], "mail": "ada" }), "`mail` is \"ada\" and has to be an email");
    let good = json!({ "stops": [{ "city": "x", "nights": 2 }], "way": "train", "mail": "ada@example.com" });
    assert!(Host::new().call_tool::<travel>(good).is_ok());
}

#[test]
fn schemas_allow_what_the_types_do_and_no_more() {
    let schema: Value = serde_json::from_str(&plan::definition().input_schema).unwrap();
    assert_eq!(schema["additionalProperties"], json!(false));
    let schema: Value = serde_json::from_str(&travel::definition().input_schema).unwrap();
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["$defs"]["Stop"]["additionalProperties"], json!(false));
    assert_eq!(schema["$defs"]["Way"]["enum"], json!(["on_foot", "train"]));
    let said = "How to go.\n- `train`: On rails.";
    assert_eq!(schema["$defs"]["Way"]["description"], json!(said));
}

#[test]
fn options_of_a_strategy_are_explained() {
    let subject = json!({ "output": "" });
    let error = Host::new().evaluate::<judge>(subject, json!({ "mots": 1 })).unwrap_err();
    assert_eq!(error.message, "evaluation \"judge\": there is no `mots`: did you mean `most`?");
}
