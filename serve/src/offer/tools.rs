//! The list of tools, written once for each profile and era and kept until the plugins change.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Weak};
use tenon_host::runs::ToolCatalog;
use tenon_host::types::ToolDefinition;
use tenon_host::types::mcp_json::McpJson;
use tenon_host::{Platform, Registry};

use super::{HeaderArgument, Profile, ToolMode, compact};
use crate::protocol::version::Era;
use crate::protocol::write;

/// The tools that clients with a profile see.
pub(crate) struct ToolList {
    /// Of which plugins. It keeps none of them alive.
    registry: Weak<Registry>,
    profile: Arc<Profile>,
    era: Era,
    items: Vec<String>,
    targets: HashMap<String, ToolTarget>,
    /// What is searched, where tools are not listed.
    catalog: Option<Arc<ToolCatalog>>,
}

/// What is called by the name of a tool.
pub(crate) struct ToolTarget {
    /// The name that the platform has for it.
    pub(crate) name: String,
    /// The arguments that modern requests over HTTP repeat in headers.
    pub(crate) headers: Vec<HeaderArgument>,
}

impl ToolList {
    pub(super) fn new(
        platform: &Platform,
        registry: &Arc<Registry>,
        profile: &Arc<Profile>,
        era: Era,
    ) -> Self {
        let (mut items, mut targets) = (Vec::new(), HashMap::new());
        // What the host does with resources and prompts, the protocol has methods for.
        for (plugin, tool) in registry.tools().filter(|(_, tool)| !tool.is_of_host()) {
            let shown = match profile.prefix {
                true => tool.name.to_string(),
                false => tool.definition.name.clone(),
            };
            if !profile.offers_tool(&shown, tool.name.as_str()) {
                continue;
            }
            if targets.contains_key(&shown) {
                let plugin = &**plugin.id();
                tracing::warn!(
                    "the tool {shown:?} of plugin \"{plugin}\" is left out: another plugin has one of this name"
                );
                continue;
            }
            let (headers, schema) = HeaderArgument::take(&tool.definition.input_schema);
            if profile.mode == ToolMode::All {
                items.push(form(&tool.definition, &shown, schema, era));
            }
            targets.insert(shown, ToolTarget { name: tool.name.to_string(), headers });
        }
        let catalog = (profile.mode != ToolMode::All).then(|| {
            items = compact::items(profile.mode);
            let names = targets.values().map(|target: &ToolTarget| target.name.clone());
            Arc::new(compact::catalog(platform, profile, names.collect()))
        });
        let registry = Arc::downgrade(registry);
        Self { registry, profile: profile.clone(), era, items, targets, catalog }
    }

    pub(super) fn is_of(&self, registry: &Arc<Registry>, profile: &Arc<Profile>, era: Era) -> bool {
        self.is_current(registry) && Arc::ptr_eq(&self.profile, profile) && self.era == era
    }

    pub(super) fn is_current(&self, registry: &Arc<Registry>) -> bool {
        Weak::as_ptr(&self.registry) == Arc::as_ptr(registry)
    }

    /// The tools, as JSON.
    pub(crate) fn items(&self) -> &[String] {
        &self.items
    }

    /// What is searched, where tools are not listed.
    pub(crate) fn catalog(&self) -> Option<&Arc<ToolCatalog>> {
        self.catalog.as_ref()
    }

    /// The name that clients have for a tool, by that which the platform has for it.
    pub(crate) fn shown_name(&self, name: &str) -> Option<&str> {
        let mut all = self.targets.iter();
        all.find(|(_, target)| target.name == name).map(|(shown, _)| shown.as_str())
    }

    /// What is called by this name.
    pub(crate) fn target(&self, name: &str) -> Option<&ToolTarget> {
        self.targets.get(name)
    }
}

/// A tool as clients of an era see it.
fn form(tool: &ToolDefinition, name: &str, schema: Option<String>, era: Era) -> String {
    let mut tool = ToolDefinition { name: name.into(), ..tool.clone() };
    if let Some(schema) = schema {
        tool.input_schema = schema;
    }
    // How a server runs its tasks is between it and its bridge.
    write::without(&mut tool.extra, "execution");
    // Before 2026-07-28, what has a schema is an object.
    if era == Era::Legacy && !tool.output_schema.as_deref().is_none_or(is_of_object) {
        tool.output_schema = None;
    }
    write::text(&McpJson(&tool))
}

fn is_of_object(schema: &str) -> bool {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["type"] == "object"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_era_sees_what_it_knows() {
        let mut tool = ToolDefinition::new("t", "d", &json!({ "type": "object" }));
        tool.output_schema = Some(json!({ "type": "array" }).to_string());
        tool.extra =
            Some(json!({ "execution": { "taskSupport": "optional" }, "icons": [] }).to_string());
        let read = |era| serde_json::from_str::<Value>(&form(&tool, "p__t", None, era)).unwrap();
        let modern = json!({
            "name": "p__t", "description": "d", "inputSchema": { "type": "object" },
            "outputSchema": { "type": "array" }, "icons": [],
        });
        assert_eq!(read(Era::Modern), modern);
        assert_eq!(read(Era::Legacy).get("outputSchema"), None);
        tool.output_schema = Some(json!({ "type": "object" }).to_string());
        let legacy = form(&tool, "p__t", None, Era::Legacy);
        assert!(legacy.contains("outputSchema"), "{legacy}");
    }
}
