//! Messages that the host sends. The manifest names channels under `messaging`.

use crate::Error;
pub use crate::bindings::base::tenon::plugin::messaging::OutgoingMessage;
use crate::imports::messaging;

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
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) for a channel that is not granted, [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) for one that does not
/// exist.
pub async fn send(message: OutgoingMessage) -> Result<(), Error> {
    messaging::send_message(message).await
}
