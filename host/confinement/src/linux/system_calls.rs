//! Which system calls the program can make: all but those that nothing a server does needs, and through which sandboxes were
//! left before.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::failed;
use crate::LaunchError;

/// Calls that fail as not permitted, in every sandbox.
const FORBIDDEN: &[i64] = &[
    // Other processes.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_open_by_handle_at,
    // The kernel itself.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_quotactl_fd,
    // Sees what is done with files that are not granted.
    libc::SYS_fanotify_init,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_adjtimex,
    libc::SYS_clock_adjtime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
];

/// Calls that a program in namespaces may make. First those by which it changes modes, owners, times and attributes of
/// whatever file it can name, granted or not: in namespaces what is not granted is mounted read-only; elsewhere they fail
/// for all files.
const FORBIDDEN_WITHOUT_NAMESPACES: &[i64] = &[
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_utimensat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    SYS_SETXATTRAT,
    SYS_REMOVEXATTRAT,
    SYS_FILE_SETATTR,
    libc::SYS_listen,
    // What other processes of the user share with each other.
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_process_mrelease,
];

/// Calls by which a program changes how another one runs, with what their arguments are that name itself: a number, and
/// its place.
const OF_PROCESSES: &[(i64, &[(u8, u64)])] = &[
    (libc::SYS_sched_setaffinity, &[(0, 0)]),
    (libc::SYS_sched_setscheduler, &[(0, 0)]),
    (libc::SYS_sched_setparam, &[(0, 0)]),
    (libc::SYS_sched_setattr, &[(0, 0)]),
    (libc::SYS_migrate_pages, &[(0, 0)]),
    (libc::SYS_move_pages, &[(0, 0)]),
    // `PRIO_PROCESS` and `IOPRIO_WHO_PROCESS` come first.
    (libc::SYS_setpriority, &[(0, 0), (1, 0)]),
    (libc::SYS_ioprio_set, &[(0, 1), (1, 0)]),
];

/// Calls that libraries have no names for yet. Their numbers are those of every architecture.
const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_SETXATTRAT: i64 = 463;
const SYS_REMOVEXATTRAT: i64 = 466;
const SYS_FILE_SETATTR: i64 = 469;

/// Older ones, which only older architectures have.
#[cfg(target_arch = "x86_64")]
const OLDER_FORBIDDEN_WITHOUT_NAMESPACES: &[i64] = &[
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
    libc::SYS_futimesat,
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER_FORBIDDEN_WITHOUT_NAMESPACES: &[i64] = &[];

/// Calls that send, and which argument of them are the flags.
const SENDING: [(i64, u8); 3] =
    [(libc::SYS_sendto, 3), (libc::SYS_sendmsg, 2), (libc::SYS_sendmmsg, 3)];

/// The families of IP.
const IP: [u64; 2] = [libc::AF_INET as u64, libc::AF_INET6 as u64];

/// The families of sockets that there are for the program. Others reach around its network namespace, or into parts of the
/// kernel that no server needs. By a Unix socket it would get at every daemon of its user, such as the bus by which
/// programs are started: no Landlock before ABI 9 looks at the path of one. Pairs of them, which lead nowhere, are there.
const FAMILIES: [u64; 3] = [libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_NETLINK as u64];

/// What fcntl(2) and ioctl(2) do by which a program has signals sent to others, or keeps others from opening a file.
/// `F_SETSIG` and `F_SETOWN_EX` are those of `asm-generic/fcntl.h`.
const FILE_CONTROLS: [u64; 4] = [libc::F_SETOWN as u64, 10, 15, libc::F_SETLEASE as u64];
/// `FIOSETOWN` and `SIOCSPGRP` of `linux/sockios.h`.
const SIGNAL_OWNERS: [u64; 2] = [0x8901, 0x8902];

/// The kinds of what ioctl(2) does, in these bits of its number, by which attributes of files are changed: those of
/// `linux/fs.h`, of versions, of XFS and of Btrfs.
const KIND_OF_CONTROL: u64 = 0xff00;
const KINDS_OF_ATTRIBUTES: [u64; 4] = [0x66 << 8, 0x76 << 8, 0x58 << 8, 0x94 << 8];

/// The bits of a socket's type that are its kind; the others are flags.
const SOCKET_KINDS: u64 = 0xf;

/// The flags of `clone` that make namespaces.
const NEW_NAMESPACES: u64 = (libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWCGROUP) as u64;

/// Puts characters into the input of a terminal.
const TIOCSTI: u64 = libc::TIOCSTI;

/// Restrictions of system calls that are not in force yet.
pub(super) struct Filters(Vec<BpfProgram>);

impl Filters {
    /// For a program in namespaces of its own.
    pub(super) fn in_namespaces() -> Result<Self, LaunchError> {
        Ok(Self(programs().map_err(failed("restricting system calls"))?.into()))
    }

    /// For one without, which may connect by TCP if it has a proxy, and otherwise has no network.
    pub(super) fn without_namespaces(has_proxy: bool) -> Result<Self, LaunchError> {
        let Self(mut programs) = Self::in_namespaces()?;
        let more = program_without_namespaces(has_proxy);
        programs.push(more.map_err(failed("restricting system calls"))?);
        Ok(Self(programs))
    }

    /// The same, with which these calls are told to whoever traces the program.
    pub(super) fn telling(mut self, calls: impl Iterator<Item = i64>) -> Result<Self, LaunchError> {
        let calls = calls.map(|call| (call, Vec::new())).collect();
        let program = filter(calls, SeccompAction::Trace(0));
        self.0.push(program.map_err(failed("recording system calls"))?);
        // A filter of the program's own could hide calls from the tracer.
        let fails = SeccompAction::Errno(libc::EPERM.cast_unsigned());
        let mode = libc::PR_SET_SECCOMP as u64;
        let by_prctl = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, mode);
        let by_prctl = by_prctl.and_then(|set| SeccompRule::new(vec![set]));
        let by_prctl = vec![by_prctl.map_err(failed("recording system calls"))?];
        // Last the call by which these are set.
        for (call, rules) in [(libc::SYS_prctl, by_prctl), (libc::SYS_seccomp, Vec::new())] {
            let program = filter(BTreeMap::from([(call, rules)]), fails.clone());
            self.0.push(program.map_err(failed("recording system calls"))?);
        }
        Ok(self)
    }

    /// Restricts this thread, and what it starts. Allocates nothing, so that a new process can.
    pub(super) fn apply(&self) -> Result<(), seccompiler::Error> {
        self.0.iter().try_for_each(|program| apply_filter(program))
    }
}

