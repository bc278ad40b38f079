//! Finds tools by words: those that an agent asks for, among the names, descriptions and arguments of many tools.
//!
//! The index is SQLite's ([FTS5](https://www.sqlite.org/fts5.html)), in memory, ranked by BM25. A word finds its other
//! forms and longer words that begin with it; a tool that has more of the words, or has them in its name, comes first.
//!
//! ```
//! use tenon_search::{SearchIndex, SearchedTool};
//!
//! # fn main() -> Result<(), tenon_search::SearchError> {
//! let tool = |name, description| SearchedTool { name, description, schema: "{}" };
//! let index = SearchIndex::new([
//!     tool("git__log", "Shows the commits of a branch"),
//!     tool("files__readFile", "Reads a file"),
//! ])?;
//! assert_eq!(index.search("reading a file", 10, |_| true)?, [1]);
//! assert_eq!(index.search("commit", 10, |_| true)?, [0]);
//! # Ok(())
//! # }
//! ```

#[cfg(test)]
mod tests;

use rusqlite::Connection;
use serde_json::Value;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// The most words of a query that are looked for.
const MAX_QUERY_WORDS: usize = 32;

/// The most of a query that is read, in bytes. What is left out is more than its words need.
const MAX_QUERY_BYTES: usize = 4 << 10;

/// The most text of a schema that is searched, in bytes.
const MAX_SCHEMA_TEXT_BYTES: usize = 16 << 10;

/// How much a word counts in a name, a description and a schema.
const WEIGHTS: [f64; 3] = [8.0, 4.0, 1.0];

/// Words that say nothing of what a tool does, however rare they are among tools.
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in",
    "into", "is", "it", "its", "me", "my", "of", "on", "or", "that", "the", "this", "to", "tool",
    "tools", "want", "what", "which", "with", "you",
];

/// Why tools could not be indexed or searched.
#[derive(Debug, thiserror::Error)]
#[error("tools cannot be searched")]
pub struct SearchError(#[from] rusqlite::Error);

/// A tool that can be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchedTool<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it does.
    pub description: &'a str,
    /// The JSON Schema of its arguments: their names and descriptions are searched.
    pub schema: &'a str,
}

/// An index of tools.
pub struct SearchIndex(Mutex<Connection>);

impl fmt::Debug for SearchIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SearchIndex")
    }
}

impl SearchIndex {
    /// Indexes tools.
    ///
    /// # Errors
    ///
    /// Where there is no memory for it.
    pub fn new<'a>(tools: impl IntoIterator<Item = SearchedTool<'a>>) -> Result<Self, SearchError> {
        let mut connection = Connection::open_in_memory()?;
        connection.execute_batch(
            "CREATE VIRTUAL TABLE tools USING fts5(name, description, schema, content='', \
             tokenize=\"porter unicode61 remove_diacritics 2\")",
        )?;
        let transaction = connection.transaction()?;
        {
            let insert = "INSERT INTO tools(rowid, name, description, schema) VALUES (?, ?, ?, ?)";
            let mut insert = transaction.prepare(insert)?;
            for (number, tool) in (0_i64..).zip(tools) {
                let SearchedTool { name, description, schema } = tool;
                insert.execute((number, words(name), words(description), schema_text(schema)))?;
            }
        }
        transaction.commit()?;
        Ok(Self(Mutex::new(connection)))
    }

    /// Finds at most so many tools that are wanted, the best first, by their places among those that were indexed. A query
    /// without words finds the first ones. Of a query, the first 32 words that say something count, within its first 4 KiB.
    ///
    /// # Errors
    ///
    /// Where there is no memory for it.
    pub fn search(
        &self,
        query: &str,
        limit: usize,
        mut is_wanted: impl FnMut(usize) -> bool,
    ) -> Result<Vec<usize>, SearchError> {
        let connection = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let query = match_expression(query);
        let sql = match &query {
            Some(_) => {
                "SELECT rowid FROM tools WHERE tools MATCH ?1 ORDER BY bm25(tools, ?2, ?3, ?4), rowid"
            }
            None => "SELECT rowid FROM tools ORDER BY rowid",
        };
        let mut statement = connection.prepare_cached(sql)?;
        let [name, description, schema] = WEIGHTS;
        let mut rows = match &query {
            Some(query) => statement.query((query, name, description, schema))?,
            None => statement.query(())?,
        };
        let mut found = Vec::new();
        while found.len() < limit
            && let Some(row) = rows.next()?
        {
            let number = usize::try_from(row.get::<_, i64>(0)?).unwrap_or_default();
            if is_wanted(number) {
                found.push(number);
            }
        }
        Ok(found)
    }
}

/// A query in the language of FTS5: any of the words, or of longer ones that begin with them. `None` where it has no words.
fn match_expression(query: &str) -> Option<String> {
    let query = words(&query[..query.floor_char_boundary(MAX_QUERY_BYTES)]).to_lowercase();
    let all = query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let told: Vec<&str> = all.clone().filter(|word| !STOP_WORDS.contains(word)).collect();
    // Who looks for such words alone finds them.
    let looked_for = if told.is_empty() { all.collect() } else { told };
    let terms: Vec<String> = looked_for
        .into_iter()
        .take(MAX_QUERY_WORDS)
        .map(|word| match word.chars().count() {
            0..3 => format!("\"{word}\""),
            _ => format!("\"{word}\" OR \"{word}\"*"),
        })
        .collect();
    (!terms.is_empty()).then(|| terms.join(" OR "))
}

/// A text with blanks where words are joined by a change of case: `readFile` is `read File`.
fn words(text: &str) -> String {
    let mut words = String::with_capacity(text.len() + 8);
    let mut was_lower = false;
    for c in text.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        words.push(c);
    }
    words
}

/// The names of arguments and what is said of them.
fn schema_text(schema: &str) -> String {
    let mut text = String::new();
    if let Ok(schema) = serde_json::from_str(schema) {
        add_schema_text(&schema, &mut text);
    }
    text
}

fn add_schema_text(schema: &Value, text: &mut String) {
    if text.len() > MAX_SCHEMA_TEXT_BYTES {
        return;
    }
    match schema {
        Value::Object(members) => {
            for name in ["title", "description"] {
                if let Some(Value::String(said)) = members.get(name) {
                    text.push_str(&words(said));
                    text.push(' ');
                }
            }
            if let Some(Value::Object(properties)) = members.get("properties") {
                for name in properties.keys() {
                    text.push_str(&words(name));
                    text.push(' ');
                }
            }
            members.values().for_each(|value| add_schema_text(value, text));
        }
        Value::Array(items) => items.iter().for_each(|item| add_schema_text(item, text)),
        _ => {}
    }
}
