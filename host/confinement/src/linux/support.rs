//! What this system has of what confinement needs, found out without trying it.

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope};
use rustix::process::geteuid;
use std::fs;

/// Files of the kernel that say whether users may make namespaces, and what they have in them where they may not: that of
/// all kernels, of Debian's, and of Ubuntu's, which root need not mind.
const SWITCHES: [(&str, &str, bool); 3] = [
    ("/proc/sys/user/max_user_namespaces", "0", true),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", false),
    ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", false),
];

/// What is wrong with a kernel that restricts no files.
pub(super) const NO_LANDLOCK: &str =
    "this kernel has no Landlock; it needs Linux 5.13 with Landlock enabled";

/// Checks that programs can be confined here, in namespaces or without.
pub(crate) fn check() -> Result<(), String> {
    let landlock = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    landlock.map_err(|_| NO_LANDLOCK)?;
    check_namespaces().or_else(|problem| {
        check_without_namespaces().map_err(|without| format!("{problem}, and {without}"))
    })
}

/// Checks that users are not forbidden to make namespaces, as far as the kernel says.
pub(super) fn check_namespaces() -> Result<(), String> {
    let is_root = geteuid().is_root();
    let is_off = |(file, off, is_for_root): &&(&str, &str, bool)| {
        let value = fs::read_to_string(file);
        (*is_for_root || !is_root) && value.is_ok_and(|value| value.trim() == *off)
    };
    match SWITCHES.iter().find(is_off) {
        Some((file, value, _)) => {
            Err(format!("this system has no user namespaces: {file} is {value}"))
        }
        None => Ok(()),
    }
}

/// Checks that this kernel can confine programs that have no namespaces of their own: it has to keep them from sending
/// signals to others.
pub(super) fn check_without_namespaces() -> Result<(), &'static str> {
    let landlock = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(|ruleset| ruleset.scope(Scope::Signal | Scope::AbstractUnixSocket))
        .and_then(Ruleset::create);
    landlock
        .map(drop)
        .map_err(|_| "without them this kernel's Landlock is too old; it needs Linux 6.12")
}
