//! Which files the program finds: mounts hide some, and Landlock allows others.

use landlock::{
    ABI, Access, AccessFs, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_change, mount_remount,
};
use std::fs;
use std::io;
use std::io::ErrorKind::{NotADirectory, NotFound};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::failed;
use super::support::NO_LANDLOCK;
use crate::LaunchError;
use crate::program::{ConfinedProgram, ReachableFolder};

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
    "/proc",
    "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
    "/sys/kernel/mm/transparent_hugepage",
];

/// What the names of further files in `/etc` begin with: settings of interpreters.
const SETTINGS: &[&str] = &["node", "npmrc", "perl", "pip.conf", "python", "ruby"];

/// Devices, which may be written to as well.
const DEVICES: &[&str] = &["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"];

/// Folders in which the program finds only what it puts there. They end with it.
const OWN: &[&str] = &["/dev/shm"];

/// Makes a view of the file system in which the program finds its own processes alone, its own temporary files, and
/// nothing of what is hidden.
pub(super) fn hide(program: &ConfinedProgram) -> Result<(), LaunchError> {
    // What is mounted from now on is seen in here only.
    let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", propagation).map_err(failed("making a view of the files"))?;
    let bare = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", bare, None).map_err(failed("hiding other processes"))?;
    let writable = MountFlags::NOSUID | MountFlags::NODEV;
    for folder in OWN.iter().filter(|folder| Path::new(folder).is_dir()) {
        mount("tmpfs", *folder, "tmpfs", writable, None)
            .map_err(failed("making temporary folders"))?;
    }
    for path in &program.confinement.hidden {
        hide_path(path).map_err(failed("hiding files"))?;
    }
    // Last: what is hidden may lie in it, and what it is made of may be hidden.
    if let Some((folder, TEMPORARY)) = temporary(program) {
        mount_bind(folder, TEMPORARY).map_err(failed("making temporary folders"))?;
    }
    Ok(())
}

/// The folder for temporary files that programs know without being told.
const TEMPORARY: &str = "/tmp";

/// The folder for temporary files, and where the program finds it: there, unless something of what is below that is
/// granted, or is where the program is or runs.
pub(super) fn temporary(program: &ConfinedProgram) -> Option<(&Path, &str)> {
    let ConfinedProgram { program, folder: own, confinement, .. } = program;
    let folder = confinement.temporary.as_deref()?;
    let reachable = confinement.reachable.iter().map(|folder| folder.path.as_path());
    let mut needed = reachable.chain([program.as_path()]).chain(own.as_deref());
    let place = match needed.any(|path| path.starts_with(TEMPORARY)) {
        true => folder.to_str()?,
        false => TEMPORARY,
    };
    Some((folder, place))
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

/// Restricts this thread, and what it starts, to the files that are granted and those of the system.
pub(super) fn restrict(program: &ConfinedProgram) -> Result<(), LaunchError> {
    let (read, all) = (AccessFs::from_read(LANDLOCK), AccessFs::from_all(LANDLOCK));
    let own = temporary(program).map(|(_, place)| Path::new(place));
    let system = |path, access| Rule { path, access, follows_links: true };
    let own = OWN.iter().map(Path::new).chain(own).map(|path| system(path, all));
    let settings = settings();
    let settings = settings.iter().map(|path| system(path.as_path(), read));
    let devices = DEVICES.iter().map(|path| system(Path::new(path), all));
    let system = SYSTEM.iter().map(|path| system(Path::new(path), read)).chain(settings);
    let granted = program.confinement.reachable.iter().map(|folder| {
        let ReachableFolder { path, read, write, follows_links } = folder;
        let reading = if *read { AccessFs::from_read(LANDLOCK) } else { BitFlags::EMPTY };
        let writing = if *write { AccessFs::from_write(LANDLOCK) } else { BitFlags::EMPTY };
        Rule { path, access: reading | writing, follows_links: *follows_links }
    });
    let restricted = ruleset(own.chain(system).chain(devices).chain(granted));
    let status = restricted.map_err(failed("restricting files"))?;
    match status {
        RulesetStatus::NotEnforced => {
            Err(LaunchError { doing: "restricting files", problem: NO_LANDLOCK.into() })
        }
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
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
struct Rule<'a> {
    path: &'a Path,
    access: BitFlags<AccessFs>,
    follows_links: bool,
}

impl Rule<'_> {
    /// The folder or file itself; nothing where it is not there.
    fn open(&self) -> Option<OwnedFd> {
        let resolve = match self.follows_links {
            true => ResolveFlags::empty(),
            false => ResolveFlags::NO_SYMLINKS,
        };
        openat2(CWD, self.path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()
    }
}

fn ruleset<'a>(allowed: impl Iterator<Item = Rule<'a>>) -> Result<RulesetStatus, RulesetError> {
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
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
