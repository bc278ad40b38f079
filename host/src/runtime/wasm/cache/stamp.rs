//! Stamps: what a file is known again by, without reading it.

use std::fs::Metadata;
use std::time::{Duration, SystemTime};

/// How old a file is at least that is known again by its times: one that is changed right after it was checked could have
/// the same.
pub(super) const MIN_KNOWN_AGE: Duration = Duration::from_secs(2);

/// What a file is known again by: its place, its size and its times.
pub(crate) struct Stamp {
    numbers: [u64; 7],
    changed: SystemTime,
}

impl Stamp {
    #[cfg(unix)]
    pub(super) fn of(file: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let [seconds, nanoseconds] = [file.ctime(), file.ctime_nsec()].map(i64::cast_unsigned);
        let numbers = [
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime().cast_unsigned(),
            file.mtime_nsec().cast_unsigned(),
            seconds,
            nanoseconds,
        ];
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        Some(Self { numbers, changed })
    }

    /// Other systems tell no time that nobody can set.
    #[cfg(not(unix))]
    pub(super) fn of(_: &Metadata) -> Option<Self> {
        None
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Whether it was changed so long ago.
    pub(super) fn is_older(&self, age: Duration) -> bool {
        self.changed.elapsed().is_ok_and(|since| since > age)
    }
}
