//! Which system calls the program can make: all but those that nothing a server does needs, and through which sandboxes were
//! left before.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};
use std::collections::BTreeMap;
use std::env::consts::ARCH;

use super::failed;
use crate::LaunchError;

/// Calls that fail as not permitted.
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

/// The families of sockets that there are for the program. Others reach around its network namespace, or into parts of the
/// kernel that no server needs. By a Unix socket it would get at every daemon of its user, such as the bus by which
/// programs are started: no Landlock before ABI 9 looks at the path of one. Pairs of them, which lead nowhere, are there.
const FAMILIES: [u64; 3] = [libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_NETLINK as u64];

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
    pub(super) fn new() -> Result<Self, LaunchError> {
        let programs = programs().map_err(failed("restricting system calls"))?;
        Ok(Self(programs.into()))
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
    let datagrams = datagrams.into_iter().collect::<Result<_, _>>()?;
    forbidden.insert(libc::SYS_socketpair, datagrams);
    let tiocsti = condition(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, TIOCSTI)?;
    forbidden.insert(libc::SYS_ioctl, vec![SeccompRule::new(vec![tiocsti])?]);
    // Its flags lie in memory, where no filter sees them: libraries go over to `clone` when there is none.
    let missing = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let fails = |error: i32| SeccompAction::Errno(error.cast_unsigned());
    let forbidden = filter(forbidden, fails(libc::EPERM))?;
    Ok([forbidden, filter(missing, fails(libc::ENOSYS))?, without_x32()])
}

/// A filter with which the calls of the x32 ABI fail: on x86-64 each call has a second number, with this bit, which the
/// other filters do not know. See seccomp(2).
fn without_x32() -> BpfProgram {
    const X32_BIT: u32 = 0x4000_0000;
    let number = core::mem::offset_of!(libc::seccomp_data, nr);
    let instruction = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
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
        let programs = programs().unwrap();
        assert!(programs.iter().all(|program| !program.is_empty()));
    }
}
