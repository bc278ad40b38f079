//! Pins in a file.
//!
//! A definition is the one that was pinned if it has its SHA-256. What the file has of it besides is
//! there to show a difference, and is as long as that needs it to be: however much a server says,
//! and however often, the file stays small.

#[cfg(any(test, fuzzing, feature = "testing"))]
pub(super) mod fuzz;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use tenon_types::text::cut;

use super::definition::{changes, varying};
use super::{
    DefinitionKind, HeldDefinition, McpDefinition, ObservedDefinitions, PinCheck, PinError, Pins,
    UnstablePart,
};
use crate::diagnostic::chain;
use crate::files::real_or_absolute;
use crate::json_file::{JsonFile, JsonFileError};

/// The largest file of pins, in bytes.
const MAX_FILE_BYTES: u64 = 64 << 20;

/// How much is kept of a definition, in bytes of JSON.
const MAX_KEPT_BYTES: usize = 16 << 10;

/// How much is kept of all definitions of a plugin. Of those for which there is no room, only the
/// SHA-256 is.
const MAX_KEPT_BYTES_PER_PLUGIN: usize = 2 << 20;

/// How many definitions of one kind are remembered that a plugin has no more.
const MAX_GONE: usize = 2_000;

/// How many unstable parts of a definition are remembered, and how much of the place of one, in
/// bytes. What is beyond is not compared either, as it can vary as well; it is only not told of.
const MAX_UNSTABLE: usize = 64;
const MAX_POINTER_LENGTH: usize = 256;

/// The version of the file. Another one is not read: what it pinned would be lost.
const VERSION: u32 = 1;

/// Pins in a file, which only this user can write to.
#[derive(Debug, Clone)]
pub struct PinFile {
    store: JsonFile,
}

/// The file, as it is written.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinFileJson {
    #[serde(deserialize_with = "this_version")]
    version: u32,
    pins: Vec<PluginPins>,
}

impl Default for PinFileJson {
    fn default() -> Self {
        Self { version: VERSION, pins: Vec::new() }
    }
}

fn this_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("its version is {other}, not {VERSION}"))),
    }
}

/// The pins of one plugin.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PluginPins {
    plugin: String,
    /// What names it: plugins of other projects may have the same id.
    named_in: PathBuf,
    /// The server that the pins are of, as [`ObservedDefinitions::server`] has it.
    server: String,
    /// The one that was seen last, while definitions of it are held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen_server: Option<String>,
    definitions: BTreeMap<DefinitionKind, BTreeMap<String, Pin>>,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pin {
    definition: KeptDefinition,
    /// The places of parts that vary from one start of the same server to the next.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    unstable: BTreeSet<String>,
    /// What was last seen in its place, and nobody has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<KeptDefinition>,
    /// Of a definition that is there no more: it went after all with smaller numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone: Option<u64>,
}

/// What is kept of a definition.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptDefinition {
    sha256: String,
    firm_sha256: String,
    /// What of it is kept so that a difference can be shown.
    #[serde(serialize_with = "in_one_line")]
    json: Value,
}

/// Indented, what is deeply nested would be many times as long.
fn in_one_line<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    let line = RawValue::from_string(value.to_string()).map_err(serde::ser::Error::custom)?;
    line.serialize(serializer)
}

