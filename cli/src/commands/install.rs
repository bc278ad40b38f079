//! `tenon install`

use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use tenon_config::chain;
use tenon_config::discover::{Candidate, id_of};
use tenon_config::files::Digest;
use tenon_config::grant::CapabilityStatus;
use tenon_config::lock::{LockFile, LockedPlugin};
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_config::skills::PluginSkillFiles;
use tenon_host::types::text::one_line;
use tenon_host::{HostEnvironment, check_settings, speaks};

use crate::commands::approve;
use crate::error::Error;
use crate::fetch::{FetchedPlugin, Fetcher, Source};
use crate::fetch_error::FetchError;
use crate::hint::quoted;
use crate::installed::{
    InstallFolder, InstallManifest, PluginFiles, is_left_over, requests_as_written,
};
use crate::open::trust;
use crate::plugin_code::CheckedCode;
use crate::plugin_in_folder::same;
use crate::{Common, open, output};

/// Install a plugin, or everything in the lock file
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tenon install ./hello.wasm
  tenon install ../notes --as my-notes
  tenon install https://example.com/hello.wasm --digest sha256:…
  tenon install oci://ghcr.io/acme/hello:1.0
  tenon install

A source is a component, a script, or a folder with a plugin.toml: on this machine, or as it was published to a \
registry. Components and scripts may be on the web, too. Nothing of it runs. It is copied with its skills to .tenon/plugins of the project, and `tenon.lock` records \
its source and digests: a plugin that does not match them is not loaded. What it requests must be \
approved. Without a source, everything in the lock file is installed; with `--locked`, only what is in \
it. SSL_CERT_FILE names a file with further certificate authorities to trust.")]
pub(crate) struct Args {
    /// A path, an https:// URL, or oci://REGISTRY/REPOSITORY:TAG or @DIGEST
    #[arg(value_name = "SOURCE")]
    source: Option<String>,
    /// The plugin's id
    #[arg(long = "as", value_name = "ID", requires = "source")]
    id: Option<String>,
    /// The SHA-256 of the component or script
    #[arg(long, value_name = "sha256:…", requires = "source")]
    digest: Option<Digest>,
    /// Install it for the user, for all projects
    #[arg(long)]
    user: bool,
    /// Approve everything that it requests, without asking
    #[arg(long)]
    yes: bool,
    /// Replace a plugin that `tenon install` did not install
    #[arg(long)]
    force: bool,
    /// Allow plain HTTP with servers that are not local
    #[arg(long)]
    insecure: bool,
}

/// A plugin that is to be installed.
struct PreparedInstall {
    about: InstallManifest,
    locked: LockedPlugin,
    manifest: String,
    code: Vec<u8>,
    skills: PluginSkillFiles,
    /// Capabilities that it needs for what it imports, and does not request.
    unrequested: Vec<&'static str>,
}

pub(crate) async fn run(common: &Common, args: Args) -> Result<ExitCode, Error> {
    let host_environment = HostEnvironment::of_process();
    let place = InstallFolder::of(common, &host_environment, args.user)?;
    let fetcher = Fetcher::new(common, &host_environment, args.insecure);
    // Before anything is changed: what cannot be read, or is not trusted, is told now.
    let keeping = match args.user || common.config.is_some() {
        true => None,
        false => trust::keep(common)?,
    };
    open::check_configs(common)?;
    let (rows, failed) = match &args.source {
        Some(text) => {
            let mut plan = plan(&fetcher, text, &args, &place).await?;
            let _claim = place.claim()?;
            let mut lock = LockFile::read(&place.lock())?;
            if common.locked {
                plan.locked = as_locked(&place, &lock, &plan)?;
            }
            check_place(&place, &lock, &plan.about.id, args.force)?;
            (vec![install(common, &place, &mut lock, plan)?], Vec::new())
        }
        None => {
            let _claim = place.claim()?;
            let mut lock = LockFile::read(&place.lock())?;
            install_all(common, &fetcher, &place, &mut lock).await?
        }
    };
    if let Some(keeping) = keeping {
        keeping.renew()?;
    }
    let mut rows = approve_all(common, &place, rows, args.yes).await?;
    rows.extend(failed.iter().map(
        |(id, error)| json!({ "plugin": id, "state": "failed", "error": error.to_json()["error"] }),
    ));
    match common.json {
        true => output::json(&rows)?,
        false if rows.is_empty() => {
            let lock = place.lock();
            let why = if lock.exists() { "nothing is in" } else { "there is no" };
            output::line(format!("nothing to install: {why} {}", lock.display()))?;
        }
        false => {}
    }
    Ok(failed.first().map_or(ExitCode::SUCCESS, |(_, error)| error.exit_code().into()))
}

