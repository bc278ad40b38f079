//! Tries to get at files that it was not granted, by every function that takes a path: of the
//! standard library, of WASI 0.2 and of WASI 0.3.

mod p2;
mod p3;

use std::fs;
use std::io;
use std::io::Write;

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::{Result, plugin, tool};

plugin!(tools: [attempt, attempts, hold, roots, environment, variables]);

/// What to try.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Deed {
    Read,
    Write,
    Append,
    CreateNew,
    Truncate,
    List,
    Stat,
    Lstat,
    MakeFolder,
    RemoveFolder,
    Unlink,
    Rename,
    Link,
    Symlink,
    ReadLink,
    SetTimes,
    /// The identity of a file, by its path.
    Identity,
    /// Makes a file by opening it for reading.
    CreateToRead,
    /// Opens a file for reading, and writes to it, or does another thing that changes it.
    ReadAndWrite,
    ReadAndAppend,
    ReadAndTruncate,
    ReadAndSetTimes,
}

/// Through what to try it.
#[derive(Clone, Deserialize, JsonSchema)]
pub enum FileApi {
    #[serde(rename = "std")]
    Std,
    #[serde(rename = "0.2")]
    P2,
    #[serde(rename = "0.3")]
    P3,
}

/// Does something with a path. Answers `ok`, what was found, or the name of the error.
#[tool]
pub async fn attempt(
    edition: FileApi,
    deed: Deed,
    /// The path. In WASI it is taken beneath the folder whose name it begins with; one that begins
    /// with `raw:` is passed as it is, beneath the first folder, or that before a `|`.
    path: String,
    /// A second path, or the target of a link.
    other: Option<String>,
) -> Result<String> {
    let other = other.unwrap_or_default();
    let done = match edition {
        FileApi::Std => standard(&deed, &path, &other),
        FileApi::P2 => p2::attempt(&deed, &path, &other),
        FileApi::P3 => p3::attempt(&deed, &path, &other).await,
    };
    Ok(done.unwrap_or_else(|error| error))
}

/// Does something again and again. Answers how often it was answered otherwise than about what is
/// granted, how often it was done, and how often refused.
#[tool]
pub async fn attempts(
    edition: FileApi,
    /// To read, where it is not said.
    deed: Option<Deed>,
    path: String,
    other: Option<String>,
    /// What the answer about what is granted begins with, with `|` between several: `ok granted`, where
    /// it is not said.
    granted: Option<String>,
    rounds: u32,
) -> Result<String> {
    let deed = deed.unwrap_or(Deed::Read);
    let granted = granted.unwrap_or_else(|| "ok granted".into());
    let other = other.unwrap_or_default();
    let (mut done, mut refused, mut escaped) = (0, 0, 0);
    for _ in 0..rounds {
        let found = match edition {
            FileApi::Std => standard(&deed, &path, &other),
            FileApi::P2 => p2::attempt(&deed, &path, &other),
            FileApi::P3 => p3::attempt(&deed, &path, &other).await,
        };
        match found {
            Ok(found) => {
                done += 1;
                escaped += u32::from(!granted.split('|').any(|begins| found.starts_with(begins)));
            }
            Err(error) => {
                refused += u32::from(["PermissionDenied", "not-permitted"].contains(&&*error));
            }
        }
    }
    Ok(format!("{escaped} of {done} and {refused} refused"))
}

/// Opens a file again and again, and keeps it open. Answers how often it was opened, and the error that
/// came then.
#[tool]
pub async fn hold(edition: FileApi, path: String, times: usize) -> Result<String> {
    let (held, error) = match edition {
        FileApi::Std => standard_hold(&path, times),
        FileApi::P2 => p2::hold(&path, times),
        FileApi::P3 => p3::hold(&path, times).await,
    };
    Ok(match error {
        Some(error) => format!("{held}, then {error}"),
        None => held.to_string(),
    })
}

/// The folders that it was given.
#[tool]
pub async fn roots() -> Result<String> {
    Ok(p2::roots().join(" "))
}

