//! What is shown and played.

/// A picture of one point.
pub(crate) const PNG: &[u8] = include_bytes!("pixel.png");

/// A sound that nobody hears.
pub(crate) const WAV: &[u8] = include_bytes!("silence.wav");
