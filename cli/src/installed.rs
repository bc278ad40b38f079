//! Where installed plugins are, and how they come and go: in the `.tenon/plugins` of a project or in
//! the user's own folder, each with an entry in the lock file beside it.

use serde::Deserialize;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};
use tenon_config::admit::Refusal;
use tenon_config::discover::{Candidate, Sources, USER, WORKSPACE, discover};
use tenon_config::files::{Digest, MAX_COMPONENT_BYTES, read};
use tenon_config::lock::{FILE_NAME, LockFile, LockedPlugin};
use tenon_config::manifest::FILE_NAME as MANIFEST;
use tenon_config::skills::{self, PluginSkillFiles, SkillError};
use tenon_host::{Config, HostEnvironment, PluginKind, check_default_settings};

use crate::approval::CapabilityValues;
use crate::error::Error;
use crate::plugin_in_folder::{alone, same};
use crate::{Common, open};

/// The longest name of a file, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// What a manifest says that matters for where it goes.
pub(crate) struct InstallManifest {
    pub(crate) id: String,
    pub(crate) kind: PluginKind,
    pub(crate) version: Option<String>,
    /// Its component or script, below its folder.
    pub(crate) file: PathBuf,
}

impl InstallManifest {
    /// Reads a manifest as the host would.
    pub(crate) fn read(manifest: &str) -> Result<Self, String> {
        let stage = tempfile::tempdir().map_err(|error| error.to_string())?;
        Self::of(&staged_candidate(manifest, stage.path())?, stage.path())
    }

    /// Checks that a host would load a plugin of this manifest and code, if it is granted what it
    /// requests. What is only not on this machine, its user may put there.
    pub(crate) async fn check_loads(&self, manifest: &str, code: &[u8]) -> Result<(), Error> {
        let failed = |error: io::Error| Error::Host(format!("no folder can be made: {error}"));
        let stage = tempfile::tempdir().map_err(failed)?;
        let file = stage.path().join(&self.file);
        fs::create_dir_all(file.parent().unwrap_or(stage.path())).map_err(failed)?;
        fs::write(&file, code).map_err(failed)?;
        let candidate = staged_candidate(manifest, stage.path()).map_err(Error::Input)?;
        if let Some(schema) = &candidate.settings_schema {
            check_default_settings(schema, &candidate.settings)
                .map_err(|problem| Error::Input(format!("plugin \"{}\": {problem}", self.id)))?;
        }
        match open::refusal(&candidate).await {
            None | Some(Refusal::Missing(_)) => Ok(()),
            Some(refusal) => Err(Error::Refused {
                problem: format!("plugin \"{}\" would not be loaded: {refusal}", self.id),
                hint: refusal.remedy(),
            }),
        }
    }

    fn of(candidate: &Candidate, stage: &Path) -> Result<Self, String> {
        if candidate.kind() == PluginKind::Mcp {
            return Err(
                "it is of an MCP server, which is not installed but configured under `mcp`".into(),
            );
        }
        let path = candidate.file().unwrap_or(stage);
        let file = path.strip_prefix(stage).map_err(|_| LEADS_OUT)?;
        check_file(file)?;
        // With `/` or `/.` behind it, it would be a folder.
        let end = file.file_name().unwrap_or_default().as_encoded_bytes();
        if !path.as_os_str().as_encoded_bytes().ends_with(end) {
            return Err(NO_FILE.into());
        }
        Ok(Self {
            id: candidate.id().to_string(),
            kind: candidate.kind(),
            version: candidate.version().map(ToString::to_string),
            file: file.to_path_buf(),
        })
    }

    /// Its file, as lock files have it: the same on every system.
    pub(crate) fn file_name(&self) -> String {
        let names: Vec<_> = self.file.iter().map(|name| name.to_string_lossy()).collect();
        names.join("/")
    }
}

/// What a manifest requests, as it is written there.
pub(crate) fn requests_as_written(manifest: &str) -> CapabilityValues {
    #[derive(Default, Deserialize)]
    struct Requests {
        #[serde(default)]
        capabilities: CapabilityValues,
    }
    let requests: Requests = toml::from_str(manifest).unwrap_or_default();
    requests.capabilities
}

