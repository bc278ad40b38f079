//! Which of the host's environment a child inherits, and which variables a project cannot set for it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{InheritedEnvironment, SERVED_VARIABLE};
use crate::entry::EnvironmentPolicy;
use crate::files;
use crate::secret::is_secret_variable;

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
    // A platform that is served again below itself sees it by this.
    SERVED_VARIABLE,
];

/// Variables that say where programs find settings which name what they run. A folder elsewhere is no project's to
/// fill; one in the project is.
const SETTINGS: &[&str] = &[
    "ANSIBLE_CONFIG",
    "APPDATA",
    "CURL_HOME",
    "GIT_COMMON_DIR",
    "GIT_DIR",
    "GIT_WORK_TREE",
    "HOME",
    "LOCALAPPDATA",
    "TF_CLI_CONFIG_FILE",
    "USERPROFILE",
    "WGETRC",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
];

/// Variables that change which code programs load, or which programs they start. A `*` at the end
/// stands for anything.
const LOADING: &[&str] = &[
    "PATH",
    "LD_*",
    "DYLD_*",
    "GLIBC_TUNABLES",
    "GCONV_PATH",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "VIMINIT",
    // Shells.
    "SHELL",
    "BASH_LOADABLES_PATH",
    "BASH_ENV",
    "BASH_FUNC_*",
    "ENV",
    "IFS",
    "PROMPT_COMMAND",
    "PS4",
    "SHELLOPTS",
    "BASHOPTS",
    "ZDOTDIR",
    // Languages, and what installs packages for them.
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "NPM_CONFIG_*",
    "ELECTRON_RUN_AS_NODE",
    "BUN_OPTIONS",
    "BUN_CONFIG_*",
    "BUN_INSTALL*",
    "DENO_DIR",
    "DENO_INSTALL*",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "PYTHONUSERBASE",
    "PYTHONBREAKPOINT",
    "PYTHONINSPECT",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONEXECUTABLE",
    "PYTHONWARNINGS",
    "PYENV_*",
    "VIRTUAL_ENV",
    "CONDA_*",
    "PIP_*",
    "UV_*",
    "RUBYOPT",
    "RUBYLIB",
    "GEM_HOME",
    "GEM_PATH",
    "BUNDLE_GEMFILE",
    "PERL5OPT",
    "PERL5LIB",
    "PERL5DB",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "LUA_INIT*",
    "LUA_PATH*",
    "LUA_CPATH*",
    "JULIA_*",
    "R_PROFILE*",
    "R_ENVIRON*",
    "R_HOME",
    "R_LIBS*",
    "ERL_FLAGS",
    "ERL_AFLAGS",
    "ERL_ZFLAGS",
    "ERL_LIBS",
    "ELIXIR_ERL_OPTIONS",
    "MIX_*",
    "GUILE_LOAD_*",
    "GUILE_SYSTEM_*",
    "TCLLIBPATH",
    "CAML_LD_LIBRARY_PATH",
    "QT_PLUGIN_PATH",
    "GTK_MODULES",
    "GTK_PATH",
    "GRADLE_OPTS",
    "MAVEN_OPTS",
    "RUBYGEMS_GEMDEPS",
    "_PYTHON_SYSCONFIGDATA_NAME",
    "NVM_*",
    "N_PREFIX",
    "VOLTA_*",
    "ASDF_*",
    "MISE_*",
    "COREPACK_*",
    "YARN_*",
    "PNPM_HOME",
    "POETRY_*",
    "PDM_*",
    "PIPX_*",
    "HATCH_*",
    "NIX_*",
    "MAKEFLAGS",
    "MAKEFILES",
    "CLASSPATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "DOTNET_STARTUP_HOOKS",
    "DOTNET_ADDITIONAL_DEPS",
    "CORECLR_*",
    "COR_*",
    // What compiles them first.
    "CARGO_*",
    "RUSTC*",
    "RUSTFLAGS",
    "RUSTUP_*",
    "GOFLAGS",
    "GOPROXY",
    "GOENV",
    "GOPATH",
    "GOROOT",
    "GOTOOLCHAIN",
    // Programs that others start, and where they have them started.
    "DOCKER_HOST",
    "DOCKER_CONFIG",
    "TENON_*",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "GIT_TEMPLATE_DIR",
    "GIT_CONFIG*",
    "SSH_ASKPASS",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "MANPAGER",
    "LESSOPEN",
    "LESSCLOSE",
    "BROWSER",
    "COMSPEC",
    "PATHEXT",
    "PSMODULEPATH",
];

