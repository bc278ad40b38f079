//! Which files the program finds: mounts hide some, and Landlock allows others.

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::failed;
use super::support::NO_LANDLOCK;
use crate::LaunchError;
use crate::program::{ConfinedProgram, Confinement, ReachableFolder};

/// The Landlock that is asked for. What a kernel does not have of it is left out, but for files.
const LANDLOCK: ABI = ABI::V6;

/// What every program may read of a system, and run: libraries, interpreters, and what says how names, users,
/// certificates and times are.
const SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/nix/store",
    "/gnu/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/fonts",
    "/etc/gai.conf",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki",
    "/etc/protocols",
    "/etc/resolv.conf",
    "/etc/services",
    "/etc/ssl",
    "/etc/terminfo",
    "/etc/timezone",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// What every program may read of the kernel's files where it sees its own processes alone.
const OWN_PROCESSES: &[&str] = &["/proc"];

/// The same where all processes are to be seen: what is of no process, and of the program itself. What it starts finds
/// nothing of itself.
const ALL_PROCESSES: &[&str] = &[
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys",
    "/proc/uptime",
    "/proc/version",
    "/proc/self",
];

/// What the names of further files in `/etc` begin with: settings of interpreters.
const SETTINGS: &[&str] = &["node", "npmrc", "perl", "pip.conf", "python", "ruby"];

/// Devices, which may be written to as well.
const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Folders in which the program finds only what it puts there, in a view of its own. They end with it.
const OWN: &[&str] = &["/dev/shm"];

/// Which files there are for the program, before some are granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountNamespace {
    /// A view of its own, in which something can be hidden.
    Own,
    /// That of all programs.
    Shared,
}

/// Makes a view of the file system in which the program finds its own processes alone, and in which nothing can be changed
/// that is not granted: Landlock does not look at modes, times, owners and attributes.
pub(super) fn close(program: &ConfinedProgram) -> Result<(), LaunchError> {
    // What is mounted from now on is seen in here only.
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation).map_err(failed("making a view of the files"))?;
    let bare = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", bare, None).map_err(failed("hiding other processes"))?;
    match opens_files(program) {
        true => Ok(()),
        false => close_files(program).map_err(failed("closing files to changes")),
    }
}

/// Whether the program reaches every file, and what it does is recorded.
fn opens_files(program: &ConfinedProgram) -> bool {
    program.confinement.recording.as_ref().is_some_and(|recording| recording.opens_files)
}

/// Gives the program temporary files of its own, and takes away what is hidden.
pub(super) fn hide(program: &ConfinedProgram) -> Result<(), LaunchError> {
    let confinement = &program.confinement;
    let writable = MountFlags::NOSUID | MountFlags::NODEV;
    // As much as a process may have.
    let size = confinement.limits.memory.unwrap_or(DEFAULT_OWN_BYTES);
    let options =
        CString::new(format!("size={size}")).map_err(failed("making temporary folders"))?;
    for folder in OWN.iter().filter(|folder| Path::new(folder).is_dir()) {
        mount("tmpfs", *folder, "tmpfs", writable, Some(options.as_c_str()))
            .map_err(failed("making temporary folders"))?;
    }
    for path in confinement.hidden.iter().filter(|_| !opens_files(program)) {
        hide_path(path).map_err(failed("hiding files"))?;
    }
    for path in confinement.unchangeable.iter().filter(|_| !opens_files(program)) {
        protect(path).map_err(failed("protecting files"))?;
    }
    // The program must not write to it.
    if let Some(folder) = confinement.recording.as_ref().and_then(|of| of.file.parent()) {
        hide_path(folder).map_err(failed("hiding the recording"))?;
    }
    // Last: what is hidden may lie in it, and what it is made of may be hidden.
    if let Some((folder, TEMPORARY)) = temporary(program, MountNamespace::Own) {
        mount_bind(folder, TEMPORARY).map_err(failed("making temporary folders"))?;
        set_read_only(Path::new(TEMPORARY), false, false)
            .map_err(failed("making temporary folders"))?;
    }
    Ok(())
}

/// The most bytes in each folder of the program's own, where its memory has no bound.
const DEFAULT_OWN_BYTES: u64 = 1 << 30;

/// Lets nothing be changed but what is granted for that.
fn close_files(program: &ConfinedProgram) -> io::Result<()> {
    let is_writable = |rule: &Rule| rule.access.contains(AccessFs::WriteFile);
    let recording = program.confinement.recording.as_ref().and_then(|of| of.file.parent());
    let recording = recording.map(|folder| rule(folder.into(), AccessFs::WriteFile.into()));
    let writable =
        rules_of_program(program, MountNamespace::Own).filter(is_writable).chain(recording);
    let writable = writable.filter_map(|rule| rule.open());
    // By the handle, which nobody makes lead elsewhere.
    let paths: BTreeSet<PathBuf> =
        writable.map(|handle| place(&handle)).collect::<io::Result<_>>()?;
    // What lies in another one is no mount of its own: nothing is moved from one mount to another.
    let is_outermost =
        |path: &&PathBuf| !path.ancestors().skip(1).any(|above| paths.contains(above));
    let open: Vec<&PathBuf> = paths.iter().filter(is_outermost).collect();
    for path in &open {
        mount_bind_recursive(path.as_path(), path.as_path())?;
    }
    set_read_only(Path::new("/"), true, true)?;
    for path in open.into_iter().map(PathBuf::as_path).chain([Path::new("/proc")]) {
        set_read_only(path, false, true)?;
    }
    Ok(())
}

