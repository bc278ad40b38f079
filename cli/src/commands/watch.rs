//! `tenon watch`

use serde_json::json;
use std::process::ExitCode;
use tenon_host::{OnChange, Platform};

use crate::error::Error;
use crate::event_text::change_text;
use crate::{Common, open, output};

/// Load plugins, and reload them when their files change
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon watch
  tenon --json watch --report-only | jq .plugin

Ends when interrupted (Ctrl-C), or when its output is closed.")]
pub(crate) struct Args {
    /// Report changes, but load nothing
    #[arg(long)]
    report_only: bool,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    // To be interrupted is how it ends.
    let interrupted = Ok(ExitCode::SUCCESS);
    open::with_until(common, found.platform(|_| true), interrupted, async |platform| {
        tokio::select! {
            watched = watch(common, platform, args) => watched.map(|()| ExitCode::SUCCESS),
            () = output::unread() => Err(Error::Unread),
        }
    })
    .await
}

async fn watch(common: &Common, platform: &Platform, args: Args) -> Result<(), Error> {
    let mut events = platform.events();
    let on_change = if args.report_only { OnChange::Report } else { OnChange::Reload };
    let _watch = platform.watch(on_change)?;
    let ready = platform.registry().plugins().len();
    match common.json {
        true => output::json_line(&json!({ "event": "watching", "plugins": ready }))?,
        false => output::line(format!("watching; {ready} plugins are ready"))?,
    }
    while let Some(event) = events.next().await {
        let Some(text) = change_text(&event) else { continue };
        match common.json {
            true => output::json_line(&event)?,
            false => output::text(&text)?,
        }
    }
    Ok(())
}