/// Whether a variable has a program that runs in a folder find its settings in a project.
pub(super) fn leads_into(project: &Path, name: &str, value: &str, folder: &Path) -> bool {
    let (name, real) = (name.to_uppercase(), files::real_or_absolute);
    let leads = |path: PathBuf| {
        let path = folder.join(path);
        path.starts_with(project) || real(&path).starts_with(real(project))
    };
    SETTINGS.contains(&&*name) && std::env::split_paths(value).any(leads)
}

/// Whether a variable changes which code programs load.
pub(super) fn changes_loading(name: &str) -> bool {
    // Windows does not care about case, and neither do some programs elsewhere.
    let name = name.to_uppercase();
    LOADING.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => *known == name,
    })
}

/// The part of an environment that a child inherits.
pub fn inherited_environment(
    environment: &BTreeMap<OsString, OsString>,
    inherited: &InheritedEnvironment,
) -> BTreeMap<OsString, OsString> {
    let passes = |name: &OsStr| match name.to_str() {
        Some(known) if inherited.names.contains(known) => true,
        Some(known) if inherited.policy == EnvironmentPolicy::Filtered => {
            !is_secret_variable(known)
        }
        _ => is_base(name),
    };
    let passing = environment.iter().filter(|(name, _)| passes(name));
    passing.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Whether every child inherits a variable.
pub(super) fn is_base(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let name = name.to_uppercase();
    BASE.contains(&name.as_str()) || name.starts_with("LC_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes() {
        let names = [
            "PATH",
            "HOME",
            "LC_ALL",
            "GITHUB_TOKEN",
            "LD_PRELOAD",
            "AWS_SECRET_ACCESS_KEY",
            "HTTP_PROXY",
        ];
        let environment =
            names.iter().map(|name| (OsString::from(name), OsString::from("x"))).collect();
        let check = |policy, names: &[&str], expected: &[&str]| {
            let names = names.iter().map(ToString::to_string).collect();
            let inherited = InheritedEnvironment { policy, names };
            let kept = inherited_environment(&environment, &inherited);
            assert_eq!(kept.into_keys().collect::<Vec<_>>(), expected);
        };
        use EnvironmentPolicy::{Clear, Filtered};
        check(Clear, &[], &["HOME", "LC_ALL", "PATH"]);
        check(Clear, &["GITHUB_TOKEN", "NONE"], &["GITHUB_TOKEN", "HOME", "LC_ALL", "PATH"]);
        check(Filtered, &[], &["HOME", "HTTP_PROXY", "LC_ALL", "LD_PRELOAD", "PATH"]);
        check(
            Filtered,
            &["GITHUB_TOKEN"],
            &["GITHUB_TOKEN", "HOME", "HTTP_PROXY", "LC_ALL", "LD_PRELOAD", "PATH"],
        );
    }

    #[test]
    fn where_settings_are_found() {
        let project = Path::new("/somewhere/project");
        let check = |name: &str, value: &str, expected: bool| {
            let leads = leads_into(project, name, value, &project.join("server"));
            assert_eq!(leads, expected, "{name}={value}");
        };
        check("HOME", "home", true);
        check("home", "/somewhere/project", true);
        check("XDG_CONFIG_DIRS", "/etc/xdg:/somewhere/project/x", true);
        check("HOME", "/somewhere", false);
        check("HOME", "/somewhere/project2", false);
        check("HOMEPAGE", "home", false);
    }

    #[test]
    fn what_changes_loading() {
        for name in [
            "PATH",
            "Path",
            "LD_PRELOAD",
            "DYLD_X",
            "npm_config_registry",
            "BASH_FUNC_x%%",
            "PYTHONPYCACHEPREFIX",
            "TENON_PLUGINS",
        ] {
            assert!(changes_loading(name), "{name}");
        }
        for name in ["ERL_FLAGS", "R_PROFILE_USER", "PYENV_VERSION"] {
            assert!(changes_loading(name), "{name}");
        }
        for name in ["HOMEPAGE", "PATHS", "OLD_PATH", "API_TOKEN", "NODE_ENV"] {
            assert!(!changes_loading(name), "{name}");
        }
    }
}
