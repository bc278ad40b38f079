//! Runs of scripts that call tools, and their journals.
//!
//! A run is an item of the store:
//!
//! ```text
//! running ──▶ paused ──resume──▶ running ──▶ done, failed
//!    │           └──────cancel──▶ failed, with the code `cancelled`
//!    └────the process died, or the run was dropped──▶ unknown
//! ```
//!
//! Its journal is a log: of each call the key, what was called with which arguments, and the answer. It is written now and
//! then, and when the run pauses or ends. A run that was resumed and cannot go on is paused again. Only a paused run goes on: its script begins again, and the calls of its journal are answered
//! from there. A run whose process has died may have made calls that no journal has, so it never goes on.
//!
//! How a script runs is left to others. Every call blocks until the disk has answered.

mod journal;
mod run;
mod runs;
#[cfg(test)]
mod tests;

pub use journal::{
    Journal, JournalAnswer, JournalEntry, JournalMismatch, JsonDigest, NewEntries, step_key,
};
pub use run::{NewRun, ResumeCaller, Run, RunState};
pub use runs::{RunHold, Runs, UnsavedRun};

use tenon_store::StoreError;

/// Why a run could not be kept or resumed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The store failed.
    #[error("runs cannot be kept")]
    Store(#[from] StoreError),
    /// There is no run of this id.
    #[error("there is no run {0}")]
    NotFound(String),
    /// It cannot go on.
    #[error("the run {id} cannot go on: {why}")]
    NotPaused {
        /// The run.
        id: String,
        /// Why.
        why: String,
    },
    /// It goes on in another project only.
    #[error(
        "the run {id} began in the project {project}, and goes on there only: `tenon run --resume {id}` in that folder"
    )]
    OtherProject {
        /// The run.
        id: String,
        /// The folder of its project.
        project: String,
    },
    /// It cannot be cancelled.
    #[error("the run {id} cannot be cancelled: {why}")]
    NotCancelled {
        /// The run.
        id: String,
        /// Why.
        why: String,
    },
    /// As many runs of its principal are paused as may be.
    #[error(
        "{0} runs of the same caller are paused already, which is all that there is room for: `tenon runs` lists them, and \
         `tenon runs cancel ID` ends one"
    )]
    TooManyPaused(u64),
    /// What is kept of it cannot be read.
    #[error("what is kept of the run {0} is damaged")]
    Damaged(String),
    /// The system has no random numbers.
    #[error("there are no random numbers")]
    NoRandomness,
    /// There is a run of this id already.
    #[error("there is a run {0} already")]
    Exists(String),
}

impl RunError {
    /// Whether what was to be kept is too large, or too much.
    pub fn is_of_size(&self) -> bool {
        let Self::Store(error) = self else { return false };
        matches!(
            error,
            StoreError::TooManyItems { .. }
                | StoreError::ValueTooLarge { .. }
                | StoreError::KeyTooLong { .. }
                | StoreError::EntryTooLong { .. }
                | StoreError::TooManyEntries { .. }
        )
    }
}

type Result<T> = std::result::Result<T, RunError>;
