//! Prompts, as authors write and test them.

use std::fmt;
use std::str::FromStr;

use tenon_sdk::completion::Suggestions;
use tenon_sdk::prompt::{Message, Prompt, Role};
use tenon_sdk::testing::{FilledPrompt, Host};
use tenon_sdk::{Content, Context, Error, ErrorCode, Result, plugin, prompt};

plugin!(
    prompts: [greet, review, picture, dialogue, about, r#type],
    completions: [review, about],
);

/// Greets.
#[prompt(name = "hello", title = "Hello")]
async fn greet() -> String {
    "Hello!".to_string()
}

/// How much somebody wants to know.
#[derive(Debug)]
enum Depth {
    Short,
    Long,
}

impl FromStr for Depth {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "short" => Ok(Self::Short),
            "long" => Ok(Self::Long),
            _ => Err(Error::invalid_input("it is `short` or `long`")),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self:?}")
    }
}

/// Has code reviewed.
#[prompt]
async fn review(
    context: &Context,
    /// The code
    /// to review.
    code: String,
    #[argument(name = "codeLanguage", title = "Language")]
    #[complete(languages)]
    language: Option<String>,
    #[complete("short", "long")] depth: Depth,
    lines: Option<u32>,
) -> Result<Prompt> {
    let language = language.unwrap_or("any".into());
    Ok(Prompt {
        description: Some(format!("{} {depth}", context.call_id())),
        messages: vec![Message::user(format!("{code} {language} {lines:?}"))],
    })
}

async fn languages(typed: &str, context: &Context) -> Suggestions {
    let values = vec![format!("{typed}!"), context.call_id().to_string()];
    Suggestions { values, total: None, has_more: true, extra: None }
}

/// Shows a picture.
#[prompt]
async fn picture() -> Content {
    Content::image(vec![1], "image/png")
}

/// Speaks with itself.
#[prompt]
async fn dialogue() -> Vec<Message> {
    vec![Message::user("Who are you?"), Message::assistant(Content::text("Nobody."))]
}

/// Speaks of a colour.
#[prompt]
async fn about(#[complete(colours)] colour: String) -> Message {
    Message::assistant(format!("{colour}, you say?"))
}

async fn colours(typed: &str) -> Vec<&'static str> {
    if typed.is_empty() { vec!["red", "green"] } else { vec![] }
}

/// Has a name that is a word of Rust's.
#[prompt]
async fn r#type(r#in: String) -> String {
    r#in
}

fn said(prompt: FilledPrompt) -> Vec<(Role, String)> {
    let text = |message: tenon_sdk::testing::PromptMessage| {
        (message.role, format!("{:?}", message.content.body))
    };
    prompt.messages.into_iter().map(text).collect()
}

#[test]
fn prompts_are_listed_with_their_arguments() {
    let host = Host::new();
    let hello = host.prompt::<greet>();
    assert_eq!((hello.name.as_str(), hello.title.as_deref()), ("hello", Some("Hello")));
    assert!(hello.arguments.is_empty());
    let review = host.prompt::<review>();
    assert_eq!(review.description.as_deref(), Some("Has code reviewed."));
    let arguments: Vec<_> = review
        .arguments
        .iter()
        .map(|a| (a.name.as_str(), a.title.as_deref(), a.description.as_deref(), a.required))
        .collect();
    assert_eq!(
        arguments,
        [
            ("code", None, Some("The code to review."), true),
            ("codeLanguage", Some("Language"), None, false),
            ("depth", None, None, true),
            ("lines", None, None, false),
        ]
    );
    assert_eq!(host.prompt::<r#type>().name, "type");
    assert_eq!(host.prompt::<r#type>().arguments[0].name, "in");
}

#[test]
fn arguments_are_text_that_becomes_parameters() {
    let host = Host::new();
    let arguments = [("code", "x"), ("depth", "long"), ("lines", "3"), ("codeLanguage", "Rust")];
    let filled = host.get_prompt::<review>(&arguments).unwrap();
    assert_eq!(filled.description.as_deref(), Some("call-1 Long"));
    assert_eq!(said(filled), [(Role::User, r#"Content::Text("x Rust Some(3)")"#.to_string())]);
    let filled = host.get_prompt::<review>(&[("code", ""), ("depth", "short")]).unwrap();
    assert_eq!(said(filled), [(Role::User, r#"Content::Text(" any None")"#.to_string())]);
}

#[test]
fn arguments_that_do_not_fit_are_refused_by_their_names() {
    let check = |arguments: &[(&str, &str)], message: &str| {
        let error = Host::new().get_prompt::<review>(arguments).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::InvalidInput, message));
    };
    check(&[("depth", "long")], "the argument \"code\" is missing");
    check(&[("code", "x"), ("depth", "deep")], "argument \"depth\": it is `short` or `long`");
    check(
        &[("code", "x"), ("depth", "long"), ("lines", "many")],
        "argument \"lines\": invalid digit found in string",
    );
    check(&[("language", "x")], "the prompt has no argument \"language\"");
    check(&[("code", "x"), ("code", "y")], "the argument \"code\" is there twice");
}

#[test]
fn what_is_returned_becomes_messages() {
    let host = Host::new();
    let check = |filled: FilledPrompt, expected: &[(Role, &str)]| {
        assert_eq!(filled.description, None);
        let expected: Vec<_> =
            expected.iter().map(|(role, text)| (*role, text.to_string())).collect();
        assert_eq!(said(filled), expected);
    };
    check(host.get_prompt::<greet>(&[]).unwrap(), &[(Role::User, r#"Content::Text("Hello!")"#)]);
    check(
        host.get_prompt::<dialogue>(&[]).unwrap(),
        &[
            (Role::User, r#"Content::Text("Who are you?")"#),
            (Role::Assistant, r#"Content::Text("Nobody.")"#),
        ],
    );
    check(
        host.get_prompt::<about>(&[("colour", "red")]).unwrap(),
        &[(Role::Assistant, r#"Content::Text("red, you say?")"#)],
    );
    let picture = said(host.get_prompt::<picture>(&[]).unwrap());
    assert!(picture[0].1.contains("image/png"), "{picture:?}");
}

#[test]
fn arguments_are_completed() {
    let host = Host::new();
    let complete = |name, typed| host.complete_argument::<review>(name, typed, &[]).unwrap();
    assert_eq!(complete("depth", "L").values, ["long"]);
    let languages = complete("codeLanguage", "Ru");
    assert_eq!(languages.values[0], "Ru!");
    assert_eq!((languages.total, languages.has_more), (None, true));
    assert!(complete("code", "x").values.is_empty());
    let unknown = host.complete_argument::<review>("language", "", &[]).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::InvalidInput);
    let colours = host.complete_argument::<about>("colour", "", &[]).unwrap();
    assert_eq!((colours.values.len(), colours.total), (2, Some(2)));
}
