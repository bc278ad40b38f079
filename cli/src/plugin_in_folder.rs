//! The plugin that a folder has, for who writes it.

use serde::Serialize;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use tenon_config::discover::{Candidate, Discovery, Sources, discover};
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_host::{Config, HostEnvironment};

use crate::error::Error;
use crate::templates::Language;
use crate::{Common, open, output};

/// The plugin of a folder, by its manifest. Nothing of it is loaded.
pub(crate) struct PluginInFolder {
    pub(crate) folder: PathBuf,
    pub(crate) plugin: Candidate,
    /// What there is beside it: nothing.
    pub(crate) sources: Sources,
}

impl PluginInFolder {
    pub(crate) fn read(folder: &Path) -> Result<Self, Error> {
        let manifest = folder.join(MANIFEST);
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

/// What somebody writes in a folder: one plugin, or those of a project.
pub(crate) struct AuthoredPlugins {
    pub(crate) plugins: Vec<PluginInFolder>,
    /// Whether the folder is that of a project, and not of one plugin.
    pub(crate) is_project: bool,
}

impl AuthoredPlugins {
    /// The plugin of a folder, or else the plugins of the project in it whose source is in the project too.
    ///
    /// # Errors
    ///
    /// Where there is none, or one cannot be read.
    pub(crate) fn read(common: &Common, folder: &Path) -> Result<Self, Error> {
        if folder.join(MANIFEST).is_file() {
            let plugins = vec![PluginInFolder::read(folder)?];
            return Ok(Self { plugins, is_project: false });
        }
        let project = folder.canonicalize().map_err(|error| Error::Read(folder.into(), error))?;
        let common = Common { project: folder.into(), config: None, ..common.clone() };
        let mut plugins = Vec::new();
        for candidate in open::candidates(&common)? {
            if candidate.lock_entry.is_some() || !candidate.has_manifest() {
                continue;
            }
            let Some(own) = candidate.named_in().parent() else { continue };
            let is_below = own.canonicalize().is_ok_and(|own| own.starts_with(&project));
            let has_source = candidate.script().is_some()
                || candidate.component().is_some() && Language::of_component(own).is_ok();
            if is_below && has_source {
                plugins.push(PluginInFolder::read(own)?);
            }
        }
        match plugins.is_empty() {
            true => Err(Error::Input(format!(
                "{} has no plugin.toml, and is no project with the source of a plugin; `tenon new` makes a plugin",
                folder.display()
            ))),
            false => Ok(Self { plugins, is_project: true }),
        }
    }

    /// Prints what came of each as JSON: an object for one plugin, and a list for a project.
    pub(crate) fn print_json(&self, values: &[impl Serialize]) -> Result<(), Error> {
        match (self.is_project, values) {
            (false, [value]) => output::json(value),
            (_, values) => output::json(&values),
        }
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
