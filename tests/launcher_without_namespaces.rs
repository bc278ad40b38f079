//! A launcher of confined servers that may make no namespaces, as the default profiles of containers have it.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    forbid_namespaces();
    let launched = tenon_host::run_launcher(std::env::args_os().skip(1));
    launched.expect("it is started as a launcher")
}

#[cfg(target_os = "linux")]
fn forbid_namespaces() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    let calls = [(libc::SYS_unshare, Vec::new())].into();
    let fails = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let architecture = std::env::consts::ARCH.try_into().expect("it is known");
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, fails, architecture);
    let filter: BpfProgram = filter.and_then(BpfProgram::try_from).expect("it is a filter");
    seccompiler::apply_filter(&filter).expect("it is set");
}
