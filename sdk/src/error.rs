//! How a plugin's function fails.

use std::any::Any;
use std::fmt::Display;

use std::time::Duration;

pub use crate::bindings::base::tenon::plugin::types::{Error, ErrorCode};

impl Error {
    /// An error of this kind, with a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None, data: None }
    }

    /// The caller's input is wrong, and the same input will be wrong again.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidInput, message)
    }

    /// What the input names does not exist.
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NotFound, message)
    }

    /// Policy forbids it, or a capability is not granted.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Denied, message)
    }

    /// It took longer than it may.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Timeout, message)
    }

    /// The caller asked for it to stop.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Cancelled, message)
    }

    /// It cannot be served now; the same request may succeed later.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// It failed for another reason.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    /// The same, saying how long to wait before another attempt.
    #[must_use]
    pub fn retry_after(self, time: Duration) -> Self {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self { retry_after: Some(millis), ..self }
    }

    /// The same, with what programs can read about it.
    #[must_use]
    pub fn with_data(self, data: &serde_json::Value) -> Self {
        Self { data: Some(data.to_string()), ..self }
    }
}

/// The result of a plugin's function.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a plugin's function failed.
///
/// `?` makes one of any error that implements [`std::error::Error`]; for a text there is
/// [`Failure::Message`]. A tool's failure is shown to the model, which may do better on the
/// next try; [`Error`] is for what the model cannot mend, and `?` keeps its code.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// A message for the caller. In a tool it becomes a result with `is-error`; elsewhere it is
    /// [`ErrorCode::Failed`].
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
            Self::Message(message) => Error::failed(message),
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
    serde_json::from_str(text).map_err(|error| Error::invalid_input(format!("{what}: {error}")))
}

/// Writes what the plugin passes as JSON, naming what it is.
pub(crate) fn as_json(what: &str, value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(|error| Error::invalid_input(format!("{what}: {error}")))
}

/// The answer to a name that the plugin does not have.
#[doc(hidden)]
pub fn unknown(what: &str, name: &str) -> Error {
    Error::not_found(format!("this plugin has no {what} \"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_mark_keeps_the_variant_of_a_contract_error() {
        let failure = Failure::from(Error::denied("no"));
        assert_eq!(failure, Failure::Error(Error::denied("no")));
    }

    #[test]
    fn a_foreign_error_is_told_with_its_causes() {
        let error = "x".parse::<i32>().unwrap_err();
        assert_eq!(Failure::from(error), Failure::Message("invalid digit found in string".into()));
    }
}
