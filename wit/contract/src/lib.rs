//! The contract as text: its WIT in both editions, for projects that are not in Rust, and what it says
//! of its interfaces. [`describe`] puts that into a component, with what its author says of it.

mod describe;

pub use describe::{About, DescribeError, describe, is_whole};

use std::collections::BTreeMap;
use wit_parser::{Resolve, SourceMap};

/// The name of a file, and its text.
pub type File = (&'static str, &'static str);

macro_rules! files {
    ($folder:literal, [$($name:literal),* $(,)?]) => {
        &[$(($name, include_str!(concat!($folder, $name)))),*]
    };
}

/// The package itself.
pub const CANONICAL: &[File] = files!(
    "../../",
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

/// Its sync edition, for languages whose tools do not know `async`.
pub const SYNC: &[File] = files!(
    "../../sync/",
    [
        "completions.wit",
        "config.wit",
        "eval-handler.wit",
        "hook-handler.wit",
        "log.wit",
        "model.wit",
        "notify.wit",
        "plugin.wit",
        "prompts.wit",
        "provider-handler.wit",
        "resources.wit",
        "secrets.wit",
        "subscriptions.wit",
        "tool-handler.wit",
        "types.wit",
        "worlds.wit",
    ]
);

/// What our own files of the sync edition end with, and nobody else needs to read.
const FOOTER: &str = "\n// The sync edition";

/// A file as it is put into a project.
pub fn text_of(text: &'static str) -> &'static str {
    text.split_once(FOOTER).map_or(text, |(text, _)| text)
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

fn resolve() -> (Resolve, wit_parser::PackageId) {
    let mut sources = SourceMap::new();
    for (name, text) in CANONICAL {
        sources.push_str(name, *text);
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
        let check = |files: &[File], folder: &str| {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
            let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name());
            let mut there: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
            there.retain(|name| name.ends_with(".wit"));
            there.sort();
            assert_eq!(files.iter().map(|(name, _)| *name).collect::<Vec<_>>(), there);
        };
        check(CANONICAL, "..");
        check(SYNC, "../sync");
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
