//! Where plugins are looked for, in order of precedence.

use std::ffi::OsStr;
use std::path::PathBuf;

use super::{PluginKind, Sources, plugin_mcp_json};
use crate::config::{Config, PluginFileEntry, PluginOrigin, combine};
use crate::entry::McpEntry;
use crate::lock;

/// The variable that names folders to look in, separated as in `PATH`.
pub(super) const VARIABLE: &str = "TENON_PLUGINS";

/// The folder with plugins in a project's.
pub const WORKSPACE: &str = ".tenon/plugins";

/// The folder of VS Code in a project's, and its file with servers.
pub(super) const EDITOR: &str = ".vscode";
const EDITOR_FILE: &str = "mcp.json";

/// The folder with plugins in that of the user's configuration.
pub const USER: &str = "plugins";

/// One place.
pub(super) struct SearchLocation<'a> {
    pub origin: PluginOrigin,
    /// The configuration whose settings hold for what is found here.
    pub config: &'a Config,
    pub place: LocationKind<'a>,
    /// The lock file that binds what is found here; it need not be there.
    pub lock: Option<PathBuf>,
}

pub(super) enum LocationKind<'a> {
    /// An MCP server of the configuration.
    Server(&'a McpEntry),
    /// A file with MCP servers, which is read where it is there.
    Servers(PathBuf),
    /// A component or a script of the configuration.
    File(&'a PluginFileEntry, PluginKind),
    /// A folder of the configuration, as it is written there.
    Named(&'a str),
    /// A folder that is looked in where it is there.
    Folder(PathBuf),
}

/// All places in order of precedence.
pub(super) fn all<'a>(sources: &'a Sources, nothing: &'a Config) -> Vec<SearchLocation<'a>> {
    let Sources { configs, workspace, bundled, host_environment, .. } = sources;
    let config = |origin| combine::speaking_for(configs, origin).unwrap_or(nothing);
    let folder = |origin, path: PathBuf| SearchLocation {
        origin,
        config: config(origin),
        place: LocationKind::Folder(path),
        lock: None,
    };
    let bound = |origin, path: PathBuf, plugins: &str| SearchLocation {
        lock: Some(path.join(lock::FILE_NAME)),
        ..folder(origin, path.join(plugins))
    };
    let variable = host_environment.environment.get(OsStr::new(VARIABLE));
    let environment = variable.into_iter().flat_map(|value| {
        std::env::split_paths(value).filter(|path| !path.as_os_str().is_empty()).collect::<Vec<_>>()
    });
    let servers = |origin, path: PathBuf| SearchLocation {
        origin,
        config: config(origin),
        place: LocationKind::Servers(path),
        lock: None,
    };
    let of_project = workspace.iter().flat_map(|path| {
        [path.join(plugin_mcp_json::FILE_NAME), path.join(EDITOR).join(EDITOR_FILE)]
    });
    let of_user = host_environment.servers.iter().cloned();
    let mut roots = Vec::new();
    // They go first, as they do for the other programs that read it.
    roots.extend(of_project.map(|path| servers(PluginOrigin::Workspace, path)));
    roots.extend(named(configs, PluginOrigin::Config));
    roots.extend(environment.map(|path| folder(PluginOrigin::Environment, path)));
    let workspace = workspace.iter().cloned();
    roots.extend(workspace.map(|path| bound(PluginOrigin::Workspace, path, WORKSPACE)));
    roots.extend(named(configs, PluginOrigin::User));
    roots.extend(of_user.map(|path| servers(PluginOrigin::User, path)));
    let user = host_environment.configuration.iter().cloned();
    roots.extend(user.map(|path| bound(PluginOrigin::User, path, USER)));
    roots.extend(bundled.iter().map(|path| folder(PluginOrigin::Bundled, path.clone())));
    roots
}

/// What configurations name: each entry is a place of its own, so that entries keep their order.
fn named(configs: &[Config], origin: PluginOrigin) -> impl Iterator<Item = SearchLocation<'_>> {
    configs.iter().filter(move |config| config.origin == origin).flat_map(move |config| {
        let servers = config.mcp.iter().map(LocationKind::Server);
        let components =
            config.wasm.iter().map(|entry| LocationKind::File(entry, PluginKind::Wasm));
        let scripts =
            config.scripts.iter().map(|entry| LocationKind::File(entry, PluginKind::Rhai));
        let folders = config.folders.iter().map(|folder| LocationKind::Named(folder));
        let places = servers.chain(components).chain(scripts).chain(folders);
        places.map(move |place| SearchLocation { origin, config, place, lock: None })
    })
}
