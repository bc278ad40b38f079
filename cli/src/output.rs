//! Standard output is data: text for people, or JSON.

use serde::Serialize;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;

use crate::error::Error;

/// Prints a line.
pub(crate) fn line(text: impl Display) -> Result<(), Error> {
    write(format!("{text}\n"))
}

/// Prints text as it is, at once.
pub(crate) fn write(text: impl AsRef<str>) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(text.as_ref().as_bytes()).and_then(|()| stdout.flush());
    match written {
        // The reader has what it wanted.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Error::Host(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a plugin's text. On a terminal its control characters are shown and not obeyed; a program
/// that reads it gets it as it is.
pub(crate) fn text(text: &str) -> Result<(), Error> {
    match io::stdout().is_terminal() {
        true => line(visible(text)),
        false => line(text),
    }
}

/// A plugin's text with characters that could mislead a reader made visible: controls, and those
/// that change the direction of text or have no width.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let misleads = |c: char| {
        c.is_control() && !matches!(c, '\n' | '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(misleads) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match misleads(c) {
            true => shown.extend(c.escape_unicode()),
            false => shown.push(c),
        }
    }
    shown.into()
}

/// Prints JSON over several lines.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    line(serde_json::to_string_pretty(value).map_err(|error| Error::Host(error.to_string()))?)
}

/// Prints JSON in one line.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), Error> {
    line(serde_json::to_string(value).map_err(|error| Error::Host(error.to_string()))?)
}

/// Reads JSON that was passed as it is, as `@FILE`, or as `-` for standard input.
pub(crate) fn read_json(what: &str, text: &str) -> Result<Value, Error> {
    let (place, content) = if text == "-" {
        let mut content = String::new();
        io::stdin()
            .read_to_string(&mut content)
            .map_err(|error| Error::Read(PathBuf::from("standard input"), error))?;
        (" on standard input".to_string(), content)
    } else if let Some(path) = text.strip_prefix('@') {
        let content =
            std::fs::read_to_string(path).map_err(|error| Error::Read(path.into(), error))?;
        (format!(" in {path}"), content)
    } else {
        (String::new(), text.to_string())
    };
    serde_json::from_str(&content)
        .map_err(|error| Error::Input(format!("the {what}{place} are no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn what_could_mislead_a_reader_is_visible() {
        let check = |text, expected| assert_eq!(visible(text), expected);
        check("two\nlines\tand é", "two\nlines\tand é");
        check("\u{1b}[2Jgone", "\\u{1b}[2Jgone");
        check("a\u{202e}b\u{200b}", "a\\u{202e}b\\u{200b}");
    }
}
