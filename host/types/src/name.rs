//! The names under which tools are offered.
//!
//! Inside, a name is a plugin and a tool; it is rendered once, when plugins are put together, in the
//! style that the operator chose. Model providers accept `^[A-Za-z0-9_-]{1,64}$` and no more; that
//! is what comes out, but for the one style that is made for people.

use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt;

/// The longest rendered name that every model provider takes.
const MAX_LENGTH: usize = 64;

/// The longest name of a tool in MCP.
const MAX_MCP_LENGTH: usize = 128;

/// How names are rendered: `style` under `[names]` of a configuration.
///
/// In the default style, names use at most 64 characters of `A-Z a-z 0-9 _ -`, which every model accepts. Other characters
/// become `_`, and a changed or shortened name ends with eight digits of the original's SHA-256, so that
/// names stay unique.
///
/// ```
/// use tenon_types::name::ToolNameStyle;
///
/// let name = |style: ToolNameStyle| style.render("notes", "notes", "read").to_string();
/// assert_eq!(name(ToolNameStyle::ServerTool), "notes__read");
/// assert_eq!(name(ToolNameStyle::NamespaceTool), "notes::read");
/// assert_eq!(name(ToolNameStyle::ExtIdTool), "ext_notes_read");
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum ToolNameStyle {
    /// `namespace__tool`, where the namespace is the plugin's id if its manifest gives no other.
    #[default]
    #[serde(rename = "server__tool")]
    ServerTool,
    /// `namespace::tool`. It may have dots, and twice the length: not every model provider takes it.
    #[serde(rename = "namespace::tool")]
    NamespaceTool,
    /// `ext_ID_tool`, whatever the namespace.
    #[serde(rename = "ext_id_tool")]
    ExtIdTool,
}

/// The rendered name of a plugin's tool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolName(String);

impl ToolNameStyle {
    /// Renders the name of a tool of a plugin.
    pub fn render(self, id: &str, namespace: &str, tool: &str) -> ToolName {
        let original = format!("{}{tool}", self.prefix(id, namespace));
        let (rendered, longest) = match self {
            Self::ServerTool | Self::ExtIdTool => (held(&original, ""), MAX_LENGTH),
            Self::NamespaceTool => {
                (format!("{}::{}", held(namespace, ""), held(tool, ".")), MAX_MCP_LENGTH)
            }
        };
        ToolName::of(rendered, &original, longest)
    }

    /// Returns the prefix of all rendered names of a plugin's tools.
    pub fn rendered_prefix(self, id: &str, namespace: &str) -> String {
        let ToolName(mut name) = self.render(id, namespace, "");
        // Of a name that is not its original's, the last part is the original's digest.
        let prefix = self.prefix(id, namespace);
        if name != prefix {
            let shared = name.bytes().zip(prefix.bytes()).take_while(|(a, b)| a == b).count();
            name.truncate(shared);
        }
        name
    }

    /// Returns the prefix of a plugin's tool names before shortening.
    pub fn prefix(self, id: &str, namespace: &str) -> String {
        match self {
            Self::ServerTool => format!("{namespace}__"),
            Self::NamespaceTool => format!("{namespace}::"),
            Self::ExtIdTool => format!("ext_{id}_"),
        }
    }
}

/// Replaces characters that a name cannot have by `_`.
fn held(text: &str, others: &str) -> String {
    let is_held = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c) || others.contains(c);
    text.chars().map(|c| if is_held(c) { c } else { '_' }).collect()
}

impl ToolName {
    /// Renders a name in the default style.
    pub fn new(plugin: &str, tool: &str) -> Self {
        ToolNameStyle::default().render(plugin, plugin, tool)
    }

    /// Returns the name of a host tool that exists once for all plugins.
    pub fn shared(name: &str) -> Self {
        Self(name.to_string())
    }

    fn of(mut rendered: String, original: &str, longest: usize) -> Self {
        if rendered != original || rendered.len() > longest {
            let digest = Sha256::digest(original);
            let suffix = hex::encode(&digest[..4]);
            rendered.truncate(longest - suffix.len() - 1);
            rendered = format!("{rendered}_{suffix}");
        }
        Self(rendered)
    }

    /// Returns the rendered name.
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

/// The longest name that is compared with others, in bytes. It may come from anybody, and comparing takes as long as both
/// lengths multiplied.
const MAX_COMPARED_BYTES: usize = 256;

/// Returns the known name closest to this one: ignoring case, at most a third of the characters differ, and
/// never all. A name of more than 256 bytes is close to none.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let is_compared = |name: &str| name.len() <= MAX_COMPARED_BYTES;
    if !is_compared(name) {
        return None;
    }
    let name = name.to_lowercase();
    let length = name.chars().count();
    let most = length.div_ceil(3).min(length.saturating_sub(1));
    let nearest = known
        .filter(|known| is_compared(known))
        .map(|known| (strsim::levenshtein(&name, &known.to_lowercase()), known))
        .min();
    nearest.filter(|(distance, _)| *distance <= most).map(|(_, known)| known)
}