impl PinFile {
    /// Pins in this file, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { store: JsonFile::new(path.into(), MAX_FILE_BYTES) }
    }

    /// The definitions that are held of a plugin, as they were last seen.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or understood.
    pub fn held(&self, plugin: &str, named_in: &Path) -> Result<Vec<HeldDefinition>, PinError> {
        let mut content = self.read()?;
        let Some(pinned) = content.of(plugin, &real_or_absolute(named_in)) else {
            return Ok(Vec::new());
        };
        let pinned = &*pinned;
        let held = pinned.definitions.iter().flat_map(|(kind, pins)| {
            pins.iter().filter_map(|(name, pin)| pinned.held_definition(*kind, name, pin))
        });
        Ok(held.collect())
    }

    /// Accepts definitions as they are here; what was seen since is held all the same.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn accept(&self, named_in: &Path, definitions: &[HeldDefinition]) -> Result<(), PinError> {
        let named_in = real_or_absolute(named_in);
        self.change(|content| {
            for HeldDefinition { plugin, kind, name, seen, .. } in definitions {
                let Some(pinned) = content.of(plugin, &named_in) else { continue };
                let pins = pinned.definitions.get_mut(kind);
                let Some(pin) = pins.and_then(|pins| pins.get_mut(name)) else { continue };
                pin.held.take_if(|held| held.sha256 == seen.sha256());
                pin.definition = KeptDefinition::new(seen, &mut ByteBudget(MAX_KEPT_BYTES));
                pinned.settle();
            }
        })
    }

    fn read(&self) -> Result<PinFileJson, PinError> {
        self.store.read().map_err(|error| self.error(error))
    }

    fn change(&self, change: impl Fn(&mut PinFileJson)) -> Result<(), PinError> {
        let changed = match self.store.change(&change) {
            Err(JsonFileError::Io(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.store.change(|content: &mut PinFileJson| {
                    // What names these names nothing any more.
                    content.pins.retain(|pinned| pinned.named_in.exists());
                    change(content);
                })
            }
            changed => changed,
        };
        changed.map_err(|error| self.error(error))
    }

    fn error(&self, error: JsonFileError) -> PinError {
        let path = self.store.path().to_path_buf();
        match error {
            JsonFileError::Unguarded(path) => {
                PinError::File(path, io::Error::other("others can write to it"))
            }
            JsonFileError::Io(error) => PinError::File(path, error),
            JsonFileError::Damaged(error) => PinError::Damaged(path, error),
        }
    }
}

impl Pins for PinFile {
    fn check(&self, seen: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
        let (found, changed) = self.read()?.see(seen);
        if changed {
            // Others may have written to it meanwhile.
            let changed = self.change(|content| drop(content.see(seen)));
            if let Err(error) = changed {
                tracing::warn!("new definitions are not pinned: {}", chain(&error));
            }
        }
        Ok(found)
    }
}

impl PinFileJson {
    fn of(&mut self, plugin: &str, named_in: &Path) -> Option<&mut PluginPins> {
        let mut pinned = self.pins.iter_mut();
        pinned.find(|pinned| pinned.plugin == plugin && pinned.named_in == named_in)
    }

    /// Pins what is new. Gives what is not what it was, and whether there is anything to be written.
    fn see(&mut self, seen: &[ObservedDefinitions]) -> (PinCheck, bool) {
        let mut found = PinCheck::default();
        let mut changed = false;
        for seen in seen.iter().filter(|seen| !seen.definitions.is_empty()) {
            let ObservedDefinitions { plugin, named_in, server, .. } = seen;
            if self.of(plugin, named_in).is_none() {
                self.pins.push(PluginPins {
                    plugin: plugin.clone(),
                    named_in: named_in.clone(),
                    server: server.clone(),
                    seen_server: None,
                    definitions: BTreeMap::new(),
                });
            }
            let pinned = self.of(plugin, named_in).expect("it is there by now");
            changed |= pinned.see(seen, &mut found.unstable);
            let pinned = &*pinned;
            let pins = pinned.definitions.get(&seen.kind).into_iter().flatten();
            let there = pins.filter(|(name, _)| seen.definitions.contains_key(*name));
            let held = there.filter_map(|(name, pin)| pinned.held_definition(seen.kind, name, pin));
            found.held.extend(held);
        }
        // A server is another one for all that it says, which is told in parts.
        for seen in seen {
            if let Some(pinned) = self.of(&seen.plugin, &seen.named_in) {
                changed |= pinned.settle();
            }
        }
        (found, changed)
    }
}

