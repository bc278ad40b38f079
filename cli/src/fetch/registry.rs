//! Registries, in the words of the OCI Distribution Specification 1.1: a component is the one layer
//! of a manifest, as `wkg` and others push it. A script is the one layer of an artifact of a type of its own. Each file of its skills is a further layer, with its path as
//! its title, as `oras` pushes files.
//!
//! A registry is believed nothing: manifests and layers are what their digests say, or they are
//! refused.

use base64::prelude::{BASE64_STANDARD, Engine};
use hyper::body::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    WWW_AUTHENTICATE,
};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;
use tenon_config::files::{self, Digest, MAX_COMPONENT_BYTES};
use tenon_config::loopback::is_loopback;
use tenon_config::skills::{self, MAX_FILE_BYTES, PluginSkillFiles};
use tenon_host::{HostEnvironment, PluginKind};
use url::Url;

use super::PluginToPublish;
use super::blob_cache::BlobCache;
use super::reference::Reference;
use crate::fetch_error::FetchError;
use crate::web::{Response, Web, shown};

/// The annotation in which a manifest has the `plugin.toml` of its component.
pub(super) const PLUGIN: &str = "tenon.plugin.toml";

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.wasm.config.v0+json";
const LAYER: &str = "application/wasm";

/// The type of a layer with a script, and of the artifact that it is the code of, which has an empty configuration, as the
/// OCI Image Specification 1.1 wants.
const SCRIPT_LAYER: &str = "application/vnd.tenon.script.v1+rhai";
const SCRIPT: &str = "application/vnd.tenon.script.v1";
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
const SKILL_LAYER: &str = "application/vnd.tenon.skill.file.v1";

/// The annotation with the path of a file that a layer is, in the words of the OCI Image Specification.
const TITLE: &str = "org.opencontainers.image.title";

/// The largest manifest, and the largest answer of who gives tokens, in bytes.
const MAX_BODY_BYTES: u64 = 4 << 20;

const DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");

/// A manifest, as far as it matters here.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ImageManifest {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact_type: Option<String>,
    config: Option<Descriptor>,
    #[serde(default)]
    pub(super) layers: Vec<Descriptor>,
    #[serde(default)]
    pub(super) annotations: BTreeMap<String, String>,
}

/// Something that a manifest is made of.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<String, String>,
}

/// The code of a plugin, as a manifest has it.
pub(super) struct CodeLayer {
    pub(super) kind: PluginKind,
    pub(super) digest: Digest,
    /// How many bytes it says that it has.
    pub(super) size: u64,
}

/// The code that a reference means.
pub(super) struct PulledCode {
    /// The digest of its manifest.
    pub(super) digest: Digest,
    pub(super) manifest: ImageManifest,
    /// What the manifest says that the code is.
    pub(super) kind: PluginKind,
    pub(super) code: Vec<u8>,
}

/// A file of a plugin's skills, as a manifest has it.
pub(super) struct SkillFileLayer {
    /// Its path below `skills`.
    pub(super) path: String,
    digest: Digest,
    size: u64,
}

impl ImageManifest {
    /// The files of the plugin's skills.
    pub(super) fn skills(&self) -> Result<Vec<SkillFileLayer>, String> {
        let layers = self.layers.iter().filter(|layer| layer.media_type == SKILL_LAYER);
        let skills = layers.map(|layer| {
            let title = layer.annotations.get(TITLE).map(String::as_str).unwrap_or_default();
            let path = title.strip_prefix(skills::FOLDER).and_then(|path| path.strip_prefix('/'));
            let path = path.ok_or_else(|| {
                format!(
                    "a layer with a file of a skill has the title {title:?}, and not `skills/…`"
                )
            })?;
            let digest = layer.digest.parse().map_err(|error| format!("its layer: {error}"))?;
            Ok(SkillFileLayer { path: path.into(), digest, size: layer.size })
        });
        skills.collect()
    }

