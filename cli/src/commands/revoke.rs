//! `tenon revoke`

use serde_json::json;
use std::process::ExitCode;

use crate::error::Error;
use crate::{Common, open, output};

/// Revoke the approvals of a plugin
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The plugin
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// Revoke it in all projects, not only in this one
    #[arg(long)]
    everywhere: bool,
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    let file = found.kept_approvals()?;
    let id = &args.plugin;
    // Of a project that is not trusted it is taken back all the same.
    let untrusted = found.discovery.untrusted.as_ref();
    let of_project = untrusted.map(|_| open::reviewed(common)).transpose()?;
    let candidates = found.discovery.candidates.iter();
    let mut candidates = candidates.chain(of_project.iter().flat_map(|of| &of.candidates));
    let here = candidates.find(|candidate| candidate.id() == id);
    let named_in = match here {
        _ if args.everywhere => None,
        Some(candidate) => Some(candidate.named_in()),
        None => {
            return Err(match found.unknown(id) {
                refused @ Error::Refused { .. } => refused,
                problem => Error::Input(format!("{problem}; `--everywhere` is for all projects")),
            });
        }
    };
    let revoked = file.revoke(id, named_in)?;
    if revoked == 0 && found.discovery.untrusted.is_some() && !args.everywhere {
        return Err(found.unknown(id));
    }
    if revoked == 0 {
        return Err(Error::Input(format!("nothing was approved of a plugin \"{id}\"")));
    }
    match common.json {
        true => output::json(&json!({ "plugin": id, "revoked": revoked }))?,
        false => output::line(format!("plugin \"{id}\" is not approved any more"))?,
    }
    Ok(ExitCode::SUCCESS)
}
