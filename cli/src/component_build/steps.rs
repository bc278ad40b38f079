//! The steps of a build that are the same in every language: what is written where, and what a component says of itself.

use serde::Serialize;
use std::fs;
use std::io::{self, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use tenon_config::files::{self, Digest, MAX_COMPONENT_BYTES};
use tenon_contract::{PluginMetadata, describe};
use tenon_host::{PluginKind, check_script};
use tokio::process::Command;

use crate::error::Error;
use crate::installed::check_file;
use crate::plugin_in_folder::PluginInFolder;
use crate::templates::Language;

/// What a build is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BuildProfile {
    /// To be published: small and fast.
    Release,
    /// To be tried out: built fast, and with what backtraces need.
    Debug,
}

/// What was built.
#[derive(Serialize)]
pub(crate) struct BuiltComponent {
    plugin: String,
    pub(crate) path: PathBuf,
    pub(crate) size: usize,
    pub(crate) sha256: String,
    /// The commit that is embedded, where one is.
    #[serde(skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
}

/// Builds a plugin: writes its component, or compiles its script.
pub(crate) async fn build(
    authored: &PluginInFolder,
    profile: BuildProfile,
) -> Result<BuiltComponent, Error> {
    let PluginInFolder { folder, plugin, .. } = authored;
    let id = plugin.id().to_string();
    if let Some(path) = plugin.script() {
        let text = files::read(path, MAX_COMPONENT_BYTES)
            .map_err(|error| Error::Read(path.into(), error))?;
        let (size, sha256) = (text.len(), Digest::of(&text).to_string());
        check_script(path, text, plugin.limits())
            .map_err(|error| Error::NotBuilt(error.to_string()))?;
        return Ok(BuiltComponent { plugin: id, path: path.into(), size, sha256, revision: None });
    }
    let Some(path) = plugin.component() else {
        let problem =
            format!("plugin \"{id}\" is {}: there is nothing to build", article(plugin.kind()));
        return Err(Error::Input(problem));
    };
    check_target(folder, path)?;
    let language = Language::of_component(folder)?;
    progress(&format!("building {id}, which is in {language}"));
    // Before anything is built: that may write files which are not of the commit.
    let revision = match profile {
        BuildProfile::Release => revision(folder).await,
        // Nobody publishes it.
        BuildProfile::Debug => None,
    };
    let partial = Partial::beside(path)?;
    let (component, about) = language.build(folder, &partial.0, profile).await?;
    let own = PluginMetadata {
        name: Some(id.clone()),
        version: plugin.version().map(ToString::to_string),
        description: plugin.description().map(str::to_string),
        revision: revision.clone(),
        ..PluginMetadata::default()
    };
    let component = describe(&component, &about.or(own)).map_err(|error| {
        Error::Input(format!("{}: {error}", folder.join(language.file()).display()))
    })?;
    partial.keep(path, &component)?;
    let (size, sha256) = (component.len(), Digest::of(&component).to_string());
    Ok(BuiltComponent { plugin: id, path: path.into(), size, sha256, revision })
}

/// Checks that nothing is lost where the component goes: what an author wrote is not written over.
fn check_target(folder: &Path, path: &Path) -> Result<(), Error> {
    let no = |problem: &str| Error::Input(format!("plugin.toml: {problem}"));
    let below = path.strip_prefix(folder).map_err(|_| "its `path` leads out of its folder");
    below.and_then(check_file).map_err(no)?;
    let mut head = [0; 4];
    let is_other = match fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)) {
        Ok(()) => head != *b"\0asm",
        // There is nothing, or it cannot be replaced either.
        Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
    };
    match is_other {
        true => Err(no(&format!("its `path` is {}, which is not a component", path.display()))),
        false => Ok(()),
    }
}

fn article(kind: PluginKind) -> &'static str {
    match kind {
        PluginKind::Mcp => "an MCP server",
        PluginKind::Wasm | PluginKind::Rhai | PluginKind::Builtin => "no component",
    }
}

/// Says what takes long, where somebody watches.
fn progress(text: &str) {
    let mut stderr = io::stderr();
    if stderr.is_terminal() {
        // Where standard error is closed there is nobody to tell.
        let _ = writeln!(stderr, "{text}");
    }
}

/// A file that becomes another one as a whole, or goes.
struct Partial(PathBuf);

impl Partial {
    /// One in the folder of the other, which is made where there is none.
    fn beside(path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(|error| Error::Write(path.into(), error))?;
        let folder = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(folder).map_err(|error| Error::Write(folder.into(), error))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Self(folder.join(format!(".{name}.{}.partial", std::process::id()))))
    }

    fn keep(self, path: &Path, content: &[u8]) -> Result<(), Error> {
        fs::write(&self.0, content)
            .and_then(|()| fs::rename(&self.0, path))
            .map_err(|error| Error::Write(path.into(), error))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        // It is there only if something went wrong, and that is told.
        let _ = fs::remove_file(&self.0);
    }
}

/// The commit that a folder is at; nothing outside of git, or where there are changes that are not
/// in it, which is said.
async fn revision(folder: &Path) -> Option<String> {
    let git = async |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(folder).args(arguments).kill_on_drop(true);
        let output = command.output().await.ok()?;
        let said = String::from_utf8_lossy(&output.stdout).trim().to_string();
        output.status.success().then_some(said)
    };
    let revision = git(&["rev-parse", "--verify", "HEAD"]).await?;
    match git(&["status", "--porcelain"]).await?.is_empty() {
        true => Some(revision),
        false => {
            tracing::warn!("no revision is embedded: there are changes that are not committed");
            None
        }
    }
}
