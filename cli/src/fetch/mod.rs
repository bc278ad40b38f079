//! Where plugins come from: a source is read from its words, and what it has is fetched and checked.
//! Nothing of it runs.

mod blob_cache;
#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;
mod reference;
mod registry;

use hyper::header::HeaderMap;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use tenon_config::chain;
use tenon_config::files::{self, Digest, MAX_COMPONENT_BYTES};
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_config::skills::PluginSkillFiles;
use tenon_host::{HostEnvironment, PluginKind};
use url::Url;

pub(crate) use reference::Reference;

use crate::Common;
use crate::error::Error;
use crate::installed::InstallManifest;
use crate::web::{self, Web};
use blob_cache::BlobCache;
use registry::{PLUGIN, PulledCode, Repository, expect};

/// The largest `plugin.toml`, in bytes.
const MAX_MANIFEST_BYTES: u64 = 4 << 20;

/// Where a plugin comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A component, a script, or a folder with a `plugin.toml`.
    Path(PathBuf),
    /// A component or a script on the web.
    Web(Url),
    /// A component or a script in a registry.
    Registry(Reference),
}

/// What is put into a registry.
pub(crate) struct PluginToPublish {
    pub(crate) code: Vec<u8>,
    /// What clients of registries are told of a component; nothing for a script.
    pub(crate) component: Option<Value>,
    /// What the plugin says of itself, by the names of the OCI Image Specification.
    pub(crate) annotations: BTreeMap<String, String>,
    /// Its `plugin.toml`, where it has one.
    pub(crate) manifest: Option<String>,
    pub(crate) skills: PluginSkillFiles,
}

/// What a source has.
pub(crate) struct FetchedPlugin {
    /// What it is called, where nobody gives it an id.
    pub(crate) name: String,
    /// The name of its file, below the folder of its manifest.
    pub(crate) file: PathBuf,
    pub(crate) code: Vec<u8>,
    /// What the source says that the code is; nothing of a file alone, whose name says it.
    pub(crate) kind: Option<PluginKind>,
    /// Its `plugin.toml`, where it has one.
    pub(crate) manifest: Option<String>,
    /// The files of its skills.
    pub(crate) skills: PluginSkillFiles,
    /// The source, bound to what was there.
    pub(crate) resolved: Option<String>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Web(url) => write!(f, "{url}"),
            Self::Registry(reference) => write!(f, "{reference}"),
        }
    }
}

impl Source {
    /// Reads a source; a relative path begins in this folder.
    pub(crate) fn parse(text: &str, folder: &Path) -> Result<Self, Error> {
        let no = |problem: String| Error::Input(format!("{text}: {problem}"));
        if text.starts_with(reference::SCHEME) {
            return text.parse().map(Self::Registry).map_err(no);
        }
        match text.split_once("://") {
            Some(("http" | "https", _)) => match Url::parse(text) {
                Ok(url) if web::has_user(&url) => Err(Error::Input(format!(
                    "{}: the URL has a user in it, and would be written into a lock file",
                    web::shown(&url)
                ))),
                Ok(url) => Ok(Self::Web(url)),
                Err(error) => Err(no(error.to_string())),
            },
            Some((scheme, _)) => {
                Err(no(format!("`{scheme}` is not https, http or oci, and not a path")))
            }
            None => Ok(Self::Path(folder.join(text))),
        }
    }
}

/// What fetches.
pub(crate) struct Fetcher<'a> {
    web: Web<'a>,
    blobs: BlobCache,
    host_environment: &'a HostEnvironment,
}

impl<'a> Fetcher<'a> {
    pub(crate) fn new(
        common: &'a Common,
        host_environment: &'a HostEnvironment,
        insecure: bool,
    ) -> Self {
        Self {
            web: Web::new(common, insecure),
            blobs: BlobCache::new(host_environment),
            host_environment,
        }
    }

