//! The lines of a file, the last one first.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// The longest line that is given, in bytes; none of ours is longer. A longer one is left out.
const MAX_LINE_BYTES: usize = 1 << 20;

/// How much is read at a time, in bytes.
const BLOCK_BYTES: u64 = 64 << 10;

/// The lines of a file, the last one first, without their ends. What is added meanwhile is not read.
pub(super) struct LinesFromEnd<F = File> {
    file: F,
    /// How much of the file, from its beginning, was not read yet.
    left: u64,
    /// What was read and not given: it follows on what is left.
    read: Vec<u8>,
    /// Whether what was read is the beginning of a line whose end was thrown away.
    is_too_long: bool,
    /// Whether the beginning of the file was given.
    is_done: bool,
}

impl<F: Read + Seek> LinesFromEnd<F> {
    pub(super) fn new(mut file: F) -> io::Result<Self> {
        let left = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, left, read: Vec::new(), is_too_long: false, is_done: false })
    }

    /// The line before the one that was given last; `None` before the first.
    pub(super) fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        // What was looked through has no end of a line.
        let mut looked_through = 0;
        while !self.is_done {
            let new = &self.read[..self.read.len() - looked_through];
            let line = match memchr::memrchr(b'\n', new) {
                Some(end) => {
                    let line = self.read.split_off(end + 1);
                    self.read.truncate(end);
                    line
                }
                None if self.left > 0 => {
                    if self.read.len() > MAX_LINE_BYTES {
                        self.read.clear();
                        self.is_too_long = true;
                    }
                    looked_through = self.read.len();
                    self.read_block()?;
                    continue;
                }
                None => {
                    self.is_done = true;
                    std::mem::take(&mut self.read)
                }
            };
            looked_through = 0;
            let is_whole = !std::mem::take(&mut self.is_too_long);
            if is_whole && !line.is_empty() && line.len() <= MAX_LINE_BYTES {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }

    /// Reads what comes before what was read.
    fn read_block(&mut self) -> io::Result<()> {
        let length = self.left.min(BLOCK_BYTES);
        self.left -= length;
        self.file.seek(SeekFrom::Start(self.left))?;
        let mut block = vec![0; usize::try_from(length).unwrap_or_default()];
        self.file.read_exact(&mut block)?;
        block.append(&mut self.read);
        self.read = block;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn check(text: &str, expected: &[&str]) {
        let mut lines = LinesFromEnd::new(Cursor::new(text)).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push(String::from_utf8(line).unwrap());
        }
        assert!(found == expected, "{:.100}", format!("{found:?}"));
    }

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        check("", &[]);
        check("\n", &[]);
        check("a", &["a"]);
        check("a\nb\n", &["b", "a"]);
        check("\na\n\nb", &["b", "a"]);
    }

    #[test]
    fn lines_that_lie_in_several_blocks_are_whole() {
        let block = usize::try_from(BLOCK_BYTES).unwrap();
        for length in [block - 2, block - 1, block, block + 1, 3 * block] {
            let (first, second) = ("x".repeat(length), "y".repeat(length));
            check(&format!("a\n{first}\n{second}\nb\n"), &["b", &second, &first, "a"]);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let longest = "x".repeat(MAX_LINE_BYTES);
        check(&format!("{longest}\nb\n"), &["b", &longest]);
        for more in [1, 3 * MAX_LINE_BYTES] {
            let long = "x".repeat(MAX_LINE_BYTES + more);
            check(&format!("a\n{long}\nb\n"), &["b", "a"]);
            check(&format!("{long}\nb\n{long}"), &["b"]);
        }
    }
}
