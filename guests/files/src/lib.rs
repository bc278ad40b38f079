//! Tools for files, over the guest's file system: the folders that the host granted.

mod failure;
mod glob;

use std::collections::VecDeque;
use std::fs;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;
use std::time::UNIX_EPOCH;

use schemars::JsonSchema;
use serde::Serialize;
use tenon_sdk::{Error, Json, Result, plugin, tool};

use failure::at;

plugin!(tools: [read_file, write_file, list_dir, find, stat, make_dir, remove, rename]);

/// How much of a file is read unless the caller says otherwise.
const USUAL_BYTES: u64 = 1024 * 1024;
/// How much of a file can be asked for at once.
const MOST_BYTES: u64 = 8 * 1024 * 1024;
/// How many entries of a folder are listed.
const MOST_ENTRIES: usize = 10_000;
/// How many paths are found.
const MOST_FOUND: usize = 1_000;
/// How many entries are looked at to find them.
const MOST_SEEN: usize = 100_000;

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Piece {
    /// The text of the piece.
    text: String,
    /// Where to read on, in bytes; absent at the end of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_offset: Option<u64>,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Folder,
    /// A symbolic link, which was not followed.
    Link,
    Other,
}

impl From<fs::FileType> for Kind {
    fn from(kind: fs::FileType) -> Self {
        match kind {
            kind if kind.is_file() => Self::File,
            kind if kind.is_dir() => Self::Folder,
            kind if kind.is_symlink() => Self::Link,
            _ => Self::Other,
        }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Entry {
    /// The name in the folder.
    name: String,
    kind: Kind,
}

/// The entries of a folder.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Listing {
    /// The entries by their names.
    entries: Vec<Entry>,
    /// Whether there are more than were listed.
    truncated: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FoundPaths {
    /// The paths, those higher up first.
    paths: Vec<String>,
    /// Whether the search stopped before it had seen everything.
    truncated: bool,
    /// Folders that could not be searched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

/// What is known about a path.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Status {
    kind: Kind,
    /// The size in bytes.
    size: u64,
    /// When it was last written, in seconds since the beginning of 1970, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<u64>,
}

/// Reads a text file in UTF-8, or a piece of it.
#[tool(read_only, idempotent, capabilities("filesystem"))]
pub async fn read_file(
    path: String,
    /// Where to begin, in bytes; at the beginning unless told otherwise.
    offset: Option<u64>,
    /// How many bytes to read: 1048576 unless told otherwise, at most 8388608.
    limit: Option<u64>,
) -> Result<Json<Piece>> {
    let limit = limit.unwrap_or(USUAL_BYTES);
    if !(4..=MOST_BYTES).contains(&limit) {
        let message = format!("limit is {limit}: between 4 and {MOST_BYTES} bytes are read");
        return Err(Error::invalid_input(message).into());
    }
    let offset = offset.unwrap_or(0);
    let mut file = fs::File::open(&path).map_err(at(&path))?;
    if file.metadata().map_err(at(&path))?.is_dir() {
        return Err(Error::invalid_input(format!("\"{path}\" is a folder")).into());
    }
    file.seek(SeekFrom::Start(offset)).map_err(at(&path))?;
    // One byte more tells whether the file goes on.
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(at(&path))?;
    let more = bytes.len() as u64 > limit;
    bytes.truncate(limit as usize);
    let text = text(bytes, more).ok_or_else(|| {
        Error::invalid_input(format!("\"{path}\" is no text in UTF-8 at offset {offset}"))
    })?;
    let next_offset = more.then(|| offset + text.len() as u64);
    Ok(Json(Piece { text, next_offset }))
}

/// The text in bytes that may have been cut within a character, which is then left out.
fn text(mut bytes: Vec<u8>, cut: bool) -> Option<String> {
    if let Err(error) = std::str::from_utf8(&bytes)
        && cut
        && error.error_len().is_none()
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).ok()
}

/// Writes a text into a file, in place of what it held or after it. Makes the file where there is
/// none.
#[tool(destructive, capabilities("filesystem"))]
pub async fn write_file(
    path: String,
    /// What to write.
    text: String,
    /// Whether to keep what the file holds and write after it.
    append: Option<bool>,
) -> Result<String> {
    let append = append.unwrap_or(false);
    let mut options = fs::OpenOptions::new();
    options.create(true).append(append).write(true).truncate(!append);
    let mut file = options.open(&path).map_err(at(&path))?;
    file.write_all(text.as_bytes()).map_err(at(&path))?;
    Ok(format!("wrote {} bytes to \"{path}\"", text.len()))
}

/// Lists the files and folders in a folder.
#[tool(read_only, idempotent, capabilities("filesystem"))]
pub async fn list_dir(path: String) -> Result<Json<Listing>> {
    let mut entries = Vec::new();
    let mut truncated = false;
    for entry in fs::read_dir(&path).map_err(at(&path))? {
        let entry = entry.map_err(at(&path))?;
        if entries.len() == MOST_ENTRIES {
            truncated = true;
            break;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = entry.file_type().map_or(Kind::Other, Kind::from);
        entries.push(Entry { name, kind });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(Json(Listing { entries, truncated }))
}

/// Finds files and folders by their names, in a folder and all below it. Links are not followed.
#[tool(read_only, idempotent, capabilities("filesystem"))]
pub async fn find(
    /// The folder to search.
    path: String,
    /// The name to look for: `*` stands for any characters, `?` for one.
    pattern: String,
) -> Result<Json<FoundPaths>> {
    if pattern.is_empty() || pattern.contains('/') {
        let message = format!("the pattern \"{pattern}\" is no name: it is empty or has a \"/\"");
        return Err(Error::invalid_input(message).into());
    }
    let mut found = FoundPaths { paths: Vec::new(), truncated: false, skipped: Vec::new() };
    let mut seen = 0;
    let mut folders = VecDeque::from([Path::new(&path).to_path_buf()]);
    'search: while let Some(folder) = folders.pop_front() {
        let shown = folder.to_string_lossy();
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            // The folder itself must be there; what is below it may be closed to the plugin.
            Err(error) if seen == 0 => return Err(at(&shown)(error).into()),
            Err(_) => {
                found.skipped.push(shown.into_owned());
                continue;
            }
        };
        let mut entries: Vec<_> =
            entries.filter_map(|entry| entry.ok()).take(MOST_SEEN - seen + 1).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            seen += 1;
            if seen > MOST_SEEN || found.paths.len() == MOST_FOUND {
                found.truncated = true;
                break 'search;
            }
            if glob::matches(&pattern, &entry.file_name().to_string_lossy()) {
                found.paths.push(entry.path().to_string_lossy().into_owned());
            }
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push_back(entry.path());
            }
        }
    }
    Ok(Json(found))
}

