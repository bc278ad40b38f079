//! What was downloaded before, by its digest. Whatever is read is checked: a cache is no place to
//! believe in.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tenon_config::files::{self, Digest};
use tenon_host::HostEnvironment;

/// How long a file is kept that nobody uses.
const MAX_UNUSED_AGE: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// A folder with downloads; none where there is no place for it.
pub(crate) struct BlobCache(Option<PathBuf>);

impl BlobCache {
    pub(crate) fn new(host_environment: &HostEnvironment) -> Self {
        Self(host_environment.cache.as_ref().map(|cache| cache.join("downloads/sha256")))
    }

    /// The bytes of a digest, where they are there and are still those.
    pub(crate) fn get(&self, digest: &Digest, most: u64) -> Option<Vec<u8>> {
        let path = self.path(digest)?;
        let bytes = files::read(&path, most).ok()?;
        if Digest::of(&bytes) != *digest {
            tracing::warn!(path = %path.display(), "a cached download is damaged and is fetched again");
            let _ = fs::remove_file(&path);
            return None;
        }
        // It is used, and so is kept.
        let _ = File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(bytes)
    }

    /// Keeps bytes. A cache that cannot be written to costs time, and nothing else.
    pub(crate) fn put(&self, digest: &Digest, bytes: &[u8]) {
        let Some(path) = self.path(digest) else { return };
        let Some(folder) = path.parent() else { return };
        let written = fs::create_dir_all(folder).and_then(|()| files::write_whole(&path, bytes));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a download is not kept: {error}");
        }
        evict(folder);
    }

    fn path(&self, digest: &Digest) -> Option<PathBuf> {
        Some(self.0.as_ref()?.join(digest.to_string()))
    }
}

/// Removes what nobody has used for long.
fn evict(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|metadata| metadata.modified());
        let age = modified.ok().and_then(|modified| modified.elapsed().ok());
        if age.is_some_and(|age| age > MAX_UNUSED_AGE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