impl PluginPins {
    /// Pins what is new, and gives whether anything is.
    fn see(&mut self, seen: &ObservedDefinitions, unstable: &mut Vec<UnstablePart>) -> bool {
        let is_same_server = self.server == seen.server;
        let mut changed = false;
        let seen_server = (!is_same_server).then(|| seen.server.clone());
        if self.seen_server != seen_server {
            self.seen_server = seen_server;
            changed = true;
        }
        let all = self.definitions.values().flat_map(BTreeMap::values);
        let mut room =
            ByteBudget(MAX_KEPT_BYTES_PER_PLUGIN.saturating_sub(all.map(Pin::length).sum()));
        let pins = self.definitions.entry(seen.kind).or_default();
        for (name, definition) in &seen.definitions {
            match pins.entry(name.clone()) {
                Entry::Vacant(pin) => {
                    pin.insert(Pin::new(definition, &mut room));
                    changed = true;
                }
                Entry::Occupied(mut pin) => {
                    let (is_new, places) = pin.get_mut().see(definition, is_same_server, &mut room);
                    changed |= is_new;
                    unstable.extend(places.into_iter().map(|place| UnstablePart {
                        plugin: seen.plugin.clone(),
                        kind: seen.kind,
                        name: name.clone(),
                        place,
                    }));
                }
            }
        }
        if seen.is_whole {
            let last = pins.values().filter_map(|pin| pin.gone).max().unwrap_or_default();
            for (name, pin) in pins.iter_mut() {
                if pin.gone.is_none() && !seen.definitions.contains_key(name) {
                    pin.gone = Some(last + 1);
                    changed = true;
                }
            }
        }
        changed |= forget(pins);
        changed
    }

    /// A definition that is held, if this one is. What varies is compared only with another server's, and there not
    /// where it is known to vary.
    fn held_definition(
        &self,
        kind: DefinitionKind,
        name: &str,
        pin: &Pin,
    ) -> Option<HeldDefinition> {
        let seen = pin.held.as_ref()?.definition();
        let pinned = pin.definition.definition();
        let is_same_server = self.seen_server.is_none();
        let is_left_out =
            |place: &String| is_same_server || pin.unstable.contains(&unstable_place(place));
        let varying = varying(pinned.json(), seen.json()).filter(is_left_out).collect();
        let (plugin, name) = (self.plugin.clone(), name.to_string());
        Some(HeldDefinition { plugin, kind, name, pinned, seen, varying })
    }

    /// Where nothing is held, what was seen last is the server that the pins are of. Gives whether it
    /// was another one.
    fn settle(&mut self) -> bool {
        let mut all = self.definitions.values().flat_map(BTreeMap::values);
        if all.any(|pin| pin.held.is_some() && pin.gone.is_none()) {
            return false;
        }
        match self.seen_server.take() {
            Some(server) => {
                self.server = server;
                true
            }
            None => false,
        }
    }
}

/// Forgets the definitions that went first, where too many have gone. Gives whether there are any.
fn forget(pins: &mut BTreeMap<String, Pin>) -> bool {
    let gone = pins.iter().filter_map(|(name, pin)| Some((pin.gone?, name.clone())));
    let mut gone: Vec<(u64, String)> = gone.collect();
    gone.sort_unstable();
    let too_many = gone.len().saturating_sub(MAX_GONE);
    for (_, name) in &gone[..too_many] {
        pins.remove(name);
    }
    too_many > 0
}

/// How much more is kept of the definitions of a plugin, in bytes.
struct ByteBudget(usize);

impl KeptDefinition {
    fn new(definition: &McpDefinition, room: &mut ByteBudget) -> Self {
        let json = definition.short(MAX_KEPT_BYTES.min(room.0));
        room.0 = room.0.saturating_sub(json.to_string().len());
        let (sha256, firm_sha256) = (definition.sha256(), definition.firm_sha256());
        Self { sha256: sha256.into(), firm_sha256: firm_sha256.into(), json }
    }

