//! The Model Context Protocol as a server speaks it: what messages mean, and how they are written. It does no I/O
//! and knows no plugins.
//!
//! Two eras share one endpoint. *Legacy* is 2025-11-25 and before: `initialize` begins a session. *Modern* is
//! 2026-07-28: each request says by itself what it needs. Source of all forms: the
//! [specification](https://modelcontextprotocol.io/specification).

pub(crate) mod capabilities;
pub(crate) mod error;
pub(crate) mod message;
pub(crate) mod meta;
pub(crate) mod request;
pub(crate) mod version;
pub(crate) mod write;
