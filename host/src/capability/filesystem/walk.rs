//! From a path that a guest names to where it leads.
//!
//! A path is walked name by name beneath a handle of a folder. The kernel follows no link on the
//! way: links are read and walked here, so that the path which is held against the grants is the
//! path that the handles have. What somebody swaps meanwhile is found as it is when its name is
//! opened, and what is opened is what was checked.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use tenon_config::expand::escaped;
use tenon_config::grant::{
    FileRules, PathMatchState, PathRights, ProtectedRow, ProtectionState, components,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How many links are followed on the way of one path, as Linux has it.
const MAX_LINKS: u32 = 40;

/// The longest path, in bytes, as Linux has it.
const MAX_PATH_BYTES: usize = 4096;

/// For handles that are only walked through, which need no right to read the folder.
#[cfg(any(target_os = "linux", target_os = "android"))]
const THROUGH: OFlags = OFlags::PATH.union(FOLDER);
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const THROUGH: OFlags = FOLDER;

const FOLDER: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Which files a plugin may use.
#[derive(Debug, Default)]
pub(crate) struct FileGrants {
    rules: FileRules,
    /// The folders that grants begin in.
    roots: Vec<GrantRoot>,
    threads: BlockingPermits,
}

/// How many operations of a plugin may block a thread at a time: threads are for all plugins.
#[derive(Debug)]
struct BlockingPermits(Arc<Semaphore>);

impl Default for BlockingPermits {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(8)))
    }
}

/// A folder that grants begin in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GrantRoot {
    /// What the guest calls it.
    pub(super) name: String,
    /// Where it is.
    pub(super) path: String,
}

/// A folder, and where it really is.
#[derive(Clone)]
pub(super) struct Folder {
    pub(super) handle: Arc<File>,
    pub(super) path: Arc<str>,
    /// Where its path stands in the rules.
    position: PathMatchState,
}

/// Where a path leads: to a name in a folder, or to the folder itself.
pub(super) struct ResolvedPath {
    pub(super) folder: Folder,
    pub(super) name: Option<String>,
    /// What the plugin asked for.
    asked: String,
    /// Its name said that it is a folder, with a slash at the end.
    pub(super) must_be_folder: bool,
}

/// Why something is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileError {
    /// It was not granted.
    Denied(DeniedAccess),
    /// It cannot be granted, whatever is asked for.
    Never(&'static str),
    /// The system says no.
    Os(Errno),
}

/// What was tried and not granted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeniedAccess {
    /// `reading` or the like.
    pub(super) doing: &'static str,
    pub(super) path: String,
    /// The grant that would have allowed it.
    pub(super) needs: String,
    /// Nothing was opened and nothing changed.
    pub(super) looks_only: bool,
    /// It would have changed something.
    pub(super) writes: bool,
    /// What makes it protected, where only that is in the way.
    pub(super) protected: Option<&'static ProtectedRow>,
}

impl From<Errno> for FileError {
    fn from(errno: Errno) -> Self {
        Self::Os(errno)
    }
}

impl FileGrants {
    /// The rules.
    pub(super) fn rules(&self) -> &FileRules {
        &self.rules
    }

    /// The files of which these rules speak.
    pub(crate) fn new(rules: FileRules) -> Self {
        let mut roots: Vec<GrantRoot> = Vec::new();
        let root = |(name, path): (&str, &str)| GrantRoot { name: name.into(), path: path.into() };
        for (written, resolved) in rules.bases() {
            roots.extend([root((written, resolved)), root((resolved, resolved))]);
        }
        // One that lies in another, under both names, is reached through that.
        roots.sort_by(|a, b| a.name.len().cmp(&b.name.len()).then(a.name.cmp(&b.name)));
        let mut outer: Vec<GrantRoot> = Vec::new();
        for root in roots {
            let is_within = |outer: &GrantRoot| {
                let inner = root.name.strip_prefix(&*outer.name);
                inner.is_some_and(|rest| {
                    (rest.is_empty() || rest.starts_with('/'))
                        && root.path.strip_prefix(&*outer.path) == Some(rest)
                })
            };
            // The way from above to the plugin's own folder leads through those of others.
            let is_own_root =
                |outer: &GrantRoot| rules.is_own(&root.path) && !rules.is_own(&outer.path);
            if !outer.iter().any(|outer| is_within(outer) && !is_own_root(outer)) {
                outer.push(root);
            }
        }
        // Of one that was requested and not approved, or the reverse, not even that it exists is told.
        outer.retain(|root| rules.rights(&root.path).any());
        Self { rules, roots: outer, threads: BlockingPermits::default() }
    }

