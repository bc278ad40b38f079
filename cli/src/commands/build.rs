//! `tenon build`

use std::path::PathBuf;
use std::process::ExitCode;

use crate::component_build::{BuildProfile, build};
use crate::error::Error;
use crate::open::trust;
use crate::plugin_in_folder::AuthoredPlugins;
use crate::{Common, output, project_folder};

/// Build the plugin of a folder, or those of a project
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon build
  tenon --json build plugins/hello | jq -r .sha256

Cargo.toml, pyproject.toml or package.json decides the language. The component is written to the path \
in plugin.toml, with the metadata of these files, and with the commit if the work tree is clean. A \
script is only compiled; nothing is written.")]
pub(crate) struct Args {
    /// The folder of a plugin or a project [default: this one, or the nearest above it]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Build fast, without optimization, and with what backtraces need
    #[arg(long)]
    debug: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let folder = project_folder::of_author(common, args.folder.as_deref());
    let authored = AuthoredPlugins::read(common, &folder)?;
    trust::require_code(common, &folder)?;
    let profile = if args.debug { BuildProfile::Debug } else { BuildProfile::Release };
    let mut all = Vec::new();
    for plugin in &authored.plugins {
        let built = build(plugin, profile).await?;
        if !common.json {
            output::line(format!("{}  {}", built.path.display(), output::size(built.size)))?;
            output::line(format!("sha256:{}", built.sha256))?;
        }
        all.push(built);
    }
    if common.json {
        authored.print_json(&all)?;
    }
    Ok(ExitCode::SUCCESS)
}
