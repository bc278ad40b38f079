//! Reading files that people and packages name: ordinary ones, of bounded size.

use sha2::Sha256;
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The largest component, in bytes.
pub const MAX_COMPONENT_BYTES: u64 = 256 << 20;

/// The largest file of configuration, in bytes.
pub const MAX_CONFIGURATION_BYTES: u64 = 4 << 20;

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
        true => Err(io::Error::other(format!("it is larger than {} MiB", most >> 20))),
        false => Ok(bytes),
    }
}

/// Reads a file of UTF-8 text.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

/// A path that begins in a folder, as people write it: without the `.` of `./x` in the middle.
pub fn in_folder(folder: &Path, path: impl AsRef<Path>) -> PathBuf {
    folder.join(path).components().collect()
}

/// The absolute form of a path, as it is written; of one that has none, the path itself.
pub fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.into())
}

/// Whether a program is named by its path. A bare name is looked for in `PATH`.
pub fn is_path(program: &Path) -> bool {
    program.components().nth(1).is_some()
}

/// A path under which the same file is found again, from whichever folder the host is started: the real path
/// of what is there, and the absolute one of what is not.
pub fn real_or_absolute(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| absolute(path))
}

/// A path as text, where two that differ are two texts: not every path is Unicode.
pub fn exact(path: &Path) -> String {
    path.to_str().map_or_else(|| format!("{path:?}"), str::to_string)
}

/// What of a file changes whenever its content does, as a text: its length, and when it changed.
pub fn state_of(about: &std::fs::Metadata) -> String {
    #[cfg(unix)]
    let changed = {
        use std::os::unix::fs::MetadataExt;
        (about.ino(), about.ctime(), about.ctime_nsec())
    };
    #[cfg(not(unix))]
    let changed = about.modified().ok();
    format!("{} {changed:?}", about.len())
}

/// Writes a file, as a whole: nobody sees half of it.
///
/// # Errors
///
/// Where the file cannot be written in its folder.
pub fn write_whole(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new();
    // As any other file that this user makes.
    #[cfg(unix)]
    file.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    written(&file, path, content)?.persist(path)?;
    Ok(())
}

/// Writes a new file that only this user can read, as a whole. One that is there stays.
///
/// # Errors
///
/// [`io::ErrorKind::AlreadyExists`] where there is one; others where it cannot be written in its folder.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    // Temporary files are private.
    written(&tempfile::Builder::new(), path, content)?.persist_noclobber(path)?;
    Ok(())
}

/// Writes a file that only this user can read, as a whole, in the place of one that may be there.
///
/// # Errors
///
/// Where it cannot be written in its folder.
pub fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    written(&tempfile::Builder::new(), path, content)?.persist(path)?;
    Ok(())
}

/// A file that is whole, and has yet to take its place.
fn written(
    file: &tempfile::Builder<'_, '_>,
    path: &Path,
    content: &[u8],
) -> io::Result<tempfile::NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = file.tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Reads a file of UTF-8 text that only this user can read.
#[cfg(unix)]
pub fn read_private(path: &Path) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(path)?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    if !mine || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("others can read it: `chmod 600` makes it private"));
    }
    read_text(path, MAX_CONFIGURATION_BYTES)
}

/// A file of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub fn read_private(path: &Path) -> io::Result<String> {
    read_text(path, MAX_CONFIGURATION_BYTES)
}

/// Makes a folder that only this user can look into, where there is none.
#[cfg(unix)]
pub fn make_private(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Makes a folder that only this user can look into, or refuses one that others can write to.
pub fn claim(folder: &Path) -> io::Result<()> {
    make_private(folder)?;
    match is_private(folder)? {
        true => Ok(()),
        false => Err(io::Error::other("others can write to the folder")),
    }
}

/// Whether a folder is this user's, and nobody else can write to it.
#[cfg(unix)]
pub fn is_private(folder: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::metadata(folder)?;
    let mine = metadata.uid() == rustix::process::geteuid().as_raw();
    Ok(mine && metadata.mode() & 0o022 == 0)
}

/// Whether nobody but this user and the administrator can write to a file or a folder.
#[cfg(unix)]
pub fn is_guarded(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    // A relative path may have no folder in it.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let metadata = std::fs::metadata(path)?;
    let owners = [0, rustix::process::geteuid().as_raw()];
    Ok(owners.contains(&metadata.uid()) && metadata.mode() & 0o022 == 0)
}

/// A file of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub fn is_guarded(_: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(not(unix))]
pub fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)
}

/// A folder of the user's profile is the user's own on Windows.
#[cfg(not(unix))]
pub fn is_private(_: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The SHA-256 of a file's content. It is shown in hexadecimal digits, and read with `sha256:` before
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid digest: expected `sha256:` and 64 digits of 0-9 and a-f")]
pub struct InvalidDigest;

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Self {
        Self(<Sha256 as sha2::Digest>::digest(bytes).into())
    }

    /// The digest with the name of what made it: `sha256:…`.
    pub fn named(&self) -> String {
        format!("sha256:{self}")
    }
}

impl Digest {
    /// Reads what [`fmt::Display`] shows.
    pub fn from_hex(digits: &str) -> Option<Self> {
        format!("sha256:{digits}").parse().ok()
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix("sha256:").ok_or(InvalidDigest)?;
        // One spelling only: digests are compared as texts elsewhere.
        if digits.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(InvalidDigest);
        }
        let mut bytes = [0; 32];
        hex::decode_to_slice(digits, &mut bytes).map_err(|_| InvalidDigest)?;
        Ok(Self(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_as_it_is_written() {
        let digest = Digest::of("x");
        assert_eq!(digest.named().parse(), Ok(digest));
        let check = |text: &str| assert_eq!(text.parse::<Digest>(), Err(InvalidDigest), "{text}");
        check(&digest.to_string());
        check(&digest.named().to_uppercase());
        check(&digest.named()[..70]);
        check(&format!("{}0", digest.named()));
        check(&digest.named().replace("sha256", "sha512"));
    }

    #[test]
    fn paths_in_folders_read_as_people_write_them() {
        let check = |folder: &str, path: &str, expected: &str| {
            let path = in_folder(Path::new(folder), path);
            assert_eq!(path.to_str(), Some(expected), "{folder:?}");
        };
        check(".", "./x.sh", "./x.sh");
        check("/a/.", "./../b/./x", "/a/../b/x");
        check("", "./x", "./x");
        check("/a", "/b", "/b");
    }

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
