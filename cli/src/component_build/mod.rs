//! How a plugin's component is made of its source: [`build()`](build::build) for all, and one file for each language.

mod build;
mod javascript;
mod python;
mod rust;

use serde_json::Value;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

use crate::error::Error;
use crate::templates::Language;
pub(crate) use build::{BuildProfile, build};
use tenon_contract::PluginMetadata;

impl Language {
    /// The language of a component's source, by the files of its folder.
    pub(crate) fn of_component(folder: &Path) -> Result<Self, Error> {
        let marks = [
            ("Cargo.toml", Self::Rust),
            ("pyproject.toml", Self::Python),
            ("package.json", Self::JavaScript),
        ];
        let found = marks.iter().find(|(file, _)| folder.join(file).is_file());
        found.map(|(_, language)| *language).ok_or_else(|| {
            let files = marks.map(|(file, _)| file).join(", ");
            Error::Input(format!("{} has nothing to build: none of {files}", folder.display()))
        })
    }

    /// Makes the component, and says what its source says it is. The tool may write to this file.
    async fn build(
        self,
        folder: &Path,
        to: &Path,
        profile: BuildProfile,
    ) -> Result<(Vec<u8>, PluginMetadata), Error> {
        match self {
            Self::Rust => rust::build(folder, profile).await,
            Self::Python => python::build(folder, to).await,
            Self::JavaScript => javascript::build(folder, to).await,
            Self::Rhai => Err(Error::Input("a script is not a component".into())),
        }
    }

    /// The file that says what the source is.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript => "package.json",
            Self::Rhai => "plugin.toml",
        }
    }
}

/// Runs a tool to its end, and gives what it prints. Its errors go to standard error, as they come.
async fn run(tool: &BuildTool<'_>, mut command: Command) -> Result<Vec<u8>, Error> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        // Who interrupts the command ends what it has begun.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| tool.failed_to_start(&error))?;
    let output = child.wait_with_output().await.map_err(|error| tool.failed_to_start(&error))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(Error::NotBuilt(format!("{} ended with {}", tool.name, output.status))),
    }
}

/// A tool that makes components.
struct BuildTool<'a> {
    name: &'a str,
    /// The command that installs it.
    install: &'a str,
}

impl BuildTool<'_> {
    fn failed_to_start(&self, error: &io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::NotFound => self.missing(),
            _ => Error::Host(format!("{} cannot be started: {error}", self.name)),
        }
    }

    fn missing(&self) -> Error {
        Error::Missing { tool: self.name.into(), install: self.install.into() }
    }

    /// Where it is: in the folder that the project installs it in, or else in `PATH`.
    fn find(&self, folder: &Path, own: &str) -> Result<PathBuf, Error> {
        let own = folder.join(own).join(self.name);
        if own.is_file() {
            // It is run in the project's folder.
            return own.canonicalize().map_err(|error| Error::Read(own, error));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(self.name));
        places.find(|place| place.is_file()).ok_or_else(|| self.missing())
    }
}

/// Runs a tool that writes a component to a file, and reads that.
async fn componentize(
    tool: &BuildTool<'_>,
    program: &Path,
    folder: &Path,
    arguments: &[&OsStr],
    to: &Path,
) -> Result<Vec<u8>, Error> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    let said = run(tool, command).await?;
    tracing::debug!("{}: {}", tool.name, String::from_utf8_lossy(&said).trim_end());
    std::fs::read(to).map_err(|error| Error::Read(to.into(), error))
}

/// A text of a table, where there is one and something in it.
fn text(table: &Value, key: &str) -> Option<String> {
    let text = table.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_string())
}
