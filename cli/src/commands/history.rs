//! `tenon history`

use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_call_approvals::{
    ApprovalEvent, ApprovalStep, CallApprovals, Decider, LOG as APPROVAL_LOG,
};
use tenon_host::CallKind;
use tenon_host::history::{HistoryError, LOG, Query, Record, check, read, read_from};
use tenon_host::services::{LogIntegrity, LogSummary, Store, StoreError};
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
  tenon history verify --noted calls=13417:HASH
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
    /// Each record is bound to the one before by a hash, and what is approved or denied is compared with the record of
    /// it. Whoever could change the file could also compute all hashes anew: note the number and the hash of the last
    /// record elsewhere, and pass them later with --noted.
    Verify {
        /// A record of `calls` or `approvals` that was noted: it must still have this hash; can be repeated
        #[arg(long, value_name = "LOG=NUMBER:HASH", value_parser = noted)]
        noted: Vec<NotedHash>,
    },
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

/// The logs that are checked: what they are called here, and in the store.
const LOGS: [(&str, &str); 2] = [("calls", LOG), ("approvals", APPROVAL_LOG)];

/// An entry of a log of which somebody has noted the hash.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NotedHash {
    /// One of [`LOGS`].
    log: (&'static str, &'static str),
    number: u64,
    /// In small hexadecimal digits.
    hash: String,
}

fn noted(text: &str) -> Result<NotedHash, String> {
    let parts = text.split_once('=').and_then(|(log, entry)| Some((log, entry.split_once(':')?)));
    let (log, (number, hash)) = parts.ok_or("it is not LOG=NUMBER:HASH, such as calls=17:0f3a…")?;
    let known = LOGS.into_iter().find(|(name, _)| *name == log);
    let log = known.ok_or_else(|| {
        format!("there is no log \"{log}\"; the logs are {}", LOGS.map(|(name, _)| name).join(", "))
    })?;
    let number = number.parse::<u64>().ok().filter(|number| *number > 0);
    let number = number.ok_or("the number of a record is 1 or more")?;
    if hash.len() != 64 || !hash.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err("a hash has 64 hexadecimal digits".into());
    }
    Ok(NotedHash { log, number, hash: hash.to_ascii_lowercase() })
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
        Some(Verb::Verify { noted }) => return verify(common, place, noted),
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

