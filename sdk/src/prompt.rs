//! Prompts: what stands behind [`#[prompt]`](macro@crate::prompt).
//!
//! ```
//! use tenon_sdk::prompt::Message;
//! use tenon_sdk::{Result, plugin, prompt};
//!
//! /// Has a text translated.
//! #[prompt]
//! async fn translate(
//!     /// What to translate.
//!     text: String,
//!     /// The language to translate it into.
//!     #[complete("English", "French", "German")]
//!     language: Option<String>,
//! ) -> Vec<Message> {
//!     let language = language.unwrap_or("English".to_string());
//!     vec![
//!         Message::user(format!("Translate what I say into {language}.")),
//!         Message::assistant("What do you want to say?"),
//!         Message::user(text),
//!     ]
//! }
//!
//! plugin!(prompts: [translate], completions: [translate]);
//! # fn main() {}
//! ```

use std::pin::Pin;

use crate::bindings::prompts::exports::tenon::plugin::prompts as wit;
use crate::error::unknown;
use crate::paging::{owned, page};
use crate::{Arguments, Content, Context, Error, Failure};
pub use wit::PromptRole as Role;

/// A prompt that is filled in with arguments. The attribute implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no prompt",
    label = "no `#[prompt]`",
    note = "write `#[prompt]` above its function"
)]
pub trait PromptTemplate: 'static {
    /// The name by which the host asks for it.
    const NAME: &'static str;

    /// What the host lists of it.
    const ABOUT: About;

    /// Whether it suggests values for an argument.
    const COMPLETES: bool = false;

    /// Fills it in.
    fn fill(
        arguments: Arguments,
        context: Context,
    ) -> impl Future<Output = Result<Prompt, Failure>>;
}

/// What the host lists of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name that people see, where it differs.
    pub title: Option<&'static str>,
    /// What it is for.
    pub description: &'static str,
    /// What it takes.
    pub arguments: &'static [Argument],
}

/// An argument of a prompt.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// The name that programs use.
    pub name: &'static str,
    /// The name that people see, where it differs.
    pub title: Option<&'static str>,
    /// What it is.
    pub description: Option<&'static str>,
    /// Whether it has to be there.
    pub is_required: bool,
}

/// A prompt, filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Prompt {
    /// What it does with these arguments.
    pub description: Option<String>,
    /// What is said.
    pub messages: Vec<Message>,
}

/// A message of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub content: Content,
}

impl Message {
    /// A message of the user.
    pub fn user(content: impl Into<Content>) -> Self {
        Self { role: Role::User, content: content.into() }
    }

    /// A message of the assistant.
    pub fn assistant(content: impl Into<Content>) -> Self {
        Self { role: Role::Assistant, content: content.into() }
    }
}

/// What a prompt's function may return. The macro asks for it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a prompt can say",
    label = "not what a prompt returns",
    note = "return `String` or `Content`, which is one message of the user, `Message`, \
            `Vec<Message>` or `Prompt`, alone or in a `Result`"
)]
pub trait IntoPrompt {
    fn into_prompt(self) -> crate::Result<Prompt>;
}

impl IntoPrompt for Prompt {
    fn into_prompt(self) -> crate::Result<Self> {
        Ok(self)
    }
}

impl IntoPrompt for Vec<Message> {
    fn into_prompt(self) -> crate::Result<Prompt> {
        Ok(Prompt { description: None, messages: self })
    }
}

impl IntoPrompt for Message {
    fn into_prompt(self) -> crate::Result<Prompt> {
        vec![self].into_prompt()
    }
}

impl IntoPrompt for Content {
    fn into_prompt(self) -> crate::Result<Prompt> {
        Message::user(self).into_prompt()
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> crate::Result<Prompt> {
        Message::user(self).into_prompt()
    }
}

impl<T: IntoPrompt, E: Into<Failure>> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> crate::Result<Prompt> {
        self.map_err(Into::into)?.into_prompt()
    }
}

impl From<Prompt> for wit::Prompt {
    fn from(prompt: Prompt) -> Self {
        let message = |message: Message| wit::PromptMessage {
            role: message.role,
            content: message.content.into(),
            extra: None,
        };
        Self {
            description: prompt.description,
            messages: prompt.messages.into_iter().map(message).collect(),
            extra: None,
        }
    }
}

type Filling = Pin<Box<dyn Future<Output = Result<Prompt, Failure>>>>;

/// A prompt in the table of those that a plugin has. Functions over tables are there once, which keeps
/// components small.
#[doc(hidden)]
pub struct Entry {
    name: &'static str,
    about: &'static About,
    fill: fn(Arguments, Context) -> Filling,
}

/// The entry of a prompt.
#[doc(hidden)]
pub const fn entry<P: PromptTemplate>() -> Entry {
    Entry {
        name: P::NAME,
        about: const { &P::ABOUT },
        fill: |arguments, context| Box::pin(P::fill(arguments, context)),
    }
}

/// Lists a page of the prompts.
#[doc(hidden)]
pub fn list(entries: &[Entry], cursor: Option<String>) -> Result<wit::PromptPage, Error> {
    let (range, next) = page("prompts", entries.len(), cursor.as_deref())?;
    Ok(wit::PromptPage { prompts: entries[range].iter().map(definition).collect(), next })
}

fn definition(entry: &Entry) -> wit::PromptDefinition {
    let argument = |argument: &Argument| wit::PromptArgument {
        name: argument.name.to_string(),
        title: owned(argument.title),
        description: owned(argument.description),
        required: argument.is_required,
        extra: None,
    };
    wit::PromptDefinition {
        name: entry.name.to_string(),
        title: owned(entry.about.title),
        description: owned(Some(entry.about.description)),
        arguments: entry.about.arguments.iter().map(argument).collect(),
        extra: None,
    }
}

/// Fills a prompt in.
#[doc(hidden)]
pub async fn get(
    entries: &[Entry],
    name: &str,
    arguments: Vec<(String, String)>,
    context: Context,
) -> Result<wit::Prompt, Error> {
    let entry = entries.iter().find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| unknown("prompt", name))?;
    check(entry.about, &arguments)?;
    let filled = context.serve((entry.fill)(arguments.into(), context.clone())).await?;
    Ok(filled.into())
}

/// Checks that the arguments are some of the prompt's, each once.
fn check(about: &About, arguments: &[(String, String)]) -> Result<(), Error> {
    for (i, (name, _)) in arguments.iter().enumerate() {
        if !about.arguments.iter().any(|argument| argument.name == name) {
            return Err(Error::invalid_input(format!("the prompt has no argument \"{name}\"")));
        }
        if arguments[..i].iter().any(|(before, _)| before == name) {
            return Err(Error::invalid_input(format!("the argument \"{name}\" is there twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::testing::Host;

    /// Greets.
    #[crate::prompt]
    async fn greet() -> String {
        "Hello!".to_string()
    }

    const ALL: &[Entry] = &[entry::<greet>()];

    #[test]
    fn prompts_are_found_by_their_names() {
        let host = Host::new();
        let get = |name: &str| host.run(get(ALL, name, Vec::new(), host.context()));
        assert_eq!(get("greet").unwrap().messages.len(), 1);
        assert_eq!(get("Greet").unwrap_err().code, ErrorCode::NotFound);
    }

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        assert_eq!(list(ALL, None).unwrap().prompts.len(), 1);
        let foreign = list(ALL, Some("resources-100".into()));
        assert_eq!(foreign.unwrap_err().code, ErrorCode::InvalidInput);
    }
}