/// What a manifest says, in a folder of its own.
fn staged_candidate(manifest: &str, stage: &Path) -> Result<Candidate, String> {
    fs::write(stage.join(MANIFEST), manifest).map_err(|error| error.to_string())?;
    let mut config = Config::default();
    config.discovery.max_depth = 0;
    let discovery = discover(&Sources {
        configs: vec![config],
        bundled: vec![stage.into()],
        host_environment: alone(),
        ..Sources::default()
    });
    discovery.candidates.into_iter().next().ok_or_else(|| {
        let problem = discovery.diagnostics.into_iter().next().map(|broken| broken.problem);
        problem.unwrap_or_else(|| "it is not a manifest".into())
    })
}

const LEADS_OUT: &str = "its `path` leads out of its folder";
const NO_FILE: &str = "its `path` names no file";
const IN_SKILLS: &str = "its `path` is in the folder of its skills";

/// Checks that a file can be put into the folder of a plugin, beside its manifest. What it is called
/// is for who wrote the plugin to say.
pub(crate) fn check_file(file: &Path) -> Result<(), &'static str> {
    let has = |is: fn(&[u8]) -> bool| file.iter().any(|name| is(name.as_encoded_bytes()));
    if !stays_below(file) {
        return Err(LEADS_OUT);
    }
    if file.file_name().is_none() {
        return Err(NO_FILE);
    }
    if has(|name| name.contains(&0)) {
        return Err("its `path` has a NUL in it");
    }
    if has(|name| name.len() > MAX_NAME_BYTES) {
        return Err("its `path` is longer than a name may be");
    }
    let first = file.iter().next().unwrap_or_default();
    if first.eq_ignore_ascii_case(skills::FOLDER) {
        return Err(IN_SKILLS);
    }
    // Some systems do not tell them apart by case.
    if has(|name| name.eq_ignore_ascii_case(MANIFEST.as_bytes())) {
        return Err("its `path` is that of a manifest");
    }
    Ok(())
}

/// What is installed of a plugin.
pub(crate) struct PluginFiles<'a> {
    pub(crate) manifest: &'a str,
    pub(crate) code: &'a [u8],
    pub(crate) skills: &'a PluginSkillFiles,
}

/// The folder of a project or of the user's configuration.
pub(crate) struct InstallFolder {
    pub(crate) folder: PathBuf,
    plugins: PathBuf,
    is_user: bool,
}

impl InstallFolder {
    pub(crate) fn of(
        common: &Common,
        host_environment: &HostEnvironment,
        is_user: bool,
    ) -> Result<Self, Error> {
        let folder = match is_user {
            true => host_environment
                .configuration
                .clone()
                .ok_or_else(|| Error::Host("the user's plugin folder is not known".into()))?,
            false if common.config.is_some() => {
                let problem =
                    "--config reads no plugins of a project; `--user` is for the user's own";
                return Err(Error::Input(problem.into()));
            }
            false if !common.project.is_dir() => {
                let problem = format!("--project {} is not a folder", common.project.display());
                return Err(Error::Input(problem));
            }
            false => common.project.clone(),
        };
        let plugins = folder.join(if is_user { USER } else { WORKSPACE });
        Ok(Self { folder, plugins, is_user })
    }

    /// The lock file.
    pub(crate) fn lock(&self) -> PathBuf {
        self.folder.join(FILE_NAME)
    }

    /// The folder of a plugin.
    pub(crate) fn of_plugin(&self, id: &str) -> PathBuf {
        self.plugins.join(id)
    }

    /// Keeps others from changing it as long as what is given is there.
    pub(crate) fn claim(&self) -> Result<File, Error> {
        self.check_links(&self.plugins, &self.plugins)?;
        let claimed = || {
            fs::create_dir_all(&self.plugins)?;
            let folder = lockable(&self.plugins)?;
            folder.lock()?;
            Ok(folder)
        };
        claimed().map_err(|error| self.unwritable(&self.plugins, error))
    }

