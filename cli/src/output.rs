//! Standard output is data: text for people, or JSON.

use serde::Serialize;
use serde_json::Value;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::process::ExitCode;
use tenon_host::types::text::visible;

use crate::error::Error;
use crate::hint::as_typed;

/// Prints a line.
pub(crate) fn line(text: impl Display) -> Result<(), Error> {
    write(format!("{text}\n"))
}

/// Says on standard error that a list has nothing in it, where it is printed for people.
pub(crate) fn if_empty(is_empty: bool, text: &str) {
    if is_empty {
        note(text);
    }
}

/// Says on standard error what readers should know of what is printed.
pub(crate) fn note(text: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(io::stderr(), "{}", as_typed(text));
}

/// Prints text as it is, at once.
pub(crate) fn write(text: impl AsRef<str>) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    written(stdout.write_all(text.as_ref().as_bytes()).and_then(|()| stdout.flush()))
}

/// Waits until nobody reads standard output any more; for ever where that cannot be known.
#[cfg(unix)]
pub(crate) async fn unread() {
    use rustix::event::{PollFd, PollFlags, poll};
    let watched = tokio::task::spawn_blocking(|| {
        let stdout = io::stdout();
        // That the other end is closed is told of any.
        poll(&mut [PollFd::new(&stdout, PollFlags::empty())], None)
    });
    if !watched.await.is_ok_and(|watched| watched.is_ok()) {
        std::future::pending().await
    }
}

#[cfg(not(unix))]
pub(crate) async fn unread() {
    std::future::pending().await
}

fn written(written: io::Result<()>) -> Result<(), Error> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Error::Unread),
        Err(error) => Err(Error::Host(format!("standard output: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Prints a piece of a plugin's text at once, as [`text`] does.
pub(crate) fn piece(text: &str) -> Result<(), Error> {
    match io::stdout().is_terminal() {
        true => write(visible(text)),
        false => write(text),
    }
}

/// Prints bytes as they are; on a terminal only how many there are.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Error> {
    if io::stdout().is_terminal() {
        return line(format!("[{} bytes]", bytes.len()));
    }
    written(io::stdout().lock().write_all(bytes))
}

/// Prints a plugin's text. On a terminal its control characters are shown and not obeyed; a program
/// that reads it gets it as it is.
pub(crate) fn text(text: &str) -> Result<(), Error> {
    match io::stdout().is_terminal() {
        true => line(visible(text)),
        false => line(text),
    }
}

/// Prints JSON over several lines. What could mislead a reader is escaped, as JSON can: a program
/// reads the same.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_string(value).map_err(|error| Error::Host(error.to_string()));
    json_text(&json?)
}

/// The same of a text that is JSON.
pub(crate) fn json_text(json: &str) -> Result<(), Error> {
    line(tenon_host::types::text::visible_json(&pretty(json)))
}

/// JSON over several lines. Names, texts and numbers stay spelled as they are, which a tree of them
/// would not keep.
fn pretty(json: &str) -> String {
    let mut pretty = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0_usize, false, false);
    let mut rest = json.chars().peekable();
    let indent = |pretty: &mut String, depth: usize| {
        pretty.push('\n');
        pretty.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(c) = rest.next() {
        if in_text {
            in_text = c != '"' || escaped;
            escaped = c == '\\' && !escaped;
            pretty.push(c);
            continue;
        }
        match c {
            ' ' | '\t' | '\r' | '\n' => {}
            '[' | '{' => {
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                pretty.push(c);
                match rest.next_if(|next| matches!(next, ']' | '}')) {
                    Some(end) => pretty.push(end),
                    None => {
                        depth += 1;
                        indent(&mut pretty, depth);
                    }
                }
            }
            ']' | '}' => {
                depth = depth.saturating_sub(1);
                indent(&mut pretty, depth);
                pretty.push(c);
            }
            ',' => {
                pretty.push(c);
                indent(&mut pretty, depth);
            }
            ':' => pretty.push_str(": "),
            c => {
                in_text = c == '"';
                pretty.push(c);
            }
        }
    }
    pretty
}

/// Prints JSON in one line, in the same way.
pub(crate) fn json_line(value: &impl Serialize) -> Result<(), Error> {
    let json = serde_json::to_string(value).map_err(|error| Error::Host(error.to_string()));
    line(tenon_host::types::text::visible_json(&json?))
}

/// A size for people.
pub(crate) fn size(bytes: usize) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{} kB", bytes / 1000),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

/// Reads JSON that was passed as it is, as `@FILE`, or as `-` for standard input.
pub(crate) fn read_json(what: &str, text: &str) -> Result<Value, Error> {
    let (place, content) = if text == "-" {
        (" on standard input".to_string(), read_bounded("standard input", io::stdin())?)
    } else if let Some(path) = text.strip_prefix('@') {
        let unreadable = |error| {
            let (what, path) = (what.to_string(), path.into());
            Error::ReadArgument { what, path, error }
        };
        let content = File::open(path).map_err(unreadable).and_then(|file| {
            read_bounded(path, file).map_err(|error| match error {
                Error::Read(_, error) => unreadable(error),
                error => error,
            })
        });
        (format!(" in {path}"), content?)
    } else {
        (String::new(), text.to_string())
    };
    serde_json::from_str(&content)
        .map_err(|error| Error::Input(format!("{what}{place}: not JSON: {error}")))
}

/// The longest input, in bytes.
const MAX_INPUT_BYTES: u64 = 64 << 20;

/// Reads text that may come from a pipe or a device without an end.
fn read_bounded(name: &str, input: impl Read) -> Result<String, Error> {
    let mut content = String::new();
    input
        .take(MAX_INPUT_BYTES + 1)
        .read_to_string(&mut content)
        .map_err(|error| Error::Read(name.into(), error))?;
    match content.len() as u64 > MAX_INPUT_BYTES {
        true => Err(Error::Input(format!("{name} is larger than {} MiB", MAX_INPUT_BYTES >> 20))),
        false => Ok(content),
    }
}

/// Says on standard error what went wrong, and on standard output for programs that read JSON, and gives the
/// exit code.
pub(crate) fn report(error: &Error, as_json: bool) -> ExitCode {
    if matches!(error, Error::Unread) {
        return error.exit_code().into();
    }
    if as_json {
        // Where standard output is closed there is nobody to tell.
        let _ = json(&error.to_json());
    }
    error.tell();
    ExitCode::from(error.exit_code())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_spread_over_lines_and_says_the_same() {
        for value in [
            json!(null),
            json!([]),
            json!({}),
            json!("a\"b\\"),
            json!({ "a": [1, [], {}, { "b": "{[:,]}\\\"" }], "c": -1.5, "\"": " " }),
        ] {
            let expected = serde_json::to_string_pretty(&value).unwrap();
            assert_eq!(pretty(&value.to_string()), expected);
            assert_eq!(pretty(&expected), expected);
        }
        assert_eq!(pretty("[1.0,1e3 ,\n-0, { }]"), "[\n  1.0,\n  1e3,\n  -0,\n  {}\n]");
    }
}
