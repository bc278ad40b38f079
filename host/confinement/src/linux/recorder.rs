//! Records what the program is refused, or would be: a tracer of all its processes, after ptrace(2).
//!
//! A filter of system calls stops a process at each call that names a file or an address. What is named is read before the
//! call, and whether it was refused is seen at its end.

use nix::errno::Errno;
use nix::sys::ptrace::{self, Options};
use nix::unistd::{self, ForkResult};
use rustix::process::Pid;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use super::failed;
use super::files::DeclaredFiles;
use super::process_memory::{address, memory};
use super::system_calls::Filters;
use crate::program::{ConfinedProgram, ConfinementViolation, RecordingOptions};
use crate::{LaunchError, NOT_CONFINED};

/// The most attempts that are recorded of a program.
const MAX_ATTEMPTS: usize = 10_000;

/// The longest path that is read, in bytes.
const MAX_PATH_BYTES: usize = libc::PATH_MAX as usize;

/// What a call does with the file that it names.
#[derive(Clone, Copy)]
enum FileAccess {
    /// As the flags in this argument say.
    Open(usize),
    /// The same, at the beginning of what this argument points to.
    OpenHow(usize),
    Read,
    Write,
    /// Only looks whether it is there, which no Landlock forbids.
    Look,
}

/// A system call that names a file: its number, and which arguments are a folder that the path begins in, and the path.
type FileCall = (i64, Option<usize>, usize, FileAccess);

/// Calls that name files. One that names two is here twice.
const FILE_CALLS: &[FileCall] = &[
    (libc::SYS_openat, Some(0), 1, FileAccess::Open(2)),
    (libc::SYS_openat2, Some(0), 1, FileAccess::OpenHow(2)),
    (libc::SYS_execve, None, 0, FileAccess::Read),
    (libc::SYS_execveat, Some(0), 1, FileAccess::Read),
    (libc::SYS_newfstatat, Some(0), 1, FileAccess::Look),
    (libc::SYS_statx, Some(0), 1, FileAccess::Look),
    (libc::SYS_faccessat, Some(0), 1, FileAccess::Look),
    (libc::SYS_faccessat2, Some(0), 1, FileAccess::Look),
    (libc::SYS_readlinkat, Some(0), 1, FileAccess::Look),
    (libc::SYS_mkdirat, Some(0), 1, FileAccess::Write),
    (libc::SYS_mknodat, Some(0), 1, FileAccess::Write),
    (libc::SYS_unlinkat, Some(0), 1, FileAccess::Write),
    (libc::SYS_renameat, Some(0), 1, FileAccess::Write),
    (libc::SYS_renameat, Some(2), 3, FileAccess::Write),
    (libc::SYS_renameat2, Some(0), 1, FileAccess::Write),
    (libc::SYS_renameat2, Some(2), 3, FileAccess::Write),
    (libc::SYS_linkat, Some(0), 1, FileAccess::Read),
    (libc::SYS_linkat, Some(2), 3, FileAccess::Write),
    (libc::SYS_symlinkat, Some(1), 2, FileAccess::Write),
    (libc::SYS_truncate, None, 0, FileAccess::Write),
];

/// The same that only older processors have.
#[cfg(target_arch = "x86_64")]
const OLDER_FILE_CALLS: &[FileCall] = &[
    (libc::SYS_open, None, 0, FileAccess::Open(1)),
    (libc::SYS_creat, None, 0, FileAccess::Write),
    (libc::SYS_stat, None, 0, FileAccess::Look),
    (libc::SYS_lstat, None, 0, FileAccess::Look),
    (libc::SYS_access, None, 0, FileAccess::Look),
    (libc::SYS_readlink, None, 0, FileAccess::Look),
    (libc::SYS_mkdir, None, 0, FileAccess::Write),
    (libc::SYS_mknod, None, 0, FileAccess::Write),
    (libc::SYS_rmdir, None, 0, FileAccess::Write),
    (libc::SYS_unlink, None, 0, FileAccess::Write),
    (libc::SYS_rename, None, 0, FileAccess::Write),
    (libc::SYS_rename, None, 1, FileAccess::Write),
    (libc::SYS_link, None, 0, FileAccess::Read),
    (libc::SYS_link, None, 1, FileAccess::Write),
    (libc::SYS_symlink, None, 1, FileAccess::Write),
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_FILE_CALLS: &[FileCall] = &[];

fn file_calls() -> impl Iterator<Item = &'static FileCall> {
    FILE_CALLS.iter().chain(OLDER_FILE_CALLS)
}

