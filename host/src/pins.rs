//! Definitions of tools as they were when they were first seen.
//!
//! A server can say of its tools what it likes, each time anew, and a model believes it. So what a
//! tool was when somebody first let it in is pinned; a tool that says something else later is held
//! until somebody has seen what, and accepts it. Which tools are held is decided when plugins are
//! put together; here is what is compared, and the file that remembers it.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bindings::types::ToolDefinition;
use crate::diagnostic::chain;
use crate::services::Pins;
use crate::store::{JsonStore, StoreError};
use crate::wire;

/// The largest file of pins, in bytes.
const PINS: u64 = 64 << 20;

/// The tools of a plugin as it has just registered them.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Seen {
    /// The plugin's id.
    pub plugin: String,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// What each tool says of itself, by its own name.
    pub definitions: BTreeMap<String, Definition>,
}

/// What a tool says of itself: its name, title, description, schemas and annotations in the form of
/// MCP, with the members of objects in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Definition(Value);

/// A tool that is not what it was when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTool {
    /// The plugin's id.
    pub plugin: String,
    /// The tool, as the plugin calls it.
    pub tool: String,
    /// What it was.
    pub pinned: Definition,
    /// What it is.
    pub seen: Definition,
}

/// A place in which two definitions differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DefinitionChange {
    /// Where, as a JSON Pointer.
    pub place: String,
    /// What was there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is there now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// Why it is not known what tools were. Then all of them are held.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The file cannot be read or written.
    #[error("the pins in {} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The file is not what this host writes.
    #[error("{} is not a file of pins; move it away to begin anew", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
    /// Another keeper of pins has another reason.
    #[error("{0}")]
    Other(String),
}

impl Definition {
    pub(crate) fn of(definition: &ToolDefinition) -> Self {
        const PINNED: [&str; 6] =
            ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];
        let form = wire::tool_definition(&definition.name, definition);
        let pinned = PINNED.iter().filter_map(|name| Some((name.to_string(), form.get(*name)?)));
        let pinned: Map<String, Value> =
            pinned.map(|(name, value)| (name, value.clone())).collect();
        Self(in_order(&pinned.into()))
    }

    /// It, as JSON.
    pub fn json(&self) -> &Value {
        &self.0
    }

    /// The SHA-256 of its JSON without white space, in hexadecimal.
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(self.0.to_string());
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A value with the members of objects in order: a feature of serde_json can keep another.
fn in_order(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            let members = members.into_iter().map(|(name, value)| (name.clone(), in_order(value)));
            Value::Object(members.collect::<Map<String, Value>>())
        }
        Value::Array(items) => items.iter().map(in_order).collect(),
        other => other.clone(),
    }
}

impl Seen {
    pub(crate) fn new<'a>(
        plugin: &str,
        named_in: &Path,
        tools: impl Iterator<Item = &'a ToolDefinition>,
    ) -> Self {
        let definitions = tools.map(|tool| (tool.name.clone(), Definition::of(tool))).collect();
        Self { plugin: plugin.into(), named_in: key(named_in), definitions }
    }
}

impl HeldTool {
    /// In what it differs.
    pub fn changes(&self) -> Vec<DefinitionChange> {
        let mut changes = Vec::new();
        compare("", Some(&self.pinned.0), Some(&self.seen.0), &mut changes);
        changes
    }

    /// That it does, in words.
    fn why(&self) -> String {
        let (pinned, seen) = (&self.pinned.0, &self.seen.0);
        let members = pinned.as_object().into_iter().chain(seen.as_object());
        let mut changed: Vec<&str> = members
            .flat_map(Map::keys)
            .filter(|name| pinned.get(name.as_str()) != seen.get(name.as_str()))
            .map(String::as_str)
            .collect();
        changed.sort_unstable();
        changed.dedup();
        format!("it is not what it was when it was first seen (`{}`)", changed.join("`, `"))
    }
}

fn compare(
    place: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    changes: &mut Vec<DefinitionChange>,
) {
    if before == after {
        return;
    }
    if let (Some(Value::Object(before)), Some(Value::Object(after))) = (before, after) {
        let names: std::collections::BTreeSet<&String> =
            before.keys().chain(after.keys()).collect();
        for name in names {
            let place = format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"));
            compare(&place, before.get(name), after.get(name), changes);
        }
        return;
    }
    let (before, after) = (before.cloned(), after.cloned());
    changes.push(DefinitionChange { place: place.to_string(), before, after });
}

/// Which tools are held.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    tools: Arc<HashMap<(String, String), String>>,
    /// Why nothing is known of the tools of these plugins.
    unknown: Option<(Vec<String>, String)>,
}