/// Whether names differ by one character, or by two neighbours that are swapped, which is a slip of who wrote it.
pub fn is_slip(name: &str, known: &str) -> bool {
    strsim::osa_distance(name, known) == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(plugin: &str, tool: &str, expected: &str) {
        assert_eq!(ToolName::new(plugin, tool).as_str(), expected);
    }

    // MCP.md: E3
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
            assert!((1..=MAX_LENGTH).contains(&name.as_str().len()), "{name}");
            assert!(name.as_str().chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)));
        }
    }

    #[test]
    fn every_style_has_its_form() {
        let check = |style: ToolNameStyle, tool: &str, expected: &str| {
            assert_eq!(style.render("my-id", "ns", tool).as_str(), expected);
        };
        check(ToolNameStyle::NamespaceTool, "get.weather", "ns::get.weather");
        check(ToolNameStyle::NamespaceTool, "a::b", "ns::a__b_d43374b1");
        check(ToolNameStyle::ExtIdTool, "count", "ext_my-id_count");
        check(ToolNameStyle::ExtIdTool, "get.weather", "ext_my-id_get_weather_e65c56a9");
        let long = "x".repeat(200);
        let length = |style: ToolNameStyle| style.render("i", "n", &long).as_str().len();
        assert_eq!(
            (length(ToolNameStyle::ExtIdTool), length(ToolNameStyle::NamespaceTool)),
            (64, 128)
        );
    }

    // MCP.md: E3
    #[test]
    fn two_originals_have_two_names() {
        assert_ne!(ToolName::new("s", "a.b"), ToolName::new("s", "a_b"));
        let long = "x".repeat(100);
        assert_ne!(ToolName::new(&long, "a"), ToolName::new(&long, "b"));
    }

    #[test]
    fn a_name_is_cut_only_where_it_has_to_be() {
        let fits = "x".repeat(MAX_LENGTH - "s__".len());
        check("s", &fits, &format!("s__{fits}"));
        let name = ToolName::new("s", &format!("{fits}x"));
        let kept = &fits[..MAX_LENGTH - "s__".len() - "_01234567".len()];
        assert_eq!(name.as_str().len(), MAX_LENGTH);
        assert!(name.as_str().starts_with(&format!("s__{kept}_")), "{name}");
        assert_eq!(name.to_string(), name.as_str());
        let borrowed: &str = std::borrow::Borrow::borrow(&name);
        assert_eq!(borrowed, name.as_str());
        assert_eq!(ToolName::shared("a.b").as_str(), "a.b");
    }

    #[test]
    fn the_prefix_of_a_plugin_is_what_the_names_of_its_tools_share() {
        let check = |style: ToolNameStyle, namespace: &str, expected: &str| {
            assert_eq!(style.rendered_prefix("i", namespace), expected);
            for tool in ["a", "a.b", "日本"] {
                let name = style.render("i", namespace, tool);
                assert!(name.as_str().starts_with(expected), "{name} of {namespace}");
            }
        };
        check(ToolNameStyle::ServerTool, "ns", "ns__");
        check(ToolNameStyle::ServerTool, "n.s", "n");
        check(
            ToolNameStyle::ServerTool,
            &"x".repeat(70),
            &"x".repeat(MAX_LENGTH - "_01234567".len()),
        );
        check(ToolNameStyle::NamespaceTool, "ns", "ns::");
        check(ToolNameStyle::ExtIdTool, "n.s", "ext_i_");
    }

    #[test]
    fn what_may_have_been_meant_is_near() {
        let check = |name: &str, known: &[&str], expected: Option<&str>| {
            assert_eq!(nearest(name, known.iter().copied()), expected, "{name}");
        };
        check("notez", &["other", "notes", "nodes"], Some("notes"));
        check("notez", &["nodex"], Some("nodex"));
        check("notez", &["nadex"], None);
        check("abc", &["abd"], Some("abd"));
        check("abc", &["axd"], None);
        check("", &["a"], None);
        check("", &[""], Some(""));
        check("a", &[], None);
        // What is longer than any name is not compared: it would take as long as both lengths multiplied.
        let [longest, longer, endless] = [256, 257, 1 << 20].map(|length| "a".repeat(length));
        check(&longest[1..], &[&longest, &longer], Some(&longest));
        check(&longest, &[&longer, &endless], None);
        check(&longer, &[&longest], None);
        check(&endless, &[&longest, &endless], None);
    }
}
