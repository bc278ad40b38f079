//! How a plugin's component is made of its source: [`build()`](steps::build) for all, and one file for each language.

mod javascript;
pub(crate) mod python;
pub(crate) mod rust;
mod steps;

use serde_json::Value;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use tenon_config::files::{self, MAX_COMPONENT_BYTES};
use tokio::process::Command;

use crate::builder_report::BuilderReport;
use crate::error::Error;
use crate::templates::Language;
pub(crate) use steps::{BuildProfile, build};

use tenon_contract::PluginMetadata;

/// The files that are there where a package is in TypeScript.
const TYPESCRIPT: [&str; 3] = ["plugin.ts", "plugin.mts", "tsconfig.json"];

impl Language {
    /// The language of a component's source, by the files of its folder.
    pub(crate) fn of_component(folder: &Path) -> Result<Self, Error> {
        let marks = [
            ("Cargo.toml", Self::Rust),
            ("pyproject.toml", Self::Python),
            ("package.json", Self::JavaScript),
        ];
        let is_typed = TYPESCRIPT.iter().any(|file| folder.join(file).is_file());
        let found = marks.iter().find(|(file, _)| folder.join(file).is_file());
        let language = found.map(|(_, language)| match language {
            Self::JavaScript if is_typed => Self::TypeScript,
            language => *language,
        });
        language.ok_or_else(|| {
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
            Self::JavaScript | Self::TypeScript => javascript::build(folder, to, profile).await,
            Self::Rhai => Err(Error::Input("a script is not a component".into())),
            Self::Other => Err(Error::Input("its own tools build this component".into())),
        }
    }

    /// The file that says what the source is.
    pub(crate) fn file(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Python => "pyproject.toml",
            Self::JavaScript | Self::TypeScript => "package.json",
            Self::Rhai | Self::Other => "plugin.toml",
        }
    }
}

/// Runs a tool to its end, and gives what it prints. Its errors go to standard error, as they come.
async fn run(tool: &BuildTool<'_>, command: Command) -> Result<Vec<u8>, Error> {
    let (status, said) = run_to_end(tool, command).await?;
    if status.success() { Ok(said) } else { Err(tool.failed(status)) }
}

async fn run_to_end(
    tool: &BuildTool<'_>,
    mut command: Command,
) -> Result<(ExitStatus, Vec<u8>), Error> {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        // Who interrupts the command ends what it has begun.
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| tool.failed_to_start(&error))?;
    let output = child.wait_with_output().await.map_err(|error| tool.failed_to_start(&error))?;
    Ok((output.status, output.stdout))
}

/// Runs the builder of a package for authors, which writes a component to a file, and reads that. The builder is run in
/// the plugin's folder.
async fn run_builder(
    tool: &BuildTool<'_>,
    mut command: Command,
    folder: &Path,
    to: &Path,
) -> Result<Vec<u8>, Error> {
    command.args(["--json", "--output"]).arg(to).current_dir(folder);
    let (status, said) = run_to_end(tool, command).await?;
    if status.success() {
        return files::read(to, MAX_COMPONENT_BYTES).map_err(|error| Error::Read(to.into(), error));
    }
    match BuilderReport::parse(&said) {
        Some(report) => Err(Error::Source(report.problems)),
        None => Err(tool.failed(status)),
    }
}

/// A tool that makes components.
struct BuildTool<'a> {
    /// What it is called by those who install it.
    name: &'a str,
    program: &'a str,
    /// The command that installs it.
    install: &'a str,
}

impl BuildTool<'_> {
    fn failed(&self, status: ExitStatus) -> Error {
        Error::NotBuilt(format!("{} ended with {status}", self.name))
    }

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
        let own = folder.join(own).join(self.program);
        if own.is_file() {
            // It is run in the project's folder. Links are kept: an environment of Python is found by its own.
            return std::path::absolute(&own).map_err(|error| Error::Read(own, error));
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut places = std::env::split_paths(&path).map(|folder| folder.join(self.program));
        places.find(|place| place.is_file()).ok_or_else(|| self.missing())
    }
}

/// A text of a table, where there is one and something in it.
fn text(table: &Value, key: &str) -> Option<String> {
    let text = table.get(key)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_string())
}