    /// Whether a plugin is there, and is what the lock file has. What a link leads to is elsewhere.
    pub(crate) fn has(&self, id: &str, locked: &LockedPlugin) -> bool {
        let folder = self.of_plugin(id);
        let is = |path: &Path, expected: Digest| {
            let path = folder.join(path);
            self.check_links(&folder, &path).is_ok()
                && read(&path, MAX_COMPONENT_BYTES).is_ok_and(|bytes| Digest::of(bytes) == expected)
        };
        is(Path::new(MANIFEST), locked.manifest)
            && self.skills(id).is_ok_and(|skills| skills.digest() == locked.skills)
            && self.file_of(id, locked).is_some_and(|file| is(&file, locked.code))
    }

    /// The files of the skills that a plugin has.
    fn skills(&self, id: &str) -> Result<PluginSkillFiles, SkillError> {
        PluginSkillFiles::read(&self.of_plugin(id))
    }

    /// The manifest that a plugin has, where it is the one that was installed.
    pub(crate) fn manifest(&self, id: &str, locked: &LockedPlugin) -> Option<String> {
        let bytes = read(&self.of_plugin(id).join(MANIFEST), MAX_COMPONENT_BYTES).ok()?;
        let bytes = (Digest::of(&bytes) == locked.manifest).then_some(bytes)?;
        String::from_utf8(bytes).ok()
    }

    /// The component or script that was installed of a plugin, below its folder. A manifest that is
    /// not the one that was installed is not asked: it may name any other file.
    fn file_of(&self, id: &str, locked: &LockedPlugin) -> Option<PathBuf> {
        let about =
            self.manifest(id, locked).and_then(|manifest| InstallManifest::read(&manifest).ok());
        let file = about.map(|about| about.file);
        let file = file.or_else(|| locked.file.as_ref().map(PathBuf::from))?;
        check_file(&file).is_ok().then_some(file)
    }

    /// Puts a plugin there. Where that fails, what was there before is there still.
    pub(crate) fn put(
        &self,
        lock: &mut LockFile,
        about: &InstallManifest,
        locked: LockedPlugin,
        files: &PluginFiles<'_>,
    ) -> Result<(), Error> {
        let folder = self.of_plugin(&about.id);
        let file = folder.join(&about.file);
        let parent = file.parent().unwrap_or(&folder);
        let former = { lock.plugins.get(&about.id) }
            .and_then(|locked| self.file_of(&about.id, locked))
            .map(|former| folder.join(former));
        let skills = folder.join(skills::FOLDER);
        self.check_links(&folder, parent)?;
        self.check_links(&folder, &skills)?;
        let staged = || {
            fs::create_dir_all(parent).map_err(|error| self.unwritable(parent, error))?;
            [&folder, parent].into_iter().for_each(sweep);
            let manifest = (folder.join(MANIFEST), files.manifest.as_bytes());
            let each = [(file.clone(), files.code), manifest].into_iter();
            let each = each.map(|(path, content)| match staged(&path, content) {
                Ok(staged) => Ok((staged, path)),
                Err(error) => Err(self.unwritable(&path, error)),
            });
            let each = each.collect::<Result<Vec<_>, _>>()?;
            let skills = StagedSkills::new(&skills, files.skills);
            Ok((each, skills.map_err(|error| self.unwritable(&folder, error))?))
        };
        let put = staged().and_then(|staged| self.bind(lock, &about.id, locked, staged));
        if put.is_err() {
            remove_empty(&folder, parent);
        }
        put?;
        if let Some(former) = former.filter(|former| !same(former, &file)) {
            // It was installed before, under another name.
            let parent = former.parent().unwrap_or(&folder);
            if self.check_links(&folder, parent).is_ok() && fs::remove_file(&former).is_ok() {
                remove_empty(&folder, parent);
            }
        }
        Ok(())
    }

