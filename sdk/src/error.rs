//! How a plugin's function fails.

use std::any::Any;
use std::fmt::Display;

pub use crate::bindings::base::tenon::plugin::types::{Error, Unavailability};

/// The result of a plugin's function.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a plugin's function failed.
///
/// `?` makes one of any error that implements [`std::error::Error`]; for a text there is
/// [`Failure::Message`]. A tool's failure is shown to the model, which may do better on the
/// next try; [`Error`] is for what the model cannot mend, and `?` keeps its variant.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// A message for the caller. In a tool it becomes a result with `is-error`; elsewhere it is
    /// [`Error::Failed`].
    Message(String),
    /// One of the errors of the contract, as it is.
    Error(Error),
}

impl Failure {
    /// Makes a failure of a message.
    pub fn message(message: impl Display) -> Self {
        Self::Message(message.to_string())
    }

    /// The failure as an error of the contract.
    pub fn into_error(self) -> Error {
        match self {
            Self::Message(message) => Error::Failed(message),
            Self::Error(error) => error,
        }
    }
}

// `Failure` is no `std::error::Error` itself: this conversion would overlap with the reflexive one.
impl<E: std::error::Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        if let Some(error) = (&error as &dyn Any).downcast_ref::<Error>() {
            return Self::Error(error.clone());
        }
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::Message(message)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        failure.into_error()
    }
}

/// Parses what the caller passed, naming what it was meant to be.
#[doc(hidden)]
pub fn parse_arguments<T: serde::de::DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::InvalidInput(format!("{what}: {error}")))
}

/// Writes what the plugin passes as JSON, naming what it is.
pub(crate) fn as_json(what: &str, value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::InvalidInput(format!("{what}: {error}")))
}

/// The answer to a name that the plugin does not have.
#[doc(hidden)]
pub fn unknown(what: &str, name: &str) -> Error {
    Error::NotFound(format!("this plugin has no {what} \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_mark_keeps_the_variant_of_a_contract_error() {
        let failure = Failure::from(Error::Denied("no".into()));
        assert_eq!(failure, Failure::Error(Error::Denied("no".into())));
    }

    #[test]
    fn a_foreign_error_is_told_with_its_causes() {
        let error = "x".parse::<i32>().unwrap_err();
        assert_eq!(Failure::from(error), Failure::Message("invalid digit found in string".into()));
    }
}
