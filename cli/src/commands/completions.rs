//! `tenon completions`

use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

use crate::error::Error;
use crate::{Arguments, Common, output};

/// Print a shell's completion script
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon completions bash > ~/.local/share/bash-completion/completions/tenon
  tenon completions zsh > ~/.zfunc/_tenon
  tenon completions fish > ~/.config/fish/completions/tenon.fish")]
pub(crate) struct Args {
    /// The shell
    shell: Shell,
}

pub(crate) fn run(_: &Common, Args { shell }: Args) -> Result<ExitCode, Error> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tenon", &mut script);
    output::write(String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