    /// Puts files in their places, and what they are into the lock file. That is first: what lies
    /// there meanwhile is not what it says, and so is not loaded.
    fn bind(
        &self,
        lock: &mut LockFile,
        id: &str,
        locked: LockedPlugin,
        (files, skills): (Vec<(NamedTempFile, PathBuf)>, StagedSkills),
    ) -> Result<(), Error> {
        let (path, former) = (self.lock(), lock.clone());
        lock.plugins.insert(id.to_string(), locked);
        let is_new = *lock != former;
        let was_there = path.exists();
        let bind = || -> Result<(), Error> {
            if is_new {
                lock.write(&path)?;
            }
            for (file, path) in files {
                file.persist(&path).map_err(|error| self.unwritable(&path, error.error))?;
            }
            let place = skills.place.clone();
            skills.persist().map_err(|error| self.unwritable(&place, error))
        };
        let bound = bind();
        if bound.is_err() {
            // Should this fail as well, the plugin is not loaded, and what failed first is told.
            let _ = match was_there {
                true if is_new => former.write(&path).map_err(|_| ()),
                true => Ok(()),
                false => fs::remove_file(&path).map_err(|_| ()),
            };
            *lock = former;
        }
        bound
    }

    /// The files that were installed of a plugin.
    pub(crate) fn files(&self, lock: &LockFile, id: &str) -> Result<Vec<PathBuf>, Error> {
        let folder = self.of_plugin(id);
        if !folder.exists() {
            return Ok(Vec::new());
        }
        let file = lock.plugins.get(id).and_then(|locked| self.file_of(id, locked));
        let file = file.ok_or_else(|| Error::Refused {
            problem: format!(
                "the installed files of {} are not known: its manifest differs from {}",
                folder.display(),
                self.lock().display()
            ),
            hint: "run `tenon install` to restore what was installed, or remove the folder first"
                .into(),
        })?;
        let file = folder.join(file);
        self.check_links(&folder, file.parent().unwrap_or(&folder))?;
        // Skills that somebody has changed stay.
        let is_installed = |skills: &PluginSkillFiles| {
            lock.plugins.get(id).is_some_and(|locked| locked.skills == skills.digest())
        };
        let skills = self.skills(id).ok().filter(is_installed).unwrap_or_default();
        let skills = skills.iter().map(|(path, _)| folder.join(skills::FOLDER).join(path));
        Ok(skills.chain([folder.join(MANIFEST), file]).collect())
    }

    /// Removes these files of a plugin, and what binds it. Gives what else is in its folder.
    pub(crate) fn remove(
        &self,
        lock: &mut LockFile,
        id: &str,
        files: &[PathBuf],
    ) -> Result<Vec<PathBuf>, Error> {
        let folder = self.of_plugin(id);
        // What cannot be written then is told before anything is removed.
        lock.write(&self.lock())?;
        for path in files {
            match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.unwritable(path, error));
                }
                _ => {}
            }
        }
        for parent in files.iter().filter_map(|file| file.parent()) {
            remove_empty(&folder, parent);
        }
        lock.plugins.remove(id);
        lock.write(&self.lock())?;
        let left = fs::read_dir(&folder).into_iter().flatten().flatten();
        Ok(left.map(|entry| entry.path()).collect())
    }

    /// Checks that nothing on the way to a folder is a link: one in a checkout must not have anything
    /// made, written or removed elsewhere.
    fn check_links(&self, folder: &Path, inner: &Path) -> Result<(), Error> {
        // The user's own configuration may be anywhere, and links in it are the user's.
        let outer = if self.is_user { folder } else { &self.folder };
        let mut way = inner.ancestors().take_while(|above| *above != outer);
        match way.find(|above| above.is_symlink()) {
            None => Ok(()),
            Some(link) => Err(Error::Refused {
                problem: format!("{} leads elsewhere by a link", link.display()),
                hint: "remove the link, or install with `--user`".into(),
            }),
        }
    }

    fn unwritable(&self, path: &Path, error: io::Error) -> Error {
        Error::Host(format!("{} cannot be written: {error}", path.display()))
    }
}

/// A file that is whole, and has yet to take its place. What cannot be replaced is told before
/// anything is.
fn staged(path: &Path, content: &[u8]) -> io::Result<NamedTempFile> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let mut file = tempfile::Builder::new();
    file.prefix(STAGED);
    // As any other file that this user makes.
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    let mut file = file.tempfile_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// The skills of a plugin, which have yet to take their place. They take the place of all that is there.
struct StagedSkills {
    place: PathBuf,
    /// The folder that is to be there; none for a plugin without skills.
    staged: Option<TempDir>,
}

