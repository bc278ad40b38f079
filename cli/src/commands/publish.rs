//! `tenon publish`

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::chain;
use tenon_config::files::Digest;
use tenon_host::HostEnvironment;

use crate::component::Component;
use crate::error::Error;
use crate::fetch::{FetchedPlugin, Fetcher, Reference, Source, folder};
use crate::{Common, output};

/// Publish a component to a registry
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon publish target/wasm32-wasip2/release/hello.wasm oci://ghcr.io/acme/hello:1.0
  tenon publish notes oci://localhost:5000/acme/notes:1.0

A folder is published together with its plugin.toml and its skills. The credentials are those that `docker login` \
writes to ~/.docker/config.json.")]
pub(crate) struct Args {
    /// The component, or a folder with a plugin.toml
    #[arg(value_name = "FILE.wasm|FOLDER")]
    component: PathBuf,
    /// The destination: oci://REGISTRY/REPOSITORY:TAG
    #[arg(value_name = "REFERENCE")]
    reference: String,
    /// Allow plain HTTP with a registry that is not local
    #[arg(long)]
    insecure: bool,
}

/// What an annotation of the OCI Image Specification has of the metadata of a component.
const ANNOTATIONS: [(&str, &str); 8] = [
    ("name", "title"),
    ("description", "description"),
    ("version", "version"),
    ("authors", "authors"),
    ("licenses", "licenses"),
    ("source", "source"),
    ("homepage", "url"),
    ("revision", "revision"),
];

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let Args { component: path, reference, insecure } = args;
    let no = |problem: String| Error::Input(format!("{}: {problem}", path.display()));
    let reference = match Source::parse(&reference, Path::new(""))? {
        Source::Registry(to) if to.digest.is_none() => to,
        Source::Registry(_) => {
            return Err(Error::Input(format!(
                "{reference}: a digest is what comes of it; name a tag"
            )));
        }
        _ => return Err(Error::Input(format!("{reference}: not an oci:// reference"))),
    };
    let host_environment = HostEnvironment::of_process();
    let fetcher = Fetcher::new(common, &host_environment, insecure);
    let FetchedPlugin { code, manifest, skills, .. } = match path.is_dir() {
        true => folder(&path)?,
        false => fetcher.fetch(&Source::Path(path.clone()), None).await?,
    };
    skills.skills(&path).map_err(|error| no(chain(&error)))?;
    let component = Component::read(&code).map_err(no)?;
    if component.worlds.is_empty() {
        return Err(no(
            "it is not a plugin: it exports no world of the package tenon:plugin".into()
        ));
    }
    let text = |key: &str| component.metadata.get(key).and_then(Value::as_str);
    let annotation = |(key, name): (&str, &str)| {
        Some((format!("org.opencontainers.image.{name}"), text(key)?.to_string()))
    };
    let annotations: BTreeMap<_, _> = ANNOTATIONS.into_iter().filter_map(annotation).collect();
    let digest = Digest::of(&code).named();
    let config = json!({
        "architecture": "wasm",
        "os": "wasip2",
        "layerDigests": [digest],
        "component": { "exports": component.exports, "imports": component.import_names() },
    });
    let config = serde_json::to_vec(&config).map_err(|error| Error::Host(error.to_string()))?;
    let bound = fetcher.publish(&reference, code, config, annotations, manifest, &skills).await?;
    match common.json {
        true => output::json(&json!({
            "reference": reference.to_string(),
            "resolved": Reference { tag: None, ..bound }.to_string(),
            "digest": digest,
        }))?,
        false => output::line(format!(
            "{} is published\n  as        {bound}\n  digest    {digest}",
            path.display()
        ))?,
    }
    Ok(ExitCode::SUCCESS)
}
