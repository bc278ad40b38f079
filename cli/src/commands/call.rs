//! `tenon call`

use std::process::ExitCode;
use std::time::Duration;
use tenon_host::Caller;
use tenon_host::types::ToolResult;
use tenon_host::types::mcp_json::McpJson;

use crate::client::PreparedAnswers;
use crate::dev::{ForwardedCall, call_running};
use crate::error::{Error, Exit};
use crate::tool_arguments::RawArguments;
use crate::{Common, content, open, output, progress};

/// Call a tool
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon call text_tools__count text='one two'
  tenon call text_tools__count '{\"text\": \"one two\"}'
  tenon call text_tools__count @arguments.json --timeout 2s
  echo '{}' | tenon --json call server__status -

`tenon tools NAME` shows which arguments a tool takes. Its schema decides what VALUE is: text, or JSON of another \
type. A KEY that is given several times has a list.")]
pub(crate) struct Args {
    /// The tool, as `tenon tools` lists it
    name: String,
    /// Its arguments: any number of KEY=VALUE; or a JSON object, @FILE, or - for standard input
    #[arg(value_name = "KEY=VALUE|JSON")]
    arguments: Vec<String>,
    /// Timeout, such as 500ms or 2s
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    timeout: Option<Duration>,
    /// The agent that makes the call
    #[arg(long, value_name = "ID")]
    agent: Option<String>,
    /// The conversation or session that the call belongs to
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { name, arguments, timeout, agent, session } = args;
    let arguments = RawArguments::parse(&arguments)?;
    let caller = Caller { agent_id: agent, session_id: session, ..open::caller(timeout) };
    // A `tenon dev` of this project has the plugins loaded, and builds what was saved a moment ago.
    if common.is_of_project() {
        let call = ForwardedCall::new(name.clone(), arguments.clone(), caller.clone());
        let call = call.answered_by(PreparedAnswers::read(common)?);
        if let Some(result) = call_running(&common.project, &call).await? {
            return show(common, &result);
        }
    }
    let found = open::found(common)?;
    open::with(common, found.platform_for_tool(&name, &arguments), async |platform| {
        let call = platform.call(arguments.call(platform, name.clone(), caller));
        show(common, &progress::shown(common, platform, call).await?)
    })
    .await
}

fn show(common: &Common, result: &ToolResult) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&McpJson(result))?;
    } else {
        content::print(result)?;
    }
    Ok(if result.is_error { Exit::Failed } else { Exit::Success }.into())
}
