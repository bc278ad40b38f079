//! Definitions of MCP servers as they were when they were first seen.
//!
//! A server can say of its tools what it likes, each time anew, and a model believes it. So what a
//! tool was when somebody first let it in is pinned; a tool that says something else later is held
//! until somebody has seen what, and accepts it. Which tools are held is decided when plugins are put
//! together; prompts, resources and resource templates are compared when they are listed, as nobody
//! knows them before. A server may list others at any time: only what it says of one is compared. What
//! is in a resource is never: to tell that is what a server is for.
//!
//! Here is what is asked and answered. [`definition`] has what is compared, and [`PinFile`] remembers it.

pub mod definition;
mod file;

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tenon_types::ToolDefinition;
use tenon_types::text::{cut, one_line};

pub use definition::{ChangedPart, McpDefinition};
pub use file::PinFile;
#[cfg(any(test, fuzzing, feature = "testing"))]
pub use file::fuzz::pin_file;

use crate::diagnostic::chain;
use crate::files::real_or_absolute;

/// What becomes of a definition that is not what it was when it was first seen: `pins` of an MCP
/// server.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum PinMode {
    /// It is not looked at.
    Off,
    /// It is used as it is now, with a warning.
    Warn,
    /// It is held until somebody accepts it.
    #[default]
    Hold,
}

/// Stores the definitions of MCP servers' tools, prompts, resource templates and instructions when they are
/// first seen.
pub trait Pins: Send + Sync + 'static {
    /// Returns the definitions that have changed, which are then held, and stores new ones. Called whenever a
    /// server registers or lists something, and on each reload, on a thread where it may block. The default stores nothing and holds nothing.
    ///
    /// # Errors
    ///
    /// If the earlier definitions cannot be read: then all of them are held.
    fn check(&self, seen: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
        let _ = seen;
        Ok(PinCheck::default())
    }
}

/// What is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DefinitionKind {
    /// A tool, by its name.
    Tool,
    /// A prompt, by its name.
    Prompt,
    /// A resource, by its URI: what is said of it, and not what is in it.
    Resource,
    /// A resource template, by its text.
    Template,
    /// What the server says of itself to models. There is one, without a name.
    Instructions,
}

impl DefinitionKind {
    /// Describes the definition of this kind and name, for messages.
    pub fn describe(self, name: &str) -> String {
        let name = one_line(cut(name, 128));
        match self {
            Self::Tool => format!("the tool \"{name}\""),
            Self::Prompt => format!("the prompt \"{name}\""),
            Self::Resource => format!("the resource \"{name}\""),
            Self::Template => format!("the resource template \"{name}\""),
            Self::Instructions => "its instructions".into(),
        }
    }
}

impl fmt::Display for DefinitionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "template",
            Self::Instructions => "instructions",
        })
    }
}

/// The definitions of one kind that a plugin has just given.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ObservedDefinitions {
    /// The plugin's id.
    pub plugin: String,
    /// The configuration file or manifest that names it.
    pub named_in: PathBuf,
    /// The SHA-256 of how its server is started or reached, and of the version that it says it has.
    pub server: String,
    /// Their kind.
    pub kind: DefinitionKind,
    /// What the server says of each, by its own name.
    pub definitions: BTreeMap<String, McpDefinition>,
    /// Whether these are all of the kind.
    pub is_whole: bool,
}

/// What is found out about definitions that were seen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PinCheck {
    /// Those that are not what they were.
    pub held: Vec<HeldDefinition>,
    /// Parts that were found just now to vary from one start of the same server to the next. They
    /// are not compared any more.
    pub unstable: Vec<UnstablePart>,
}

impl PinCheck {
    /// These are held, and nothing was found to vary.
    pub fn held(held: Vec<HeldDefinition>) -> Self {
        Self { held, unstable: Vec::new() }
    }
}

/// A definition that is not what it was when it was first seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldDefinition {
    /// The plugin's id.
    pub plugin: String,
    /// What is defined.
    pub kind: DefinitionKind,
    /// Its name, as the plugin has it.
    pub name: String,
    /// What it was.
    pub pinned: McpDefinition,
    /// What it is.
    pub seen: McpDefinition,
    /// The parts that differ and are not compared, as values there vary from one start to the next: JSON Pointers.
    pub varying: BTreeSet<String>,
}

