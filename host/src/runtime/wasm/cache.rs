//! Compiled components on disk.
//!
//! Loading compiled code runs it, so the files must be this host's own: they lie in a folder that
//! nobody else can write to, and each is named after the component's content and the engine that
//! compiled it. A file from anywhere else is never loaded: each ends in a tag that takes a key to
//! make. Caches are copied, restored and shared by tools that think nothing of it; the key lies
//! elsewhere.

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tenon_config::files::{Digest, claim, is_private, make_private, read_private};
use wasmtime::component::Component;

/// Why the cache cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum CacheError {
    /// The folder cannot be made or read.
    #[error("the cache folder {} cannot be used", .0.display())]
    Folder(PathBuf, #[source] io::Error),
    /// Somebody else could put code there.
    #[error("the cache folder {} is not private: make it yours with `chmod 700`, or remove it", .0.display())]
    Shared(PathBuf),
    /// There is no key to tell the own files by.
    #[error("the key of the cache, {}, cannot be used", .0.display())]
    Key(PathBuf, #[source] io::Error),
}

/// Where a cache is.
pub(crate) struct CachePlace {
    /// Where compiled components are.
    pub(crate) folder: PathBuf,
    /// What their tags are made with. Made where it is missing.
    pub(crate) key: PathBuf,
}

/// How long a file is kept that nobody uses.
const MAX_UNUSED_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

const EXTENSION: &str = "cwasm";

/// How long a key is, in letters: two for each byte.
const KEY_DIGITS: usize = 64;

/// How long a tag is, in bytes.
const TAG_BYTES: usize = 32;

/// A folder of compiled components.
pub(super) struct Cache {
    folder: PathBuf,
    key: hmac::Key,
    /// What the engine's settings and version come to, and whose key it is: what was made with
    /// another one is no damage, and just not there.
    engine: u64,
}

impl Cache {
    /// Opens a cache folder, making it where it is missing.
    pub(super) fn open(place: CachePlace, engine: &wasmtime::Engine) -> Result<Self, CacheError> {
        let folder = place.folder;
        make_private(&folder).map_err(|error| CacheError::Folder(folder.clone(), error))?;
        if !is_private(&folder).map_err(|error| CacheError::Folder(folder.clone(), error))? {
            return Err(CacheError::Shared(folder));
        }
        let key = key(&place.key).map_err(|error| CacheError::Key(place.key, error))?;
        let mut hasher = DefaultHasher::new();
        engine.precompile_compatibility_hash().hash(&mut hasher);
        hmac::sign(&key, b"key").as_ref().hash(&mut hasher);
        Ok(Self { folder, key, engine: hasher.finish() })
    }

    /// The compiled form of a component, where there is one that is whole.
    pub(super) fn get(&self, engine: &wasmtime::Engine, wasm: &Digest) -> Option<Component> {
        let path = self.path(wasm);
        // Into memory, so that what is checked is what is loaded.
        let content = fs::read(&path).ok()?;
        let checked = self.check(&path, &content).map_err(str::to_string);
        let loaded = checked.and_then(|compiled| {
            // SAFETY: nobody without the key can have made the tag, and with it only `put` makes
            // one, of what wasmtime has compiled for an engine like this.
            unsafe { Component::deserialize(engine, compiled) }
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
        let written = component.serialize().map_err(io::Error::other).and_then(|compiled| {
            let tag = hmac::sign(&self.key_of(&path), &compiled);
            write_whole(&path, &compiled, tag.as_ref())
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a compiled component was not kept: {error}");
        }
        self.evict();
    }

    /// The compiled code in what a file has, if this host wrote it, for this name.
    fn check<'a>(&self, path: &Path, content: &'a [u8]) -> Result<&'a [u8], &'static str> {
        let (compiled, tag) =
            content.split_last_chunk::<TAG_BYTES>().ok_or("the file is too short")?;
        match hmac::verify(&self.key_of(path), compiled, tag) {
            Ok(()) => Ok(compiled),
            Err(_) => Err("this host did not write the file, or it is damaged"),
        }
    }

    /// What the code in a file is tagged with. Each name has its own, so that the code of one
    /// component is not run for another.
    fn key_of(&self, path: &Path) -> hmac::Key {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        hmac::Key::new(hmac::HMAC_SHA256, hmac::sign(&self.key, name).as_ref())
    }

    /// Removes what was not used for long.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let unused = age(&entry.path()).is_some_and(|age| age > MAX_UNUSED_AGE);
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

/// The key in a file that only this user can read; a new one where there is none.
fn key(path: &Path) -> io::Result<hmac::Key> {
    let read = match read_private(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make_key(path)?;
            read_private(path)
        }
        read => read,
    };
    let text = read?;
    // As it is written: these letters are as long as what the function takes at once.
    match text.len() == KEY_DIGITS && text.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        true => Ok(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())),
        false => Err(io::Error::other("it is not a valid key; remove it to create a new one")),
    }
}

/// Writes a new key, unless another process has come first.
fn make_key(path: &Path) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    claim(folder)?;
    let mut random = [0; KEY_DIGITS / 2];
    SystemRandom::new()
        .fill(&mut random)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    let text = hex::encode(random);
    // It is made so that only this user can read it.
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(text.as_bytes())?;
    partial.as_file().sync_all()?;
    match partial.persist_noclobber(path) {
        Err(error) if error.error.kind() != io::ErrorKind::AlreadyExists => Err(error.error),
        _ => Ok(()),
    }
}

