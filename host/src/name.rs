//! The names under which tools are offered.
//!
//! Inside, a name is a plugin and a tool; it is rendered once, when the tool is registered. Model
//! providers accept `^[A-Za-z0-9_-]{1,64}$` and no more, so that is what comes out.

use sha2::{Digest, Sha256};
use std::fmt;

/// The longest rendered name.
const LONGEST: usize = 64;

/// The rendered name of a plugin's tool: `plugin__tool`.
///
/// What a name cannot hold becomes `_`. A name that was changed or cut for that ends in eight
/// hexadecimal digits of its original's SHA-256, so that two originals have two names.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(String);

impl ToolName {
    /// Renders a name.
    pub fn new(plugin: &str, tool: &str) -> Self {
        let original = format!("{plugin}__{tool}");
        let mut rendered: String = original
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' })
            .collect();
        if rendered != original || rendered.len() > LONGEST {
            let digest = Sha256::digest(&original);
            let suffix: String = digest[..4].iter().map(|byte| format!("{byte:02x}")).collect();
            rendered.truncate(LONGEST - suffix.len() - 1);
            rendered = format!("{rendered}_{suffix}");
        }
        Self(rendered)
    }

    /// The rendered form.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for ToolName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// The one of these names that may have been meant by another.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known.map(|known| (distance(name, known), known)).min();
    nearest.filter(|(distance, _)| *distance <= name.len().div_ceil(3)).map(|(_, known)| known)
}

/// The Levenshtein distance of two texts, in characters.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plugin: &str, tool: &str, expected: &str) {
        assert_eq!(ToolName::new(plugin, tool).as_str(), expected);
    }

    #[test]
    fn rendering() {
        check("text-tools", "count", "text-tools__count");
        check("s", "get.weather", "s__get_weather_f6fa7b67");
        check("s", "日本", "s_____e63dfd4f");
    }

    #[test]
    fn whatever_comes_in_the_form_holds() {
        let long = "x".repeat(200);
        for (plugin, tool) in [("a", &*long), (&*long, "b"), ("ä b", "c/d"), ("", "")] {
            let name = ToolName::new(plugin, tool);
            assert!((1..=LONGEST).contains(&name.as_str().len()), "{name}");
            assert!(name.as_str().chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
        }
    }

    #[test]
    fn two_originals_have_two_names() {
        assert_ne!(ToolName::new("s", "a.b"), ToolName::new("s", "a_b"));
        let long = "x".repeat(100);
        assert_ne!(ToolName::new(&long, "a"), ToolName::new(&long, "b"));
    }
}
