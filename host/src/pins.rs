//! Definitions of tools as they were when they were first seen.
//!
//! A server can say of its tools what it likes, each time anew, and a model believes it. So what a
//! tool was when somebody first let it in is pinned; a tool that says something else later is held
//! until somebody has seen what, and accepts it. Which tools are held is decided when plugins are
//! put together; here is what is compared, and the file that remembers it.
//!
//! A definition is the one that was pinned if it has its SHA-256. What the file has of it besides is
//! there to show a difference, and is as long as that needs it to be: however much a server says,
//! and however often, the file stays small.

use async_trait::async_trait;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::bindings::types::ToolDefinition;
use crate::diagnostic::chain;
use crate::files::Digest;
use crate::services::Pins;
use crate::store::{JsonStore, StoreError};
use crate::text::cut;
use crate::wire;

/// The largest file of pins, in bytes.
const PINS: u64 = 64 << 20;

/// How much is kept of a definition, in bytes of JSON.
const KEPT: usize = 16 << 10;

/// How much is kept of all definitions of a plugin. Of those for which there is no room, only the
/// SHA-256 is.
const KEPT_OF_ALL: usize = 2 << 20;

/// How many tools of a plugin are remembered that it has no more.
const GONE: usize = 2_000;

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
pub struct Definition {
    sha256: String,
    json: Value,
}

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
        Self::whole(in_order(&pinned.into()))
    }

    fn whole(json: Value) -> Self {
        Self { sha256: Digest::of(json.to_string()).to_string(), json }
    }

    /// It, as JSON. In one that comes from a [`PinFile`], words stand for what is long, which say
    /// how long it is and which digest it has.
    pub fn json(&self) -> &Value {
        &self.json
    }

    /// The SHA-256 of its whole JSON without white space, in hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

