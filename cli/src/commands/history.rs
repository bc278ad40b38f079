//! `tenon history`

use serde_json::json;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_call_approvals::{ApprovalEvent, ApprovalStep, CallApprovals, LOG as APPROVAL_LOG};
use tenon_host::CallKind;
use tenon_host::history::{HistoryError, LOG, Query, Record, check, read, read_from};
use tenon_host::services::{LogCheck, LogSummary};
use tenon_host::types::text::one_line;
use tenon_runs::Runs;
use tenon_store::check_log;

use crate::error::Error;
use crate::store::{self, StorePlace};
use crate::{Common, output};

/// Show past calls, the latest last
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon history --failed --since 1h
  tenon history --tool 'files__*' --limit 5
  tenon history approvals
  tenon history verify
  tenon --json history | jq '.[] | select(.usage.wallMicros > 1000000)'")]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Only calls of this kind: tool, read-resource, get-prompt, completion, evaluation, hook, …
    #[arg(long, value_name = "KIND", value_parser = kind)]
    kind: Option<CallKind>,
    /// Only calls of this tool; * matches anything
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls of this plugin
    #[arg(long, value_name = "ID")]
    plugin: Option<String>,
    /// Only calls of this session
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Only calls with this outcome: ok, tool-error, not-found, deadline, …
    #[arg(long, value_name = "WORD")]
    outcome: Option<String>,
    /// Only calls that failed
    #[arg(long)]
    failed: bool,
    /// Only calls within this time, such as 10m or 2days
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    since: Option<Duration>,
    /// At most this many, the latest
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: usize,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Check that no record of a call or of an approval was changed, removed or put between others since it was written
    ///
    /// Each record is bound to the one before by a hash. Whoever could change the file could also compute all hashes
    /// anew: note the last one elsewhere, and compare it with what is printed later.
    Verify,
    /// Show what was asked for, approved and denied of single calls, the latest last
    Approvals {
        /// At most this many steps
        #[arg(long, value_name = "N", default_value_t = 20)]
        limit: usize,
    },
}

fn kind(text: &str) -> Result<CallKind, String> {
    let found = CallKind::ALL.into_iter().find(|kind| kind.as_str() == text);
    found.ok_or_else(|| {
        let words = CallKind::ALL.map(CallKind::as_str).join(", ");
        format!("no such kind; the kinds are {words}")
    })
}

fn failed_to_read(error: HistoryError) -> Error {
    match error {
        HistoryError::Store(error) => Error::State(error),
        other => Error::Host(other.to_string()),
    }
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { verb, kind, tool, plugin, session, outcome, failed, since, limit } = args;
    let place = StorePlace::find(common)?;
    match verb {
        Some(Verb::Verify) => return verify(common, place),
        Some(Verb::Approvals { limit }) => return approvals(common, place, limit),
        None => {}
    }
    let since = since.map(|since| {
        let then = SystemTime::now().checked_sub(since).unwrap_or(UNIX_EPOCH);
        let since = then.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    });
    let limit = Some(limit);
    let query = Query { kind, tool, plugin, session, outcome, failed, since, limit };
    let records = |query: &Query| {
        let read = match &place {
            StorePlace::File(file) => read(folder_of(file), query),
            StorePlace::Shared(store) => read_from(&**store, query),
        };
        read.map_err(failed_to_read)
    };
    let found = records(&query)?;
    if common.json {
        output::json(&found)?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        let all = records(&Query { limit: None, ..Query::default() })?;
        let outcomes: BTreeSet<&str> = all.iter().map(|record| &*record.outcome).collect();
        let outcomes: Vec<&str> = outcomes.into_iter().collect();
        let nothing = match all.len() {
            0 => "no calls are recorded yet".to_string(),
            all => format!(
                "no recorded call fits; there are {all} with the outcomes {}",
                outcomes.join(", ")
            ),
        };
        output::if_empty(true, &nothing);
    }
    for record in &found {
        // A caller may have named the tool as it liked.
        output::line(one_line(&line(record)))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of a database, in which former versions had their records.
fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("."))
}