    /// The component or script.
    pub(super) fn code(&self) -> Result<CodeLayer, String> {
        let layers = self.layers.iter().filter(|layer| layer.media_type != SKILL_LAYER);
        let layers: Vec<&Descriptor> = layers.collect();
        let [layer] = &layers[..] else {
            return Err(match layers.len() {
                0 => "it has no layer: is it an index of several images?".to_string(),
                many => format!("it has {many} layers, and a component or script is one"),
            });
        };
        let kind = match &*layer.media_type {
            SCRIPT_LAYER => PluginKind::Rhai,
            other if other.starts_with("application/") && other.contains("wasm") => {
                PluginKind::Wasm
            }
            other => return Err(format!("its layer is `{other}`, and no component or script")),
        };
        let digest = layer.digest.parse().map_err(|error| format!("its layer: {error}"))?;
        Ok(CodeLayer { kind, digest, size: layer.size })
    }
}

/// A repository of a registry.
pub(super) struct Repository<'a> {
    web: &'a Web<'a>,
    reference: &'a Reference,
    /// What is to be done there, as tokens are asked for.
    scope: &'static str,
    /// What the user's programs say to this registry.
    credentials: Option<HeaderValue>,
    /// What it took last.
    authorization: Option<HeaderValue>,
}

impl<'a> Repository<'a> {
    pub(super) fn new(
        web: &'a Web<'a>,
        reference: &'a Reference,
        host_environment: &HostEnvironment,
        scope: &'static str,
    ) -> Self {
        let credentials = credentials(&reference.registry, host_environment);
        Self { web, reference, scope, credentials, authorization: None }
    }

    /// The code that the reference means. What is in the cache is not asked for again.
    pub(super) async fn code(&mut self, blobs: &BlobCache) -> Result<PulledCode, FetchError> {
        let (digest, manifest) = self.manifest(blobs).await?;
        let layer = manifest.code().map_err(|problem| self.problem(&problem))?;
        let CodeLayer { kind, digest: of_layer, size } = layer;
        if size > MAX_COMPONENT_BYTES {
            let what = self.reference.to_string();
            return Err(FetchError::TooLarge { what, most: MAX_COMPONENT_BYTES });
        }
        let what = format!("the layer of {}", self.reference);
        let code = self.blob(blobs, of_layer, size, &what).await?;
        Ok(PulledCode { digest, manifest, kind, code })
    }

    /// The files of the plugin's skills.
    pub(super) async fn skills(
        &mut self,
        blobs: &BlobCache,
        manifest: &ImageManifest,
    ) -> Result<PluginSkillFiles, FetchError> {
        let mut files = PluginSkillFiles::default();
        for layer in manifest.skills().map_err(|problem| self.problem(&problem))? {
            let what = format!("{}/{} of {}", skills::FOLDER, layer.path, self.reference);
            if layer.size > MAX_FILE_BYTES {
                return Err(FetchError::TooLarge { what, most: MAX_FILE_BYTES });
            }
            let content = self.blob(blobs, layer.digest, layer.size, &what).await?;
            files.insert(layer.path, content).map_err(|error| self.problem(&error.to_string()))?;
        }
        Ok(files)
    }

    /// What a layer holds. What is in the cache is not asked for again.
    async fn blob(
        &mut self,
        blobs: &BlobCache,
        digest: Digest,
        size: u64,
        what: &str,
    ) -> Result<Vec<u8>, FetchError> {
        if let Some(bytes) = blobs.get(&digest, size) {
            return Ok(bytes);
        }
        let answer = self.get(&format!("blobs/{}", digest.named()), "*/*").await?;
        let bytes = self.web.read(answer, size).await.map_err(|error| error.about(what))?;
        expect(what, digest, &bytes)?;
        blobs.put(&digest, &bytes);
        Ok(bytes)
    }

