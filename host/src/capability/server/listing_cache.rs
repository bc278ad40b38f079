//! What a server contributed when it was last asked, kept on disk: with it the server's tools are
//! there before it is started, and the first call starts it.
//!
//! A listing is found by the file that names the server, by how it is started or reached, and by what it may ask of
//! its client, so that another configuration has another one: at an address of this machine, another project's server
//! may be the next day. When the server is started it is asked again.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tenon_config::discover::Server;
use tenon_config::files::{Digest, MAX_CONFIGURATION_BYTES, claim, read_private, real_or_absolute};
use tenon_config::host_environment::HostEnvironment;
use tenon_config::pins::McpDefinition;
use tenon_types::{Identity, Registration, ToolAnnotations, ToolDefinition};

use crate::capability::services::Offers;

/// The form of the files. What is of another one is not read.
const FORMAT_VERSION: u32 = 3;

/// One server's listing, and its place.
pub(crate) struct ListingCache {
    file: PathBuf,
    /// Whether what is kept may stand for the server's answer.
    lazy: bool,
    /// What is kept, if it can be read.
    kept: Option<ListingForm>,
}

impl ListingCache {
    /// What is kept of a server, where there is a folder for it. It blocks.
    pub(crate) fn of(
        server: &Server,
        named_in: &Path,
        host_environment: &HostEnvironment,
        offers: Offers,
        lazy: bool,
    ) -> Option<Self> {
        let folder = host_environment.cache.as_ref()?.join("servers");
        let way = (real_or_absolute(named_in), server.place.absolute(), &server.options, offers);
        let way = format!("{way:?}");
        Some(Self::open(&folder, &way, lazy))
    }

    /// What a folder has for what is started or reached in this way. It blocks.
    pub(crate) fn open(folder: &Path, way: &str, lazy: bool) -> Self {
        let key = Digest::of(format!("{FORMAT_VERSION} {} {way}", env!("CARGO_PKG_VERSION")));
        let file = folder.join(format!("{key}.json"));
        let text = read_private(&file).ok();
        let kept = text.and_then(|text| serde_json::from_str(&text).ok());
        Self { file, lazy, kept }
    }

    /// The revision of the protocol that the server spoke.
    pub(crate) fn revision(&self) -> Option<&str> {
        self.kept.as_ref()?.revision.as_deref()
    }

    /// What is kept, where it stands for the server's answer.
    pub(crate) fn stand_in(&self) -> Option<Registration> {
        self.standing_in().cloned().map(Registration::from)
    }

    /// Whether what is kept stands for the server's answer.
    pub(crate) fn stands_in(&self) -> bool {
        self.standing_in().is_some()
    }

    /// Whether what the server answers is what stands for its answer, where anything does.
    pub(crate) fn agrees(&self, registration: &Registration) -> bool {
        self.standing_in()
            .is_none_or(|form| *form == ListingForm::new(registration, form.revision.clone()))
    }

    /// The tools that stand for the server's, and are not among what it answers as they are.
    pub(crate) fn differing(&self, registration: &Registration) -> BTreeSet<String> {
        let Some(form) = self.standing_in() else { return BTreeSet::new() };
        let now = ListingForm::new(registration, None);
        // What varies from one start to the next is no other tool: it would be refused at each.
        let is_there = |tool: &ToolForm| {
            let now = now.tools.iter().find(|now| now.name == tool.name);
            now == Some(tool) || now.is_some_and(|now| now.is_as_firm_as(tool))
        };
        let differing = form.tools.iter().filter(|tool| !is_there(tool));
        differing.map(|tool| tool.name.clone()).collect()
    }

    fn standing_in(&self) -> Option<&ListingForm> {
        self.kept.as_ref().filter(|_| self.lazy)
    }

    /// Keeps what the server answered; what is too long to be read again is not kept, nor what was
    /// kept before it. It blocks.
    ///
    /// # Errors
    ///
    /// Where it cannot be written.
    pub(crate) fn keep(
        &self,
        registration: &Registration,
        revision: Option<String>,
    ) -> io::Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        claim(folder)?;
        let text = serde_json::to_vec(&ListingForm::new(registration, revision))?;
        if text.len() as u64 > MAX_CONFIGURATION_BYTES {
            return match fs::remove_file(&self.file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.file)?;
        prune(folder)
    }
}