/// Starts a program, which waits to be traced by this thread. Not as `Command` does: that waits for what the program does
/// not do before it is traced.
pub(super) fn start(command: &Command) -> Result<Pid, LaunchError> {
    let of_files = file_calls().map(|(number, ..)| *number);
    let filters = Filters::in_namespaces()?.telling(of_files.chain([libc::SYS_connect]))?;
    let text = |text: &OsStr| CString::new(text.as_bytes()).map_err(failed("starting the program"));
    let program = text(command.get_program())?;
    let arguments = [command.get_program()].into_iter().chain(command.get_args());
    let arguments: Vec<CString> = arguments.map(text).collect::<Result<_, _>>()?;
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let variables = variables.map(|(name, value)| {
        text(OsStr::from_bytes(&[name.as_bytes(), b"=", value.as_bytes()].concat()))
    });
    let variables: Vec<CString> = variables.collect::<Result<_, _>>()?;
    let folder = command.get_current_dir().map(|folder| text(folder.as_os_str())).transpose()?;
    let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argument_pointers, variable_pointers) = (pointers(&arguments), pointers(&variables));
    // SAFETY: the new process makes system calls until it is another program, and allocates and locks nothing.
    match unsafe { unistd::fork() }.map_err(failed("starting the program"))? {
        ForkResult::Parent { child } => {
            let problem =
                || LaunchError { doing: "starting the program", problem: "no process id".into() };
            Pid::from_raw(child.as_raw()).ok_or_else(problem)
        }
        ForkResult::Child => {
            // SAFETY: the texts end with a zero byte and the arrays with a null pointer, and both live on.
            unsafe {
                libc::signal(libc::SIGPIPE, libc::SIG_DFL);
                let is_there = folder.is_none_or(|folder| libc::chdir(folder.as_ptr()) == 0);
                if is_there && ptrace::traceme().is_ok() {
                    libc::raise(libc::SIGSTOP);
                    if filters.apply().is_ok() {
                        libc::execve(
                            program.as_ptr(),
                            argument_pointers.as_ptr(),
                            variable_pointers.as_ptr(),
                        );
                    }
                }
                const TOLD: &[u8] = b"tenon: the server cannot be confined: it does not start\n";
                libc::write(2, TOLD.as_ptr().cast(), TOLD.len());
                libc::_exit(i32::from(NOT_CONFINED))
            }
        }
    }
}

/// What records.
pub(super) struct Recorder {
    output: File,
    /// What is done is recorded, and not what is refused.
    opens_files: bool,
    allowed: DeclaredFiles,
    recorded: HashSet<ConfinementViolation>,
    /// What processes are about to do, by their numbers.
    begun: HashMap<unistd::Pid, Vec<ConfinementViolation>>,
}

impl Recorder {
    /// What records a program, if that is wanted. Opens the file before it may be hidden.
    pub(super) fn of(program: &ConfinedProgram) -> Result<Option<Self>, LaunchError> {
        let Some(RecordingOptions { file, opens_files }) = &program.confinement.recording else {
            return Ok(None);
        };
        let output = File::options().create(true).append(true).open(file);
        Ok(Some(Self {
            output: output.map_err(failed("opening the recording"))?,
            opens_files: *opens_files,
            allowed: DeclaredFiles::of(program),
            recorded: HashSet::new(),
            begun: HashMap::new(),
        }))
    }

