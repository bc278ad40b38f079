//! `tenon resources`

use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_host::meta::{STRUCTURED, TRUNCATED};
use tenon_host::types::mcp_json::{self, McpJson, McpJsonWith};
use tenon_host::types::text::one_line;
use tenon_host::types::{
    CompletionReference, ListedResource, ResourceBody, ResourceContents, ResourceTemplate,
};
use tenon_host::{CallError, Caller, Failure, Platform, RESULT_URI, ReadLimit};

use super::prompts::{PartialArgument, suggest};
use crate::error::Error;
use crate::{Common, open, output};

/// List or read resources of plugins, and read results that were truncated
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon resources list
  tenon resources list files
  tenon resources templates files
  tenon resources suggest notes 'notes://{name}' name sho
  tenon resources read files file:///notes.txt --max-bytes 4096
  tenon resources read files file:///book.txt --max-tokens 8000
  tenon resources read tenon://results/4fJ2c…
  tenon resources read images images://logo --output logo.png")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the resources of a plugin, or of all
    List {
        /// The plugin
        plugin: Option<String>,
    },
    /// List the resource templates of a plugin, or of all
    Templates {
        /// The plugin
        plugin: Option<String>,
    },
    /// Suggest values for a variable of a resource template, the likeliest first
    Suggest {
        /// The plugin
        plugin: String,
        /// The template, as `tenon resources templates` shows it
        template: String,
        #[command(flatten)]
        typed: PartialArgument,
    },
    /// Read a resource of a plugin, or a truncated result by its URI
    Read {
        /// The plugin and the URI; for a result the URI alone
        #[arg(value_name = "[PLUGIN] URI", num_args = 1..=2, required = true)]
        which: Vec<String>,
        /// Read at most this many bytes, and say how many are left out
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        max_bytes: Option<u64>,
        /// Read at most this many tokens of a language model, counted as four bytes each
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        max_tokens: Option<u64>,
        /// Write the text or bytes to a file; of a result, its blocks without the structured content
        #[arg(long, value_name = "FILE", conflicts_with_all = ["max_bytes", "max_tokens"])]
        output: Option<PathBuf>,
    },
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    match args.verb {
        Verb::List { plugin: None } => {
            open::with(common, found.platform(|_| true), async |platform| {
                let mut all = Vec::new();
                for plugin in having(platform) {
                    let listed = platform.resources(&plugin, &Caller::default()).await;
                    all.push((plugin, listed));
                }
                list_all(common, platform, "resources", all, |resource: &ListedResource| {
                    (resource.link.uri.clone(), resource.link.name.clone())
                })
            })
            .await
        }
        Verb::Templates { plugin: None } => {
            open::with(common, found.platform(|_| true), async |platform| {
                let mut all = Vec::new();
                for plugin in having(platform) {
                    let listed = platform.resource_templates(&plugin, &Caller::default()).await;
                    // Not every plugin with resources has templates.
                    let listed = match listed {
                        Err(CallError::Failed { failure: Failure::Unsupported(_), .. }) => {
                            Ok(Vec::new())
                        }
                        listed => listed,
                    };
                    all.push((plugin, listed));
                }
                list_all(
                    common,
                    platform,
                    "resource templates",
                    all,
                    |template: &ResourceTemplate| {
                        (template.uri_template.clone(), template.name.clone())
                    },
                )
            })
            .await
        }
        Verb::List { plugin: Some(plugin) } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                list(common, &platform.resources(&plugin, &Caller::default()).await?)
            })
            .await
        }
        Verb::Templates { plugin: Some(plugin) } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                let listed = platform.resource_templates(&plugin, &Caller::default()).await?;
                list_templates(common, &listed)
            })
            .await
        }
        Verb::Suggest { plugin, template, typed } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                let argument = typed.of(CompletionReference::ResourceTemplate(template.clone()));
                match platform.suggest(&plugin, argument, &Caller::default()).await {
                    Ok(suggestions) => suggest(common, &suggestions),
                    Err(error) => Err(misspelt(platform, &plugin, &template, error).await.into()),
                }
            })
            .await
        }
        Verb::Read { which, max_bytes, max_tokens, output } => match &which[..] {
            [uri] if uri.starts_with(RESULT_URI) => {
                open::with(common, found.build(|_| false), async |platform| {
                    let budget = budget(max_bytes, max_tokens);
                    let read = match output {
                        Some(_) => platform.read_result(uri).await,
                        None => platform.read_result_within(uri, budget).await,
                    };
                    let read = read.map_err(|error| no_result(uri, &error));
                    give(common, output.as_deref(), &read?)
                })
                .await
            }
            [plugin, uri] => {
                open::with(common, found.platform_with(plugin), async |platform| {
                    let budget = budget(max_bytes, max_tokens);
                    let caller = Caller { raw: output.is_some(), ..Caller::default() };
                    let read = platform.read_resource_within(plugin, uri, budget, &caller).await?;
                    // A file has room for what is too long to be shown.
                    let whole = match output.as_ref().and_then(|_| kept(&read)) {
                        Some(uri) => Some(
                            platform
                                .read_result(&uri)
                                .await
                                .map_err(|error| no_result(&uri, &error))?,
                        ),
                        None => None,
                    };
                    give(common, output.as_deref(), &whole.unwrap_or(read))
                })
                .await
            }
            _ => {
                let problem = format!(
                    "name a plugin and the URI of one of its resources, or only the URI of a result, which \
                     begins with {RESULT_URI}"
                );
                Err(Error::Input(problem))
            }
        },
    }
}

