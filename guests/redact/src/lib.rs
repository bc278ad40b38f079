//! Masks secrets in the contexts of hooks.
//!
//! It looks for what secrets look like, not for where they stand: the well-known prefixes of access
//! tokens, private keys, and values under names that speak of secrets. Configure more prefixes with
//! `prefixes = ["corp_"]`.

use tenon_sdk::hook::Outcome;
use tenon_sdk::{Result, Value, config, hook, log, plugin};

plugin!(hooks: [redact]);

/// What stands in a secret's place.
const MASK: &str = "[redacted]";

/// How access tokens of well-known services begin.
const PREFIXES: [&str; 10] =
    ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza", "npm_"];

/// Names whose values are secrets whatever they look like.
const NAMES: [&str; 8] =
    ["password", "passwd", "secret", "token", "api_key", "apikey", "authorization", "private_key"];

/// A token has at least this many characters after its prefix.
const SHORTEST: usize = 12;

/// Masks secrets in everything an agent plans, does, learns, receives and sends.
#[hook(
    before_plan,
    after_plan,
    before_execute,
    after_execute,
    before_evaluate,
    after_evaluate,
    on_learning,
    on_pattern,
    message_received,
    message_sending,
    before_tool_call,
    after_tool_call
)]
pub async fn redact(mut context: Value) -> Result<Outcome> {
    // Settings that are wrong must not let through what would be masked without any.
    let prefixes: Vec<String> = config::get("prefixes")
        .unwrap_or_else(|error| {
            log::error(format!("only the well-known prefixes are masked: {error}"));
            None
        })
        .unwrap_or_default();
    Ok(if mask(&mut context, &prefixes) { Outcome::Replace(context) } else { Outcome::Continue })
}

/// Masks in place and says whether anything changed.
fn mask(value: &mut Value, more: &[String]) -> bool {
    match value {
        Value::String(text) => {
            let masked = mask_text(text, more);
            let changed = masked != *text;
            *text = masked;
            changed
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| mask(item, more) | any),
        Value::Object(members) => members.iter_mut().fold(false, |any, (name, value)| {
            let name = name.to_lowercase();
            let secret = NAMES.iter().any(|secret| name.ends_with(secret));
            match value {
                Value::String(text) if secret && !text.is_empty() && text != MASK => {
                    *text = MASK.to_string();
                    true
                }
                _ => mask(value, more) | any,
            }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replaces the tokens in a text, leaving everything between them as it is.
fn mask_text(text: &str, more: &[String]) -> String {
    if let Some(start) = text.find("-----BEGIN ")
        && text[start..].contains("PRIVATE KEY-----")
    {
        return format!("{}{MASK}", &text[..start]);
    }
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let (between, word) = rest.split_at(start);
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        masked.push_str(between);
        let prefixes = PREFIXES.iter().copied().chain(more.iter().map(String::as_str));
        let secret = { prefixes }
            .any(|prefix| word.starts_with(prefix) && word.len() >= prefix.len() + SHORTEST);
        masked.push_str(if secret { MASK } else { word });
        rest = after;
    }
    masked.push_str(rest);
    masked
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::json;
    use tenon_sdk::log::Level;
    use tenon_sdk::testing::Host;

    fn check(mut context: Value, expected: Value) {
        let changed = context != expected;
        assert_eq!(mask(&mut context, &["corp_".to_string()]), changed);
        assert_eq!(context, expected);
    }

    #[test]
    fn the_configuration_adds_prefixes() {
        let host = Host::new().config(json!({ "prefixes": ["corp_"] }));
        let context = json!({ "goal": "corp_0123456789ab" });
        let outcome = host.handle::<redact>("before-plan", context).unwrap();
        assert_eq!(outcome, Outcome::Replace(json!({ "goal": "[redacted]" })));
    }

    #[test]
    fn a_wrong_configuration_lets_nothing_through() {
        let host = Host::new().config(json!({ "prefixes": 3 }));
        let context = json!({ "goal": "sk-abcdefghijklmnop" });
        let outcome = host.handle::<redact>("before-plan", context).unwrap();
        assert_eq!(outcome, Outcome::Replace(json!({ "goal": "[redacted]" })));
        assert_eq!(host.logged()[0].level, Level::Error);
    }

    #[test]
    fn tokens_are_masked_wherever_they_stand() {
        check(
            json!({"plan": ["use sk-abcdefghijklmnop, then stop"], "n": 1}),
            json!({"plan": ["use [redacted], then stop"], "n": 1}),
        );
        check(json!({"a": "corp_0123456789ab"}), json!({"a": "[redacted]"}));
    }

    #[test]
    fn names_that_speak_of_secrets_hide_any_value() {
        check(
            json!({"db_password": "x", "user": "y"}),
            json!({"db_password": "[redacted]", "user": "y"}),
        );
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        check(
            json!({"text": "a task-list, risk-free; sk-short"}),
            json!({"text": "a task-list, risk-free; sk-short"}),
        );
    }

    #[test]
    fn every_secret_of_an_object_is_masked() {
        check(
            json!({"password": "a", "token": "b", "text": "ghp_0123456789abcdef"}),
            json!({"password": "[redacted]", "token": "[redacted]", "text": "[redacted]"}),
        );
    }

    #[test]
    fn private_keys_are_cut_off() {
        check(
            json!({"k": "key: -----BEGIN RSA PRIVATE KEY-----\nabc"}),
            json!({"k": "key: [redacted]"}),
        );
    }
}
