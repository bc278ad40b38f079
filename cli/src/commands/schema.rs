//! `tenon schema`

use std::process::ExitCode;
use tenon_config::schema;

use crate::error::Error;
use crate::{Common, output};

/// Print the JSON Schema of `plugin.toml` or `tenon.toml`, for editors
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon schema plugin > plugin.schema.json
  tenon schema project > tenon.schema.json")]
pub(crate) struct Args {
    /// The file: `plugin` is plugin.toml, `project` is tenon.toml and a user's config.toml
    file: File,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum File {
    Plugin,
    Project,
}

pub(crate) fn run(_: &Common, Args { file }: Args) -> Result<ExitCode, Error> {
    output::write(match file {
        File::Plugin => schema::PLUGIN,
        File::Project => schema::PROJECT,
    })?;
    Ok(ExitCode::SUCCESS)
}
