//! `tenon runs`

use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_host::runs::{CatalogFilter, JournalAnswer, JournalEntry, Run, RunError, RunState};
use tenon_host::services::{ApprovalState, PendingCall};
use tenon_host::types::text::{cut, one_line, visible, visible_json};
use tenon_runs::Runs;

use crate::error::Error;
use crate::hint::{self, quoted};
use crate::new_folder::NewFolder;
use crate::paused_run::resume_hint;
use crate::store::{self, StorePlace};
use crate::{Common, blocking, call_approval, open, output};

/// List runs of scripts, the latest last
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon runs
  tenon runs show R-3K7QZ0M2X9TB
  tenon run --resume R-3K7QZ0M2X9TB
  tenon runs cancel R-3K7QZ0M2X9TB
  tenon runs promote R-3K7QZ0M2X9TB --name tidy

A run is kept for a week. One that is paused waits for the approval of a call. One whose process has died, or that nobody \
waited for any more, is unknown: which of its calls were made is not known, and it cannot go on.")]
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
    /// Cancel a paused run: it goes on no more, and what it has done stays done
    Cancel {
        /// The run
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Make a plugin of a run: its script becomes a tool
    #[command(after_help = "Example:
  tenon runs promote R-3K7QZ0M2X9TB --name tidy && tenon install ./tidy

The new folder gets the script and a plugin.toml, which requests the tools that the script calls. The tool is named \
`run`, and its arguments are like the `data` of the run. It is installed and approved as any plugin.")]
    Promote {
        /// The run, which has ended well
        #[arg(value_name = "ID")]
        id: String,
        /// The plugin's id, and the name of the new folder
        #[arg(long, value_name = "NAME")]
        name: String,
        /// What the tool does, as models read it
        #[arg(long, value_name = "TEXT")]
        description: Option<String>,
    },
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    match args.verb {
        None => blocking(common, (), |common, ()| list(common)).await,
        Some(Verb::Show { id }) => blocking(common, id, shown).await,
        Some(Verb::Cancel { id }) => blocking(common, id, cancel).await,
        Some(Verb::Promote { id, name, description }) => {
            promote(common, &id, &name, description).await
        }
    }
}

fn runs(common: &Common) -> Result<Arc<Runs>, Error> {
    Ok(Arc::new(Runs::new(StorePlace::find(common)?.open()?)))
}

fn shown(common: &Common, id: String) -> Result<ExitCode, Error> {
    let runs = runs(common)?;
    let run = runs.get(&id, store::now())?.ok_or(RunError::NotFound(id))?;
    show(common, &run, &runs.journal(&run.id)?)
}

fn cancel(common: &Common, id: String) -> Result<ExitCode, Error> {
    let run = runs(common)?.cancel(&id, store::now())?;
    let left = left_calls(common, &run)?;
    let id = &run.id;
    if common.json {
        let approvals: Vec<&str> = left.iter().map(|call| call.id.as_str()).collect();
        output::json(&json!({ "id": id, "cancelled": true, "approvals": approvals }))?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("{id} is cancelled"))?;
    for PendingCall { id, tool, state, .. } in &left {
        let deny = hint::command(common, "deny");
        let said = match state {
            ApprovalState::Approved { .. } => format!(
                "the call of {tool} is approved under {id}, and the same caller can still make it: `{deny} {id}` takes that back"
            ),
            _ => format!(
                "the call of {tool} still waits under {id}, where it can be approved: `{deny} {id}` ends that"
            ),
        };
        output::note(&one_line(&said));
    }
    Ok(ExitCode::SUCCESS)
}

/// The calls of a paused run that wait for an approval or have one: another run of the same caller may make them.
fn left_calls(common: &Common, run: &Run) -> Result<Vec<PendingCall>, Error> {
    let RunState::Paused { approval, .. } = &run.state else { return Ok(Vec::new()) };
    let mut calls = call_approval::approvals(common)?.list(store::now())?;
    calls.retain(|call| {
        let is_left = call.is_undecided() || matches!(call.state, ApprovalState::Approved { .. });
        is_left && (call.id == *approval || call.call.run.as_ref() == Some(&run.id))
    });
    Ok(calls)
}