    /// Follows a program and all that it starts, until it ends.
    pub(super) fn follow(mut self, program: Pid) -> Result<ExitCode, LaunchError> {
        let program = unistd::Pid::from_raw(program.as_raw_nonzero().get());
        let options = Options::PTRACE_O_TRACESYSGOOD
            | Options::PTRACE_O_TRACEFORK
            | Options::PTRACE_O_TRACEVFORK
            | Options::PTRACE_O_TRACECLONE
            | Options::PTRACE_O_TRACEEXEC
            | Options::PTRACE_O_TRACESECCOMP
            | Options::PTRACE_O_EXITKILL;
        let mut known = HashSet::new();
        loop {
            let mut status = 0;
            // SAFETY: the pointer is to what lives until the call is over. Not by `nix`, which knows no real-time signals.
            let process = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
            if process < 0 {
                match Errno::last() {
                    Errno::EINTR => continue,
                    error => return Err(failed("recording the program")(error)),
                }
            }
            let process = unistd::Pid::from_raw(process);
            let code = |code: i32| ExitCode::from(u8::try_from(code).unwrap_or(NOT_CONFINED));
            if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
                if process == program {
                    return Ok(code(match libc::WIFEXITED(status) {
                        true => libc::WEXITSTATUS(status),
                        false => 128 + libc::WTERMSIG(status),
                    }));
                }
                known.remove(&process);
                self.begun.remove(&process);
                continue;
            }
            let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
            // One that was killed meanwhile has its end told next.
            let _ = match (signal, event) {
                (OF_CALL, _) => {
                    self.end(process);
                    ptrace::cont(process, None)
                }
                (libc::SIGTRAP, libc::PTRACE_EVENT_SECCOMP) => match self.begin(process) {
                    true => ptrace::syscall(process, None),
                    false => ptrace::cont(process, None),
                },
                (libc::SIGTRAP, libc::PTRACE_EVENT_EXEC) => {
                    self.end_with(process, None);
                    ptrace::cont(process, None)
                }
                // A new process begins with a stop.
                (_, 0) if known.insert(process) => {
                    ptrace::setoptions(process, options).and_then(|()| ptrace::cont(process, None))
                }
                (signal, 0) => resume(process, signal),
                _ => ptrace::cont(process, None),
            };
        }
    }

    /// Notes what a process is about to do. Gives whether its end is of interest.
    fn begin(&mut self, process: unistd::Pid) -> bool {
        let Ok(info) = ptrace::syscall_info(process) else { return false };
        if info.op != libc::PTRACE_SYSCALL_INFO_SECCOMP {
            return false;
        }
        // SAFETY: the kernel says that it is this one.
        let call = unsafe { info.u.seccomp };
        let number = call.nr.cast_signed();
        if number == libc::SYS_connect {
            let connects =
                address(process, call.args[1], call.args[2]).map(ConfinementViolation::Connect);
            self.begun.insert(process, connects.into_iter().collect());
            return true;
        }
        let attempts = file_calls().filter(|(of, ..)| *of == number).flat_map(|row| {
            let (_, folder, path, of) = *row;
            let path = path_at(process, folder.map(|at| call.args[at]), call.args[path]);
            let uses = path.map(|path| used(process, of, &call.args, path)).unwrap_or_default();
            uses.into_iter().filter(|(attempt, decides)| self.is_of_interest(attempt, *decides))
        });
        let attempts = attempts.map(|(attempt, _)| attempt);
        let attempts: Vec<_> = attempts.collect();
        let is_of_interest = !attempts.is_empty();
        if is_of_interest {
            self.begun.insert(process, attempts);
        }
        is_of_interest
    }

    /// Whether an attempt may have to be recorded. One that decides nothing is so only where something is hidden.
    fn is_of_interest(&self, attempt: &ConfinementViolation, decides: bool) -> bool {
        match attempt {
            ConfinementViolation::Read(path) => match decides {
                true => !self.allowed.allows(&real(path), false),
                false => self.allowed.hides(path),
            },
            ConfinementViolation::Write(path) => !self.allowed.allows(&real(path), true),
            ConfinementViolation::Connect(_) => true,
        }
    }

    /// Records what a process has begun, at the end of the call.
    fn end(&mut self, process: unistd::Pid) {
        let Ok(info) = ptrace::syscall_info(process) else { return };
        if info.op == libc::PTRACE_SYSCALL_INFO_EXIT {
            // SAFETY: the kernel says that it is this one.
            let end = unsafe { info.u.exit };
            let error = (end.is_error != 0).then(|| i32::try_from(-end.sval).unwrap_or(0));
            self.end_with(process, error);
        }
    }

    /// Records what a process has begun, if that was refused, or done where everything may be.
    fn end_with(&mut self, process: unistd::Pid, error: Option<i32>) {
        let Some(attempts) = self.begun.remove(&process) else { return };
        for attempt in attempts {
            let counts = match (&attempt, error) {
                (ConfinementViolation::Connect(to), Some(libc::EINPROGRESS)) => {
                    // Elsewhere there is no way, which is known at once; here it is known later.
                    to.ip().is_loopback() && !is_listened_to(to.port())
                }
                (ConfinementViolation::Connect(_), error) => error.is_some(),
                (_, None) => self.opens_files,
                (_, Some(libc::EACCES | libc::EPERM | libc::EROFS)) => !self.opens_files,
                (
                    ConfinementViolation::Read(path) | ConfinementViolation::Write(path),
                    Some(libc::ENOENT | libc::ENOTDIR),
                ) => !self.opens_files && self.allowed.hides(path),
                _ => false,
            };
            if counts && self.recorded.len() < MAX_ATTEMPTS && self.recorded.insert(attempt.clone())
            {
                let line = serde_json::to_string(&attempt.readable()).unwrap_or_default();
                // Who reads it may have gone.
                let _ = self.output.write_all(format!("{line}\n").as_bytes());
            }
        }
    }
}

