//! The client side of the Model Context Protocol, without input or output of its own: lines and
//! instants go in, [`Action`]s come out.
//!
//! [`Client`] is a state machine. Whoever drives it passes in what the server writes and what time
//! it is, and carries out the actions that it is given. So every duty of a client is tested without
//! a process, a clock or a thread.
//!
//! The protocol has two eras. Up to [`REVISIONS`] a connection begins with `initialize` and the
//! server may ask the client for things; since [`MODERN`] each request stands for itself, and a
//! server that needs something answers that it does. Both have the same operations here.
//!
//! Messages are read tolerantly: what is broken costs itself and nothing else, and results are kept
//! as the text they came as, so that nothing in them is lost and large ones are not copied.

mod client;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod header_arguments;
mod json_array;
mod json_string;
mod message;
mod raw_json;
mod server;
mod settings;

pub use client::{
    Action, AskId, AskKind, Client, EmptyLists, Error, LogLevel, OperationId, Outcome, Request,
};
pub use header_arguments::HeaderArgument;
pub use json_array::{MAX_ITEMS, items};
pub use json_string::{text, without_needless_escapes};
pub use message::JsonSlice;
pub use raw_json::{Json, Members};
pub use server::{Server, ServerCapabilities};
pub use settings::{Era, Features, HandshakeMode, Root, Settings};

/// The revisions of the older era that are spoken, newest first. The first is asked for, and a
/// server may choose another.
pub const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The revision of the newer era.
pub const MODERN: &str = "2026-07-28";
