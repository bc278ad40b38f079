//! Compiled components on disk.
//!
//! Loading compiled code runs it, so the files must be this host's own: they lie in a folder that
//! nobody else can write to, and each is named after the component's content and the engine that
//! compiled it. A file from anywhere else is never loaded: each has a tag beside it that takes a key
//! to make. Caches are copied, restored and shared by tools that think nothing of it; the key lies
//! elsewhere.
//!
//! The code is mapped, so that all processes share its pages and only those are read that run. To hash it at each start
//! would read them all. So what was checked once is known again by its place on the disk, its size and its times, which the
//! tag covers as well: nobody sets the time of the last change of a file's status (`ctime`), and whoever could write to
//! a file that is mapped is this user.

mod file_digests;
mod stamp;

use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tenon_config::files::{Digest, claim, is_private, make_private, read_private};
use wasmtime::component::Component;

use stamp::{MIN_KNOWN_AGE, Stamp};

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

/// The form of the files. It is part of their names, so that others are not taken for damaged ones.
const FORM: u32 = 2;

/// How long a key is, in letters: two for each byte.
const KEY_DIGITS: usize = 64;

/// How long a tag is, in bytes.
const TAG_BYTES: usize = 32;

/// What the file with the tags of a file of code ends in.
const TAGS: &str = "tags";

/// A folder of compiled components.
pub(super) struct Cache {
    folder: PathBuf,
    key: hmac::Key,
    /// What the engine's settings and version come to, and whose key it is: what was made with
    /// another one is no damage, and just not there.
    engine: u64,
    /// How old a file is at least that is known again by its times.
    min_known_age: Duration,
    /// Whether code is mapped, if the system lets it.
    maps: bool,
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
        FORM.hash(&mut hasher);
        engine.precompile_compatibility_hash().hash(&mut hasher);
        hmac::sign(&key, b"key").as_ref().hash(&mut hasher);
        let min_known_age = MIN_KNOWN_AGE;
        Ok(Self { folder, key, engine: hasher.finish(), min_known_age, maps: true })
    }

    /// The compiled form of a component, where there is one that is whole.
    pub(super) fn get(&self, engine: &wasmtime::Engine, wasm: &Digest) -> Option<Component> {
        let path = self.path(wasm);
        let file = File::open(&path).ok()?;
        let loaded = self.check(&path, &file).and_then(|()| self.load(engine, &path, &file));
        match loaded {
            Ok(component) => {
                keep(&path);
                Some(component)
            }
            Err(problem) => {
                tracing::warn!(path = %path.display(), "a compiled component is made anew: {problem}");
                remove(&path);
                None
            }
        }
    }

    /// Keeps the compiled form of a component. A cache that cannot be written to costs time, and
    /// nothing else.
    pub(super) fn put(&self, wasm: &Digest, component: &Component) {
        let path = self.path(wasm);
        let written = component.serialize().map_err(io::Error::other).and_then(|compiled| {
            let tags = HmacTags { code: self.tag_of_code(&path, &compiled), stamp: None };
            // Code that has no tag is not run, and a tag without its code is that of none.
            tags.write(&path)?;
            write_whole(&path, &compiled, true)
        });
        if let Err(error) = written {
            tracing::warn!(path = %path.display(), "a compiled component was not kept: {error}");
        }
        self.evict();
    }

    /// Checks that this host wrote the code in a file, for this name.
    fn check(&self, path: &Path, file: &File) -> Result<(), String> {
        let tags = HmacTags::read(path).ok_or("the file has no tag")?;
        // Of the file as it is before it is read: one that is changed meanwhile is read again.
        let seen = file.metadata().ok().as_ref().and_then(Stamp::of);
        let stamp = seen.as_ref().map(|stamp| self.tag_of_stamp(path, &tags, stamp));
        if stamp.is_some() && stamp == tags.stamp {
            return Ok(());
        }
        self.read(path, file, &tags)?;
        if seen.is_some_and(|seen| seen.is_older(self.min_known_age)) {
            // It costs time where that fails, and nothing else.
            let _ = HmacTags { stamp, ..tags }.write(path);
        }
        Ok(())
    }

    /// Reads the code in a file, if it has this tag.
    fn read(&self, path: &Path, mut file: &File, tags: &HmacTags) -> Result<Vec<u8>, String> {
        let mut content = Vec::new();
        let read = file.rewind().and_then(|()| file.read_to_end(&mut content));
        read.map_err(|error| error.to_string())?;
        match hmac::verify(&self.key_of(path, CODE), &content, &tags.code) {
            Ok(()) => Ok(content),
            Err(_) => Err("this host did not write the file, or it is damaged".into()),
        }
    }

    /// Maps the code in a file that was checked; copies it where the system runs no code from there, as with `noexec`.
    fn load(
        &self,
        engine: &wasmtime::Engine,
        path: &Path,
        file: &File,
    ) -> Result<Component, String> {
        if self.maps {
            // SAFETY: nobody without the key can have made the tag, and with it only `put` makes one, of what
            // wasmtime has compiled for an engine like this. Nobody but this user can change the file meanwhile.
            let mapped = unsafe { Component::deserialize_file(engine, place(file, path)) };
            if let Ok(component) = mapped {
                return Ok(component);
            }
        }
        let tags = HmacTags::read(path).ok_or("the file has no tag")?;
        let content = self.read(path, file, &tags)?;
        // SAFETY: as above.
        unsafe { Component::deserialize(engine, content) }.map_err(|error| format!("{error:#}"))
    }

    fn tag_of_code(&self, path: &Path, code: &[u8]) -> Tag {
        tag(&self.key_of(path, CODE), code)
    }

    /// The tag of what a file is known again by, with that of its code.
    fn tag_of_stamp(&self, path: &Path, tags: &HmacTags, stamp: &Stamp) -> Tag {
        tag(&self.key_of(path, STAMP), &[&tags.code[..], &stamp.bytes()].concat())
    }

    /// What something of a file is tagged with. Each name has its own, so that the code of one
    /// component is not run for another.
    fn key_of(&self, path: &Path, what: &[u8]) -> hmac::Key {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        let key = hmac::sign(&self.key, &[what, name].concat());
        hmac::Key::new(hmac::HMAC_SHA256, key.as_ref())
    }

    /// Removes what was not used for long.
    fn evict(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let path = entry.path();
            if age(&path).is_none_or(|age| age <= MAX_UNUSED_AGE) {
                continue;
            }
            match path.extension().and_then(OsStr::to_str) {
                Some(EXTENSION) => remove(&path),
                // It is made again where it is missing.
                Some(file_digests::EXTENSION) => drop(fs::remove_file(&path)),
                _ => {}
            }
        }
    }

    /// Where the compiled form of the component with this content is.
    fn path(&self, wasm: &Digest) -> PathBuf {
        self.folder.join(format!("{wasm}-{:016x}.{EXTENSION}", self.engine))
    }
}