    /// Waits for leave to block a thread.
    pub(super) async fn place(&self) -> Result<OwnedSemaphorePermit, FileError> {
        self.threads.0.clone().acquire_owned().await.map_err(|_| FileError::Os(Errno::IO))
    }

    /// What may be done with a path.
    pub(super) fn rights(&self, path: &str) -> PathRights {
        self.rules.rights(path)
    }

    /// What may be done with a folder.
    pub(super) fn rights_of(&self, folder: &Folder) -> PathRights {
        self.rules.rights_at(&folder.position, &folder.path)
    }

    /// What may be done with a name in a folder.
    pub(super) fn rights_in(&self, folder: &Folder, name: &str) -> PathRights {
        self.rules.rights_in(&folder.position, name, &folder.path_of(name))
    }

    /// Where a name in a folder stands in what is protected.
    pub(super) fn protection_in(&self, folder: &Folder, name: &str) -> ProtectionState {
        self.rules.protection_in(&folder.position, name, &folder.path_of(name))
    }

    /// Where a name beneath such a path stands in what is protected.
    pub(super) fn protection_beneath(
        &self,
        above: ProtectionState,
        name: &str,
        path: &str,
    ) -> ProtectionState {
        self.rules.protection_beneath(above, name, path)
    }

    /// What makes a path protected; see [`FileRules::protects`].
    pub(super) fn protects(&self, path: &str, writes: bool) -> Option<&'static ProtectedRow> {
        self.rules.protects(path, writes)
    }

    /// Whether a folder or a link may come to a path, or go from there; see [`FileRules::may_take`].
    pub(super) fn may_take(&self, folder: &Folder, name: &str) -> Result<(), FileError> {
        let path = folder.path_of(name);
        self.rules.may_take(&folder.position, name, &path).map_err(|row| {
            FileError::Denied(DeniedAccess { protected: Some(row), ..DeniedAccess::writing(path) })
        })
    }

    /// The folders that a guest is given to begin with: those that grants begin in, as far as they
    /// exist, and the root of all, so that every path has an answer.
    pub(super) fn open_roots(&self) -> Vec<(String, Folder)> {
        let all = GrantRoot { name: "/".into(), path: String::new() };
        let roots = self.roots.iter().filter(|root| !root.name.is_empty()).chain([&all]);
        let opened = roots.filter_map(|root| {
            let folder = self.open_resolved(&root.path).ok()?;
            Some((root.name.clone(), folder.to_read().unwrap_or(folder)))
        });
        opened.collect()
    }

    /// The root that an absolute path lies in, and the path from there on.
    fn root_of<'a>(&self, path: &'a str) -> Option<(&GrantRoot, &'a str)> {
        let within = |root: &str| {
            let rest = path.strip_prefix(root)?;
            (rest.is_empty() || rest.starts_with('/')).then_some(rest)
        };
        let found = |root: &GrantRoot| within(&root.path).or_else(|| within(&root.name));
        let roots = self.roots.iter().filter_map(|root| Some((root, found(root)?)));
        roots.min_by_key(|(_, rest)| rest.len())
    }

    /// Opens a folder that is just where its path says, without a link on the way.
    pub(super) fn open_resolved(&self, path: &str) -> Result<Folder, FileError> {
        let mut handle = openat(CWD, "/", THROUGH, Mode::empty())?;
        for name in components(path) {
            handle = openat(&handle, name, THROUGH, Mode::empty())?;
        }
        let handle = Arc::new(File::from(handle));
        Ok(Folder { handle, path: path.into(), position: self.rules.position(path) })
    }

    /// An open folder as it lies in another.
    pub(super) fn folder_in(&self, folder: &Folder, name: &str, handle: OwnedFd) -> Folder {
        let path = folder.path_of(name);
        Folder {
            handle: Arc::new(File::from(handle)),
            position: self.rules.step(&folder.position, name, &path),
            path: path.into(),
        }
    }
}

impl Folder {
    /// The path of a name in this folder.
    pub(super) fn path_of(&self, name: &str) -> String {
        format!("{}/{name}", self.path)
    }

