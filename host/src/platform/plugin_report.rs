//! How plugins fare, for people and for programs.

use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use tenon_config::discover::{PluginKind, SkipReason, SkippedEntry};
use tenon_config::grant::CapabilityStatus;
use tenon_config::limits::Limits;

use crate::call::Failure;
use crate::capability::server::ServerReport;
use crate::register::RegisteredPlugin;

/// The state of one plugin, and why.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PluginReport {
    /// The plugin's id.
    pub plugin: String,
    /// Its kind.
    pub kind: PluginKind,
    /// Whether it is there.
    pub state: PluginState,
    /// The name and version that it gives itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it says it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many tools it has.
    pub tools: usize,
    /// How many hook points it handles.
    pub hooks: usize,
    /// How many strategies it has.
    pub evals: usize,
    /// How many language-model providers it has.
    pub providers: usize,
    /// How many skills it carries.
    pub skills: usize,
    /// How much it was granted: the values of all capabilities together.
    pub capabilities: usize,
    /// What it requested: values by the names of capabilities.
    pub requested: BTreeMap<String, Vec<String>>,
    /// What of it was granted.
    pub granted: BTreeMap<String, Vec<String>>,
    /// How much it may use, where it could be loaded.
    pub limits: Option<Limits>,
    /// How what a component imports stands to that.
    pub needs: Vec<CapabilityStatus>,
    /// How its MCP server fares, for one that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerReport>,
    /// Why it is not there, or what is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether only an approval is missing.
    #[serde(skip)]
    pub awaits_approval: bool,
    /// Why it did not register, and whose fault it is.
    #[serde(skip)]
    pub failure: Option<Failure>,
}

/// Whether a plugin is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PluginState {
    /// It is registered.
    Ready,
    /// It was not admitted, or not loaded for a safety reason.
    Refused,
    /// The operator's policy disables it on purpose.
    Denied,
    /// It failed to load or to register.
    Failed,
    /// Discovery left it out: [`SkipReason::Nested`].
    Nested,
    /// Discovery left it out: [`SkipReason::Shadowed`].
    Shadowed,
    /// Discovery left it out: [`SkipReason::Disabled`].
    Disabled,
    /// Discovery left it out: [`SkipReason::NotAllowed`].
    NotAllowed,
    /// Discovery left it out: [`SkipReason::OwnServer`].
    OwnServer,
}

impl PluginState {
    /// Whether this is a failure: the plugin was wanted and is not loaded.
    pub fn is_failure(self) -> bool {
        matches!(self, Self::Refused | Self::Failed)
    }
}

impl fmt::Display for PluginState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ready => "ok",
            Self::Refused => "refused",
            Self::Denied => "denied",
            Self::Failed => "failed",
            Self::Nested => "nested",
            Self::Shadowed => "shadowed",
            Self::Disabled => "disabled",
            Self::NotAllowed => "not allowed",
            Self::OwnServer => "own server",
        })
    }
}

impl From<&SkipReason> for PluginState {
    fn from(reason: &SkipReason) -> Self {
        match reason {
            SkipReason::Nested { .. } => Self::Nested,
            SkipReason::Shadowed { .. } => Self::Shadowed,
            SkipReason::Disabled { .. } => Self::Disabled,
            SkipReason::NotAllowed { .. } => Self::NotAllowed,
            SkipReason::OwnServer => Self::OwnServer,
        }
    }
}

/// The report of a plugin that is not there.
pub(super) fn gone(
    id: &str,
    kind: PluginKind,
    state: PluginState,
    detail: String,
    remedy: Option<String>,
) -> PluginReport {
    PluginReport {
        plugin: id.to_string(),
        kind,
        state,
        version: None,
        description: None,
        tools: 0,
        hooks: 0,
        evals: 0,
        providers: 0,
        skills: 0,
        capabilities: 0,
        requested: BTreeMap::new(),
        granted: BTreeMap::new(),
        limits: None,
        needs: Vec::new(),
        server: None,
        detail: Some(detail),
        remedy,
        awaits_approval: false,
        failure: None,
    }
}

/// The report of a plugin that discovery left out.
pub(super) fn left_out(left_out: &SkippedEntry) -> PluginReport {
    let SkippedEntry { id, kind, reason, .. } = left_out;
    gone(id, *kind, reason.into(), reason.to_string(), None)
}

/// The report of a plugin that is there.
pub(super) fn there(registered: &RegisteredPlugin) -> PluginReport {
    let loaded = registered.loaded();
    let identity = registered.identity();
    let needs = loaded.needs();
    let problems = registered.diagnostics().iter().map(|diagnostic| diagnostic.problem.clone());
    let problems: Vec<String> =
        problems.chain(needs.iter().filter_map(CapabilityStatus::problem)).collect();
    PluginReport {
        plugin: loaded.id().to_string(),
        kind: loaded.kind(),
        state: PluginState::Ready,
        // A script without a manifest has none.
        version: Some(identity.version.clone()).filter(|version| version != "0.0.0"),
        description: Some(identity.description.clone()),
        tools: registered.tools().len(),
        hooks: registered.hooks().len(),
        evals: registered.evals().len(),
        providers: registered.providers().len(),
        skills: registered.skills().len(),
        capabilities: loaded.grants().texts().values().map(Vec::len).sum(),
        requested: loaded.requested().texts(),
        granted: loaded.grants().texts(),
        limits: Some(loaded.limits().clone()),
        needs,
        server: loaded.supervised().map(|server| server.report()),
        detail: (!problems.is_empty()).then(|| problems.join("; ")),
        remedy: None,
        awaits_approval: false,
        failure: None,
    }
}
