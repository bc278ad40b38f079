//! What a hostile guest can do with files, against a model.
//!
//! A guest works in a temporary folder that holds what it was granted beside what it was not. The
//! model knows grants by their description and paths by what the kernel makes of them; how the host
//! walks is nothing to it.

use rustix::fs::FileType;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::hash::RandomState;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenon_config::grant::{FileRules, GlobModel, PathGrant, ProtectedPaths};
use tenon_config::path_context::PathContext;

use super::super::listing;
use super::super::walk::{FileError, FileGrants, Folder};
use super::{BaseFolder, OpenMode, OpenedEntry, Time};

/// The most that one guest does.
const STEPS: usize = 40;

/// The most folders that it has open.
const FOLDERS: usize = 9;

/// The number of the root of all files.
const ROOT: usize = 9;

/// Text whose first line is what is granted, relative to the folder `in`: what was requested, and
/// after a `|` what was approved, where that is not the same. Every other line is a step; see
/// [`Step::read`].
///
/// * Nothing that a guest reads was in a file that it may not read.
/// * Nothing changes where it may not write, or what is protected and not named.
/// * No link that a guest makes leads to what was not granted, as things are when it does.
/// * No listing, and no other answer, tells of a name that was not granted: a guest gets the same
///   answers where nothing of it is there.
pub(crate) fn path_walk(text: &str) {
    let mut lines = text.lines();
    let granted = lines.next().unwrap_or_default();
    let steps: Vec<Step<'_>> = lines.take(STEPS).filter_map(Step::read).collect();
    // In memory, where there is such a folder.
    let outer = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let outer = outer.expect("there can be a folder");
    let outer = outer.path().canonicalize().expect("it is there");
    let world = FuzzFolder { inner: outer.join("in"), outer };

    world.build();
    let Some(grants) = Grants::read(granted, &world) else { return };
    let before = world.look();
    let answers = run(&steps, &world, &grants, &before);
    check_changes(&grants, &before, &world.look());

    world.clear();
    world.build();
    if world.remove_hidden(&grants) {
        let before = world.look();
        let others = run(&steps, &world, &grants, &before);
        for ((step, answer), other) in steps.iter().zip(answers).zip(others) {
            assert_eq!(answer, other, "{step:?} tells of what was not granted");
        }
    }
    world.clear();
}

/// A temporary folder. Most names are of one letter, so that guesses are good.
struct FuzzFolder {
    /// Holds a file beside the folder in which everything else is.
    outer: PathBuf,
    inner: PathBuf,
}

const FOLDERS_IN: [&str; 8] =
    ["d", "d/e", "d/.git", "d/.config", "d/.config/autostart", "g", "s", "s/d"];

const FILES_IN: [&str; 15] = [
    "../o",
    "a",
    "b",
    "d/a",
    "d/b",
    "d/e/a",
    "d/.env",
    "d/.git/a",
    "d/.config/autostart/a",
    "g/a",
    "g/b.t",
    "s/a",
    "s/b.t",
    "s/d/a",
    "s/d/b",
];

const LINKS_IN: [(&str, &str); 13] = [
    ("d/v", ".git"),
    ("c", "c"),
    ("m", "d/e"),
    ("x", "s"),
    ("d/l", "../s/a"),
    ("d/k", "../s"),
    ("d/p", "e"),
    ("d/u", ".."),
    ("d/e/n", "nothing"),
    ("g/l.t", "../s/b.t"),
    ("s/q", "../d/e"),
    ("d/y", "@/s"),
    ("d/z", "@/g"),
];

/// What is at a path.
#[derive(Debug, PartialEq, Eq)]
enum EntryKind {
    /// A folder, and whether its times are those that a guest sets.
    Folder(bool),
    /// A file, what is in it, and when that was written.
    File(Vec<u8>, i64, i64),
    Link(PathBuf),
    Other,
}

impl Drop for FuzzFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.outer);
    }
}

impl FuzzFolder {
    fn path(&self, name: &str) -> PathBuf {
        match name.strip_prefix("../") {
            Some(name) => self.outer.join(name),
            None => self.inner.join(name),
        }
    }

    /// The path of the folder in which all is, as seen from the root.
    fn beneath_root(&self) -> &str {
        self.inner.to_str().expect("a name").trim_start_matches('/')
    }