/// Makes the file system at a path read-only, or lets it be changed, with what is mounted below it or alone. See
/// mount_setattr(2).
fn set_read_only(path: &Path, is_read_only: bool, recursive: bool) -> io::Result<()> {
    let read_only = libc::MOUNT_ATTR_RDONLY;
    let (set, clear) = if is_read_only { (read_only, 0) } else { (0, read_only) };
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers are to what lives until the call is over, and the size is that of the second.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The folder for temporary files that programs know without being told.
const TEMPORARY: &str = "/tmp";

/// The folder for temporary files, and where the program finds it: there, unless something of what is below that is
/// granted, or is where the program is or runs. In a view of all programs it is where it is.
pub(super) fn temporary(program: &ConfinedProgram, view: MountNamespace) -> Option<(&Path, &str)> {
    let ConfinedProgram { program, folder: own, confinement, .. } = program;
    let folder = confinement.temporary.as_deref()?;
    let reachable = confinement.reachable.iter().map(|folder| folder.path.as_path());
    let mut needed = reachable.chain([program.as_path()]).chain(own.as_deref());
    let place =
        match view == MountNamespace::Shared || needed.any(|path| path.starts_with(TEMPORARY)) {
            true => folder.to_str()?,
            false => TEMPORARY,
        };
    Some((folder, place))
}

/// Lets nothing of a folder or a file be changed, where there is one.
fn protect(path: &Path) -> io::Result<()> {
    match mount_bind_recursive(path, path) {
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(()) => set_read_only(path, true, true),
    }
}

/// Puts something empty in the place of a folder or a file, where there is one.
fn hide_path(path: &Path) -> io::Result<()> {
    let is_folder = match path.symlink_metadata() {
        Ok(metadata) => metadata.is_dir(),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => return Ok(()),
        Err(error) => return Err(error),
    };
    let bare = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    match is_folder {
        true => mount("tmpfs", path, "tmpfs", bare, None)?,
        false => {
            mount_bind("/dev/null", path)?;
            // In a namespace of a user's, flags that it had before stay.
            let _ = mount_remount(path, MountFlags::BIND | bare, "");
        }
    }
    Ok(())
}

/// Checks that nothing lies in what is granted that has to be hidden or kept as it is: that takes a view of the program's
/// own.
pub(super) fn check_hidden(program: &ConfinedProgram) -> Result<(), LaunchError> {
    let granted: Vec<PathBuf> = rules_of_program(program, MountNamespace::Shared)
        .filter_map(|rule| place(&rule.open()?).ok())
        .collect();
    let Confinement { hidden, unchangeable, .. } = &program.confinement;
    for hidden in hidden.iter().chain(unchangeable) {
        let Ok(place) = hidden.canonicalize() else { continue };
        if let Some(folder) = granted.iter().find(|folder| place.starts_with(folder)) {
            let problem = format!(
                "{} lies in {}, which is granted, and cannot be kept from it: this system lets users make no namespaces. \
                 Grant folders without such files, or the file too, as in `readwrite:…/.env`",
                hidden.display(),
                folder.display()
            );
            return Err(LaunchError { doing: "hiding files", problem });
        }
    }
    Ok(())
}

/// Where something is that is open.
fn place(handle: &OwnedFd) -> io::Result<PathBuf> {
    PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).read_link()
}