fn programs() -> Result<[BpfProgram; 3], seccompiler::Error> {
    let condition =
        |index: u8, length, operator, value| SeccompCondition::new(index, length, operator, value);
    let other_family =
        FAMILIES.map(|family| condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, family));
    let other_family = other_family.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut forbidden: BTreeMap<i64, Vec<SeccompRule>> =
        FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect();
    forbidden.insert(libc::SYS_socket, vec![SeccompRule::new(other_family)?]);
    let namespaces: Vec<SeccompRule> = (0..u64::BITS)
        .map(|bit| NEW_NAMESPACES & (1 << bit))
        .filter(|flag| *flag != 0)
        .map(|flag| {
            let operator = SeccompCmpOp::MaskedEq(flag);
            SeccompRule::new(vec![condition(0, SeccompCmpArgLen::Qword, operator, flag)?])
        })
        .collect::<Result<_, _>>()?;
    forbidden.insert(libc::SYS_clone, namespaces);
    // A pair of datagram sockets is connected to by nobody, so it sends to any path. Raw ones are the same.
    let datagrams = [libc::SOCK_DGRAM, libc::SOCK_RAW].map(|kind| {
        let operator = SeccompCmpOp::MaskedEq(SOCKET_KINDS);
        SeccompRule::new(vec![condition(1, SeccompCmpArgLen::Dword, operator, kind as u64)?])
    });
    let mut pairs = datagrams.into_iter().collect::<Result<Vec<_>, _>>()?;
    let unix = libc::AF_UNIX as u64;
    let is_other = condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, unix)?;
    pairs.push(SeccompRule::new(vec![is_other])?);
    forbidden.insert(libc::SYS_socketpair, pairs);
    let control = |value: &u64| {
        let is_it = condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, *value)?;
        SeccompRule::new(vec![is_it])
    };
    let controls = [TIOCSTI].iter().chain(&SIGNAL_OWNERS).map(control);
    forbidden.insert(libc::SYS_ioctl, controls.collect::<Result<_, _>>()?);
    let controls = FILE_CONTROLS.iter().map(control);
    forbidden.insert(libc::SYS_fcntl, controls.collect::<Result<_, _>>()?);
    // Also in namespaces: the launcher is there.
    let is_other = condition(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    forbidden.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![is_other])?]);
    // Its flags lie in memory, where no filter sees them: libraries go over to `clone` when there is none.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let fails = |error: i32| SeccompAction::Errno(error.cast_unsigned());
    let forbidden = filter(forbidden, fails(libc::EPERM))?;
    Ok([forbidden, filter(missing, fails(libc::ENOSYS))?, without_x32()])
}

