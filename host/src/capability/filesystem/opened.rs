//! How much an instance has open: the descriptors of the system, which all that this process does shares.

use rustix::io::Errno;
use std::any::Any;
use std::sync::{Arc, Weak};

use super::walk::FileError;

/// The most files and folders that an instance may have open.
const MAX_OPEN: usize = 256;

/// What an instance has open, or is about to. A file counts until nobody has it any more: a guest that
/// lets go of a descriptor may still have streams of it.
#[derive(Default)]
pub(super) struct OpenFiles(Vec<Weak<dyn Any + Send + Sync>>);

/// Leave to open one more. It counts as open itself until it is dropped.
pub(super) struct OpenPermit(#[allow(dead_code, reason = "it is there to be counted")] Arc<()>);

impl OpenFiles {
    /// Leave to open one more file or folder.
    pub(super) fn leave(&mut self) -> Result<OpenPermit, FileError> {
        if self.0.len() >= MAX_OPEN {
            self.0.retain(|open| open.strong_count() > 0);
        }
        if self.0.len() >= MAX_OPEN {
            return Err(FileError::Os(Errno::MFILE));
        }
        let leave = Arc::new(());
        self.count(&leave);
        Ok(OpenPermit(leave))
    }

    /// Counts what was opened, as long as anybody has it.
    pub(super) fn count<T: Any + Send + Sync>(&mut self, opened: &Arc<T>) {
        let opened: Weak<T> = Arc::downgrade(opened);
        self.0.push(opened);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens as many as it gets leave for. Gives what it has.
    fn open_all(open: &mut OpenFiles) -> Vec<Arc<u32>> {
        let mut opened = Vec::new();
        while let Ok(leave) = open.leave() {
            let file = Arc::new(1);
            open.count(&file);
            drop(leave);
            opened.push(file);
        }
        opened
    }

    #[test]
    fn a_file_counts_until_nobody_has_it() {
        let mut open = OpenFiles::default();
        let mut files = open_all(&mut open);
        assert_eq!(files.len(), MAX_OPEN);
        // A stream has it, too.
        let stream = files[0].clone();
        files.swap_remove(0);
        assert!(open.leave().is_err());
        drop(stream);
        assert_eq!(open_all(&mut open).len(), 1);
        files.clear();
        assert_eq!(open_all(&mut open).len(), MAX_OPEN);
    }

    #[test]
    fn what_is_being_opened_counts() {
        let mut open = OpenFiles::default();
        let mut leaves: Vec<OpenPermit> = (0..MAX_OPEN).map(|_| open.leave().unwrap()).collect();
        assert!(open.leave().is_err());
        // It was not opened after all.
        leaves.pop();
        assert!(open.leave().is_ok());
    }
}
