//! Why nobody is logged in.

use rmcp::transport::auth::AuthError;
use std::io;
use tenon_config::secret::StoredSecretError;

use crate::fetch_error::FetchError;

/// Why a login comes to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginError {
    /// The server answers whoever asks, and says nothing of a login.
    #[error("the server asks for no login")]
    NotAsked,
    /// It answers as no MCP server does.
    #[error(
        "the server asks for no login and responded with HTTP {0}; check its `url`: it must be an MCP server that answers there"
    )]
    NotServed(u16),
    #[error("the server cannot be asked")]
    Server(#[source] FetchError),
    /// The server or its authorization server do not do their part of the protocol.
    #[error("the login fails: {0}")]
    Protocol(Box<AuthError>),
    /// Its page is none that a browser should open.
    #[error("the authorization server names a page that is neither https nor of this machine")]
    Page,
    /// The user said no, or the authorization server did.
    #[error("the authorization server refuses: {0}")]
    Denied(String),
    #[error("nobody has logged in within {0}")]
    TimedOut(humantime::FormattedDuration),
    /// The browser has nowhere to come back to.
    #[error("no port of this machine can be listened on")]
    Port(#[source] io::Error),
    /// What is kept of logins cannot be read or changed.
    #[error("what is kept of logins")]
    Store(#[source] StoredSecretError),
    #[error("no folder for logins: HOME is not set")]
    NoFolder,
    /// What is kept of a login was not written by this version.
    #[error("what is kept of the login cannot be understood; `tenon logout` removes it")]
    Damaged(#[source] serde_json::Error),
}

impl From<AuthError> for LoginError {
    fn from(error: AuthError) -> Self {
        Self::Protocol(Box::new(error))
    }
}