/// What fails besides where the network and the files are those of all programs.
fn program_without_namespaces(has_proxy: bool) -> Result<BpfProgram, seccompiler::Error> {
    let equals = |index: u8, value: u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let differs = |index: u8, value: u64| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
    };
    let masked = |index: u8, mask: u64, value: u64| {
        let operator = SeccompCmpOp::MaskedEq(mask);
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, value)
    };
    let calls = FORBIDDEN_WITHOUT_NAMESPACES.iter().chain(OLDER_FORBIDDEN_WITHOUT_NAMESPACES);
    let mut forbidden: BTreeMap<i64, Vec<SeccompRule>> =
        calls.map(|call| (*call, Vec::new())).collect();
    for (call, own) in OF_PROCESSES {
        let others =
            own.iter().map(|(place, value)| SeccompRule::new(vec![differs(*place, *value)?]));
        forbidden.insert(*call, others.collect::<Result<_, _>>()?);
    }
    // What is told of interfaces, and nothing else of the kernel.
    let netlink = libc::AF_NETLINK as u64;
    let route = libc::NETLINK_ROUTE as u64;
    let mut sockets = vec![SeccompRule::new(vec![equals(0, netlink)?, differs(2, route)?])?];
    for family in IP {
        if !has_proxy {
            sockets.push(SeccompRule::new(vec![equals(0, family)?])?);
            continue;
        }
        let stream = libc::SOCK_STREAM as u64;
        for kind in (0..=SOCKET_KINDS).filter(|kind| *kind != stream) {
            sockets
                .push(SeccompRule::new(vec![equals(0, family)?, masked(1, SOCKET_KINDS, kind)?])?);
        }
        let tcp = libc::IPPROTO_TCP as u64;
        let is_other = vec![equals(0, family)?, differs(2, 0)?, differs(2, tcp)?];
        sockets.push(SeccompRule::new(is_other)?);
    }
    forbidden.insert(libc::SYS_socket, sockets);
    let attributes =
        KINDS_OF_ATTRIBUTES.map(|kind| SeccompRule::new(vec![masked(1, KIND_OF_CONTROL, kind)?]));
    forbidden.insert(libc::SYS_ioctl, attributes.into_iter().collect::<Result<_, _>>()?);
    // It connects as well.
    let fast_open = libc::MSG_FASTOPEN as u64;
    for (call, flags) in SENDING {
        let connects = SeccompRule::new(vec![masked(flags, fast_open, fast_open)?])?;
        forbidden.insert(call, vec![connects]);
    }
    filter(forbidden, SeccompAction::Errno(libc::EPERM.cast_unsigned()))
}

/// Has each connection that this thread asks for, and what it starts, wait for whoever reads what is given: see
/// seccomp_unotify(2). It must not gain privileges any more.
pub(super) fn tell_connections() -> io::Result<OwnedFd> {
    let (number, architecture) = (
        core::mem::offset_of!(libc::seccomp_data, nr),
        core::mem::offset_of!(libc::seccomp_data, arch),
    );
    let tell = libc::SECCOMP_RET_USER_NOTIF;
    let connect = libc::SYS_connect as u32;
    let mut program = [
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, architecture as u32),
        // The other filters end whoever calls in the way of another architecture.
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 3, AUDIT_ARCHITECTURE),
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number as u32),
        instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, connect),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, tell),
        instruction(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let described =
        libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr().cast() };
    // A call that is waited for is not broken off by signals, but for those that end its process.
    let flags =
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    // SAFETY: the pointer is to a description of instructions, and both live until the call is over.
    let listener = unsafe {
        libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const described)
    };
    match i32::try_from(listener) {
        // SAFETY: it was opened by this call, and is nobody else's.
        Ok(listener) if listener >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(listener) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// How the kernel's audit calls this architecture: see `linux/audit.h`.
#[cfg(target_arch = "x86_64")]
const AUDIT_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCHITECTURE: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const AUDIT_ARCHITECTURE: u32 = 0xc000_00f3;

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

/// A filter with which the calls of the x32 ABI fail: on x86-64 each call has a second number, with this bit, which the
/// other filters do not know. See seccomp(2).
fn without_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    let number = core::mem::offset_of!(libc::seccomp_data, nr);
    let load = instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, number as u32);
    let is_x32 = instruction(libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K, 0, 1, X32_BIT);
    let fail = libc::SECCOMP_RET_ERRNO | libc::EPERM.cast_unsigned();
    let [fail, allow] = [fail, libc::SECCOMP_RET_ALLOW]
        .map(|value| instruction(libc::BPF_RET | libc::BPF_K, 0, 0, value));
    match cfg!(target_arch = "x86_64") {
        true => vec![load, is_x32, fail, allow],
        false => vec![allow],
    }
}

/// A filter with which this becomes of these calls.
fn filter(
    calls: BTreeMap<i64, Vec<SeccompRule>>,
    action: SeccompAction,
) -> Result<BpfProgram, seccompiler::Error> {
    let architecture = TargetArch::try_from(ARCH)?;
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, action, architecture)?;
    Ok(filter.try_into()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_made_for_this_machine() {
        let mut programs = Vec::from(programs().unwrap());
        programs.extend([false, true].map(|proxy| program_without_namespaces(proxy).unwrap()));
        assert!(programs.iter().all(|program| !program.is_empty()));
    }
}