    async fn manifest(&mut self, blobs: &BlobCache) -> Result<(Digest, ImageManifest), FetchError> {
        let known = self.reference.digest.and_then(|digest| blobs.get(&digest, MAX_BODY_BYTES));
        let bytes = match known {
            Some(bytes) => bytes,
            None => {
                let path = format!("manifests/{}", self.reference.wanted());
                let answer = self.get(&path, MANIFEST).await?;
                let claimed = answer.headers.get(DIGEST).cloned();
                let bytes = self.web.read(answer, MAX_BODY_BYTES).await?;
                let what = format!("the manifest of {}", self.reference);
                let claimed =
                    claimed.as_ref().and_then(|claimed| claimed.to_str().ok()?.parse().ok());
                for expected in self.reference.digest.into_iter().chain(claimed) {
                    expect(&what, expected, &bytes)?;
                }
                blobs.put(&Digest::of(&bytes), &bytes);
                bytes
            }
        };
        let manifest = serde_json::from_slice(&bytes);
        let manifest = manifest.map_err(|error| self.problem(&format!("its manifest: {error}")))?;
        Ok((Digest::of(&bytes), manifest))
    }

    /// Puts a plugin's code and its skills there, with a manifest around them. Gives the manifest's digest.
    pub(super) async fn publish(&mut self, plugin: PluginToPublish) -> Result<Digest, FetchError> {
        let PluginToPublish { code, component, mut annotations, manifest, skills } = plugin;
        annotations.extend(manifest.map(|manifest| (PLUGIN.to_string(), manifest)));
        let (layer, artifact_type, config_type) = match component {
            Some(_) => (LAYER, None, CONFIG),
            None => (SCRIPT_LAYER, Some(SCRIPT.to_string()), EMPTY),
        };
        let config = component.unwrap_or_else(|| Value::Object(Map::new())).to_string();
        let mut layers = vec![self.put_blob(layer, code).await?];
        for (path, content) in skills.iter() {
            let mut layer = self.put_blob(SKILL_LAYER, content.to_vec()).await?;
            layer.annotations.insert(TITLE.into(), format!("{}/{path}", skills::FOLDER));
            layers.push(layer);
        }
        let config = self.put_blob(config_type, config.into_bytes()).await?;
        let manifest = ImageManifest {
            schema_version: 2,
            media_type: Some(MANIFEST.into()),
            artifact_type,
            config: Some(config),
            layers,
            annotations,
        };
        let bytes =
            serde_json::to_vec(&manifest).map_err(|error| self.problem(&error.to_string()))?;
        let digest = Digest::of(&bytes);
        let path = format!("manifests/{}", self.reference.wanted());
        let headers = [(CONTENT_TYPE, HeaderValue::from_static(MANIFEST))].into_iter().collect();
        let url = self.url(&path)?;
        let answer = self.ask(Method::PUT, url, headers, bytes.into()).await?;
        done(answer, &[StatusCode::CREATED])?;
        Ok(digest)
    }

    async fn put_blob(
        &mut self,
        media_type: &str,
        bytes: Vec<u8>,
    ) -> Result<Descriptor, FetchError> {
        let digest = Digest::of(&bytes).named();
        let size = bytes.len() as u64;
        let (media_type, annotations) = (media_type.into(), BTreeMap::new());
        let descriptor = Descriptor { media_type, digest: digest.clone(), size, annotations };
        let url = self.url(&format!("blobs/{digest}"))?;
        let there = self.ask(Method::HEAD, url, HeaderMap::new(), Bytes::new()).await?;
        if there.status == StatusCode::OK {
            return Ok(descriptor);
        }
        drop(there);
        let url = self.url("blobs/uploads/")?;
        let begun = self.ask(Method::POST, url, HeaderMap::new(), Bytes::new()).await?;
        let location = begun.headers.get(LOCATION).and_then(|location| location.to_str().ok());
        let location = location.and_then(|location| begun.url.join(location).ok());
        let mut location = match (begun.status, location) {
            (StatusCode::ACCEPTED, Some(location)) => location,
            _ => return Err(status(&begun)),
        };
        if location.origin() != begun.url.origin() {
            return Err(self.problem("it wants uploads to go elsewhere"));
        }
        drop(begun);
        location.query_pairs_mut().append_pair("digest", &digest);
        let octets = HeaderValue::from_static("application/octet-stream");
        let headers = [(CONTENT_TYPE, octets)].into_iter().collect();
        let answer = self.ask(Method::PUT, location, headers, bytes.into()).await?;
        done(answer, &[StatusCode::CREATED, StatusCode::NO_CONTENT])?;
        Ok(descriptor)
    }