/// A part of a definition that varies from one start of the same server to the next, and can tell a
/// model nothing: see [`McpDefinition::firm_sha256`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnstablePart {
    /// The plugin's id.
    pub plugin: String,
    /// What is defined.
    pub kind: DefinitionKind,
    /// Its name, as the plugin has it.
    pub name: String,
    /// The part, as a JSON Pointer.
    pub place: String,
}

/// Why it is not known what definitions were. Then all of them are held.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PinError {
    /// The file cannot be read or written.
    #[error("the pins in {} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// The file is not what this host writes.
    #[error("{} is not a pin file of this version; move it away to start over", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
    /// Another keeper of pins has another reason.
    #[error("{0}")]
    Other(String),
}

impl HeldDefinition {
    /// In what it differs, but for what is not compared.
    pub fn changes(&self) -> Vec<ChangedPart> {
        let mut changes = definition::changes(self.pinned.json(), self.seen.json());
        changes.retain(|change| !self.varying.contains(&change.place));
        changes
    }

    /// That it does, in words.
    fn why(&self) -> String {
        let changes = self.changes();
        let members = changes.iter().filter_map(|change| change.place.split('/').nth(1));
        let changed: Vec<&str> = members.collect::<BTreeSet<_>>().into_iter().collect();
        if self.kind == DefinitionKind::Instructions {
            return "they are not what they were when they were first seen".into();
        }
        let changed = match changed.is_empty() {
            true => String::new(),
            false => format!(" (`{}`)", changed.join("`, `")),
        };
        format!("it has changed since it was first seen{changed}")
    }
}

impl UnstablePart {
    /// Describes the change, for messages.
    pub fn describe(&self) -> String {
        format!(
            "{} has another value in `{}` than before; values there are not compared any more",
            self.kind.describe(&self.name),
            one_line(cut(&self.place, 200)),
        )
    }
}

/// A server whose definitions are pinned.
#[derive(Debug, Clone)]
pub struct PinSubject {
    /// The plugin.
    pub plugin: String,
    /// The file that names it.
    pub named_in: PathBuf,
    /// See [`ObservedDefinitions::server`].
    pub server: String,
    /// What becomes of what has changed.
    pub mode: PinMode,
}

impl PinSubject {
    /// What it has just said.
    pub fn seen(
        &self,
        kind: DefinitionKind,
        definitions: impl Iterator<Item = (String, McpDefinition)>,
        is_whole: bool,
    ) -> ObservedDefinitions {
        ObservedDefinitions {
            plugin: self.plugin.clone(),
            named_in: real_or_absolute(&self.named_in),
            server: self.server.clone(),
            kind,
            definitions: definitions.collect(),
            is_whole,
        }
    }

    /// What it has just registered: its tools, and what it says of itself. That it says nothing is pinned, too:
    /// a model may be told nothing else later.
    pub fn registered<'a>(
        &self,
        tools: impl Iterator<Item = &'a ToolDefinition>,
        instructions: &str,
    ) -> [ObservedDefinitions; 2] {
        let tools = tools.map(|tool| (tool.name.clone(), McpDefinition::of_tool(tool)));
        let instructions = (String::new(), McpDefinition::of_instructions(instructions));
        [
            self.seen(DefinitionKind::Tool, tools, true),
            self.seen(DefinitionKind::Instructions, [instructions].into_iter(), true),
        ]
    }
}

/// Which definitions are not what they were, and what becomes of them.
#[derive(Debug, Clone, Default)]
pub struct Quarantine {
    /// Why, by plugin, kind and name.
    differing: Arc<HashMap<(String, DefinitionKind, String), String>>,
    modes: Arc<HashMap<String, PinMode>>,
    /// Why nothing is known of these plugins.
    unknown: Option<Arc<str>>,
    unstable: Arc<Vec<UnstablePart>>,
}

/// A definition that is not what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinMismatch {
    /// What has changed.
    pub why: String,
    /// Whether it is used all the same.
    pub is_warning: bool,
}

impl Quarantine {
    /// What a keeper of pins says of what these servers have said.
    pub fn ask(pins: &dyn Pins, servers: &[(PinMode, Vec<ObservedDefinitions>)]) -> Self {
        let compared = servers.iter().filter(|(mode, _)| *mode != PinMode::Off);
        let seen: Vec<ObservedDefinitions> =
            compared.flat_map(|(_, seen)| seen.iter().cloned()).collect();
        if seen.is_empty() {
            return Self::default();
        }
        match pins.check(&seen) {
            Ok(PinCheck { held, unstable }) => {
                let differing = held.into_iter().map(|held| {
                    let why = held.why();
                    ((held.plugin, held.kind, held.name), why)
                });
                let differing = Arc::new(differing.collect());
                let modes = modes(servers);
                Self { differing, modes, unknown: None, unstable: Arc::new(unstable) }
            }
            Err(error) => Self::unknown(servers, &chain(&error)),
        }
    }

