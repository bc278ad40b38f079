//! Why a plugin is not loaded, and what to do about it.

use std::io;
use std::path::PathBuf;
use tenon_config::files::Digest;
use tenon_config::secret::{is_value_name, secret_variable};

use super::check_settings::SettingsError;
use crate::capability::ImportError;
use crate::runtime::ScriptLoadError;
use crate::runtime::wasm::ExportError;

/// Why a plugin is not loaded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoadError {
    /// Its file cannot be read.
    #[error("{} cannot be read", .0.display())]
    Read(PathBuf, #[source] io::Error),
    /// The folder for its own data, which it is granted, cannot be made.
    #[error("the folder for its data, {}, cannot be made", .path.display())]
    DataFolder {
        /// The folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its file was written to after it was approved.
    #[error("{} has changed since it was approved", .0.display())]
    Changed(PathBuf),
    /// Its file is not what it was when its user trusted the project.
    #[error("{} has changed since its project was trusted", .0.display())]
    NotAsTrusted(PathBuf),
    /// Its file is not what was installed.
    #[error("{} differs from what was installed: expected {}, found {}", .path.display(), .expected.named(), .found.named())]
    NotAsLocked {
        /// The file.
        path: PathBuf,
        /// What the lock file has.
        expected: Digest,
        /// What is there.
        found: Digest,
    },
    /// Its entry has a place for a secret that there is not.
    #[error("the secret `{0}` does not exist")]
    NoSecret(String),
    /// Its file is no component.
    #[error("{}: {problem}", .path.display())]
    NotComponent {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        problem: String,
    },
    /// Its file would take too long to compile.
    #[error("{}: {problem}", .path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What it has too much of.
        problem: String,
    },
    /// It is no plugin, or one for another host.
    #[error("{}", .path.display())]
    Export {
        /// The file.
        path: PathBuf,
        /// What it exports, or does not.
        source: ExportError,
    },
    /// It needs what it does not get.
    #[error("{}", .path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// What it needs.
        source: ImportError,
    },
    /// The policy wants it to be confined, and this host cannot do that.
    #[error("the policy requires that servers are confined: {0}")]
    Unconfined(String),
    /// It would change the host's own files, or what they lie in.
    #[error(
        "it may change {}, and {} lies there, which decides what Tenon starts and allows",
        folder.display(), own.display()
    )]
    Endangers {
        /// What was granted.
        folder: PathBuf,
        /// What lies in it.
        own: PathBuf,
    },
    /// Its settings are not those that it takes.
    #[error("{problem}")]
    Settings {
        /// The plugin.
        id: String,
        /// What is wrong with them.
        problem: SettingsError,
    },
    /// Its script does not compile.
    #[error(transparent)]
    Script(#[from] ScriptLoadError),
}

impl LoadError {
    /// Whether it is for a reason of safety: it could be loaded, and is not.
    pub(crate) fn is_refusal(&self) -> bool {
        match self {
            Self::Changed(_)
            | Self::NotAsLocked { .. }
            | Self::NotAsTrusted(_)
            | Self::Unconfined(_)
            | Self::Endangers { .. } => true,
            Self::Import { source, .. } => matches!(source, ImportError::NotGranted { .. }),
            Self::Read(..)
            | Self::DataFolder { .. }
            | Self::NoSecret(_)
            | Self::NotComponent { .. }
            | Self::TooLarge { .. }
            | Self::Export { .. }
            | Self::Settings { .. }
            | Self::Script(_) => false,
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> Option<String> {
        match self {
            Self::Read(..) => {
                Some("check the path; `tenon build` makes what was not built yet".into())
            }
            Self::DataFolder { .. } => {
                Some("make it writable for this user, or name another with XDG_DATA_HOME".into())
            }
            Self::Changed(_) => Some("approve it again".into()),
            Self::NotAsTrusted(_) => Some("`tenon trust` shows what has changed, and asks".into()),
            Self::NotAsLocked { .. } => Some("`tenon install` puts it back".into()),
            Self::NoSecret(name) if !is_value_name(name) => {
                Some(format!("set the variable {}; other hosts may store secrets elsewhere", secret_variable(name)))
            }
            Self::NoSecret(name) => Some(format!(
                "run `tenon secret set {name}`, or set the variable {}; other hosts may store secrets elsewhere",
                secret_variable(name)
            )),
            Self::NotComponent { .. } => {
                Some("build a component, in Rust with `--target wasm32-wasip2`".into())
            }
            Self::TooLarge { .. } => {
                Some("build it optimized for size, and split its largest functions".into())
            }
            Self::Export { source, .. } => Some(source.remedy().into()),
            Self::Import { source: ImportError::NotGranted { requested: true, .. }, .. } => Some(
                "its plugin.toml requests it, and less was granted; `tenon approve` grants more \
                 with `--grant` or `--all-requested`"
                    .into(),
            ),
            Self::Import {
                source: ImportError::NotGranted { request: Some(line), .. }, ..
            } => Some(format!(
                "request it in plugin.toml with `{line}` under [capabilities], then approve it"
            )),
            Self::Settings { id, problem: SettingsError::Values(_) } => Some(format!(
                "set them under [settings.{id}] in tenon.toml, which replace those of its plugin.toml; [settings_schema] there says what it takes"
            )),
            Self::Unconfined(_) => Some(
                "`confine = \"preferred\"` under [policy] runs it unconfined where it cannot be confined; `tenon doctor NAME --trace` shows what a server with `capabilities = {}` is refused".into(),
            ),
            Self::Endangers { .. } => Some(
                "request or grant the folders there that it needs, as with `tenon approve NAME --grant …`".into(),
            ),
            Self::Settings { .. } | Self::Import { .. } | Self::Script(_) => None,
        }
    }
}
