//! Files of pins of any text, and servers that say anything.

use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{DefinitionKind, McpDefinition, ObservedDefinitions, PinFileJson};

/// What a server says at one time.
#[derive(Deserialize)]
#[serde(default)]
struct ServerListing {
    server: String,
    kind: DefinitionKind,
    definitions: BTreeMap<String, Value>,
    whole: bool,
}

impl Default for ServerListing {
    fn default() -> Self {
        let kind = DefinitionKind::Tool;
        Self { server: String::new(), kind, definitions: BTreeMap::new(), whole: false }
    }
}

/// Any text: a file, and after a line `---` what a server says, each time on a line. A file that is read is
/// the same when it is written and read again. What is said twice changes nothing the second
/// time, and what is held has a difference.
pub fn pin_file(text: &str) {
    let (file, steps) = text.split_once("\n---\n").unwrap_or((text, ""));
    let known = serde_json::from_str::<PinFileJson>(file).ok();
    if let Some(content) = &known {
        let written = written(content);
        let again: PinFileJson =
            serde_json::from_str(&written).expect("what was written can be read");
        assert_eq!(&again, content, "written as:\n{written}");
    }
    let seen = |step: ServerListing| ObservedDefinitions {
        plugin: "p".into(),
        named_in: PathBuf::from("/no/such/tenon.toml"),
        server: step.server,
        kind: step.kind,
        definitions: { step.definitions.into_iter() }
            .map(|(name, json)| (name, McpDefinition::whole(&json)))
            .collect(),
        is_whole: step.whole,
    };
    let steps: Vec<ObservedDefinitions> =
        steps.lines().filter_map(|line| serde_json::from_str(line).ok()).map(seen).collect();
    // What is in a file may be anything: its digests need not be those of what is beside them.
    if let Some(mut content) = known {
        steps.iter().for_each(|step| see(&mut content, step, false));
    }
    let mut content = PinFileJson::default();
    steps.iter().for_each(|step| see(&mut content, step, true));
}

fn see(content: &mut PinFileJson, seen: &ObservedDefinitions, is_ours: bool) {
    let seen = std::slice::from_ref(seen);
    let before = written(content);
    let (first, changed) = content.see(seen);
    let after = written(content);
    assert!(changed || before == after, "it says that nothing has changed:\n{before}\n{after}");
    let (second, changed) = content.see(seen);
    assert!(!changed, "the second time something changes:\n{after}\n{}", written(content));
    assert_eq!(written(content), after);
    assert_eq!(second.held, first.held);
    assert_eq!(second.unstable, []);
    for held in first.held.iter().filter(|_| is_ours) {
        assert!(!held.changes().is_empty(), "{held:?} has no difference");
    }
    let read: PinFileJson = serde_json::from_str(&after).expect("what was written can be read");
    assert_eq!(&read, content, "written as:\n{after}");
}

fn written(content: &PinFileJson) -> String {
    serde_json::to_string_pretty(content).expect("it can be written")
}
