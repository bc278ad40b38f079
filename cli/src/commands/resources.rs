//! `tenon resources`

use serde_json::{Value, json};
use std::process::ExitCode;
use tenon_host::bindings::resources::ListedResource;
use tenon_host::types::{ResourceBody, ResourceContents};
use tenon_host::{Caller, RESULT_URI, wire};

use crate::error::Error;
use crate::{Common, open, output};

/// List or read resources: those of plugins, and results that were too long to be passed on
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon resources list files
  tenon resources read files file:///notes.txt
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
    /// Read a resource of a plugin, or the whole of a result by the URI that the result gave
    Read {
        /// The plugin and the URI; for a result the URI alone
        #[arg(value_name = "[PLUGIN] URI", num_args = 1..=2, required = true)]
        which: Vec<String>,
    },
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let found = open::found(common)?;
    match args.verb {
        Verb::List { plugin } => {
            let platform = found.platform_with(&plugin).await?;
            let listed = platform.resources(&plugin, &Caller::default()).await;
            let shown = listed.map_err(Error::from).and_then(|listed| list(common, &listed));
            open::end(common, platform, shown).await
        }
        Verb::Read { which } => match &which[..] {
            [uri] if uri.starts_with(RESULT_URI) => {
                let platform = found.build(|_| false).await?;
                let read = platform.read_result(uri).await;
                let read = read.map_err(|error| Error::Input(format!("{uri}: {error}")));
                let shown = read.and_then(|contents| show(common, &contents));
                open::end(common, platform, shown).await
            }
            [plugin, uri] => {
                let platform = found.platform_with(plugin).await?;
                let read = platform.read_resource(plugin, uri, &Caller::default()).await;
                let shown = read.map_err(Error::from).and_then(|read| show(common, &read));
                open::end(common, platform, shown).await
            }
            _ => {
                let problem =
                    format!("name the plugin whose resource it is, or a URI of {RESULT_URI}");
                Err(Error::Input(problem))
            }
        },
    }
}

fn list(common: &Common, listed: &[ListedResource]) -> Result<ExitCode, Error> {
    if common.json {
        let forms = listed.iter().map(|resource| {
            let link = &resource.link;
            json!({
                "uri": link.uri,
                "name": link.name,
                "title": link.title,
                "description": link.description,
                "mimeType": link.mime_type,
                "size": link.size,
            })
        });
        output::json(&forms.collect::<Vec<Value>>())?;
    } else {
        for resource in listed {
            output::text(&format!("{}  {}", resource.link.uri, resource.link.name))?;
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