/// The environment, as the standard library and both editions of WASI show it.
#[tool]
pub async fn environment() -> Result<String> {
    let mut seen: Vec<(String, String)> = std::env::vars().collect();
    seen.extend(wasip2::cli::environment::get_environment());
    seen.extend(wasip3::cli::environment::get_environment());
    seen.sort();
    let seen: Vec<String> =
        seen.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(seen.join(" "))
}

/// The environment, as one of them shows it.
#[tool]
pub async fn variables(edition: FileApi) -> Result<String> {
    let mut seen: Vec<(String, String)> = match edition {
        FileApi::Std => std::env::vars().collect(),
        FileApi::P2 => wasip2::cli::environment::get_environment(),
        FileApi::P3 => wasip3::cli::environment::get_environment(),
    };
    seen.sort();
    let seen: Vec<String> =
        seen.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
    Ok(seen.join(" "))
}

/// Opens a file so often with the standard library. Gives how often it was opened, and the error.
fn standard_hold(path: &str, times: usize) -> (usize, Option<String>) {
    let mut files = Vec::new();
    while files.len() < times {
        match fs::File::open(path) {
            Ok(file) => files.push(file),
            Err(error) => return (files.len(), Some(error.to_string())),
        }
    }
    (files.len(), None)
}

/// Through the standard library.
fn standard(deed: &Deed, path: &str, other: &str) -> std::result::Result<String, String> {
    let ok = |()| "ok".to_string();
    let done: io::Result<String> = match deed {
        Deed::Read => fs::read(path).map(|bytes| format!("ok {}", String::from_utf8_lossy(&bytes))),
        Deed::Write => fs::write(path, "written").map(ok),
        Deed::Append => {
            let file = fs::File::options().append(true).create(true).open(path);
            file.and_then(|mut file| file.write_all(b" appended")).map(ok)
        }
        Deed::CreateNew => fs::File::create_new(path).map(|_| "ok".to_string()),
        Deed::Truncate => {
            let file = fs::File::options().write(true).open(path);
            file.and_then(|file| file.set_len(0)).map(ok)
        }
        Deed::List => fs::read_dir(path).and_then(|entries| {
            let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
            let mut names = names.collect::<io::Result<Vec<String>>>()?;
            names.sort();
            Ok(format!("ok {}", names.join(" ")))
        }),
        Deed::Stat | Deed::Identity => fs::metadata(path).map(|data| format!("ok {}", data.len())),
        Deed::Lstat => fs::symlink_metadata(path).map(|data| format!("ok {}", data.len())),
        Deed::MakeFolder => fs::create_dir(path).map(ok),
        Deed::RemoveFolder => fs::remove_dir(path).map(ok),
        Deed::Unlink => fs::remove_file(path).map(ok),
        Deed::Rename => fs::rename(path, other).map(ok),
        Deed::Link => fs::hard_link(path, other).map(ok),
        Deed::ReadLink => fs::read_link(path).map(|link| format!("ok {}", link.display())),
        // Not in the stable standard library of this target.
        Deed::Symlink
        | Deed::CreateToRead
        | Deed::ReadAndWrite
        | Deed::ReadAndAppend
        | Deed::ReadAndTruncate
        | Deed::ReadAndSetTimes => return p2::attempt(deed, path, other),
        Deed::SetTimes => {
            let times = fs::FileTimes::new().set_modified(std::time::SystemTime::UNIX_EPOCH);
            let file = fs::File::options().write(true).open(path);
            file.and_then(|file| file.set_times(times)).map(ok)
        }
    };
    done.map_err(|error| format!("{:?}", error.kind()))
}

/// The folder that a path is taken beneath, as an index, and what is left of the path.
fn beneath<'a>(roots: &[String], path: &'a str) -> Option<(usize, &'a str)> {
    if let Some(raw) = path.strip_prefix("raw:") {
        return (!roots.is_empty()).then_some((0, raw));
    }
    let found = roots.iter().enumerate().filter_map(|(i, root)| {
        let rest = path.strip_prefix(root.trim_end_matches('/'))?;
        let rest = rest.strip_prefix('/').or(rest.is_empty().then_some(""))?;
        Some((i, if rest.is_empty() { "." } else { rest }))
    });
    found.min_by_key(|(_, rest)| rest.len())
}
