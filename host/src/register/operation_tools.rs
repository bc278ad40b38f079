//! The host's own operations on a plugin's resources and prompts, as tools beside the plugin's own: a model
//! can list and read what is there. How they are done is in [`crate::invoke::mcp_operations`].

use serde_json::{Value, json};
use std::sync::{Arc, LazyLock};
use tenon_types::{McpOperation, ToolAnnotations, ToolDefinition};

use super::DeclaredTool;

/// Those on resources, as tools.
static ON_RESOURCES: LazyLock<Vec<(McpOperation, DeclaredTool)>> = LazyLock::new(|| {
    vec![
        (
            McpOperation::ListResources,
            tool(
                "list_resources",
                "Lists the resources of a plugin, by their URIs",
                json!({}),
                &[],
                list_of("resources"),
            ),
        ),
        (
            McpOperation::ReadResource,
            tool(
                "read_resource",
                "Reads a resource of a plugin by its URI",
                json!({
                    "uri": { "type": "string", "description": "The URI, as it was listed, or made of a template" },
                    "maxBytes": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The maximum number of bytes to read; longer content is truncated",
                    },
                    "maxTokens": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The same limit in tokens, counted as four bytes each; the smaller limit applies",
                    },
                }),
                &["uri"],
                None,
            ),
        ),
        (
            McpOperation::ListTemplates,
            tool(
                "list_resource_templates",
                "Lists the templates (RFC 6570) of the URIs of a plugin's resources that are not listed one by one",
                json!({}),
                &[],
                list_of("resourceTemplates"),
            ),
        ),
    ]
});

/// Those on prompts, as tools.
static ON_PROMPTS: LazyLock<Vec<(McpOperation, DeclaredTool)>> = LazyLock::new(|| {
    vec![
        (
            McpOperation::ListPrompts,
            tool(
                "list_prompts",
                "Lists the prompts of a plugin, with the arguments that they take",
                json!({}),
                &[],
                list_of("prompts"),
            ),
        ),
        (
            McpOperation::GetPrompt,
            tool(
                "get_prompt",
                "Fills in a prompt of a plugin and returns its messages",
                json!({
                    "name": { "type": "string", "description": "The prompt, as it was listed" },
                    "arguments": {
                        "type": "object",
                        "additionalProperties": { "type": "string" },
                        "description": "What it is filled in with, by the names of its arguments",
                    },
                }),
                &["name"],
                list_of("messages"),
            ),
        ),
    ]
});

/// The operations on what a plugin has, as tools.
pub(crate) fn on(
    has_resources: bool,
    has_prompts: bool,
) -> impl Iterator<Item = &'static (McpOperation, DeclaredTool)> {
    let resources = has_resources.then(|| ON_RESOURCES.iter()).into_iter().flatten();
    resources.chain(has_prompts.then(|| ON_PROMPTS.iter()).into_iter().flatten())
}

/// The arguments of an operation as rules see them: they name the plugin, whichever of the tools was called.
pub(crate) fn with_plugin(arguments: &Value, plugin: &str) -> Value {
    let mut arguments = arguments.clone();
    if let Value::Object(members) = &mut arguments {
        members.insert(McpOperation::PLUGIN_ARGUMENT.into(), plugin.into());
    }
    arguments
}

/// An operation as a tool that does it for any of these plugins.
pub(crate) fn shared(operation: McpOperation, ids: &[Arc<str>]) -> DeclaredTool {
    let own = as_tool(operation).expect("operations that are shared are tools");
    let definition = &own.definition;
    let mut schema: Value =
        serde_json::from_str(&definition.input_schema).expect("the host's own schemas are JSON");
    let ids: Vec<&str> = ids.iter().map(|id| &**id).collect();
    schema["properties"][McpOperation::PLUGIN_ARGUMENT] =
        json!({ "type": "string", "enum": ids, "description": "The plugin, by its id" });
    if let Some(required) = schema["required"].as_array_mut() {
        required.insert(0, McpOperation::PLUGIN_ARGUMENT.into());
    }
    DeclaredTool::own(ToolDefinition {
        input_schema: schema.to_string(),
        ..ToolDefinition::clone(definition)
    })
}

fn tool(
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    output: Option<Value>,
) -> DeclaredTool {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let definition = ToolDefinition {
        output_schema: output.map(|schema| schema.to_string()),
        annotations: ToolAnnotations {
            read_only: Some(true),
            destructive: None,
            idempotent: Some(true),
            open_world: None,
        },
        ..ToolDefinition::new(name, description, &schema)
    };
    DeclaredTool::own(definition)
}

fn list_of(member: &str) -> Option<Value> {
    Some(json!({
        "type": "object",
        "properties": { member: { "type": "array", "items": { "type": "object" } } },
        "required": [member],
    }))
}

/// What an operation is as a tool, if it is one.
pub(crate) fn as_tool(operation: McpOperation) -> Option<&'static DeclaredTool> {
    on(true, true).find(|(other, _)| *other == operation).map(|(_, declared)| declared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_that_are_shared_are_known_by_their_names() {
        let operations: Vec<McpOperation> =
            on(true, true).map(|(operation, _)| *operation).collect();
        assert_eq!(operations, McpOperation::TOOLS);
        let names: Vec<&str> = on(true, true).map(|(_, tool)| &*tool.definition.name).collect();
        assert_eq!(names, McpOperation::TOOLS.map(McpOperation::name));
    }
}