/// How the name of a file begins that is being written.
const TEMPORARY: &str = ".tmp";

/// How long a file is being written at most.
const MAX_WRITE_TIME: Duration = Duration::from_secs(60);

/// The most listings that are kept.
const MAX_LISTINGS: usize = 500;

/// Removes the oldest of too many listings, and what those left who ended while they wrote one.
fn prune(folder: &Path) -> io::Result<()> {
    let age = |file: &fs::DirEntry| Some((file.metadata().ok()?.modified().ok()?, file.path()));
    let files = fs::read_dir(folder)?.filter_map(Result::ok);
    let (left, files): (Vec<_>, Vec<_>) = files
        .partition(|file| file.file_name().as_encoded_bytes().starts_with(TEMPORARY.as_bytes()));
    for (written, path) in left.iter().filter_map(age) {
        if written.elapsed().is_ok_and(|age| age > MAX_WRITE_TIME) {
            let _ = fs::remove_file(path);
        }
    }
    if files.len() <= MAX_LISTINGS {
        return Ok(());
    }
    let mut files: Vec<_> = files.iter().filter_map(age).collect();
    files.sort();
    for (_, path) in &files[..files.len().saturating_sub(MAX_LISTINGS / 2)] {
        // Another process may have been faster.
        let _ = fs::remove_file(path);
    }
    Ok(())
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
struct ListingForm {
    name: String,
    version: String,
    description: String,
    revision: Option<String>,
    resources: bool,
    prompts: bool,
    tools: Vec<ToolForm>,
}

#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolForm {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: String,
    output_schema: Option<String>,
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
    capabilities: Vec<String>,
    extra: Option<String>,
}

impl ListingForm {
    fn new(registration: &Registration, revision: Option<String>) -> Self {
        let Registration { identity, tools, resources, prompts, .. } = registration;
        let mut tools: Vec<ToolForm> = tools.iter().cloned().map(ToolForm::from).collect();
        // Some servers list them in another order each time, which means nothing.
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        Self {
            name: identity.name.clone(),
            version: identity.version.clone(),
            description: identity.description.clone(),
            revision,
            resources: *resources,
            prompts: *prompts,
            tools,
        }
    }
}

