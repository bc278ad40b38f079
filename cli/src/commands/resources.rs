//! `tenon resources`

use serde_json::Value;
use std::process::ExitCode;
use tenon_host::bindings::resources::{ListedResource, ResourceTemplate};
use tenon_host::invoke::Budget;
use tenon_host::types::{ResourceBody, ResourceContents};
use tenon_host::{Caller, RESULT_URI, one_line, wire};

use crate::error::Error;
use crate::{Common, open, output};

/// List or read resources: those of plugins, and results that were too long to be passed on
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon resources list files
  tenon resources templates files
  tenon resources read files file:///notes.txt --max-bytes 4096
  tenon resources read files file:///book.txt --max-tokens 8000
  tenon resources read tenon://results/4fJ2c…")]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// List the resources of a plugin
    List {
        /// The plugin
        plugin: String,
    },
    /// List the templates of a plugin, of which URIs of further resources can be made
    Templates {
        /// The plugin
        plugin: String,
    },
    /// Read a resource of a plugin, or the whole of a result by the URI that the result gave
    Read {
        /// The plugin and the URI; for a result the URI alone
        #[arg(value_name = "[PLUGIN] URI", num_args = 1..=2, required = true)]
        which: Vec<String>,
        /// Read no more than that, and say what was left out
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        max_bytes: Option<u64>,
        /// The same in tokens of a language model, each taken for four bytes
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        max_tokens: Option<u64>,
    },
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    match args.verb {
        Verb::List { plugin } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                list(common, &platform.resources(&plugin, &Caller::default()).await?)
            })
            .await
        }
        Verb::Templates { plugin } => {
            open::with(common, found.platform_with(&plugin), async |platform| {
                let listed = platform.resource_templates(&plugin, &Caller::default()).await?;
                list_templates(common, &listed)
            })
            .await
        }
        Verb::Read { which, max_bytes, max_tokens } => match &which[..] {
            [uri] if uri.starts_with(RESULT_URI) => {
                open::with(common, found.build(|_| false), async |platform| {
                    let budget = budget(max_bytes, max_tokens);
                    let read = platform.read_result_within(uri, budget).await;
                    let read = read.map_err(|error| Error::Input(format!("{uri}: {error}")));
                    show(common, &read?)
                })
                .await
            }
            [plugin, uri] => {
                open::with(common, found.platform_with(plugin), async |platform| {
                    let budget = budget(max_bytes, max_tokens);
                    let caller = Caller::default();
                    let read = platform.read_resource_within(plugin, uri, budget, &caller).await;
                    show(common, &read?)
                })
                .await
            }
            _ => {
                let problem =
                    format!("name the plugin whose resource it is, or a URI of {RESULT_URI}");
                Err(Error::Input(problem))
            }
        },
    }
}

fn budget(max_bytes: Option<u64>, max_tokens: Option<u64>) -> Budget {
    let length = |most: u64| usize::try_from(most).unwrap_or(usize::MAX);
    Budget { max_bytes: max_bytes.map(length), max_tokens: max_tokens.map(length) }
}

fn list(common: &Common, listed: &[ListedResource]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&listed.iter().map(wire::listed_resource).collect::<Vec<Value>>())?;
    } else {
        for resource in listed {
            let (uri, name) = (one_line(&resource.link.uri), one_line(&resource.link.name));
            output::line(format!("{uri}  {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn list_templates(common: &Common, listed: &[ResourceTemplate]) -> Result<ExitCode, Error> {
    if common.json {
        output::json(&listed.iter().map(wire::resource_template).collect::<Vec<Value>>())?;
    } else {
        for template in listed {
            let (uri, name) = (one_line(&template.uri_template), one_line(&template.name));
            output::line(format!("{uri}  {name}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(common: &Common, contents: &[ResourceContents]) -> Result<ExitCode, Error> {
    if common.json {
        let forms: Vec<Value> = contents.iter().map(wire::resource_contents).collect();
        output::json(&forms)?;
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