/// Fetches what a source has and finds out what it would be here.
async fn plan(
    fetcher: &Fetcher<'_>,
    text: &str,
    args: &Args,
    place: &InstallFolder,
) -> Result<PreparedInstall, Error> {
    let source = Source::parse(text, Path::new(""))?;
    let fetched = fetcher.fetch(&source, args.digest).await?;
    let plan = PreparedInstall::new(fetched, kept(&source, place), args.id.as_deref())?;
    plan.about.check_loads(&plan.manifest, &plan.code).await?;
    Ok(plan)
}

/// A source as the lock file has it: a path that begins in its folder, where it is below that or
/// beside it.
fn kept(source: &Source, place: &InstallFolder) -> String {
    let Source::Path(path) = source else { return source.to_string() };
    // A folder of the user's own may not be there yet.
    let whole = |path: &Path| path.canonicalize().or_else(|_| std::path::absolute(path));
    let (Ok(path), Ok(folder)) = (whole(path), whole(&place.folder)) else {
        return source.to_string();
    };
    if let Ok(below) = path.strip_prefix(&folder) {
        return format!("./{}", below.display());
    }
    let around = folder.parent().filter(|around| around.parent().is_some());
    match around.and_then(|around| path.strip_prefix(around).ok()) {
        Some(beside) => format!("../{}", beside.display()),
        None => path.display().to_string(),
    }
}

impl PreparedInstall {
    fn new(fetched: FetchedPlugin, source: String, id: Option<&str>) -> Result<Self, Error> {
        let no = |problem: String| Error::Input(format!("{source}: {problem}"));
        let read = CheckedCode::read(&fetched).map_err(no)?;
        read.warn_of_debug_build(&source);
        let FetchedPlugin { name, code, manifest, skills, resolved, .. } = fetched;
        let (kind, component) = (read.kind(), read.component());
        if let Some(contract) = component.and_then(|component| component.contract.as_ref())
            && !speaks(contract)
        {
            let ours = tenon_contract::version();
            return Err(no(format!("it is made for tenon:plugin@{contract}, and this is {ours}")));
        }
        let own = |key: &str| component?.metadata.get(key)?.as_str().map(str::to_string);
        let version = own("version").filter(|version| semver::Version::parse(version).is_ok());
        let manifest = match manifest {
            Some(manifest) => match id {
                Some(id) if InstallManifest::read(&manifest).map_err(no)?.id != id => {
                    renamed(&manifest, id).map_err(no)?
                }
                _ => manifest,
            },
            None => {
                let id = match id {
                    Some(id) => id.to_string(),
                    None => id_of(&name).ok_or_else(|| {
                        no(format!("\"{name}\" gives no valid id; name one with `--as`"))
                    })?,
                };
                // Its own name may be none that every system has.
                let path = format!("{id}.{kind}");
                let kind = kind.to_string();
                written(&id, version.as_deref(), own("description").as_deref(), &kind, &path)
            }
        };
        let about = InstallManifest::read(&manifest).map_err(no)?;
        skills.skills(Path::new("")).map_err(|error| no(chain(&error)))?;
        if about.kind != kind {
            return Err(no(format!("it is of kind {kind}, and its manifest says {}", about.kind)));
        }
        let requested = requests_as_written(&manifest);
        let unrequested = component.into_iter().flat_map(|component| {
            CapabilityStatus::all(&component.import_names(), &requested, &Default::default())
        });
        let unrequested = unrequested.filter(|need| need.requested.is_empty());
        Ok(Self {
            locked: LockedPlugin {
                source,
                resolved,
                version: about.version.clone().or(version),
                file: Some(about.file_name()),
                code: Digest::of(&code),
                manifest: Digest::of(&manifest),
                skills: skills.digest(),
            },
            unrequested: unrequested.map(|need| need.capability).collect(),
            about,
            manifest,
            code,
            skills,
        })
    }
}