    /// What holds all that these servers have said, as nothing is known of it.
    pub fn unknown(servers: &[(PinMode, Vec<ObservedDefinitions>)], why: &str) -> Self {
        let modes = modes(servers);
        let why = format!("its earlier definition is not known: {why}");
        let unknown = (!modes.is_empty()).then(|| why.into());
        Self { modes, unknown, ..Self::default() }
    }

    /// One tool of a plugin, held.
    #[cfg(any(test, feature = "testing"))]
    #[doc(hidden)]
    pub fn of_tool(plugin: &str, name: &str, why: &str) -> Self {
        let key = (plugin.to_string(), DefinitionKind::Tool, name.to_string());
        Self {
            differing: Arc::new([(key, why.to_string())].into()),
            modes: Arc::new([(plugin.to_string(), PinMode::Hold)].into()),
            ..Self::default()
        }
    }

    /// What there is against a definition.
    pub fn of(&self, plugin: &str, kind: DefinitionKind, name: &str) -> Option<PinMismatch> {
        // The common case is that there is nothing.
        if self.differing.is_empty() && self.unknown.is_none() {
            return None;
        }
        let is_warning = *self.modes.get(plugin)? == PinMode::Warn;
        let why = match &self.unknown {
            Some(why) => why.to_string(),
            None => self.differing.get(&(plugin.to_string(), kind, name.to_string()))?.clone(),
        };
        Some(PinMismatch { why, is_warning })
    }

    /// The same in a sentence: what it is about, and what becomes of it.
    pub fn told(
        &self,
        plugin: &str,
        kind: DefinitionKind,
        name: &str,
    ) -> Option<(PinMismatch, String)> {
        let hold = self.of(plugin, kind, name)?;
        let what = kind.describe(name);
        let said = match (hold.is_warning, kind) {
            (true, _) => format!("{what}: {}", hold.why),
            (false, DefinitionKind::Instructions) => format!("{what} are held: {}", hold.why),
            (false, _) => format!("{what} is held: {}", hold.why),
        };
        Some((hold, said))
    }

    /// What of a plugin was found to vary, in words.
    pub fn unstable<'a>(&'a self, plugin: &'a str) -> impl Iterator<Item = String> + 'a {
        self.unstable.iter().filter(move |part| part.plugin == plugin).map(UnstablePart::describe)
    }
}

/// What shows and accepts the difference of a plugin's definitions.
pub fn remedy(plugin: &str) -> String {
    format!(
        "`tenon approve {plugin}` shows what has changed and accepts it; other hosts have pins of their own"
    )
}

