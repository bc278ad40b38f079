//! Keeping secrets out of a text that comes in pieces.

use std::borrow::Cow;
use std::sync::Arc;

use super::matcher::{OutputPiece, TextScanner};
use super::{MASK, MAX_NESTED_ESCAPES, Redactor};

/// Masks secrets in a text that comes in pieces. What may be the beginning of a secret is held back
/// until more of the text says whether it is.
pub struct StreamRedactor {
    redactor: Arc<Redactor>,
    matcher: TextScanner<'static>,
    /// Where it is in JSON, if it is that.
    json: Option<JsonPosition>,
}

/// What a text in pieces is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamFormat {
    /// A text as it is.
    Plain,
    /// The text of JSON: its texts are in escapes already, and its numbers stay.
    Json,
}

/// A place in JSON.
#[derive(Default)]
struct JsonPosition {
    in_text: bool,
    after_backslash: bool,
}

impl StreamRedactor {
    /// Masks a text that comes in pieces of this form.
    pub fn new(redactor: Arc<Redactor>, form: StreamFormat) -> Self {
        let (matcher, json) = match form {
            StreamFormat::Plain => (TextScanner::new(Cow::Borrowed(""), MAX_NESTED_ESCAPES), None),
            StreamFormat::Json => {
                (TextScanner::of_json(MAX_NESTED_ESCAPES), Some(JsonPosition::default()))
            }
        };
        Self { redactor, matcher, json }
    }

    /// What may be passed on when this piece has come.
    pub fn push(&mut self, piece: &str) -> String {
        self.matcher.push(piece);
        self.pass(false)
    }

    /// What was held back: no more comes.
    pub fn end(&mut self) -> String {
        self.pass(true)
    }

    fn pass(&mut self, is_end: bool) -> String {
        let mut passed = String::new();
        let until = self.matcher.decide(self.redactor.patterns.as_deref(), is_end);
        self.matcher.pass(until, |piece| {
            let shown = match piece {
                OutputPiece::Clear(text) => text,
                OutputPiece::Secret(text)
                    if self.json.as_ref().is_some_and(|json| json.has(text)) =>
                {
                    text
                }
                OutputPiece::Secret(_) => MASK,
                OutputPiece::More(_) => "",
            };
            passed.push_str(shown);
            if let Some(json) = &mut self.json {
                let (OutputPiece::Clear(text)
                | OutputPiece::Secret(text)
                | OutputPiece::More(text)) = piece;
                json.go_on(text);
            }
        });
        self.matcher.forget();
        passed
    }

    /// How much is held back.
    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.matcher.kept()
    }
}

impl JsonPosition {
    /// Whether a text that comes now is part of a number, which is no text.
    fn has(&self, text: &str) -> bool {
        !self.in_text && text.bytes().all(|byte| byte.is_ascii_digit())
    }

    fn go_on(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if std::mem::take(&mut self.after_backslash) => {}
                b'\\' => self.after_backslash = true,
                b'"' => self.in_text = !self.in_text,
                _ => {}
            }
        }
    }
}
