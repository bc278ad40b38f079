//! Completion of arguments: what stands behind `#[complete(…)]` at the parameters of
//! [prompts](macro@crate::prompt) and [resources](macro@crate::resource).
//!
//! ```
//! use tenon_sdk::{Arguments, plugin, prompt};
//!
//! /// Plans a trip.
//! #[prompt]
//! async fn trip(
//!     #[complete("Austria", "Italy")] country: String,
//!     #[complete(cities)] city: Option<String>,
//! ) -> String {
//!     format!("Plan a trip to {country} {}", city.unwrap_or_default())
//! }
//!
//! async fn cities(typed: &str, others: &Arguments) -> Vec<&'static str> {
//!     let mut cities = match others.get("country") {
//!         Some("Austria") => vec!["Graz", "Linz", "Vienna"],
//!         _ => vec!["Bologna", "Rome"],
//!     };
//!     cities.retain(|city| city.starts_with(typed));
//!     cities
//! }
//!
//! plugin!(prompts: [trip], completions: [trip]);
//! # fn main() {}
//! ```

use std::pin::Pin;

use crate::bindings::completions::exports::tenon::plugin::completions as wit;
use crate::error::unknown;
use crate::{Arguments, Context, Error, Failure};
pub use wit::Suggestions;

/// How many values an answer has at most.
const MOST_VALUES: usize = 100;

/// What suggests values for its arguments. The attributes implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` completes no argument",
    label = "no `#[complete]`",
    note = "write `#[complete(\"…\", \"…\")]` or `#[complete(path::to::function)]` at a parameter of \
            its function"
)]
pub trait CompleteArguments: 'static {
    /// What has the arguments.
    const REFERENCE: Reference;

    /// Suggests values for an argument; `None` where there is none of this name.
    fn complete(
        name: &str,
        typed: &str,
        others: &Arguments,
        context: &Context,
    ) -> impl Future<Output = Result<Option<Suggestions>, Failure>>;
}

/// What has arguments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reference {
    /// A prompt, by its name.
    Prompt(&'static str),
    /// A resource template, by its text.
    ResourceTemplate(&'static str),
}

impl Reference {
    /// Whether it is one of these, at compile time.
    #[doc(hidden)]
    pub const fn is_among(self, others: &[Self]) -> bool {
        let mut i = 0;
        while i < others.len() {
            let is_same = match (self, others[i]) {
                (Self::Prompt(one), Self::Prompt(other))
                | (Self::ResourceTemplate(one), Self::ResourceTemplate(other)) => {
                    crate::hook::is_among(one, &[other])
                }
                _ => false,
            };
            if is_same {
                return true;
            }
            i += 1;
        }
        false
    }

    /// Whether the host means this.
    #[doc(hidden)]
    pub fn names(self, reference: &wit::CompletionReference) -> bool {
        match (self, reference) {
            (Self::Prompt(name), wit::CompletionReference::Prompt(wanted)) => name == wanted,
            (Self::ResourceTemplate(text), wit::CompletionReference::ResourceTemplate(wanted)) => {
                text == wanted
            }
            _ => false,
        }
    }
}

/// What a function may return that suggests values.
#[doc(hidden)]
pub trait IntoSuggestions {
    fn into_suggestions(self) -> crate::Result<Suggestions>;
}

impl IntoSuggestions for Suggestions {
    fn into_suggestions(self) -> crate::Result<Self> {
        Ok(self)
    }
}

impl<T: Into<String>> IntoSuggestions for Vec<T> {
    fn into_suggestions(self) -> crate::Result<Suggestions> {
        Ok(all(self.into_iter().map(Into::into).collect()))
    }
}

impl<T: IntoSuggestions, E: Into<Failure>> IntoSuggestions for Result<T, E> {
    fn into_suggestions(self) -> crate::Result<Suggestions> {
        self.map_err(Into::into)?.into_suggestions()
    }
}

/// A function that suggests values. `F` is what it takes and returns.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this suggests no values",
    label = "not a function for `#[complete]`",
    note = "write `async fn complete(typed: &str) -> Vec<String>`; it may also take `&Arguments`, \
            `&Context` or both in this order, and return `Suggestions`, alone or in a \
            `Result`"
)]
pub trait CompletionFunction<F> {
    fn suggest(
        &self,
        typed: &str,
        others: &Arguments,
        context: &Context,
    ) -> impl Future<Output = crate::Result<Suggestions>>;
}

macro_rules! suggest {
    ($typed:ident, $others:ident, $context:ident: $(fn($($parameter:ident: $type:ty),*));*) => {$(
        impl<F, R> CompletionFunction<fn($($type),*) -> R> for F
        where
            F: AsyncFn($($type),*) -> R,
            R: IntoSuggestions,
        {
            #[allow(unused_variables)]
            async fn suggest(
                &self,
                $typed: &str,
                $others: &Arguments,
                $context: &Context,
            ) -> crate::Result<Suggestions> {
                self($($parameter),*).await.into_suggestions()
            }
        }
    )*};
}

suggest!(typed, others, context:
    fn(typed: &str);
    fn(typed: &str, others: &Arguments);
    fn(typed: &str, context: &Context);
    fn(typed: &str, others: &Arguments, context: &Context)
);

