//! The user's logins to MCP servers elsewhere: OAuth 2.1, as the [Model Context Protocol] has it in both of its eras. The
//! protocol itself is the work of `rmcp` and `oauth2`; here stand the user's part of it, and what is kept.
//!
//! [Model Context Protocol]: https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization

mod error;
mod flow;
mod http;
mod redirect;
mod store;
mod tokens;

pub(crate) use error::LoginError;
pub(crate) use flow::{LoginOptions, log_in};
pub(crate) use store::LoginStore;
pub(crate) use tokens::LoginTokenCache;
