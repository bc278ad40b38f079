//! `tenon prompts`

use std::process::ExitCode;
use tenon_host::types::mcp_json::{self, McpJson};
use tenon_host::types::text::one_line;
use tenon_host::types::{Prompt, PromptDefinition};
use tenon_host::{CallError, Caller, Platform};

use super::call::block;
use super::resources::list_all;
use crate::error::Error;
use crate::{Common, open, output};

/// List or fill in the prompts of plugins
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon prompts list
  tenon prompts list reviews
  tenon prompts get reviews summary language=en 'topic=error handling'
  tenon --json prompts get reviews summary | jq '.messages'")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the prompts of a plugin, or of all, with their arguments
    List {
        /// The plugin
        plugin: Option<String>,
    },
    /// Fill in a prompt of a plugin, and print its messages
    Get {
        /// The plugin
        plugin: String,
        /// The prompt
        name: String,
        /// What it is filled in with
        #[arg(value_name = "KEY=VALUE", value_parser = argument)]
        arguments: Vec<(String, String)>,
    },
}

fn argument(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_string(), value.to_string())),
        _ => Err("it is not KEY=VALUE".into()),
    }
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    match args.verb {
        Verb::List { plugin: None } => {
            open::with(common, found.platform(|_| true), async |platform| {
                let registry = platform.registry();
                let mut all = Vec::new();
                for plugin in registry.plugins().iter().filter(|plugin| plugin.has_prompts()) {
                    let plugin = plugin.id();
                    let listed = platform.prompts(plugin, &Caller::default()).await;
                    all.push((plugin.to_string(), listed));
                }
                list_all(common, platform, "prompts", all, columns)
            })
            .await
        }
        Verb::List { plugin: Some(plugin) } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                list(common, &platform.prompts(&plugin, &Caller::default()).await?)
            })
            .await
        }
        Verb::Get { plugin, name, arguments } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                match platform.prompt(&plugin, &name, arguments, &Caller::default()).await {
                    Ok(prompt) => show(common, &prompt),
                    Err(error) => Err(misspelt(platform, &plugin, &name, error).await.into()),
                }
            })
            .await
        }
    }
}

/// What came of a prompt that a plugin did not fill in, where it lists none of this name.
async fn misspelt(platform: &Platform, plugin: &str, name: &str, error: CallError) -> CallError {
    if !error.may_be_misspelt() {
        return error;
    }
    let Ok(listed) = platform.prompts(plugin, &Caller::default()).await else { return error };
    let names = || listed.iter().map(|prompt| prompt.name.as_str());
    match names().any(|known| known == name) {
        true => error,
        false => CallError::not_found("prompt", name, names()),
    }
}

fn list(common: &Common, listed: &[PromptDefinition]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&listed.iter().map(McpJson).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    output::if_empty(listed.is_empty(), "it has no prompts");
    for prompt in listed {
        let (name, about) = columns(prompt);
        output::line(format!("{}  {}", one_line(&name), one_line(&about)).trim_end())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// A prompt with its arguments, and what it is for.
fn columns(prompt: &PromptDefinition) -> (String, String) {
    let arguments = prompt.arguments.iter().map(|argument| match argument.required {
        true => format!(" {}=…", argument.name),
        false => format!(" [{}=…]", argument.name),
    });
    let arguments: String = arguments.collect();
    let about = prompt.description.as_deref().or(prompt.title.as_deref()).unwrap_or_default();
    let about = about.lines().next().unwrap_or_default();
    (format!("{}{arguments}", prompt.name), about.to_string())
}

fn show(common: &Common, prompt: &Prompt) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&McpJson(prompt))?;
        return Ok(ExitCode::SUCCESS);
    }
    for message in &prompt.messages {
        output::line(format!("[{}]", mcp_json::role(message.role)))?;
        block(&message.content)?;
    }
    Ok(ExitCode::SUCCESS)
}