/// Says whether all records, approvals of calls and journals are as they were written.
fn verify(common: &Common, place: StorePlace, noted: Vec<NotedHash>) -> Result<ExitCode, Error> {
    let calls = match &place {
        StorePlace::File(file) => check(folder_of(file)).map_err(failed_to_read)?,
        StorePlace::Shared(store) => check_log(&**store, LOG)?,
    };
    // Without a database nothing was approved; checking makes none.
    let store = match place.is_there() {
        true => Some(place.open()?),
        false => None,
    };
    let mut verification = Verification::of_calls(calls);
    if let Some(store) = &store {
        verification.approvals = check_log(&**store, APPROVAL_LOG)?;
        let approvals = CallApprovals::new(store.clone());
        verification.undocumented = approvals.undocumented(store::now())?;
        verification.unreadable = approvals.damaged()?;
        (verification.runs, verification.changed_runs) = check_runs(&Runs::new(store.clone()))?;
    }
    for entry in noted {
        let outcome = check_noted(store.as_deref(), &entry)?;
        verification.noted.push((entry, outcome));
    }
    if common.json {
        output::json(&verification.to_json())?;
    } else {
        for line in verification.lines() {
            // Whoever has edited the database has named what is in it.
            output::line(one_line(&line))?;
        }
    }
    Ok(if verification.is_whole() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// How many runs there are, and which of them are not as they were written.
fn check_runs(runs: &Runs) -> Result<(usize, Vec<String>), Error> {
    let all = runs.list(store::now())?;
    let mut changed = runs.damaged()?;
    for run in &all {
        // One that was resumed meanwhile is no longer as it was listed.
        if !runs.is_as_written(run)?
            && let Some(now) = runs.get(&run.id, store::now())?
            && !runs.is_as_written(&now)?
        {
            changed.push(run.id.clone());
        }
    }
    Ok((all.len(), changed))
}

/// What became of an entry that was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotedHashCheck {
    /// It has the hash that was noted.
    AsNoted,
    /// It has another one.
    Changed,
    /// The log has no entry of this number.
    Missing,
    /// It made room for newer ones.
    Forgotten,
}

/// Looks for an entry that was noted. Without a database it is missing.
fn check_noted(
    store: Option<&dyn Store>,
    NotedHash { log: (_, log), number, hash }: &NotedHash,
) -> Result<NotedHashCheck, StoreError> {
    let Some(store) = store else { return Ok(NotedHashCheck::Missing) };
    let found = store.entries_from(log, *number, 1)?.pop();
    // Later than the entry, which may have made room meanwhile.
    let summary = store.log(log)?.unwrap_or(LogSummary::EMPTY);
    let found = match found.filter(|entry| entry.number == *number) {
        Some(entry) => entry.hash,
        // That of the last one that has gone is kept.
        None if number.checked_add(1) == Some(summary.first) => summary.before,
        None if *number < summary.first => return Ok(NotedHashCheck::Forgotten),
        None => return Ok(NotedHashCheck::Missing),
    };
    Ok(match found.to_string() == *hash {
        true => NotedHashCheck::AsNoted,
        false => NotedHashCheck::Changed,
    })
}

/// What `tenon history verify` has found.
struct Verification {
    calls: LogIntegrity,
    approvals: LogIntegrity,
    /// Approvals and standing approvals that the log of approvals does not bear out.
    undocumented: Vec<String>,
    /// Approvals that cannot be read.
    unreadable: Vec<String>,
    runs: usize,
    changed_runs: Vec<String>,
    noted: Vec<(NotedHash, NotedHashCheck)>,
}

impl Verification {
    /// The record of calls was checked, and nothing else is there.
    fn of_calls(calls: LogIntegrity) -> Self {
        let approvals = LogIntegrity::Whole(LogSummary::EMPTY);
        let (undocumented, unreadable, changed_runs) = (Vec::new(), Vec::new(), Vec::new());
        let (runs, noted) = (0, Vec::new());
        Self { calls, approvals, undocumented, unreadable, runs, changed_runs, noted }
    }

    /// The logs, with what they are called.
    fn logs(&self) -> [(&'static str, LogIntegrity); 2] {
        let [(calls, _), (approvals, _)] = LOGS;
        [(calls, self.calls), (approvals, self.approvals)]
    }

    fn is_whole(&self) -> bool {
        let changed = [&self.undocumented, &self.unreadable, &self.changed_runs];
        self.logs().iter().all(|(_, checked)| matches!(checked, LogIntegrity::Whole(_)))
            && changed.iter().all(|ids| ids.is_empty())
            && self.noted.iter().all(|(_, outcome)| *outcome == NotedHashCheck::AsNoted)
    }

    fn to_json(&self) -> Value {
        let logs = self.logs().map(|(name, checked)| match checked {
            LogIntegrity::Whole(log) => json!({
                "log": name,
                "isWhole": true,
                "records": log.next - log.first,
                "first": log.first,
                "next": log.next,
                "lastHash": log.last.to_string(),
            }),
            LogIntegrity::Broken(number) => {
                json!({ "log": name, "isWhole": false, "brokenAt": number })
            }
        });
        let noted = self.noted.iter().map(|(entry, outcome)| {
            let NotedHash { log: (name, _), number, hash } = entry;
            let outcome = match outcome {
                NotedHashCheck::AsNoted => "as-noted",
                NotedHashCheck::Changed => "changed",
                NotedHashCheck::Missing => "missing",
                NotedHashCheck::Forgotten => "forgotten",
            };
            json!({ "log": name, "number": number, "hash": hash, "outcome": outcome })
        });
        json!({
            "isWhole": self.is_whole(),
            "logs": logs,
            "decisions": { "changed": self.undocumented, "unreadable": self.unreadable },
            "runs": { "checked": self.runs, "changed": self.changed_runs },
            "noted": noted.collect::<Vec<_>>(),
        })
    }

    fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.logs().into_iter().map(|(name, checked)| verified(name, checked)).collect();
        if !self.undocumented.is_empty() {
            let ids = self.undocumented.join(", ");
            lines.push(format!(
                "approvals: what is kept of {ids}, or was called by it, is not what the record says was asked and decided"
            ));
        }
        if !self.unreadable.is_empty() {
            let ids = self.unreadable.join(", ");
            lines.push(format!("approvals: what is kept of {ids} cannot be read"));
        }
        match (self.runs, &self.changed_runs[..]) {
            (0, []) => {}
            (runs, []) => {
                lines.push(format!("runs: the journals of {runs} runs are as they were written"));
            }
            (_, changed) => {
                let ids = changed.join(", ");
                lines.push(format!("runs: somebody has changed what is kept of {ids}"));
            }
        }
        lines.extend(self.noted.iter().map(|(entry, outcome)| {
            let NotedHash { log: (name, _), number, .. } = entry;
            let outcome = match outcome {
                NotedHashCheck::AsNoted => "has the hash that was noted",
                NotedHashCheck::Changed => {
                    "has another hash than was noted: it or an earlier one was changed"
                }
                NotedHashCheck::Missing => "was noted, and is not there: records were removed",
                NotedHashCheck::Forgotten => {
                    "was noted, and cannot be checked: the log was full, and newer ones took its place"
                }
            };
            format!("{name}: record {number} {outcome}")
        }));
        lines
    }
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
    output::if_empty(events.is_empty() && limit > 0, "no call was asked about yet");
    for (at, event) in &events {
        let ApprovalEvent { id, tool, plugin, principal, decided_by, arguments, step, .. } = event;
        let what = match step {
            ApprovalStep::Asked { .. } => "is asked about".to_string(),
            ApprovalStep::Approved => "is approved".to_string(),
            ApprovalStep::Denied { reason: None } => "is denied".to_string(),
            ApprovalStep::Denied { reason: Some(reason) } => format!("is denied: {reason}"),
            ApprovalStep::Kept { standing, session, run, fixed, until, .. } => {
                let calls = match fixed.as_deref() {
                    None => "for exactly these arguments".to_string(),
                    Some([]) => "for any arguments".to_string(),
                    Some(names) => format!("for the same {}", names.join(" and ")),
                };
                let session = session.as_ref().map(|id| format!(", in session {id}"));
                let run = run.as_ref().map(|id| format!(", in run {id}"));
                let until = until.map(|at| format!(", until {}", store::shown_time(at)));
                let within = [session, run, until].into_iter().flatten().collect::<String>();
                format!("is approved beyond one call, as {standing}, {calls}{within}")
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
        let decided = match decided_by {
            None => String::new(),
            Some(Decider::Approver) => " by whoever the host asks".into(),
            Some(Decider::Client) => " by the user of the client".into(),
            Some(Decider::User(name)) => format!(" by {name}"),
            Some(_) => " by somebody whom this command does not know".into(),
        };
        let arguments = arguments.as_ref().map(|of| format!("  {}", cut(&of.to_string(), 200)));
        let arguments = arguments.unwrap_or_default();
        let at = store::shown_time(*at);
        let line =
            format!("{at}  {id}  {tool} of plugin \"{plugin}\"{by}  {what}{decided}{arguments}");
        output::line(one_line(&line))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What is said of a log that was checked.
fn verified(name: &str, checked: LogIntegrity) -> String {
    match checked {
        LogIntegrity::Whole(LogSummary { next: 1, .. }) => format!("{name}: there are no records"),
        LogIntegrity::Whole(LogSummary { first, next, last: hash, .. }) => {
            let (records, last) = (next - first, next - 1);
            match first {
                1 if records == 1 => {
                    format!("{name}: the only record is as it was written, with the hash {hash}")
                }
                1 => format!(
                    "{name}: {records} records are as they were written; the last is number {last}, with the hash {hash}"
                ),
                _ => format!(
                    "{name}: {records} records, number {first} to {last}, are as they were written, the last with the hash {hash}; older ones have made room for them"
                ),
            }
        }
        LogIntegrity::Broken(number) => format!(
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

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_host::services::{Durability, LogHash, LogPolicy, LogStore, NewEntry, SqliteStore};

    #[test]
    fn a_noted_record_has_a_log_a_number_and_a_hash() {
        let check = |text: &str, expected: Result<(&str, u64), &str>| match (noted(text), expected)
        {
            (Ok(entry), Ok(expected)) => {
                assert_eq!((entry.log.1, entry.number), expected, "{text}");
                assert_eq!(entry.hash, "0a".repeat(32), "{text}");
            }
            (Err(error), Err(expected)) => assert!(error.contains(expected), "{text}: {error}"),
            (found, _) => panic!("{text}: {found:?}"),
        };
        let hash = "0a".repeat(32);
        check(&format!("calls=13417:{hash}"), Ok(("calls", 13_417)));
        check(&format!("approvals=1:{}", hash.to_uppercase()), Ok(("call-approvals", 1)));
        check(&format!("runs=1:{hash}"), Err("the logs are calls, approvals"));
        check(&format!("calls=0:{hash}"), Err("1 or more"));
        check(&format!("calls=-1:{hash}"), Err("1 or more"));
        check(&format!("calls=:{hash}"), Err("1 or more"));
        check(&format!("calls=1:{hash}0"), Err("64 hexadecimal digits"));
        check(&format!("calls=1:{}é", &hash[2..]), Err("64 hexadecimal digits"));
        check("calls=1", Err("LOG=NUMBER:HASH"));
        check("1:0a", Err("LOG=NUMBER:HASH"));
        check("", Err("LOG=NUMBER:HASH"));
    }

    /// A store whose log of calls has so many entries, of which the latest are kept; and the hashes of all of them.
    fn store(entries: u64, kept: u64) -> (SqliteStore, Vec<LogHash>) {
        let store = SqliteStore::in_memory().unwrap();
        let hashes = (1..=entries).map(|at| {
            let entry = NewEntry { at, value: b"" };
            let full = LogPolicy { max_bytes: 1, durability: Durability::Process };
            let policy = match at + kept > entries {
                true => LogPolicy { max_bytes: u64::MAX, ..full },
                false => full,
            };
            store.append(LOG, &[entry], policy).unwrap().last
        });
        let hashes = hashes.collect();
        (store, hashes)
    }

    #[test]
    fn a_noted_record_is_there_as_it_was() {
        let (store, hashes) = store(5, 2);
        let check =
            |store: Option<&dyn Store>, number: u64, hash: LogHash, expected: NotedHashCheck| {
                let entry = NotedHash { log: LOGS[0], number, hash: hash.to_string() };
                assert_eq!(check_noted(store, &entry).unwrap(), expected, "{number}");
            };
        let is = |number: u64, of: usize, expected: NotedHashCheck| {
            check(Some(&store), number, hashes[of - 1], expected);
        };
        is(5, 5, NotedHashCheck::AsNoted);
        is(4, 4, NotedHashCheck::AsNoted);
        is(4, 5, NotedHashCheck::Changed);
        // The hash of the last one that made room is kept.
        is(3, 3, NotedHashCheck::AsNoted);
        is(3, 2, NotedHashCheck::Changed);
        is(2, 2, NotedHashCheck::Forgotten);
        is(6, 5, NotedHashCheck::Missing);
        is(u64::MAX, 5, NotedHashCheck::Missing);
        check(None, 5, hashes[4], NotedHashCheck::Missing);
        store.remove_log(LOG).unwrap();
        is(5, 5, NotedHashCheck::Missing);
        is(1, 1, NotedHashCheck::Missing);
    }

    #[test]
    fn what_is_found_is_said() {
        let check = |entries: u64, kept: u64, expected: &str| {
            let (store, hashes) = store(entries, kept);
            let checked = check_log(&store, LOG).unwrap();
            let last = hashes.last().map(ToString::to_string).unwrap_or_default();
            assert_eq!(verified("calls", checked).replace(&last, "HASH"), expected);
        };
        check(
            3,
            3,
            "calls: 3 records are as they were written; the last is number 3, with the hash HASH",
        );
        check(
            5,
            2,
            "calls: 2 records, number 4 to 5, are as they were written, the last with the hash HASH; \
             older ones have made room for them",
        );
        let nothing = LogIntegrity::Whole(LogSummary::EMPTY);
        assert_eq!(verified("calls", nothing), "calls: there are no records");
        let whole = Verification::of_calls(nothing);
        assert!(whole.is_whole());
        let entry = NotedHash { log: LOGS[1], number: 7, hash: String::new() };
        let ids = || vec!["A-0123456789AB".to_string()];
        for (found, expected) in [
            (
                Verification { undocumented: ids(), ..Verification::of_calls(nothing) },
                "approvals: what is kept of A-0123456789AB, or was called by it, is not what the record says was asked and decided",
            ),
            (
                Verification { unreadable: ids(), ..Verification::of_calls(nothing) },
                "approvals: what is kept of A-0123456789AB cannot be read",
            ),
            (
                Verification {
                    noted: vec![(entry, NotedHashCheck::Missing)],
                    ..Verification::of_calls(nothing)
                },
                "approvals: record 7 was noted, and is not there: records were removed",
            ),
        ] {
            assert_eq!(
                (found.is_whole(), &found.lines()[2..]),
                (false, &[expected.to_string()][..])
            );
            assert_eq!(found.to_json()["isWhole"], false);
        }
    }
}
