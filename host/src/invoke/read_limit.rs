//! How much of a resource may be read, in bytes or in tokens of a language model.

use serde::{Deserialize, Serialize};

/// How many bytes are taken for one token.
const BYTES_PER_TOKEN: usize = 4;

/// How much of a resource may be read. Nothing said is everything; where both are, the smaller one
/// holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ReadLimit {
    /// So many bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<usize>,
    /// So many tokens, each counted as four bytes.
    ///
    /// The host knows no model's tokenizer. For English prose and code in UTF-8 this is close; other scripts,
    /// numbers and Base64 can be more tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<usize>,
}

impl ReadLimit {
    /// So many bytes.
    pub const fn bytes(most: usize) -> Self {
        Self { max_bytes: Some(most), max_tokens: None }
    }

    /// So many tokens, each counted as four bytes.
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
        for most in [0, 1, 7, 1000] {
            assert_eq!(ReadLimit::tokens(most).most(), Some(4 * most));
        }
        assert_eq!(ReadLimit::tokens(usize::MAX).most(), Some(usize::MAX));
        assert_eq!(ReadLimit::default().most(), None);
        let both = |max_bytes, max_tokens| {
            ReadLimit { max_bytes: Some(max_bytes), max_tokens: Some(max_tokens) }.most()
        };
        assert_eq!((both(9, 2), both(7, 2)), (Some(8), Some(7)));
    }
}