fn list(common: &Common) -> Result<ExitCode, Error> {
    let (store, now) = (runs(common)?, store::now());
    let runs = store.list(now)?;
    for id in store.damaged()? {
        output::note(&format!("what is kept of the run {id} is damaged; it is not listed"));
    }
    if common.json {
        output::json(&runs.iter().map(form).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::if_empty(runs.is_empty(), "no runs are kept");
    let is_paused = runs.iter().any(Run::is_paused);
    let calls = if is_paused { call_approval::approvals(common)?.list(now)? } else { Vec::new() };
    for run in &runs {
        let waits = match &run.state {
            RunState::Paused { approval, tool, .. } => match decided(&calls, approval) {
                DecisionState::Waits => format!(" for {approval} ({tool})"),
                DecisionState::Approved => format!(", {approval} ({tool}) is approved"),
                DecisionState::Denied => format!(", {approval} ({tool}) is denied"),
                DecisionState::Over => format!(" at a call of {tool}"),
            },
            _ => String::new(),
        };
        let script = run.of.script.trim();
        let line = script.lines().next().unwrap_or_default();
        let shown = format!(
            "{}  {}  {}{waits}  {}",
            run.id,
            store::shown_time(run.began),
            run.state.as_str(),
            cut(line, 80)
        );
        output::line(one_line(&shown))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is decided of the call that a run waits for.
enum DecisionState {
    Waits,
    Approved,
    Denied,
    /// It was used, has become a standing one, or its time is over.
    Over,
}

/// What is decided under the id of an approval.
fn decided(calls: &[PendingCall], approval: &str) -> DecisionState {
    let call = calls.iter().find(|call| call.id == approval);
    match call.map(|call| &call.state) {
        Some(ApprovalState::Approved { .. }) => DecisionState::Approved,
        Some(ApprovalState::Denied { .. }) => DecisionState::Denied,
        Some(_) => DecisionState::Waits,
        None => DecisionState::Over,
    }
}

/// A run as programs read it.
fn form(run: &Run) -> Value {
    let mut form = serde_json::to_value(run).unwrap_or_default();
    if let Some(members) = form.as_object_mut() {
        members.insert("state".into(), run.state.as_str().into());
        // These say something to the store and to whoever resumes it, and to nobody else.
        members.remove("lock");
        members.remove("waiting");
        // Its entries are shown under this name.
        if let Some(hash) = members.remove("journal") {
            members.insert("journalHash".into(), hash);
        }
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
    output::line(one_line(&format!(
        "{}  {}  {}",
        run.id,
        store::shown_time(run.began),
        run.state.as_str()
    )))?;
    let known = [
        ("principal", &run.of.principal),
        ("profile", &run.of.profile),
        ("agent", &run.of.agent),
        ("session", &run.of.session),
        ("project", &run.of.project),
    ];
    for (word, name) in known {
        if let Some(name) = name {
            output::line(one_line(&format!("  {word}: {name}")))?;
        }
    }
    output::line("script:")?;
    // For the language each of them ends a line.
    let script = run.of.script.replace("\r\n", "\n").replace('\r', "\n");
    for line in visible(script.trim_end()).lines() {
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
            JournalAnswer::Unknown => "how it ended is not known".into(),
        };
        let milliseconds = entry.micros as f64 / 1_000.0;
        let line = format!("  {}  {call}  {milliseconds:.1} ms  {}", entry.key, cut(&answer, 120));
        output::line(one_line(&line))?;
    }
    let end = match &run.state {
        RunState::Paused { approval, tool, key, .. } => {
            let calls = call_approval::approvals(common)?.list(store::now())?;
            let resume = resume_hint(common, run);
            match decided(&calls, approval) {
                DecisionState::Waits => format!(
                    "waits at {key} for the approval of {tool}: `{} {approval}`",
                    hint::command(common, "approve")
                ),
                DecisionState::Approved => {
                    format!("waits at {key}: the call of {tool} is approved; {resume}")
                }
                DecisionState::Denied => format!(
                    "waits at {key}: the call of {tool} is denied, which the script is told; {resume}"
                ),
                DecisionState::Over => format!("waits at {key} for a call of {tool}; {resume}"),
            }
        }
        RunState::Done { value, .. } => format!("result: {}", visible_json(&value.to_string())),
        RunState::Failed { code, message, .. } => format!("{code}: {message}"),
        RunState::Unknown => RunState::UNKNOWN.into(),
        _ => return Ok(ExitCode::SUCCESS),
    };
    output::line(visible(&end))?;
    Ok(ExitCode::SUCCESS)
}

async fn promote(
    common: &Common,
    id: &str,
    name: &str,
    description: Option<String>,
) -> Result<ExitCode, Error> {
    let folder = NewFolder::of(common, name)?;
    let found = open::found(common)?;
    open::with(common, found.platform(|_| true), async |platform| {
        let (run, _) = platform.run(id).await?.ok_or_else(|| RunError::NotFound(id.into()))?;
        if !matches!(run.state, RunState::Done { .. }) {
            let problem = format!(
                "the run {id} is {}; one that has ended well can be a plugin",
                run.state.as_str()
            );
            return Err(Error::Input(problem));
        }
        let description = description.unwrap_or_else(|| described(&run));
        let catalog = platform.catalog(CatalogFilter::default());
        let promoted = catalog.promote(&run.of.script, &run.of.data, &description);
        let promoted = promoted.map_err(|problem| {
            Error::Input(format!("the script of {id} cannot be that of a plugin: {problem}"))
        })?;
        let script = format!("{name}.rhai");
        let files = [
            (MANIFEST.to_string(), manifest(name, &description, &script, &promoted.tools)),
            (script, promoted.text),
        ];
        folder.write(&files)?;
        if common.json {
            let files = files.each_ref().map(|(path, _)| path);
            let folder = folder.path().to_string_lossy();
            output::json(&json!({ "folder": folder, "files": files, "tools": promoted.tools }))?;
            return Ok(ExitCode::SUCCESS);
        }
        for (path, _) in &files {
            output::line(folder.path().join(path).display())?;
        }
        let folder = match folder.path().is_relative() {
            true => Path::new(".").join(folder.path()),
            false => folder.path().to_path_buf(),
        };
        if run.attempts > 1 {
            output::note(
                "a call of this run had to be approved: a plugin does not pause there, but fails, and begins from the \
                 start when it is called again",
            );
        }
        output::line(format!("\n  tenon install{}", quoted(&folder.to_string_lossy())))?;
        Ok(ExitCode::SUCCESS)
    })
    .await
}

/// What a run does: the comment that its script begins with.
fn described(run: &Run) -> String {
    let lines = run.of.script.trim_start().lines().map(str::trim);
    let comment = lines.map_while(|line| line.strip_prefix("//"));
    let words: Vec<&str> = comment.map(|line| line.trim_start_matches('/').trim()).collect();
    match words.join(" ").trim() {
        "" => format!("Runs the script of {}", run.id),
        words => words.into(),
    }
}

/// A plugin's manifest that requests these tools.
fn manifest(name: &str, description: &str, script: &str, tools: &[String]) -> String {
    let [id, description, path] =
        [name, description, script].map(|text| toml::Value::String(text.into()));
    let mut manifest = format!(
        "[plugin]
id = {id}
version = \"0.1.0\"
description = {description}
plugin_api_version = \"0.2\"

[runtime]
kind = \"rhai\"
path = {path}
"
    );
    if !tools.is_empty() {
        let tools = toml::Value::from(tools.to_vec());
        manifest.push_str(&format!("\n[capabilities]\ntools = {tools}\n"));
    }
    manifest
}
