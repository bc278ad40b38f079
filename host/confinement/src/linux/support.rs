//! What this system has of what confinement needs, found out without trying it.

use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
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

pub(crate) fn check() -> Result<(), String> {
    let is_root = geteuid().is_root();
    let is_off = |(file, off, is_for_root): &&(&str, &str, bool)| {
        let value = fs::read_to_string(file);
        (*is_for_root || !is_root) && value.is_ok_and(|value| value.trim() == *off)
    };
    if let Some((file, value, _)) = SWITCHES.iter().find(is_off) {
        return Err(format!("this system has no user namespaces: {file} is {value}"));
    }
    let landlock = Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(AccessFs::from_all(ABI::V1))
        .and_then(Ruleset::create);
    landlock.map(drop).map_err(|_| NO_LANDLOCK.into())
}