    fn build(&self) {
        fs::create_dir_all(&self.inner).expect("a folder");
        for name in FOLDERS_IN {
            fs::create_dir(self.path(name)).expect("a folder");
        }
        for name in FILES_IN {
            fs::write(self.path(name), content(name)).expect("a file");
        }
        for (name, target) in LINKS_IN {
            let target = target.replace('@', self.inner.to_str().expect("a name"));
            symlink(target, self.path(name)).expect("a link");
        }
        // Other systems have other ways to make one.
        #[cfg(target_os = "linux")]
        rustix::fs::mkfifoat(rustix::fs::CWD, self.path("d/f"), 0o600.into()).expect("a pipe");
    }

    fn clear(&self) {
        for entry in fs::read_dir(&self.outer).expect("a folder").flatten() {
            let path = entry.path();
            let is_folder = entry.file_type().is_ok_and(|file_type| file_type.is_dir());
            let gone = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            gone.expect("it goes");
        }
    }

    /// All that is there.
    fn look(&self) -> BTreeMap<PathBuf, EntryKind> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.outer.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let meta = fs::symlink_metadata(&path).expect("it is there");
                if meta.is_dir() {
                    folders.push(path.clone());
                }
                found.insert(path.clone(), EntryKind::at(&path, &meta));
            }
        }
        found
    }

    /// Removes what the guest can know nothing of; whether there was something.
    fn remove_hidden(&self, grants: &Grants) -> bool {
        let is_hidden = |name: &str| {
            let path = self.path(name);
            // Where a folder may be removed, it turns out whether it is empty.
            !grants.may_any(&path) && !grants.may_write(path.parent().expect("it is in a folder"))
        };
        let mut removed = false;
        for name in FILES_IN.into_iter().chain(FOLDERS_IN).filter(|name| is_hidden(name)) {
            let path = self.path(name);
            let gone = match path.is_dir() {
                true => fs::remove_dir_all(path),
                false if path.exists() => fs::remove_file(path),
                false => Ok(()),
            };
            gone.expect("it goes");
            removed = true;
        }
        removed
    }
}

impl EntryKind {
    fn at(path: &Path, meta: &Metadata) -> Self {
        if meta.is_dir() {
            Self::Folder(meta.mtime() == SET)
        } else if meta.is_file() {
            let content = fs::read(path).expect("a file");
            Self::File(content, meta.mtime(), meta.mtime_nsec())
        } else if meta.is_symlink() {
            Self::Link(fs::read_link(path).expect("a link"))
        } else {
            Self::Other
        }
    }
}

/// What is in a file to begin with. A guest that writes to it writes over the first byte only.
fn content(name: &str) -> String {
    format!(" <{name}>")
}

/// The time that a guest sets, in seconds.
const SET: i64 = 1;

/// What is granted, for the host and for the model.
struct Grants {
    files: Arc<FileGrants>,
    model: Vec<Vec<(bool, bool, GlobModel)>>,
}

impl Grants {
    fn read(text: &str, world: &FuzzFolder) -> Option<Self> {
        let sets = text.splitn(2, '|').map(|set| -> Vec<PathGrant> {
            let grants = set.split_whitespace().take(4).filter(|grant| {
                // Nothing outside of the temporary folder is ever granted.
                let glob = grant.split_once(':').map_or("", |(_, glob)| glob);
                !glob.starts_with(['/', '~']) && !glob.contains("${")
            });
            let parse = |text| PathGrant::parse(text, &PathContext::in_folder(&world.inner));
            grants.filter_map(|text| parse(text).ok()).collect()
        });
        let sets: Vec<Vec<PathGrant>> = sets.collect();
        let model = |grant: &PathGrant| {
            let (access, glob) = grant.text().split_once(':').expect("a grant has its access");
            assert!(Path::new(glob).starts_with(&world.outer), "{glob} is elsewhere");
            let (read, write) = match access {
                "read" => (true, false),
                "write" => (false, true),
                "readwrite" => (true, true),
                other => panic!("{other} is granted"),
            };
            Some((read, write, GlobModel::new(glob)?))
        };
        let model = |set: &Vec<PathGrant>| set.iter().map(model).collect::<Option<Vec<_>>>();
        let model = sets.iter().map(model).collect::<Option<_>>()?;
        Some(Self {
            files: Arc::new(FileGrants::new(FileRules::new(
                sets,
                Vec::new(),
                ProtectedPaths::default(),
            ))),
            model,
        })
    }

