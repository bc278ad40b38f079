//! What built guests show of the contract: the interfaces they use, and no others.

use crate::guests;

fn interfaces(path: &str) -> (Vec<String>, Vec<String>) {
    let bytes = std::fs::read(path).expect("the guest was built");
    let Ok(wit_component::DecodedWasm::Component(resolve, world)) = wit_component::decode(&bytes)
    else {
        panic!("{path} is no component");
    };
    let world = &resolve.worlds[world];
    let ours = |names: Vec<String>| {
        let ours = names.iter().filter_map(|name| name.strip_prefix("tenon:plugin/"));
        let mut ours: Vec<String> = ours.map(|name| name.replace("@0.1.0", "")).collect();
        ours.sort();
        ours
    };
    let names = |keys: Vec<&wit_parser::WorldKey>| {
        keys.into_iter().map(|key| resolve.name_world_key(key)).collect::<Vec<_>>()
    };
    (ours(names(world.imports.keys().collect())), ours(names(world.exports.keys().collect())))
}

#[test]
fn a_guest_shows_only_the_interfaces_it_uses() {
    let check = |path, imports: &[&str], exports: &[&str]| {
        let (found_imports, found_exports) = interfaces(path);
        assert_eq!(found_imports, imports, "{path}");
        assert_eq!(found_exports, exports, "{path}");
    };
    check(guests::HELLO, &["types"], &["plugin", "tool-handler"]);
    check(guests::TEXT_TOOLS, &["types"], &["plugin", "tool-handler"]);
    check(guests::REDACT, &["config", "log", "types"], &["hook-handler", "plugin"]);
    check(guests::CHECKS, &["types"], &["eval-handler", "plugin"]);
    check(
        guests::ECHO_PROVIDER,
        &["model", "types"],
        &["plugin", "provider-handler", "provider-stream"],
    );
}

/// How long the smallest useful plugin may be: lines of Rust, and bytes of its component.
const SMALLEST: (usize, u64) = (15, 150_000);

#[test]
fn the_smallest_plugin_is_small() {
    let source = include_str!("../../guests/hello/src/lib.rs");
    let lines = source.lines().count();
    let bytes = std::fs::metadata(guests::HELLO).expect("the guest was built").len();
    println!("hello: {lines} lines, {bytes} bytes");
    let (most_lines, most_bytes) = SMALLEST;
    assert!(lines <= most_lines, "hello has {lines} lines, more than {most_lines}");
    assert!(bytes <= most_bytes, "hello has {bytes} bytes, more than {most_bytes}");
}

/// Every item of the package is documented.
#[test]
fn every_interface_and_function_of_the_package_has_documentation() {
    let mut resolve = wit_parser::Resolve::default();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit");
    let (package, _) = resolve.push_dir(folder).expect("the package is read");
    let package = &resolve.packages[package];
    for (name, id) in &package.interfaces {
        let interface = &resolve.interfaces[*id];
        assert!(interface.docs.contents.is_some(), "interface {name}");
        for (function, item) in &interface.functions {
            assert!(item.docs.contents.is_some(), "{name}.{function}");
        }
        for (kind, id) in &interface.types {
            let item = &resolve.types[*id];
            let is_own =
                !matches!(item.kind, wit_parser::TypeDefKind::Type(wit_parser::Type::Id(_)));
            assert!(!is_own || item.docs.contents.is_some(), "{name}.{kind}");
        }
    }
    for (name, id) in &package.worlds {
        assert!(resolve.worlds[*id].docs.contents.is_some(), "world {name}");
    }
}

/// Languages whose tools cannot lower async imports still fit the base worlds.
#[test]
fn the_base_worlds_import_no_async_function() {
    let mut resolve = wit_parser::Resolve::default();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit");
    let (package, _) = resolve.push_dir(folder).expect("the package is read");
    for world in ["tool", "hook", "provider", "eval"] {
        let world = &resolve.worlds[resolve.packages[package].worlds[world]];
        for item in world.imports.values() {
            let wit_parser::WorldItem::Interface { id, .. } = item else { continue };
            for (name, function) in &resolve.interfaces[*id].functions {
                assert!(!function.kind.is_async(), "{}: {name}", world.name);
            }
        }
    }
}
