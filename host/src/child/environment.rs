//! Which of the host's environment a child inherits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Names that every program needs to find its way, and that hold no secrets.
const BASE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    // Windows programs do not start without these.
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "HOMEDRIVE",
    "HOMEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
];

/// The part of an environment that a child gets without asking: where programs and folders are, who
/// the user is, language and time zone.
pub(crate) fn base_environment(
    environment: &BTreeMap<OsString, OsString>,
) -> BTreeMap<OsString, OsString> {
    environment
        .iter()
        .filter(|(name, _)| is_base(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn is_base(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.to_uppercase();
    BASE.contains(&name.as_str()) || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_base_names_pass() {
        let names =
            ["PATH", "HOME", "LC_ALL", "GITHUB_TOKEN", "LD_PRELOAD", "AWS_SECRET_ACCESS_KEY"];
        let environment =
            names.iter().map(|name| (OsString::from(name), OsString::from("x"))).collect();
        let kept: Vec<_> = base_environment(&environment).into_keys().collect();
        assert_eq!(kept, ["HOME", "LC_ALL", "PATH"]);
    }
}
