//! Reading files that people and packages name: ordinary ones, of bounded size.

use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest component, in bytes.
pub const COMPONENT: u64 = 256 << 20;

/// The largest file of configuration, in bytes.
pub(crate) const CONFIGURATION: u64 = 4 << 20;

/// Reads a file of up to `most` bytes.
///
/// # Errors
///
/// Where the file cannot be read, is larger, or is no ordinary one: a device or a pipe may have no
/// end.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    // Before it is opened: opening a pipe waits for its writer.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(most)).unwrap_or(0) + 1);
    File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::other(format!("it has more than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// Reads a file of UTF-8 text.
pub(crate) fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads a file of UTF-8 text that only this user can read.
#[cfg(unix)]
pub(crate) fn read_private(path: &Path) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path)?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    if !mine || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("others can read it: `chmod 600` makes it private"));
    }
    read_text(path, CONFIGURATION)
}

/// A file of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub(crate) fn read_private(path: &Path) -> io::Result<String> {
    read_text(path, CONFIGURATION)
}

/// Makes a folder that only this user can look into, where there is none.
#[cfg(unix)]
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a folder that only this user can look into, or refuses one that others can write to.
pub(crate) fn claim(folder: &Path) -> io::Result<()> {
    make_private(folder)?;
    match is_private(folder)? {
        true => Ok(()),
        false => Err(io::Error::other("others can write to the folder")),
    }
}

/// Whether a folder is this user's, and nobody else can write to it.
#[cfg(unix)]
pub(crate) fn is_private(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder)?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(mine && metadata.mode() & 0o022 == 0)
}

/// Whether nobody but this user and the administrator can write to a file or a folder.
#[cfg(unix)]
pub(crate) fn is_guarded(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    // A relative path may have no folder in it.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let metadata = std::fs::metadata(path)?;
    let owners = [0, rustix::process::geteuid().as_raw()];
    Ok(owners.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0)
}

/// A file of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub(crate) fn is_guarded(_: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(not(unix))]
pub(crate) fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// A folder of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub(crate) fn is_private(_: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The SHA-256 of a file's content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    pub(crate) fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(<Sha256 as sha2::Digest>::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_files_within_bounds_are_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "four").unwrap();
        assert_eq!(read_text(file.path(), 4).unwrap(), "four");
        assert!(read(file.path(), 3).is_err());
        assert!(read(file.path().parent().unwrap(), 4).is_err());
        #[cfg(unix)]
        assert_eq!(
            read(Path::new("/dev/zero"), 4).unwrap_err().to_string(),
            "it is not a regular file"
        );
    }
}
