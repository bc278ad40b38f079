//! Locks beside a SQLite database. Each that is held is a locked file, which the system unlocks when its process ends.
//!
//! A child does not keep the locks of its parent: files are closed in it when it starts another program, as `O_CLOEXEC` is
//! std's default. Before that, for a moment, it has them open too, so they are unlocked before they are closed.

use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::open::make_private_folder;
use super::{SqliteStore, lock};
use crate::error::{RawStoreError, StoreResult};
use crate::liveness_lock::{HeldLock, LockStore};
use crate::rules::check_lock_name;

/// The file that is locked by whoever takes, tries or removes another one. It is never removed itself.
const GUARD: &str = "guard";

/// Where the locks of a store are.
pub(super) enum Locks {
    /// Those of a database in memory, which nobody else has: the names that are held.
    Names(Arc<Mutex<HashSet<String>>>),
    /// Those of a database on disk.
    Files(LockFolder),
}

impl LockStore for SqliteStore {
    fn hold_lock(&self, name: &str) -> StoreResult<Option<Box<dyn HeldLock>>> {
        check_lock_name(name)?;
        match &self.locks {
            Locks::Names(held) => Ok(hold_name(held, name)),
            Locks::Files(folder) => {
                folder.hold(name).map_err(|error| RawStoreError::from(error).at(&folder.path))
            }
        }
    }

    fn is_locked(&self, name: &str) -> StoreResult<bool> {
        check_lock_name(name)?;
        match &self.locks {
            Locks::Names(held) => Ok(lock(held).contains(name)),
            Locks::Files(folder) => {
                folder.is_held(name).map_err(|error| RawStoreError::from(error).at(&folder.path))
            }
        }
    }
}

fn hold_name(held: &Arc<Mutex<HashSet<String>>>, name: &str) -> Option<Box<dyn HeldLock>> {
    let is_free = lock(held).insert(name.into());
    is_free.then(|| Box::new(InMemoryLock { held: held.clone(), name: name.into() }) as _)
}

/// A lock of a database in memory.
#[derive(Debug)]
struct InMemoryLock {
    held: Arc<Mutex<HashSet<String>>>,
    name: String,
}

impl HeldLock for InMemoryLock {}

impl Drop for InMemoryLock {
    fn drop(&mut self) {
        lock(&self.held).remove(&self.name);
    }
}

/// The folder with the locks of a database. It is there from the first lock on.
pub(super) struct LockFolder {
    path: PathBuf,
    /// Whether this store has removed what killed processes have left.
    is_swept: AtomicBool,
}

impl LockFolder {
    /// The one of the database in this file. As the files of SQLite, it lies beside the file itself and not beside a link.
    pub(super) fn beside(database: &Path) -> io::Result<Self> {
        let mut path = database.canonicalize()?.into_os_string();
        path.push("-locks");
        Ok(Self { path: path.into(), is_swept: AtomicBool::new(false) })
    }

    fn hold(&self, name: &str) -> io::Result<Option<Box<dyn HeldLock>>> {
        make_private_folder(&self.path)?;
        let _guard = LockFolderGuard::take(&self.path)?;
        if !self.is_swept.swap(true, Ordering::Relaxed) {
            self.sweep()?;
        }
        let path = self.file_of(name);
        let file = options().create(true).open(&path)?;
        match is_free(&file)? {
            true => Ok(Some(Box::new(FileLock { file, folder: self.path.clone(), path }))),
            false => Ok(None),
        }
    }

    fn is_held(&self, name: &str) -> io::Result<bool> {
        let path = self.file_of(name);
        // Most locks that are asked for are free, and then there is neither a file nor perhaps a folder.
        if !path.try_exists()? {
            return Ok(false);
        }
        let _guard = LockFolderGuard::take(&self.path)?;
        Ok(!remove_if_free(&path)?)
    }

    /// Removes the files of processes that were killed.
    fn sweep(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.path)? {
            let path = entry?.path();
            if path.file_name().is_some_and(|name| name != GUARD) {
                remove_if_free(&path)?;
            }
        }
        Ok(())
    }

    /// The file of a lock. Its name is a hash, since that of the lock is any text.
    fn file_of(&self, name: &str) -> PathBuf {
        let hash = Sha256::digest(name.as_bytes());
        self.path.join(hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

/// What opens a file that is locked. Where locks go over a network, an exclusive one needs a file that can be written.
fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Locks a file, unless it is locked. Whoever has the guard sees no file that is locked only to try it.
fn is_free(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes a file that nobody has locked, and says whether there is none that somebody has. It needs the guard.
fn remove_if_free(path: &Path) -> io::Result<bool> {
    let file = match options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        opened => opened?,
    };
    if !is_free(&file)? {
        return Ok(false);
    }
    file.unlock()?;
    fs::remove_file(path)?;
    Ok(true)
}

/// A lock of a database on disk.
#[derive(Debug)]
struct FileLock {
    file: File,
    folder: PathBuf,
    path: PathBuf,
}

impl HeldLock for FileLock {}

impl Drop for FileLock {
    fn drop(&mut self) {
        let guard = LockFolderGuard::take(&self.folder);
        let _ = self.file.unlock();
        // Without the guard the file may be somebody else's by now. It is removed by whoever finds it next.
        if guard.is_ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps others from the files of locks for the moment that it takes to try one. Without it, a file could be removed that
/// somebody has just opened to lock it, and a lock that is only tried would seem to be held.
struct LockFolderGuard(File);

impl LockFolderGuard {
    fn take(folder: &Path) -> io::Result<Self> {
        let file = options().create(true).open(folder.join(GUARD))?;
        loop {
            match file.lock() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                locked => return locked.map(|()| Self(file)),
            }
        }
    }
}

impl Drop for LockFolderGuard {
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}