    /// Which names of a path a grant has to spell out, for reading it or for writing to it. Of what is
    /// protected, the model knows what a guest finds in its folder.
    fn by_name(path: &str, writes: bool) -> impl Fn(usize) -> bool {
        let names: Vec<String> =
            path.split('/').filter(|n| !n.is_empty()).map(Into::into).collect();
        let is = move |number: usize, name: &str| names.get(number).is_some_and(|own| own == name);
        move |number| {
            let is_begun = is(number, ".config") && is(number + 1, "autostart");
            let is_ended = number > 0 && is(number - 1, ".config") && is(number, "autostart");
            is(number, ".env") || writes && (is(number, ".git") || is_begun || is_ended)
        }
    }

    /// Whether in each set something covers a path that allows it.
    fn allow(&self, covers: impl Fn(&(bool, bool, GlobModel)) -> bool) -> bool {
        self.model.iter().all(|set| set.iter().any(&covers))
    }

    fn may_read(&self, path: &Path) -> bool {
        let path = path.to_str().expect("a name");
        self.allow(|(read, _, model)| {
            *read && model.covers_by_name(path, Self::by_name(path, false))
        })
    }

    fn may_write(&self, path: &Path) -> bool {
        let path = path.to_str().expect("a name");
        self.allow(|(_, write, model)| {
            *write && model.covers_by_name(path, Self::by_name(path, true))
        })
    }

    /// Whether it is granted to change what is protected beneath a path for that path's name.
    fn may_lead(&self, path: &Path) -> bool {
        let path = path.to_str().expect("a name");
        let last = path.split('/').filter(|name| !name.is_empty()).count() - 1;
        self.allow(|(_, write, model)| {
            *write && model.covers_by_name(path, |number| number == last)
        })
    }

    /// Whether it, or what could be beneath it, may be read or written.
    fn may_any(&self, path: &Path) -> bool {
        let path = path.to_str().expect("a name");
        let any = |model: &GlobModel, writes| {
            model.covers_by_name(path, Self::by_name(path, writes))
                || model.reaches_by_name(path, Self::by_name(path, writes))
        };
        self.allow(|(read, _, model)| *read && any(model, false))
            || self.allow(|(_, write, model)| *write && any(model, true))
    }
}

/// One thing that a guest does.
#[derive(Debug)]
struct Step<'a> {
    what: u8,
    folder: usize,
    path: &'a str,
    other: usize,
    second: &'a str,
}

impl<'a> Step<'a> {
    /// Reads a letter for what is done, the number of an open folder, a path, and for what takes two
    /// a `>` with the number of another folder and a path there: `n1 a>2 b`. Without a number it is
    /// the first folder, and 9 is the root, from where `@` is the folder in which all is.
    ///
    /// | letters | what is done |
    /// |---|---|
    /// | `d`, `l` | opens a folder, lists one |
    /// | `s` `S`, `i`, `k` | looks at something, tells it from others, reads a link |
    /// | `m`, `M`, `u` | makes and removes a folder, removes a file |
    /// | `n`, `h`, `L` | renames, makes another name, makes a link |
    /// | `T`, `O` | sets times, and those of the open folder |
    ///
    /// Any other opens a file in the way that its bits say: `a` reads, `b` writes, `g` does both and
    /// creates, `o` truncates as well, and capitals follow no link.
    fn read(line: &'a str) -> Option<Self> {
        let what = *line.as_bytes().first().filter(|letter| letter.is_ascii())?;
        let (first, second) = line[1..].split_once('>').unwrap_or((&line[1..], ""));
        let in_folder = |text: &'a str| match text.as_bytes() {
            [digit @ b'0'..=b'9', ..] => (usize::from(digit - b'0'), text[1..].trim_start()),
            _ => (0, text.trim_start()),
        };
        let ((folder, path), (other, second)) = (in_folder(first), in_folder(second));
        Some(Self { what, folder, path, other, second })
    }
}

/// What a guest gets for a step, without what is another each time.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    Read(Option<Vec<u8>>),
    Folder,
    Names(Vec<(String, FileType)>),
    Is(FileType),
    Leads(String),
    Stopped(FileError),
}

/// Lets a guest do these steps, and checks each by itself.
fn run(
    steps: &[Step<'_>],
    world: &FuzzFolder,
    grants: &Grants,
    before: &BTreeMap<PathBuf, EntryKind>,
) -> Vec<Answer> {
    let roots = grants.files.open_roots().into_iter().map(|(_, folder)| folder);
    let folders: Vec<Folder> = roots.collect();
    let root = folders.last().expect("the root of all is there").clone();
    let mut guest = Guest { world, grants, before, root, folders };
    steps.iter().map(|step| guest.act(step).unwrap_or_else(Answer::Stopped)).collect()
}

struct Guest<'a> {
    world: &'a FuzzFolder,
    grants: &'a Grants,
    before: &'a BTreeMap<PathBuf, EntryKind>,
    /// That of all files.
    root: Folder,
    folders: Vec<Folder>,
}

