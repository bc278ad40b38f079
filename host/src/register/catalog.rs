//! The tools that somebody is offered, to be found by words and called by scripts.

use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock, Weak};
use tenon_search::{SearchIndex, SearchedTool};
use tenon_types::ToolDefinition;
use tenon_types::text::cut;

use super::Registry;
use crate::runtime::{PromotedScript, ScriptLoadError, ToolFunctions, promote};

/// Which tools, resources and prompts somebody is offered. The default is all.
pub struct CatalogFilter {
    /// Whether a tool is, by the name that callers use.
    pub tool: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether a resource is, by its URI.
    pub resource: Box<dyn Fn(&str) -> bool + Send + Sync>,
    /// Whether a prompt is, by its plugin and its name there.
    pub prompt: PromptFilter,
}

/// Says whether a prompt is offered, by its plugin and its name there.
pub type PromptFilter = Box<dyn Fn(&str, &str) -> bool + Send + Sync>;

impl Default for CatalogFilter {
    fn default() -> Self {
        Self {
            tool: Box::new(|_| true),
            resource: Box::new(|_| true),
            prompt: Box::new(|_, _| true),
        }
    }
}

/// The tools that somebody is offered. It is made for one state of the plugins, and keeps none of them alive.
pub struct ToolCatalog {
    registry: Weak<Registry>,
    tools: Vec<CatalogTool>,
    functions: Arc<ToolFunctions>,
    pub(crate) filter: CatalogFilter,
    index: OnceLock<Option<SearchIndex>>,
}

/// A tool of a catalog.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CatalogTool {
    /// The name that callers use.
    pub tool: String,
    /// How scripts call it: `files.read`. Nothing where its name is that of another one, or of something else.
    pub function: Option<String>,
    /// What it is.
    pub definition: Arc<ToolDefinition>,
}

impl ToolCatalog {
    /// The tools of a registry that are offered.
    pub(crate) fn new(registry: &Arc<Registry>, filter: CatalogFilter) -> Self {
        let offered = || registry.tools().filter(|(_, tool)| (filter.tool)(tool.name.as_str()));
        let functions =
            offered().map(|(plugin, tool)| (&**plugin.id(), tool.name.as_str(), &*tool.definition));
        let withheld = registry.withheld().filter(|(name, _)| (filter.tool)(name));
        let withheld = withheld.map(|(name, why)| (name, why.to_string()));
        let functions = Arc::new(ToolFunctions::new(functions).with_withheld(withheld));
        let names = functions.names();
        let tools = offered().map(|(_, tool)| CatalogTool {
            tool: tool.name.to_string(),
            function: names.get(tool.name.as_str()).cloned(),
            definition: tool.definition.clone(),
        });
        let tools = tools.collect();
        let registry = Arc::downgrade(registry);
        Self { registry, tools, functions, filter, index: OnceLock::new() }
    }

    /// Returns whether it was made for this state of the plugins.
    pub fn is_of(&self, registry: &Arc<Registry>) -> bool {
        std::ptr::eq(self.registry.as_ptr(), Arc::as_ptr(registry))
    }

    /// Returns the tools, in the order of their names.
    pub fn tools(&self) -> &[CatalogTool] {
        &self.tools
    }

    /// Finds at most so many tools by words in their names, descriptions and arguments, the best first. Without words, it
    /// finds the first ones.
    pub fn search(&self, query: &str, limit: usize) -> Vec<&CatalogTool> {
        let index = self.index.get_or_init(|| {
            let tools = self.tools.iter().map(|of| SearchedTool {
                name: &of.tool,
                description: &of.definition.description,
                schema: &of.definition.input_schema,
            });
            SearchIndex::new(tools)
                .inspect_err(|error| tracing::warn!("tools are not indexed: {error}"))
                .ok()
        });
        let found = index.as_ref().map(|index| index.search(query, limit, |_| true));
        let found = found.and_then(Result::ok).unwrap_or_default();
        found.into_iter().filter_map(|number| self.tools.get(number)).collect()
    }

    /// Returns the tool of a name: that which callers use, or that of its function in scripts.
    pub fn tool(&self, name: &str) -> Option<&CatalogTool> {
        let is_it =
            |tool: &&CatalogTool| tool.tool == name || tool.function.as_deref() == Some(name);
        self.tools.iter().find(is_it)
    }

    /// Writes the script of a run as that of a plugin with one tool, `run`, whose arguments are like the `data` of the run.
    ///
    /// # Errors
    ///
    /// What a plugin cannot do, with its place: to call tools whose names it computes, or to look for tools, resources and
    /// prompts.
    pub fn promote(
        &self,
        script: &str,
        data: &Value,
        description: &str,
    ) -> Result<PromotedScript, ScriptLoadError> {
        promote(script, data, description, &self.functions)
    }