/// A manifest for what has none. It requests nothing: what a plugin wants is for its author to say.
fn written(
    id: &str,
    version: Option<&str>,
    description: Option<&str>,
    kind: &str,
    path: &str,
) -> String {
    let text = |text: &str| toml::Value::from(text).to_string();
    let line = |key: &str, value: Option<&str>| match value {
        Some(value) => format!("{key} = {}\n", text(value)),
        None => String::new(),
    };
    format!(
        "# Written by `tenon install`: its source has none.\n[plugin]\n{}{}{}\n[runtime]\n{}{}",
        line("id", Some(id)),
        line("version", version),
        line("description", description),
        line("kind", Some(kind)),
        line("path", Some(path)),
    )
}

/// A manifest with another id.
fn renamed(manifest: &str, id: &str) -> Result<String, String> {
    let table: Result<toml::Table, _> = toml::from_str(manifest);
    let mut table = table.map_err(|error| error.message().to_string())?;
    let plugin = table.get_mut("plugin").and_then(toml::Value::as_table_mut);
    plugin.ok_or("it has no [plugin]")?.insert("id".into(), id.into());
    toml::to_string(&table).map_err(|error| error.to_string())
}

/// What the lock file has of a plugin that is to be installed with `--locked`: nothing else is.
fn as_locked(
    place: &InstallFolder,
    lock: &LockFile,
    plan: &PreparedInstall,
) -> Result<LockedPlugin, Error> {
    let (id, file) = (&plan.about.id, place.lock());
    let file = file.display();
    let problem = match lock.plugins.get(id) {
        None => format!("plugin \"{id}\" is not in {file}"),
        Some(locked) if locked.code != plan.locked.code => format!(
            "plugin \"{id}\" is not what {file} has: expected {}, found {}",
            locked.code.named(),
            plan.locked.code.named()
        ),
        Some(locked) if locked.manifest != plan.locked.manifest => format!(
            "the manifest of plugin \"{id}\" is not what {file} has: expected {}, found {}",
            locked.manifest.named(),
            plan.locked.manifest.named()
        ),
        Some(locked) if locked.skills != plan.locked.skills => {
            format!("the skills of plugin \"{id}\" are not what {file} has")
        }
        Some(locked) => return Ok(locked.clone()),
    };
    Err(Error::Refused {
        problem,
        hint: "without `--locked` it is installed and noted there".into(),
    })
}

/// What somebody put there otherwise is not replaced.
fn check_place(place: &InstallFolder, lock: &LockFile, id: &str, force: bool) -> Result<(), Error> {
    let folder = place.of_plugin(id);
    match force || lock.plugins.contains_key(id) || !folder.exists() || is_left_over(&folder) {
        true => Ok(()),
        false => Err(Error::Refused {
            problem: format!(
                "{} is there, and `tenon install` has not put it there",
                folder.display()
            ),
            hint: "`--as` installs it under another id, `--force` replaces it".into(),
        }),
    }
}

/// Puts a plugin where it belongs, says so, and gives a row about it.
fn install(
    common: &Common,
    place: &InstallFolder,
    lock: &mut LockFile,
    plan: PreparedInstall,
) -> Result<Value, Error> {
    let PreparedInstall { about, locked, manifest, code, skills, unrequested } = plan;
    let other = { lock.plugins.get(&about.id) }
        .filter(|former| (&former.source, former.code) != (&locked.source, locked.code));
    let replaced =
        other.map(|former| json!({ "source": former.source, "digest": former.code.named() }));
    let replaces = other.map(|former| format!("{} of {}", former.code.named(), former.source));
    let files = PluginFiles { manifest: &manifest, code: &code, skills: &skills };
    place.put(lock, &about, locked.clone(), &files)?;
    let folder = place.of_plugin(&about.id);
    let mut row = row(&about.id, &locked, &folder, "installed", &unrequested);
    row["replaced"] = json!(replaced);
    if !common.json {
        let version = locked.version.map(|version| format!(" {version}")).unwrap_or_default();
        output::line(format!(
            "plugin \"{}\"{version} is installed in {}",
            about.id,
            folder.display()
        ))?;
        output::line(format!(
            "  from      {}",
            one_line(locked.resolved.as_ref().unwrap_or(&locked.source))
        ))?;
        output::line(format!("  digest    {}", locked.code.named()))?;
        if let Some(skills) = locked.skills {
            output::line(format!("  skills    {}", skills.named()))?;
        }
        if let Some(replaces) = replaces {
            output::line(format!("  replaces  {}", one_line(&replaces)))?;
        }
        if !unrequested.is_empty() {
            let names = unrequested.join(", ");
            output::line(format!("  imports   what its manifest does not request: {names}"))?;
        }
    }
    Ok(row)
}

