//! `tenon complete`

use futures::StreamExt;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tenon_host::model::{CompletionRequest, CompletionSummary, Delta, Part, StopReason};
use tenon_host::{CallError, Caller, Platform, PluginKind};

use crate::error::Error;
use crate::{Common, open, output};

/// Ask a language model
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon complete echo --prompt 'Hello there'
  tenon complete echo_provider/echo --prompt 'Hello there' --stream")]
pub(crate) struct Args {
    /// The model, by its id or as PLUGIN/ID
    model: String,
    /// What to ask
    #[arg(long, value_name = "TEXT")]
    prompt: String,
    /// Print the answer as it comes; with --json, an object a line
    #[arg(long)]
    stream: bool,
    /// The most tokens to write
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// How long the whole answer may take, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    // An MCP server has no models.
    let found = open::found(common)?;
    let platform = found.platform(|candidate| candidate.kind() != PluginKind::Mcp);
    open::with(common, platform, async |platform| {
        let caller = open::caller(args.timeout);
        let model = args.model.clone();
        let result = match args.stream {
            true => stream(common, platform, request(args), &caller).await,
            false => complete(common, platform, request(args), &caller).await,
        };
        let result = result.map_err(|error| match error {
            Error::Call(CallError::NotFound { what: "model", .. }) => {
                open::unserved(platform, &model).unwrap_or(error)
            }
            error => error,
        });
        result.map(|()| ExitCode::SUCCESS)
    })
    .await
}

fn request(args: Args) -> CompletionRequest {
    let mut request = CompletionRequest::new(args.model, args.prompt);
    request.limits.max_tokens = args.max_tokens;
    request
}

async fn complete(
    common: &Common,
    platform: &Platform,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<(), Error> {
    let completion = platform.complete(request, caller).await?;
    let texts = completion.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if !common.json {
        return output::text(&text);
    }
    let mut form = summary(&completion.summary);
    form["text"] = json!(text);
    form["toolCalls"] = completion
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall(call) => {
                Some(json!({ "id": call.id, "name": call.name, "arguments": call.arguments }))
            }
            _ => None,
        })
        .collect();
    output::json(&form)
}

async fn stream(
    common: &Common,
    platform: &Platform,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<(), Error> {
    let model = request.model.clone();
    let mut answer = platform.stream(request, caller).await?;
    while let Some(delta) = answer.next().await {
        match (common.json, delta) {
            (true, delta) => output::json_line(&piece(&delta))?,
            (false, Delta::Text(text)) => output::piece(&text)?,
            (false, _) => {}
        }
    }
    let plugin = answer.plugin().cloned().unwrap_or_else(|| model.into());
    let end = answer.finish().await.map_err(|failure| CallError::Failed { plugin, failure })?;
    if common.json {
        return output::json_line(&summary(&end));
    }
    output::line("")
}

fn piece(delta: &Delta) -> Value {
    match delta {
        Delta::Text(text) => json!({ "text": text }),
        Delta::Reasoning(text) => json!({ "reasoning": text }),
        Delta::ToolCallStart(start) => {
            json!({ "toolCall": { "index": start.index, "id": start.id, "name": start.name } })
        }
        Delta::ToolCallArguments(arguments) => {
            json!({ "toolCall": { "index": arguments.index, "arguments": arguments.fragment } })
        }
    }
}

fn summary(summary: &CompletionSummary) -> Value {
    let stop = match &summary.stop_reason {
        StopReason::EndTurn => "end-turn",
        StopReason::MaxTokens => "max-tokens",
        StopReason::StopText => "stop-text",
        StopReason::ToolUse => "tool-use",
        StopReason::Refusal => "refusal",
        StopReason::Other(reason) => reason,
    };
    json!({
        "model": summary.model,
        "stopReason": stop,
        "usage": { "input": summary.usage.input, "output": summary.usage.output },
    })
}
