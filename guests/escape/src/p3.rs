//! Through `wasi:filesystem` 0.3.

use wasip3::filesystem::preopens::get_directories;
use wasip3::filesystem::types::{
    Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
};
use wasip3::wit_stream;

use super::{Deed, beneath};

/// The folder that a path is taken beneath, and what is left of the path.
async fn find(path: &str) -> Result<(Descriptor, String), String> {
    let Some((folder, raw)) = path.strip_prefix("raw:").and_then(|raw| raw.split_once('|')) else {
        return beneath_root(path);
    };
    let (root, within) = beneath_root(folder)?;
    let (how, flags) = (OpenFlags::DIRECTORY, DescriptorFlags::READ);
    let folder = root.open_at(PathFlags::empty(), within, how, flags).await;
    Ok((folder.map_err(|error| kebab(&format!("{error:?}")))?, raw.to_string()))
}

fn beneath_root(path: &str) -> Result<(Descriptor, String), String> {
    let mut folders = get_directories();
    let names: Vec<String> = folders.iter().map(|(_, name)| name.clone()).collect();
    let (index, rest) = beneath(&names, path).ok_or("no folder")?;
    Ok((folders.swap_remove(index).0, rest.to_string()))
}

/// How often a file was opened that stayed open, and the error that came then.
pub(crate) async fn hold(path: &str, times: usize) -> (usize, Option<String>) {
    let mut files = Vec::new();
    let (folder, path) = match find(path).await {
        Ok(found) => found,
        Err(error) => return (0, Some(error)),
    };
    while files.len() < times {
        let (how, flags) = (OpenFlags::empty(), DescriptorFlags::READ);
        match folder.open_at(PathFlags::SYMLINK_FOLLOW, path.clone(), how, flags).await {
            Ok(file) => files.push(file),
            Err(error) => return (files.len(), Some(kebab(&format!("{error:?}")))),
        }
    }
    (files.len(), None)
}

pub(crate) async fn attempt(deed: &Deed, path: &str, other: &str) -> Result<String, String> {
    let (folder, path) = find(path).await?;
    let ok = |()| "ok".to_string();
    let follow = PathFlags::SYMLINK_FOLLOW;
    let open = async |how: OpenFlags, flags: DescriptorFlags| {
        folder.open_at(follow, path.clone(), how, flags).await
    };
    let (read, write) = (DescriptorFlags::READ, DescriptorFlags::WRITE);
    let create = OpenFlags::CREATE;
    let done: Result<String, ErrorCode> = match deed {
        Deed::Read => match open(OpenFlags::empty(), read).await {
            Ok(file) => contents(&file).await,
            Err(error) => Err(error),
        },
        Deed::Write => match open(create | OpenFlags::TRUNCATE, write).await {
            Ok(file) => put(&file, b"written", false).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::Append => match open(create, write).await {
            Ok(file) => put(&file, b" appended", true).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::CreateToRead => open(create, read).await.map(|_| "ok".into()),
        Deed::ReadAndWrite => match open(OpenFlags::empty(), read).await {
            Ok(file) => put(&file, b"written", false).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::ReadAndAppend => match open(OpenFlags::empty(), read).await {
            Ok(file) => put(&file, b" appended", true).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::ReadAndTruncate => match open(OpenFlags::empty(), read).await {
            Ok(file) => file.set_size(0).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::ReadAndSetTimes => match open(OpenFlags::empty(), read).await {
            Ok(file) => file.set_times(NewTimestamp::Now, NewTimestamp::Now).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::CreateNew => open(create | OpenFlags::EXCLUSIVE, write).await.map(|_| "ok".into()),
        Deed::Truncate => match open(OpenFlags::empty(), write).await {
            Ok(file) => file.set_size(0).await.map(ok),
            Err(error) => Err(error),
        },
        Deed::List => match open(OpenFlags::DIRECTORY, read).await {
            Ok(folder) => {
                let (entries, end) = folder.read_directory();
                let entries = entries.collect().await;
                let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
                names.sort();
                end.await.map(|()| format!("ok {}", names.join(" ")))
            }
            Err(error) => Err(error),
        },
        Deed::Stat => folder.stat_at(follow, path).await.map(|stat| format!("ok {}", stat.size)),
        Deed::Lstat => {
            let stat = folder.stat_at(PathFlags::empty(), path).await;
            stat.map(|stat| format!("ok {}", stat.size))
        }
        Deed::MakeFolder => folder.create_directory_at(path).await.map(ok),
        Deed::RemoveFolder => folder.remove_directory_at(path).await.map(ok),
        Deed::Unlink => folder.unlink_file_at(path).await.map(ok),
        Deed::Rename => {
            let (other_folder, other) = find(other).await?;
            folder.rename_at(path, &other_folder, other).await.map(ok)
        }
        Deed::Link => {
            let (other_folder, other) = find(other).await?;
            folder.link_at(PathFlags::empty(), path, &other_folder, other).await.map(ok)
        }
        Deed::Symlink => folder.symlink_at(other.to_string(), path).await.map(ok),
        Deed::ReadLink => folder.readlink_at(path).await.map(|link| format!("ok {link}")),
        Deed::SetTimes => {
            let now = NewTimestamp::Now;
            folder.set_times_at(follow, path, now, now).await.map(ok)
        }
        Deed::Identity => match folder.metadata_hash_at(follow, path.clone()).await {
            Ok(by_path) => match open(OpenFlags::empty(), read).await {
                Ok(file) => file.metadata_hash().await.map(|by_file| {
                    let same = by_path.lower == by_file.lower && by_path.upper == by_file.upper;
                    format!("ok {same}")
                }),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        },
    };
    done.map_err(|error| kebab(&format!("{error:?}")))
}

async fn contents(file: &Descriptor) -> Result<String, ErrorCode> {
    let (bytes, end) = file.read_via_stream(0);
    let bytes = bytes.collect().await;
    end.await.map(|()| format!("ok {}", String::from_utf8_lossy(&bytes)))
}

async fn put(file: &Descriptor, bytes: &[u8], append: bool) -> Result<(), ErrorCode> {
    let (mut writer, reader) = wit_stream::new();
    let done = match append {
        true => file.append_via_stream(reader),
        false => file.write_via_stream(reader, 0),
    };
    let bytes = bytes.to_vec();
    // Who refuses the stream drops its other end.
    let _ = writer.write_all(bytes).await;
    drop(writer);
    done.await
}

/// `ErrorCode::NotPermitted` as 0.2 has it: `not-permitted`.
fn kebab(name: &str) -> String {
    let name = name.rsplit("::").next().unwrap_or(name);
    let mut kebab = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(c.to_ascii_lowercase());
    }
    kebab
}
