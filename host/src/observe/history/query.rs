//! Reading a history.

use std::io;
use std::path::{Path, PathBuf};
use tenon_store::{
    FILE_NAME, LogIntegrity, LogStore, LogSummary, MAX_BATCH_ENTRIES, SqliteStore, StoreError,
    check_log,
};
use tenon_types::text::fits;

use super::{LOG, Record, former_files};
use crate::call::CallKind;

/// Why a history cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// The store cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file with records of a former version cannot be read or removed.
    #[error("{}: {_1}", .0.display())]
    FormerFile(PathBuf, io::Error),
}

/// Which calls of a history are wanted. What is not said is no condition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// What was asked.
    pub kind: Option<CallKind>,
    /// The tool; `*` stands for anything.
    pub tool: Option<String>,
    /// The plugin.
    pub plugin: Option<String>,
    /// The session.
    pub session: Option<String>,
    /// The word for how it ended.
    pub outcome: Option<String>,
    /// Only those that did not end well.
    pub failed: bool,
    /// Not before this time, in milliseconds since 1970.
    pub since: Option<u64>,
    /// At most this many, the latest; all, where nothing is said.
    pub limit: Option<usize>,
}

/// The outcomes of calls that did what they were made for; that is so of a hook whatever it decides.
const ENDED_WELL: [&str; 3] = ["ok", "replace", "veto"];

impl Query {
    fn wants(&self, record: &Record) -> bool {
        let Self { kind, tool, plugin, session, outcome, failed, since, limit: _ } = self;
        kind.is_none_or(|kind| record.kind == kind)
            && tool.as_ref().is_none_or(|tool| fits(tool, &record.tool))
            && plugin.as_ref().is_none_or(|plugin| record.plugin.as_deref() == Some(plugin))
            && session.as_ref().is_none_or(|session| record.session.as_ref() == Some(session))
            && outcome.as_ref().is_none_or(|outcome| record.outcome == *outcome)
            && !(*failed && ENDED_WELL.contains(&&*record.outcome))
            && since.is_none_or(|since| record.at >= since)
    }
}

/// Reads the history in a folder, the oldest call first. With a limit, no more is read than holds the latest calls that are
/// wanted. A history that is not there is empty. It blocks.
///
/// # Errors
///
/// Where the store cannot be read.
pub fn read(folder: &Path, query: &Query) -> Result<Vec<Record>, HistoryError> {
    match open(folder)? {
        Some(store) => read_from(&store, query),
        None => Ok(Vec::new()),
    }
}

/// Reads the history in a store, as [`read`] does.
///
/// # Errors
///
/// Where the store cannot be read.
pub fn read_from(store: &dyn LogStore, query: &Query) -> Result<Vec<Record>, HistoryError> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let (mut found, mut before) = (Vec::new(), None);
    // The latest first, so that no more is read than is wanted.
    while found.len() < limit {
        let page = match limit - found.len() {
            // Few are mostly among the last few.
            few if before.is_none() => few,
            _ => MAX_BATCH_ENTRIES,
        };
        let entries = store.entries_before(LOG, before, page)?;
        let Some(last) = entries.last() else { break };
        before = Some(last.number);
        let records = entries.iter().filter_map(|entry| serde_json::from_slice(&entry.value).ok());
        found.extend(records.filter(|record| query.wants(record)).take(limit - found.len()));
    }
    found.reverse();
    Ok(found)
}

/// Checks that each record in the history of a folder is bound to the one before. It blocks.
///
/// # Errors
///
/// Where the store cannot be read.
pub fn check(folder: &Path) -> Result<LogIntegrity, HistoryError> {
    match open(folder)? {
        Some(store) => Ok(check_log(&store, LOG)?),
        None => Ok(LogIntegrity::Whole(LogSummary::EMPTY)),
    }
}

/// The store in a folder, if there is one, with what former versions have recorded.
fn open(folder: &Path) -> Result<Option<SqliteStore>, HistoryError> {
    let file = folder.join(FILE_NAME);
    if !file.exists() && !former_files::are_there(folder) {
        return Ok(None);
    }
    let store = SqliteStore::open(file)?;
    // How much there may be is for whoever records calls to say.
    former_files::take_over(folder, &store, u64::MAX)?;
    Ok(Some(store))
}
