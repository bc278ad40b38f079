//! Secrets in any text: none is shown, whichever way the text takes, and all else stays as it is.

use serde_json::{Value, json};
use std::sync::Arc;

use super::{
    MASK, MIN_SECRET_LENGTH, Redactor, SecretValues, StreamFormat, StreamRedactor, spellings,
};

/// Any text: its first two lines are secrets. In the rest, `$` and `%` stand for them, and a digit after that
/// for one of their spellings in JSON.
pub fn redactor(text: &str) {
    let mut lines = text.splitn(3, '\n');
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let text = lines.next().unwrap_or_default();
    if ![first, second].iter().all(|secret| secret.is_empty() || can_be_looked_for(secret)) {
        return;
    }
    let text = with_secrets(text, first, second);
    let mut secrets = SecretValues::default();
    [first, second].iter().for_each(|secret| secrets.add_value(secret));
    let redactor = Arc::new(Redactor::new(&secrets));
    let secrets: Vec<&str> = secrets.0.iter().map(String::as_str).collect();
    let is_clear = |shown: &str| !secrets.iter().any(|secret| shown.contains(secret));

    let whole = redactor.text(&text).into_owned();
    assert!(is_clear(&whole), "{whole:?}");
    if !redactor.holds(&text) {
        assert_eq!(whole, text);
        assert!(is_clear(&text));
    }
    let mut bytes = text.clone().into_bytes();
    redactor.bytes(&mut bytes);
    assert_eq!(bytes, whole.as_bytes());

    for step in [1, 2, 7, text.len() / 2 + 1] {
        let pieces = pieces(&text, step);
        assert_eq!(in_pieces(&redactor, StreamFormat::Plain, &pieces), whole, "{step}");
        let mut blocks: Vec<String> = pieces.iter().map(ToString::to_string).collect();
        redactor.together(&mut blocks.iter_mut().collect::<Vec<_>>());
        for between in ["", "\n"] {
            let shown = blocks.join(between);
            assert!(is_clear(&shown), "{step}: {shown:?}");
        }
    }

    let value = json!({ "text": text, "list": [{ text.as_str(): [text, 1] }] });
    let mut json = value.to_string();
    redactor.json_text(&mut json);
    let read: Value = serde_json::from_str(&json).expect("it is JSON as before");
    assert_eq!(read["list"][0].as_object().map(|members| members.len()), Some(1));
    assert!(texts(&read).into_iter().all(is_clear), "{read}");
    // A secret that can stand in the syntax of JSON would spoil it in a stream.
    if secrets.iter().all(|secret| secret.chars().all(char::is_alphabetic)) {
        let json = value.to_string();
        for step in [1, 5, json.len() / 2 + 1] {
            let shown = in_pieces(&redactor, StreamFormat::Json, &pieces(&json, step));
            let read: Value = serde_json::from_str(&shown).expect("it is JSON as before");
            assert!(texts(&read).into_iter().all(is_clear), "{step}: {read}");
        }
    }
}

/// Whether a text with a mask in it does not have the secret by that.
fn can_be_looked_for(secret: &str) -> bool {
    let secret = secret.trim();
    secret.len() >= MIN_SECRET_LENGTH && !secret.contains(['[', ']']) && !MASK.contains(secret)
}

fn with_secrets(text: &str, first: &str, second: &str) -> String {
    let mut made = String::new();
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let secret = match c {
            '$' => first,
            '%' => second,
            c => {
                made.push(c);
                continue;
            }
        };
        let spelling = rest.next_if(char::is_ascii_digit).and_then(|digit| digit.to_digit(10));
        let spellings = spellings(secret);
        made.push_str(&spellings[spelling.unwrap_or(0) as usize % spellings.len()]);
    }
    made
}

fn in_pieces(redactor: &Arc<Redactor>, form: StreamFormat, pieces: &[&str]) -> String {
    let mut stream = StreamRedactor::new(redactor.clone(), form);
    let mut shown: String = pieces.iter().map(|piece| stream.push(piece)).collect();
    shown.push_str(&stream.end());
    shown
}

/// A text in pieces of so many bytes, or as many more as there are to the end of a character.
fn pieces(text: &str, step: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// All texts and names of a value.
fn texts(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            let names = members.keys().map(String::as_str);
            names.chain(members.values().flat_map(texts)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
