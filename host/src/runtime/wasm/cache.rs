//! Compiled components on disk.
//!
//! Loading compiled code runs it, so the files must be this host's own: they lie in a folder that
//! nobody else can write to, and each is named after the component's content and the engine that
//! compiled it. A file from anywhere else is never loaded.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use wasmtime::component::Component;

use crate::files::{Digest, is_private, make_private};

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CacheError {
    /// The folder cannot be made or read.
    #[error("the cache folder {} cannot be used", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// Somebody else could put code there.
    #[error("the cache folder {} is not private: make it yours with `chmod 700`, or remove it", .0.display())]
    Shared(PathBuf),
}

/// How long a file is kept that nobody uses.
const UNUSED: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const EXTENSION: &str = "cwasm";

/// A folder of compiled components.
pub(super) struct Cache {
    folder: PathBuf,
    /// What the engine's settings and version come to.
    engine: u64,
}

impl Cache {
    /// Opens a cache folder, making it where it is missing.
    pub(super) fn open(folder: PathBuf, engine: &wasmtime::Engine) -> Result<Self, CacheError> {
        make_private(&folder).map_err(|error| CacheError::Folder(folder.clone(), error))?;
        if !is_private(&folder).map_err(|error| CacheError::Folder(folder.clone(), error))? {
            return Err(CacheError::Shared(folder));
        }
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        Ok(Self { folder, engine: hasher.finish() })
    }

    /// The compiled form of a component, where there is one that is whole.
    pub(super) fn get(&self, engine: &wasmtime::Engine, wasm: &Digest) -> Option<Component> {
        let path = self.path(wasm);
        let file = fs::File::open(&path).ok()?;
        let loaded = check_seal(&file).and_then(|()| {
            // SAFETY: the folder is private to this user, only `put` writes files into it, whole
            // ones, and this one is as it was written.
            unsafe { Component::deserialize_file(engine, &path) }
                .map_err(|error| format!("{error:#}"))
        });
        match loaded {
            Ok(component) => {
                keep(&path);
                Some(component)
            }
            Err(problem) => {
                tracing::warn!(path = %path.display(), "a compiled component is made anew: {problem}");
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps the compiled form of a component. A cache that cannot be written to costs time, and
    /// nothing else.
    pub(super) fn put(&self, wasm: &Digest, component: &Component) {
        let path = self.path(wasm);
        let written = component
            .serialize()
            .map_err(io::Error::other)
            .and_then(|compiled| write_whole(&path, &compiled));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a compiled component was not kept: {error}");
        }
        self.evict();
    }

    /// Removes what was not used for long.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let unused = age(&entry.path()).is_some_and(|age| age > UNUSED);
            if unused && entry.path().extension().is_some_and(|extension| extension == EXTENSION) {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Where the compiled form of the component with this content is.
    fn path(&self, wasm: &Digest) -> PathBuf {
        self.folder.join(format!("{wasm}-{:016x}.{EXTENSION}", self.engine))
    }
}

/// Checks that a file is as it was written: it ends in a checksum of what comes before. That finds
/// damage; it is no defence against somebody who can write to the folder.
fn check_seal(file: &fs::File) -> Result<(), String> {
    // SAFETY: nobody writes to a file of the cache once it has its name, and the folder is private.
    let content = unsafe { memmap2::Mmap::map(file) }.map_err(|error| error.to_string())?;
    let (compiled, seal) = content.split_last_chunk::<4>().ok_or("the file is too short")?;
    match crc32fast::hash(compiled) == u32::from_le_bytes(*seal) {
        true => Ok(()),
        false => Err("the file is damaged".into()),
    }
}

/// Writes a file so that nobody ever sees half of it.
fn write_whole(path: &Path, compiled: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(compiled)?;
    partial.write_all(&crc32fast::hash(compiled).to_le_bytes())?;
    partial.as_file().sync_all()?;
    partial.persist(path)?;
    Ok(())
}

/// Marks a file as used.
fn keep(path: &Path) {
    if age(path).is_some_and(|age| age > UNUSED / 10)
        && let Ok(file) = fs::File::open(path)
    {
        let _ = file.set_modified(SystemTime::now());
    }
}

fn age(path: &Path) -> Option<Duration> {
    fs::metadata(path).ok()?.modified().ok()?.elapsed().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A component with nothing in it.
    const EMPTY: &[u8] = b"\0asm\x0d\0\x01\0";

    #[test]
    fn a_damaged_file_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(folder.path().join("cache"), &engine).unwrap();
        let wasm = &Digest::of(EMPTY);
        cache.put(wasm, &Component::new(&engine, EMPTY).unwrap());
        assert!(cache.get(&engine, wasm).is_some());

        let path = cache.path(wasm);
        let mut file = fs::read(&path).unwrap();
        let middle = file.len() / 2;
        file[middle] ^= 1;
        fs::write(&path, file).unwrap();
        assert!(cache.get(&engine, wasm).is_none());
        assert!(!path.exists());
    }

    #[test]
    fn what_nobody_used_for_long_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(folder.path().join("cache"), &engine).unwrap();
        let old = cache.folder.join("old.cwasm");
        fs::write(&old, "").unwrap();
        let file = fs::File::options().append(true).open(&old).unwrap();
        file.set_modified(SystemTime::now() - UNUSED * 2).unwrap();
        let wasm = Digest::of(EMPTY);
        cache.put(&wasm, &Component::new(&engine, EMPTY).unwrap());
        assert!(!old.exists());
        assert!(cache.get(&engine, &wasm).is_some());
    }
}
