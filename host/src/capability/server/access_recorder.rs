//! What a confined server is refused, or would be: recorded while it runs, so that its user can grant no more than it needs.

use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempDir;
use tenon_confinement::{ConfinementViolation, RecordingOptions};

/// Records one server. Clones record the same one.
#[derive(Clone)]
pub struct AccessRecorder(Arc<AccessRecorderState>);

struct AccessRecorderState {
    folder: TempDir,
    opens_files: bool,
    /// The grants that would allow what was requested over the network.
    urls: Mutex<BTreeSet<String>>,
}

/// What a server did or tried that it has no grant for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UngrantedAccesses {
    /// Files and folders that it read.
    pub reads: BTreeSet<PathBuf>,
    /// Files and folders that it made, changed or removed.
    pub writes: BTreeSet<PathBuf>,
    /// URL patterns of what it requested, as grants of `network`.
    pub urls: BTreeSet<String>,
    /// Where it connected to by itself. No grant allows that: a confined server reaches the network through the host's proxy.
    pub connections: BTreeSet<SocketAddr>,
}

impl AccessRecorder {
    /// Records what a server is refused. It stays confined.
    ///
    /// # Errors
    ///
    /// Where there is no place for a temporary file.
    pub fn of_refusals() -> io::Result<Self> {
        Self::new(false)
    }

    /// Records what a server would be refused: it reaches every file of its user, and every public host. All else of its
    /// confinement holds.
    ///
    /// # Errors
    ///
    /// Where there is no place for a temporary file.
    pub fn of_needs() -> io::Result<Self> {
        Self::new(true)
    }

    fn new(opens_files: bool) -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tenon-recording-").tempdir()?;
        Ok(Self(Arc::new(AccessRecorderState { folder, opens_files, urls: Mutex::default() })))
    }

    /// Whether the server reaches everything, and what it does is recorded.
    pub(crate) fn opens_files(&self) -> bool {
        self.0.opens_files
    }

    /// What the launcher is told.
    pub(super) fn recording(&self) -> RecordingOptions {
        RecordingOptions { file: self.file(), opens_files: self.0.opens_files }
    }

    fn file(&self) -> PathBuf {
        self.0.folder.path().join("attempts")
    }

    /// Notes a grant that would allow a request.
    pub(crate) fn note_url(&self, grant: &str) {
        self.0.urls.lock().unwrap_or_else(PoisonError::into_inner).insert(grant.into());
    }

    /// Ends the recording, and removes what is kept of it. What drops the last clone does the same; a host that ends its process
    /// meanwhile may not come so far.
    pub fn remove(&self) {
        // It may be gone.
        let _ = std::fs::remove_dir_all(self.0.folder.path());
    }

    /// Returns what was recorded so far.
    ///
    /// # Errors
    ///
    /// Where the recording cannot be read.
    pub fn attempts(&self) -> io::Result<UngrantedAccesses> {
        let urls = self.0.urls.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut attempts = UngrantedAccesses { urls, ..UngrantedAccesses::default() };
        for attempt in ConfinementViolation::read_all(&self.file())? {
            match attempt {
                // What is not there for anybody was not refused to it.
                ConfinementViolation::Read(path) if path.symlink_metadata().is_ok() => {
                    attempts.reads.insert(path);
                }
                ConfinementViolation::Write(path) if path.parent().is_some_and(Path::is_dir) => {
                    attempts.writes.insert(path);
                }
                ConfinementViolation::Connect(address) => {
                    attempts.connections.insert(address);
                }
                _ => {}
            }
        }
        Ok(attempts)
    }
}
