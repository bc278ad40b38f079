//! Types of other crates as arguments, with their formats.
#![cfg(all(feature = "chrono", feature = "url", feature = "uuid"))]

use tenon_sdk::chrono::{DateTime, NaiveDate, NaiveTime, Utc};
use tenon_sdk::testing::Host;
use tenon_sdk::tool::Tool;
use tenon_sdk::url::Url;
use tenon_sdk::uuid::Uuid;
use tenon_sdk::{ErrorCode, Value, json, tool};

/// Notes something.
#[tool]
async fn note(
    day: NaiveDate,
    at: Option<DateTime<Utc>>,
    time: Option<NaiveTime>,
    id: Option<Uuid>,
    link: Option<Url>,
) -> String {
    format!("{day} {at:?} {time:?} {id:?} {link:?}")
}

#[test]
fn formats_are_in_the_schema() {
    let schema: Value = serde_json::from_str(&note::definition().input_schema).unwrap();
    let formats = ["day", "at", "time", "id", "link"]
        .map(|name| schema["properties"][name]["format"].as_str().unwrap_or_default().to_string());
    assert_eq!(formats, ["date", "date-time", "partial-time", "uuid", "uri"]);
}

#[test]
fn formats_are_checked() {
    let check = |name: &str, good: &str, bad: &str, expected: &str| {
        let call = |value: &str| {
            let mut arguments = json!({ "day": "2024-02-29" });
            arguments[name] = json!(value);
            Host::new().call_tool::<note>(arguments)
        };
        call(good).unwrap();
        let error = call(bad).unwrap_err();
        assert_eq!(error.code, ErrorCode::InvalidInput);
        let expected = format!("tool \"note\": `{name}` is \"{bad}\" and has to be {expected}");
        assert_eq!(error.message, expected);
    };
    check("day", "2024-12-31", "2023-02-29", "a date");
    check("at", "2024-01-01T12:00:00Z", "2024-01-01", "a date-time");
    check("time", "12:00:00", "noon", "a partial-time");
    check("id", "67e55044-10b1-426f-9247-bb680e5fe0c8", "1", "a uuid");
    check("link", "https://a.test/x", "a.test", "a uri");
}
