//! The folder of a plugin that a command makes.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use tenon_config::discover::is_id;

use crate::Common;
use crate::error::Error;

/// Checks that a text can be the id of a plugin.
pub(crate) fn check_id(name: &str) -> Result<(), Error> {
    match is_id(name) {
        true => Ok(()),
        false => Err(Error::Input(format!(
            "invalid plugin id `{name}`: ids have 1 to 64 characters of a-z, 0-9, `-` and `_`, and begin with a letter or digit"
        ))),
    }
}

/// A folder in the project that is not there yet, or empty.
pub(crate) struct NewFolder(PathBuf);

impl NewFolder {
    /// The folder that is named like the plugin.
    pub(crate) fn of(common: &Common, name: &str) -> Result<Self, Error> {
        check_id(name)?;
        let folder = match common.project == Path::new(".") {
            true => PathBuf::from(name),
            false => common.project.join(name),
        };
        if is_occupied(&folder)? {
            let problem = format!("{} is there already, and not empty", folder.display());
            return Err(Error::Input(problem));
        }
        Ok(Self(folder))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes files, by their paths in the folder.
    pub(crate) fn write(&self, files: &[(impl AsRef<Path>, impl AsRef<str>)]) -> Result<(), Error> {
        for (path, text) in files {
            let path = self.0.join(path);
            write_new(&path, text.as_ref()).map_err(|error| Error::Write(path, error))?;
        }
        Ok(())
    }
}

fn is_occupied(folder: &Path) -> Result<bool, Error> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::Read(folder.into(), error)),
    }
}

/// Writes a file that is not there yet.
fn write_new(path: &Path, text: &str) -> std::io::Result<()> {
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::File::create_new(path)?.write_all(text.as_bytes())
}
