//! Sealed text: what a client keeps for the server and can neither read meaning into nor change. Beside it, digests by which
//! things are named.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::hmac::{HMAC_SHA256, Key, sign, verify};
use ring::rand::{SecureRandom, SystemRandom};
use std::time::{SystemTime, UNIX_EPOCH};

/// The length of a key, in bytes.
pub(crate) const KEY_BYTES: usize = 32;

/// Seals texts with a key.
pub(crate) struct Sealer {
    key: Key,
    random: SystemRandom,
}

/// Names what a sealed text stands for.
pub(crate) type SealId = [u8; 16];

/// Why a sealed text is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SealError {
    /// It was changed, is for somebody or something else, or was sealed with another key.
    Forged,
    /// It is too old.
    Expired,
}

/// The length of an id and a time.
const HEAD_BYTES: usize = 24;

impl Sealer {
    /// A seal with a key that nobody else has and that ends with the process. `None` where the system has no random numbers.
    pub(crate) fn new() -> Option<Self> {
        let random = SystemRandom::new();
        let key = Key::generate(HMAC_SHA256, &random).ok()?;
        Some(Self { key, random })
    }

    /// The seal of all who have this key.
    pub(crate) fn with_key(key: &[u8; KEY_BYTES]) -> Self {
        Self { key: Key::new(HMAC_SHA256, key), random: SystemRandom::new() }
    }

    /// An id that nobody can guess.
    pub(crate) fn id(&self) -> Option<SealId> {
        let mut id = SealId::default();
        self.random.fill(&mut id).ok()?;
        Some(id)
    }

    /// A text that stands for an id until some time, and for nobody and nothing but what `bound` says.
    pub(crate) fn seal(&self, id: SealId, until: SystemTime, bound: &[&[u8]]) -> String {
        let until = seconds(until);
        let mut bytes = [id.as_slice(), &until.to_be_bytes()].concat();
        let tag = sign(&self.key, &message(&bytes, bound));
        bytes.extend_from_slice(tag.as_ref());
        BASE64_URL_SAFE_NO_PAD.encode(bytes)
    }

    /// What a sealed text stands for.
    pub(crate) fn open(
        &self,
        text: &str,
        bound: &[&[u8]],
        now: SystemTime,
    ) -> Result<SealId, SealError> {
        let bytes = BASE64_URL_SAFE_NO_PAD.decode(text).map_err(|_| SealError::Forged)?;
        let (head, tag) = bytes.split_at_checked(HEAD_BYTES).ok_or(SealError::Forged)?;
        verify(&self.key, &message(head, bound), tag).map_err(|_| SealError::Forged)?;
        let (id, until) = head.split_at(size_of::<SealId>());
        let (Ok(id), Ok(until)) = (id.try_into(), until.try_into()) else {
            return Err(SealError::Forged);
        };
        match u64::from_be_bytes(until) < seconds(now) {
            true => Err(SealError::Expired),
            false => Ok(id),
        }
    }
}

/// The SHA-256 of parts, in hexadecimal digits.
pub(crate) fn sha256_hex(parts: &[&[u8]]) -> String {
    hex::encode(digest(&SHA256, &message(&[], parts)))
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// What is signed or digested. Each part has its length before it, so that no two lists of parts are the same.
fn message(head: &[u8], bound: &[&[u8]]) -> Vec<u8> {
    let mut message = head.to_vec();
    for part in bound {
        message.extend_from_slice(&(part.len() as u64).to_be_bytes());
        message.extend_from_slice(part);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_sealed_text_is_taken_as_it_is_for_whom_it_is_and_not_too_late() {
        let seal = Sealer::new().unwrap();
        let id = seal.id().unwrap();
        assert_ne!(id, seal.id().unwrap());
        let now = SystemTime::now();
        let text = seal.seal(id, now + Duration::from_secs(60), &[b"ada", b"call"]);
        let check = |seal: &Sealer, text: &str, bound: &[&[u8]], expected| {
            assert_eq!(seal.open(text, bound, now), expected, "{text}");
        };
        check(&seal, &text, &[b"ada", b"call"], Ok(id));
        check(&seal, &text, &[b"bob", b"call"], Err(SealError::Forged));
        check(&seal, &text, &[b"adac", b"all"], Err(SealError::Forged));
        check(&seal, &text, &[b"ada"], Err(SealError::Forged));
        check(&Sealer::new().unwrap(), &text, &[b"ada", b"call"], Err(SealError::Forged));
        for wrong in ["", "x", "!", &text[1..], &format!("{text}A"), &format!("{text}-TAMPERED")] {
            check(&seal, wrong, &[b"ada", b"call"], Err(SealError::Forged));
        }
        for place in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(seal.open(&changed, &[b"ada", b"call"], now).is_err(), "{place}");
        }
        let last = now + Duration::from_secs(60);
        assert_eq!(seal.open(&text, &[b"ada", b"call"], last), Ok(id));
        let later = now + Duration::from_secs(62);
        assert_eq!(seal.open(&text, &[b"ada", b"call"], later), Err(SealError::Expired));
    }
}