    fn definition(&self) -> McpDefinition {
        McpDefinition::kept(&self.sha256, &self.firm_sha256, &self.json)
    }
}

impl Pin {
    fn new(definition: &McpDefinition, room: &mut ByteBudget) -> Self {
        let definition = KeptDefinition::new(definition, room);
        Self { definition, unstable: BTreeSet::new(), held: None, gone: None }
    }

    /// Gives whether anything is new, and the places that were found to vary just now.
    fn see(
        &mut self,
        seen: &McpDefinition,
        is_same_server: bool,
        room: &mut ByteBudget,
    ) -> (bool, Vec<String>) {
        let mut changed = self.gone.take().is_some();
        let mut found = Vec::new();
        let is_held = match self.places(seen) {
            DefinitionDiff::Nowhere => false,
            DefinitionDiff::Firmly => true,
            DefinitionDiff::Perhaps(places) => {
                let new = places.difference(&self.unstable);
                let new: Vec<String> = new.cloned().collect();
                if is_same_server {
                    let room = MAX_UNSTABLE.saturating_sub(self.unstable.len());
                    found = new.into_iter().take(room).collect();
                    self.unstable.extend(found.iter().cloned());
                    changed |= !found.is_empty();
                    false
                } else {
                    !new.is_empty()
                }
            }
        };
        let known = self.held.as_ref().map(|held| &*held.sha256);
        match is_held {
            true if known == Some(seen.sha256()) => {}
            true => {
                self.held = Some(KeptDefinition::new(seen, room));
                changed = true;
            }
            false => changed |= self.held.take().is_some(),
        }
        (changed, found)
    }

    /// Where it differs.
    fn places(&self, seen: &McpDefinition) -> DefinitionDiff {
        if self.definition.sha256 == seen.sha256() {
            return DefinitionDiff::Nowhere;
        }
        if self.definition.firm_sha256 != seen.firm_sha256() {
            return DefinitionDiff::Firmly;
        }
        // Of what is long, a part that holds the difference.
        let changes = changes(&self.definition.json, &seen.short(MAX_KEPT_BYTES));
        let places = changes.into_iter().map(|change| unstable_place(&change.place));
        DefinitionDiff::Perhaps(places.collect())
    }

    /// What is kept of definitions here, in bytes.
    fn length(&self) -> usize {
        let kept = [&self.definition].into_iter().chain(&self.held);
        kept.map(|kept| kept.json.to_string().len()).sum()
    }
}

/// The place of an unstable part as it is remembered.
fn unstable_place(place: &str) -> String {
    match cut(place, MAX_POINTER_LENGTH) {
        whole if whole.len() == place.len() => whole.into(),
        cut => format!("{cut}…"),
    }
}

/// Where a definition differs from the one that was pinned.
enum DefinitionDiff {
    Nowhere,
    /// In what is firm.
    Firmly,
    /// Only in these places, whose values may vary.
    Perhaps(BTreeSet<String>),
}

#[cfg(test)]
mod tests {
    use super::super::definition::short;
    use super::super::{PinMode, PinSubject};
    use super::*;
    use serde_json::{Map, json};
    use tenon_types::ToolDefinition;

    const NAMED_IN: &str = "/no/such/tenon.toml";

    fn server(named_in: &Path, version: &str) -> PinSubject {
        PinSubject {
            plugin: "p".into(),
            named_in: named_in.into(),
            server: version.into(),
            mode: PinMode::Hold,
        }
    }

    fn seen_of(version: &str, tools: &[ToolDefinition]) -> [ObservedDefinitions; 2] {
        server(Path::new(NAMED_IN), version).registered(tools.iter(), "")
    }

    fn seen(tools: &[(&str, &str)]) -> [ObservedDefinitions; 2] {
        let tools: Vec<ToolDefinition> = tools
            .iter()
            .map(|(name, about)| ToolDefinition::new(*name, *about, &json!({ "type": "object" })))
            .collect();
        seen_of("1", &tools)
    }

