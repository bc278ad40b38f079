//! Compares what came of a step with what was expected.

use serde_json::Value;
use tenon_test_host::{HttpRequest, RunningPlugin, Scope};

use super::file::{Expected, ExpectedRequest};

/// What came of a step.
#[derive(Debug, Default)]
pub(super) struct StepOutput {
    /// What it says, for people.
    pub(super) text: String,
    /// What it says, for programs.
    pub(super) json: Option<Value>,
    pub(super) score: Option<f64>,
    /// What went wrong.
    pub(super) error: Option<String>,
    /// Why a hook has vetoed.
    pub(super) veto: Option<String>,
}

/// What is not as expected, a text each.
pub(super) fn problems(
    expected: &Expected,
    outcome: &StepOutput,
    plugin: &RunningPlugin,
) -> Vec<String> {
    let mut problems = Vec::new();
    let part = |what: &str, part: &Option<String>, whole: &Option<String>| match (part, whole) {
        (None, None) => None,
        (None, Some(whole)) => Some(format!("{what} was not expected: {whole}")),
        (Some(part), None) => Some(format!(
            "expected {what} with {part:?}, and there was none; the answer is {:?}",
            outcome.text
        )),
        (Some(part), Some(whole)) => (!whole.contains(part))
            .then(|| format!("expected {what} with {part:?}, and it is: {whole}")),
    };
    problems.extend(part("an error", &expected.error, &outcome.error));
    problems.extend(part("a veto", &expected.veto, &outcome.veto));
    if !problems.is_empty() {
        // The rest would be said of something else.
        return problems;
    }
    if let Some(text) = expected.text.as_ref().filter(|text| **text != outcome.text) {
        problems.push(format!("expected {text:?}, and it is {:?}", outcome.text));
    }
    if let Some(part) = expected.contains.as_ref().filter(|part| !outcome.text.contains(*part)) {
        problems.push(format!("expected a text with {part:?}, and it is {:?}", outcome.text));
    }
    if let Some(json) = &expected.json {
        match &outcome.json {
            Some(found) if is_same(json, found) => {}
            Some(found) => problems.push(format!("expected {json}, and it is {found}")),
            None => {
                problems.push(format!("expected {json}, and it is no JSON: {:?}", outcome.text))
            }
        }
    }
    if let Some(score) = expected.score.filter(|score| outcome.score != Some(*score)) {
        problems.push(format!("expected the score {score}, and it is {:?}", outcome.score));
    }
    for (key, value) in &expected.state {
        let found = plugin.state().get(Scope::Project, key);
        if !found.as_ref().is_some_and(|found| is_same(value, found)) {
            let found = found.map_or("nothing".to_string(), |found| found.to_string());
            problems.push(format!("expected {value} under the key {key:?}, and there is {found}"));
        }
    }
    if let Some(asked) = &expected.asked {
        let forms: Vec<String> = plugin.forms().into_iter().map(|form| form.message).collect();
        let is_asked = |(part, form): (&String, &String)| form.contains(part);
        if forms.len() != asked.len() || !asked.iter().zip(&forms).all(is_asked) {
            problems.push(format!("expected questions with {asked:?}, and they were {forms:?}"));
        }
    }
    let requests = plugin.http_requests();
    let unanswered = requests.iter().filter(|request| !request.was_answered);
    problems.extend(unanswered.map(|HttpRequest { method, url, .. }| {
        format!("the case has no answer in `http` to {method} {url}")
    }));
    if let Some(expected) = &expected.http {
        if requests.len() != expected.len() {
            let made: Vec<String> = requests
                .iter()
                .map(|request| format!("{} {}", request.method, request.url))
                .collect();
            problems.push(format!("expected {} requests, and there were {made:?}", expected.len()));
        }
        let both = expected.iter().zip(&requests);
        problems.extend(both.filter_map(|(expected, made)| differs(expected, made)));
    }
    problems
}

/// In what a request differs from the expected one.
fn differs(expected: &ExpectedRequest, made: &HttpRequest) -> Option<String> {
    let ExpectedRequest { url, method, headers, body, json } = expected;
    let HttpRequest { method: made_method, url: made_url, .. } = made;
    let is_url = url == made_url;
    let is_method = method.as_ref().is_none_or(|method| method.eq_ignore_ascii_case(made_method));
    if !is_url || !is_method {
        let method = method.as_deref().unwrap_or("any");
        return Some(format!(
            "expected the request {method} {url}, and it is {made_method} {made_url}"
        ));
    }
    let value = |name: &str| {
        let mut headers = made.headers.iter();
        headers.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    if let Some((name, wanted)) = headers.iter().find(|(name, wanted)| value(name) != Some(wanted))
    {
        let found = value(name).map_or("not there".to_string(), |value| format!("{value:?}"));
        return Some(format!(
            "{made_url}: expected the header {name} {wanted:?}, and it is {found}"
        ));
    }
    let text = String::from_utf8_lossy(&made.body);
    if let Some(body) = body.as_ref().filter(|body| **body != text) {
        return Some(format!("{made_url}: expected the body {body:?}, and it is {text:?}"));
    }
    let sent: Option<Value> = serde_json::from_str(&text).ok();
    let json =
        json.as_ref().filter(|json| !sent.as_ref().is_some_and(|sent| is_same(json, sent)))?;
    Some(format!("{made_url}: expected the body {json}, and it is {text}"))
}

/// Whether two values mean the same: `1` is `1.0`.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other
                || one.as_f64().zip(other.as_f64()).is_some_and(|(one, other)| one == other)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in = |(key, value): (&String, &Value)| {
                other.get(key).is_some_and(|other| is_same(value, other))
            };
            one.len() == other.len() && one.iter().all(is_in)
        }
        (one, other) => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_the_same_however_numbers_are_written() {
        let check = |one: Value, other: Value, expected| {
            assert_eq!(is_same(&one, &other), expected, "{one} {other}");
        };
        check(json!({ "a": [1, 2.0] }), json!({ "a": [1.0, 2] }), true);
        check(json!({ "a": 1 }), json!({ "a": 1, "b": 2 }), false);
        check(json!([1]), json!([1, 2]), false);
        check(json!("1"), json!(1), false);
    }

    #[test]
    fn a_request_differs_in_what_is_said_of_it() {
        let made = HttpRequest {
            method: "POST".into(),
            url: "https://a/b".into(),
            headers: vec![("authorization".into(), "Bearer k".into())],
            body: b"{\"c\": 1}".to_vec(),
            was_answered: true,
        };
        let check = |text: &str, expected: Option<&str>| {
            let wanted: ExpectedRequest = toml::from_str(text).unwrap();
            let found = differs(&wanted, &made);
            assert_eq!(found.is_some(), expected.is_some(), "{text}: {found:?}");
            assert!(found.unwrap_or_default().contains(expected.unwrap_or_default()), "{text}");
        };
        check("url = \"https://a/b\"", None);
        check("url = \"https://a/b\"\nmethod = \"post\"\njson = { c = 1 }", None);
        check("url = \"https://a/b\"\nheaders.Authorization = \"Bearer k\"", None);
        check("url = \"https://a/c\"", Some("expected the request any https://a/c"));
        check("url = \"https://a/b\"\nmethod = \"GET\"", Some("GET https://a/b, and it is POST"));
        check("url = \"https://a/b\"\nheaders.x = \"y\"", Some("it is not there"));
        check("url = \"https://a/b\"\nbody = \"d\"", Some("expected the body"));
        check("url = \"https://a/b\"\njson = { c = 2 }", Some("expected the body"));
    }
}
