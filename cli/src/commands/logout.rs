//! `tenon logout`

use serde_json::json;
use std::process::ExitCode;
use url::Url;

use super::login::{login_store, server_url};
use crate::error::Error;
use crate::{Common, output};

/// Forget the login to an MCP server elsewhere
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon logout tracker
  tenon logout https://mcp.example.com/mcp

The tokens are deleted here. Whoever gave them may still show the login in a list of its own, and end it there.")]
pub(crate) struct Args {
    /// The server, as `tenon plugins` names it, or its URL
    #[arg(value_name = "SERVER")]
    server: String,
}

pub(crate) fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    // Its entry may be gone or disabled.
    let is_web = |url: &Url| matches!(url.scheme(), "http" | "https");
    let url = match Url::parse(&args.server).ok().filter(is_web) {
        Some(url) => url,
        None => server_url(common, &args.server, false)?,
    };
    let store = login_store(&args.server)?;
    let failed = |error| Error::Login { server: args.server.clone(), error };
    if !store.remove(url.as_str()).map_err(failed)? {
        return Err(Error::Input(format!("there is no login to \"{}\"", args.server)));
    }
    match common.json {
        true => output::json(&json!({ "server": args.server, "loggedOut": true }))?,
        false => output::line(format!("logged out of {}", args.server))?,
    }
    Ok(ExitCode::SUCCESS)
}
