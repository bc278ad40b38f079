//! `tenon confine`

use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use tenon_config::discover::{Candidate, CodeSource, ServerLocation};
use tenon_host::{AccessRecorder, Platform};

use crate::access_recording::{CallsToMake, RecordingReport, failed};
use crate::error::Error;
use crate::{Common, open, output};

/// Find out which capabilities an MCP server needs
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon confine notes --learn
  tenon confine notes --learn --call 'read_text_file path=/home/ada/notes/today.md'

The server runs once and makes the calls. It reaches every file of its user and every public host meanwhile, and whatever it \
reads, writes and requests beyond what every server may is recorded. The calls are made for real. The capabilities that \
would allow all that are printed; they are as good as the calls were. `tenon doctor SERVER --trace` shows what a server \
is refused that has capabilities already.")]
pub(crate) struct Args {
    /// The server, as `tenon plugins` names it
    #[arg(value_name = "SERVER")]
    server: String,
    /// Run the server once with a recorder, and propose capabilities
    #[arg(long, required = true)]
    learn: bool,
    /// Call this tool, with arguments as `tenon call` takes them: JSON, or KEY=VALUE without blanks; can be repeated
    #[arg(long, value_name = "TOOL [ARGUMENTS]")]
    call: Vec<String>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { server, learn: _, call } = args;
    let found = open::found(common)?.starting_servers();
    let candidate = local_server(&found, &server)?;
    let file = candidate.named_in().to_path_buf();
    let recorder = AccessRecorder::of_needs().map_err(failed)?;
    let calls = CallsToMake::parse(&call)?;
    output::note(&format!("{server} runs once with all files of its user"));
    let found = found.recording(server.clone(), recorder.clone());
    let platform = found.build(|candidate: &Candidate| candidate.id() == server);
    open::with(common, platform, async |platform| {
        open::require(platform, &[&server])?;
        let code = calls.make(platform, &server).await;
        let granted = granted(platform, &server);
        let recorded = RecordingReport::of(&recorder, &granted)?;
        match common.json {
            true => {
                let mut shown = recorded.to_json();
                shown["server"] = json!(server);
                output::json(&shown)?;
            }
            false => recorded.print(&server, "did", &file, code)?,
        }
        Ok(code.into())
    })
    .await
}

/// What a server was granted.
pub(super) fn granted(platform: &Platform, server: &str) -> BTreeMap<String, Vec<String>> {
    let reports = platform.plugins();
    let report = reports.iter().find(|report| report.plugin == server);
    report.map(|report| report.granted.clone()).unwrap_or_default()
}

/// The server of this machine that somebody named.
pub(super) fn local_server<'a>(
    found: &'a open::FoundPlugins,
    server: &str,
) -> Result<&'a Candidate, Error> {
    let candidate = found.candidate(server)?;
    match &candidate.source {
        CodeSource::Mcp(found) if matches!(found.place, ServerLocation::Child(_)) => Ok(candidate),
        _ => Err(Error::Input(format!(
            "\"{server}\" is no MCP server that runs on this machine, so there is nothing to record"
        ))),
    }
}
