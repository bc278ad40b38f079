//! The host's own operations on a plugin's resources and prompts, as tools beside the plugin's own:
//! so a model can list and read what is there, and each time is a call like any other.

use serde_json::{Map, Value, json};
use std::sync::LazyLock;

use super::{Budget, prompts, redact, resources};
use crate::bindings::types::{
    CallContext, Content, ContentBlock, ToolAnnotations, ToolDefinition, ToolResult,
};
use crate::register::Offered;
use crate::runtime::{Failure, Plugin};
use crate::secret::Redactor;
use crate::{shown, wire};

/// One of the host's own operations on a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    ListResources,
    ReadResource,
    ListTemplates,
    ListPrompts,
    GetPrompt,
}

/// Those on resources, as tools.
static ON_RESOURCES: LazyLock<Vec<(Operation, Offered)>> = LazyLock::new(|| {
    vec![
        (
            Operation::ListResources,
            tool(
                "list_resources",
                "Lists the resources that can be read here, by their URIs",
                json!({}),
                &[],
                list_of("resources"),
            ),
        ),
        (
            Operation::ReadResource,
            tool(
                "read_resource",
                "Reads a resource by its URI",
                json!({
                    "uri": { "type": "string", "description": "The URI, as it was listed, or made of a template" },
                    "max_bytes": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "How much may be read; what is longer is cut, and says so",
                    },
                    "max_tokens": {
                        "type": "integer",
                        "minimum": 1,
                        "description": "The same in tokens, of which each is taken for four bytes; the smaller of the two holds",
                    },
                }),
                &["uri"],
                None,
            ),
        ),
        (
            Operation::ListTemplates,
            tool(
                "list_resource_templates",
                "Lists the templates (RFC 6570) of the URIs of resources that are not listed one by one",
                json!({}),
                &[],
                list_of("resourceTemplates"),
            ),
        ),
    ]
});

/// Those on prompts, as tools.
static ON_PROMPTS: LazyLock<Vec<(Operation, Offered)>> = LazyLock::new(|| {
    vec![
        (
            Operation::ListPrompts,
            tool(
                "list_prompts",
                "Lists the prompts that are prepared here, with the arguments that they take",
                json!({}),
                &[],
                list_of("prompts"),
            ),
        ),
        (
            Operation::GetPrompt,
            tool(
                "get_prompt",
                "Fills in a prompt and gives its messages",
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
) -> impl Iterator<Item = &'static (Operation, Offered)> {
    let resources = has_resources.then(|| ON_RESOURCES.iter()).into_iter().flatten();
    resources.chain(has_prompts.then(|| ON_PROMPTS.iter()).into_iter().flatten())
}

fn tool(
    name: &str,
    description: &str,
    properties: Value,
    required: &[&str],
    output: Option<Value>,
) -> Offered {
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
    Offered::new(definition).expect("the schemas are our own")
}

fn list_of(member: &str) -> Option<Value> {
    Some(json!({
        "type": "object",
        "properties": { member: { "type": "array", "items": { "type": "object" } } },
        "required": [member],
    }))
}

impl Operation {
    /// Does it for a plugin. The arguments are what the tool's schema takes.
    pub(super) async fn serve(
        self,
        plugin: &dyn Plugin,
        redactor: &Redactor,
        arguments: &Value,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        match self {
            Self::ListResources => {
                let mut listed = resources::all(plugin, context).await?;
                listed.iter_mut().for_each(shown::resource);
                Ok(list("resources", listed.iter().map(wire::listed_resource)))
            }
            Self::ListTemplates => {
                let listed = match resources::all_templates(plugin, context).await {
                    Err(Failure::Unsupported(_)) => Vec::new(),
                    listed => listed?,
                };
                Ok(list("resourceTemplates", listed.iter().map(wire::resource_template)))
            }
            Self::ReadResource => {
                let mut read = plugin.read_resource(text("uri"), context).await?;
                read.iter_mut().for_each(|part| wire::drop_ours(&mut part.extra));
                // The result is masked as any other, but half a secret would not be known for one.
                if let Some(most) = budget(arguments).most() {
                    read.iter_mut().for_each(|part| redact::contents(redactor, part));
                    resources::cut_to(&mut read, most);
                }
                let blocks = read
                    .into_iter()
                    .map(|part| ContentBlock { body: Content::Resource(part), extra: None });
                Ok(ToolResult { content: blocks.collect(), ..empty() })
            }
            Self::ListPrompts => {
                let listed = prompts::all(plugin, context).await?;
                Ok(list("prompts", listed.iter().map(wire::prompt_definition)))
            }
            Self::GetPrompt => {
                let filled_in = arguments["arguments"].as_object().map(pairs).unwrap_or_default();
                let mut prompt = plugin.get_prompt(text("name"), filled_in, context).await?;
                shown::prompt(&mut prompt);
                let form = wire::prompt(&prompt);
                // Who speaks stands before what is said.
                let content = prompt.messages.into_iter().flat_map(|message| {
                    [said(format!("[{}]", wire::role(message.role))), message.content]
                });
                let content = content.collect();
                Ok(ToolResult { content, structured: Some(form.to_string()), ..empty() })
            }
        }
    }
}

/// How much the arguments let be read. A number that is no length bounds nothing.
fn budget(arguments: &Value) -> Budget {
    let most = |name: &str| arguments[name].as_u64().and_then(|most| usize::try_from(most).ok());
    Budget { max_bytes: most("max_bytes"), max_tokens: most("max_tokens") }
}

fn pairs(arguments: &Map<String, Value>) -> Vec<(String, String)> {
    let pair = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_string()));
    arguments.iter().filter_map(pair).collect()
}

/// A listing, as structured content and as the same in text.
fn list(member: &str, items: impl Iterator<Item = Value>) -> ToolResult {
    let form = json!({ member: items.collect::<Vec<Value>>() }).to_string();
    ToolResult { content: vec![said(form.clone())], structured: Some(form), ..empty() }
}

fn said(text: String) -> ContentBlock {
    ContentBlock { body: Content::Text(text), extra: None }
}

fn empty() -> ToolResult {
    ToolResult { content: Vec::new(), structured: None, is_error: false, extra: None }
}