/// Has a function suggest values.
#[doc(hidden)]
pub async fn suggest<F>(
    function: &impl CompletionFunction<F>,
    typed: &str,
    others: &Arguments,
    context: &Context,
) -> Result<Suggestions, Failure> {
    function.suggest(typed, others, context).await
}

/// Those of some values that begin with what was typed. Upper and lower case are alike for letters of
/// ASCII: for all others they take a table that is a tenth of a small component.
#[doc(hidden)]
pub fn beginning(values: &[&str], typed: &str) -> Suggestions {
    let begins = |value: &&&str| {
        value.get(..typed.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(typed))
    };
    all(values.iter().filter(begins).map(ToString::to_string).collect())
}

/// The suggestions for an argument without any.
#[doc(hidden)]
pub fn none() -> Suggestions {
    all(Vec::new())
}

/// All the values there are.
fn all(values: Vec<String>) -> Suggestions {
    let total = Some(values.len() as u64);
    Suggestions { values, total, has_more: false, extra: None }
}

type Completing<'a> = Pin<Box<dyn Future<Output = Result<Option<Suggestions>, Failure>> + 'a>>;

/// What suggests values, in the table of all that does. Functions over tables are there once, which
/// keeps components small.
#[doc(hidden)]
pub struct Entry {
    reference: Reference,
    complete: for<'a> fn(&'a str, &'a str, &'a Arguments, &'a Context) -> Completing<'a>,
}

/// The entry of what suggests values.
#[doc(hidden)]
pub const fn entry<C: CompleteArguments>() -> Entry {
    Entry {
        reference: C::REFERENCE,
        complete: |name, typed, others, context| {
            Box::pin(C::complete(name, typed, others, context))
        },
    }
}

/// Suggests values for an argument. For what suggests nothing and is one of the known, there are none.
#[doc(hidden)]
pub async fn complete(
    entries: &[Entry],
    known: &[Reference],
    argument: wit::ArgumentCompletion,
    context: Context,
) -> Result<Suggestions, Error> {
    let wit::ArgumentCompletion { reference, name, value, others } = argument;
    let Some(entry) = entries.iter().find(|entry| entry.reference.names(&reference)) else {
        let is_known = known.iter().any(|known| known.names(&reference));
        return if is_known { Ok(none()) } else { Err(unknown_reference(&reference)) };
    };
    let others = Arguments::from(others);
    let suggested = context.serve((entry.complete)(&name, &value, &others, &context)).await?;
    let mut suggestions = suggested
        .ok_or_else(|| Error::invalid_input(format!("there is no argument \"{name}\"")))?;
    if suggestions.values.len() > MOST_VALUES {
        suggestions.values.truncate(MOST_VALUES);
        suggestions.has_more = true;
    }
    Ok(suggestions)
}

fn unknown_reference(reference: &wit::CompletionReference) -> Error {
    match reference {
        wit::CompletionReference::Prompt(name) => unknown("prompt", name),
        wit::CompletionReference::ResourceTemplate(text) => unknown("resource template", text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::testing::Host;

    #[test]
    fn values_begin_with_what_was_typed_in_upper_or_lower_case() {
        let check = |typed: &str, expected: &[&str]| {
            let suggestions = beginning(&["Graz", "GROSS", "Übelbach", "linz"], typed);
            assert_eq!(suggestions.values, expected, "{typed}");
            assert_eq!(suggestions.total, Some(expected.len() as u64));
            assert!(!suggestions.has_more);
        };
        check("", &["Graz", "GROSS", "Übelbach", "linz"]);
        check("gr", &["Graz", "GROSS"]);
        check("GRA", &["Graz"]);
        check("Graz", &["Graz"]);
        check("Grazer", &[]);
        check("ÜB", &["Übelbach"]);
        check("ü", &[]);
        check("raz", &[]);
    }

    #[test]
    fn what_suggests_nothing_has_no_suggestions() {
        let host = Host::new();
        let known = [Reference::Prompt("a")];
        let complete = |reference: wit::CompletionReference| {
            let argument = wit::ArgumentCompletion {
                reference,
                name: "x".into(),
                value: String::new(),
                others: Vec::new(),
            };
            host.run(complete(&[], &known, argument, host.context()))
        };
        let suggested = complete(wit::CompletionReference::Prompt("a".into())).unwrap();
        assert_eq!((suggested.values.len(), suggested.total), (0, Some(0)));
        let unknown = complete(wit::CompletionReference::ResourceTemplate("a".into()));
        assert_eq!(unknown.unwrap_err().code, ErrorCode::NotFound);
    }

    #[test]
    fn a_reference_is_of_one_kind() {
        let prompt = Reference::Prompt("a");
        assert!(prompt.is_among(&[Reference::Prompt("b"), prompt]));
        assert!(!prompt.is_among(&[Reference::ResourceTemplate("a")]));
        assert!(!prompt.names(&wit::CompletionReference::ResourceTemplate("a".into())));
        assert!(prompt.names(&wit::CompletionReference::Prompt("a".into())));
    }
}
