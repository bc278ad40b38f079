//! `tenon publish`

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tenon_config::chain;
use tenon_config::files::Digest;
use tenon_host::HostEnvironment;

use crate::error::Error;
use crate::fetch::{FetchedPlugin, Fetcher, PluginToPublish, Reference, Source, folder};
use crate::installed::InstallManifest;
use crate::plugin_code::CheckedCode;
use crate::{Common, output};

/// Publish a component, a script or a folder to a registry
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon publish target/wasm32-wasip2/release/hello.wasm oci://ghcr.io/acme/hello:1.0
  tenon publish notes oci://localhost:5000/acme/notes:1.0
  tenon publish guard.rhai oci://ghcr.io/acme/guard:1.0

A folder is published together with its plugin.toml and its skills. The credentials are those that `docker login` \
writes to ~/.docker/config.json.")]
pub(crate) struct Args {
    /// The component, the script, or a folder with a plugin.toml
    #[arg(value_name = "FILE.wasm|FILE.rhai|FOLDER")]
    plugin: PathBuf,
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
    let Args { plugin: path, reference, insecure } = args;
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
    let fetched = match path.is_dir() {
        true => folder(&path)?,
        false => fetcher.fetch(&Source::Path(path.clone()), None).await?,
    };
    let read = CheckedCode::read(&fetched).map_err(no)?;
    read.warn_of_debug_build(&path.to_string_lossy());
    let FetchedPlugin { code, manifest, skills, .. } = fetched;
    skills.skills(&path).map_err(|error| no(chain(&error)))?;
    if let Some(manifest) = &manifest {
        InstallManifest::read(manifest).map_err(no)?.check_loads(manifest, &code).await?;
    }
    let metadata = match read.component() {
        Some(component) => component.metadata.clone(),
        None => manifest.as_deref().map(manifest_metadata).unwrap_or_default(),
    };
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    let annotation = |(key, name): (&str, &str)| {
        Some((format!("org.opencontainers.image.{name}"), text(key)?.to_string()))
    };
    let annotations: BTreeMap<_, _> = ANNOTATIONS.into_iter().filter_map(annotation).collect();
    let digest = Digest::of(&code).named();
    let component = read.component().map(|component| {
        json!({
            "architecture": "wasm",
            "os": "wasip2",
            "layerDigests": [digest],
            "component": { "exports": component.exports, "imports": component.import_names() },
        })
    });
    let plugin = PluginToPublish { code, component, annotations, manifest, skills };
    let bound = fetcher.publish(&reference, plugin).await?;
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

/// What the manifest of a script says of it, under the keys that the metadata of components have.
fn manifest_metadata(manifest: &str) -> Map<String, Value> {
    let manifest: toml::Table = toml::from_str(manifest).unwrap_or_default();
    let plugin = manifest.get("plugin");
    let keys = [("name", "id"), ("description", "description"), ("version", "version")];
    let text = |key: &str| Some(plugin?.get(key)?.as_str()?.into());
    keys.into_iter().filter_map(|(key, own)| Some((key.to_string(), text(own)?))).collect()
}
