//! Which plugins an operator lets in.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

use crate::call_rule::DefaultCallMode;
use crate::limits::LimitsTable;
use crate::pins::PinMode;
use crate::tool_filter::ToolFilter;

/// `[policy]` of a configuration. Where there are several configurations, a plugin must pass the
/// policies of all, so that a project cannot loosen what its user set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policy {
    /// What plugins may do of which nothing else is said.
    pub profile: Profile,
    /// The ids of plugins that may do more than the profile lets them.
    pub allow: Vec<String>,
    /// The ids of plugins that are refused, whatever else is said.
    pub deny: Vec<String>,
    /// Whether only plugins are let in that a lock file binds, those that are allowed or enabled by
    /// their ids, and those that come with the host.
    pub locked: bool,
    /// What becomes of calls of which no rule under `[tools]` says anything.
    pub calls: Option<DefaultCallMode>,
    /// Whether MCP servers are confined.
    pub confine: Option<ConfinePolicy>,
    /// What holds for single plugins, by their ids.
    pub plugins: BTreeMap<String, PluginPolicy>,
}

/// Whether MCP servers that are children are confined to what they are granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfinePolicy {
    /// None is.
    Off,
    /// Those are that have capabilities, where this system can confine them.
    #[default]
    Preferred,
    /// All are, and others are refused.
    Required,
}

/// Whether a server that is a child is to reach nothing but what it is granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ConfinementMode {
    /// It reaches whatever its user can: its entry says nothing of capabilities, or the policy wants no confinement.
    #[default]
    Unconfined,
    /// It does where this system can confine it.
    Preferred,
    /// It does, or is not started.
    Required,
}

/// What holds for a single plugin.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginPolicy {
    /// Whether it is let in; where nothing is said, the rest of the policy decides.
    pub enabled: Option<bool>,
    /// Its limits, in place of those of all plugins; its manifest cannot ask for more.
    pub limits: LimitsTable,
    /// The only tools of it that are wanted, by its own names for them; `*` stands for anything.
    pub enabled_tools: Option<Vec<String>>,
    /// Those that are not.
    pub disabled_tools: Vec<String>,
    /// What becomes of what an MCP server says that is not what it was when it was first seen; it goes
    /// before `pins` of the server's own entry.
    pub pins: Option<PinMode>,
    /// Whether what an MCP server says of its tools' effects is believed.
    pub believe_annotations: Option<bool>,
}

impl PluginPolicy {
    /// Which of the plugin's tools are wanted.
    pub fn tools(&self) -> ToolFilter {
        let Self { enabled_tools, disabled_tools, .. } = self;
        ToolFilter { enabled: enabled_tools.clone(), disabled: disabled_tools.clone() }
    }
}

/// What plugins may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profile {
    /// Compute, and nothing else.
    Minimal,
    /// Compute, and request the host's messaging and memory services.
    Messaging,
    /// Have processes of their own, and request any capability.
    #[default]
    Full,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minimal => "minimal",
            Self::Messaging => "messaging",
            Self::Full => "full",
        })
    }
}

/// What a policy has against a plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyRefusal {
    /// It is on the list.
    #[error("the policy denies it")]
    Denied,
    /// Its own entry says so.
    #[error("the policy disables it")]
    Disabled,
    /// No lock file has it.
    #[error("the policy allows only locked plugins, and no lock file has it")]
    NotLocked,
    /// It is an MCP server without capabilities.
    #[error("the policy requires that servers are confined, and it has no `capabilities`")]
    Unconfined,
    /// It does more than the profile lets it, and is not allowed to.
    #[error("it has side effects ({effect}), which the profile `{profile}` does not allow")]
    Profile {
        /// The profile.
        profile: Profile,
        /// One thing that it does.
        effect: String,
    },
}

impl Policy {
    /// What the policy has against a plugin of this id, with these effects: names of capabilities
    /// that it requests, or `process`. Plugins that are part of the host need no leave for theirs,
    /// and no lock file.
    pub fn objection(
        &self,
        id: &str,
        effects: &[&str],
        bundled: bool,
        bound: bool,
    ) -> Option<PolicyRefusal> {
        let listed = |ids: &[String]| ids.iter().any(|listed| listed == id);
        if listed(&self.deny) {
            return Some(PolicyRefusal::Denied);
        }
        match self.plugins.get(id).and_then(|plugin| plugin.enabled) {
            Some(false) => return Some(PolicyRefusal::Disabled),
            Some(true) => return None,
            None => {}
        }
        if bundled || listed(&self.allow) {
            return None;
        }
        if self.locked && !bound {
            return Some(PolicyRefusal::NotLocked);
        }
        let beyond = |effect: &&&str| match self.profile {
            Profile::Minimal => true,
            Profile::Messaging => !matches!(**effect, "messaging" | "memory"),
            Profile::Full => false,
        };
        let effect = effects.iter().find(beyond)?;
        Some(PolicyRefusal::Profile { profile: self.profile, effect: effect.to_string() })
    }
}

impl Policy {
    /// What the policy has against an MCP server that is not confined.
    pub fn confinement_objection(&self, is_confined: bool) -> Option<PolicyRefusal> {
        let is_required = self.confine == Some(ConfinePolicy::Required);
        (is_required && !is_confined).then_some(PolicyRefusal::Unconfined)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows() {
        let check = |policy: &str, effects: &[&str], bundled: bool, expected: Option<&str>| {
            let policy: Policy = toml::from_str(policy).expect("the policy is read");
            let objection = policy.objection("p", effects, bundled, false).map(|o| o.to_string());
            assert_eq!(objection.as_deref(), expected, "{policy:?}");
        };
        let no_lock = Some("the policy allows only locked plugins, and no lock file has it");
        check("locked = true", &[], false, no_lock);
        check("locked = true", &[], true, None);
        check("locked = true\nallow = [\"p\"]", &[], false, None);
        let profile = |profile, effect| {
            format!("it has side effects ({effect}), which the profile `{profile}` does not allow")
        };
        check("", &["process", "network"], false, None);
        check("deny = [\"p\"]\nplugins.p.enabled = true", &[], true, Some("the policy denies it"));
        check("plugins.p.enabled = false", &[], true, Some("the policy disables it"));
        check("profile = \"minimal\"", &[], false, None);
        let minimal = profile("minimal", "memory");
        check("profile = \"minimal\"", &["memory"], false, Some(&minimal));
        check("profile = \"minimal\"", &["memory"], true, None);
        check("profile = \"minimal\"\nallow = [\"p\"]", &["process"], false, None);
        check("profile = \"minimal\"\nplugins.p.enabled = true", &["process"], false, None);
        check("profile = \"messaging\"", &["messaging", "memory"], false, None);
        let messaging = profile("messaging", "network");
        check("profile = \"messaging\"", &["messaging", "network"], false, Some(&messaging));
    }
}
