//! Who a plugin is and what it contributes.

use crate::{HookRegistration, ToolDefinition};

/// Who the plugin is and what it contributes.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// Who the plugin is.
    pub identity: Identity,
    /// The tools; empty for a plugin that has none, like the lists below.
    pub tools: Vec<ToolDefinition>,
    /// The points at which the plugin wants to be asked.
    pub hooks: Vec<HookRegistration>,
    /// The providers of language models.
    pub providers: Vec<ProviderDefinition>,
    /// The evaluation strategies.
    pub evals: Vec<EvalDefinition>,
    /// Whether it has resources to list or read.
    pub resources: bool,
    /// Whether it has prompts to list or get.
    pub prompts: bool,
}

impl Registration {
    /// The registration of a plugin that contributes nothing.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            tools: Vec::new(),
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources: false,
            prompts: false,
        }
    }
}

/// Who a plugin says it is. Names are claims: the host's own identifier for the plugin comes
/// from its manifest or configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Identity {
    /// The name that programs use.
    pub name: String,
    /// A semantic version (semver.org, 2.0.0).
    pub version: String,
    /// One or two sentences for people who choose plugins.
    pub description: String,
    /// What else the plugin says of itself, as one JSON object: `title`, `websiteUrl` and `icons` of MCP.
    pub extra: Option<String>,
}

impl Identity {
    /// An identity with nothing but these.
    pub fn new(
        name: impl Into<String>,
        version: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        Self {
            name: name.into(),
            version: version.into(),
            description: description.into(),
            extra: None,
        }
    }
}

/// A provider of language models.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderDefinition {
    /// Unique in the plugin; [`ModelInfo::provider`](crate::ModelInfo::provider) refers to it.
    pub name: String,
    /// What it is, for people and models.
    pub description: String,
}

/// A strategy that scores outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct EvalDefinition {
    /// Unique in the plugin; evaluations name it.
    pub name: String,
    /// What it is, for people and models.
    pub description: String,
    /// The JSON Schema of the options, where it takes any.
    pub options_schema: Option<String>,
}
