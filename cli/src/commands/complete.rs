//! `tenon complete`

use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;
use tenon_host::meta::TRUNCATED;
use tenon_host::types::completion_json::{self, summary};
use tenon_host::types::mcp_json;
use tenon_host::types::text::one_line;
use tenon_host::types::{
    CompletionRequest, CompletionSummary, Delta, Message, ModelFeatures, Part, Role, StopReason,
    ToolCall,
};
use tenon_host::{CallError, Caller, Platform};

use crate::error::Error;
use crate::hint::as_typed;
use crate::open::trust;
use crate::{Common, open, output};

/// Ask a language model, or list the models
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon complete
  tenon complete echo --prompt 'Hello there'
  tenon complete echo_provider/echo --system 'Be brief' --prompt 'Hello there' --stream
  tenon --json complete echo --messages @conversation.json --tools @tools.json

A conversation is a list of objects with `role` (system, user, assistant or tool) and `content`: a text \
or a list of parts, like `parts` of an answer. Tools have the format of `tenon --json tools`. The \
model's thinking, its tool calls, and why it stopped early go to standard error, or with --json into \
the object.")]
pub(crate) struct Args {
    /// The model, by its id or as PLUGIN/ID; without it, the models are listed
    model: Option<String>,
    /// What to ask, as the last message
    #[arg(long, value_name = "TEXT", requires = "model")]
    prompt: Option<String>,
    /// The system prompt
    #[arg(long, value_name = "TEXT", requires = "model")]
    system: Option<String>,
    /// The conversation so far: a JSON list, @FILE, or -
    #[arg(long, value_name = "JSON", requires = "model")]
    messages: Option<String>,
    /// The tools that the model may call: a JSON list, @FILE, or -
    #[arg(long, value_name = "JSON", requires = "model")]
    tools: Option<String>,
    /// Whether it must call one: auto, none, required, or the name of a tool
    #[arg(long, value_name = "CHOICE", requires = "tools")]
    tool_choice: Option<String>,
    /// Print the answer as it arrives; with --json, one object per line
    #[arg(long, requires = "model")]
    stream: bool,
    /// The maximum number of tokens to generate
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// The sampling temperature
    #[arg(long, value_name = "NUMBER")]
    temperature: Option<f64>,
    /// Nucleus sampling: the probability mass to choose from
    #[arg(long, value_name = "NUMBER")]
    top_p: Option<f64>,
    /// A stop sequence; may be repeated
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// The sampling seed, if the provider supports one
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// A JSON Schema that the answer must match: JSON, @FILE, or -
    #[arg(long, value_name = "JSON")]
    response_schema: Option<String>,
    /// The provider's own settings: a JSON object, @FILE, or -
    #[arg(long, value_name = "JSON")]
    extra: Option<String>,
    /// Timeout of the whole answer, such as 30s
    #[arg(long, value_name = "DURATION", value_parser = crate::duration)]
    timeout: Option<Duration>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let request = args.model.clone().map(|model| request(model, &args)).transpose()?;
    // An MCP server has no models, and those that have some may turn to it.
    let found = open::found(common)?;
    let untrusted = found.discovery.untrusted.clone();
    let platform = found.platform_with_hooks();
    open::with(common, platform, async |platform| {
        let Some(request) = request else {
            return list(common, platform).await;
        };
        let caller = Caller { timeout: args.timeout, ..open::caller(args.timeout) };
        let model = request.model.clone();
        let result = match args.stream {
            true => stream(common, platform, request, &caller).await,
            false => complete(common, platform, request, &caller).await,
        };
        let result = result.map_err(|error| match error {
            Error::Call(CallError::NotFound { what: "model", .. }) => {
                let of_project = untrusted
                    .as_ref()
                    .map(|untrusted| trust::unknown(&format!("model \"{model}\""), untrusted));
                open::unserved(platform, &model).or(of_project).unwrap_or(error)
            }
            error => error,
        });
        match result {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(Error::Call(error)) => Err(misspelt(platform, &model, error).await.into()),
            Err(error) => Err(error),
        }
    })
    .await
}

