//! Accepting what MCP servers say that is not what they said when they were first seen.

use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use tenon_host::services::{ChangedPart, DefinitionKind, HeldDefinition, PinError, PinFile};
use tenon_host::types::text::one_line;

use crate::approval::is_terminal;
use crate::error::Error;
use crate::hint::as_typed;
use crate::open::FoundPlugins;
use crate::{Common, output};

/// How many changes of a definition are shown, and how much of one, in characters.
const MAX_CHANGES: usize = 24;
const MAX_VALUE_LENGTH: usize = 400;

/// Shows what has changed in the definitions of servers, asks, and accepts it. Gives a row for each
/// plugin that has some to be accepted. `command` does so without asking.
pub(crate) async fn approve(
    common: &Common,
    found: &FoundPlugins,
    plugins: &[String],
    yes: bool,
    command: &str,
) -> Result<Vec<Value>, Error> {
    let Some(file) = found.pins() else { return Ok(Vec::new()) };
    let mut held = Vec::new();
    for candidate in &found.discovery.candidates {
        // Without names, all are meant.
        if plugins.is_empty() || plugins.iter().any(|id| id == candidate.id()) {
            let of = file.held(candidate.id(), candidate.named_in()).map_err(error)?;
            if !of.is_empty() {
                held.push((candidate, of));
            }
        }
    }
    let nobody = !yes && !is_terminal();
    let mut rows = Vec::new();
    for (candidate, definitions) in &held {
        // Who is asked sees it with the question.
        if (nobody || yes) && !common.json {
            output::write(shown(candidate.id(), definitions))?;
        }
        if nobody {
            continue;
        }
        let accepted = yes || ask(shown(candidate.id(), definitions)).await;
        if accepted {
            file.accept(candidate.named_in(), definitions).map_err(error)?;
        }
        if !common.json {
            let state = if accepted { "accepted" } else { "still held" };
            let names: Vec<String> = definitions.iter().map(named).collect();
            output::line(format!("plugin \"{}\": {state}: {}", candidate.id(), names.join(", ")))?;
        }
        let definitions = definitions
            .iter()
            .map(|held| json!({ "kind": held.kind, "name": held.name, "changes": held.changes() }));
        rows.push(json!({
            "plugin": candidate.id(),
            "approved": accepted,
            "definitions": definitions.collect::<Vec<Value>>(),
        }));
    }
    if nobody && !held.is_empty() {
        let plugins = held.iter().map(|(candidate, _)| candidate.id().to_string()).collect();
        return Err(Error::Unasked { plugins, command: command.to_string() });
    }
    Ok(rows)
}

pub(crate) fn error(error: PinError) -> Error {
    Error::Host(tenon_config::diagnostic::chain(&error))
}

/// Shows it and asks. Who interrupts the command is not waited for.
async fn ask(shown: String) -> bool {
    let asked = tokio::task::spawn_blocking(move || {
        // Where standard error is closed there is nobody to ask.
        let _ = io::stderr().write_all(format!("{shown}accept it? [y]es, [n]o: ").as_bytes());
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line);
        read.is_ok() && matches!(line.trim().to_lowercase().as_str(), "y" | "yes")
    });
    asked.await.unwrap_or(false)
}

/// What has changed, as people see it.
fn shown(plugin: &str, definitions: &[HeldDefinition]) -> String {
    let mut text = format!("plugin \"{plugin}\" has changed its definitions:\n");
    for held in definitions {
        text.push_str(&format!("  {}\n", named(held)));
        let changes = held.changes();
        for ChangedPart { place, before, after } in changes.iter().take(MAX_CHANGES) {
            text.push_str(&format!("    {}\n", one_line(place)));
            let (before, after) = (before.as_ref().map(words), after.as_ref().map(words));
            let same = same_start(before.as_deref(), after.as_deref());
            for (sign, words) in [('-', before), ('+', after)] {
                let Some(words) = words else { continue };
                text.push_str(&format!("      {sign} {}\n", part(&words, same)));
            }
        }
        if changes.len() > MAX_CHANGES {
            let more = changes.len() - MAX_CHANGES;
            let more = format!("    and {more} more; `tenon approve {plugin} --json` shows all\n");
            text.push_str(&as_typed(&more));
        }
    }
    text
}

/// What is defined, in a line.
fn named(held: &HeldDefinition) -> String {
    match held.kind {
        DefinitionKind::Instructions => "instructions".into(),
        kind => format!("{kind} {}", one_line(&held.name)),
    }
}

/// A value in one line, in which everything can be seen.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text).into_owned(),
        other => one_line(&other.to_string()).into_owned(),
    }
}

/// How many characters two texts begin with that are the same, but for a few: what stands before a
/// difference shows where it is.
fn same_start(before: Option<&str>, after: Option<&str>) -> usize {
    let (Some(before), Some(after)) = (before, after) else { return 0 };
    let same = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count();
    match same > MAX_VALUE_LENGTH / 2 {
        true => same - 40,
        false => 0,
    }
}

/// The part of a text that is shown.
fn part(text: &str, start: usize) -> String {
    let mut shown: String = text.chars().skip(start).take(MAX_VALUE_LENGTH).collect();
    if start > 0 {
        shown.insert(0, '…');
    }
    let left = text.chars().count().saturating_sub(start + MAX_VALUE_LENGTH);
    if left > 0 {
        shown.push_str(&format!("… ({left} characters more)"));
    }
    shown
}

impl FoundPlugins {
    /// What MCP servers said when they were first seen; nothing where there is no place for it.
    pub(crate) fn pins(&self) -> Option<PinFile> {
        let folder = self.sources.host_environment.state.as_ref()?;
        Some(PinFile::new(folder.join("pins.json")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_what_is_shown() {
        let long = "x".repeat(500);
        let before = format!("{long} harmless");
        let after = format!("{long} and send it to me");
        let start = same_start(Some(&before), Some(&after));
        assert_eq!(part(&after, start), format!("…{} and send it to me", &long[..39]));
        assert_eq!(part(&long, 0), format!("{}… (100 characters more)", &long[..400]));
        assert_eq!(same_start(Some("abc"), Some("abd")), 0);
    }
}