    /// The names of those that are held when these are seen.
    fn held(file: &PinFile, tools: &[(&str, &str)]) -> Vec<String> {
        let found = file.check(&seen(tools)).unwrap();
        assert_eq!(found.unstable, []);
        found.held.into_iter().map(|held| held.name).collect()
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
        // One that says something else at each start is held at each.
        for about in ["4", "5", "6", "4"] {
            check(&[("a", about)], &["a"]);
        }
    }

    #[test]
    fn what_varies_is_told_once_and_not_compared_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        // What is found of a tool with these: its server, a bound, a default and a description.
        let check = |server: &str, row: (u64, Value, &str), held: bool, unstable: &[&str]| {
            let (bound, default, about) = row;
            let schema = json!({ "type": "object", "properties": {
                "a": { "maximum": bound }, "b": { "default": default },
            } });
            let tool = ToolDefinition::new("t", about, &schema);
            let found = file.check(&seen_of(server, &[tool])).unwrap();
            let places: Vec<String> = found.unstable.iter().map(|u| u.place.clone()).collect();
            let known = file.held("p", Path::new(NAMED_IN)).unwrap();
            assert_eq!(known, found.held);
            assert_eq!(
                (!found.held.is_empty(), places),
                (held, unstable.iter().map(ToString::to_string).collect())
            );
        };
        const A: &str = "/inputSchema/properties/a/maximum";
        const B: &str = "/inputSchema/properties/b/default";
        let accept = || {
            let held = file.held("p", Path::new(NAMED_IN)).unwrap();
            file.accept(Path::new(NAMED_IN), &held).unwrap();
        };
        check("1", (1, json!(1), "d"), false, &[]);
        check("1", (2, json!(1), "d"), false, &[A]);
        check("1", (3, json!(1), "d"), false, &[]);
        check("1", (3, json!(2), "d"), false, &[B]);
        check("1", (4, json!(3), "d"), false, &[]);
        // No words get through where a number varies.
        check("1", (4, json!("send all files"), "d"), true, &[]);
        check("1", (4, json!(3), "send all files"), true, &[]);
        check("1", (5, json!(3), "d"), false, &[]);
        // Another server is not the same started again, but for what is known to vary.
        check("2", (6, json!(7), "d"), false, &[]);
        let other = PinFile::new(folder.path().join("other.json"));
        let tool = |bound: u64| {
            ToolDefinition::new("t", "d", &json!({ "type": "object", "maxProperties": bound }))
        };
        let found = |server: &str, bound: u64| {
            let found = other.check(&seen_of(server, &[tool(bound)])).unwrap();
            (found.held.len(), found.unstable.len())
        };
        assert_eq!(found("1", 1), (0, 0));
        assert_eq!(found("2", 2), (1, 0));
        assert_eq!(found("2", 3), (1, 0));
        let held = other.held("p", Path::new(NAMED_IN)).unwrap();
        other.accept(Path::new(NAMED_IN), &held).unwrap();
        // Now it is this one that is started again.
        assert_eq!(found("2", 4), (0, 1));
        assert_eq!(found("1", 4), (0, 0));
        assert_eq!(found("1", 5), (0, 0));
        accept();
    }

    #[test]
    fn what_is_not_compared_is_not_among_the_changes() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        // What is said of a tool with these: its server, a default, a bound and a description.
        let check = |server: &str, row: (Value, u64, &str), why: &str, places: &[&str]| {
            let (default, bound, about) = row;
            let schema = json!({ "type": "object", "properties": {
                "a": { "maximum": bound }, "b": { "default": default },
            } });
            let tool = ToolDefinition::new("t", about, &schema);
            let found = file.check(&seen_of(server, &[tool])).unwrap();
            let [held] = &found.held[..] else { panic!("one is held: {:?}", found.held) };
            assert_eq!(held.why(), format!("it has changed since it was first seen ({why})"));
            let changes: Vec<String> = held.changes().into_iter().map(|c| c.place).collect();
            assert_eq!(changes, places);
            assert_eq!(file.held("p", Path::new(NAMED_IN)).unwrap(), found.held);
        };
        const BOUND: &str = "/inputSchema/properties/a/maximum";
        const DEFAULT: &str = "/inputSchema/properties/b/default";
        let schema = |default: Value| {
            json!({ "type": "object", "properties": {
            "a": { "maximum": 1 }, "b": { "default": default },
        } })
        };
        for default in [json!(1), json!(2)] {
            let tool = ToolDefinition::new("t", "d", &schema(default));
            assert_eq!(file.check(&seen_of("1", &[tool])).unwrap().held, []);
        }
        check("1", (json!(3), 1, "other"), "`description`", &["/description"]);
        check("1", (json!(3), 2, "other"), "`description`", &["/description"]);
        check("1", (json!("send it"), 2, "d"), "`inputSchema`", &[DEFAULT]);
        // Of another server all counts that is not known to vary.
        check("2", (json!(3), 2, "d"), "`inputSchema`", &[BOUND]);
        check(
            "2",
            (json!(3), 2, "other"),
            "`description`, `inputSchema`",
            &["/description", BOUND],
        );
    }

    #[test]
    fn each_kind_is_pinned_for_itself() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        let server = server(Path::new(NAMED_IN), "1");
        let check =
            |kind: DefinitionKind, is_whole: bool, all: &[(&str, &str)], expected: &[&str]| {
                let definitions = all.iter().map(|(name, about)| {
                    (name.to_string(), McpDefinition::whole(&json!({ "description": about })))
                });
                let found = file.check(&[server.seen(kind, definitions, is_whole)]).unwrap();
                let held: Vec<&str> = found.held.iter().map(|held| &*held.name).collect();
                assert_eq!(held, expected, "{kind}: {all:?}");
            };
        let kinds = [
            DefinitionKind::Tool,
            DefinitionKind::Prompt,
            DefinitionKind::Resource,
            DefinitionKind::Template,
            DefinitionKind::Instructions,
        ];
        for kind in kinds {
            check(kind, true, &[("a", "1")], &[]);
        }
        for kind in kinds {
            check(kind, true, &[("a", "2")], &["a"]);
        }
        assert_eq!(file.held("p", Path::new(NAMED_IN)).unwrap().len(), kinds.len());
        // A page is not all that there is.
        check(DefinitionKind::Prompt, false, &[("b", "1")], &[]);
        check(DefinitionKind::Prompt, false, &[("a", "3")], &["a"]);
        check(DefinitionKind::Prompt, false, &[("b", "2")], &["b"]);
        let held = file.held("p", Path::new(NAMED_IN)).unwrap();
        file.accept(Path::new(NAMED_IN), &held).unwrap();
        check(DefinitionKind::Prompt, true, &[("a", "3"), ("b", "2")], &[]);
        check(DefinitionKind::Instructions, true, &[("a", "2")], &[]);
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let definition =
            |schema: Value| McpDefinition::of_tool(&ToolDefinition::new("t", "d", &schema));
        let held = HeldDefinition {
            plugin: "p".into(),
            kind: DefinitionKind::Tool,
            name: "t".into(),
            pinned: definition(
                json!({ "type": "object", "properties": { "a/b": { "type": "string" } } }),
            ),
            seen: definition(json!({ "properties": { "c": {} }, "type": "object" })),
            varying: BTreeSet::new(),
        };
        let places: Vec<String> = held.changes().into_iter().map(|change| change.place).collect();
        assert_eq!(places, ["/inputSchema/properties/a~1b", "/inputSchema/properties/c"]);
        assert_eq!(held.why(), "it has changed since it was first seen (`inputSchema`)");
        let pinned = held.pinned.sha256().to_string();
        let same = json!({ "properties": { "a/b": { "type": "string" } }, "type": "object" });
        assert_eq!(definition(same).sha256(), pinned);
    }

    #[test]
    fn what_is_long_is_cut_and_every_difference_is_still_there() {
        let long = "x".repeat(2 * MAX_KEPT_BYTES);
        let check = |before: Value, after: Value, place: &str| {
            let cut = |json: &Value| {
                let short = short(json, MAX_KEPT_BYTES);
                assert!(short.to_string().len() <= MAX_KEPT_BYTES, "{short}");
                short
            };
            let changes = changes(&cut(&before), &cut(&after));
            let places: Vec<String> = changes.into_iter().map(|c| c.place).collect();
            assert_eq!(places, [place]);
        };
        let text = |last: &str| json!({ "name": "n", "description": format!("{long}{last}") });
        check(text("1"), text("2"), "/description");
        let list = |last: &str| json!({ "inputSchema": { "enum": [long, last] } });
        check(list("1"), list("2"), "/inputSchema/enum");
        let wide = |last: &str| {
            let members = (0..MAX_KEPT_BYTES).map(|number| (number.to_string(), Value::from(last)));
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
        let (first, second) = (
            "1".repeat(MAX_KEPT_BYTES_PER_PLUGIN / 999),
            "2".repeat(MAX_KEPT_BYTES_PER_PLUGIN / 999),
        );
        for start in 0..4 {
            check(start * 1_000..(start + 1) * 1_000, &first, 0);
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 2 * MAX_KEPT_BYTES_PER_PLUGIN as u64);
        let content: PinFileJson = file.read().unwrap();
        assert_eq!(content.pins[0].definitions[&DefinitionKind::Tool].len(), 1_000 + MAX_GONE);
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
    fn a_file_that_is_full_keeps_what_it_has_and_makes_room_for_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let file = PinFile { store: JsonFile::new(path("pins.json"), 4 << 10) };
        let check = |named_in: &str, about: &str, expected: usize| {
            let definition = ToolDefinition::new("a", about, &json!({ "type": "object" }));
            let seen = server(&path(named_in), "1").registered([&definition].into_iter(), "");
            assert_eq!(file.check(&seen).unwrap().held.len(), expected, "{named_in}");
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
    fn what_is_no_file_of_this_version_is_neither_believed_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pins.json");
        for text in ["{}", "{\"pins\": []}", "{\"version\": 2, \"pins\": []}", "{\"version\": 1"] {
            std::fs::write(&path, text).unwrap();
            let file = PinFile::new(&path);
            assert!(matches!(file.check(&seen(&[("a", "1")])), Err(PinError::Damaged(..))));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn what_went_later_has_a_larger_number() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        for there in [&[("z", "1"), ("a", "1"), ("m", "1")][..], &[("a", "1"), ("m", "1")]] {
            held(&file, there);
        }
        held(&file, &[("m", "1")]);
        let content: PinFileJson = file.read().unwrap();
        let pins = &content.pins[0].definitions[&DefinitionKind::Tool];
        assert_eq!(["z", "a", "m"].map(|name| pins[name].gone), [Some(1), Some(2), None]);
    }

    #[test]
    fn a_long_place_is_cut_and_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let file = PinFile::new(folder.path().join("pins.json"));
        let tool = |bound: u64| {
            let properties = json!({ "x".repeat(2 * MAX_POINTER_LENGTH): { "maximum": bound } });
            let schema = json!({ "type": "object", "properties": properties });
            seen_of("1", &[ToolDefinition::new("t", "d", &schema)])
        };
        assert_eq!(file.check(&tool(1)).unwrap().unstable, []);
        let unstable = file.check(&tool(2)).unwrap().unstable;
        let places: Vec<&str> = unstable.iter().map(|part| &*part.place).collect();
        let begins = "/inputSchema/properties/";
        assert_eq!(places, [format!("{begins}{}…", "x".repeat(MAX_POINTER_LENGTH - begins.len()))]);
    }
}
