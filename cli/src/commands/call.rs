//! `tenon call`

use std::process::ExitCode;
use std::time::Duration;
use tenon_host::types::mcp_json::McpJson;
use tenon_host::types::text::one_line;
use tenon_host::types::{Content, ContentBlock, ResourceBody, ToolResult};
use tenon_host::{Call, Caller};

use crate::error::{Error, Exit};
use crate::{Common, open, output, progress};

/// Call a tool
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon call text_tools__count '{\"text\": \"one two\"}'
  tenon call text_tools__count @arguments.json --timeout 2s
  echo '{}' | tenon --json call server__status -")]
pub(crate) struct Args {
    /// The tool, as `tenon tools` lists it
    name: String,
    /// Its arguments: a JSON object, @FILE, or - for standard input
    #[arg(value_name = "JSON", default_value = "{}", hide_default_value = true)]
    arguments: String,
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
    let arguments = output::read_json("arguments", &arguments)?;
    let found = open::found(common)?;
    let caller = Caller { agent_id: agent, session_id: session, ..open::caller(timeout) };
    let (tool, passed) = (name.clone(), arguments.clone());
    open::with(common, found.platform_for_tool(&tool, &passed), async |platform| {
        let call = platform.call(Call { name, arguments, caller });
        show(common, &progress::shown(common, platform, call).await?)
    })
    .await
}

fn show(common: &Common, result: &ToolResult) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&McpJson(result))?;
    } else {
        print(result)?;
    }
    Ok(if result.is_error { Exit::Failed } else { Exit::Success }.into())
}

/// Prints the text of a result, and what else there is as a word about it. A result whose content says
/// nothing may say it to programs alone.
fn print(result: &ToolResult) -> Result<(), Error> {
    let is_empty =
        |block: &ContentBlock| matches!(&block.body, Content::Text(text) if text.is_empty());
    match &result.structured {
        Some(structured) if result.content.iter().all(is_empty) => output::json_text(structured),
        _ => result.content.iter().try_for_each(block),
    }
}

/// The same for one block of it.
pub(super) fn block(block: &ContentBlock) -> Result<(), Error> {
    match &block.body {
        Content::Text(text) => output::text(text),
        Content::Image(media) => output::text(&format!(
            "[image: {}, {} bytes]",
            one_line(&media.mime_type),
            media.data.len()
        )),
        Content::Audio(media) => output::text(&format!(
            "[audio: {}, {} bytes]",
            one_line(&media.mime_type),
            media.data.len()
        )),
        Content::ResourceLink(link) => {
            output::text(&format!("[resource: {}, {}]", one_line(&link.name), one_line(&link.uri)))
        }
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) => output::text(text),
            ResourceBody::Blob(bytes) => output::text(&format!(
                "[resource: {}, {} bytes]",
                one_line(&contents.uri),
                bytes.len()
            )),
        },
        Content::Other(json) => output::text(json),
    }
}
