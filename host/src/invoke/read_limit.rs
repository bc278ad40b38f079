//! How much of a resource may be read, in bytes or in tokens of a language model.

use serde::{Deserialize, Serialize};

/// How many bytes are taken for one token; see [`tokens`].
const BYTES_PER_TOKEN: usize = 4;

/// Estimates how many tokens so many bytes are: one for every four, and one for what is left over.
///
/// The host knows no model's tokenizer. For English prose and for code in UTF-8 the estimate is close
/// with most of them; other scripts, numbers and what is encoded in Base64 can be more tokens than
/// that, so that who has little room asks for less.
pub const fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

/// How much of a resource may be read. Nothing said is everything; where both are, the smaller one
/// holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReadLimit {
    /// So many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// So many tokens, as [`tokens`] estimates them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

impl ReadLimit {
    /// So many bytes.
    pub const fn bytes(most: usize) -> Self {
        Self { max_bytes: Some(most), max_tokens: None }
    }

    /// So many tokens, as [`tokens`] estimates them.
    pub const fn tokens(most: usize) -> Self {
        Self { max_bytes: None, max_tokens: Some(most) }
    }

    /// The most bytes that may be read; nothing where all may.
    pub fn most(self) -> Option<usize> {
        let tokens = self.max_tokens.map(|most| most.saturating_mul(BYTES_PER_TOKEN));
        self.max_bytes.into_iter().chain(tokens).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_kept_and_used_up() {
        for (bytes, expected) in [(0, 0), (1, 1), (4, 1), (5, 2), (usize::MAX, usize::MAX / 4 + 1)]
        {
            assert_eq!(tokens(bytes), expected, "{bytes}");
        }
        for most in [0, 1, 7, 1000] {
            let bytes = ReadLimit::tokens(most).most().unwrap();
            assert!(tokens(bytes) == most && tokens(bytes + 1) > most, "{most}");
        }
        assert_eq!(ReadLimit::tokens(usize::MAX).most(), Some(usize::MAX));
        assert_eq!(ReadLimit::default().most(), None);
        let both = |max_bytes, max_tokens| {
            ReadLimit { max_bytes: Some(max_bytes), max_tokens: Some(max_tokens) }.most()
        };
        assert_eq!((both(9, 2), both(7, 2)), (Some(8), Some(7)));
    }
}
