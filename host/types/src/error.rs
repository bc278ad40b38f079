//! Why a plugin does not serve a request.

use std::fmt;
use std::time::Duration;

use crate::Json;

/// Why a request was not served. A plugin returns it to say that it worked and the answer is no. It traps only
/// when it is broken.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    /// What kind of error it is.
    pub code: ErrorCode,
    /// For people; no code interprets it.
    pub message: String,
    /// How long to wait before another attempt, where that is known.
    pub retry_after: Option<Duration>,
    /// What programs can read about it.
    pub data: Option<Json>,
}

/// What kind of error it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The caller's input is wrong, and the same input will be wrong again.
    InvalidInput,
    /// What the input names does not exist.
    NotFound,
    /// Policy forbids it, or a capability is not granted.
    Denied,
    /// It took longer than the call's deadline, or than a limit of the plugin's own.
    Timeout,
    /// The caller asked for it to stop.
    Cancelled,
    /// It cannot be served now; the same request may succeed later.
    Unavailable,
    /// It failed for another reason.
    Failed,
}

impl ErrorCode {
    /// Its name in the contract, in JSON and in scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid-input",
            Self::NotFound => "not-found",
            Self::Denied => "denied",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What `outcome` in the data of an error is where nobody knows whether something was done.
const OUTCOME_UNKNOWN: &str = "unknown";

impl Error {
    /// An error of this kind, with a message for people.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after: None, data: None }
    }

    /// The caller's input is wrong.
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

    /// It took too long.
    pub fn timeout(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Timeout, message)
    }

    /// The caller asked for it to stop.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Cancelled, message)
    }

    /// It cannot be served now.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// It failed for a reason that has no code.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Failed, message)
    }

    /// Whether what was asked for may have been done although this came of it: it took too long, or its `data` says so by
    /// a member `outcome` that is `"unknown"`.
    pub fn is_outcome_unknown(&self) -> bool {
        let data = self.data.as_ref().map(Json::value);
        self.code == ErrorCode::Timeout
            || data.is_some_and(|data| data["outcome"] == OUTCOME_UNKNOWN)
    }

    /// The same, saying how long to wait before another attempt.
    #[must_use]
    pub fn retry_after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// The same, with what programs can read about it.
    #[must_use]
    pub fn with_data(self, data: Json) -> Self {
        Self { data: Some(data), ..self }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.code {
            ErrorCode::InvalidInput => "invalid input",
            ErrorCode::NotFound => "not found",
            code => code.name(),
        };
        write!(f, "{code}: {}", self.message)
    }
}

impl std::error::Error for Error {}
