//! The contract as text: its WIT in both editions, for projects that are not in Rust, and the
//! documentation of its interfaces. [`describe`] puts that into a component, with what its author says of it.

mod describe;

pub use describe::{DescribeError, PluginMetadata, describe, is_whole};

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
        "completions.wit",
        "config.wit",
        "eval-handler.wit",
        "hook-handler.wit",
        "inference.wit",
        "log.wit",
        "mcp-host.wit",
        "model.wit",
        "notify.wit",
        "plugin.wit",
        "prompts.wit",
        "provider-handler.wit",
        "provider-stream.wit",
        "resources.wit",
        "secrets.wit",
        "services.wit",
        "stdio-child.wit",
        "subscriptions.wit",
        "tool-handler.wit",
        "tools.wit",
        "types.wit",
        "worlds.wit",
    ]
);

/// The interfaces that only async code can use: plugins import async functions of them, or they have streams.
const ASYNC_INTERFACES: [&str; 6] =
    ["inference", "mcp-host", "provider-stream", "services", "stdio-child", "tools"];

/// The worlds that need one of these.
const ASYNC_WORLDS: [&str; 3] = ["mcp-bridge", "mcp-server", "streaming-provider"];

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
        (*name, format!("{}\n", text.replace("async func(", "func(")))
    })
}

/// What the package says of its interfaces, by their names without a version: the first sentence.
pub fn sentences() -> BTreeMap<String, String> {
    let (resolve, package) = resolve();
    let package = &resolve.packages[package];
    let sentences = package.interfaces.iter().filter_map(|(name, id)| {
        let docs = resolve.interfaces[*id].docs.contents.as_deref()?;
        let interface = format!("{}:{}/{name}", package.name.namespace, package.name.name);
        Some((interface, first_sentence(docs)))
    });
    sentences.collect()
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
    let mut sources = SourceMap::new();
    for (name, text) in files {
        sources.push_str(name, text);
    }
    let mut resolve = Resolve::default();
    let group = sources.parse().map_err(|(_, error)| error.to_string());
    let group = group.expect("the contract, which is part of this program, is WIT");
    let package = resolve.push_group(group).expect("it refers to no other package");
    (resolve, package)
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
            sentences["tenon:plugin/tool-handler"],
            "Tools: functions that a model or a program calls by name with JSON."
        );
        assert_eq!(sentences["tenon:plugin/log"], "A plugin's words for the operator.");
        assert_eq!(sentences.len(), CANONICAL.len() - 1);
    }
}
