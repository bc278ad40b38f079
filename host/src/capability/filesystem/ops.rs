//! What a guest can do with a path, in one place for both editions of WASI. All of it blocks.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fstat,
    linkat, mkdirat, openat, renameat, statat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use tenon_config::grant::{PathRights, ProtectionState};

use super::walk::{
    DeniedAccess, FileError, FileGrants, Folder, Purpose, ResolvedPath, Walk, file_type, lexically,
};

/// How something is opened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct OpenMode {
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) create: bool,
    pub(super) exclusive: bool,
    pub(super) truncate: bool,
    pub(super) folder: bool,
    /// Whether a link at the end is followed.
    pub(super) follow: bool,
}

/// What was opened.
pub(super) enum OpenedEntry {
    Folder(Folder),
    File { file: File, read: bool, write: bool },
}

/// What is known of a file without opening it.
pub(super) struct FileInfo {
    pub(super) file_type: FileType,
    pub(super) links: u64,
    pub(super) size: u64,
    /// In seconds and nanoseconds.
    pub(super) accessed: (i64, u32),
    pub(super) modified: (i64, u32),
    pub(super) changed: (i64, u32),
}

impl FileInfo {
    // The numbers have other types on other systems.
    #[allow(clippy::unnecessary_cast)]
    fn new(stat: &Stat) -> Self {
        Self {
            file_type: file_type(stat),
            links: stat.st_nlink as u64,
            size: stat.st_size as u64,
            accessed: (stat.st_atime as i64, stat.st_atime_nsec as u32),
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u32),
        }
    }
}

/// A time to set.
#[derive(Debug, Clone, Copy)]
pub(super) enum Time {
    Keep,
    Now,
    At { seconds: i64, nanoseconds: u32 },
}

impl OpenMode {
    /// Whether it asks for something that there can be.
    pub(super) fn is_sound(self) -> bool {
        !(self.folder && (self.create || self.exclusive || self.truncate))
    }
}

impl Time {
    /// A point in time; nothing where it has more nanoseconds than a second.
    pub(super) fn at(seconds: i64, nanoseconds: u32) -> Option<Self> {
        (nanoseconds < 1_000_000_000).then_some(Self::At { seconds, nanoseconds })
    }
}

/// The most that is moved with a folder, in files and folders, and how deeply nested: more of them
/// would be looked at for too long, or need too many handles.
const MAX_MOVED_ENTRIES: usize = 1_000_000;
const MAX_DEPTH: usize = 128;

/// A folder that is moved with another.
struct MovedSubfolder {
    within: Arc<File>,
    name: CString,
    from: MoveEndpoint,
    to: MoveEndpoint,
    depth: usize,
}

/// Where something that is moved is, or would be.
struct MoveEndpoint {
    path: String,
    protection: ProtectionState,
}

impl MoveEndpoint {
    fn down(&self, files: &FileGrants, name: &str) -> Self {
        let path = format!("{}/{name}", self.path);
        Self { protection: files.protection_beneath(self.protection, name, &path), path }
    }
}

/// A folder that paths are resolved beneath, for a plugin.
#[derive(Clone)]
pub(super) struct BaseFolder {
    pub(super) files: Arc<FileGrants>,
    pub(super) folder: Folder,
}

impl BaseFolder {
    /// Where a path leads.
    fn find(&self, path: &str, follow: bool, purpose: Purpose) -> Result<ResolvedPath, FileError> {
        Walk::new(&self.files, &self.folder, path, purpose)?.finish(follow)
    }

    /// Where a path leads that is going to be changed, if it may be.
    fn find_to_change(&self, path: &str, follow: bool) -> Result<(Folder, String), FileError> {
        let place = self.find(path, follow, DeniedAccess::writing)?;
        if !place.rights(&self.files).write.here {
            return Err(place.denied(&self.files, DeniedAccess::writing));
        }
        // The folder that was begun in has no name here.
        let name = place.name.ok_or(FileError::Os(Errno::INVAL))?;
        if place.must_be_folder && file_type(&place.folder.stat(&name)?) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        Ok((place.folder, name))
    }

