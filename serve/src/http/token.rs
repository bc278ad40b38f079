//! Tokens of clients, and what each is good for.

use async_trait::async_trait;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt;
use std::sync::Arc;

/// A token that clients send. Only its digest is kept.
#[derive(Clone, Copy, Eq)]
pub struct HttpTokenDigest([u8; 32]);

impl HttpTokenDigest {
    /// The token with this text.
    pub fn new(text: &str) -> Self {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
        Self(bytes)
    }

    /// A text for a new token, which nobody can guess. `None` where the system has no random numbers.
    pub fn random_text() -> Option<String> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).ok()?;
        Some(hex::encode(bytes))
    }

    /// The SHA-256 of its text in hexadecimal digits, by which it can be kept.
    pub fn sha256(&self) -> String {
        hex::encode(self.0)
    }

    /// The token with this [`sha256`](Self::sha256). `None` where the text is not one.
    pub fn from_sha256(text: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text, &mut bytes).ok()?;
        Some(Self(bytes))
    }
}

/// It takes as long for any two tokens.
impl PartialEq for HttpTokenDigest {
    fn eq(&self, other: &Self) -> bool {
        let differ = self.0.iter().zip(other.0).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differ) == 0
    }
}

impl fmt::Debug for HttpTokenDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HttpTokenDigest")
    }
}

/// What a token is good for. The default is all, at the address of any profile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenGrant {
    /// Whose token it is, as rules of the operator and approvals of calls name it: `token:laptop`. `None` is nobody in
    /// particular.
    pub principal: Option<String>,
    /// The only profile that it is good for.
    pub profile: Option<String>,
    /// The only tools of a profile that it is good for, by patterns of their full names: those that begin with their
    /// plugins'.
    pub tools: Option<Vec<String>>,
}

/// Who sends a request, and what that client may use.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// Names the client, so that what is of one is of no other.
    pub(super) principal: Arc<str>,
    pub(super) grant: TokenGrant,
}

/// Knows which tokens are good.
#[async_trait]
pub trait TokenStore: fmt::Debug + Send + Sync + 'static {
    /// What a token is good for; `None` where it is not good, or no longer. It is asked for every request.
    async fn grant(&self, token: &HttpTokenDigest) -> Option<TokenGrant>;
}

/// One token, which is good for all.
#[async_trait]
impl TokenStore for HttpTokenDigest {
    async fn grant(&self, token: &HttpTokenDigest) -> Option<TokenGrant> {
        (self == token).then(TokenGrant::default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_kept_by_its_digest() {
        let token = HttpTokenDigest::new("secret");
        let sha256 = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
        assert_eq!(token.sha256(), sha256);
        assert_eq!(HttpTokenDigest::from_sha256(sha256), Some(token));
        for wrong in ["", "2bb8", &sha256[1..], &sha256.replace('2', "x"), &format!("{sha256}00")] {
            assert_eq!(HttpTokenDigest::from_sha256(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_new_token_is_one_that_nobody_guesses() {
        let [one, other] =
            [(); 2].map(|()| HttpTokenDigest::random_text().expect("there is chance"));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
    }

    #[test]
    fn every_byte_is_compared() {
        let differing = |places: &[usize]| {
            let mut bytes = [0; 32];
            places.iter().for_each(|place| bytes[*place] = 1);
            HttpTokenDigest(bytes)
        };
        assert_eq!(differing(&[]), differing(&[]));
        for places in [&[0][..], &[31], &[3, 7]] {
            assert_ne!(differing(places), differing(&[]), "{places:?}");
        }
    }
}