/// What is tagged.
const CODE: &[u8] = b"code ";
const STAMP: &[u8] = b"stamp ";

type Tag = [u8; TAG_BYTES];

fn tag(key: &hmac::Key, bytes: &[u8]) -> Tag {
    let mut tag = [0; TAG_BYTES];
    tag.copy_from_slice(hmac::sign(key, bytes).as_ref());
    tag
}

/// The tags of a file of code, as they lie beside it.
struct HmacTags {
    /// That of its content.
    code: Tag,
    /// That of what it is known again by, once its content was found to be right.
    stamp: Option<Tag>,
}

impl HmacTags {
    fn path(code: &Path) -> PathBuf {
        code.with_extension(TAGS)
    }

    fn read(code: &Path) -> Option<Self> {
        let content = fs::read(Self::path(code)).ok()?;
        let (code, stamp) = content.split_first_chunk::<TAG_BYTES>()?;
        Some(Self { code: *code, stamp: stamp.try_into().ok() })
    }

    fn write(&self, code: &Path) -> io::Result<()> {
        let stamp = self.stamp.as_ref().map(|stamp| &stamp[..]).unwrap_or_default();
        // After a loss of power it may be empty, and the code is made anew.
        write_whole(&Self::path(code), &[&self.code, stamp].concat(), false)
    }
}