impl Guest<'_> {
    fn act(&mut self, step: &Step<'_>) -> Result<Answer, FileError> {
        let here = self.world.beneath_root();
        let beneath = |number: usize| BaseFolder {
            files: self.grants.files.clone(),
            folder: match number {
                ROOT => self.root.clone(),
                number => self.folders[number % self.folders.len()].clone(),
            },
        };
        let (folder, other) = (beneath(step.folder), beneath(step.other));
        let path = &*step.path.replace('@', here);
        let second = &*step.second.replace('@', here);
        let leads = |follow| resolve(&real(&folder.folder), path, follow);
        let leads_to = |second: &str| resolve(&real(&other.folder), second, false);
        let grants = self.grants;
        let may_read = |place: Option<PathBuf>| {
            let place = place.unwrap_or_else(|| panic!("{step:?} is done, and leads nowhere"));
            assert!(grants.may_read(&place), "{step:?} reads {place:?}");
        };
        let may_write = |place: Option<PathBuf>| {
            let place = place.unwrap_or_else(|| panic!("{step:?} is done, and leads nowhere"));
            assert!(grants.may_write(&place), "{step:?} writes {place:?}");
        };
        // Whoever else is about may follow a link that a guest has made.
        let leads_to_granted = |link: &Option<PathBuf>| {
            if let Some(place) = link.as_deref().and_then(|link| fs::canonicalize(link).ok()) {
                assert!(grants.may_any(&place), "{step:?} makes a link to {place:?}");
            }
        };
        let trimmed = |path: &str| path.trim_end_matches('/').to_string();
        match step.what {
            b'l' => {
                let mut entries = listing::whole(&folder)?;
                entries.sort_by(|(one, _), (other, _)| one.cmp(other));
                let place = real(&folder.folder);
                for (name, file_type) in &entries {
                    let path = place.join(name);
                    let is_folder = *file_type == FileType::Directory;
                    let may_see = grants.may_read(&path) || is_folder && grants.may_any(&path);
                    assert!(may_see, "{step:?} shows {path:?}");
                }
                return Ok(Answer::Names(entries));
            }
            b's' | b'S' | b'i' => {
                let follow = step.what != b'S';
                let place = leads(follow);
                if step.what == b'i' {
                    folder.identity(path, follow, &RandomState::new())?;
                }
                let seen = folder.see(path, follow)?;
                let place = place.expect("what is seen is somewhere");
                let is_folder = seen.file_type == FileType::Directory;
                let may_see = grants.may_read(&place) || is_folder && grants.may_any(&place);
                assert!(may_see, "{step:?} sees {place:?}");
                return Ok(Answer::Is(seen.file_type));
            }
            b'k' => {
                let place = leads(false);
                let target = folder.read_link(path)?;
                may_read(place);
                return Ok(Answer::Leads(target));
            }
            b'm' => {
                let place = resolve(&real(&folder.folder), &trimmed(path), false);
                folder.create_folder(path)?;
                may_write(place);
            }
            b'M' => {
                let place = resolve(&real(&folder.folder), &trimmed(path), false);
                folder.remove_folder(path)?;
                may_write(place);
            }
            b'u' => {
                let place = leads(false);
                folder.remove_file(path)?;
                may_write(place);
            }
            b'T' => {
                let place = leads(true);
                let time = Time::at(SET, 0).expect("it is a time");
                folder.set_times(path, true, time, time)?;
                may_write(place);
            }
            b'O' => {
                let time = Time::at(SET, 0).expect("it is a time");
                folder.set_own_times(time, time)?;
                may_write(Some(real(&folder.folder)));
            }
            b'n' => {
                let from = resolve(&real(&folder.folder), &trimmed(path), false);
                let into = leads_to(&trimmed(second));
                let leads = from.as_deref().and_then(|from| fs::read_link(from).ok());
                folder.rename(path, &other, second)?;
                if leads.is_some_and(|target| target.is_relative())
                    && from.as_deref().and_then(Path::parent)
                        != into.as_deref().and_then(Path::parent)
                {
                    leads_to_granted(&into);
                }
                may_read(from.clone());
                may_write(from);
                may_write(into);
            }
            b'h' => {
                let (from, into) = (leads(false), leads_to(second));
                folder.link(path, &other, second)?;
                may_read(from.clone());
                may_write(from);
                may_write(into);
            }
            b'L' => {
                let link = leads_to(second);
                other.make_link(path, second)?;
                leads_to_granted(&link);
                may_write(link);
            }
            b'd' => {
                let how =
                    OpenMode { read: true, folder: true, follow: true, ..OpenMode::default() };
                return self.open(&folder, path, how);
            }
            letter => {
                let flags = u32::from(letter);
                let how = OpenMode {
                    read: flags & 1 != 0,
                    write: flags & 2 != 0,
                    create: flags & 4 != 0,
                    truncate: flags & 8 != 0,
                    exclusive: flags & 16 != 0 && flags & 4 != 0,
                    folder: false,
                    follow: flags & 32 != 0,
                };
                return self.open(&folder, path, how);
            }
        }
        Ok(Answer::Done)
    }

    fn open(
        &mut self,
        beneath: &BaseFolder,
        path: &str,
        how: OpenMode,
    ) -> Result<Answer, FileError> {
        let place = resolve(&real(&beneath.folder), path, how.follow);
        let opened = beneath.open(path, how)?;
        let place = place.unwrap_or_else(|| panic!("{path} is opened, and leads nowhere"));
        match opened {
            OpenedEntry::Folder(folder) => {
                assert!(self.grants.may_any(&place), "{place:?} is opened");
                let path = &*folder.path;
                assert_eq!(self.grants.files.rights_of(&folder), self.grants.files.rights(path));
                if self.folders.len() < FOLDERS {
                    self.folders.push(folder);
                }
                Ok(Answer::Folder)
            }
            OpenedEntry::File { file, read, write } => {
                let mut content = Vec::new();
                let has_read = (&file).take(1 << 10).read_to_end(&mut content).is_ok();
                assert!(read || !has_read, "{place:?} can be read, and is open for writing only");
                assert!(!has_read || self.grants.may_read(&place), "{place:?} is read");
                for (of, found) in self.before {
                    let EntryKind::File(known, ..) = found else { continue };
                    let is_known = contains(&content, &known[1..]);
                    assert!(!is_known || self.grants.may_read(of), "what is in {of:?} is read");
                }
                if how.write || how.truncate || how.create {
                    assert!(self.grants.may_write(&place), "{place:?} is written");
                }
                let has_written = rustix::io::pwrite(&file, b"G", 0).is_ok();
                assert!(write || !has_written, "{place:?} is open for reading only");
                Ok(Answer::Read(has_read.then_some(content)))
            }
        }
    }
}

