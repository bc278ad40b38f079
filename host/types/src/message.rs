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