/// What came of a model of a named plugin that did not answer, where the plugin lists none of this name.
async fn misspelt(platform: &Platform, model: &str, error: CallError) -> CallError {
    let CallError::Failed { plugin, .. } = &error else { return error };
    if !error.may_be_misspelt() || model.split_once('/').is_none_or(|(id, _)| *id != **plugin) {
        return error;
    }
    let listed = platform.models().await;
    let own = listed.iter().filter(|listed| listed.plugin == *plugin);
    let names: Vec<String> =
        own.map(|listed| format!("{}/{}", listed.plugin, listed.info.id)).collect();
    match names.is_empty() || names.iter().any(|known| known == model) {
        true => error,
        false => CallError::not_found("model", model, names.iter().map(String::as_str)),
    }
}

/// Lists the models of all providers.
async fn list(common: &Common, platform: &Platform) -> Result<ExitCode, Error> {
    let models = platform.models().await;
    if common.json {
        let form = |model: &tenon_host::ServedModel| {
            let info = &model.info;
            json!({
                "plugin": &*model.plugin,
                "id": info.id,
                "provider": info.provider,
                "title": info.title,
                "contextWindow": info.context_window,
                "maxOutputTokens": info.max_output_tokens,
                "features": features(info.features),
            })
        };
        output::json(&models.iter().map(form).collect::<Vec<Value>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let nothing = "no plugin has models; `tenon plugins` lists the plugins";
    output::if_empty(models.is_empty(), nothing);
    for model in &models {
        let title = model.info.title.as_deref().unwrap_or_default();
        let name = format!("{}/{}", model.plugin, model.info.id);
        let line = format!("{}  {}", one_line(&name), one_line(title));
        output::line(line.trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

fn features(features: ModelFeatures) -> Vec<&'static str> {
    let ModelFeatures { tools, images, audio, response_schema } = features;
    let known = [
        ("tools", tools),
        ("images", images),
        ("audio", audio),
        ("responseSchema", response_schema),
    ];
    known.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

fn request(model: String, args: &Args) -> Result<CompletionRequest, Error> {
    let inputs = [&args.messages, &args.tools, &args.response_schema, &args.extra];
    if inputs.into_iter().flatten().filter(|text| *text == "-").count() > 1 {
        return Err(Error::Input("standard input can be one of the options, not several".into()));
    }
    let read = |what: &str, text: &Option<String>| {
        text.as_ref().map(|text| output::read_json(what, text)).transpose()
    };
    let object = |what: &str, text: &Option<String>| match read(what, text)? {
        Some(value @ Value::Object(_)) => Ok(Some(value.to_string())),
        None => Ok(None),
        Some(_) => Err(Error::Input(format!("{what} must be a JSON object"))),
    };
    let system = args.system.iter().map(|text| Message::text(Role::System, text));
    let mut messages: Vec<Message> = system.collect();
    if let Some(value) = read("messages", &args.messages)? {
        let said = completion_json::messages(value);
        messages.extend(said.map_err(|problem| Error::Input(format!("messages: {problem}")))?);
    }
    messages.extend(args.prompt.iter().map(|text| Message::text(Role::User, text)));
    if messages.iter().all(|message| message.role == Role::System) {
        return Err(Error::Input("there is nothing to ask: give --prompt or --messages".into()));
    }
    let tools = read("tools", &args.tools)?.map(|value| completion_json::tools(&value)).transpose();
    let mut request = CompletionRequest::new(model, "");
    request.messages = messages;
    request.tools =
        tools.map_err(|problem| Error::Input(format!("tools: {problem}")))?.unwrap_or_default();
    if let Some(choice) = &args.tool_choice {
        request.tool_choice =
            completion_json::tool_choice(choice, &request.tools).map_err(Error::Input)?;
    }
    request.sampling.max_tokens = args.max_tokens;
    request.sampling.temperature = args.temperature;
    request.sampling.top_p = args.top_p;
    request.sampling.stop_sequences.clone_from(&args.stop);
    request.sampling.seed = args.seed;
    request.response_schema = object("the response schema", &args.response_schema)?;
    request.extra = object("extra", &args.extra)?;
    Ok(request)
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
        for part in &completion.parts {
            match part {
                Part::Reasoning(reasoning) => aside("thinks", &reasoning.text),
                Part::ToolCall(ToolCall { name, arguments, .. }) => {
                    aside("asks for", &format!("{name} {arguments}"));
                }
                Part::Image(media) | Part::Audio(media) => {
                    let what = format!("{}, {} bytes", media.mime_type, media.data.len());
                    aside("gives", &what);
                }
                Part::Other(json) => aside("gives", json),
                Part::Text(_) | Part::ToolCallResult(_) => {}
            }
        }
        stopped(&completion.summary.stop_reason);
        if let Some(cut) = shortened(&completion.summary) {
            aside("cut", &cut);
        }
        return output::text(&text);
    }
    let mut form = completion_json::completion(&completion);
    form["text"] = json!(text);
    output::json(&form)
}

/// How long an answer was that was cut, and where the whole is.
fn shortened(summary: &CompletionSummary) -> Option<String> {
    let about = mcp_json::ours_in(summary.extra.as_deref()).remove(TRUNCATED)?;
    let length = about["bytes"].as_u64()?;
    Some(match about["uri"].as_str() {
        Some(uri) => {
            as_typed(&format!("of {length} bytes; `tenon resources read {uri}` reads all")).into()
        }
        None => format!("of {length} bytes"),
    })
}

/// Says what is no part of the text.
fn aside(what: &str, text: &str) {
    use std::io::Write;
    // Where standard error is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "[{what}: {}]", one_line(text));
}

/// Says why a model stopped, where it was not done.
fn stopped(reason: &StopReason) {
    if !matches!(reason, StopReason::EndTurn) {
        aside("stopped", completion_json::stop_reason(reason));
    }
}

async fn stream(
    common: &Common,
    platform: &Platform,
    request: CompletionRequest,
    caller: &Caller,
) -> Result<(), Error> {
    let model = request.model.clone();
    let mut answer = platform.stream(request, caller).await?;
    let mut asides = BufferedParts::default();
    while let Some(delta) = answer.next().await {
        match (common.json, delta) {
            (true, delta) => output::json_line(&piece(&delta))?,
            (false, Delta::Text(text)) => output::piece(&text)?,
            (false, delta) => asides.add(delta),
        }
    }
    let plugin = answer.plugin().cloned().unwrap_or_else(|| model.into());
    let end = answer.finish().await.map_err(|failure| CallError::Failed { plugin, failure })?;
    if common.json {
        return output::json_line(&summary(&end));
    }
    output::line("")?;
    asides.tell();
    stopped(&end.stop_reason);
    Ok(())
}

/// What comes in pieces beside the text. It is told when it is whole: pieces of several things come
/// between each other.
#[derive(Default)]
struct BufferedParts {
    reasoning: String,
    /// Names and arguments of calls, by their index.
    calls: std::collections::BTreeMap<u32, (String, String)>,
}

impl BufferedParts {
    fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Text(_) => {}
            Delta::Reasoning(text) => self.reasoning.push_str(&text),
            Delta::ToolCallStart(start) => {
                self.calls.insert(start.index, (start.name, String::new()));
            }
            Delta::ToolCallArguments(more) => {
                self.calls.entry(more.index).or_default().1.push_str(&more.fragment);
            }
        }
    }

    fn tell(&self) {
        if !self.reasoning.is_empty() {
            aside("thinks", &self.reasoning);
        }
        for (name, arguments) in self.calls.values() {
            aside("asks for", &format!("{name} {arguments}"));
        }
    }
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
