//! What plugins send and search.

/// A message to somebody.
#[derive(Debug, Clone, PartialEq)]
pub struct OutgoingMessage {
    /// Where to, in the host's own words; absent for the user at hand.
    pub channel: Option<String>,
    /// The text.
    pub text: String,
    /// What else the channel understands, as one JSON object.
    pub extra: Option<String>,
}

/// A message that came in.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IncomingMessage {
    /// The text.
    pub text: String,
    /// Where it came from, such as the name of a chat.
    pub channel: Option<String>,
    /// Who sent it.
    pub sender: Option<String>,
}

/// Something remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The text.
    pub text: String,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Where it comes from, where that is known.
    pub source: Option<String>,
}
