//! The plugin that a folder has, for who writes it.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tenon_config::discover::{Candidate, Discovery, Sources, discover};
use tenon_host::{Config, HostEnvironment};

use crate::error::Error;

/// The plugin of a folder, by its manifest. Nothing of it is loaded.
pub(crate) struct AuthoredPlugin {
    pub(crate) folder: PathBuf,
    pub(crate) plugin: Candidate,
    /// What there is beside it: nothing.
    pub(crate) sources: Sources,
}

impl AuthoredPlugin {
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let manifest = folder.join("plugin.toml");
        if !manifest.is_file() {
            return Err(Error::Input(format!(
                "{} has no plugin.toml; `tenon new` makes a plugin",
                folder.display()
            )));
        }
        let text = "plugins.folders = [\".\"]\ndiscovery.max_depth = 0";
        let configs = vec![Config::parse(text, folder.join("tenon.toml"))?];
        let sources = Sources { configs, host_environment: alone(), ..Sources::default() };
        let Discovery { candidates, left_out, diagnostics, .. } = discover(&sources);
        let is_it = |named_in: &Path| same(named_in, &manifest);
        if let Some(plugin) = candidates.into_iter().find(|plugin| is_it(plugin.named_in())) {
            return Ok(Self { folder: folder.to_path_buf(), plugin, sources });
        }
        let mut problems = diagnostics.iter().map(ToString::to_string);
        let left_out = left_out.iter().find(|left_out| is_it(&left_out.named_in));
        let problem = problems.next().or(left_out.map(|left_out| left_out.reason.to_string()));
        Err(Error::Input(
            problem.unwrap_or_else(|| format!("{} is not a plugin", manifest.display())),
        ))
    }
}

/// The host environment for a look at one plugin: no other place is looked into, neither
/// the user's plugins nor those that the environment names.
pub(crate) fn alone() -> HostEnvironment {
    let mut host_environment = HostEnvironment::of_process();
    host_environment.configuration = None;
    host_environment.servers = None;
    host_environment.environment.remove(OsStr::new("TENON_PLUGINS"));
    host_environment
}

/// Whether two paths lead to the same file.
pub(crate) fn same(one: &Path, other: &Path) -> bool {
    match (one.canonicalize(), other.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => false,
    }
}
