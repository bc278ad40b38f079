//! The sync edition of the contract, for languages whose tools know neither `async func` nor streams.

use tenon_contract::{CANONICAL, parse, sync_edition};
use wit_parser::{Function, IndexMap, InterfaceId, Package, Resolve, Type, TypeDefKind};

/// Whether a tool must know `async` to use an interface: something of it is a stream.
fn needs_async(resolve: &Resolve, id: InterfaceId) -> bool {
    let mut functions = resolve.interfaces[id].functions.values();
    functions.any(|function| function.result.is_some_and(|result| has_stream(resolve, result)))
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
    let (canonical, whole) = parse(CANONICAL.iter().copied());
    let (sync, part) = parse(sync_edition());
    let (whole, part) = (&canonical.packages[whole], &sync.packages[part]);
    assert_eq!(whole.name, part.name);
    for (name, id) in &whole.interfaces {
        let Some(other) = part.interfaces.get(name) else {
            assert!(needs_async(&canonical, *id), "{name} is left out");
            continue;
        };
        assert!(!needs_async(&canonical, *id), "{name} is there");
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
    for world in ["base", "tool", "hook", "provider", "eval", "resource", "prompt", "everything"] {
        let items = |resolve: &Resolve, package: &Package| {
            let world = &resolve.worlds[package.worlds[world]];
            let names = world.imports.keys().chain(world.exports.keys());
            names.map(|key| resolve.name_world_key(key)).collect::<Vec<_>>()
        };
        assert_eq!(items(&canonical, whole), items(&sync, part), "world {world}");
    }
}
