//! The files around hostile plugins, and what has become of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

/// A temporary folder, which is gone with this:
///
/// * `fixture/pub`, which plugins may read and write, with links that lead everywhere;
/// * `fixture/ro`, which they may read;
/// * `fixture/mixed`, of which they may read `*.md`;
/// * `fixture/log`, in which they may write single files;
/// * `fixture/own`, which they may read and write, with a folder for each way to do so;
/// * `fixture/code`, which they may read and write by a glob, with files that no glob covers, and
///   `named/.git`, which is named;
/// * `fixture/secret`, which they may not know of;
/// * `project`, with the plugins.
pub(crate) struct Fixture {
    folder: TempDir,
    /// `fixture`, where it really is.
    base: PathBuf,
    /// Links, or other kinds of files, that this system would not make.
    lacking: Vec<&'static str>,
    /// A secret file that this process has open.
    held: Option<File>,
}

/// The ways to files, each of which has a folder to change things in.
pub(crate) const OWN: [&str; 3] = ["std", "wasi-0.2", "wasi-0.3"];

const FILES: &[(&str, &str)] = &[
    ("pub/a.txt", "granted a"),
    ("pub/deep/c.txt", "granted c"),
    ("pub/module.rhai", "fn said() { \"stolen\" }"),
    ("ro/r.txt", "granted r"),
    ("mixed/ok.md", "granted m"),
    ("mixed/no.txt", "hidden"),
    ("mixed/sub/no.md", "hidden"),
    ("log/l.txt", "hidden"),
    ("secret/s.txt", "hidden"),
    ("secret/a.txt", "hidden"),
    ("code/free.txt", "granted f"),
    ("code/tenon.toml", "granted t"),
    ("code/.env", "hidden"),
    ("code/.git/config", "granted g"),
    ("code/nested/tenon.toml", "granted n"),
    ("code/plain/x", "granted x"),
    ("code/named/.git/std", "granted n"),
    ("code/named/.git/wasi-0.2", "granted n"),
    ("code/named/.git/wasi-0.3", "granted n"),
];

/// Files that are others where names have no case.
const OTHER_CASE: &[(&str, &str)] = &[("mixed/OK.MD", "hidden"), ("PUB/a.txt", "hidden")];

/// Folders that are empty.
const BARE: &[&str] = &["ro/bare", "secret/bare", "mixed/bare", "code/.git/bare"];

const OWN_FILES: &[&str] = &[
    "a.txt",
    "append.txt",
    "truncate.txt",
    "target.txt",
    "gone.txt",
    "timed.txt",
    "from",
    "folder/inner",
];

/// Links, and where they lead; `GROUND` is the folder itself.
const LINKS: &[(&str, &str)] = &[
    ("pub/out", "../secret/s.txt"),
    ("pub/out-folder", "../secret"),
    ("pub/out-absolute", "GROUND/secret/s.txt"),
    ("pub/root", "/proc/self/root"),
    ("pub/loop", "loop"),
    ("pub/dangling", "../secret/to-come"),
    ("pub/good", "deep/c.txt"),
    ("pub/good-absolute", "GROUND/ro/r.txt"),
    ("mixed/link.md", "no.txt"),
    ("mixed/to-ok", "ok.md"),
    ("secret/way-in", "../pub"),
    ("secret/to-s", "s.txt"),
    ("code/to-git", ".git"),
    ("code/to-config", ".git/config"),
    ("code/.config", "plain"),
];

/// What some systems have none of.
pub(crate) const CASE: &str = "names that differ in case";
pub(crate) const PROCESSES: &str = "files of processes";

/// When everything was changed last, before a plugin came.
const LONG_AGO: Duration = Duration::from_secs(1_000_000_000);

impl Fixture {
    pub(crate) fn new() -> io::Result<Self> {
        let folder = tempfile::Builder::new().prefix("tenon-conformance-").tempdir()?;
        fs::create_dir(folder.path().join("fixture"))?;
        let base = folder.path().canonicalize()?.join("fixture");
        let mut fixture = Self { folder, base, lacking: Vec::new(), held: None };
        fixture.lay(|_| true)?;
        Ok(fixture)
    }

    /// Puts there what is in these parts.
    fn lay(&mut self, is_missing: impl Fn(&str) -> bool) -> io::Result<()> {
        let base = self.base.clone();
        for (path, content) in FILES.iter().filter(|(path, _)| is_missing(part(path))) {
            write(&base.join(path), content)?;
        }
        for path in BARE.iter().filter(|path| is_missing(part(path))) {
            fs::create_dir(base.join(path))?;
        }
        for (path, content) in OTHER_CASE.iter().filter(|(path, _)| is_missing(part(path))) {
            self.note(CASE, write_new(&base.join(path), content));
        }
        for own in OWN.map(|own| format!("own/{own}")).iter().filter(|own| is_missing(own)) {
            let own = base.join(own);
            for file in OWN_FILES {
                write(&own.join(file), "granted")?;
            }
            fs::create_dir(own.join("empty"))?;
            fs::create_dir(own.join("bare"))?;
            self.note("links", link(&own.join("good"), "target.txt"));
        }
        for (path, target) in LINKS.iter().filter(|(path, _)| is_missing(part(path))) {
            let target = target.replace("GROUND", &base.to_string_lossy());
            self.note("links", link(&base.join(path), &target));
        }
        if is_missing("pub") {
            self.note("pipes", pipe(&base.join("pub/pipe")));
        }
        self.note(PROCESSES, fs::metadata("/proc/self/fd").map(|_| ()));
        self.held = Some(File::open(base.join("secret/s.txt"))?);
        Ok(())
    }

