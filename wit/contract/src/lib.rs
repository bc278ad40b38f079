//! The contract as text: its WIT in both editions, for projects that are not in Rust, and the
//! documentation of its interfaces. [`describe`] puts that into a component, with what its author says of it.

mod metadata_sections;

pub use metadata_sections::{DescribeError, PluginMetadata, describe, is_whole};

use std::collections::BTreeMap;
use wit_parser::{PackageId, Resolve, SourceMap};

/// The name of a file, and its text.
pub type File = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal, [$($name:literal),* $(,)?]) => {
        &[$(($name, include_str!(concat!($folder, $name)))),*]
    };
}

/// The package itself.
pub const CANONICAL: &[File] = files!(
    "../wit/",
    [
        "cancellation.wit",
        "completions.wit",
        "config.wit",
        "evals.wit",
        "hooks.wit",
        "host-tools.wit",
        "inference.wit",
        "lifecycle.wit",
        "log.wit",
        "memory.wit",
        "messaging.wit",
        "model.wit",
        "notify.wit",
        "prompts.wit",
        "provider-stream.wit",
        "providers.wit",
        "resources.wit",
        "secrets.wit",
        "subscriptions.wit",
        "tools.wit",
        "types.wit",
        "user.wit",
        "worlds.wit",
    ]
);

/// The package that the bridges to MCP servers have besides, which is private to each release of a host.
const BRIDGE: &[File] = files!("../bridge/", ["mcp-server.wit", "stdio-child.wit", "worlds.wit"]);

/// `wasi:keyvalue`, which plugins import to keep state.
pub const KEYVALUE: File = ("keyvalue.wit", include_str!("../keyvalue/keyvalue.wit"));

/// The interfaces that only async code can use: those with streams.
const ASYNC_INTERFACES: [&str; 1] = ["provider-stream"];

/// The worlds that need one of these.
const ASYNC_WORLDS: [&str; 1] = ["streaming-provider"];

/// Returns the sync edition of the package, for languages whose tools know neither `async func` nor streams: the
/// names and texts of its files.
pub fn sync_edition() -> impl Iterator<Item = (&'static str, String)> {
    let is_sync = |name: &str| ASYNC_INTERFACES.iter().all(|of| name != format!("{of}.wit"));
    CANONICAL.iter().filter(move |(name, _)| is_sync(name)).map(|(name, text)| {
        let has_no_async_world = |block: &&str| {
            let has = |world: &&str| block.contains(&format!("world {world} {{"));
            !ASYNC_WORLDS.iter().any(has)
        };
        let blocks = text.trim_end().split("\n\n").filter(has_no_async_world);
        let text = blocks.collect::<Vec<_>>().join("\n\n");
        (*name, format!("{}\n", without_async(&text)))
    })
}

fn without_async(text: &str) -> String {
    text.replace("async func(", "func(")
}

/// What the package says of its interfaces, by their names without a version: the first sentence.
pub fn sentences() -> BTreeMap<String, String> {
    let (mut resolve, package) = resolve();
    let bridge = push(&mut resolve, BRIDGE.iter().copied());
    let mut sentences = BTreeMap::new();
    for package in [package, bridge].map(|package| &resolve.packages[package]) {
        for (name, id) in &package.interfaces {
            let docs = resolve.interfaces[*id].docs.contents.as_deref();
            let interface = format!("{}:{}/{name}", package.name.namespace, package.name.name);
            sentences.extend(docs.map(|docs| (interface, first_sentence(docs))));
        }
    }
    sentences
}

/// The version of the package.
pub fn version() -> String {
    let (resolve, package) = resolve();
    let version = resolve.packages[package].name.version.as_ref();
    version.map(ToString::to_string).unwrap_or_default()
}

fn resolve() -> (Resolve, PackageId) {
    parse(CANONICAL.iter().copied())
}

/// Parses an edition of the package: [`CANONICAL`] or [`sync_edition`].
///
/// # Panics
///
/// If the files are not a whole package in WIT.
pub fn parse<T: Into<String>>(
    files: impl IntoIterator<Item = (&'static str, T)>,
) -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let package = push(&mut resolve, files);
    (resolve, package)
}

/// Parses a package which refers to none but those that are there.
fn push<T: Into<String>>(
    resolve: &mut Resolve,
    files: impl IntoIterator<Item = (&'static str, T)>,
) -> PackageId {
    let mut sources = SourceMap::new();
    for (name, text) in files {
        sources.push_str(name, text);
    }
    let group = sources.parse().map_err(|(_, error)| error.to_string());
    let group = group.expect("the contract, which is part of this program, is WIT");
    resolve.push_group(group).expect("it refers to no other package")
}

/// The first sentence of a text, in one line.
fn first_sentence(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match words.split_once(". ") {
        Some((sentence, _)) => format!("{sentence}."),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_contract_are_here() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("wit");
        let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let mut there: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
        there.retain(|name| name.ends_with(".wit"));
        there.sort();
        assert_eq!(CANONICAL.iter().map(|(name, _)| *name).collect::<Vec<_>>(), there);
    }

    #[test]
    fn interfaces_have_a_sentence() {
        let sentences = sentences();
        assert_eq!(
            sentences["tenon:plugin/tools"],
            "Tools: functions that a model or a program calls by name with JSON."
        );
        assert_eq!(sentences["tenon:plugin/log"], "A plugin's words for the operator.");
        assert_eq!(sentences.len(), CANONICAL.len() - 1 + BRIDGE.len() - 1);
    }
}
