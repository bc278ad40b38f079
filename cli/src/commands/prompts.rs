//! `tenon prompts`

use std::process::ExitCode;
use tenon_host::types::mcp_json::{self, McpJson};
use tenon_host::types::text::one_line;
use tenon_host::types::{
    ArgumentCompletion, CompletionReference, Prompt, PromptDefinition, Suggestions,
};
use tenon_host::{CallError, Caller, Platform};

use super::resources::list_all;
use crate::content::block;
use crate::error::Error;
use crate::{Common, open, output};

/// List or fill in the prompts of plugins
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon prompts list
  tenon prompts list reviews
  tenon prompts get reviews summary language=en 'topic=error handling'
  tenon --json prompts get reviews summary | jq '.messages'
  tenon prompts suggest reviews summary language e --with 'topic=error handling'")]
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
    /// Suggest values for an argument of a prompt, the likeliest first
    Suggest {
        /// The plugin
        plugin: String,
        /// The prompt
        name: String,
        #[command(flatten)]
        typed: PartialArgument,
    },
}

/// An argument that is being filled in.
#[derive(clap::Args)]
pub(super) struct PartialArgument {
    /// The argument
    argument: String,
    /// What is typed of its value so far
    #[arg(value_name = "VALUE", default_value = "", hide_default_value = true)]
    value: String,
    /// Another argument that has its value already; can be repeated
    #[arg(long = "with", value_name = "KEY=VALUE", value_parser = argument)]
    others: Vec<(String, String)>,
}

impl PartialArgument {
    /// What is asked of the plugin, where the argument is one of this prompt or template.
    pub(super) fn of(self, reference: CompletionReference) -> ArgumentCompletion {
        let Self { argument: name, value, others } = self;
        ArgumentCompletion { reference, name, value, others }
    }
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
        Verb::Suggest { plugin, name, typed } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                let wanted = typed.argument.clone();
                let argument = typed.of(CompletionReference::Prompt(name.clone()));
                match platform.suggest(&plugin, argument, &Caller::default()).await {
                    Ok(suggestions) => {
                        if suggestions.values.is_empty() {
                            check_argument(platform, &plugin, &name, &wanted).await?;
                        }
                        suggest(common, &suggestions)
                    }
                    Err(error) => Err(misspelt(platform, &plugin, &name, error).await.into()),
                }
            })
            .await
        }
    }
}

/// Checks that a prompt without suggestions has an argument of this name, where its plugin lists the prompt.
async fn check_argument(
    platform: &Platform,
    plugin: &str,
    name: &str,
    argument: &str,
) -> Result<(), CallError> {
    let listed = platform.prompts(plugin, &Caller::default()).await.unwrap_or_default();
    let Some(prompt) = listed.iter().find(|prompt| prompt.name == name) else { return Ok(()) };
    let names = || prompt.arguments.iter().map(|known| known.name.as_str());
    match names().any(|known| known == argument) {
        true => Ok(()),
        false => Err(CallError::not_found("argument", argument, names())),
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

/// Shows values for an argument, one in a line.
pub(super) fn suggest(common: &Common, suggestions: &Suggestions) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&McpJson(suggestions))?;
        return Ok(ExitCode::SUCCESS);
    }
    let Suggestions { values, total, has_more, .. } = suggestions;
    output::if_empty(values.is_empty(), "there are no suggestions");
    for value in values {
        output::line(one_line(value))?;
    }
    if *has_more {
        output::note(&match total {
            Some(total) => format!("these are {} of {total} values", values.len()),
            None => "there are more values".to_string(),
        });
    }
    Ok(ExitCode::SUCCESS)
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