/// How the definitions of each plugin are compared, where they are.
fn modes(servers: &[(PinMode, Vec<ObservedDefinitions>)]) -> Arc<HashMap<String, PinMode>> {
    let compared = servers.iter().filter(|(mode, _)| *mode != PinMode::Off);
    let modes =
        compared.flat_map(|(mode, seen)| seen.iter().map(move |seen| (seen.plugin.clone(), *mode)));
    Arc::new(modes.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Says this of whatever is seen, or that it knows nothing.
    struct StubPins(Option<PinCheck>);

    impl Pins for StubPins {
        fn check(&self, _: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
            self.0.clone().ok_or_else(|| PinError::Other("lost".into()))
        }
    }

    fn definition(text: &str) -> McpDefinition {
        McpDefinition::whole(&json!({ "description": text }))
    }

    fn held(plugin: &str, kind: DefinitionKind, name: &str) -> HeldDefinition {
        let (pinned, seen) = (definition("1"), definition("2"));
        let varying = BTreeSet::new();
        HeldDefinition { plugin: plugin.into(), kind, name: name.into(), pinned, seen, varying }
    }

    fn server(plugin: &str, mode: PinMode) -> PinSubject {
        let (named_in, server) = ("/no/such/tenon.toml".into(), "1".into());
        PinSubject { plugin: plugin.into(), named_in, server, mode }
    }

    fn ask(keeper: StubPins, servers: &[(&str, PinMode)]) -> Quarantine {
        let seen = servers.iter().map(|(plugin, mode)| {
            let definitions = [("t".to_string(), definition("2"))].into_iter();
            (*mode, vec![server(plugin, *mode).seen(DefinitionKind::Tool, definitions, true)])
        });
        Quarantine::ask(&keeper, &seen.collect::<Vec<_>>())
    }

    #[test]
    fn each_kind_has_words() {
        let check = |kind: DefinitionKind, name: &str, words: &str| {
            assert_eq!((kind.to_string(), kind.describe("n\n")), (name.into(), words.into()));
        };
        check(DefinitionKind::Tool, "tool", "the tool \"n\\n\"");
        check(DefinitionKind::Prompt, "prompt", "the prompt \"n\\n\"");
        check(DefinitionKind::Resource, "resource", "the resource \"n\\n\"");
        check(DefinitionKind::Template, "template", "the resource template \"n\\n\"");
        check(DefinitionKind::Instructions, "instructions", "its instructions");
        let remedy = remedy("p");
        assert!(remedy.starts_with("`tenon approve p` shows what has changed"), "{remedy}");
    }

    #[test]
    fn what_is_held_is_told_with_its_reason() {
        let part = |plugin: &str| UnstablePart {
            plugin: plugin.into(),
            kind: DefinitionKind::Tool,
            name: "t".into(),
            place: "/a".into(),
        };
        let all = vec![
            held("p", DefinitionKind::Tool, "t"),
            held("p", DefinitionKind::Instructions, ""),
            held("w", DefinitionKind::Prompt, "x"),
        ];
        let check = PinCheck { unstable: vec![part("p"), part("w")], ..PinCheck::held(all) };
        let servers = [("p", PinMode::Hold), ("w", PinMode::Warn)];
        let holds = ask(StubPins(Some(check)), &servers);
        let check =
            |plugin: &str, kind: DefinitionKind, name: &str, expected: Option<(bool, &str)>| {
                let told = holds.told(plugin, kind, name);
                let told = told.as_ref().map(|(hold, said)| (hold.is_warning, &**said));
                assert_eq!(told, expected, "{plugin} {kind} {name}");
            };
        let why = "it has changed since it was first seen (`description`)";
        let tool = format!("the tool \"t\" is held: {why}");
        check("p", DefinitionKind::Tool, "t", Some((false, &tool)));
        let prompt = format!("the prompt \"x\": {why}");
        check("w", DefinitionKind::Prompt, "x", Some((true, &prompt)));
        let instructions = "its instructions are held: they are not what they were when they were \
                            first seen";
        check("p", DefinitionKind::Instructions, "", Some((false, instructions)));
        check("p", DefinitionKind::Tool, "x", None);
        check("p", DefinitionKind::Prompt, "t", None);
        check("q", DefinitionKind::Tool, "t", None);
        let unstable: Vec<String> = holds.unstable("p").collect();
        let words = "the tool \"t\" has another value in `/a` than before; values there are not \
                     compared any more";
        assert_eq!(unstable, [words]);
        assert_eq!(holds.unstable("q").count(), 0);
        let same =
            HeldDefinition { pinned: definition("2"), ..held("p", DefinitionKind::Tool, "t") };
        assert_eq!(same.why(), "it has changed since it was first seen");
    }

    #[test]
    fn where_nothing_is_known_all_is_held_that_is_looked_at() {
        let of = |holds: &Quarantine, plugin: &str| {
            holds.of(plugin, DefinitionKind::Tool, "t").map(|hold| (hold.why, hold.is_warning))
        };
        let servers = [("p", PinMode::Hold), ("w", PinMode::Warn), ("o", PinMode::Off)];
        let holds = ask(StubPins(None), &servers);
        let why = "its earlier definition is not known: lost".to_string();
        assert_eq!(of(&holds, "p"), Some((why.clone(), false)));
        assert_eq!(of(&holds, "w"), Some((why, true)));
        assert_eq!(of(&holds, "o"), None);
        let off = ask(StubPins(None), &[("o", PinMode::Off)]);
        assert_eq!((off.unknown.clone(), of(&off, "o")), (None, None));
    }

    #[test]
    fn that_there_are_no_instructions_is_seen() {
        let seen = |instructions: &str| {
            let [_, seen] = server("p", PinMode::Hold).registered([].iter(), instructions);
            seen.definitions.into_values().next().expect("there is one")
        };
        assert_eq!(seen(""), seen(""));
        assert_ne!(seen(""), seen("i"));
    }
}