/// Tells what a path leads to: a file, a folder or a link, how long it is, and when it was written.
#[tool(read_only, idempotent, capabilities("filesystem"))]
pub async fn stat(path: String) -> Result<Json<Status>> {
    let metadata = fs::symlink_metadata(&path).map_err(at(&path))?;
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Json(Status {
        kind: metadata.file_type().into(),
        size: metadata.len(),
        modified: modified.map(|time| time.as_secs()),
    }))
}

/// Makes a folder, and those above it that are missing. One that is there already is left as it is.
#[tool(idempotent, capabilities("filesystem"))]
pub async fn make_dir(path: String) -> Result<String> {
    fs::create_dir_all(&path).map_err(at(&path))?;
    Ok(format!("made \"{path}\""))
}

/// Removes a file, a link or an empty folder.
#[tool(destructive, capabilities("filesystem"))]
pub async fn remove(path: String) -> Result<String> {
    let kind = fs::symlink_metadata(&path).map_err(at(&path))?.file_type();
    let removed = if kind.is_dir() { fs::remove_dir(&path) } else { fs::remove_file(&path) };
    removed.map_err(at(&path))?;
    Ok(format!("removed \"{path}\""))
}

/// Renames or moves a file or a folder. A file that has the new name already is replaced.
#[tool(destructive, capabilities("filesystem"))]
pub async fn rename(
    /// The path as it is.
    from: String,
    /// The path as it will be.
    to: String,
) -> Result<String> {
    fs::rename(&from, &to).map_err(at(&format!("{from}\" to \"{to}")))?;
    Ok(format!("renamed \"{from}\" to \"{to}\""))
}

#[cfg(test)]
mod tests;
