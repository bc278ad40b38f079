//! `tenon runs`

use serde_json::{Value, json};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tenon_host::runs::{JournalAnswer, JournalEntry, Run, RunError, RunState};
use tenon_host::types::text::{cut, one_line, visible, visible_json};
use tenon_runs::Runs;

use crate::error::Error;
use crate::store::{self, StorePlace};
use crate::{Common, output};

/// List runs of scripts, the latest last
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon runs
  tenon runs show R-3K7QZ0M2X9TB
  tenon run --resume R-3K7QZ0M2X9TB

A run is kept for a week. One that is paused waits for the approval of a call. One whose process has died is unknown: \
which of its calls were made is not known, and it cannot go on.")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Show a run: its script, its calls and how far it came
    Show {
        /// The run
        #[arg(value_name = "ID")]
        id: String,
    },
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let runs = Arc::new(Runs::new(StorePlace::find(common)?.open()?));
    let now = store::now();
    match args.verb {
        None => list(common, &runs.list(now)?),
        Some(Verb::Show { id }) => {
            let run = runs.get(&id, now)?.ok_or_else(|| RunError::NotFound(id.clone()))?;
            show(common, &run, &runs.journal(&id)?)
        }
    }
}

fn list(common: &Common, runs: &[Run]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&runs.iter().map(form).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::if_empty(runs.is_empty(), "no runs are kept");
    for run in runs {
        let waits = match &run.state {
            RunState::Paused { approval, tool, .. } => format!(" for {approval} ({tool})"),
            _ => String::new(),
        };
        let script = run.of.script.trim();
        let line = script.lines().next().unwrap_or_default();
        let shown =
            format!("{}  {}  {}{waits}  {}", run.id, began(run), run.state.as_str(), cut(line, 80));
        output::line(one_line(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn began(run: &Run) -> String {
    let at = UNIX_EPOCH + Duration::from_millis(run.began.min(253_402_300_799_000));
    humantime::format_rfc3339_seconds(at).to_string()
}

/// A run as programs read it.
fn form(run: &Run) -> Value {
    let mut form = serde_json::to_value(run).unwrap_or_default();
    if let Some(members) = form.as_object_mut() {
        // It says which process runs it, to nobody but the store.
        members.remove("lock");
    }
    form
}

fn show(common: &Common, run: &Run, journal: &[JournalEntry]) -> Result<ExitCode, Error> {
    if common.json {
        let mut form = form(run);
        form["journal"] = json!(journal);
        output::json(&form)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(one_line(&format!("{}  {}  {}", run.id, began(run), run.state.as_str())))?;
    let known = [
        ("principal", &run.of.principal),
        ("profile", &run.of.profile),
        ("agent", &run.of.agent),
        ("session", &run.of.session),
    ];
    for (word, name) in known {
        if let Some(name) = name {
            output::line(one_line(&format!("  {word}: {name}")))?;
        }
    }
    output::line("script:")?;
    for line in visible(run.of.script.trim_end()).lines() {
        output::line(format!("  {line}"))?;
    }
    if !run.of.data.is_null() {
        output::line(format!("data: {}", visible_json(&run.of.data.to_string())))?;
    }
    for entry in journal {
        let call = entry.call.as_deref().unwrap_or("step");
        let answer = match &entry.answer {
            JournalAnswer::Value(value) => value.to_string(),
            JournalAnswer::Error(message) => format!("failed: {message}"),
            JournalAnswer::TooLong(digest) => format!("too long to be kept, sha256:{digest}"),
        };
        let milliseconds = entry.micros as f64 / 1_000.0;
        let line = format!("  {}  {call}  {milliseconds:.1} ms  {}", entry.key, cut(&answer, 120));
        output::line(one_line(&line))?;
    }
    let end = match &run.state {
        RunState::Paused { approval, tool, key } => {
            format!("waits at {key} for the approval of {tool}: `tenon approve {approval}`")
        }
        RunState::Done { value, .. } => format!("result: {}", visible_json(&value.to_string())),
        RunState::Failed { code, message, .. } => format!("{code}: {message}"),
        RunState::Unknown => {
            "its process died: which calls were made after these is not known".into()
        }
        _ => return Ok(ExitCode::SUCCESS),
    };
    output::line(visible(&end))?;
    Ok(ExitCode::SUCCESS)
}
