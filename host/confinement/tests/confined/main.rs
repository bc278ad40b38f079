//! Attempts to get out of the sandbox, each refused in it, and each with a control that succeeds.
//!
//! This program is the launcher, the program that is launched, and the test.

#[cfg(target_os = "linux")]
mod attempts;
#[cfg(target_os = "linux")]
mod rows;
#[cfg(target_os = "linux")]
mod sandbox;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    if let Some(code) = tenon_confinement::run_launcher(arguments.iter().cloned()) {
        return code;
    }
    #[cfg(target_os = "linux")]
    {
        if arguments.first().is_some_and(|first| first == attempts::ARGUMENT) {
            return attempts::run(&arguments[1..]);
        }
        libtest_mimic::run(&libtest_mimic::Arguments::from_args(), rows::tests()).exit_code()
    }
    #[cfg(not(target_os = "linux"))]
    ExitCode::SUCCESS
}
