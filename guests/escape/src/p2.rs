//! Through `wasi:filesystem` 0.2.

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
    filesystem_error_code,
};
use wasip2::io::streams::StreamError;

use super::{Deed, beneath};

pub(crate) fn roots() -> Vec<String> {
    get_directories().into_iter().map(|(_, name)| name).collect()
}

/// The folder that a path is taken beneath, and what is left of the path.
fn find(path: &str) -> Result<(Descriptor, String), String> {
    if let Some((folder, raw)) = path.strip_prefix("raw:").and_then(|raw| raw.split_once('|')) {
        let (root, within) = find(folder)?;
        let (how, flags) = (OpenFlags::DIRECTORY, DescriptorFlags::READ);
        let folder = root.open_at(PathFlags::empty(), &within, how, flags);
        return Ok((folder.map_err(|error| error.name().to_string())?, raw.to_string()));
    }
    let mut folders = get_directories();
    let names: Vec<String> = folders.iter().map(|(_, name)| name.clone()).collect();
    let (index, rest) = beneath(&names, path).ok_or("no folder")?;
    Ok((folders.swap_remove(index).0, rest.to_string()))
}

pub(crate) fn attempt(deed: &Deed, path: &str, other: &str) -> Result<String, String> {
    let (folder, path) = find(path)?;
    let ok = |()| "ok".to_string();
    let follow = PathFlags::SYMLINK_FOLLOW;
    let open = |how: OpenFlags, flags: DescriptorFlags| folder.open_at(follow, &path, how, flags);
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    let done: Result<String, ErrorCode> = match deed {
        Deed::Read => open(OpenFlags::empty(), read).and_then(|file| contents(&file)),
        Deed::Write => open(OpenFlags::CREATE | OpenFlags::TRUNCATE, write)
            .and_then(|file| file.write(b"written", 0))
            .map(|_| "ok".to_string()),
        Deed::Append => open(OpenFlags::CREATE, write).and_then(|file| append(&file)).map(ok),
        Deed::CreateToRead => open(OpenFlags::CREATE, read).map(|_| "ok".to_string()),
        Deed::ReadAndWrite => open(OpenFlags::empty(), read)
            .and_then(|file| file.write(b"written", 0))
            .map(|_| "ok".to_string()),
        Deed::ReadAndAppend => {
            open(OpenFlags::empty(), read).and_then(|file| append(&file)).map(ok)
        }
        Deed::ReadAndTruncate => {
            open(OpenFlags::empty(), read).and_then(|file| file.set_size(0)).map(ok)
        }
        Deed::ReadAndSetTimes => open(OpenFlags::empty(), read)
            .and_then(|file| file.set_times(NewTimestamp::Now, NewTimestamp::Now))
            .map(ok),
        Deed::CreateNew => {
            open(OpenFlags::CREATE | OpenFlags::EXCLUSIVE, write).map(|_| "ok".to_string())
        }
        Deed::Truncate => open(OpenFlags::empty(), write).and_then(|file| file.set_size(0)).map(ok),
        Deed::List => open(OpenFlags::DIRECTORY, read).and_then(|folder| {
            let entries = folder.read_directory()?;
            let mut names = Vec::new();
            while let Some(entry) = entries.read_directory_entry()? {
                names.push(entry.name);
            }
            names.sort();
            Ok(format!("ok {}", names.join(" ")))
        }),
        Deed::Stat => folder.stat_at(follow, &path).map(|stat| format!("ok {}", stat.size)),
        Deed::Lstat => {
            folder.stat_at(PathFlags::empty(), &path).map(|stat| format!("ok {}", stat.size))
        }
        Deed::MakeFolder => folder.create_directory_at(&path).map(ok),
        Deed::RemoveFolder => folder.remove_directory_at(&path).map(ok),
        Deed::Unlink => folder.unlink_file_at(&path).map(ok),
        Deed::Rename => {
            let (other_folder, other) = find(other)?;
            folder.rename_at(&path, &other_folder, &other).map(ok)
        }
        Deed::Link => {
            let (other_folder, other) = find(other)?;
            folder.link_at(PathFlags::empty(), &path, &other_folder, &other).map(ok)
        }
        Deed::Symlink => folder.symlink_at(other, &path).map(ok),
        Deed::ReadLink => folder.readlink_at(&path).map(|link| format!("ok {link}")),
        Deed::SetTimes => {
            folder.set_times_at(follow, &path, NewTimestamp::Now, NewTimestamp::Now).map(ok)
        }
        Deed::Identity => folder.metadata_hash_at(follow, &path).and_then(|by_path| {
            let file = open(OpenFlags::empty(), read)?;
            let by_file = file.metadata_hash()?;
            let same = by_path.lower == by_file.lower && by_path.upper == by_file.upper;
            Ok(format!("ok {same}"))
        }),
    };
    done.map_err(|error| error.name().to_string())
}

/// How often a file was opened that stayed open, and the error that came then.
pub(crate) fn hold(path: &str, times: usize) -> (usize, Option<String>) {
    let mut files = Vec::new();
    let (folder, path) = match find(path) {
        Ok(found) => found,
        Err(error) => return (0, Some(error)),
    };
    while files.len() < times {
        let (how, flags) = (OpenFlags::empty(), DescriptorFlags::READ);
        match folder.open_at(PathFlags::SYMLINK_FOLLOW, &path, how, flags) {
            Ok(file) => files.push(file),
            Err(error) => return (files.len(), Some(error.name().to_string())),
        }
    }
    (files.len(), None)
}

fn append(file: &Descriptor) -> Result<(), ErrorCode> {
    let stream = file.append_via_stream()?;
    let written = stream.blocking_write_and_flush(b" appended");
    written.map_err(|error| match error {
        StreamError::LastOperationFailed(error) => {
            filesystem_error_code(&error).unwrap_or(ErrorCode::Io)
        }
        StreamError::Closed => ErrorCode::Io,
    })
}

fn contents(file: &Descriptor) -> Result<String, ErrorCode> {
    let mut contents = Vec::new();
    loop {
        let (bytes, ended) = file.read(1 << 16, contents.len() as u64)?;
        contents.extend(bytes);
        if ended {
            return Ok(format!("ok {}", String::from_utf8_lossy(&contents)));
        }
    }
}