    /// Fetches what a source has. Code that is not of the digest that is expected is none.
    pub(crate) async fn fetch(
        &self,
        source: &Source,
        expected: Option<Digest>,
    ) -> Result<FetchedPlugin, Error> {
        let fetched = match source {
            Source::Path(path) if path.is_dir() => folder(path)?,
            Source::Path(path) => FetchedPlugin {
                code: read(path, MAX_COMPONENT_BYTES)?,
                ..FetchedPlugin::of(&path.to_string_lossy())
            },
            Source::Web(url) => {
                let known =
                    expected.and_then(|digest| self.blobs.get(&digest, MAX_COMPONENT_BYTES));
                let code = match known {
                    Some(code) => code,
                    None => {
                        let answer = self.web.get(url, HeaderMap::new()).await?;
                        self.web.read(answer, MAX_COMPONENT_BYTES).await?
                    }
                };
                let digest = Digest::of(&code);
                if expected.is_none_or(|expected| expected == digest) {
                    self.blobs.put(&digest, &code);
                }
                FetchedPlugin { code, ..FetchedPlugin::of(url.path()) }
            }
            Source::Registry(reference) => {
                let mut repository =
                    Repository::new(&self.web, reference, self.host_environment, "pull");
                let pulled = repository.code(&self.blobs).await?;
                let PulledCode { digest, mut manifest, kind, code } = pulled;
                let skills = repository.skills(&self.blobs, &manifest).await?;
                FetchedPlugin {
                    code,
                    kind: Some(kind),
                    skills,
                    manifest: manifest.annotations.remove(PLUGIN),
                    resolved: Some(reference.bound(digest).to_string()),
                    ..FetchedPlugin::of(&format!("{}.{kind}", reference.name()))
                }
            }
        };
        if let Some(expected) = expected {
            expect(&source.to_string(), expected, &fetched.code)?;
        }
        Ok(fetched)
    }

    /// Puts a plugin into a registry, and gives the reference that means it and no other.
    pub(crate) async fn publish(
        &self,
        reference: &Reference,
        plugin: PluginToPublish,
    ) -> Result<Reference, Error> {
        let mut repository =
            Repository::new(&self.web, reference, self.host_environment, "pull,push");
        let digest = repository.publish(plugin).await?;
        Ok(reference.bound(digest))
    }
}

impl FetchedPlugin {
    /// What is called as the last part of a path, without code.
    fn of(path: &str) -> Self {
        let last = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let file = PathBuf::from(last);
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self {
            name,
            file,
            code: Vec::new(),
            kind: None,
            manifest: None,
            skills: PluginSkillFiles::default(),
            resolved: None,
        }
    }
}

fn read(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    files::read(path, most).map_err(|error| Error::Read(path.into(), error))
}

/// What a folder with a `plugin.toml` has.
pub(crate) fn folder(folder: &Path) -> Result<FetchedPlugin, Error> {
    let path = folder.join(MANIFEST);
    let manifest = String::from_utf8(read(&path, MAX_MANIFEST_BYTES)?)
        .map_err(|_| Error::Input(format!("{} is not text", path.display())))?;
    let InstallManifest { id, kind, file, .. } = InstallManifest::read(&manifest)
        .map_err(|problem| Error::Input(format!("{}: {problem}", path.display())))?;
    let code = folder.join(&file);
    let is_inside =
        |code: &Path| Some(code.canonicalize().ok()?.starts_with(folder.canonicalize().ok()?));
    if code.exists() && is_inside(&code) != Some(true) {
        return Err(Error::Input(format!("{} leads out of {}", code.display(), folder.display())));
    }
    let skills = PluginSkillFiles::read(folder)
        .map_err(|error| Error::Input(format!("{}: {}", folder.display(), chain(&error))))?;
    Ok(FetchedPlugin {
        name: id,
        code: read(&code, MAX_COMPONENT_BYTES)?,
        file,
        kind: Some(kind),
        manifest: Some(manifest),
        skills,
        resolved: None,
    })
}