/// The stop at the end of a call, as PTRACE_O_TRACESYSGOOD marks it.
const OF_CALL: i32 = libc::SIGTRAP | 0x80;

/// Lets a process go on with a signal, whichever it is.
fn resume(process: unistd::Pid, signal: i32) -> nix::Result<()> {
    // SAFETY: the call has no pointers.
    let done = unsafe { libc::ptrace(libc::PTRACE_CONT, process.as_raw(), 0, signal) };
    Errno::result(done).map(drop)
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().map(Path::canonicalize), path.file_name()) {
        (Some(Ok(folder)), Some(name)) => folder.join(name),
        _ => path.to_path_buf(),
    }
}

/// What a call does with a file, and whether that needs a grant: to see that a file is there needs none.
fn used(
    process: unistd::Pid,
    of: FileAccess,
    arguments: &[u64; 6],
    path: PathBuf,
) -> Vec<(ConfinementViolation, bool)> {
    let flags = match of {
        FileAccess::Open(at) => arguments[at],
        FileAccess::OpenHow(at) => {
            let flags = memory(process, arguments[at], size_of::<u64>());
            flags.and_then(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?))).unwrap_or(0)
        }
        FileAccess::Read => return vec![(ConfinementViolation::Read(path), true)],
        FileAccess::Write => return vec![(ConfinementViolation::Write(path), true)],
        FileAccess::Look => return vec![(ConfinementViolation::Read(path), false)],
    };
    let has = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
    if has(libc::O_PATH) {
        return vec![(ConfinementViolation::Read(path), false)];
    }
    let writes =
        has(libc::O_WRONLY) || has(libc::O_RDWR) || has(libc::O_CREAT) || has(libc::O_TRUNC);
    let reads = !has(libc::O_WRONLY);
    let reading = reads.then(|| (ConfinementViolation::Read(path.clone()), true));
    let writing = writes.then_some((ConfinementViolation::Write(path), true));
    reading.into_iter().chain(writing).collect()
}

/// Whether somebody in the sandbox listens at a port: see proc_pid_net(5).
fn is_listened_to(port: u16) -> bool {
    const LISTENS: &str = "0A";
    let ends = format!(":{port:04X}");
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"].iter().any(|file| {
        let sockets = std::fs::read_to_string(file).unwrap_or_default();
        sockets.lines().any(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let is_at = fields.next().is_some_and(|address| address.ends_with(&ends));
            is_at && fields.nth(1) == Some(LISTENS)
        })
    })
}

/// The path that a call names, absolute.
fn path_at(process: unistd::Pid, folder: Option<u64>, at: u64) -> Option<PathBuf> {
    const PAGE_BYTES: usize = 4096;
    let mut bytes = Vec::new();
    // What is behind a page may not be there.
    while bytes.len() < MAX_PATH_BYTES {
        let next = at.checked_add(bytes.len() as u64)?;
        let length = PAGE_BYTES - usize::try_from(next).ok()? % PAGE_BYTES;
        let page = memory(process, next, length)?;
        let end = page.iter().position(|byte| *byte == 0);
        bytes.extend(&page[..end.unwrap_or(page.len())]);
        if end.is_some() {
            break;
        }
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    if path.as_os_str().is_empty() {
        // The call is about something that is open.
        return None;
    }
    if path.is_absolute() {
        return Some(normal(&path));
    }
    let folder = match folder.map(|folder| folder.cast_signed() as i32) {
        None | Some(libc::AT_FDCWD) => format!("/proc/{process}/cwd"),
        Some(folder) => format!("/proc/{process}/fd/{folder}"),
    };
    Some(normal(&std::fs::read_link(folder).ok()?.join(path)))
}

/// A path without `.` and `..`, as it is written.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => drop(normal.pop()),
            std::path::Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}