/// What came of a template that a plugin suggested no values for, where it lists none of this text.
async fn misspelt(
    platform: &Platform,
    plugin: &str,
    template: &str,
    error: CallError,
) -> CallError {
    if !error.may_be_misspelt() {
        return error;
    }
    let listed = platform.resource_templates(plugin, &Caller::default()).await;
    let Ok(listed) = listed else { return error };
    let templates = || listed.iter().map(|listed| listed.uri_template.as_str());
    match templates().any(|known| known == template) {
        true => error,
        false => CallError::not_found("resource template", template, templates()),
    }
}

/// That a result cannot be read by its URI.
fn no_result(uri: &str, error: &io::Error) -> Error {
    Error::Input(match error.kind() {
        io::ErrorKind::NotFound => {
            format!("there is no result {uri}; the oldest make room for others")
        }
        _ => format!("the result {uri} cannot be read: {error}"),
    })
}

fn budget(max_bytes: Option<u64>, max_tokens: Option<u64>) -> ReadLimit {
    let length = |most: u64| usize::try_from(most).unwrap_or(usize::MAX);
    ReadLimit { max_bytes: max_bytes.map(length), max_tokens: max_tokens.map(length) }
}

/// The plugins that have resources.
fn having(platform: &Platform) -> Vec<String> {
    let registry = platform.registry();
    let plugins = registry.plugins().iter().filter(|plugin| plugin.has_resources());
    plugins.map(|plugin| plugin.id().to_string()).collect()
}

#[derive(Serialize)]
struct Owner<'a> {
    plugin: &'a str,
}

/// Lists what all plugins have, but for those of which the operator wants no list. One that cannot say
/// what it has is reported, and its error is that of the command; so is that of one which is not there.
pub(super) fn list_all<T>(
    common: &Common,
    platform: &Platform,
    what: &str,
    all: Vec<(String, Result<Vec<T>, CallError>)>,
    columns: impl Fn(&T) -> (String, String),
) -> Result<ExitCode, Error>
where
    for<'a> McpJson<'a, T>: Serialize,
{
    let mut code = open::code_of_failures(platform);
    let mut listed = Vec::new();
    for (plugin, result) in all {
        match result {
            Ok(items) => listed.push((plugin, items)),
            Err(CallError::Disabled { .. }) => {}
            Err(error) => {
                let error = Error::from(error);
                error.tell();
                code = code.max(error.exit_code());
            }
        }
    }
    let code = ExitCode::from(code);
    let items =
        listed.iter().flat_map(|(plugin, items)| items.iter().map(move |item| (plugin, item)));
    if common.json {
        let forms = items.map(|(plugin, item)| McpJsonWith(item, Owner { plugin }));
        output::json(&forms.collect::<Vec<_>>())?;
        return Ok(code);
    }
    let items: Vec<_> = items.collect();
    output::if_empty(items.is_empty(), &format!("there are no {what}"));
    for (plugin, item) in items {
        let (name, about) = columns(item);
        output::line(format!("{plugin}  {}  {}", one_line(&name), one_line(&about)).trim_end())?;
    }
    Ok(code)
}

fn list(common: &Common, listed: &[ListedResource]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&listed.iter().map(McpJson).collect::<Vec<_>>())?;
    } else {
        output::if_empty(listed.is_empty(), "it has no resources");
        for resource in listed {
            let (uri, name) = (one_line(&resource.link.uri), one_line(&resource.link.name));
            output::line(format!("{uri}  {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list_templates(common: &Common, listed: &[ResourceTemplate]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&listed.iter().map(McpJson).collect::<Vec<_>>())?;
    } else {
        output::if_empty(listed.is_empty(), "it has no resource templates");
        for template in listed {
            let (uri, name) = (one_line(&template.uri_template), one_line(&template.name));
            output::line(format!("{uri}  {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows what was read, or writes it to a file.
fn give(
    common: &Common,
    file: Option<&Path>,
    contents: &[ResourceContents],
) -> Result<ExitCode, Error> {
    let Some(file) = file else { return show(common, contents) };
    let blocks: Vec<_> = contents.iter().filter(|part| !is_structured(part)).collect();
    let parts = if blocks.is_empty() { contents.iter().collect() } else { blocks };
    let bytes = parts.iter().map(|part| match &part.body {
        ResourceBody::Text(text) => text.as_bytes(),
        ResourceBody::Blob(bytes) => bytes,
    });
    let bytes = bytes.collect::<Vec<&[u8]>>().concat();
    fs::write(file, bytes).map_err(|error| Error::Write(file.into(), error))?;
    Ok(ExitCode::SUCCESS)
}

/// Where the whole is kept of what was too long to be passed on.
fn kept(read: &[ResourceContents]) -> Option<String> {
    read.iter().find_map(|part| {
        let about = mcp_json::ours_in(part.extra.as_deref()).remove(TRUNCATED)?;
        about["uri"].as_str().map(ToString::to_string)
    })
}

/// Whether a part of a result is its structured content.
fn is_structured(part: &ResourceContents) -> bool {
    mcp_json::ours_in(part.extra.as_deref()).get(STRUCTURED).is_some_and(|is| *is == true)
}

fn show(common: &Common, contents: &[ResourceContents]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&contents.iter().map(McpJson).collect::<Vec<_>>())?;
        return Ok(ExitCode::SUCCESS);
    }
    for part in contents {
        match &part.body {
            ResourceBody::Text(text) => output::text(text)?,
            ResourceBody::Blob(bytes) => output::bytes(bytes)?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
