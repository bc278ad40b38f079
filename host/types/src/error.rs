//! Why a plugin does not serve a request.

use std::time::Duration;

/// Why a request was not served: the only errors there are. Each carries a message for people,
/// and no code interprets it.
///
/// A plugin returns these to say that it worked and the answer is no. It traps only when it is
/// broken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller's input is wrong, and the same input will be wrong again.
    #[error("invalid input: {0}")]
    InvalidInput(String),
    /// What the input names does not exist.
    #[error("not found: {0}")]
    NotFound(String),
    /// Policy forbids it, or a capability is not granted.
    #[error("denied: {0}")]
    Denied(String),
    /// It took longer than the call's deadline, or than a limit of the plugin's own.
    #[error("timeout: {0}")]
    Timeout(String),
    /// The caller asked for it to stop.
    #[error("cancelled: {0}")]
    Cancelled(String),
    /// It cannot be served now; the same request may succeed later.
    #[error("unavailable: {}", .0.message)]
    Unavailable(Unavailability),
    /// It failed for another reason.
    #[error("failed: {0}")]
    Failed(String),
}

/// A failure that may pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unavailability {
    /// What is unavailable, for people.
    pub message: String,
    /// How long to wait before another attempt, where that is known.
    pub retry_after: Option<Duration>,
}

impl Error {
    /// What it says for people, to add to.
    pub fn message_mut(&mut self) -> &mut String {
        match self {
            Self::InvalidInput(message)
            | Self::NotFound(message)
            | Self::Denied(message)
            | Self::Timeout(message)
            | Self::Cancelled(message)
            | Self::Failed(message) => message,
            Self::Unavailable(unavailability) => &mut unavailability.message,
        }
    }
}