    async fn get(&mut self, path: &str, accept: &'static str) -> Result<Response, FetchError> {
        let headers = [(ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
        let url = self.url(path)?;
        self.ask(Method::GET, url, headers, Bytes::new()).await
    }

    /// Asks, and where that takes a token, gets one and asks again.
    async fn ask(
        &mut self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, FetchError> {
        let answer = self.ask_as_known(&method, &url, &headers, &body).await?;
        // Who was led elsewhere is asked there by somebody else than the registry.
        let is_asked = answer.status == StatusCode::UNAUTHORIZED;
        if !is_asked || answer.url.origin() != url.origin() {
            return Ok(answer);
        }
        let challenge = answer.headers.get(WWW_AUTHENTICATE).and_then(|value| value.to_str().ok());
        let challenge = challenge.unwrap_or_default().to_string();
        drop(answer);
        self.authorization = Some(self.authorize(&challenge).await?);
        let answer = self.ask_as_known(&method, &url, &headers, &body).await?;
        match answer.status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(self.unauthorized()),
            _ => Ok(answer),
        }
    }

    async fn ask_as_known(
        &self,
        method: &Method,
        url: &Url,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Response, FetchError> {
        let mut headers = headers.clone();
        headers.extend(self.authorization.clone().map(|value| (AUTHORIZATION, value)));
        match *method == Method::GET {
            true => self.web.get(url, headers).await,
            false => self.web.send(method.clone(), url, headers, body.clone()).await,
        }
    }

    /// What a challenge is answered with.
    async fn authorize(&self, challenge: &str) -> Result<HeaderValue, FetchError> {
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return self.credentials.clone().ok_or_else(|| self.unauthorized());
        }
        let parameters = parameters(rest);
        let realm = parameters.get("realm").filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        let realm = realm.and_then(|realm| Url::parse(realm).ok());
        let mut realm = realm.ok_or_else(|| self.unauthorized())?;
        self.check_realm(&realm)?;
        let scope = format!("repository:{}:{}", self.reference.repository, self.scope);
        {
            let mut query = realm.query_pairs_mut();
            if let Some(service) = parameters.get("service") {
                query.append_pair("service", service);
            }
            query.append_pair("scope", parameters.get("scope").unwrap_or(&scope));
        }
        let headers = self.credentials.clone().map(|value| (AUTHORIZATION, value));
        let answer = self.web.get(&realm, headers.into_iter().collect()).await?;
        if answer.status != StatusCode::OK {
            return Err(self.unauthorized());
        }
        /// What gives tokens answers with one, under either name.
        #[derive(Deserialize)]
        struct TokenResponse {
            token: Option<String>,
            access_token: Option<String>,
        }
        let bytes = answer.read(MAX_BODY_BYTES, None).await?;
        let given: Option<TokenResponse> = serde_json::from_slice(&bytes).ok();
        let token = given.and_then(|TokenResponse { token, access_token }| token.or(access_token));
        let token = token.and_then(|token| HeaderValue::try_from(format!("Bearer {token}")).ok());
        let mut token = token.ok_or_else(|| self.unauthorized())?;
        token.set_sensitive(true);
        Ok(token)
    }

    /// Checks that what gives tokens may be told who asks. It need not be the registry, and is spoken
    /// with in private; in plain text only if the registry is, on this machine or as the registry.
    fn check_realm(&self, realm: &Url) -> Result<(), FetchError> {
        let registry = self.url("")?;
        let is_near = is_loopback(realm) || realm.origin() == registry.origin();
        match realm.scheme() == "https" || registry.scheme() == "http" && is_near {
            true => Ok(()),
            false => Err(FetchError::Exposed(shown(realm))),
        }
    }

    fn url(&self, path: &str) -> Result<Url, FetchError> {
        let Reference { registry, repository, .. } = self.reference;
        let scheme = self.web.scheme(registry);
        let url = Url::parse(&format!("{scheme}://{registry}/v2/{repository}/{path}"));
        url.map_err(|error| self.problem(&error.to_string()))
    }

    fn unauthorized(&self) -> FetchError {
        FetchError::Unauthorized {
            what: self.reference.to_string(),
            known: self.credentials.is_some(),
        }
    }

    fn problem(&self, problem: &str) -> FetchError {
        FetchError::Failed { url: self.reference.to_string(), problem: problem.into() }
    }
}

/// Checks that bytes are those of a digest.
pub(super) fn expect(what: &str, expected: Digest, bytes: &[u8]) -> Result<(), FetchError> {
    let found = Digest::of(bytes);
    match found == expected {
        true => Ok(()),
        false => Err(FetchError::Digest { what: what.into(), expected, found }),
    }
}

fn status(answer: &Response) -> FetchError {
    FetchError::Status { url: shown(&answer.url), status: answer.status }
}

fn done(answer: Response, expected: &[StatusCode]) -> Result<(), FetchError> {
    match expected.contains(&answer.status) {
        true => Ok(()),
        false => Err(status(&answer)),
    }
}

/// The parameters of a challenge: `realm="https://…",service="…"`.
pub(super) fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut parameters = BTreeMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.trim_start().strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
        parameters.insert(name, value.trim().to_string());
        rest = after;
    }
    parameters
}

