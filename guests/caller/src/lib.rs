//! Turns to the host for what it was granted: one tool for each thing that a plugin can ask for.

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::eval::{Evaluation, Subject, finding, summarize};
use tenon_sdk::inference::{self, CompletionRequest};
use tenon_sdk::messaging::{self, OutgoingMessage};
use tenon_sdk::{Context, Result, Value, eval, host_tools, log, memory, plugin, tool};

plugin!(tools: [list, call, ask, send, recall, secret, tell], evals: [judged]);

/// Options of `judged`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JudgeEvalOptions {
    /// The model that judges.
    model: String,
}

/// Passes when a model that is shown the output says something good.
#[eval]
pub async fn judged(subject: Subject, options: JudgeEvalOptions) -> Result<Evaluation> {
    let said = ask_model(options.model, subject.output_text()).await?;
    Ok(summarize(vec![finding("judged", said.contains("good"), said)]))
}

/// Lists the tools that this plugin may call.
#[tool]
pub async fn list() -> Result<String> {
    let tools = host_tools::list().await?;
    Ok(tools.into_iter().map(|tool| tool.name).collect::<Vec<_>>().join(" "))
}

/// Calls a tool, and answers with its text.
#[tool]
pub async fn call(
    /// The tool.
    name: String,
    /// Its arguments.
    arguments: Value,
) -> Result<String> {
    Ok(host_tools::call(name, arguments).await?.plain_text())
}

/// Asks a model.
#[tool]
pub async fn ask(
    /// The model.
    model: String,
    /// What to ask.
    prompt: String,
) -> Result<String> {
    ask_model(model, prompt).await
}

async fn ask_model(model: String, prompt: String) -> Result<String> {
    Ok(inference::complete(CompletionRequest::new(model, prompt)).await?.plain_text())
}

/// Sends a message.
#[tool]
pub async fn send(
    /// Where to.
    channel: Option<String>,
    /// What.
    text: String,
) -> Result<String> {
    messaging::send(OutgoingMessage { channel, text, extra: None }).await?;
    Ok("sent".into())
}

/// Searches the host's memory.
#[tool]
pub async fn recall(
    /// What for.
    query: String,
) -> Result<String> {
    let found = memory::search(query, 3).await?;
    Ok(found.into_iter().map(|memory| memory.text).collect::<Vec<_>>().join("; "))
}

/// A secret, spelt out so that nobody recognizes it.
#[tool]
pub async fn secret(
    name: String,
    /// Whether it is said as it is.
    plain: bool,
) -> Result<String> {
    let secret = tenon_sdk::secrets::get(&name)?;
    tenon_sdk::log::info(format!("the secret is {secret}"));
    match plain {
        true => Ok(format!("it is {secret}")),
        false => Ok(secret.chars().map(|c| format!("{c} ")).collect()),
    }
}

/// Says something in each way that there is beside an answer.
#[tool]
pub async fn tell(context: &Context, said: String) -> String {
    let [message, key, value] = ["message", "key", "value"].map(|what| format!("{what}: {said}"));
    log::write(log::Level::Info, &message, &[(&key, &value)]);
    println!("{said}");
    eprintln!("{said}");
    context.progress(1.0, None, Some(&said));
    "told".into()
}