/// Checks that only what may be written has changed, and that nothing secret has another name.
fn check_changes(
    grants: &Grants,
    before: &BTreeMap<PathBuf, EntryKind>,
    after: &BTreeMap<PathBuf, EntryKind>,
) {
    for path in before.keys().chain(after.keys()) {
        let (was, is) = (before.get(path), after.get(path));
        assert!(was == is || grants.may_write(path), "{path:?} was {was:?} and is {is:?}");
        let is_link = [was, is].iter().any(|found| matches!(found, Some(EntryKind::Link(_))));
        let leads_on = path.ends_with(".config") && is_link;
        assert!(was == is || !leads_on || grants.may_lead(path), "{path:?} leads elsewhere");
    }
    for (of, found) in before {
        let EntryKind::File(known, ..) = found else { continue };
        for (path, found) in after {
            let EntryKind::File(content, ..) = found else { continue };
            let has_moved = path != of && contains(content, &known[1..]);
            let may_move = grants.may_read(of) && grants.may_write(of);
            assert!(!has_moved || may_move, "what was in {of:?} is in {path:?}");
        }
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Where an open folder is.
fn real(folder: &Folder) -> PathBuf {
    let link = format!("/proc/self/fd/{}", folder.handle.as_raw_fd());
    fs::read_link(link).unwrap_or_else(|_| PathBuf::from(&*folder.path))
}

/// Where a path leads, as the kernel has it: to something, or to a name in a folder.
fn resolve(folder: &Path, path: &str, follow: bool) -> Option<PathBuf> {
    let mut path = folder.join(path);
    for _ in 0..50 {
        let text = path.to_str()?;
        if ["/", "/.", "/.."].iter().any(|end| text.ends_with(end)) {
            return fs::canonicalize(&path).ok();
        }
        let parent = fs::canonicalize(path.parent()?).ok()?;
        let whole = parent.join(path.file_name()?);
        match fs::read_link(&whole) {
            Ok(target) if follow => path = parent.join(target),
            _ => return Some(whole),
        }
    }
    None
}