/// What the user's `config.json` of Docker, which other programs read as well, has for a registry.
/// Programs that it names to be asked are not started.
fn credentials(registry: &str, host_environment: &HostEnvironment) -> Option<HeaderValue> {
    #[derive(Deserialize)]
    struct DockerConfig {
        #[serde(default)]
        auths: BTreeMap<String, DockerAuth>,
    }
    #[derive(Deserialize)]
    struct DockerAuth {
        auth: Option<String>,
    }
    let variable = host_environment.environment.get(std::ffi::OsStr::new("DOCKER_CONFIG"));
    let folder = variable.filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = folder.or_else(|| Some(host_environment.home.as_ref()?.join(".docker")))?;
    let bytes = files::read(&folder.join("config.json"), MAX_BODY_BYTES).ok()?;
    let config: DockerConfig = serde_json::from_slice(&bytes).ok()?;
    let names = [registry.to_string(), format!("https://{registry}")];
    let auth = names.iter().find_map(|name| config.auths.get(name)?.auth.as_deref())?;
    // What is no user and password would be no header either.
    let decoded = BASE64_STANDARD.decode(auth.trim()).ok()?;
    if !decoded.contains(&b':') {
        return None;
    }
    let mut value = HeaderValue::try_from(format!("Basic {}", auth.trim())).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let expected =
                expected.iter().map(|(name, value)| (name.to_string(), value.to_string()));
            assert_eq!(parameters(text), expected.collect(), "{text}");
        };
        check(
            r#"realm="https://ghcr.io/token",service="ghcr.io",scope="repository:a/b:pull,push""#,
            &[
                ("realm", "https://ghcr.io/token"),
                ("service", "ghcr.io"),
                ("scope", "repository:a/b:pull,push"),
            ],
        );
        check(
            r#"Realm="x" , error=invalid_token, y="z"#,
            &[("realm", "x"), ("error", "invalid_token"), ("y", "z")],
        );
        check("", &[]);
    }
}
