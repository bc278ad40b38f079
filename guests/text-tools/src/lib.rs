//! Tools for text and JSON that need nothing but their arguments.

use schemars::JsonSchema;
use serde::Serialize;
use tenon_sdk::{Failure, serde_json};
use tenon_sdk::{Json, Result, Value, plugin, tool};

plugin!(tools: [count, change_case, replace, slug, lines, json_get, json_format]);

/// What a text is made of.
#[derive(Serialize, JsonSchema, PartialEq, Debug)]
pub struct Counts {
    /// Unicode scalar values.
    characters: usize,
    /// Runs of anything but white space.
    words: usize,
    /// Lines, a last one without a line end included.
    lines: usize,
    /// Bytes in UTF-8.
    bytes: usize,
}

/// Counts the characters, words, lines and bytes of a text.
#[tool(read_only, idempotent)]
pub async fn count(text: String) -> Json<Counts> {
    Json(Counts {
        characters: text.chars().count(),
        words: text.split_whitespace().count(),
        lines: text.lines().count(),
        bytes: text.len(),
    })
}

/// How to write a text.
#[derive(tenon_sdk::Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Case {
    Upper,
    Lower,
    Title,
    Snake,
    Kebab,
    Camel,
}

/// Writes a text in another case: upper, lower, title, snake, kebab or camel.
#[tool(read_only, idempotent)]
pub async fn change_case(text: String, case: Case) -> String {
    let words = || text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Lower => text.to_lowercase(),
        Case::Title => text.split(' ').map(capitalize).collect::<Vec<_>>().join(" "),
        Case::Snake => words().map(str::to_lowercase).collect::<Vec<_>>().join("_"),
        Case::Kebab => words().map(str::to_lowercase).collect::<Vec<_>>().join("-"),
        Case::Camel => words()
            .enumerate()
            .map(|(i, word)| if i == 0 { word.to_lowercase() } else { capitalize(word) })
            .collect(),
    }
}

fn capitalize(word: &str) -> String {
    let mut characters = word.chars();
    match characters.next() {
        Some(first) => {
            first.to_uppercase().chain(characters.flat_map(char::to_lowercase)).collect()
        }
        None => String::new(),
    }
}

/// Replaces every occurrence of one text by another and returns the result.
#[tool(read_only, idempotent)]
pub async fn replace(
    text: String,
    /// What to look for; it cannot be empty.
    from: String,
    /// What to put in its place.
    to: String,
) -> Result<String> {
    if from.is_empty() {
        return Err(Failure::message("`from` is empty: say what to look for"));
    }
    Ok(text.replace(&from, &to))
}

/// Makes a short name for URLs and files: lower-case letters, digits and single hyphens.
#[tool(read_only, idempotent)]
pub async fn slug(
    text: String,
    /// The most characters to keep.
    max_length: Option<usize>,
) -> String {
    let mut slug = String::new();
    for c in text.to_lowercase().chars() {
        match c {
            c if c.is_alphanumeric() => slug.push(c),
            _ if slug.is_empty() || slug.ends_with('-') => {}
            _ => slug.push('-'),
        }
    }
    let kept: String = slug.chars().take(max_length.unwrap_or(usize::MAX)).collect();
    kept.trim_end_matches('-').to_string()
}

/// Returns the lines of a text that contain a word, with their numbers.
#[tool(read_only, idempotent)]
pub async fn lines(
    text: String,
    /// What the lines must contain.
    containing: String,
    /// Whether upper and lower case are different letters; they are by default.
    case_sensitive: Option<bool>,
) -> String {
    let fold = |text: &str| match case_sensitive.unwrap_or(true) {
        true => text.to_string(),
        false => text.to_lowercase(),
    };
    let wanted = fold(&containing);
    let found = text.lines().enumerate().filter(|(_, line)| fold(line).contains(&wanted));
    found.map(|(i, line)| format!("{}: {line}", i + 1)).collect::<Vec<_>>().join("\n")
}

/// Reads one value out of a JSON text by a JSON Pointer (RFC 6901) such as `/items/0/name`.
#[tool(read_only, idempotent)]
pub async fn json_get(
    /// The JSON text.
    json: String,
    /// The pointer; an empty one means the whole.
    pointer: String,
) -> Result<String> {
    let value: Value = serde_json::from_str(&json)?;
    match value.pointer(&pointer) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(other) => Ok(other.to_string()),
        None => Err(Failure::message(format!("there is nothing at \"{pointer}\""))),
    }
}

/// Formats a JSON text with two spaces of indentation, or says where it is wrong.
#[tool(read_only, idempotent)]
pub async fn json_format(json: String) -> Result<String> {
    let value: Value = serde_json::from_str(&json)?;
    Ok(serde_json::to_string_pretty(&value)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::testing::Host;

    fn now<T>(future: impl Future<Output = T>) -> T {
        Host::new().run(future)
    }

    #[test]
    fn words_and_characters_are_not_bytes() {
        let Json(counts) = now(count("größer als\nzwei".into()));
        assert_eq!(counts, Counts { characters: 15, words: 3, lines: 2, bytes: 17 });
    }

    #[test]
    fn cases() {
        let check = |case, expected: &str| {
            assert_eq!(now(change_case("hello big WORLD".into(), case)), expected);
        };
        check(Case::Upper, "HELLO BIG WORLD");
        check(Case::Title, "Hello Big World");
        check(Case::Snake, "hello_big_world");
        check(Case::Kebab, "hello-big-world");
        check(Case::Camel, "helloBigWorld");
    }

    #[test]
    fn slugs_have_single_hyphens_and_none_at_the_ends() {
        assert_eq!(now(slug("  Déjà vu -- again! ".into(), None)), "déjà-vu-again");
        assert_eq!(now(slug("one two".into(), Some(4))), "one");
    }

    #[test]
    fn an_empty_search_text_is_refused() {
        assert!(now(replace("abc".into(), String::new(), "x".into())).is_err());
    }

    #[test]
    fn lines_are_numbered_from_one() {
        let text = "alpha\nbeta\nALPHA";
        assert_eq!(now(lines(text.into(), "alpha".into(), None)), "1: alpha");
        assert_eq!(now(lines(text.into(), "alpha".into(), Some(false))), "1: alpha\n3: ALPHA");
    }

    #[test]
    fn a_pointer_to_nothing_says_so() {
        assert_eq!(now(json_get(r#"{"a":[1,2]}"#.into(), "/a/1".into())), Ok("2".into()));
        assert!(now(json_get("{}".into(), "/a".into())).is_err());
    }
}