impl Holds {
    /// What a keeper of pins says of what was seen.
    pub(crate) async fn ask(pins: &dyn Pins, seen: Vec<Seen>) -> Self {
        if seen.is_empty() {
            return Self::default();
        }
        match pins.check(&seen).await {
            Ok(held) => {
                let held = held.into_iter().map(|held| {
                    let why = held.why();
                    ((held.plugin, held.tool), why)
                });
                Self { tools: Arc::new(held.collect()), unknown: None }
            }
            Err(error) => {
                let plugins = seen.into_iter().map(|seen| seen.plugin).collect();
                let why = format!("it is not known what it was: {}", chain(&error));
                Self { unknown: Some((plugins, why)), ..Self::default() }
            }
        }
    }

    /// Why a tool is held, if it is.
    pub(crate) fn why(&self, plugin: &str, tool: &str) -> Option<String> {
        if let Some((plugins, why)) = &self.unknown
            && plugins.iter().any(|unknown| unknown == plugin)
        {
            return Some(why.clone());
        }
        // The common case is that none is.
        match self.tools.is_empty() {
            true => None,
            false => self.tools.get(&(plugin.to_string(), tool.to_string())).cloned(),
        }
    }
}

/// Pins in a file, which only this user can write to.
#[derive(Debug, Clone)]
pub struct PinFile {
    store: JsonStore,
}

/// The file, as it is written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    pins: Vec<Pinned>,
}

/// The pins of one plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pinned {
    plugin: String,
    /// What names it: plugins of other projects may have the same id.
    named_in: PathBuf,
    tools: BTreeMap<String, Pin>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    sha256: String,
    /// What that is the digest of, so that a difference can be shown.
    definition: Definition,
    /// What was last seen in its place, and nobody has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Definition>,
}

impl Pin {
    fn new(definition: Definition) -> Self {
        Self { sha256: definition.sha256(), definition, held: None }
    }
}

impl PinFile {
    /// Pins in this file, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { store: JsonStore::new(path.into(), PINS) }
    }

    /// The tools that are held of a plugin, as they were last seen.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or understood.
    pub fn held(&self, plugin: &str, named_in: &Path) -> Result<Vec<HeldTool>, PinError> {
        let mut content = self.read()?;
        let Some(pinned) = content.of(plugin, &key(named_in)) else { return Ok(Vec::new()) };
        let held = pinned.tools.iter().filter_map(|(tool, pin)| pin.held_tool(plugin, tool));
        Ok(held.collect())
    }

    /// Accepts tools as they are here; what was seen since is held all the same.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn accept(&self, named_in: &Path, tools: &[HeldTool]) -> Result<(), PinError> {
        let named_in = key(named_in);
        self.change(|content| {
            for HeldTool { plugin, tool, seen, .. } in tools {
                let pinned = content.of(plugin, &named_in);
                let Some(pin) = pinned.and_then(|pinned| pinned.tools.get_mut(tool)) else {
                    continue;
                };
                let later = pin.held.take().filter(|held| held != seen);
                *pin = Pin { held: later, ..Pin::new(seen.clone()) };
            }
        })
    }

    fn check_now(&self, seen: &[Seen]) -> Result<Vec<HeldTool>, PinError> {
        let before = self.read()?;
        let mut content = before.clone();
        let held = content.see(seen);
        if content != before {
            // Others may have written to it meanwhile.
            let changed = self.change(|content| drop(content.see(seen)));
            if let Err(error) = changed {
                tracing::warn!("new tools are not pinned: {}", chain(&error));
            }
        }
        Ok(held)
    }

    fn read(&self) -> Result<Content, PinError> {
        self.store.read().map_err(|error| self.error(error))
    }

    fn change(&self, change: impl FnOnce(&mut Content)) -> Result<(), PinError> {
        self.store.change(change).map_err(|error| self.error(error))
    }

    fn error(&self, error: StoreError) -> PinError {
        let path = self.store.path().to_path_buf();
        match error {
            StoreError::Unguarded(path) => {
                PinError::File(path, io::Error::other("others can write to it"))
            }
            StoreError::Io(error) => PinError::File(path, error),
            StoreError::Damaged(error) => PinError::Damaged(path, error),
        }
    }
}

#[async_trait]
impl Pins for PinFile {
    async fn check(&self, seen: &[Seen]) -> Result<Vec<HeldTool>, PinError> {
        let (file, seen) = (self.clone(), seen.to_vec());
        let checked = tokio::task::spawn_blocking(move || file.check_now(&seen)).await;
        checked.unwrap_or_else(|error| Err(PinError::Other(error.to_string())))
    }
}