    /// Opens something in this folder, and follows no link.
    pub(super) fn open(&self, name: &str, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
        openat(&*self.handle, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode)
    }

    /// Looks at something in this folder, and follows no link.
    pub(super) fn stat(&self, name: &str) -> Result<Stat, Errno> {
        statat(&*self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// What a link in this folder says; nothing for what is no link.
    pub(super) fn read_link(&self, name: &str) -> Result<Option<String>, FileError> {
        match readlinkat(&*self.handle, name, Vec::new()) {
            Ok(target) => match target.into_string() {
                Ok(target) => Ok(Some(target)),
                Err(_) => Err(FileError::Never("a link that leads to a name which is not UTF-8")),
            },
            Err(Errno::INVAL) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The same folder, to be read and not only walked through.
    fn to_read(&self) -> Result<Self, Errno> {
        let handle = self.open(".", OFlags::DIRECTORY, Mode::empty())?;
        Ok(self.reopened(Arc::new(File::from(handle))))
    }

    /// The same folder, by another handle.
    pub(super) fn reopened(&self, handle: Arc<File>) -> Self {
        Self { handle, ..self.clone() }
    }
}

impl ResolvedPath {
    /// That it is not granted. Where links led on the way is not told, but only what was asked for:
    /// a grant of that is one of where it leads, when it is approved.
    pub(super) fn denied(&self, files: &FileGrants, purpose: Purpose) -> FileError {
        let attempt = purpose(self.asked.clone());
        let path = match &self.name {
            Some(name) => self.folder.path_of(name),
            None => self.folder.path.to_string(),
        };
        FileError::Denied(DeniedAccess {
            protected: files.protects(&path, attempt.writes),
            ..attempt
        })
    }

    /// What may be done there.
    pub(super) fn rights(&self, files: &FileGrants) -> PathRights {
        match &self.name {
            Some(name) => files.rights_in(&self.folder, name),
            None => files.rights_of(&self.folder),
        }
    }

    /// The place as a folder that is open now.
    pub(super) fn opened(&self, files: &FileGrants, handle: OwnedFd) -> Folder {
        match &self.name {
            Some(name) => files.folder_in(&self.folder, name, handle),
            None => self.folder.reopened(Arc::new(File::from(handle))),
        }
    }
}

/// A walk, from a folder on.
pub(super) struct Walk<'a> {
    files: &'a FileGrants,
    /// The folder that it stands in, and those that lead there.
    stack: Vec<Folder>,
    pending: VecDeque<String>,
    /// The path as the plugin asked for it.
    asked: String,
    links: u32,
    /// Whether a link was followed of which the plugin may not know.
    hidden: bool,
    must_be_folder: bool,
    /// What it is for.
    purpose: Purpose,
}

/// What a walk is for: puts a path that may not be gone into words.
pub(super) type Purpose = fn(String) -> DeniedAccess;

impl<'a> Walk<'a> {
    pub(super) fn new(
        files: &'a FileGrants,
        start: &Folder,
        path: &str,
        purpose: Purpose,
    ) -> Result<Self, FileError> {
        if path.is_empty() {
            return Err(Errno::NOENT.into());
        }
        if path.len() >= MAX_PATH_BYTES {
            return Err(Errno::NAMETOOLONG.into());
        }
        if path.contains('\0') {
            return Err(Errno::INVAL.into());
        }
        if path.starts_with('/') {
            return Err(FileError::Never("an absolute path beneath a folder"));
        }
        let mut walk = Self {
            files,
            stack: vec![start.clone()],
            pending: VecDeque::new(),
            asked: lexically(&start.path, path),
            links: 0,
            hidden: false,
            must_be_folder: false,
            purpose,
        };
        walk.push(path);
        Ok(walk)
    }

    /// Has the walk go on with this path.
    fn push(&mut self, path: &str) {
        if self.pending.is_empty() {
            self.must_be_folder |= path.ends_with('/') || path.ends_with("/.") || path == ".";
        }
        for name in path.split('/').rev().filter(|name| !name.is_empty() && *name != ".") {
            self.pending.push_front(name.to_string());
        }
    }

    fn here(&self) -> &Folder {
        self.stack.last().expect("what a walk begins in is never left")
    }

    /// Goes to the end. `follow` says whether a link there is followed, too.
    pub(super) fn finish(&mut self, follow: bool) -> Result<ResolvedPath, FileError> {
        while let Some(name) = self.pending.pop_front() {
            if name == ".." {
                if self.stack.len() == 1 {
                    return Err(match self.links {
                        0 => FileError::Never("a path that leads out of its folder"),
                        // Not even that a link leads up.
                        _ => self.denied(),
                    });
                }
                self.stack.pop();
                continue;
            }
            let is_last = self.pending.is_empty();
            if is_last && !follow && !self.must_be_folder {
                return Ok(self.place(Some(name)));
            }
            if is_last {
                match self.here().read_link(&name) {
                    Ok(Some(target)) => self.follow(&name, &target)?,
                    // What is not there may be about to be made.
                    Ok(None) | Err(FileError::Os(Errno::NOENT)) => {
                        return Ok(self.place(Some(name)));
                    }
                    Err(stop) => return Err(self.masked(&name, stop)),
                }
                continue;
            }
            match self.here().open(&name, THROUGH, Mode::empty()) {
                Ok(handle) => self.step(&name, handle)?,
                Err(Errno::LOOP | Errno::NOTDIR) => match self.here().read_link(&name) {
                    Ok(Some(target)) => self.follow(&name, &target)?,
                    Ok(None) => self.again(&name, Errno::NOTDIR)?,
                    Err(stop) => return Err(self.masked(&name, stop)),
                },
                Err(errno) => return Err(self.masked(&name, errno.into())),
            }
        }
        Ok(self.place(None))
    }

    /// Steps into a folder, where something there is granted.
    fn step(&mut self, name: &str, handle: OwnedFd) -> Result<(), FileError> {
        let folder = self.files.folder_in(self.here(), name, handle);
        if !self.files.rights_of(&folder).any() {
            return Err(self.denied());
        }
        self.stack.push(folder);
        Ok(())
    }

    /// Goes on where the link of this name leads: to its place among the granted folders, if it has
    /// one.
    pub(super) fn follow(&mut self, name: &str, target: &str) -> Result<(), FileError> {
        self.hidden |= !self.files.rights_in(self.here(), name).any();
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(match self.hidden {
                // Links that go round are told from what is not there only where they may be known.
                true => self.denied(),
                false => Errno::LOOP.into(),
            });
        }
        if target.starts_with('/') {
            let found = self.files.root_of(target);
            let (root, rest) = found.ok_or_else(|| self.denied())?;
            self.stack = vec![self.files.open_resolved(&root.path)?];
            self.push(rest);
        } else {
            self.push(target);
        }
        Ok(())
    }

    /// What the system says of a name is only for those who may know that name.
    fn masked(&self, name: &str, stop: FileError) -> FileError {
        match self.files.rights_in(self.here(), name).any() {
            true => stop,
            false => self.denied(),
        }
    }

    /// Has a name looked at again that was a link a moment ago, unless it is a file now, for which no
    /// look gives anything else.
    pub(super) fn again(&mut self, name: &str, errno: Errno) -> Result<(), FileError> {
        self.links += 1;
        let is_file =
            |stat: Stat| !matches!(file_type(&stat), FileType::Directory | FileType::Symlink);
        let has_changed = errno == Errno::LOOP || !self.here().stat(name).is_ok_and(is_file);
        if !has_changed || self.links > MAX_LINKS {
            return Err(self.masked(name, errno.into()));
        }
        self.pending.push_front(name.to_string());
        Ok(())
    }

    /// That the walk does not get where it was to lead.
    fn denied(&self) -> FileError {
        FileError::Denied((self.purpose)(self.asked.clone()))
    }

    fn place(&self, name: Option<String>) -> ResolvedPath {
        let (asked, must_be_folder) = (self.asked.clone(), self.must_be_folder);
        ResolvedPath { folder: self.here().clone(), name, asked, must_be_folder }
    }
}

impl DeniedAccess {
    pub(super) fn reading(path: String) -> Self {
        Self { writes: false, ..Self::new("reading", "read", path, "") }
    }

    pub(super) fn looking_at(path: String) -> Self {
        Self { looks_only: true, writes: false, ..Self::new("looking at", "read", path, "") }
    }

    pub(super) fn writing(path: String) -> Self {
        Self::new("writing", "write", path, "")
    }

    /// For what takes a file from one place to another.
    pub(super) fn moving(path: String, is_folder: bool) -> Self {
        Self::new("moving", "readwrite", path, if is_folder { "/**" } else { "" })
    }

    fn new(doing: &'static str, access: &str, path: String, all: &str) -> Self {
        let path = if path.is_empty() { "/".into() } else { path };
        let needs = format!("{access}:{}{all}", escaped(&path));
        Self { doing, path, needs, looks_only: false, writes: true, protected: None }
    }
}

/// Where a relative path leads if there is no link on its way.
pub(super) fn lexically(folder: &str, path: &str) -> String {
    let mut names: Vec<&str> = components(folder).collect();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names.iter().map(|name| format!("/{name}")).collect()
}

/// The type of a file, by what the system says of it.
pub(super) fn file_type(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::{FdFlags, fcntl_getfd};
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::{Path, PathBuf};
    use tempfile::TempDir;
    use tenon_config::grant::{GrantSet, Grants, PathGrant, ProtectedPaths};
    use tenon_config::host_environment::HostEnvironment;
    use tenon_config::path_context::PathContext;

    fn set(texts: &[&str], base: &Path) -> Vec<PathGrant> {
        let parse = |text: &&str| PathGrant::parse(text, &PathContext::in_folder(base)).unwrap();
        texts.iter().map(parse).collect()
    }

    /// The files that these grants cover beneath a folder.
    fn files(texts: &[&str], base: &Path) -> FileGrants {
        FileGrants::new(FileRules::new(
            vec![set(texts, base)],
            Vec::new(),
            ProtectedPaths::default(),
        ))
    }

    /// A folder with the file `a`, the folder `d` and the link `to-a`, and its real path.
    fn folder() -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        fs::write(path.join("a"), "").unwrap();
        fs::create_dir(path.join("d")).unwrap();
        symlink("a", path.join("to-a")).unwrap();
        (folder, path)
    }

    fn opened(files: &FileGrants, path: &Path) -> Folder {
        files.open_resolved(path.to_str().unwrap()).unwrap()
    }

    #[test]
    fn the_folder_for_data_is_a_root_also_within_another() {
        let check = |texts: &[&str], expected: &[&str]| {
            let mut set = GrantSet::default();
            texts.iter().for_each(|text| set.add_approved("filesystem", text).unwrap());
            let host_environment = HostEnvironment {
                data: Some("/no/such/data".into()),
                ..HostEnvironment::default()
            };
            let own = Some(Path::new("/no/such/data/x"));
            let grants = Grants::new(set.clone(), set);
            let rules = FileRules::of(&grants, own, &host_environment, &BTreeSet::new());
            let files = FileGrants::new(rules);
            assert_eq!(files.rules().as_requested("read:/no/such/data/x/z"), "read:${data}/z");
            let roots: Vec<&str> = files.roots.iter().map(|root| &*root.name).collect();
            assert_eq!(roots, expected, "{texts:?}");
        };
        let (all, own) = ("read:/no/such/**", "read:/no/such/data/x/**");
        check(&[all, own], &["/no/such", "/no/such/data/x"]);
        check(&[all, "read:/no/such/y/**"], &["/no/such"]);
        check(&[own, "read:/no/such/data/x/y/**"], &["/no/such/data/x"]);
    }

    #[test]
    fn what_is_protected_in_a_folder_is_known_by_its_name() {
        let (_folder, path) = folder();
        let files = files(&["readwrite:**"], &path);
        let here = opened(&files, &path);
        let is_protected = |name: &str| files.protection_in(&here, name).is_protected;
        assert_eq!([".mcp.json", "a"].map(is_protected), [true, false]);
    }

    #[test]
    fn a_folder_is_a_root_if_both_sets_grant_something_of_it() {
        let check = |requested: &[&str], approved: &[&str], expected: &[&str]| {
            let set = |texts| set(texts, Path::new("/"));
            let grants = vec![set(requested), set(approved)];
            let files =
                FileGrants::new(FileRules::new(grants, Vec::new(), ProtectedPaths::default()));
            let roots: Vec<&str> = files.roots.iter().map(|root| &*root.name).collect();
            assert_eq!(roots, expected, "{requested:?} and {approved:?}");
        };
        check(&["read:/no/a/**"], &["read:/no/a/*"], &["/no/a"]);
        check(&["read:/no/a/**"], &["read:/no/a/b/*"], &["/no/a"]);
        check(&["read:/no/a/**", "read:/no/b/*"], &["read:/no/b/**"], &["/no/b"]);
        check(&["read:/no/a/**"], &["write:/no/a/**"], &[]);
        check(&["read:/no/a/**"], &["read:/no/b/**"], &[]);
    }

    #[test]
    fn an_absolute_path_lies_in_a_root_or_in_none() {
        let files = files(&["read:/no/a/**", "read:/no/b/*"], Path::new("/"));
        let check = |path: &str, expected: Option<(&str, &str)>| {
            let found = files.root_of(path).map(|(root, rest)| (&*root.name, rest));
            assert_eq!(found, expected, "{path}");
        };
        check("/no/a/x/y", Some(("/no/a", "/x/y")));
        check("/no/b/x", Some(("/no/b", "/x")));
        check("/no/a", Some(("/no/a", "")));
        check("/no/ax", None);
        check("/no", None);
    }

    #[test]
    fn what_is_opened_is_no_link_and_no_program_that_is_started_has_it() {
        let (_folder, path) = folder();
        let folder = opened(&files(&["read:**"], &path), &path);
        assert_eq!(folder.open("to-a", OFlags::RDONLY, Mode::empty()).err(), Some(Errno::LOOP));
        for (name, flags) in [("a", OFlags::RDONLY), ("d", THROUGH)] {
            let handle = folder.open(name, flags, Mode::empty()).unwrap();
            assert!(fcntl_getfd(&handle).unwrap().contains(FdFlags::CLOEXEC), "{name}");
        }
    }

    #[test]
    fn a_walk_does_not_leave_the_folder_that_it_begins_in() {
        let (_folder, path) = folder();
        symlink("..", path.join("up")).unwrap();
        let files = files(&["read:**"], &path);
        let start = opened(&files, &path);
        let check = |path: &str, is_never: bool| {
            let mut walk = Walk::new(&files, &start, path, DeniedAccess::writing).unwrap();
            match walk.finish(true).err() {
                Some(FileError::Never(_)) => assert!(is_never, "{path}"),
                Some(FileError::Denied(_)) => assert!(!is_never, "{path}"),
                other => panic!("{path}: {other:?}"),
            }
        };
        check("..", true);
        check("d/../../x", true);
        // That a link leads up is not told.
        check("up/x", false);
    }

    #[test]
    fn so_many_links_are_followed_and_no_more() {
        let (_folder, path) = folder();
        symlink("a", path.join("0")).unwrap();
        for link in 1..=MAX_LINKS {
            symlink((link - 1).to_string(), path.join(link.to_string())).unwrap();
        }
        let files = files(&["read:**"], &path);
        let start = opened(&files, &path);
        let walk = |name: u32| {
            let walk = Walk::new(&files, &start, &name.to_string(), DeniedAccess::writing);
            walk.unwrap().finish(true).map(|place| place.name)
        };
        // The link `n` is followed by `n` others.
        assert_eq!(walk(MAX_LINKS - 1), Ok(Some("a".into())));
        assert_eq!(walk(MAX_LINKS), Err(FileError::Os(Errno::LOOP)));
    }

    #[test]
    fn a_name_is_looked_at_again_if_it_is_another_thing_than_a_moment_ago() {
        let (_folder, path) = folder();
        let files = files(&["read:**"], &path);
        let start = opened(&files, &path);
        let check = |name: &str, errno: Errno, expected: Result<(), FileError>| {
            let mut walk = Walk::new(&files, &start, "x", DeniedAccess::writing).unwrap();
            assert_eq!(walk.again(name, errno), expected, "{name} {errno:?}");
            let is_next = walk.pending.front().is_some_and(|next| next == name);
            assert_eq!(is_next, expected.is_ok(), "{name} {errno:?}");
        };
        check("a", Errno::NOTDIR, Err(FileError::Os(Errno::NOTDIR)));
        check("d", Errno::NOTDIR, Ok(()));
        check("a", Errno::LOOP, Ok(()));
        // It may come and go meanwhile.
        check("to-a", Errno::NOTDIR, Ok(()));
        check("none", Errno::NOTDIR, Ok(()));
        let mut walk = Walk::new(&files, &start, "x", DeniedAccess::writing).unwrap();
        for _ in 0..MAX_LINKS {
            assert_eq!(walk.again("a", Errno::LOOP), Ok(()));
        }
        assert_eq!(walk.again("a", Errno::LOOP), Err(FileError::Os(Errno::LOOP)));
    }
}
