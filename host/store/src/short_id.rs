//! Short ids that people type, such as `A-3K7QZ0M2X9TB`.

/// The letters of ids: no two of them are mistaken for each other (Crockford's base 32).
const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// How many letters an id has after its beginning.
const ID_LETTERS: usize = 12;

/// Ids of one kind: what they begin with tells them from those of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdKind(&'static str);

impl IdKind {
    /// Ids that begin so.
    #[must_use]
    pub const fn new(beginning: &'static str) -> Self {
        Self(beginning)
    }

    /// Makes the id of these bytes, of which the first twelve count: the same for the same bytes.
    #[must_use]
    pub fn of(self, bytes: &[u8]) -> String {
        let bytes = bytes.iter().take(ID_LETTERS);
        let letters = bytes.map(|byte| LETTERS[usize::from(byte % 32)] as char);
        self.0.chars().chain(letters).collect()
    }

    /// Makes an id that nothing has; nothing where the system has no random numbers.
    #[must_use]
    pub fn random(self) -> Option<String> {
        let mut bytes = [0; ID_LETTERS];
        getrandom::fill(&mut bytes).ok()?;
        Some(self.of(&bytes))
    }

    /// Whether a text is an id of the kind.
    #[must_use]
    pub fn is_of(self, text: &str) -> bool {
        let letters = text.strip_prefix(self.0).unwrap_or_default();
        letters.len() == ID_LETTERS && letters.bytes().all(|byte| LETTERS.contains(&byte))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_its_kind_and_of_no_other() {
        let (one, other) = (IdKind::new("A-"), IdKind::new("R-"));
        let id = one.random().expect("there are random numbers");
        assert!(one.is_of(&id) && !other.is_of(&id), "{id}");
        assert_ne!(Some(id), one.random());
        assert_eq!(one.of(&[31; 32]), "A-ZZZZZZZZZZZZ");
        assert_eq!(one.of(&[32; 12]), "A-000000000000");
        for none in ["", "A-", "A-00000000000", "A-0000000000000", "A-00000000000u", "000000000000"]
        {
            assert!(!one.is_of(none), "{none}");
        }
    }
}