impl Content {
    fn of(&mut self, plugin: &str, named_in: &Path) -> Option<&mut Pinned> {
        let mut pinned = self.pins.iter_mut();
        pinned.find(|pinned| pinned.plugin == plugin && pinned.named_in == named_in)
    }

    /// Pins what is new, and gives what is not what it was.
    fn see(&mut self, seen: &[Seen]) -> Vec<HeldTool> {
        let mut held = Vec::new();
        for Seen { plugin, named_in, definitions } in seen {
            if definitions.is_empty() {
                continue;
            }
            if self.of(plugin, named_in).is_none() {
                let (plugin, named_in) = (plugin.clone(), named_in.clone());
                self.pins.push(Pinned { plugin, named_in, tools: BTreeMap::new() });
            }
            let pinned = self.of(plugin, named_in).expect("it is there by now");
            for (tool, definition) in definitions {
                let pin = pinned.tools.entry(tool.clone());
                let pin = pin.or_insert_with(|| Pin::new(definition.clone()));
                let is_other = pin.sha256 != definition.sha256();
                pin.held = is_other.then(|| definition.clone());
                held.extend(pin.held_tool(plugin, tool));
            }
        }
        held
    }
}

impl Pin {
    fn held_tool(&self, plugin: &str, tool: &str) -> Option<HeldTool> {
        let (pinned, seen) = (self.definition.clone(), self.held.clone()?);
        Some(HeldTool { plugin: plugin.into(), tool: tool.into(), pinned, seen })
    }
}

/// A path under which the same file is found again, from whichever folder the host is started.
fn key(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).unwrap_or(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seen(tools: &[(&str, &str)]) -> [Seen; 1] {
        let tools: Vec<ToolDefinition> = tools
            .iter()
            .map(|(name, about)| ToolDefinition::new(*name, *about, &json!({ "type": "object" })))
            .collect();
        [Seen::new("p", Path::new("/no/such/tenon.toml"), tools.iter())]
    }

    #[test]
    fn what_was_first_seen_is_pinned_and_what_differs_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("deep/pins.json"));
        let check = |tools: &[(&str, &str)], expected: &[&str]| {
            let held = file.check_now(&seen(tools)).unwrap();
            let names: Vec<&str> = held.iter().map(|held| held.tool.as_str()).collect();
            assert_eq!(names, expected, "{tools:?}");
        };
        check(&[("a", "1"), ("b", "1")], &[]);
        check(&[("a", "2"), ("b", "1"), ("c", "1")], &["a"]);
        check(&[("a", "2"), ("c", "2")], &["a", "c"]);
        // What was is welcome again.
        check(&[("a", "1"), ("c", "2")], &["c"]);
        check(&[("a", "2"), ("c", "2")], &["a", "c"]);

        let named_in = Path::new("/no/such/tenon.toml");
        let held = file.held("p", named_in).unwrap();
        let changes = held[0].changes();
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].place, "/description");
        assert_eq!(changes[0].after, Some(json!("2")));
        assert_eq!(file.held("p", Path::new("/no/such/other.toml")).unwrap(), []);
        file.accept(named_in, &held).unwrap();
        check(&[("a", "2"), ("c", "2")], &[]);
        check(&[("a", "1")], &["a"]);
        // What has changed since it was shown is not what was accepted.
        let shown = file.held("p", named_in).unwrap();
        check(&[("a", "3")], &["a"]);
        file.accept(named_in, &shown).unwrap();
        check(&[("a", "3")], &["a"]);
        check(&[("a", "1")], &[]);
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let definition = |schema: Value| Definition::of(&ToolDefinition::new("t", "d", &schema));
        let held = HeldTool {
            plugin: "p".into(),
            tool: "t".into(),
            pinned: definition(
                json!({ "type": "object", "properties": { "a/b": { "type": "string" } } }),
            ),
            seen: definition(json!({ "properties": { "c": {} }, "type": "object" })),
        };
        let places: Vec<String> = held.changes().into_iter().map(|change| change.place).collect();
        assert_eq!(places, ["/inputSchema/properties/a~1b", "/inputSchema/properties/c"]);
        assert_eq!(held.why(), "it is not what it was when it was first seen (`inputSchema`)");
        let pinned = held.pinned.sha256();
        let same = json!({ "properties": { "a/b": { "type": "string" } }, "type": "object" });
        assert_eq!(definition(same).sha256(), pinned);
    }

    #[test]
    fn a_damaged_file_is_neither_believed_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        std::fs::write(&path, "{}").unwrap();
        let file = PinFile::new(&path);
        assert!(matches!(file.check_now(&seen(&[("a", "1")])), Err(PinError::Damaged(..))));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{}");
    }
}
