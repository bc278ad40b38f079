//! The sync edition of the contract, for languages whose tools know neither `async func` nor streams.
//!
//! It is made from the canonical package: `TENON_BLESS=1` writes what is there now.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use wit_parser::{
    Function, IndexMap, InterfaceId, Package, PackageId, Resolve, Type, TypeDefKind, WorldItem,
};

/// What only async code can import or export. Guests whose tools cannot lower it do without.
const LEFT_OUT: [&str; 6] =
    ["inference", "mcp-host", "provider-stream", "services", "stdio-child", "tools"];

/// The worlds that have a part in what is left out.
const WORLDS_LEFT_OUT: [&str; 3] = ["mcp-bridge", "mcp-server", "streaming-provider"];

const HEADER: &str = "// The sync edition of ../";

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../wit")).join(name)
}

/// The files of a folder of WIT by their names.
fn files(name: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder(name)).expect("the folder is there");
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".wit"));
    names.map(|file| (file.clone(), fs::read_to_string(folder(name).join(file)).unwrap())).collect()
}

/// The sync edition of one file; nothing of an interface that is left out.
fn sync_edition(file: &str, text: &str) -> Option<String> {
    if LEFT_OUT.iter().any(|interface| file == format!("{interface}.wit")) {
        return None;
    }
    let leaves_out = |block: &&str| {
        let left_out = |world: &&str| block.contains(&format!("world {world} {{"));
        !WORLDS_LEFT_OUT.iter().any(left_out)
    };
    let blocks: Vec<&str> = text.trim_end().split("\n\n").filter(leaves_out).collect();
    let text = blocks.join("\n\n").replace("async func(", "func(");
    Some(format!("{HEADER}{file}; see tests/it/editions.rs.\n{text}\n"))
}

#[test]
fn the_sync_edition_is_made_from_the_canonical_package() {
    let made: BTreeMap<_, _> = files("")
        .into_iter()
        .filter_map(|(name, text)| Some((name.clone(), sync_edition(&name, &text)?)))
        .collect();
    if std::env::var_os("TENON_BLESS").is_some() {
        let _ = fs::remove_dir_all(folder("sync"));
        fs::create_dir_all(folder("sync")).unwrap();
        for (name, text) in &made {
            fs::write(folder("sync").join(name), text).unwrap();
        }
    }
    assert_eq!(files("sync"), made, "TENON_BLESS=1 makes it anew");
}

fn package(name: &str) -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(folder(name)).expect("the package is read");
    (resolve, package)
}

/// Whether a tool must know `async` to use an interface: plugins import an async function of it, or
/// something of it is a stream.
fn needs_async(resolve: &Resolve, id: InterfaceId, is_import: bool) -> bool {
    let interface = &resolve.interfaces[id];
    let mut functions = interface.functions.values();
    functions.any(|function| {
        (is_import && function.kind.is_async())
            || function.result.is_some_and(|result| has_stream(resolve, result))
    })
}

fn has_stream(resolve: &Resolve, of: Type) -> bool {
    let Type::Id(id) = of else { return false };
    match &resolve.types[id].kind {
        TypeDefKind::Stream(_) | TypeDefKind::Future(_) => true,
        TypeDefKind::Result(result) => result.ok.is_some_and(|ok| has_stream(resolve, ok)),
        TypeDefKind::Tuple(tuple) => tuple.types.iter().any(|of| has_stream(resolve, *of)),
        _ => false,
    }
}

/// The two differ by the word `async` and by what is left out, which is all that cannot be used
/// without it.
#[test]
fn the_editions_differ_only_in_what_is_async() {
    let ((canonical, whole), (sync, part)) = (package(""), package("sync"));
    let (whole, part) = (&canonical.packages[whole], &sync.packages[part]);
    assert_eq!(whole.name, part.name);
    let exported: BTreeSet<InterfaceId> = whole
        .worlds
        .values()
        .flat_map(|world| canonical.worlds[*world].exports.values())
        .filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some(*id),
            _ => None,
        })
        .collect();
    for (name, id) in &whole.interfaces {
        let Some(other) = part.interfaces.get(name) else {
            assert!(needs_async(&canonical, *id, !exported.contains(id)), "{name} is left out");
            continue;
        };
        assert!(!needs_async(&canonical, *id, !exported.contains(id)), "{name} is there");
        let (one, other) = (&canonical.interfaces[*id], &sync.interfaces[*other]);
        let names =
            |functions: &IndexMap<String, Function>| functions.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&one.functions), names(&other.functions), "{name}");
        assert_eq!(
            one.types.keys().collect::<Vec<_>>(),
            other.types.keys().collect::<Vec<_>>(),
            "{name}"
        );
        assert!(!other.functions.values().any(|function| function.kind.is_async()), "{name}");
    }
    for world in ["base", "tool", "hook", "provider", "eval"] {
        let items = |resolve: &Resolve, package: &Package| {
            let world = &resolve.worlds[package.worlds[world]];
            let names = world.imports.keys().chain(world.exports.keys());
            names.map(|key| resolve.name_world_key(key)).collect::<Vec<_>>()
        };
        assert_eq!(items(&canonical, whole), items(&sync, part), "world {world}");
    }
}
