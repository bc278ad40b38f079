//! Where installed plugins are, and how they come and go: in the `.tenon/plugins` of a project or in
//! the user's own folder, each with an entry in the lock file beside it.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use tenon_host::discover::{Sources, USER, WORKSPACE, discover};
use tenon_host::files::{Digest, read, write_whole};
use tenon_host::lock::{FILE_NAME, LockFile, Locked};
use tenon_host::{Config, PluginKind, Surroundings};

use crate::Common;
use crate::error::Error;
use crate::fetch::stays_below;

/// The name of a manifest.
const MANIFEST: &str = "plugin.toml";

/// What a manifest says that matters for where it goes.
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) version: Option<String>,
    /// Its component or script, below its folder.
    pub(crate) file: PathBuf,
}

impl About {
    /// Reads a manifest as the host would.
    pub(crate) fn read(manifest: &str) -> Result<Self, String> {
        let stage = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs::write(stage.path().join(MANIFEST), manifest).map_err(|error| error.to_string())?;
        let mut config = Config::default();
        config.discovery.max_depth = 0;
        let discovery = discover(&Sources {
            configs: vec![config],
            bundled: vec![stage.path().into()],
            surroundings: Surroundings::of_process(),
            ..Sources::default()
        });
        let Some(candidate) = discovery.candidates.first() else {
            let problem = discovery.diagnostics.into_iter().next().map(|broken| broken.problem);
            return Err(problem.unwrap_or_else(|| "it is no manifest".into()));
        };
        if candidate.kind() == PluginKind::Mcp {
            return Err("it is of an MCP server, of which there is nothing to install: an entry under `mcp` is all it takes".into());
        }
        let file = candidate.file().and_then(|file| file.strip_prefix(stage.path()).ok());
        let file = file.filter(|file| stays_below(file));
        let file = file.ok_or("its `path` leads out of its folder")?;
        Ok(Self {
            id: candidate.id().to_string(),
            version: candidate.version().map(ToString::to_string),
            file: file.to_path_buf(),
        })
    }
}

/// The folder of a project or of the user's configuration.
pub(crate) struct Place {
    pub(crate) folder: PathBuf,
    plugins: PathBuf,
    is_user: bool,
}

impl Place {
    pub(crate) fn of(
        common: &Common,
        surroundings: &Surroundings,
        is_user: bool,
    ) -> Result<Self, Error> {
        let folder = match is_user {
            true => surroundings
                .configuration
                .clone()
                .ok_or_else(|| Error::Host("there is no folder for the user's plugins".into()))?,
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
        let claimed = || {
            fs::create_dir_all(&self.plugins)?;
            let folder = lockable(&self.plugins)?;
            folder.lock()?;
            Ok(folder)
        };
        claimed().map_err(|error| self.unwritable(&self.plugins, error))
    }

    /// The digests of the code and the manifest that a plugin has, where it is there.
    pub(crate) fn digests(&self, id: &str) -> Option<(Digest, Digest)> {
        let folder = self.of_plugin(id);
        let manifest = read(&folder.join(MANIFEST), tenon_host::files::COMPONENT).ok()?;
        let about = About::read(str::from_utf8(&manifest).ok()?).ok()?;
        let code = read(&folder.join(about.file), tenon_host::files::COMPONENT).ok()?;
        Some((Digest::of(code), Digest::of(manifest)))
    }

    /// The manifest that a plugin has, where it is there.
    pub(crate) fn manifest(&self, id: &str) -> Option<String> {
        let path = self.of_plugin(id).join(MANIFEST);
        String::from_utf8(read(&path, tenon_host::files::COMPONENT).ok()?).ok()
    }

    /// Puts a plugin there. The lock file is first: what lies there meanwhile is not what it says, and
    /// so is not loaded.
    pub(crate) fn put(
        &self,
        lock: &mut LockFile,
        about: &About,
        locked: Locked,
        manifest: &str,
        code: &[u8],
    ) -> Result<(), Error> {
        let id = &about.id;
        let folder = self.of_plugin(id);
        let file = folder.join(&about.file);
        let former = self.manifest(id).and_then(|manifest| About::read(&manifest).ok());
        let parent = file.parent().unwrap_or(&folder);
        fs::create_dir_all(parent).map_err(|error| self.unwritable(parent, error))?;
        self.check_inside(&folder, parent)?;
        lock.plugins.insert(id.clone(), locked);
        lock.write(&self.lock())?;
        write_whole(&file, code).map_err(|error| self.unwritable(&file, error))?;
        let path = folder.join(MANIFEST);
        write_whole(&path, manifest.as_bytes()).map_err(|error| self.unwritable(&path, error))?;
        if let Some(former) = former.filter(|former| former.file != about.file) {
            // It was installed before, under another name.
            let _ = fs::remove_file(folder.join(former.file));
        }
        Ok(())
    }

    /// Removes what was installed of a plugin. Gives what else is in its folder.
    pub(crate) fn remove(&self, lock: &mut LockFile, id: &str) -> Result<Vec<PathBuf>, Error> {
        let folder = self.of_plugin(id);
        if let Some(about) = self.manifest(id).and_then(|manifest| About::read(&manifest).ok()) {
            let file = folder.join(&about.file);
            if let Some(parent) = file.parent().filter(|parent| parent.exists()) {
                self.check_inside(&folder, parent)?;
            }
            for path in [folder.join(MANIFEST), file.clone()] {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(self.unwritable(&path, error));
                    }
                    _ => {}
                }
            }
            // The folders that were made for it, if nothing else is in them.
            for above in file.ancestors().skip(1).take_while(|above| above.starts_with(&folder)) {
                if fs::remove_dir(above).is_err() {
                    break;
                }
            }
        }
        lock.plugins.remove(id);
        lock.write(&self.lock())?;
        let left = fs::read_dir(&folder).into_iter().flatten().flatten();
        Ok(left.map(|entry| entry.path()).collect())
    }

    /// Checks that a folder is where it seems to be: a link in a checkout must not have anything
    /// written or removed elsewhere.
    fn check_inside(&self, folder: &Path, inner: &Path) -> Result<(), Error> {
        // The user's own configuration may be anywhere, and links in it are the user's.
        let outer = if self.is_user { folder } else { &self.folder };
        let real = |path: &Path| path.canonicalize().map_err(|error| self.unwritable(path, error));
        let below = inner.strip_prefix(outer).unwrap_or(inner);
        match real(outer)?.join(below) == real(inner)? {
            true => Ok(()),
            false => Err(Error::Refused {
                problem: format!("{} leads elsewhere by a link", inner.display()),
                hint: "remove the link, or install with `--user`".into(),
            }),
        }
    }

    fn unwritable(&self, path: &Path, error: io::Error) -> Error {
        Error::Host(format!("{} cannot be written: {error}", path.display()))
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
