//! How a plugin's function fails.

use std::any::Any;
use std::error::Error as StdError;
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
/// `?` makes one of any error: of a type that implements [`std::error::Error`], of `Box<dyn Error>`, of
/// `anyhow::Error`, and of a text. A tool's failure is shown to the model, which may do better on the next try;
/// [`Error`] is for what the model cannot mend, and `?` keeps its code.
///
/// ```
/// use tenon_sdk::{Result, tool};
///
/// /// Adds two numbers.
/// #[tool]
/// async fn add(one: String, other: String) -> Result<String> {
///     let sum = one.parse::<u32>()?.checked_add(other.parse()?).ok_or("the sum is too great")?;
///     Ok(sum.to_string())
/// }
/// # fn main() {}
/// ```
///
/// A function may also return another `Result`, such as `anyhow::Result<String>` or `Result<String, Box<dyn Error>>`;
/// a box of `dyn Error + Send + Sync` becomes no other box, and is told with `map_err(Failure::message)`. The feature `anyhow` keeps the
/// code of an [`Error`] that `anyhow` carries; without it, such an error is a message like any other.
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

// `Failure` is no `std::error::Error` itself, and does not become a box of one: this conversion would overlap with the
// reflexive one.
impl<E: Into<Box<dyn StdError>> + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        // Decided when it is compiled: what every tool converts brings neither boxes nor their messages.
        if let Some(error) = (&error as &dyn Any).downcast_ref::<Error>() {
            return Self::Error(error.clone());
        }
        #[cfg(feature = "anyhow")]
        if let Some(error) = (&error as &dyn Any).downcast_ref::<anyhow::Error>() {
            return Self::of(error.as_ref());
        }
        Self::of(&*error.into())
    }
}

impl Failure {
    /// An error, told with its causes. Where it or a cause of it is one of the contract, that one's code is kept.
    fn of(error: &(dyn StdError + 'static)) -> Self {
        let mut message = String::new();
        let mut contract = None;
        let mut next = Some(error);
        while let Some(error) = next {
            if !message.is_empty() {
                message.push_str(": ");
            }
            let own = error.downcast_ref::<Error>();
            // Displayed, an error of the contract shows its code as well.
            match own {
                Some(own) => message.push_str(&own.message),
                None => message.push_str(&error.to_string()),
            }
            contract = contract.or(own);
            next = error.source();
        }
        match contract {
            Some(contract) => Self::Error(Error { message, ..contract.clone() }),
            None => Self::Message(message),
        }
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
        let check = |failure: Failure, expected: Failure| assert_eq!(failure, expected);
        let message = |text: &str| Failure::Message(text.into());
        let digit = || "x".parse::<i32>().unwrap_err();
        check(digit().into(), message("invalid digit found in string"));
        check(Box::<dyn StdError>::from(digit()).into(), message("invalid digit found in string"));
        check("no such town".into(), message("no such town"));
        check(format!("no such {}", "town").into(), message("no such town"));
        let caused = std::io::Error::other(WrappingError(Box::new(digit())));
        check(
            WrappingError(Box::new(caused)).into(),
            message("it failed: it failed: invalid digit found in string"),
        );
        check(
            WrappingError(Box::new(Error::denied("no"))).into(),
            Error::denied("it failed: no").into(),
        );
        #[cfg(feature = "anyhow")]
        {
            check(
                anyhow::Error::new(digit()).context("town").into(),
                message("town: invalid digit found in string"),
            );
            check(anyhow::anyhow!("no such town").into(), message("no such town"));
            check(anyhow::Error::new(Error::denied("no")).into(), Error::denied("no").into());
            check(
                anyhow::Error::new(Error::denied("no")).context("town").into(),
                Error::denied("town: no").into(),
            );
        }
    }

    #[derive(Debug)]
    struct WrappingError(Box<dyn StdError + Send + Sync>);

    impl Display for WrappingError {
        fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("it failed")
        }
    }

    impl StdError for WrappingError {
        fn source(&self) -> Option<&(dyn StdError + 'static)> {
            Some(&*self.0)
        }
    }
}
