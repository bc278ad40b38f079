//! The host's own operations on a plugin's resources and prompts, by their names.

use super::CallKind;

/// One of the host's own operations on a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    ListResources,
    ReadResource,
    ListTemplates,
    ListPrompts,
    GetPrompt,
    /// No tool does what follows.
    Subscribe,
    Unsubscribe,
    Suggest,
}

impl Operation {
    /// Those that are tools as well, which a host may have once for all plugins.
    pub(crate) const TOOLS: [Self; 5] = [
        Self::ListResources,
        Self::ReadResource,
        Self::ListTemplates,
        Self::ListPrompts,
        Self::GetPrompt,
    ];

    /// The operation that is a tool of this name.
    pub(crate) fn of_tool(name: &str) -> Option<Self> {
        Self::TOOLS.into_iter().find(|operation| operation.name() == name)
    }

    /// Its name. Those that are tools have it among a plugin's tools.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListTemplates => "list_resource_templates",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
            Self::Subscribe => "subscribe_resource",
            Self::Unsubscribe => "unsubscribe_resource",
            Self::Suggest => "suggest",
        }
    }

    /// What is looked for where there is no plugin for it.
    pub(crate) fn looked_for(self) -> &'static str {
        match self.is_on_prompts() {
            true => "plugin with prompts",
            false => "plugin with resources",
        }
    }

    /// Whether it is about prompts, and not about resources.
    pub(crate) fn is_on_prompts(self) -> bool {
        matches!(self, Self::ListPrompts | Self::GetPrompt)
    }

    pub(crate) fn kind(self) -> CallKind {
        match self {
            Self::ListResources => CallKind::ListResources,
            Self::ReadResource => CallKind::ReadResource,
            Self::ListTemplates => CallKind::ListResourceTemplates,
            Self::ListPrompts => CallKind::ListPrompts,
            Self::GetPrompt => CallKind::GetPrompt,
            Self::Subscribe => CallKind::SubscribeResource,
            Self::Unsubscribe => CallKind::UnsubscribeResource,
            Self::Suggest => CallKind::Suggest,
        }
    }
}
