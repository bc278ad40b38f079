//! A JSON file of the user's own, which several programs read and change: what was approved, what
//! tools were when they were first seen.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files;

/// The place of such a file.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonFile {
    path: PathBuf,
    /// How long it may be when it is written, in bytes.
    most: u64,
}

/// Why a file is not read or written.
#[derive(Debug)]
pub enum JsonFileError {
    /// Others can write to it, or put another in its place.
    Unguarded(PathBuf),
    /// It cannot be read or written.
    Io(io::Error),
    /// It is not what is written here.
    Damaged(serde_json::Error),
}

impl From<io::Error> for JsonFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl JsonFile {
    /// A file at this path, which need not be there yet and is at most so long, in bytes.
    pub fn new(path: PathBuf, most: u64) -> Self {
        Self { path, most }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in it; of one that is not there, nothing.
    pub fn read<T: DeserializeOwned + Default>(&self) -> Result<T, JsonFileError> {
        for path in [self.folder(), &self.path] {
            match files::is_guarded(path) {
                Ok(true) => {}
                Ok(false) => return Err(JsonFileError::Unguarded(path.into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error.into()),
            }
        }
        match files::read_text(&self.path, self.most) {
            Ok(text) => serde_json::from_str(&text).map_err(JsonFileError::Damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(T::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Changes it, alone of all who do. One that would be too long stays as it was, and the error is
    /// of the kind [`io::ErrorKind::FileTooLarge`].
    pub fn change<T: Serialize + DeserializeOwned + Default>(
        &self,
        change: impl FnOnce(&mut T),
    ) -> Result<(), JsonFileError> {
        let folder = self.folder();
        files::claim(folder)?;
        let lock = self.path.with_extension("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(lock)?;
        lock.lock()?;
        let mut content = self.read()?;
        change(&mut content);
        let mut text = serde_json::to_vec_pretty(&content).map_err(io::Error::from)?;
        text.push(b'\n');
        if text.len() as u64 > self.most {
            let problem = format!("it would be larger than {} MiB", self.most >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem).into());
        }
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(io::Error::from)?;
        Ok(())
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or(Path::new("."))
    }
}
