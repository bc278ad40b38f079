//! What is in a folder, for both editions: read as it is asked for, since there may be more in a
//! folder than fits into memory.

use rustix::fs::{Dir, FileType};
use rustix::io::Errno;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::ops::BaseFolder;
use super::view::blocking;
use super::walk::{FileError, file_type};

/// The most names that are looked at before others get the thread.
const BATCH_ENTRIES: usize = 256;

/// The most listings that an instance may be reading: each has a folder open, and a batch in memory.
const MAX_LISTINGS: usize = 64;

/// A name, and what has it.
pub(super) type Entry = (String, FileType);

/// Leave of an instance to read listings.
pub(super) struct ListingSemaphore(Arc<Semaphore>);

impl Default for ListingSemaphore {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_LISTINGS)))
    }
}

/// A listing that is being read.
pub(super) struct DirReader {
    beneath: BaseFolder,
    /// Gone once there is no more.
    dir: Option<Dir>,
    _leave: OwnedSemaphorePermit,
}

impl ListingSemaphore {
    /// Leave to read one more.
    pub(super) fn leave(&self) -> Result<OwnedSemaphorePermit, FileError> {
        self.0.clone().try_acquire_owned().map_err(|_| FileError::Os(Errno::MFILE))
    }
}

impl DirReader {
    /// Opens the listing of a folder.
    pub(super) async fn open(
        beneath: BaseFolder,
        leave: OwnedSemaphorePermit,
    ) -> Result<Self, FileError> {
        let files = beneath.files.clone();
        blocking(&files, move || Self::open_here(beneath, leave)).await
    }

    /// Whether there is no more.
    pub(super) fn has_ended(&self) -> bool {
        self.dir.is_none()
    }

    /// Reads on, up to the next entries that the plugin may see. There are none at the end.
    pub(super) async fn next(mut self) -> Result<(Vec<Entry>, Self), FileError> {
        loop {
            let files = self.beneath.files.clone();
            let read = move || self.batch().map(|entries| (entries, self));
            let (entries, listing) = blocking(&files, read).await?;
            if !entries.is_empty() || listing.has_ended() {
                return Ok((entries, listing));
            }
            self = listing;
        }
    }

    fn open_here(beneath: BaseFolder, leave: OwnedSemaphorePermit) -> Result<Self, FileError> {
        let dir = Some(Dir::read_from(&*beneath.folder.handle)?);
        Ok(Self { beneath, dir, _leave: leave })
    }

    /// What may be seen of the next names.
    fn batch(&mut self) -> Result<Vec<Entry>, FileError> {
        let mut entries = Vec::new();
        for _ in 0..BATCH_ENTRIES {
            let Some(entry) = self.dir.as_mut().and_then(Dir::read) else {
                self.dir = None;
                break;
            };
            let entry = entry?;
            // What has another name can be granted to nobody.
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name == "." || name == ".." {
                continue;
            }
            let mut found = entry.file_type();
            if found == FileType::Unknown
                && let Ok(stat) = self.beneath.folder.stat(name)
            {
                found = file_type(&stat);
            }
            if self.beneath.shows(name, found == FileType::Directory) {
                entries.push((name.to_string(), found));
            }
        }
        Ok(entries)
    }
}

/// All that is in a folder, for tests.
#[cfg(any(test, fuzzing))]
pub(super) fn whole(beneath: &BaseFolder) -> Result<Vec<Entry>, FileError> {
    let mut listing = DirReader::open_here(beneath.clone(), ListingSemaphore::default().leave()?)?;
    let mut entries = Vec::new();
    while !listing.has_ended() {
        entries.extend(listing.batch()?);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::super::walk::FileGrants;
    use super::*;
    use std::fs;
    use tenon_config::grant::{FileRules, PathGrant, ProtectedPaths};
    use tenon_config::path_context::PathContext;

    #[tokio::test]
    async fn a_large_folder_is_read_in_parts_and_what_is_hidden_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        for i in 0..3 * BATCH_ENTRIES {
            fs::write(folder.path().join(format!("{i}.txt")), "").unwrap();
            fs::write(folder.path().join(format!("{i}.secret")), "").unwrap();
        }
        fs::create_dir(folder.path().join("hidden")).unwrap();
        let grant = PathGrant::parse("read:*.txt", &PathContext::in_folder(folder.path()));
        let files = Arc::new(FileGrants::new(FileRules::new(
            vec![vec![grant.unwrap()]],
            Vec::new(),
            ProtectedPaths::default(),
        )));
        let place = files.open_roots().swap_remove(0).1;
        let beneath = BaseFolder { files, folder: place };

        let leave = ListingSemaphore::default().leave().unwrap();
        let mut listing = DirReader::open(beneath, leave).await.unwrap();
        let mut names = Vec::new();
        while !listing.has_ended() {
            let (entries, rest) = listing.next().await.unwrap();
            assert!(entries.len() <= BATCH_ENTRIES);
            names.extend(entries.into_iter().map(|(name, _)| name));
            listing = rest;
        }
        names.sort();
        let mut expected: Vec<String> =
            (0..3 * BATCH_ENTRIES).map(|i| format!("{i}.txt")).collect();
        expected.sort();
        assert_eq!(names, expected);
    }

    #[test]
    fn an_instance_reads_so_many_listings_at_a_time() {
        let listings = ListingSemaphore::default();
        let mut read: Vec<_> = (0..MAX_LISTINGS).map(|_| listings.leave().unwrap()).collect();
        assert_eq!(listings.leave().err(), Some(FileError::Os(Errno::MFILE)));
        read.pop();
        assert!(listings.leave().is_ok());
    }
}
