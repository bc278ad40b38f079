//! `tenon revoke`

use serde_json::json;
use std::process::ExitCode;

use crate::error::Error;
use crate::store::StorePlace;
use crate::{Common, call_approval, open, output, store};

/// Revoke the approvals of a plugin and of calls of its tools
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The plugin
    #[arg(value_name = "PLUGIN")]
    plugin: String,
    /// Revoke it in all projects, not only in this one; calls are approved for all projects
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
    let calls = end_calls(common, id)?;
    if revoked + calls == 0 && found.discovery.untrusted.is_some() && !args.everywhere {
        return Err(found.unknown(id));
    }
    if revoked + calls == 0 {
        return Err(Error::Input(format!("nothing was approved of a plugin \"{id}\"")));
    }
    match common.json {
        true => output::json(&json!({ "plugin": id, "revoked": revoked, "calls": calls }))?,
        false => output::line(format!("plugin \"{id}\" is not approved any more{}", and(calls)))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Takes back what was approved of calls of a plugin's tools. To look makes no store.
fn end_calls(common: &Common, plugin: &str) -> Result<usize, Error> {
    match StorePlace::find(common)?.is_there() {
        true => Ok(call_approval::approvals(common)?.end_plugin(plugin, store::now())?),
        false => Ok(0),
    }
}

fn and(calls: usize) -> String {
    match calls {
        0 => String::new(),
        1 => ", nor is what was approved or waited of one call".into(),
        calls => format!(", nor is what was approved or waited of {calls} calls"),
    }
}