/// Writes a file so that nobody ever sees half of it.
fn write_whole(path: &Path, compiled: &[u8], tag: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(compiled)?;
    partial.write_all(tag)?;
    partial.as_file().sync_all()?;
    partial.persist(path)?;
    Ok(())
}

/// Marks a file as used.
fn keep(path: &Path) {
    if age(path).is_some_and(|age| age > MAX_UNUSED_AGE / 10)
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

    fn place(folder: &Path) -> CachePlace {
        CachePlace { folder: folder.join("cache"), key: folder.join("state/key") }
    }

    #[test]
    fn a_file_that_was_made_without_the_key_is_not_run() {
        let [own, other] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(place(own.path()), &engine).unwrap();
        let foreign = Cache::open(place(other.path()), &engine).unwrap();
        let (wasm, component) = (Digest::of(EMPTY), Component::new(&engine, EMPTY).unwrap());
        let refused = |what: &str| {
            assert!(cache.get(&engine, &wasm).is_none(), "{what}");
            assert!(!cache.path(&wasm).exists(), "{what}");
        };
        foreign.put(&wasm, &component);
        assert_ne!(cache.path(&wasm).file_name(), foreign.path(&wasm).file_name());
        fs::copy(foreign.path(&wasm), cache.path(&wasm)).unwrap();
        refused("it is of another key");

        let compiled = component.serialize().unwrap();
        fs::write(cache.path(&wasm), &compiled).unwrap();
        refused("it has no tag");

        let another = Digest::of("another component");
        cache.put(&another, &component);
        fs::copy(cache.path(&another), cache.path(&wasm)).unwrap();
        refused("it is of another component");

        cache.put(&wasm, &component);
        let again = Cache::open(place(own.path()), &engine).unwrap();
        assert!(again.get(&engine, &wasm).is_some());
    }

    #[test]
    #[cfg(unix)]
    fn a_key_that_others_can_read_or_that_is_none_is_not_used() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let open = || Cache::open(place(folder.path()), &engine).err();
        assert!(open().is_none());
        let key = place(folder.path()).key;
        let set = |mode| fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        set(0o640);
        assert!(matches!(open(), Some(CacheError::Key(..))));
        set(0o600);
        assert!(open().is_none());
        fs::write(&key, "short").unwrap();
        assert!(matches!(open(), Some(CacheError::Key(..))));
    }

    #[test]
    fn a_damaged_file_is_not_run() {
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(place(folder.path()), &engine).unwrap();
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
        let cache = Cache::open(place(folder.path()), &engine).unwrap();
        let old = cache.folder.join("old.cwasm");
        fs::write(&old, "").unwrap();
        let file = fs::File::options().append(true).open(&old).unwrap();
        file.set_modified(SystemTime::now() - MAX_UNUSED_AGE * 2).unwrap();
        let wasm = Digest::of(EMPTY);
        cache.put(&wasm, &Component::new(&engine, EMPTY).unwrap());
        assert!(!old.exists());
        assert!(cache.get(&engine, &wasm).is_some());
    }
}