/// Says whether all records, and all approvals of calls, are as they were written.
fn verify(common: &Common, place: StorePlace) -> Result<ExitCode, Error> {
    let records = match &place {
        StorePlace::File(file) => check(folder_of(file)).map_err(failed_to_read)?,
        StorePlace::Shared(store) => check_log(&**store, LOG)?,
    };
    let (approvals, runs, changed) = match place {
        // Without a database nothing was approved; checking makes none.
        StorePlace::File(file) if !file.exists() => {
            (LogCheck::Whole(LogSummary::EMPTY), 0, Vec::new())
        }
        place => {
            let store = place.open()?;
            let approvals = check_log(&*store, APPROVAL_LOG)?;
            let runs = Runs::new(store);
            let all = runs.list(store::now())?;
            let mut changed = Vec::new();
            for run in &all {
                if !runs.is_as_written(run)? {
                    changed.push(run.id.clone());
                }
            }
            (approvals, all.len(), changed)
        }
    };
    let logs = [("calls", records), ("approvals", approvals)];
    let is_whole =
        changed.is_empty() && logs.iter().all(|(_, checked)| matches!(checked, LogCheck::Whole(_)));
    if common.json {
        let logs = logs.map(|(name, checked)| match checked {
            LogCheck::Whole(log) => json!({
                "log": name,
                "isWhole": true,
                "records": log.next - log.first,
                "next": log.next,
                "lastHash": log.last.to_string(),
            }),
            LogCheck::Broken(number) => {
                json!({ "log": name, "isWhole": false, "brokenAt": number })
            }
        });
        output::json(&json!({
            "isWhole": is_whole, "logs": logs, "runs": { "checked": runs, "changed": changed },
        }))?;
    } else {
        for (name, checked) in logs {
            output::line(verified(name, checked))?;
        }
        match &changed[..] {
            [] if runs == 0 => {}
            [] => {
                output::line(format!("runs: the journals of {runs} runs are as they were written"))?
            }
            changed => {
                output::line(format!(
                    "runs: somebody has changed the journal of {}",
                    changed.join(", ")
                ))?;
            }
        }
    }
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the record of approvals.
fn approvals(common: &Common, place: StorePlace, limit: usize) -> Result<ExitCode, Error> {
    let events = match place {
        // Without a database nothing was approved; looking makes none.
        StorePlace::File(file) if !file.exists() => Vec::new(),
        place => CallApprovals::new(place.open()?).latest_events(limit)?,
    };
    if common.json {
        let form = |(at, event): &(u64, ApprovalEvent)| {
            let mut form = serde_json::to_value(event).unwrap_or_default();
            form["at"] = (*at).into();
            form
        };
        output::json(&events.iter().map(form).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::if_empty(events.is_empty(), "no call was asked about yet");
    for (at, ApprovalEvent { id, tool, plugin, principal, step, .. }) in &events {
        let what = match step {
            ApprovalStep::Asked => "is asked about".to_string(),
            ApprovalStep::Approved => "is approved".to_string(),
            ApprovalStep::Denied => "is denied".to_string(),
            ApprovalStep::Kept { standing } => {
                format!("is approved beyond one call, as {standing}")
            }
            ApprovalStep::TakenBack => "is taken back".to_string(),
            ApprovalStep::Covered => "covers a call".to_string(),
            ApprovalStep::Begun => "begins".to_string(),
            ApprovalStep::Ended { outcome } => format!("ends: {outcome}"),
            ApprovalStep::Unknown => "began, and how it ended is not known".to_string(),
            _ => "takes a step that this command does not know".to_string(),
        };
        let by = principal.as_deref().map(|principal| format!(" (principal {principal})"));
        let by = by.unwrap_or_default();
        let line =
            format!("{}  {id}  {tool} of plugin \"{plugin}\"{by}  {what}", store::shown_time(*at));
        output::line(one_line(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is said of a log that was checked.
fn verified(name: &str, checked: LogCheck) -> String {
    match checked {
        LogCheck::Whole(log) if log.first == log.next => format!("{name}: there are no records"),
        LogCheck::Whole(log) => {
            let (records, last) = (log.next - log.first, log.next - 1);
            format!(
                "{name}: {records} records are as they were written; the last is number {last}, with the hash {}",
                log.last
            )
        }
        LogCheck::Broken(number) => format!(
            "{name}: record {number} is missing or was changed: nothing from there on is certain"
        ),
    }
}

/// `2026-11-21T17:20:11Z  text_tools__slug (agent planner)  ok  0.8 ms  {"text":"A"}`
fn line(record: &Record) -> String {
    let Record { kind, at, tool, plugin, outcome, usage, arguments, error, .. } = record;
    let tool = match (kind, plugin) {
        (CallKind::Hook, Some(plugin)) => format!("{tool} in {plugin}"),
        _ => tool.clone(),
    };
    let tool = match caller(record) {
        caller if caller.is_empty() => tool,
        caller => format!("{tool} ({caller})"),
    };
    let at = store::shown_time(*at);
    let took = usage.wall_micros as f64 / 1_000.0;
    let what = error.as_deref().map_or_else(|| arguments.to_string(), Into::into);
    let what = what.lines().next().unwrap_or_default();
    format!("{at}  {tool}  {outcome}  {took:.1} ms  {}", cut(what, 100))
}

/// Who made a call, as far as that is known.
fn caller(Record { by, principal, agent, session, run, .. }: &Record) -> String {
    let known = [
        ("by", by.as_deref()),
        ("principal", principal.as_deref()),
        ("agent", agent.as_deref()),
        ("session", session.as_deref()),
        ("run", run.as_deref()),
    ];
    let known = known.into_iter().filter_map(|(word, id)| Some(format!("{word} {}", cut(id?, 64))));
    known.collect::<Vec<String>>().join(", ")
}

/// The beginning of a text, with a sign where it is cut.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}