fn row(id: &str, locked: &LockedPlugin, folder: &Path, state: &str, unrequested: &[&str]) -> Value {
    json!({
        "plugin": id,
        "state": state,
        "version": locked.version,
        "source": locked.source,
        "resolved": locked.resolved,
        "digest": locked.code.named(),
        "manifest": locked.manifest.named(),
        "skills": locked.skills.map(|skills| skills.named()),
        "folder": folder.to_string_lossy(),
        "unrequested": unrequested,
        "replaced": null,
    })
}

/// Installs what the lock file has, as it has it. Gives what is there then, and what is not, and why:
/// the others are no less wanted for it.
async fn install_all(
    common: &Common,
    fetcher: &Fetcher<'_>,
    place: &InstallFolder,
    lock: &mut LockFile,
) -> Result<(Vec<Value>, Vec<(String, Error)>), Error> {
    let (mut rows, mut failed) = (Vec::new(), Vec::new());
    for (id, locked) in lock.plugins.clone() {
        match restore(common, fetcher, place, lock, &id, locked).await {
            Ok(row) => rows.push(row),
            Err(Error::Unread) => return Err(Error::Unread),
            Err(error) => {
                let error = Error::NotInstalled { plugin: id.clone(), error: Box::new(error) };
                error.tell();
                failed.push((id, error));
            }
        }
    }
    Ok((rows, failed))
}

/// Installs one plugin as the lock file has it, and gives a row about it.
async fn restore(
    common: &Common,
    fetcher: &Fetcher<'_>,
    place: &InstallFolder,
    lock: &mut LockFile,
    id: &str,
    locked: LockedPlugin,
) -> Result<Value, Error> {
    if place.has(id, &locked) {
        if !common.json {
            output::line(format!("plugin \"{id}\" is there"))?;
        }
        return Ok(row(id, &locked, &place.of_plugin(id), "there", &[]));
    }
    let source = locked.resolved.as_ref().unwrap_or(&locked.source);
    let source = Source::parse(source, &place.folder)?;
    let mut fetched = fetcher.fetch(&source, Some(locked.code)).await?;
    // What was written for it may still be there.
    if fetched.manifest.is_none() {
        fetched.manifest = place.manifest(id, &locked);
    }
    let mut plan = PreparedInstall::new(fetched, locked.source.clone(), Some(id))?;
    if plan.locked.manifest != locked.manifest {
        return Err(FetchError::Digest {
            what: format!("the manifest of plugin \"{id}\""),
            expected: locked.manifest,
            found: plan.locked.manifest,
        }
        .into());
    }
    if plan.locked.skills != locked.skills {
        let problem = format!("the skills of plugin \"{id}\" are not what the lock file has");
        let hint = format!("`tenon install{}` accepts the change", quoted(&locked.source));
        return Err(Error::Refused { problem, hint });
    }
    plan.locked = locked;
    install(common, place, lock, plan)
}

/// Asks for what was installed to be approved, as far as it has to be.
async fn approve_all(
    common: &Common,
    place: &InstallFolder,
    rows: Vec<Value>,
    yes: bool,
) -> Result<Vec<Value>, Error> {
    let found = open::found(common)?;
    let mut told = Vec::new();
    for mut row in rows {
        let id = row["plugin"].as_str().unwrap_or_default().to_string();
        let manifest = place.of_plugin(&id).join(MANIFEST);
        let mut left_out = found.discovery.left_out.iter();
        if let Some(left_out) = left_out.find(|left_out| same(&left_out.named_in, &manifest)) {
            tracing::warn!(
                "plugin \"{id}\" of {} is left out: {}",
                left_out.named_in.display(),
                left_out.reason
            );
        }
        let mut candidates = found.discovery.candidates.iter();
        let candidate = candidates.find(|candidate| same(candidate.named_in(), &manifest));
        if let Some(Candidate { settings, settings_schema: Some(schema), .. }) = candidate
            && let Err(problem) = check_settings(schema, settings)
        {
            tracing::warn!(
                "plugin \"{id}\" is not loaded yet: {problem}; set them under [settings.{id}] in tenon.toml"
            );
        }
        row["approval"] = approve::installed(common, &found, &id, &manifest, yes).await?.into();
        told.push(row);
    }
    Ok(told)
}