/// A path to a file that is open, which nothing else takes the place of.
#[cfg(target_os = "linux")]
fn place(file: &File, _: &Path) -> PathBuf {
    use std::os::fd::AsRawFd;
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Whoever could put another one there is this user.
#[cfg(not(target_os = "linux"))]
fn place(_: &File, path: &Path) -> PathBuf {
    path.into()
}

/// Removes a file of code, and its tags.
fn remove(code: &Path) {
    let _ = fs::remove_file(code);
    let _ = fs::remove_file(HmacTags::path(code));
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

/// Writes a file so that nobody ever sees half of it; nor after a loss of power, which takes time.
fn write_whole(path: &Path, content: &[u8], is_synced: bool) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    let mut partial = tempfile::NamedTempFile::new_in(folder)?;
    partial.write_all(content)?;
    if is_synced {
        partial.as_file().sync_all()?;
    }
    partial.persist(path)?;
    Ok(())
}

/// Marks a file as used.
fn keep(path: &Path) {
    if age(path).is_some_and(|age| age > MAX_UNUSED_AGE / 10)
        && let Ok(file) = File::open(path)
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
        let copy = |from: &Path, to: &Path| {
            fs::copy(from, to).unwrap();
            fs::copy(HmacTags::path(from), HmacTags::path(to)).unwrap();
        };
        foreign.put(&wasm, &component);
        assert_ne!(cache.path(&wasm).file_name(), foreign.path(&wasm).file_name());
        copy(&foreign.path(&wasm), &cache.path(&wasm));
        refused("it is of another key");

        let compiled = component.serialize().unwrap();
        fs::write(cache.path(&wasm), &compiled).unwrap();
        refused("it has no tag");

        let another = Digest::of("another component");
        cache.put(&another, &component);
        copy(&cache.path(&another), &cache.path(&wasm));
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
        let wasm = &Digest::of(EMPTY);
        let component = Component::new(&engine, EMPTY).unwrap();
        // One that was checked once is known again, as long as nothing has changed.
        for (min_known_age, is_known, maps) in [
            (MIN_KNOWN_AGE, false, true),
            (Duration::ZERO, cfg!(unix), true),
            (Duration::ZERO, cfg!(unix), false),
        ] {
            let cache = Cache::open(place(folder.path()), &engine).unwrap();
            let cache = Cache { min_known_age, maps, ..cache };
            let path = cache.path(wasm);
            let stamp = || HmacTags::read(&path).and_then(|tags| tags.stamp);
            cache.put(wasm, &component);
            assert!(stamp().is_none());
            for _ in 0..2 {
                assert!(cache.get(&engine, wasm).is_some());
                assert_eq!(stamp().is_some(), is_known);
            }
            let code = fs::read(&path).unwrap();
            fs::write(&path, &code).unwrap();
            assert!(cache.get(&engine, wasm).is_some(), "it has the same content");

            let mut damaged = code.clone();
            damaged[code.len() / 2] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(cache.get(&engine, wasm).is_none());
            assert!(!path.exists() && !HmacTags::path(&path).exists());
        }
    }

    #[test]
    #[cfg(unix)]
    fn a_file_is_known_again_by_a_stamp_of_its_own_only() {
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(place(folder.path()), &engine).unwrap();
        let cache = Cache { min_known_age: Duration::ZERO, ..cache };
        let wasm = &Digest::of(EMPTY);
        cache.put(wasm, &Component::new(&engine, EMPTY).unwrap());
        let path = cache.path(wasm);
        assert!(cache.get(&engine, wasm).is_some());
        let known = HmacTags::read(&path).unwrap();
        let check = |tags: &HmacTags, expected: bool| {
            tags.write(&path).unwrap();
            let file = File::open(&path).unwrap();
            assert_eq!(cache.check(&path, &file).is_ok(), expected);
        };
        // With a stamp the content is not looked at, so the tag of it that the stamp covers counts.
        let other = [7; TAG_BYTES];
        check(&HmacTags { code: other, stamp: known.stamp }, false);
        check(&HmacTags { code: known.code, stamp: Some(other) }, true);
        let stamp = cache.tag_of_stamp(&path, &HmacTags { code: other, stamp: None }, &{
            Stamp::of(&fs::metadata(&path).unwrap()).unwrap()
        });
        check(&HmacTags { code: other, stamp: Some(stamp) }, true);
    }

    #[test]
    fn what_nobody_used_for_long_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = wasmtime::Engine::default();
        let cache = Cache::open(place(folder.path()), &engine).unwrap();
        let old = cache.folder.join("old.cwasm");
        fs::write(&old, "").unwrap();
        let file = File::options().append(true).open(&old).unwrap();
        file.set_modified(SystemTime::now() - MAX_UNUSED_AGE * 2).unwrap();
        let wasm = Digest::of(EMPTY);
        cache.put(&wasm, &Component::new(&engine, EMPTY).unwrap());
        assert!(!old.exists());
        assert!(cache.get(&engine, &wasm).is_some());
    }
}
