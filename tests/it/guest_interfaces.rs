//! What built guests show of the contract: the interfaces they use, and no others.

use crate::guests;

/// What decoders of WIT see of a component: its imports and exports, and what is said of its world.
struct ComponentInterface {
    imports: Vec<String>,
    exports: Vec<String>,
    documentation: String,
}

fn shown(bytes: &[u8]) -> ComponentInterface {
    let Ok(wit_component::DecodedWasm::Component(resolve, world)) = wit_component::decode(bytes)
    else {
        panic!("it is no component");
    };
    let world = &resolve.worlds[world];
    let names = |keys: Vec<&wit_parser::WorldKey>| {
        let mut names: Vec<_> = keys.into_iter().map(|key| resolve.name_world_key(key)).collect();
        names.sort();
        names
    };
    ComponentInterface {
        imports: names(world.imports.keys().collect()),
        exports: names(world.exports.keys().collect()),
        documentation: world.docs.contents.clone().unwrap_or_default(),
    }
}

/// The interfaces of our package among some, without package and version.
fn ours(names: &[String]) -> Vec<String> {
    let ours = names.iter().filter_map(|name| name.strip_prefix("tenon:plugin/"));
    ours.map(|name| name.replace("@0.2.0", "")).collect()
}

#[test]
fn a_guest_shows_only_the_interfaces_it_uses() {
    let check = |path, imports: &[&str], exports: &[&str]| {
        let shown = shown(&std::fs::read(path).expect("the guest was built"));
        assert_eq!(ours(&shown.imports), imports, "{path}");
        assert_eq!(ours(&shown.exports), exports, "{path}");
    };
    check(guests::HELLO, &["types"], &["cancellation", "lifecycle", "tools"]);
    check(guests::TEXT_TOOLS, &["types"], &["cancellation", "lifecycle", "tools"]);
    check(guests::REDACT, &["config", "log", "types"], &["cancellation", "hooks", "lifecycle"]);
    check(guests::CHECKS, &["types"], &["cancellation", "evals", "lifecycle"]);
    check(
        guests::ECHO_PROVIDER,
        &["model", "types"],
        &["cancellation", "lifecycle", "provider-stream", "providers"],
    );
}

/// What is shipped says what it is, and of each interface what it is for: a component has the types of
/// what it uses, and none of its comments.
#[test]
fn what_is_shipped_is_documented() {
    let guests = guests::ALL
        .iter()
        .map(|(name, path)| (*name, std::fs::read(path).expect("the guest was built")));
    let bridges = [
        ("mcp-bridge", tenon_host::testing::BRIDGE.to_vec()),
        ("remote-bridge", tenon_host::testing::REMOTE_BRIDGE.to_vec()),
    ];
    let sentences = tenon_contract::sentences();
    for (name, bytes) in guests.chain(bridges) {
        let ComponentInterface { imports, exports, documentation } = shown(&bytes);
        let title = format!("{name} {}: ", env!("CARGO_PKG_VERSION"));
        assert!(documentation.starts_with(&title), "{name}: {documentation}");
        for interface in imports.iter().chain(&exports) {
            let (bare, version) = interface.split_once('@').expect("it has a version");
            let line = match sentences.get(bare) {
                Some(sentence) => format!("- `{interface}`: {sentence}"),
                // What lends it may be old or new, and says itself what it is.
                None => {
                    let (package, _) = bare.split_once('/').expect("it is of a package");
                    assert!(package.starts_with("wasi:"), "{name}: {interface}");
                    format!("- `{package}@{version}`, ")
                }
            };
            assert!(documentation.contains(&line), "{name}: {interface} in\n{documentation}");
        }
    }
}

/// How long the smallest useful plugin may be: lines of Rust, and bytes of its component.
const SMALLEST: (usize, u64) = (15, 150_000);

#[test]
fn the_smallest_plugin_is_small() {
    let source = include_str!("../../guests/hello/src/lib.rs");
    let lines = source.lines().count();
    let bytes = std::fs::metadata(guests::HELLO).expect("the guest was built").len();
    let (most_lines, most_bytes) = SMALLEST;
    assert!(
        lines <= most_lines && bytes <= most_bytes,
        "hello has {lines} lines of at most {most_lines}, and {bytes} bytes of at most {most_bytes}"
    );
}

/// Every item of the package is documented.
#[test]
fn every_interface_and_function_of_the_package_has_documentation() {
    let mut resolve = wit_parser::Resolve::default();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/plugin");
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
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wit/plugin");
    let (package, _) = resolve.push_dir(folder).expect("the package is read");
    for world in ["tool", "hook", "provider", "eval", "resource", "prompt"] {
        let world = &resolve.worlds[resolve.packages[package].worlds[world]];
        for item in world.imports.values() {
            let wit_parser::WorldItem::Interface { id, .. } = item else { continue };
            for (name, function) in &resolve.interfaces[*id].functions {
                assert!(!function.kind.is_async(), "{}: {name}", world.name);
            }
        }
    }
}
