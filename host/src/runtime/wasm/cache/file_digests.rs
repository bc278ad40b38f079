//! The digests of components' own files, which are known again without reading the files.
//!
//! A digest leads to the compiled code of that digest and to nothing else. So a file that was changed behind its stamp is
//! not run; what was approved and compiled before is.

use std::fs;
use std::path::{Path, PathBuf};
use tenon_config::files::{Digest, absolute};

use super::stamp::Stamp;
use super::{Cache, TAG_BYTES, Tag, tag, write_whole};

/// What the files end in that have the digests.
pub(super) const EXTENSION: &str = "source";

/// What is tagged.
const SOURCE: &[u8] = b"source ";

impl Cache {
    /// The stamp of a component's file, as it is before it is read.
    pub(crate) fn stamp(source: &Path) -> Option<Stamp> {
        let about = fs::metadata(source).ok()?;
        Stamp::of(&about).filter(|_| about.is_file())
    }

    /// The digest of a file, if it was read when it had this stamp.
    pub(crate) fn known_digest(&self, source: &Path, stamp: &Stamp) -> Option<Digest> {
        let path = self.source_path(source);
        let content = fs::read(&path).ok()?;
        let (digest, found) = content.split_last_chunk::<TAG_BYTES>()?;
        let digest = Digest::from_hex(str::from_utf8(digest).ok()?)?;
        (*found == self.tag_of_source(&path, &digest, stamp)).then_some(digest)
    }

    /// Keeps the digest of a file that had this stamp before it was read.
    pub(crate) fn know_digest(&self, source: &Path, stamp: &Stamp, digest: &Digest) {
        if !stamp.is_older(self.min_known_age) {
            return;
        }
        let path = self.source_path(source);
        let tag = self.tag_of_source(&path, digest, stamp);
        // It costs time where that fails, and nothing else.
        let _ = write_whole(&path, &[digest.to_string().as_bytes(), &tag].concat(), false);
    }

    fn source_path(&self, source: &Path) -> PathBuf {
        let name = Digest::of(absolute(source).as_os_str().as_encoded_bytes());
        self.folder.join(format!("{name}.{EXTENSION}"))
    }

    fn tag_of_source(&self, path: &Path, digest: &Digest, stamp: &Stamp) -> Tag {
        let said = [digest.to_string().as_bytes(), &stamp.bytes()].concat();
        tag(&self.key_of(path, SOURCE), &said)
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::CachePlace;
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_file_is_known_as_long_as_it_is_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let place =
            || CachePlace { folder: folder.path().join("c"), key: folder.path().join("key") };
        let open = || Cache::open(place(), &wasmtime::Engine::default()).unwrap();
        let cache = Cache { min_known_age: Duration::ZERO, ..open() };
        let [a, b] = ["a.wasm", "b.wasm"].map(|name| folder.path().join(name));
        let digest = Digest::of("a");
        let known = |cache: &Cache, path: &Path| {
            let stamp = Cache::stamp(path)?;
            cache.known_digest(path, &stamp)
        };
        fs::write(&a, "a").unwrap();
        assert_eq!(known(&cache, &a), None);
        let stamp = Cache::stamp(&a).unwrap();
        // One that has just been made may be another in a moment, with the same times.
        open().know_digest(&a, &stamp, &digest);
        assert_eq!(known(&cache, &a), None);
        cache.know_digest(&a, &stamp, &digest);
        assert_eq!(known(&cache, &a), Some(digest));
        assert_eq!(known(&open(), &a), Some(digest));

        // The same content in another file, or written once more, is read once more.
        fs::copy(&a, &b).unwrap();
        fs::copy(cache.source_path(&a), cache.source_path(&b)).unwrap();
        assert_eq!(known(&cache, &b), None);
        fs::rename(&b, &a).unwrap();
        assert_eq!(known(&cache, &a), None);
        assert!(Cache::stamp(folder.path()).is_none());
    }

    #[test]
    fn what_was_written_without_the_key_is_not_believed() {
        let [own, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let open = |folder: &Path| {
            let place = CachePlace { folder: folder.join("c"), key: folder.join("key") };
            let cache = Cache::open(place, &wasmtime::Engine::default()).unwrap();
            Cache { min_known_age: Duration::ZERO, ..cache }
        };
        let (own, foreign) = (open(own.path()), open(other.path()));
        let file = other.path().join("a.wasm");
        fs::write(&file, "a").unwrap();
        let stamp = Cache::stamp(&file).unwrap();
        foreign.know_digest(&file, &stamp, &Digest::of("another"));
        assert!(foreign.known_digest(&file, &stamp).is_some());
        fs::copy(foreign.source_path(&file), own.source_path(&file)).unwrap();
        assert_eq!(own.known_digest(&file, &stamp), None);
        fs::write(own.source_path(&file), "short").unwrap();
        assert_eq!(own.known_digest(&file, &stamp), None);
    }
}