    fn note(&mut self, what: &'static str, made: io::Result<()>) {
        if made.is_err() && !self.lacking.contains(&what) {
            self.lacking.push(what);
        }
    }

    /// Makes again what was changed between these two, with all that is in the same part. To make everything
    /// again each time takes longer than all the attempts.
    pub(crate) fn lay_again(
        &mut self,
        before: &FolderSnapshot,
        after: &FolderSnapshot,
    ) -> io::Result<()> {
        let changed = before.paths_of_changes_to(after);
        let parts: BTreeSet<&str> = changed.into_iter().map(part).collect();
        for part in &parts {
            let path = self.base.join(part);
            match fs::symlink_metadata(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(data) if data.is_dir() => fs::remove_dir_all(path)?,
                Ok(_) => fs::remove_file(path)?,
            }
        }
        self.lay(|part| parts.contains(part))
    }

    /// The number by which this process has a secret file open.
    #[cfg(unix)]
    pub(crate) fn held(&self) -> i32 {
        self.held.as_ref().map_or(-1, std::os::fd::AsRawFd::as_raw_fd)
    }

    #[cfg(not(unix))]
    pub(crate) fn held(&self) -> i32 {
        -1
    }

    /// Where plugins are let loose.
    pub(crate) fn base(&self) -> &Path {
        &self.base
    }

    /// What there is none of on this system.
    pub(crate) fn lacking(&self) -> &[&'static str] {
        &self.lacking
    }

    /// A place beside it.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file beside it.
    pub(crate) fn write_beside(&self, name: &str, content: impl AsRef<[u8]>) -> io::Result<()> {
        let path = self.beside(name);
        fs::create_dir_all(path.parent().unwrap_or(&path))?;
        fs::write(path, content)
    }

    /// Everything that is there: what files say, where links lead.
    pub(crate) fn survey(&self) -> FolderSnapshot {
        let mut survey = BTreeMap::new();
        look(&self.base, "", &mut survey);
        FolderSnapshot(survey)
    }
}

/// What is there, by its path.
#[derive(PartialEq)]
pub(crate) struct FolderSnapshot(BTreeMap<String, FileSnapshot>);

#[derive(PartialEq)]
struct FileSnapshot {
    what: String,
    changed: Option<SystemTime>,
}

impl FolderSnapshot {
    /// Where something was done since.
    fn paths_of_changes_to<'a>(&'a self, later: &'a Self) -> Vec<&'a str> {
        let paths: BTreeSet<&String> = self.0.keys().chain(later.0.keys()).collect();
        let is_changed = |path: &&String| self.0.get(*path) != later.0.get(*path);
        paths.into_iter().filter(is_changed).map(String::as_str).collect()
    }

    /// What was done since: `path: content`, `path: gone` or `path: touched`.
    pub(crate) fn changes_to(&self, later: &Self) -> Vec<String> {
        let done = |path: &str| match (self.0.get(path), later.0.get(path)) {
            (_, None) => format!("{path}: gone"),
            (Some(before), Some(now)) if before.what == now.what => format!("{path}: touched"),
            (_, Some(now)) => format!("{path}: {}", now.what),
        };
        let mut changes: Vec<_> = self.paths_of_changes_to(later).into_iter().map(done).collect();
        changes.sort();
        changes
    }
}

fn look(folder: &Path, name: &str, survey: &mut BTreeMap<String, FileSnapshot>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = format!("{name}{}", entry.file_name().to_string_lossy());
        let Ok(data) = fs::symlink_metadata(&path) else { continue };
        let (what, changed) = if data.is_dir() {
            look(&path, &format!("{name}/"), survey);
            ("a folder".to_string(), None)
        } else if data.is_symlink() {
            let target = fs::read_link(&path).unwrap_or_default();
            (format!("leads to {}", target.display()), None)
        } else if data.is_file() {
            let content = fs::read(&path).unwrap_or_default();
            (format!("{:?}", String::from_utf8_lossy(&content)), data.modified().ok())
        } else {
            ("no file".to_string(), None)
        };
        survey.insert(name, FileSnapshot { what, changed });
    }
}

/// What a path is a part of: a folder of [`Fixture`], or one of the folders in `own`.
fn part(path: &str) -> &str {
    let slashes = if path.starts_with("own/") { 2 } else { 1 };
    path.match_indices('/').nth(slashes - 1).map_or(path, |(place, _)| &path[..place])
}

fn write(path: &Path, content: &str) -> io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(path))?;
    fs::write(path, content)?;
    let times = FileTimes::new().set_modified(SystemTime::UNIX_EPOCH + LONG_AGO);
    File::options().write(true).open(path)?.set_times(times)
}

/// Writes a file that is not there under another name.
fn write_new(path: &Path, content: &str) -> io::Result<()> {
    match path.exists() {
        true => Err(io::ErrorKind::AlreadyExists.into()),
        false => write(path, content),
    }
}

#[cfg(unix)]
pub(crate) fn link(path: &Path, target: &str) -> io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(not(unix))]
pub(crate) fn link(_: &Path, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn pipe(_: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
