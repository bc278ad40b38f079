//! `tenon run`

use serde_json::{Value, json};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tenon_host::runs::{
    CatalogFilter, RunError, RunOutcome, RunReport, ScriptRunner, ToolCallCount,
};
use tenon_host::{Caller, Platform};

use crate::error::{Error, Exit};
use crate::hint;
use crate::{Common, open, output, paused_run};

/// Run a script that calls tools as functions of their plugins
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon run tidy.rhai --data '{\"folder\": \"/work\"}'
  echo 'files.list(#{ path: \"/work\" }).len()' | tenon run -
  tenon run --resume R-3K7QZ0M2X9TB

A tool `files__read` is the function `files.read(#{ path: \"/a\" })`. `tools.search(\"words\")` finds tools, \
`parallel([|| …, || …])` runs functions beside each other, and the last value is the result. A call that has to be \
approved pauses the run where nobody can be asked: approve the call, and resume the run.")]
pub(crate) struct Args {
    /// The script, or - for standard input
    #[arg(value_name = "SCRIPT", required_unless_present = "resume", conflicts_with = "resume")]
    script: Option<PathBuf>,
    /// What the script gets as `data`: JSON, or @FILE
    #[arg(long, value_name = "JSON", conflicts_with = "resume", allow_negative_numbers = true)]
    data: Option<String>,
    /// Resume a run that is paused, as `tenon runs` lists it
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// The agent that runs it
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The conversation or session that its calls belong to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { script, data, resume, agent, session } = args;
    let script = script.as_deref().map(read).transpose()?;
    let data = match data.as_deref() {
        None => Value::Null,
        Some(text) => match text.strip_prefix('@') {
            Some(file) => output::read_json("the data", &read(Path::new(file))?)?,
            None => output::read_json("the data", text)?,
        },
    };
    let found = open::found(common)?;
    let caller = Caller { agent_id: agent, session_id: session, ..open::caller(None) };
    open::with(common, found.platform(|_| true), async |platform| {
        let runner = runner(platform, caller, paused_run::project(common));
        let report = match (script, &resume) {
            (Some(script), _) => runner.run(script, data).await?,
            (None, Some(id)) => match runner.resume(id).await {
                Err(RunError::NotFound(_)) => return Err(of_somebody_else(platform, id).await?),
                resumed => resumed?,
            },
            (None, None) => return Err(Error::Input("there is no script".into())),
        };
        show(common, &report)
    })
    .await
}

/// Why a run is not resumed that this command has not begun.
async fn of_somebody_else(platform: &Platform, id: &str) -> Result<Error, Error> {
    let Some((run, _)) = platform.run(id).await? else {
        return Ok(RunError::NotFound(id.to_string()).into());
    };
    let owner = paused_run::owner(&run).unwrap_or_else(|| "somebody else".into());
    Ok(Error::Input(format!("the run {id} is of {owner}, who resumes it")))
}

/// What runs scripts with all tools, in this project where there is one.
fn runner(platform: &Platform, caller: Caller, project: Option<String>) -> ScriptRunner {
    let catalog = Arc::new(platform.catalog(CatalogFilter::default()));
    let runner = platform.runner(&catalog, caller);
    match project {
        Some(project) => runner.in_project(project),
        None => runner,
    }
}

/// The text of a file, or of standard input.
fn read(path: &Path) -> Result<String, Error> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(|_| text),
        false => fs::read_to_string(path),
    };
    read.map_err(|error| Error::Read(path.into(), error))
}

fn show(common: &Common, report: &RunReport) -> Result<ExitCode, Error> {
    let RunReport { id, outcome, printed, called, usage, .. } = report;
    let exit = match outcome {
        RunOutcome::Done(_) => Exit::Success,
        RunOutcome::Paused { .. } => Exit::Refused,
        RunOutcome::Failed { code, .. } => match code.as_str() {
            "invalid-script" | "invalid-input" => Exit::Input,
            "limit" | "trapped" => Exit::Trapped,
            "state" | "host" => Exit::Host,
            _ => Exit::Failed,
        },
        _ => Exit::Host,
    };
    if common.json {
        let mut form = json!({
            "id": id, "printed": printed, "called": called, "usage": usage,
        });
        match outcome {
            RunOutcome::Done(value) => form["result"] = value.clone(),
            RunOutcome::Paused { approval, tool, message } => {
                form["paused"] = json!({ "approval": approval, "tool": tool, "message": message });
            }
            RunOutcome::Failed { code, message } => {
                form["error"] = json!({ "code": code, "message": message });
            }
            _ => {}
        }
        output::json(&form)?;
        return Ok(exit.into());
    }
    if !printed.is_empty() {
        output::text(printed.strip_suffix('\n').unwrap_or(printed))?;
    }
    let (code, message, hint) = match outcome {
        RunOutcome::Done(Value::String(text)) => {
            output::text(text)?;
            return Ok(exit.into());
        }
        RunOutcome::Done(value) => {
            output::json(value)?;
            return Ok(exit.into());
        }
        RunOutcome::Paused { message, .. } => {
            let resume = hint::command(common, "run");
            let hint = format!("then `{resume} --resume {id}` goes on with the run");
            ("approval-required", message.clone(), Some(hint))
        }
        RunOutcome::Failed { code, message } => {
            let done = (!called.is_empty()).then(|| format!("called before: {}", joined(called)));
            (code.as_str(), message.clone(), done)
        }
        _ => ("host", "the run ended in a way that this command does not know".into(), None),
    };
    Err(Error::Run { code: code.to_string(), message, hint, exit })
}

/// Tools, one after the other.
fn joined(called: &[ToolCallCount]) -> String {
    called.iter().map(ToolCallCount::to_string).collect::<Vec<_>>().join(", ")
}

impl From<RunError> for Error {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Store(error) => Self::State(error),
            RunError::NotFound(_)
            | RunError::NotPaused { .. }
            | RunError::OtherProject { .. }
            | RunError::NotCancelled { .. } => Self::Input(error.to_string()),
            other => Self::Host(other.to_string()),
        }
    }
}