/// A value in `most` bytes of JSON, or in a few words if it has more. Of an object, the members are
/// shortened, each by itself: a difference is still found at its place, as what is left out has its
/// digest in its place.
fn short(value: &Value, most: usize) -> Value {
    let whole = value.to_string();
    if whole.len() <= most {
        return value.clone();
    }
    let (length, digest) = (whole.len(), Digest::of(&whole));
    let words = |start: &str| format!("{start}… ({length} bytes, SHA-256 {digest})").into();
    match value {
        Value::String(text) => words(cut(text, most / 2)),
        Value::Object(members) => {
            let members =
                members.iter().map(|(name, value)| (name.clone(), short(value, most / 8)));
            let members = Value::Object(members.collect());
            let fits = members.to_string().len() <= most;
            if fits { members } else { words("") }
        }
        _ => words(""),
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
        compare("", Some(&self.pinned.json), Some(&self.seen.json), &mut changes);
        changes
    }

    /// That it does, in words.
    fn why(&self) -> String {
        let (pinned, seen) = (&self.pinned.json, &self.seen.json);
        let members = pinned.as_object().into_iter().chain(seen.as_object());
        let mut changed: Vec<&str> = members
            .flat_map(Map::keys)
            .filter(|name| pinned.get(name.as_str()) != seen.get(name.as_str()))
            .map(String::as_str)
            .collect();
        changed.sort_unstable();
        changed.dedup();
        let changed = match changed.is_empty() {
            true => String::new(),
            false => format!(" (`{}`)", changed.join("`, `")),
        };
        format!("it is not what it was when it was first seen{changed}")
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
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    pins: Vec<Pinned>,
    /// Whether all that is kept of definitions is short. Once it was not.
    #[serde(default)]
    bounded: bool,
}

/// The pins of one plugin.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pinned {
    plugin: String,
    /// What names it: plugins of other projects may have the same id.
    named_in: PathBuf,
    tools: BTreeMap<String, Pin>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    sha256: String,
    /// What is kept of what that is the digest of, so that a difference can be shown.
    #[serde(serialize_with = "in_one_line")]
    definition: Value,
    /// What was last seen in its place, and nobody has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<Held>,
    /// Of a tool that is there no more: it went after all with smaller numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(from = "HeldForm")]
struct Held {
    sha256: String,
    #[serde(serialize_with = "in_one_line")]
    definition: Value,
}

/// What is held as it is written, and as it was: without a digest.
#[derive(Deserialize)]
#[serde(untagged)]
enum HeldForm {
    Bounded { sha256: String, definition: Value },
    Whole(Value),
}

impl From<HeldForm> for Held {
    fn from(form: HeldForm) -> Self {
        match form {
            HeldForm::Bounded { sha256, definition } => Self { sha256, definition },
            HeldForm::Whole(definition) => {
                let Definition { sha256, json } = Definition::whole(definition);
                Self { sha256, definition: json }
            }
        }
    }
}

/// Indented, what is deeply nested would be many times as long.
fn in_one_line<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    let line = RawValue::from_string(value.to_string()).map_err(serde::ser::Error::custom)?;
    line.serialize(serializer)
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
                pin.held.take_if(|held| held.sha256 == seen.sha256);
                pin.sha256.clone_from(&seen.sha256);
                pin.definition = short(&seen.json, KEPT);
            }
        })
    }

    fn check_now(&self, seen: &[Seen]) -> Result<Vec<HeldTool>, PinError> {
        let (held, changed) = self.read()?.see(seen);
        if changed {
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

    fn change(&self, change: impl Fn(&mut Content)) -> Result<(), PinError> {
        let changed = match self.store.change(&change) {
            Err(StoreError::Io(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.store.change(|content: &mut Content| {
                    // What names these names nothing any more.
                    content.pins.retain(|pinned| pinned.named_in.exists());
                    change(content);
                })
            }
            changed => changed,
        };
        changed.map_err(|error| self.error(error))
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

    /// Pins what is new. Gives what is not what it was, and whether there is anything to be written.
    fn see(&mut self, seen: &[Seen]) -> (Vec<HeldTool>, bool) {
        let mut changed = !self.bounded && !self.pins.is_empty();
        if changed {
            self.pins.iter_mut().for_each(Pinned::shorten);
        }
        self.bounded = true;
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
            changed |= pinned.see(definitions);
            let there = pinned.tools.iter().filter(|(_, pin)| pin.gone.is_none());
            held.extend(there.filter_map(|(tool, pin)| pin.held_tool(plugin, tool)));
        }
        (held, changed)
    }
}

impl Pinned {
    /// Pins what is new, and gives whether anything is.
    fn see(&mut self, definitions: &BTreeMap<String, Definition>) -> bool {
        let knows = |(tool, seen): (&String, &Definition)| {
            self.tools.get(tool).is_some_and(|pin| pin.has_seen(seen))
        };
        let there = self.tools.values().filter(|pin| pin.gone.is_none()).count();
        if there == definitions.len() && definitions.iter().all(knows) {
            return false;
        }
        let lengths = self.tools.values().map(Pin::length);
        let mut room = Room(KEPT_OF_ALL.saturating_sub(lengths.sum()));
        for (tool, seen) in definitions {
            match self.tools.entry(tool.clone()) {
                Entry::Vacant(pin) => {
                    pin.insert(Pin::new(seen, &mut room));
                }
                Entry::Occupied(mut pin) => pin.get_mut().see(seen, &mut room),
            }
        }
        let last = self.tools.values().filter_map(|pin| pin.gone).max().unwrap_or_default();
        let missing = self.tools.iter_mut().filter(|(tool, _)| !definitions.contains_key(*tool));
        missing.for_each(|(_, pin)| pin.gone = pin.gone.or(Some(last + 1)));
        self.forget();
        true
    }

    /// Forgets the tools that went first, where too many have gone.
    fn forget(&mut self) {
        let gone = self.tools.iter().filter_map(|(tool, pin)| Some((pin.gone?, tool.clone())));
        let mut gone: Vec<(u64, String)> = gone.collect();
        gone.sort_unstable();
        for (_, tool) in &gone[..gone.len().saturating_sub(GONE)] {
            self.tools.remove(tool);
        }
    }

    /// Keeps no more of definitions than there is room for.
    fn shorten(&mut self) {
        let mut room = Room(KEPT_OF_ALL);
        for pin in self.tools.values_mut() {
            pin.definition = room.keep(&pin.definition);
            if let Some(held) = &mut pin.held {
                held.definition = room.keep(&held.definition);
            }
        }
    }
}

/// How much more is kept of the definitions of a plugin, in bytes.
struct Room(usize);

impl Room {
    fn keep(&mut self, definition: &Value) -> Value {
        let kept = short(definition, KEPT.min(self.0));
        self.0 = self.0.saturating_sub(kept.to_string().len());
        kept
    }
}

impl Pin {
    fn new(seen: &Definition, room: &mut Room) -> Self {
        let definition = room.keep(&seen.json);
        Self { sha256: seen.sha256.clone(), definition, held: None, gone: None }
    }

    /// Whether it is as it would be, were this seen.
    fn has_seen(&self, seen: &Definition) -> bool {
        let last = self.held.as_ref().map_or(&self.sha256, |held| &held.sha256);
        self.gone.is_none() && *last == seen.sha256
    }

    fn see(&mut self, seen: &Definition, room: &mut Room) {
        if self.has_seen(seen) {
            return;
        }
        self.gone = None;
        self.held = (self.sha256 != seen.sha256)
            .then(|| Held { sha256: seen.sha256.clone(), definition: room.keep(&seen.json) });
    }

    /// What is kept of definitions here, in bytes.
    fn length(&self) -> usize {
        let held = self.held.as_ref().map(|held| &held.definition);
        let kept = [&self.definition].into_iter().chain(held);
        kept.map(|definition| definition.to_string().len()).sum()
    }

    fn held_tool(&self, plugin: &str, tool: &str) -> Option<HeldTool> {
        let held = self.held.as_ref()?;
        let definition = |sha256: &String, json: &Value| Definition {
            sha256: sha256.clone(),
            json: json.clone(),
        };
        Some(HeldTool {
            plugin: plugin.into(),
            tool: tool.into(),
            pinned: definition(&self.sha256, &self.definition),
            seen: definition(&held.sha256, &held.definition),
        })
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
        [Seen::new("p", Path::new(NAMED_IN), tools.iter())]
    }

    const NAMED_IN: &str = "/no/such/tenon.toml";

    /// The names of those that are held when these are seen.
    fn held(file: &PinFile, tools: &[(&str, &str)]) -> Vec<String> {
        let held = file.check_now(&seen(tools)).unwrap();
        held.into_iter().map(|held| held.tool).collect()
    }

    #[test]
    fn what_was_first_seen_is_pinned_and_what_differs_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("deep/pins.json"));
        let check = |tools: &[(&str, &str)], expected: &[&str]| {
            assert_eq!(held(&file, tools), expected, "{tools:?}");
        };
        check(&[("a", "1"), ("b", "1")], &[]);
        check(&[("a", "2"), ("b", "1"), ("c", "1")], &["a"]);
        check(&[("a", "2"), ("c", "2")], &["a", "c"]);
        // What was is welcome again.
        check(&[("a", "1"), ("c", "2")], &["c"]);
        check(&[("a", "2"), ("c", "2")], &["a", "c"]);

        let named_in = Path::new(NAMED_IN);
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
        let pinned = held.pinned.sha256().to_string();
        let same = json!({ "properties": { "a/b": { "type": "string" } }, "type": "object" });
        assert_eq!(definition(same).sha256(), pinned);
    }

    #[test]
    fn what_is_long_is_cut_and_every_difference_is_still_there() {
        let long = "x".repeat(2 * KEPT);
        let check = |before: Value, after: Value, place: &str| {
            let (before, after) = (Definition::whole(before), Definition::whole(after));
            let cut = |of: Definition| {
                let json = short(&of.json, KEPT);
                assert!(json.to_string().len() <= KEPT, "{json}");
                Definition { json, ..of }
            };
            let (plugin, tool) = ("p".to_string(), "t".to_string());
            let held = HeldTool { plugin, tool, pinned: cut(before), seen: cut(after) };
            let places: Vec<String> = { held.changes() }.into_iter().map(|c| c.place).collect();
            assert_eq!(places, [place]);
        };
        let text = |last: &str| json!({ "name": "n", "description": format!("{long}{last}") });
        check(text("1"), text("2"), "/description");
        let list = |last: &str| json!({ "inputSchema": { "enum": [long, last] } });
        check(list("1"), list("2"), "/inputSchema/enum");
        let wide = |last: &str| {
            let members = (0..KEPT).map(|number| (number.to_string(), Value::from(last)));
            json!({ "inputSchema": members.collect::<Map<_, _>>() })
        };
        check(wide("1"), wide("2"), "/inputSchema");
        check(json!(vec![&long]), json!(vec![&long, "2"]), "");
    }

    /// Tools of these numbers, each with a long description.
    fn many(numbers: std::ops::Range<usize>, about: &str) -> Vec<(String, String)> {
        numbers.map(|number| (format!("t{number:05}"), about.to_string())).collect()
    }

    fn borrowed(tools: &[(String, String)]) -> Vec<(&str, &str)> {
        tools.iter().map(|(name, about)| (name.as_str(), about.as_str())).collect()
    }

    #[test]
    fn what_is_kept_of_a_plugin_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        let file = PinFile::new(&path);
        let check = |numbers: std::ops::Range<usize>, about: &str, expected: usize| {
            let tools = many(numbers, about);
            assert_eq!(held(&file, &borrowed(&tools)).len(), expected, "{}", &about[..1]);
        };
        let (first, second) = ("1".repeat(KEPT_OF_ALL / 999), "2".repeat(KEPT_OF_ALL / 999));
        for start in 0..4 {
            check(start * 1_000..(start + 1) * 1_000, &first, 0);
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 2 * KEPT_OF_ALL as u64);
        let content: Content = file.read().unwrap();
        assert_eq!(content.pins[0].tools.len(), 1_000 + GONE);
        // Those that are there, and the last that have gone, are known.
        check(3_000..4_000, &second, 1_000);
        check(2_000..3_000, &second, 1_000);
        // Those that went first are not.
        check(0..1_000, &second, 0);
        file.accept(Path::new(NAMED_IN), &file.held("p", Path::new(NAMED_IN)).unwrap()).unwrap();
        check(3_000..4_000, &second, 0);
    }

    #[test]
    fn what_changes_nothing_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        let lock = folder.path().join("pins.lock");
        let check = |tools: &[(&str, &str)], writes: bool| {
            let _ = std::fs::remove_file(&lock);
            held(&file, tools);
            assert_eq!(lock.exists(), writes, "{tools:?}");
        };
        check(&[("a", "1"), ("b", "1")], true);
        check(&[("a", "1"), ("b", "1")], false);
        check(&[("a", "2"), ("b", "1")], true);
        check(&[("a", "2"), ("b", "1")], false);
        check(&[("a", "2")], true);
        check(&[("a", "2")], false);
        check(&[], false);
        check(&[("a", "1")], true);
        check(&[("a", "1")], false);
    }

    #[test]
    fn a_file_from_before_there_were_bounds_is_taken_and_made_smaller() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        let file = PinFile { store: JsonStore::new(path.clone(), 1 << 20) };
        let long = "1".repeat(1 << 20);
        let other = format!("{long}2");
        let pin = |about: &str| {
            let Definition { sha256, json } = seen(&[("a", about)])[0].definitions["a"].clone();
            json!({ "sha256": sha256, "definition": json })
        };
        let mut held_one = pin(&long);
        held_one["held"] = pin(&other)["definition"].clone();
        let tools = json!({ "a": held_one, "b": pin(&other) });
        let pinned = json!({ "plugin": "p", "named_in": NAMED_IN, "tools": tools });
        std::fs::write(&path, json!({ "pins": [pinned] }).to_string()).unwrap();
        assert_eq!(held(&file, &[("a", &other)]), ["a"]);
        assert!(std::fs::metadata(&path).unwrap().len() < 64 << 10);
        assert_eq!(held(&file, &[("a", &long), ("b", "2")]), ["b"]);
    }

    #[test]
    fn a_file_that_is_full_keeps_what_it_has_and_makes_room_for_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let file = PinFile { store: JsonStore::new(path("pins.json"), 4 << 10) };
        let check = |named_in: &str, about: &str, expected: usize| {
            let definition = ToolDefinition::new("a", about, &json!({ "type": "object" }));
            let seen = Seen::new("p", &path(named_in), [&definition].into_iter());
            assert_eq!(file.check_now(&[seen]).unwrap().len(), expected, "{named_in}");
        };
        let first = "1".repeat(2 << 10);
        std::fs::write(path("one"), "").unwrap();
        std::fs::write(path("two"), "").unwrap();
        check("one", &first, 0);
        // There is no room for it; the other is held all the same.
        check("two", &first, 0);
        check("one", "2", 1);
        assert!(std::fs::metadata(path("pins.json")).unwrap().len() <= 4 << 10);
        std::fs::remove_file(path("one")).unwrap();
        check("two", &first, 0);
        check("two", "2", 1);
        let held = file.held("p", &path("two")).unwrap();
        file.accept(&path("two"), &held).unwrap();
        check("two", "2", 0);
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