    pub(super) fn open(&self, path: &str, how: OpenMode) -> Result<OpenedEntry, FileError> {
        let changes = how.write || how.truncate || how.create;
        let purpose = if changes { DeniedAccess::writing } else { DeniedAccess::reading };
        let mut walk = Walk::new(&self.files, &self.folder, path, purpose)?;
        loop {
            let place = walk.finish(how.follow)?;
            match self.open_place(&place, how) {
                // It has become a link since it was looked at.
                Err(stop @ FileError::Os(errno @ (Errno::LOOP | Errno::NOTDIR))) if how.follow => {
                    let Some(name) = &place.name else { return Err(stop) };
                    match place.folder.read_link(name)? {
                        Some(target) => walk.follow(name, &target)?,
                        None => walk.again(name, errno)?,
                    }
                }
                opened => return opened,
            }
        }
    }

    fn open_place(&self, place: &ResolvedPath, how: OpenMode) -> Result<OpenedEntry, FileError> {
        let rights = place.rights(&self.files);
        let writes = how.write || how.truncate;
        let changes = writes || how.create;
        if changes && !rights.write.here {
            return Err(place.denied(&self.files, DeniedAccess::writing));
        }
        if !rights.any() {
            return Err(place.denied(&self.files, DeniedAccess::reading));
        }
        let name = place.name.as_deref().unwrap_or(".");
        let must_be_folder = how.folder || place.must_be_folder || place.name.is_none();
        let reads = how.read || !how.write;
        if must_be_folder || (reads && !rights.read.here) {
            if changes {
                // A file that is only written to is not read by the way.
                return match must_be_folder {
                    true => Err(Errno::ISDIR.into()),
                    false => Err(place.denied(&self.files, DeniedAccess::reading)),
                };
            }
            let opened = place.folder.open(name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
            return match opened {
                Ok(handle) => Ok(OpenedEntry::Folder(place.opened(&self.files, handle))),
                Err(Errno::NOTDIR | Errno::NOENT) if !must_be_folder => {
                    Err(place.denied(&self.files, DeniedAccess::reading))
                }
                Err(errno) => Err(errno.into()),
            };
        }
        let mut flags = match (reads, writes) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            (_, false) => OFlags::RDONLY,
        };
        // Opening a pipe must not wait for its other end.
        flags |= OFlags::NONBLOCK | OFlags::NOCTTY;
        flags.set(OFlags::CREATE, how.create);
        flags.set(OFlags::EXCL, how.exclusive);
        let handle = place.folder.open(name, flags, Mode::from_raw_mode(0o666))?;
        match file_type(&fstat(&handle)?) {
            FileType::RegularFile => {
                let file = File::from(handle);
                // Only now it is known to be one.
                if how.truncate {
                    rustix::fs::ftruncate(&file, 0)?;
                }
                Ok(OpenedEntry::File { file, read: reads, write: writes })
            }
            FileType::Directory => Ok(OpenedEntry::Folder(place.opened(&self.files, handle))),
            _ => Err(FileError::Never("what is neither a file nor a folder")),
        }
    }

    pub(super) fn see(&self, path: &str, follow: bool) -> Result<FileInfo, FileError> {
        Ok(FileInfo::new(&self.stat(path, follow)?))
    }

    fn stat(&self, path: &str, follow: bool) -> Result<Stat, FileError> {
        let place = self.find(path, follow, DeniedAccess::looking_at)?;
        let rights = place.rights(&self.files);
        let denied = || place.denied(&self.files, DeniedAccess::looking_at);
        if !rights.any() {
            return Err(denied());
        }
        let stat = match &place.name {
            Some(name) => place.folder.stat(name),
            None => fstat(&*place.folder.handle),
        };
        let stat = stat.map_err(|errno| match rights.read.here {
            true => errno.into(),
            false => denied(),
        })?;
        let is_folder = file_type(&stat) == FileType::Directory;
        match rights.read.here || is_folder {
            true if place.must_be_folder && !is_folder => Err(Errno::NOTDIR.into()),
            true => Ok(stat),
            // What is granted beneath it makes a folder known, and nothing else.
            false => Err(denied()),
        }
    }

    /// Tells a file from all others, as two halves of a number.
    pub(super) fn identity(
        &self,
        path: &str,
        follow: bool,
        key: &RandomState,
    ) -> Result<(u64, u64), FileError> {
        Ok(identity(&self.stat(path, follow)?, key))
    }

