//! What a call of a run is of. A call that has waited for an approval is not made without one of a plugin that is another by
//! then: whoever was asked has seen the one before.

use serde_json::{Value, json};
use std::sync::Arc;
use tenon_call_approvals::Action;
use tenon_config::call_policy::{CallDecision, CallFacts, ToolCallPolicy};
use tenon_config::pins::McpDefinition;
use tenon_types::{McpOperation, ToolDefinition};

use crate::call::Caller;
use crate::register::operation_tools::with_plugin;
use crate::register::{RegisteredPlugin, Registry};
use crate::runtime::RunCall;

/// How a call names what it is of.
pub(super) struct TargetName {
    /// The tool, where it is of one.
    tool: Option<Arc<str>>,
    /// The plugin, where the call names one.
    plugin: Option<String>,
}

impl TargetName {
    pub(super) fn of(call: &RunCall) -> Self {
        match call {
            RunCall::Operation { plugin, .. } => Self { tool: None, plugin: Some(plugin.clone()) },
            RunCall::Missing { .. } => Self { tool: None, plugin: None },
            RunCall::Tool { name, arguments } => {
                let plugin = arguments.get(McpOperation::PLUGIN_ARGUMENT).and_then(Value::as_str);
                Self { tool: Some(name.clone()), plugin: plugin.map(str::to_string) }
            }
        }
    }

    /// What is called by it here, if that is there.
    pub(super) fn find<'a>(&self, registry: &'a Registry) -> Option<CallTarget<'a>> {
        let called = self.tool.as_deref().and_then(|name| registry.called(name));
        let (plugin, definition) = match called {
            Some(called) => (called.plugin, Some(&*called.tool.definition)),
            // An operation, or a tool that is there once for all plugins.
            None => (registry.plugin(self.plugin.as_deref()?)?, None),
        };
        Some(CallTarget { registry, plugin, definition })
    }
}

/// The plugin that a call is of, and the definition of the tool.
pub(super) struct CallTarget<'a> {
    registry: &'a Registry,
    plugin: &'a Arc<RegisteredPlugin>,
    /// Nothing where it is the host's.
    definition: Option<&'a ToolDefinition>,
}

impl CallTarget<'_> {
    /// The digest of all that an approval of this call is about, besides whose it is and its arguments: the plugin's code, its
    /// settings and grants, and the definition of the tool.
    pub(super) fn digest(&self, call: &str) -> String {
        let loaded = self.plugin.loaded();
        let definition = self.definition.map(|of| McpDefinition::of_tool(of).sha256().to_string());
        let action = Action {
            tool: call.to_string(),
            plugin: loaded.id().to_string(),
            code: loaded.code_digest(),
            definition: definition.unwrap_or_default(),
            principal: None,
            arguments: Value::Null,
        };
        action.digest().to_string()
    }

    /// Whether the call would be made here without anybody being asked, by the arguments that the script gives.
    pub(super) fn is_made_unasked(&self, what: &RunCall, caller: &Caller) -> bool {
        let decision = match what {
            RunCall::Tool { name, arguments } => {
                let explained = self.registry.explain_call(name, &facts(arguments, caller));
                explained.map(|explained| explained.verdict.decision)
            }
            RunCall::Operation { name, argument, .. } => {
                let (operation, arguments) = match *name {
                    "resources/list" => (McpOperation::ListResources, json!({})),
                    "resources/read" => (McpOperation::ReadResource, json!({ "uri": argument })),
                    "prompts/list" => (McpOperation::ListPrompts, json!({})),
                    _ => (McpOperation::GetPrompt, argument.clone()),
                };
                let arguments = with_plugin(&arguments, self.plugin.id());
                self.registry.operation(self.plugin, operation).map(|(settings, _)| {
                    let decide = |policy: Arc<ToolCallPolicy>| {
                        policy.decide(&facts(&arguments, caller)).decision
                    };
                    settings.policy.map_or(CallDecision::Allow, decide)
                })
            }
            // What is not there is not made.
            RunCall::Missing { .. } => return false,
        };
        // What may not be called is not made.
        matches!(decision, Ok(CallDecision::Allow))
    }
}

fn facts<'a>(arguments: &'a Value, caller: &'a Caller) -> CallFacts<'a> {
    let (principal, profile) = (caller.principal.as_deref(), caller.profile.as_deref());
    CallFacts { arguments, principal, profile }
}
