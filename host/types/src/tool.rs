//! Tools and what they answer.

use crate::{Content, ContentBlock};

/// A tool that a plugin offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The name by which the plugin receives calls of it: unique in the plugin, 1 to 128
    /// characters. The host drops a definition that breaks this and says so.
    pub name: String,
    /// The name that people see.
    pub title: Option<String>,
    /// What the tool does and when to use it, for the model.
    pub description: String,
    /// The JSON Schema of the arguments: an object whose `type` is `"object"`. Dialect 2020-12
    /// unless `$schema` says otherwise.
    pub input_schema: String,
    /// The JSON Schema of [`ToolResult::structured`], where the tool has one.
    pub output_schema: Option<String>,
    /// Hints about the tool's behaviour.
    pub annotations: ToolAnnotations,
    /// The capabilities that this tool cannot work without, in the words of the manifest
    /// (`network`, `filesystem`, …). A tool that needs one which is not granted is left out of
    /// the registry, with a diagnostic.
    pub capabilities: Vec<String>,
    /// Members of the MCP form that this crate does not name (`icons`, `_meta`, …), as one
    /// JSON object; they travel unchanged. Its member `annotations` has those annotations that
    /// are no hints of [`ToolAnnotations`].
    pub extra: Option<String>,
}

impl ToolDefinition {
    /// A tool that is called with arguments of this JSON Schema.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: &serde_json::Value,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: input_schema.to_string(),
            output_schema: None,
            annotations: ToolAnnotations::default(),
            capabilities: Vec::new(),
            extra: None,
        }
    }
}

/// What a tool claims about itself. A hint is never a reason to skip a check: the host believes
/// only plugins that policy trusts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolAnnotations {
    /// It changes nothing.
    pub read_only: Option<bool>,
    /// It may destroy or overwrite something.
    pub destructive: Option<bool>,
    /// A second call with the same arguments changes nothing more, so that the host may retry a
    /// failed one.
    pub idempotent: Option<bool>,
    /// It reaches outside of what the host knows: the web, for example.
    pub open_world: Option<bool>,
}

/// The answer of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// For the model and the user.
    pub content: Vec<ContentBlock>,
    /// For programs; it matches [`ToolDefinition::output_schema`] where the tool has one.
    pub structured: Option<String>,
    /// The tool ran and reports that it could not do what was asked. The content says why, so
    /// that the model can do better. Failures that the model cannot mend are an [`Error`](crate::Error)
    /// instead.
    pub is_error: bool,
    /// Members of the MCP form that this crate does not name, above all `_meta`, as one JSON
    /// object; they travel unchanged.
    pub extra: Option<String>,
}

impl ToolResult {
    /// An answer in plain text.
    pub fn text(text: impl Into<String>) -> Self {
        let block = ContentBlock { body: Content::Text(text.into()), extra: None };
        Self { content: vec![block], structured: None, is_error: false, extra: None }
    }

    /// An answer that says, in plain text, why there is no better one.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The text of the answer: that of its text blocks, a line each.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match &block.body {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
