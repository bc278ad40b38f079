//! Profiles: what of the platform some clients are offered, and under which names.

use std::num::NonZeroU32;
use std::sync::Arc;
use tenon_host::types::text::fits;

use super::ToolMode;
use crate::seal::sha256_hex;

/// What of the platform a client is offered, and under which names. The default offers all, under names that begin
/// with their plugins'.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// What it is called: in the path of a URL, and of a token.
    pub name: String,
    /// The tools, by the names that clients have for them. In a pattern `*` stands for any text. `None` is all.
    pub tools: Option<Vec<String>>,
    /// The tools that a token is good for, where it is not for all of the profile's: by their full names, which begin with
    /// those of their plugins.
    pub token_tools: Option<Vec<String>>,
    /// The resources, by patterns of their URIs. `None` is all.
    pub resources: Option<Vec<String>>,
    /// The prompts, by patterns of the names that clients have for them. `None` is all.
    pub prompts: Option<Vec<String>>,
    /// Whether the names of tools and prompts begin with those of their plugins. Without that, of two with one name
    /// the first is offered, in the order of plugins.
    pub prefix: bool,
    /// How often in a minute one client may call each tool. `None` is as often as it likes.
    pub calls_per_minute: Option<NonZeroU32>,
    /// How the tools are offered: all of them, or found by words.
    pub mode: ToolMode,
}

/// Who sends requests, and what that client is offered.
#[derive(Clone)]
pub(crate) struct Peer {
    /// Names the client's credential; nothing where there is none to tell clients by.
    pub(crate) principal: Arc<str>,
    /// The credential was asked for. Others call themselves as they like.
    pub(crate) is_known: bool,
    /// What rules of the operator and approvals of calls call the client, where its credential says who it is.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) profile: Arc<Profile>,
}

impl Default for Profile {
    fn default() -> Self {
        Self {
            name: "default".into(),
            tools: None,
            token_tools: None,
            resources: None,
            prompts: None,
            prefix: true,
            calls_per_minute: None,
            mode: ToolMode::All,
        }
    }
}

fn is_among(patterns: &Option<Vec<String>>, text: &str) -> bool {
    patterns.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| fits(pattern, text)))
}

impl Profile {
    /// Whether a tool is offered, by the name that clients have for it and by its full name.
    pub(crate) fn offers_tool(&self, name: &str, full_name: &str) -> bool {
        is_among(&self.tools, name) && is_among(&self.token_tools, full_name)
    }

    /// Whether a resource is offered.
    pub(crate) fn offers_resource(&self, uri: &str) -> bool {
        is_among(&self.resources, uri)
    }

    /// Whether a template is offered: its resources may be.
    pub(crate) fn offers_template(&self, template: &str) -> bool {
        let fixed = template.split('{').next().unwrap_or_default();
        let may_be = |pattern: &String| {
            let begins = pattern.split('*').next().unwrap_or_default();
            fits(pattern, template) || begins.starts_with(fixed) || fixed.starts_with(begins)
        };
        self.resources.as_ref().is_none_or(|resources| resources.iter().any(may_be))
    }

    /// Whether a prompt is offered, by the name that clients have for it.
    pub(crate) fn offers_prompt(&self, name: &str) -> bool {
        is_among(&self.prompts, name)
    }

    /// What tells it from all others. Of one that a token narrows it is not the name alone, which rules of the operator know.
    pub(crate) fn key(&self) -> String {
        let Some(tools) = &self.token_tools else { return self.name.clone() };
        let digest = sha256_hex(&[serde_json::json!(tools).to_string().as_bytes()]);
        format!("{}@{digest}", self.name)
    }

    /// Whether it leaves something out, so that others may see more.
    pub(crate) fn is_narrowed(&self) -> bool {
        [&self.tools, &self.token_tools, &self.resources, &self.prompts]
            .into_iter()
            .any(|patterns| patterns.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_offers_what_fits_its_patterns_or_all() {
        let all = Profile::default();
        assert!(
            all.offers_tool("a__b", "a__b") && all.offers_resource("a:b") && all.offers_prompt("p")
        );
        assert!(!all.is_narrowed());
        let some = Profile {
            tools: Some(vec!["files__*".into(), "git__log".into()]),
            resources: Some(vec!["notes://shared/*".into()]),
            prompts: Some(vec![]),
            ..Profile::default()
        };
        assert!(
            some.offers_tool("files__read", "files__read")
                && some.offers_tool("git__log", "git__log")
        );
        assert!(
            !some.offers_tool("git__push", "git__push")
                && !some.offers_tool("xfiles__read", "xfiles__read")
        );
        assert!(some.offers_resource("notes://shared/a") && !some.offers_resource("notes://own/a"));
        assert!(some.offers_template("notes://{folder}/{name}"));
        assert!(some.offers_template("notes://shared/{name}"));
        assert!(!some.offers_template("notes://own/{name}") && !some.offers_template("a:{b}"));
        assert!(!some.offers_prompt("p") && some.is_narrowed());
        let of_token = Profile { token_tools: Some(vec!["git__*".into()]), ..some };
        assert!(
            of_token.offers_tool("git__log", "git__log")
                && !of_token.offers_tool("files__read", "files__read")
        );
        assert!(!of_token.offers_tool("git__push", "git__push"));
        // A tool of another plugin may be called as another one's in full.
        assert!(!of_token.offers_tool("git__log", "other__git__log"));
    }
}
