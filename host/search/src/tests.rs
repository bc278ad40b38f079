//! What is found, and in which order.

use super::*;

const TOOLS: &[(&str, &str, &str)] = &[
    (
        "files__read_file",
        "Reads the content of a file",
        r#"{"properties":{"path":{"type":"string"}}}"#,
    ),
    (
        "files__write_file",
        "Writes a file; the content is replaced",
        r#"{"properties":{"path":{}}}"#,
    ),
    (
        "github__createPullRequest",
        "Opens a pull request",
        r#"{"properties":{"base":{"description":"the branch to merge into"}}}"#,
    ),
    ("github__list_issues", "Lists the issues of a repository", "{}"),
    ("mail__send", "Sends an e-mail with attachments", r#"{"properties":{"recipients":{}}}"#),
    ("kv__get", "Überprüft einen Schlüssel", "not json"),
];

fn index() -> SearchIndex {
    let tool = |(name, description, schema): &(&'static str, &'static str, &'static str)| {
        SearchedTool { name, description, schema }
    };
    SearchIndex::new(TOOLS.iter().map(tool)).expect("there is memory")
}

fn check(query: &str, expected: &[&str]) {
    let found = index().search(query, 10, |_| true).expect("it is searched");
    let names: Vec<&str> = found.into_iter().map(|number| TOOLS[number].0).collect();
    assert!(names.starts_with(expected), "{query:?} finds {names:?}");
    assert_eq!(names.is_empty(), expected.is_empty(), "{query:?} finds {names:?}");
}

#[test]
fn words_find_tools_the_best_first() {
    check("read file", &["files__read_file", "files__write_file"]);
    check("I want to write the content into a file", &["files__write_file"]);
    // Other forms of a word, and longer words.
    check("reading files", &["files__read_file"]);
    check("repo", &["github__list_issues"]);
    check("email", &[]);
    check("mail", &["mail__send"]);
    // Words that are joined in a name, and those of arguments.
    check("pull requests", &["github__createPullRequest"]);
    check("merge branch", &["github__createPullRequest"]);
    check("recipient", &["mail__send"]);
    check("uberpruft", &["kv__get"]);
    check("nothing like it", &[]);
}

#[test]
fn no_query_is_an_error() {
    for query in [
        "",
        "  ",
        "\"",
        "a AND OR NOT",
        "name:x",
        "(",
        "*",
        "^x",
        "NEAR(a b)",
        "\0",
        "{a b} : c",
        "-x",
    ] {
        index().search(query, 10, |_| true).unwrap_or_else(|error| panic!("{query:?}: {error}"));
    }
    let long = "word ".repeat(10_000);
    index().search(&long, 10, |_| true).expect("it is searched");
    // What comes after the beginning of a query is not read.
    let after = |stop_words: usize| match_expression(&format!("{}mail", "the ".repeat(stop_words)));
    assert_eq!(after(10).as_deref(), Some("\"mail\" OR \"mail\"*"));
    assert!(!after(2_000).expect("there are words").contains("mail"));
    let one_word = match_expression(&"é".repeat(500_000)).unwrap();
    assert!(one_word.len() < 3 * MAX_QUERY_BYTES, "{}", one_word.len());
    index().search(&"é".repeat(500_000), 10, |_| true).expect("it is searched");
    // Without words, the first are found.
    assert_eq!(index().search("", 2, |_| true).unwrap(), [0, 1]);
}

#[test]
fn only_what_is_wanted_is_counted() {
    let found = index().search("file", 1, |number| number != 0).unwrap();
    assert_eq!(found, [1]);
    assert_eq!(index().search("file", 0, |_| true).unwrap(), Vec::<usize>::new());
}
