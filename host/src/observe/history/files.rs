//! The files of a history: the one that is written to, and older ones; and whose turn it is.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long others are waited for who write to the same files.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How many files there are: the one that is written to, and older ones.
pub(super) const MAX_FILES: usize = 4;

/// The newest file.
pub(super) const FILE_NAME: &str = "history.jsonl";

/// The file of this age: 0 is the newest.
pub(super) fn path(folder: &Path, age: usize) -> PathBuf {
    match age {
        0 => folder.join(FILE_NAME),
        age => folder.join(format!("history.{age}.jsonl")),
    }
}

/// Waits for this process's turn, which lasts as long as what is returned. Others have it for
/// milliseconds; one that keeps it is not waited for for ever.
pub(super) fn turn(folder: &Path) -> io::Result<File> {
    let lock = open(private(), &folder.join("history.lock"))?;
    let until = Instant::now() + LOCK_TIMEOUT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(2));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process holds history.lock"));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Opens an ordinary file; what is none, such as a pipe, is not waited for.
pub(super) fn open(options: fs::OpenOptions, path: &Path) -> io::Result<File> {
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("{} is not a regular file", path.display()))),
    }
}

/// How files are opened to be appended to: for this user alone, and not through a link.
pub(super) fn private() -> fs::OpenOptions {
    let mut options = File::options();
    options.create(true).append(true).read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    options
}

/// How files are opened to be read; a pipe is not waited for.
pub(super) fn readable() -> fs::OpenOptions {
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}
