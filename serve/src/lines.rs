//! Lines of bounded length.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// A line of a client's.
#[derive(Debug, PartialEq)]
pub(crate) enum Line {
    /// Its bytes, without the end.
    Whole(Vec<u8>),
    /// It was too long. What there was of it is gone.
    TooLong,
}

/// Reads lines.
pub(crate) struct Lines<R> {
    input: R,
    most: usize,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R, most: usize) -> Self {
        Self { input, most, line: Vec::new(), is_too_long: false }
    }

    /// The next line; nothing at the end. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let available = self.input.fill_buf().await?;
            if available.is_empty() {
                // The last line may have no end.
                return Ok(match (self.is_too_long, self.line.is_empty()) {
                    (true, _) => self.end(),
                    (false, true) => None,
                    (false, false) => self.end(),
                });
            }
            let (piece, length, is_whole) = match available.iter().position(|byte| *byte == b'\n') {
                Some(end) => (&available[..end], end + 1, true),
                None => (available, available.len(), false),
            };
            if self.line.len() + piece.len() > self.most {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            self.input.consume(length);
            if is_whole {
                return Ok(self.end());
            }
        }
    }

    fn end(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.line);
        match std::mem::take(&mut self.is_too_long) {
            true => Some(Line::TooLong),
            false => Some(Line::Whole(line)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn check(input: &str, most: usize, expected: &[Option<&str>]) {
        for capacity in [1, 3, 64] {
            let mut lines = Lines::new(BufReader::with_capacity(capacity, input.as_bytes()), most);
            let mut found = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                found.push(match line {
                    Line::Whole(line) => Some(String::from_utf8(line).unwrap()),
                    Line::TooLong => None,
                });
            }
            let found: Vec<_> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, expected, "{input:?}");
        }
    }

    #[tokio::test]
    async fn lines_end_and_those_that_are_too_long_are_told() {
        check("", 4, &[]).await;
        check("ab\ncd\n", 4, &[Some("ab"), Some("cd")]).await;
        check("ab\n\ncd", 4, &[Some("ab"), Some(""), Some("cd")]).await;
        check("abcd\nabcde\nx\n", 4, &[Some("abcd"), None, Some("x")]).await;
        check("abcdefghij", 4, &[None]).await;
    }
}