    pub(crate) fn functions(&self) -> &Arc<ToolFunctions> {
        &self.functions
    }
}

/// The longest description in a list, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 200;

/// The most arguments that a signature names.
const MAX_ARGUMENTS: usize = 16;

impl CatalogTool {
    /// How scripts call it, with its arguments and their types: `files.read(#{ path: string, limit?: integer })`.
    pub fn signature(&self) -> String {
        let arguments = self.arguments();
        match &self.function {
            Some(function) if arguments.is_empty() => format!("{function}()"),
            Some(function) => format!("{function}(#{{ {arguments} }})"),
            None => format!("call_tool({:?}, #{{ {arguments} }})", self.tool),
        }
    }

    /// Its arguments and their types: `path: string, limit?: integer`.
    pub fn arguments(&self) -> String {
        let schema: Value = serde_json::from_str(&self.definition.input_schema).unwrap_or_default();
        arguments(&schema)
    }

    /// The beginning of its description: what fits into one line of a list.
    pub fn summary(&self) -> String {
        let description = self.definition.description.trim();
        let line = description.lines().next().unwrap_or_default();
        match line.len() > MAX_DESCRIPTION_BYTES {
            true => format!("{}…", cut(line, MAX_DESCRIPTION_BYTES)),
            false => line.to_string(),
        }
    }

    /// All that is known of it, as JSON.
    pub fn describe(&self) -> Value {
        let schema = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
        let definition = &self.definition;
        json!({
            "name": self.tool,
            "signature": self.signature(),
            "description": definition.description,
            "arguments": schema(&definition.input_schema),
            "result": definition.output_schema.as_deref().map(schema),
        })
    }
}

/// `path: string, limit?: integer`
fn arguments(schema: &Value) -> String {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    let required = schema["required"].as_array();
    let is_required =
        |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
    let mut text = String::new();
    // What has to be there comes first.
    let mut names: Vec<&String> = properties.keys().collect();
    names.sort_by_key(|name| !is_required(name));
    for name in names.iter().take(MAX_ARGUMENTS) {
        let separator = if text.is_empty() { "" } else { ", " };
        let mark = if is_required(name) { "" } else { "?" };
        let _ = write!(text, "{separator}{name}{mark}: {}", type_of(&properties[*name], 2));
    }
    if names.len() > MAX_ARGUMENTS {
        text.push_str(", …");
    }
    text
}

/// A type in few words.
fn type_of(schema: &Value, depth: usize) -> String {
    if let Some(values) = schema["enum"].as_array().filter(|values| values.len() <= 8) {
        let values: Vec<String> = values.iter().map(Value::to_string).collect();
        return values.join("|");
    }
    match (&schema["type"], depth.checked_sub(1)) {
        (Value::String(kind), Some(depth)) if kind == "array" => {
            format!("{}[]", type_of(&schema["items"], depth))
        }
        (Value::String(kind), Some(_)) if kind == "object" => match arguments(schema) {
            inner if inner.is_empty() || inner.len() > 80 => "map".into(),
            inner => format!("#{{ {inner} }}"),
        },
        (Value::String(kind), _) => kind.clone(),
        (Value::Array(kinds), _) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            kinds.join("|")
        }
        _ => "any".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(function: Option<&str>, schema: Value) -> CatalogTool {
        CatalogTool {
            tool: "files__read".into(),
            function: function.map(str::to_string),
            definition: Arc::new(ToolDefinition::new("read", "Reads.\nMore of it.", &schema)),
        }
    }

    #[test]
    fn a_signature_says_how_a_tool_is_called() {
        let check = |properties: Value, required: Value, expected: &str| {
            let schema =
                json!({ "type": "object", "properties": properties, "required": required });
            assert_eq!(tool(Some("files.read"), schema).signature(), expected);
        };
        check(json!({}), json!([]), "files.read()");
        check(
            json!({ "a": { "type": "integer" }, "path": { "type": "string" } }),
            json!(["path"]),
            "files.read(#{ path: string, a?: integer })",
        );
        check(
            json!({
                "kind": { "enum": ["x", 1] },
                "list": { "type": "array", "items": { "type": "string" } },
                "any": true,
                "map": { "type": "object", "properties": { "k": { "type": ["string", "null"] } } },
            }),
            json!([]),
            "files.read(#{ any?: any, kind?: \"x\"|1, list?: string[], map?: #{ k?: string|null } })",
        );
        let unnamed = tool(None, json!({ "type": "object" }));
        assert_eq!(unnamed.signature(), "call_tool(\"files__read\", #{  })");
        assert_eq!(unnamed.summary(), "Reads.");
    }
}
