//! Compiled components on disk.
//!
//! Loading compiled code runs it, so the files must be this host's own: they lie in a folder that
//! nobody else can write to, and each is named after the component's content and the engine that
//! compiled it. A file from anywhere else is never loaded.

use sha2::{Digest, Sha256};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use wasmtime::component::Component;

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The folder cannot be made or read.
    #[error("the cache folder {} cannot be used", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// Somebody else could put code there.
    #[error("the cache folder {} is not private: make it yours with `chmod 700`, or remove it", .0.display())]
    Shared(PathBuf),
}

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

    /// The compiled form of a component, where there is one that loads.
    pub(super) fn get(&self, engine: &wasmtime::Engine, wasm: &[u8]) -> Option<Component> {
        let path = self.path(wasm);
        if !path.exists() {
            return None;
        }
        // SAFETY: the folder is private to this user, and only `put` writes files into it, whole
        // ones.
        match unsafe { Component::deserialize_file(engine, &path) } {
            Ok(component) => Some(component),
            Err(error) => {
                tracing::warn!(path = %path.display(), "a compiled component is unusable: {error:#}");
                let _ = fs::remove_file(&path);
                None
            }
        }
    }

    /// Keeps the compiled form of a component. A cache that cannot be written to costs time, and
    /// nothing else.
    pub(super) fn put(&self, wasm: &[u8], component: &Component) {
        let path = self.path(wasm);
        let written = component
            .serialize()
            .map_err(io::Error::other)
            .and_then(|compiled| write_whole(&path, &compiled));
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a compiled component was not kept: {error}");
        }
    }

    fn path(&self, wasm: &[u8]) -> PathBuf {
        let digest = Sha256::digest(wasm);
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        self.folder.join(format!("{name}-{:016x}.cwasm", self.engine))
    }
}

/// Writes a file so that nobody ever sees half of it.
fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(content)?;
    partial.persist(path)?;
    Ok(())
}

#[cfg(unix)]
fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

#[cfg(unix)]
fn is_private(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(folder)?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(mine && metadata.mode() & 0o022 == 0)
}

#[cfg(not(unix))]
fn make_private(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// A folder of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
fn is_private(_: &Path) -> io::Result<bool> {
    Ok(true)
}