    pub(super) fn set_times(
        &self,
        path: &str,
        follow: bool,
        accessed: Time,
        modified: Time,
    ) -> Result<(), FileError> {
        let (folder, name) = self.find_to_change(path, follow)?;
        let times = timestamps(accessed, modified);
        Ok(utimensat(&*folder.handle, name, &times, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// Sets the times of the folder itself.
    pub(super) fn set_own_times(&self, accessed: Time, modified: Time) -> Result<(), FileError> {
        if !self.files.rights_of(&self.folder).write.here {
            return Err(FileError::Denied(DeniedAccess::writing(self.folder.path.to_string())));
        }
        let times = timestamps(accessed, modified);
        Ok(utimensat(&*self.folder.handle, ".", &times, AtFlags::empty())?)
    }

    pub(super) fn create_folder(&self, path: &str) -> Result<(), FileError> {
        let trimmed = path.trim_end_matches('/');
        // The folder itself, which is how the standard library says a folder that was granted.
        if !path.is_empty() && trimmed.split('/').all(|name| matches!(name, "" | ".")) {
            return Err(Errno::EXIST.into());
        }
        let (folder, name) = self.find_to_change(trimmed, false)?;
        Ok(mkdirat(&*folder.handle, name, Mode::from_raw_mode(0o777))?)
    }

    pub(super) fn remove_folder(&self, path: &str) -> Result<(), FileError> {
        let trimmed = path.trim_end_matches('/');
        let (folder, name) = self.find_to_change(trimmed, false)?;
        Ok(unlinkat(&*folder.handle, name, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn remove_file(&self, path: &str) -> Result<(), FileError> {
        let (folder, name) = self.find_to_change(path, false)?;
        if is_link(&folder, &name) {
            self.files.may_take(&folder, &name)?;
        }
        Ok(unlinkat(&*folder.handle, name, AtFlags::empty())?)
    }

    pub(super) fn rename(&self, from: &str, to: &Self, into: &str) -> Result<(), FileError> {
        let trim = |path: &str| path.trim_end_matches('/').to_string();
        let source = self.find_to_change(&trim(from), false)?;
        let target = to.find_to_change(&trim(into), false)?;
        self.may_move(&source, &target)?;
        let leads_elsewhere = is_link(&source.0, &source.1);
        if leads_elsewhere {
            self.files.may_take(&source.0, &source.1)?;
        }
        if leads_elsewhere || is_link(&target.0, &target.1) {
            self.files.may_take(&target.0, &target.1)?;
        }
        // From another folder, a link leads elsewhere.
        if source.0.path != target.0.path
            && let Some(leads) = source.0.read_link(&source.1)?
            && !leads.starts_with('/')
        {
            self.may_lead(&target.0, &leads)?;
        }
        Ok(renameat(&*source.0.handle, &source.1, &*target.0.handle, &target.1)?)
    }

    pub(super) fn link(&self, from: &str, to: &Self, into: &str) -> Result<(), FileError> {
        let source = self.find_to_change(from, false)?;
        let target = to.find_to_change(into, false)?;
        if file_type(&source.0.stat(&source.1)?) != FileType::RegularFile {
            return Err(FileError::Never("another name for what is no file"));
        }
        self.may_move(&source, &target)?;
        let (from, to) = (&source.0.handle, &target.0.handle);
        Ok(linkat(&**from, &source.1, &**to, &target.1, AtFlags::empty())?)
    }

    /// What gets another name must not get other rights with it: where it was, all of it may be
    /// read and written.
    fn may_move(
        &self,
        source: &(Folder, String),
        target: &(Folder, String),
    ) -> Result<(), FileError> {
        let (from, to) = (source.0.path_of(&source.1), target.0.path_of(&target.1));
        let is_folder = file_type(&source.0.stat(&source.1)?) == FileType::Directory;
        let rights = |(folder, name): &(Folder, String)| self.files.rights_in(folder, name);
        let (here, there) = (rights(source), rights(target));
        let may_leave = match is_folder {
            true => here.read.tree() && here.write.tree(),
            false => here.read.here && here.write.here,
        };
        if !may_leave {
            return Err(FileError::Denied(DeniedAccess::moving(from, is_folder)));
        }
        // Who has it open, or by its other name, goes on by the rights that it had.
        let may_arrive = match is_folder {
            true => there.read.tree() && there.write.tree(),
            false => there.read.here && there.write.here,
        };
        match may_arrive {
            true if is_folder => self.may_carry(source, target),
            true => Ok(()),
            false => Err(FileError::Denied(DeniedAccess::moving(to, is_folder))),
        }
    }

    /// Whether all that is in a folder may be moved with it: what is protected, where it is or where
    /// it would be, has to be named by the grants.
    ///
    /// A plugin cannot bring anything in while this looks: it would be moving or making what is
    /// protected there already, or what would be for the name that its folder gets, and
    /// [`FileGrants::may_take`] leaves no folder that name.
    fn may_carry(
        &self,
        source: &(Folder, String),
        target: &(Folder, String),
    ) -> Result<(), FileError> {
        for (folder, name) in [source, target] {
            self.files.may_take(folder, name)?;
        }
        let step = |(folder, name): &(Folder, String)| MoveEndpoint {
            path: folder.path_of(name),
            protection: self.files.protection_in(folder, name),
        };
        let name = CString::new(source.1.as_str()).map_err(|_| Errno::INVAL)?;
        let (from, to) = (step(source), step(target));
        let mut folders =
            vec![MovedSubfolder { within: source.0.handle.clone(), name, from, to, depth: 0 }];
        let mut entries = 0;
        while let Some(MovedSubfolder { within, name, from, to, depth }) = folders.pop() {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let handle = Arc::new(File::from(openat(&*within, &name, flags, Mode::empty())?));
            for entry in Dir::read_from(&*handle)? {
                let entry = entry?;
                let name = entry.file_name();
                if matches!(name.to_bytes(), b"." | b"..") {
                    continue;
                }
                entries += 1;
                if entries > MAX_MOVED_ENTRIES || depth > MAX_DEPTH {
                    return Err(FileError::Never("moving a folder with so much in it"));
                }
                let shown = name.to_string_lossy();
                let [from, to] = [&from, &to].map(|step| step.down(&self.files, &shown));
                let is_folder = match entry.file_type() {
                    FileType::Unknown => {
                        let stat = statat(&*handle, name, AtFlags::SYMLINK_NOFOLLOW)?;
                        file_type(&stat) == FileType::Directory
                    }
                    found => found == FileType::Directory,
                };
                for MoveEndpoint { path, protection } in [&from, &to] {
                    let rights = || self.files.rights(path);
                    if protection.is_protected && !(rights().read.here && rights().write.here) {
                        let attempt = DeniedAccess::moving(path.clone(), is_folder);
                        let protected = self.files.protects(path, true);
                        return Err(FileError::Denied(DeniedAccess { protected, ..attempt }));
                    }
                }
                if is_folder {
                    let (within, name) = (handle.clone(), name.to_owned());
                    folders.push(MovedSubfolder { within, name, from, to, depth: depth + 1 });
                }
            }
        }
        Ok(())
    }

    pub(super) fn read_link(&self, path: &str) -> Result<String, FileError> {
        let place = self.find(path, false, DeniedAccess::looking_at)?;
        if !place.rights(&self.files).read.here {
            return Err(place.denied(&self.files, DeniedAccess::looking_at));
        }
        let name = place.name.ok_or(FileError::Os(Errno::INVAL))?;
        match place.folder.read_link(&name)? {
            Some(target) if target.starts_with('/') => {
                Err(FileError::Never("where an absolute link leads"))
            }
            Some(target) => Ok(target),
            None => Err(Errno::INVAL.into()),
        }
    }

    /// Makes a link. It must lead to what is granted: others may follow it.
    pub(super) fn make_link(&self, target: &str, path: &str) -> Result<(), FileError> {
        if target.is_empty() || target.contains('\0') {
            return Err(Errno::INVAL.into());
        }
        if target.starts_with('/') {
            return Err(FileError::Never("an absolute link"));
        }
        let (folder, name) = self.find_to_change(path, false)?;
        self.files.may_take(&folder, &name)?;
        self.may_lead(&folder, target)?;
        Ok(symlinkat(target, &*folder.handle, name)?)
    }

    /// Whether a link in a folder may lead there: by its words, as what they name may come to be, and
    /// by what is there, as another link can be on the way.
    fn may_lead(&self, folder: &Folder, target: &str) -> Result<(), FileError> {
        let is_granted = |rights: PathRights| rights.read.here || rights.write.here;
        let named = lexically(&folder.path, target);
        if !is_granted(self.files.rights(&named)) {
            return Err(FileError::Denied(DeniedAccess::reading(named)));
        }
        let path = format!(".{}/{target}", folder.path);
        let mut walk =
            Walk::new(&self.files, &self.files.open_resolved("")?, &path, DeniedAccess::reading)?;
        match walk.finish(true) {
            Ok(place) if is_granted(place.rights(&self.files)) => Ok(()),
            Ok(place) => Err(place.denied(&self.files, DeniedAccess::reading)),
            // There is nothing on the way.
            Err(FileError::Os(_)) => Ok(()),
            Err(stop) => Err(stop),
        }
    }

    /// Whether a listing of the folder shows this: what may be read, and folders on the way to what
    /// is granted.
    pub(super) fn shows(&self, name: &str, is_folder: bool) -> bool {
        let rights = self.files.rights_in(&self.folder, name);
        rights.read.here || is_folder && rights.any()
    }
}

/// Whether a name in a folder is that of a link.
fn is_link(folder: &Folder, name: &str) -> bool {
    folder.stat(name).is_ok_and(|stat| file_type(&stat) == FileType::Symlink)
}

/// Tells a file from all others, for who has the key. What the system numbers it by could be told
/// from the number by whoever knows the key: each instance has one of its own.
pub(super) fn identity(stat: &Stat, key: &RandomState) -> (u64, u64) {
    let hash = |salt: u8| key.hash_one((stat.st_dev, stat.st_ino, salt));
    (hash(0), hash(1))
}

fn timestamps(accessed: Time, modified: Time) -> Timestamps {
    let spec = |time| match time {
        Time::Keep => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        Time::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
        Time::At { seconds, nanoseconds } => {
            Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() }
        }
    };
    Timestamps { last_access: spec(accessed), last_modification: spec(modified) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::{ffi::OsStrExt, fs::symlink};
    use std::path::Path;
    use tempfile::TempDir;
    use tenon_config::grant::{FileRules, PathGrant, ProtectedPaths};
    use tenon_config::path_context::PathContext;

    /// A folder with `d/a`, `d/e/` and `s/`, of which all in `d` is granted and `s` for writing only;
    /// and the two as a guest has them.
    fn folders() -> (TempDir, BaseFolder, BaseFolder) {
        folders_with("readwrite:d/**", "write:s/**")
    }

    /// The same with other grants.
    fn folders_with(of_d: &str, of_s: &str) -> (TempDir, BaseFolder, BaseFolder) {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("d/e")).unwrap();
        fs::create_dir(folder.path().join("s")).unwrap();
        fs::write(folder.path().join("d/a"), "").unwrap();
        let grant = |text| PathGrant::parse(text, &PathContext::in_folder(folder.path())).unwrap();
        let grants = vec![grant(of_d), grant(of_s)];
        let files = Arc::new(FileGrants::new(FileRules::new(
            vec![grants],
            Vec::new(),
            ProtectedPaths::default(),
        )));
        let mut roots = files.open_roots().into_iter().map(|(_, folder)| folder);
        let mut next = || BaseFolder { files: files.clone(), folder: roots.next().unwrap() };
        let (d, s) = (next(), next());
        (folder, d, s)
    }

    fn denied(done: Result<(), FileError>) {
        assert!(matches!(done, Err(FileError::Denied(_))), "{done:?}");
    }

    #[test]
    fn what_ends_in_a_slash_is_a_folder() {
        let (folder, d, _s) = folders();
        d.make_link("a", "x").unwrap();
        assert_eq!(d.remove_file("x/"), Err(FileError::Os(Errno::NOTDIR)));
        assert_eq!(d.link("a", &d, "y/"), Err(FileError::Os(Errno::NOENT)));
        assert_eq!(d.make_link("a", "y/"), Err(FileError::Os(Errno::NOENT)));
        assert_eq!(
            d.set_times("a/", true, Time::Now, Time::Now),
            Err(FileError::Os(Errno::NOTDIR))
        );
        assert_eq!(d.set_times("e/", true, Time::Now, Time::Now), Ok(()));
        assert_eq!(d.create_folder("y/"), Ok(()));
        assert_eq!(d.rename("y/", &d, "z/"), Ok(()));
        assert!(folder.path().join("d/a").exists());
    }

    #[test]
    fn a_file_is_the_same_by_all_of_its_names_and_to_one_instance_only() {
        let (_folder, d, _s) = folders();
        d.make_link("a", "x").unwrap();
        let (one, other) = (RandomState::new(), RandomState::new());
        let a = d.identity("a", true, &one).unwrap();
        assert_eq!(d.identity("x", true, &one), Ok(a));
        assert_ne!(d.identity("e", true, &one), Ok(a));
        assert_ne!(d.identity("a", true, &other), Ok(a));
    }

    #[test]
    fn what_is_moved_or_linked_goes_only_where_as_much_is_granted() {
        let (_folder, d, s) = folders();
        denied(d.rename("e", &s, "e"));
        denied(d.rename("a", &s, "a"));
        denied(d.link("a", &s, "a"));
        assert_eq!(d.rename("e", &d, "f"), Ok(()));
    }

    #[test]
    fn a_folder_is_moved_only_with_all_that_is_in_it() {
        let check = |of_d: &str, of_s: &str, file: bool, within: bool, across: bool| {
            let (_folder, d, s) = folders_with(of_d, of_s);
            let may = |done: Result<(), FileError>, expected: bool| match expected {
                true => assert_eq!(done, Ok(()), "{of_d} {of_s}"),
                false => denied(done),
            };
            may(d.rename("a", &d, "b"), file);
            may(d.rename("e", &d, "f"), within);
            let moved = if within { "f" } else { "e" };
            may(d.rename(moved, &s, "e"), across);
        };
        check("readwrite:d/**", "readwrite:s/**", true, true, true);
        // The folder itself may be read and written, and not what is in it: where it is, or would be.
        check("readwrite:d/*", "readwrite:s/**", true, false, false);
        check("readwrite:d/**", "readwrite:s/*", true, true, false);
    }

    /// What is done with a path, and what stops it.
    type Tried<'a> = (&'a str, &'a dyn Fn(&str) -> Option<FileError>);

    /// What is where nothing was granted, and how it gets there.
    type Hidden = (&'static str, fn(&Path) -> std::io::Result<()>);

    #[test]
    fn what_is_not_granted_looks_the_same_whatever_it_is() {
        let (folder, _d, _s) = folders();
        let base = folder.path().canonicalize().unwrap();
        symlink("../x", base.join("d/out")).unwrap();
        symlink("../x/y", base.join("d/through")).unwrap();
        let x = base.join("x");
        let kinds: [Hidden; 8] = [
            ("nothing", |_| Ok(())),
            ("a file", |x| fs::write(x, "")),
            ("a folder with a file", |x| {
                fs::create_dir(x).and_then(|()| fs::write(x.join("y"), ""))
            }),
            ("a link to itself", |x| symlink("x", x)),
            ("a link to a secret", |x| symlink("/no/such/secret", x)),
            ("a link beside it", |x| symlink("secret", x)),
            ("a link above all", |x| symlink(format!("{}secret", "../".repeat(50)), x)),
            ("a link to no name", |x| symlink(OsStr::from_bytes(b"\xff"), x)),
        ];
        let grants = PathGrant::parse("readwrite:d/**", &PathContext::in_folder(&base)).unwrap();
        let files = Arc::new(FileGrants::new(FileRules::new(
            vec![vec![grants]],
            Vec::new(),
            ProtectedPaths::default(),
        )));
        let root = BaseFolder { folder: files.open_resolved("").unwrap(), files };
        let read = OpenMode { read: true, follow: true, ..OpenMode::default() };
        let create = OpenMode { write: true, create: true, ..read };
        let attempts: [Tried<'_>; 7] = [
            ("reading", &|path| root.open(path, read).err()),
            ("reading", &|path| root.open(path, OpenMode { folder: true, ..read }).err()),
            ("writing", &|path| root.open(path, create).err()),
            ("looking at", &|path| root.see(path, true).err()),
            ("writing", &|path| root.create_folder(&format!("{path}/z")).err()),
            ("writing", &|path| root.set_times(path, true, Time::Now, Time::Now).err()),
            ("looking at", &|path| root.read_link(&format!("{path}/z")).err()),
        ];
        for (kind, put) in kinds {
            put(&x).unwrap();
            for (name, (doing, attempt)) in ["x", "x/", "x/y", "d/out", "d/through"]
                .iter()
                .flat_map(|n| attempts.iter().map(move |a| (n, a)))
            {
                let asked = base.join(name.trim_end_matches('/'));
                let stop = attempt(asked.to_str().unwrap().trim_start_matches('/'));
                let Some(FileError::Denied(attempt)) = stop else {
                    panic!("{kind}: {doing} {name}: {stop:?}");
                };
                let said = Path::new(attempt.path.strip_suffix("/z").unwrap_or(&attempt.path));
                assert_eq!((attempt.doing, said), (*doing, &*asked), "{kind}: {attempt:?}");
            }
            let _ = fs::remove_dir_all(&x).or_else(|_| fs::remove_file(&x));
        }
    }

    #[test]
    fn a_link_leads_to_what_is_granted_wherever_it_is_made_or_moved() {
        let (_folder, d, _s) = folders();
        assert_eq!(d.make_link(".", "here"), Ok(()));
        assert_eq!(d.make_link("here/e/nothing", "x"), Ok(()));
        assert_eq!(d.make_link("here/../s", "y"), Ok(()));
        denied(d.make_link("here/../t", "z"));
        denied(d.make_link("../t", "z"));
        assert_eq!(d.make_link("../t", "e/z"), Ok(()));
        assert_eq!(d.rename("e/z", &d, "e/y"), Ok(()));
        denied(d.rename("e/y", &d, "z"));
    }

    /// A folder with what is protected and what is not, and it as a plugin has it that was granted
    /// this.
    fn protected_folder(grants: &[&str]) -> (TempDir, BaseFolder) {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        for name in [".git/hooks", "sub/deep", "plain/deep", ".config", "hooks"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        for name in [".git/config", "tenon.toml", ".ssh.txt", "sub/deep/tenon.toml", "free"] {
            fs::write(base.join(name), name).unwrap();
        }
        fs::write(base.join(".env"), "secret").unwrap();
        for (name, target) in [
            ("to-git", ".git"),
            ("to-config", ".git/config"),
            ("to-new", ".git/new"),
            (".local", "plain"),
        ] {
            symlink(target, base.join(name)).unwrap();
        }
        let grant = |text: &&str| PathGrant::parse(text, &PathContext::in_folder(&base)).unwrap();
        let grants = grants.iter().map(grant).collect();
        let files = Arc::new(FileGrants::new(FileRules::new(
            vec![grants],
            Vec::new(),
            ProtectedPaths::default(),
        )));
        let folder_here = files.open_resolved(base.to_str().unwrap()).unwrap();
        (folder, BaseFolder { files, folder: folder_here })
    }

    /// What is done to a folder, and the grants that it takes.
    type Deed = (&'static [&'static str], fn(&BaseFolder) -> Result<(), FileError>);

    #[test]
    fn no_way_leads_to_what_is_protected_but_by_its_name() {
        const READ: OpenMode = OpenMode {
            read: true,
            write: false,
            create: false,
            exclusive: false,
            truncate: false,
            folder: false,
            follow: true,
        };
        const WRITE: OpenMode = OpenMode { read: false, write: true, ..READ };
        const CREATE: OpenMode = OpenMode { create: true, ..WRITE };
        const TRUNCATE: OpenMode = OpenMode { write: false, read: true, truncate: true, ..READ };
        const GIT: &[&str] = &["readwrite:.git/**"];
        const TENON: &[&str] = &["readwrite:tenon.toml"];
        fn open(at: &BaseFolder, path: &str, how: OpenMode) -> Result<(), FileError> {
            at.open(path, how).map(drop)
        }
        let deeds: &[Deed] = &[
            (GIT, |at| open(at, ".git/config", WRITE)),
            (GIT, |at| open(at, ".git/config", TRUNCATE)),
            (GIT, |at| open(at, ".git/new", CREATE)),
            (GIT, |at| open(at, ".git/hooks/new", CREATE)),
            (GIT, |at| open(at, "to-git/hooks/new", CREATE)),
            (GIT, |at| open(at, "to-config", WRITE)),
            (GIT, |at| open(at, "to-new", CREATE)),
            (GIT, |at| open(at, "plain/../.git/config", WRITE)),
            (GIT, |at| at.set_times(".git/config", true, Time::Now, Time::Now)),
            (GIT, |at| at.set_times("to-config", true, Time::Now, Time::Now)),
            (GIT, |at| at.set_times(".git", true, Time::Now, Time::Now)),
            (GIT, |at| at.create_folder(".git/new")),
            (GIT, |at| at.remove_folder(".git/hooks")),
            (GIT, |at| at.remove_file(".git/config")),
            (GIT, |at| at.make_link("config", ".git/new")),
            (GIT, |at| at.rename("free", at, ".git/new")),
            (GIT, |at| at.rename(".git/config", at, "new")),
            (GIT, |at| at.rename(".git/hooks", at, "new")),
            (GIT, |at| at.rename(".git", at, "new")),
            (GIT, |at| at.rename("hooks", at, ".git/new")),
            (GIT, |at| at.link("free", at, ".git/new")),
            (GIT, |at| at.link(".git/config", at, "new")),
            (TENON, |at| at.rename("free", at, "tenon.toml")),
            (TENON, |at| at.rename("tenon.toml", at, "free")),
            // What a folder holds goes with it, to where it has to be named as well.
            (&["readwrite:sub/deep/tenon.toml", "readwrite:new/deep/tenon.toml"], |at| {
                at.rename("sub", at, "new")
            }),
            (&["readwrite:**/tenon.toml"], |at| at.rename("sub/deep", at, "plain/new")),
            // What would be protected for the name of its folder.
            (&["readwrite:.vscode/**"], |at| at.create_folder(".vscode")),
            (&["readwrite:.vscode/**"], |at| at.rename("plain", at, ".vscode")),
            (&["readwrite:.vscode/**"], |at| at.make_link("plain", ".vscode")),
            (&["readwrite:.config/**"], |at| at.rename(".config", at, "new")),
            (&["readwrite:.github/**"], |at| at.rename("plain", at, ".github")),
            (&["readwrite:.github/**"], |at| at.make_link("plain", ".github")),
            // Keys are not even read.
            (&["read:.env"], |at| open(at, ".env", READ)),
            (&["read:.env"], |at| at.see(".env", true).map(drop)),
            (&["readwrite:.env"], |at| at.rename(".env", at, "new")),
            (&["readwrite:.env"], |at| at.link(".env", at, "new")),
        ];
        // A grant that names a link is one of where it leads, and so nothing names this one.
        let never: &[Deed] = &[
            (&[], |at| at.remove_file(".local")),
            (&[], |at| at.rename("free", at, ".local")),
            (&[], |at| at.rename(".local", at, "new")),
        ];
        for (number, (names, deed)) in deeds.iter().chain(never).enumerate() {
            let look = |folder: &TempDir| {
                let walk = walkdir::WalkDir::new(folder.path()).sort_by_file_name();
                let shown = |entry: walkdir::DirEntry| {
                    let path = entry.path();
                    (path.to_path_buf(), fs::read(path).ok(), fs::read_link(path).ok())
                };
                walk.into_iter().map(|entry| shown(entry.unwrap())).collect::<Vec<_>>()
            };
            let (folder, at) = protected_folder(&["readwrite:**"]);
            let before = look(&folder);
            let stop = deed(&at).unwrap_err();
            assert!(
                matches!(&stop, FileError::Denied(DeniedAccess { protected: Some(_), .. })),
                "{number}: {stop:?}"
            );
            assert_eq!(look(&folder), before, "{number}");

            if names.is_empty() {
                continue;
            }
            let granted: Vec<&str> = [&["readwrite:**"], *names].concat();
            let (_folder, at) = protected_folder(&granted);
            assert_eq!(deed(&at), Ok(()), "{number}");
        }
    }

    #[test]
    fn what_is_not_protected_is_as_free_as_ever() {
        let (_folder, at) = protected_folder(&["readwrite:**"]);
        let read = OpenMode { read: true, follow: true, ..OpenMode::default() };
        assert!(at.open(".git/config", read).is_ok());
        assert!(at.open("to-config", read).is_ok());
        assert_eq!(at.rename("plain", &at, "new"), Ok(()));
        assert_eq!(at.rename("new", &at, "sub/new"), Ok(()));
        assert_eq!(at.create_folder(".github"), Ok(()));
        assert_eq!(at.make_link(".git/config", "new"), Ok(()));
        assert_eq!(at.remove_file("to-git"), Ok(()));
        assert_eq!(at.rename("free", &at, ".gitignore"), Ok(()));
        // What is in a folder of which there is too much to look at is not moved.
        let mut deep = String::from("deep");
        assert_eq!(at.create_folder(&deep), Ok(()));
        for _ in 0..MAX_DEPTH + 2 {
            deep.push_str("/d");
            assert_eq!(at.create_folder(&deep), Ok(()));
        }
        assert!(matches!(at.rename("deep", &at, "other"), Err(FileError::Never(_))));
    }
}
