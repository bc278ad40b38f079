//! What the host itself does for plugins. The manifest names it under `services`.

use crate::Error;
pub use crate::bindings::base::tenon::plugin::services::{Memory, OutgoingMessage};
use crate::imports::services;

impl OutgoingMessage {
    /// A message for the user at hand.
    pub fn to_user(text: impl Into<String>) -> Self {
        Self { channel: None, text: text.into(), extra: None }
    }

    /// A message for a channel, which the host knows by this name.
    pub fn to_channel(channel: impl Into<String>, text: impl Into<String>) -> Self {
        Self { channel: Some(channel.into()), text: text.into(), extra: None }
    }
}

/// Sends a message.
///
/// # Errors
///
/// [`Error::Denied`] for a channel that is not granted, [`Error::NotFound`] for one that does not
/// exist.
pub async fn send_message(message: OutgoingMessage) -> Result<(), Error> {
    services::send_message(message).await
}

/// Searches the host's memory, best match first. The host may find fewer than `limit`.
///
/// # Errors
///
/// [`Error::Denied`] where it is not granted.
pub async fn search_memory(query: impl Into<String>, limit: u32) -> Result<Vec<Memory>, Error> {
    services::search_memory(query.into(), limit).await
}
