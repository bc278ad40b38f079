//! The client side of the Model Context Protocol, without input or output of its own: lines and
//! instants go in, [`Action`]s come out.
//!
//! [`Client`] is a state machine. Whoever drives it passes in what the server writes and what time
//! it is, and carries out the actions that it is given. So every duty of a client is tested without
//! a process, a clock or a thread.
//!
//! Messages are read tolerantly: what is broken costs itself and nothing else, and results are kept
//! as the text they came as, so that nothing in them is lost and large ones are not copied.

mod client;
mod message;

pub use client::{
    Action, Client, Error, LogLevel, OperationId, Outcome, Request, Server, ServerCapabilities,
    Settings,
};
pub use message::Payload;

/// The revisions that are spoken, newest first. The first is asked for, and a server may choose
/// another.
pub const REVISIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