impl ToolForm {
    /// Whether it differs from another in nothing but what may vary.
    fn is_as_firm_as(&self, other: &Self) -> bool {
        let firm = |form: &Self| {
            let texts = [&form.output_schema, &form.extra].into_iter().flatten();
            let mut texts = texts.chain([&form.input_schema]);
            let is_json = texts.all(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
            let definition = is_json.then(|| McpDefinition::of_tool(&form.clone().into()));
            definition.map(|definition| definition.firm_sha256().to_string())
        };
        firm(self).is_some_and(|own| Some(own) == firm(other))
    }
}

impl From<ListingForm> for Registration {
    fn from(form: ListingForm) -> Self {
        let ListingForm { name, version, description, revision: _, resources, prompts, tools } =
            form;
        Self {
            identity: Identity::new(name, version, description),
            tools: tools.into_iter().map(ToolDefinition::from).collect(),
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources,
            prompts,
        }
    }
}

impl From<ToolDefinition> for ToolForm {
    fn from(tool: ToolDefinition) -> Self {
        let ToolDefinition {
            name,
            title,
            description,
            input_schema,
            output_schema,
            annotations: ToolAnnotations { read_only, destructive, idempotent, open_world },
            capabilities,
            extra,
        } = tool;
        Self {
            name,
            title,
            description,
            input_schema,
            output_schema,
            read_only,
            destructive,
            idempotent,
            open_world,
            capabilities,
            extra,
        }
    }
}

impl From<ToolForm> for ToolDefinition {
    fn from(form: ToolForm) -> Self {
        let ToolForm {
            name,
            title,
            description,
            input_schema,
            output_schema,
            read_only,
            destructive,
            idempotent,
            open_world,
            capabilities,
            extra,
        } = form;
        let annotations = ToolAnnotations { read_only, destructive, idempotent, open_world };
        Self {
            name,
            title,
            description,
            input_schema,
            output_schema,
            annotations,
            capabilities,
            extra,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration() -> Registration {
        let tool = ToolDefinition {
            name: "echo".into(),
            title: None,
            description: "Answers".into(),
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: Some("{}".into()),
            annotations: ToolAnnotations {
                read_only: Some(true),
                destructive: None,
                idempotent: Some(false),
                open_world: None,
            },
            capabilities: Vec::new(),
            extra: Some(r#"{"_meta":{"a":1}}"#.into()),
        };
        Registration {
            identity: Identity::new("s", "1", ""),
            tools: vec![tool],
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources: true,
            prompts: false,
        }
    }

    #[test]
    fn what_is_kept_is_found_by_the_way_to_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let servers = folder.path().join("servers");
        let listing = ListingCache::open(&servers, "a", true);
        assert!(listing.stand_in().is_none());
        listing.keep(&registration(), Some("2025-11-25".into())).unwrap();
        assert!(!listing.stands_in());
        let listing = ListingCache::open(&servers, "a", true);
        let found = listing.stand_in().expect("it was kept");
        assert_eq!(format!("{found:?}"), format!("{:?}", registration()));
        assert_eq!(listing.revision(), Some("2025-11-25"));
        assert!(listing.stands_in() && listing.agrees(&registration()));
        let mut other = registration();
        other.tools[0].description.push('!');
        assert!(!listing.agrees(&other));
        assert!(ListingCache::open(&servers, "b", true).stand_in().is_none());
        // Who wants to know how the server is asks the server.
        assert!(ListingCache::open(&servers, "a", false).stand_in().is_none());
    }

    #[test]
    fn the_order_of_tools_means_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let servers = folder.path().join("servers");
        let mut two = registration();
        two.tools.push(ToolDefinition { name: "another".into(), ..two.tools[0].clone() });
        ListingCache::open(&servers, "a", true).keep(&two, None).unwrap();
        two.tools.reverse();
        let listing = ListingCache::open(&servers, "a", true);
        assert!(listing.agrees(&two) && listing.differing(&two).is_empty());
    }

    #[test]
    fn the_oldest_make_room() {
        let folder = tempfile::tempdir().unwrap();
        for name in 0..=MAX_LISTINGS {
            fs::write(folder.path().join(name.to_string()), "").unwrap();
        }
        ListingCache::open(folder.path(), "a", true).keep(&registration(), None).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), MAX_LISTINGS / 2);
        assert!(ListingCache::open(folder.path(), "a", true).stands_in());
    }

    #[test]
    fn what_was_left_half_written_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, age: Duration| {
            let file = fs::File::create(folder.path().join(name)).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        write(".tmpold", 2 * MAX_WRITE_TIME);
        write(".tmpnew", Duration::ZERO);
        ListingCache::open(folder.path(), "a", true).keep(&registration(), None).unwrap();
        assert!(!folder.path().join(".tmpold").exists());
        // Another process may be about to finish it.
        assert!(folder.path().join(".tmpnew").exists());
    }

    #[test]
    fn what_is_too_long_to_be_read_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let keep = |registration: &Registration| {
            ListingCache::open(folder.path(), "a", true).keep(registration, None).unwrap();
            ListingCache::open(folder.path(), "a", true).stands_in()
        };
        let mut long = registration();
        long.tools[0].description = "x".repeat(MAX_CONFIGURATION_BYTES as usize);
        assert!(!keep(&long));
        assert!(keep(&registration()));
        assert!(!keep(&long));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_cannot_be_read_is_not_there() {
        let folder = tempfile::tempdir().unwrap();
        let listing = ListingCache::open(folder.path(), "a", true);
        fs::write(&listing.file, "{").unwrap();
        assert!(ListingCache::open(folder.path(), "a", true).stand_in().is_none());
    }
}
