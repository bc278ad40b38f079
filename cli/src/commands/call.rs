//! `tenon call`

use std::process::ExitCode;
use std::time::Duration;
use tenon_host::types::{Content, ResourceBody, ToolResult};
use tenon_host::{Call, Caller, wire};

use crate::error::Error;
use crate::{Common, open, output};

/// Call a tool
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon call text-tools__count '{\"text\": \"one two\"}'
  tenon call text-tools__count @arguments.json --timeout 2s
  echo '{}' | tenon --json call server__status -")]
pub(crate) struct Args {
    /// The tool, as `tenon tools` lists it
    name: String,
    /// Its arguments: a JSON object, @FILE, or - for standard input
    #[arg(value_name = "JSON", default_value = "{}", hide_default_value = true)]
    arguments: String,
    /// How long it may take, such as 500ms or 2s
    #[arg(long, value_name = "DURATION", value_parser = humantime::parse_duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { name, arguments, timeout } = args;
    let arguments = output::read_json("arguments", &arguments)?;
    let platform = open::platform_for_tool(common, &name).await?;
    let caller = Caller { timeout, ..Caller::default() };
    let result = platform.call(Call { name, arguments, caller }).await;
    platform.shutdown().await;
    let result = result?;
    if common.json {
        output::json(&wire::tool_result(&result))?;
    } else {
        print(&result)?;
    }
    Ok(if result.is_error { ExitCode::from(1) } else { ExitCode::SUCCESS })
}

/// Prints the text of a result, and what else there is as a word about it.
fn print(result: &ToolResult) -> Result<(), Error> {
    for block in &result.content {
        match &block.body {
            Content::Text(text) => output::line(text)?,
            Content::Image(media) => {
                output::line(format!("[image: {}, {} bytes]", media.mime_type, media.data.len()))?;
            }
            Content::Audio(media) => {
                output::line(format!("[audio: {}, {} bytes]", media.mime_type, media.data.len()))?;
            }
            Content::ResourceLink(link) => {
                output::line(format!("[resource: {}, {}]", link.name, link.uri))?;
            }
            Content::Resource(contents) => match &contents.body {
                ResourceBody::Text(text) => output::line(text)?,
                ResourceBody::Blob(bytes) => {
                    output::line(format!("[resource: {}, {} bytes]", contents.uri, bytes.len()))?;
                }
            },
            Content::Other(json) => output::line(json)?,
        }
    }
    Ok(())
}
