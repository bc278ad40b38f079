//! The host's own operations on a plugin's resources and prompts, by their names.

/// One of the host's own operations on a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum McpOperation {
    /// Lists resources.
    ListResources,
    /// Reads a resource.
    ReadResource,
    /// Lists resource templates.
    ListTemplates,
    /// Lists prompts.
    ListPrompts,
    /// Fills in a prompt.
    GetPrompt,
    /// Subscribes to a resource. No tool does this, or what follows.
    Subscribe,
    /// Ends a subscription.
    Unsubscribe,
    /// Suggests values for an argument.
    Suggest,
}

impl McpOperation {
    /// Those that are tools as well, which a host may have once for all plugins.
    pub const TOOLS: [Self; 5] = [
        Self::ListResources,
        Self::ReadResource,
        Self::ListTemplates,
        Self::ListPrompts,
        Self::GetPrompt,
    ];

    /// The argument that names the plugin, by its id, where a host has these tools once for all plugins.
    pub const PLUGIN_ARGUMENT: &'static str = "plugin";

    /// The operation that is a tool of this name.
    pub fn of_tool(name: &str) -> Option<Self> {
        Self::TOOLS.into_iter().find(|operation| operation.name() == name)
    }

    /// Its name. Those that are tools have it among a plugin's tools.
    pub fn name(self) -> &'static str {
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
    pub fn looked_for(self) -> &'static str {
        match self.is_on_prompts() {
            true => "plugin with prompts",
            false => "plugin with resources",
        }
    }

    /// Whether it is about prompts, and not about resources.
    pub fn is_on_prompts(self) -> bool {
        matches!(self, Self::ListPrompts | Self::GetPrompt)
    }
}
