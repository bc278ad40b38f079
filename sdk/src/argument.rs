//! Arguments that arrive as text: those of prompts, and the variables of resource templates.

use std::any::Any;
use std::fmt::Display;
use std::str::FromStr;

use crate::{Error, Failure, Result};

/// Arguments by their names. One that is a list is there several times.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Arguments(Vec<(String, String)>);

impl Arguments {
    /// The argument of this name; the first one of a list.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All arguments of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value)
    }

    /// All arguments, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl From<Vec<(String, String)>> for Arguments {
    fn from(arguments: Vec<(String, String)>) -> Self {
        Self(arguments)
    }
}

/// What an argument can be that arrives as text. The macros ask for it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be made from text",
    label = "arguments of prompts and variables of URIs are text",
    note = "take `String`, `bool`, a number, or a type that implements `FromStr` with an error that \
            implements `Display`; `Option` around it makes the argument optional"
)]
pub trait FromText: Sized {
    fn from_text(text: &str) -> Result<Self, String>;
}

#[diagnostic::do_not_recommend]
impl<T: FromStr> FromText for T
where
    T::Err: Display + 'static,
{
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|error: T::Err| match (&error as &dyn Any).downcast_ref::<Error>() {
            Some(error) => error.message.clone(),
            None => error.to_string(),
        })
    }
}

/// An argument that has to be there.
#[doc(hidden)]
pub fn required<T: FromText>(arguments: &Arguments, name: &str) -> Result<T> {
    match arguments.get(name) {
        Some(text) => parse(name, text),
        None => Err(invalid(format!("the argument \"{name}\" is missing"))),
    }
}

/// An argument that may be missing.
#[doc(hidden)]
pub fn optional<T: FromText>(arguments: &Arguments, name: &str) -> Result<Option<T>> {
    arguments.get(name).map(|text| parse(name, text)).transpose()
}

/// An argument that is a list.
#[doc(hidden)]
pub fn list<T: FromText>(arguments: &Arguments, name: &str) -> Result<Vec<T>> {
    arguments.all(name).map(|text| parse(name, text)).collect()
}

fn parse<T: FromText>(name: &str, text: &str) -> Result<T> {
    T::from_text(text).map_err(|error| invalid(format!("argument \"{name}\": {error}")))
}

fn invalid(message: String) -> Failure {
    Failure::Error(Error::invalid_input(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;

    #[test]
    fn what_does_not_fit_is_named() {
        let arguments = Arguments::from(vec![("a".to_string(), "x".to_string())]);
        let check = |result: Result<u32>, expected: &str| {
            let error = result.unwrap_err().into_error();
            assert_eq!((error.code, error.message.as_str()), (ErrorCode::InvalidInput, expected));
        };
        check(required(&arguments, "a"), "argument \"a\": invalid digit found in string");
        check(required(&arguments, "b"), "the argument \"b\" is missing");
        check(
            optional(&arguments, "a").map(Option::unwrap),
            "argument \"a\": invalid digit found in string",
        );
        check(
            list(&arguments, "a").map(|list| list[0]),
            "argument \"a\": invalid digit found in string",
        );
        assert_eq!(optional::<u32>(&arguments, "b"), Ok(None));
        assert_eq!(list::<u32>(&arguments, "b"), Ok(vec![]));
    }
}
