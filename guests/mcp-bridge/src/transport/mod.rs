//! The way to the server and back: lines to a child, or requests over HTTP. Which of the two it is
//! was decided when the bridge was built, so that each imports what it needs and nothing else.

#[cfg(not(feature = "http"))]
mod child;
#[cfg(feature = "http")]
mod http;

#[cfg(not(feature = "http"))]
pub(crate) use child::*;
#[cfg(feature = "http")]
pub(crate) use http::*;

use mcp_client::HeaderArgument;

/// What a request is about.
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "lines need no head"))]
pub(crate) struct RequestHead {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    /// The name of a tool or a prompt, the URI of a resource.
    pub(crate) subject: Option<String>,
    /// The arguments of a call that its headers have, too.
    pub(crate) mirrored: Vec<HeaderArgument>,
}

/// What comes back.
pub(crate) enum Event {
    /// A message, or what is none.
    Line(Vec<u8>),
    /// A message that was too long.
    Oversized { prefix: Vec<u8>, length: u64 },
    /// A request will have no answer.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "a child fails as a whole"))]
    Failed { request: u64, error: mcp_client::Error },
    /// The server is gone.
    Lost(String),
    /// The server is gone, and has said that it failed.
    #[cfg_attr(feature = "http", expect(dead_code, reason = "only a process says so"))]
    Ended(String),
    /// The instant of [`set_timer`] has come.
    Timer,
}