/// Restricts this thread, and what it starts, to the files that are granted and those of the system.
pub(super) fn restrict(program: &ConfinedProgram, view: MountNamespace) -> Result<(), LaunchError> {
    let status = ruleset(rules(program, view), view).map_err(failed("restricting files"))?;
    match status {
        RulesetStatus::NotEnforced => {
            Err(LaunchError { doing: "restricting files", problem: NO_LANDLOCK.into() })
        }
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// Lets this process, and what it starts, send signals to each other only.
pub(super) fn restrict_signals() -> Result<(), LaunchError> {
    let doing = "restricting signals";
    let root =
        openat2(CWD, "/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), ResolveFlags::empty());
    let root = root.map_err(failed(doing))?;
    // Every domain forbids moving files to other folders unless it says otherwise.
    let restricted = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::Refer)
        .and_then(|ruleset| ruleset.scope(Scope::Signal))
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rule(PathBeneath::new(root, AccessFs::Refer)))
        .and_then(RulesetCreated::restrict_self);
    restricted.map(drop).map_err(failed(doing))
}

/// A rule for what is of the system, or made for the program.
fn rule(path: PathBuf, access: BitFlags<AccessFs>) -> Rule {
    Rule { path, access, follows_links: true }
}

/// What the program may do with which files.
fn rules(program: &ConfinedProgram, view: MountNamespace) -> impl Iterator<Item = Rule> {
    let (read, all) = (AccessFs::from_read(LANDLOCK), AccessFs::from_all(LANDLOCK));
    let processes = match view {
        MountNamespace::Own => OWN_PROCESSES,
        MountNamespace::Shared => ALL_PROCESSES,
    };
    let system = SYSTEM.iter().chain(processes).map(PathBuf::from).chain(settings());
    let system = system.map(move |path| rule(path, read));
    let devices = DEVICES.iter().map(move |path| rule(path.into(), all));
    rules_of_program(program, view).chain(system).chain(devices)
}

/// The same without what every program may do.
fn rules_of_program(program: &ConfinedProgram, view: MountNamespace) -> impl Iterator<Item = Rule> {
    let all = AccessFs::from_all(LANDLOCK);
    let folders = if view == MountNamespace::Own { OWN } else { &[] };
    let own = temporary(program, view).map(|(_, place)| PathBuf::from(place));
    let own = folders.iter().map(PathBuf::from).chain(own).map(move |path| rule(path, all));
    let granted = program.confinement.reachable.iter().map(|folder| {
        let ReachableFolder { path, read, write, follows_links } = folder;
        let reading = if *read { AccessFs::from_read(LANDLOCK) } else { BitFlags::EMPTY };
        let writing = if *write { AccessFs::from_write(LANDLOCK) } else { BitFlags::EMPTY };
        Rule { path: path.clone(), access: reading | writing, follows_links: *follows_links }
    });
    own.chain(granted)
}

/// Which files a confinement has, for whom it does not restrict.
pub(super) struct DeclaredFiles {
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    /// `/tmp` is a folder of the program's own.
    has_own_temporary: bool,
}

impl DeclaredFiles {
    pub(super) fn of(program: &ConfinedProgram) -> Self {
        let (mut readable, mut writable) = (Vec::new(), Vec::new());
        for Rule { path, access, .. } in rules(program, MountNamespace::Own) {
            let path = path.canonicalize().unwrap_or(path);
            if access.contains(AccessFs::ReadFile) {
                readable.push(path.clone());
            }
            if access.contains(AccessFs::WriteFile) {
                writable.push(path);
            }
        }
        let hidden = program.confinement.hidden.clone();
        let has_own_temporary =
            temporary(program, MountNamespace::Own).is_some_and(|(_, place)| place == TEMPORARY);
        Self { readable, writable, hidden, has_own_temporary }
    }

    /// Whether a file is there and may be read or changed.
    pub(super) fn allows(&self, path: &Path, write: bool) -> bool {
        let allowed = if write { &self.writable } else { &self.readable };
        let is_allowed = allowed.iter().any(|folder| path.starts_with(folder));
        self.is_own(path) || is_allowed && !self.hides(path)
    }

    /// Whether there is nothing of a path, or something else.
    pub(super) fn hides(&self, path: &Path) -> bool {
        self.is_own(path) || self.hidden.iter().any(|hidden| path.starts_with(hidden))
    }

    fn is_own(&self, path: &Path) -> bool {
        self.has_own_temporary && path.starts_with(TEMPORARY)
    }
}

/// The files in `/etc` that interpreters read.
fn settings() -> Vec<PathBuf> {
    let entries = fs::read_dir("/etc").into_iter().flatten().flatten();
    let is_setting = |name: &str| SETTINGS.iter().any(|setting| name.starts_with(setting));
    let settings = entries.filter(|entry| entry.file_name().to_str().is_some_and(is_setting));
    settings.map(|entry| entry.path()).collect()
}

/// What is allowed below a path.
struct Rule {
    path: PathBuf,
    access: BitFlags<AccessFs>,
    follows_links: bool,
}

impl Rule {
    /// The folder or file itself; nothing where it is not there.
    fn open(&self) -> Option<OwnedFd> {
        let resolve = match self.follows_links {
            true => ResolveFlags::empty(),
            false => ResolveFlags::NO_SYMLINKS,
        };
        openat2(CWD, &self.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()
    }
}

fn ruleset(
    allowed: impl Iterator<Item = Rule>,
    view: MountNamespace,
) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?;
    if view == MountNamespace::Shared {
        // No rule allows any: in a network that is not the program's own it listens nowhere, and connects to nothing.
        ruleset = ruleset.handle_access(AccessNet::from_all(LANDLOCK))?;
    }
    let mut ruleset = ruleset.create()?;
    for rule in allowed {
        // What is not there needs no rule.
        let Some(handle) = rule.open() else { continue };
        let is_folder = fstat(&handle)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        // A file has fewer rights than a folder.
        let of_files = AccessFs::from_file(LANDLOCK);
        let access = if is_folder { rule.access } else { rule.access & of_files };
        if !access.is_empty() {
            ruleset = ruleset.add_rule(PathBeneath::new(handle, access))?;
        }
    }
    Ok(ruleset.restrict_self()?.ruleset)
}
