//! Reading a history.

use std::io;
use std::path::Path;
use tenon_types::text::fits;

use super::Record;
use super::files::{MAX_FILES, open, path, readable, turn};
use super::lines::LinesFromEnd;
use crate::call::CallKind;

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

/// Reads a history, the oldest call first. With a limit, no more is read than holds the latest calls that are wanted.
/// Lines that are no records are skipped; there may be one where a process has crashed. A history that is not there is
/// empty. It blocks.
///
/// # Errors
///
/// Where a file cannot be read.
pub fn read(folder: &Path, query: &Query) -> io::Result<Vec<Record>> {
    let limit = query.limit.unwrap_or(usize::MAX);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    {
        // None is renamed between one and the next. Who writes does not wait for more than that.
        let _turn = match turn(folder) {
            // Who may read and not write takes no turn.
            Err(error) if is_only_read(error.kind()) => None,
            turn => Some(turn?),
        };
        for age in 0..MAX_FILES {
            match open(readable(), &path(folder, age)) {
                Ok(file) => files.push(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    // The latest first, so that no more is read than is wanted.
    let mut found = Vec::new();
    for file in files {
        let mut lines = LinesFromEnd::new(file)?;
        while found.len() < limit
            && let Some(line) = lines.next()?
        {
            let Ok(record) = serde_json::from_slice::<Record>(&line) else { continue };
            if query.wants(&record) {
                found.push(record);
            }
        }
    }
    found.reverse();
    Ok(found)
}

/// Whether a file could not be written to because of what may be done there.
fn is_only_read(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}
