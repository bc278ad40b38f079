//! Offers everything on a Tenon platform to MCP clients: tools, resources and prompts of plugins of every kind, in both
//! eras of the protocol.
//!
//! ```no_run
//! use tenon_host::{Config, Platform};
//! use tenon_serve::{AllClientFeatures, Server, Settings};
//! use tokio::io::BufReader;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let config = Config::parse(r#"plugins.wasm = ["text_tools.wasm"]"#, "tenon.toml")?;
//! let builder = Platform::builder().config(config).client_features(AllClientFeatures);
//! let platform = builder.build().await?;
//! let server = Server::new(platform, Settings::default())?;
//! let (input, output) = tokio::io::duplex(1 << 16);
//! server.serve_lines(None, BufReader::new(input), output, std::future::pending()).await?;
//! # Ok(())
//! # }
//! ```
//!
//! A request goes through these rooms, from the bottom up:
//!
//! | room | what it is |
//! |---|---|
//! | `protocol` | messages, requests and errors as text; no I/O, no plugins |
//! | `client` | who a request comes from: asked for its user and its model, told of progress |
//! | `offer` | what a client sees of the platform, and which plugin has what it names |
//! | `request_handler` | does what a request asks for |
//! | `rates` | how often clients may call tools |
//! | `parked`, `seal` | calls that wait for their client |
//! | `changes` | news for clients |
//! | `modern`, `legacy_session` | the two eras |
//! | `stdio` | one client over a pair of streams |
//! | `http` | clients over Streamable HTTP |

mod changes;
mod client;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod http;
mod in_flight;
mod legacy_session;
mod lines;
mod modern;
mod offer;
mod parked;
mod protocol;
mod rates;
mod request_handler;
mod seal;
mod server;
mod stdio;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use http::{
    DocumentFetcher, HttpSettings, HttpTokenDigest, IssuerSettings, MetricsSource, TokenGrant,
    TokenIssuer, TokenStore,
};
pub use offer::{Profile, ToolMode};
pub use server::{AllClientFeatures, Server, ServerError, Settings};

/// Locks what no panic leaves half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
