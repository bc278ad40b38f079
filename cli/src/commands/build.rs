//! `tenon build`

use std::path::PathBuf;
use std::process::ExitCode;

use crate::authored::AuthoredPlugin;
use crate::component_build::{BuildProfile, build};
use crate::error::Error;
use crate::open::trust;
use crate::{Common, output};

/// Build the plugin of a folder
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon build
  tenon --json build plugins/hello | jq -r .sha256

Cargo.toml, pyproject.toml or package.json decides the language. The component is written to the path \
in plugin.toml, with the metadata of these files, and with the commit if the work tree is clean. A \
script is only compiled; nothing is written.")]
pub(crate) struct Args {
    /// The folder with the plugin.toml [default: that of --project]
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Build fast, without optimization, and with what backtraces need
    #[arg(long)]
    debug: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let folder = args.folder.as_ref().unwrap_or(&common.project);
    let authored = AuthoredPlugin::read(folder)?;
    trust::require_code(common, folder)?;
    let profile = if args.debug { BuildProfile::Debug } else { BuildProfile::Release };
    let built = build(&authored, profile).await?;
    if common.json {
        output::json(&built)?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line(format!("{}  {}", built.path.display(), output::size(built.size)))?;
    output::line(format!("sha256:{}", built.sha256))?;
    Ok(ExitCode::SUCCESS)
}