impl StagedSkills {
    fn new(place: &Path, files: &PluginSkillFiles) -> io::Result<Self> {
        let place = place.to_path_buf();
        if files.is_empty() {
            return Ok(Self { place, staged: None });
        }
        let staged = staged_folder(&place)?;
        for (path, content) in files.iter() {
            let path = staged.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(staged.path()))?;
            let mut file = File::create_new(&path)?;
            file.write_all(content)?;
            file.sync_all()?;
        }
        Ok(Self { place, staged: Some(staged) })
    }

    fn persist(self) -> io::Result<()> {
        let Self { place, staged } = self;
        let former = staged_folder(&place)?;
        let before = former.path().join(skills::FOLDER);
        // A file of this name is none of the plugin's skills.
        if place.is_dir() {
            fs::rename(&place, &before)?;
        }
        let put = staged.map_or(Ok(()), |staged| fs::rename(staged.path(), &place));
        if put.is_err() {
            // Should this fail as well, the plugin is not what the lock file has, and is not loaded.
            let _ = fs::rename(&before, &place);
        }
        put
    }
}

/// A folder beside another, for what is to take its place or was there before. It is as any other that this user
/// makes.
fn staged_folder(place: &Path) -> io::Result<TempDir> {
    let mut folder = tempfile::Builder::new();
    folder.prefix(STAGED);
    #[cfg(unix)]
    folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o755));
    folder.tempdir_in(place.parent().unwrap_or(Path::new(".")))
}

/// Whether a folder has nothing in it but what an installation leaves that is ended by force.
pub(crate) fn is_left_over(folder: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(folder) else { return false };
    entries.all(|entry| entry.is_ok_and(|entry| is_staged(&entry.path())))
}

/// Whether a file or folder is one that was staged, by its name.
fn is_staged(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.starts_with(STAGED)) && !path.is_symlink()
}

/// How the names of staged files begin.
const STAGED: &str = ".tenon-staged-";

/// Removes what an earlier installation has left in a folder, which had no end. Nobody installs
/// anything there at the same time.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if is_staged(&path) {
            let _ = if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        }
    }
}

/// Removes folders from the inner to the outer one, as far as nothing is in them.
fn remove_empty(outer: &Path, inner: &Path) {
    for folder in inner.ancestors().take_while(|above| above.starts_with(outer)) {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => break,
            _ => {}
        }
    }
}

/// What stands for a folder where it is locked: itself, so that nothing lies about.
#[cfg(unix)]
fn lockable(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// No folder can be opened here.
#[cfg(not(unix))]
fn lockable(folder: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(folder.with_extension("lock"))
}

/// Whether a path stays below the folder that it begins in, as it is written.
pub(crate) fn stays_below(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_one_that_can_lie_beside_its_manifest() {
        let check = |path: &str, expected: Option<&str>| {
            let path = toml::Value::from(path);
            let text = format!("plugin.id = \"p\"\nruntime = {{ kind = \"wasm\", path = {path} }}");
            let problem = InstallManifest::read(&text).map(|about| about.file_name()).err();
            assert_eq!(problem.as_deref(), expected, "{path}");
        };
        let manifest = "its `path` is that of a manifest";
        check("p.wasm", None);
        check("./build/p.wasm", None);
        check(&"x".repeat(255), None);
        check(&"x".repeat(256), Some("its `path` is longer than a name may be"));
        check("a\0b", Some("its `path` has a NUL in it"));
        check("", Some(NO_FILE));
        check(".", Some(NO_FILE));
        check("p.wasm/", Some(NO_FILE));
        check("build/.", Some(NO_FILE));
        check("../p.wasm", Some(LEADS_OUT));
        check("/p.wasm", Some(LEADS_OUT));
        check("skills/p.wasm", Some(IN_SKILLS));
        check("Skills/x/p.wasm", Some(IN_SKILLS));
        check("./plugin.toml", Some(manifest));
        check("Plugin.toml/p.wasm", Some(manifest));
        check("sub/plugin.toml", Some(manifest));
    }
}
