//! What was promised by the releases of the contract, and is kept.
//!
//! From the first release on, `wit/released` has the text of every version that was released. Of the versions compatible with
//! the present one the shapes never change, and the interfaces that guests export never grow: a guest
//! that was built then would lack what is new. Interfaces of the host may gain functions, marked
//! with `@since`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use wit_parser::{
    Function, Handle, Interface, InterfaceId, Package, PackageId, Resolve, Stability, Type,
    TypeDefKind, WorldItem,
};

/// A package as it was read.
struct WitPackage {
    resolve: Resolve,
    package: PackageId,
}

impl WitPackage {
    fn read(folder: &Path) -> Self {
        let mut resolve = Resolve::default();
        let (package, _) = resolve.push_dir(folder).expect("the package is read");
        Self { resolve, package }
    }

    fn package(&self) -> &Package {
        &self.resolve.packages[self.package]
    }

    /// The interfaces that guests export, in any world.
    fn exported(&self) -> BTreeSet<InterfaceId> {
        let worlds = self.package().worlds.values();
        let exports = worlds.flat_map(|world| self.resolve.worlds[*world].exports.values());
        let interfaces = exports.filter_map(|item| match item {
            WorldItem::Interface { id, .. } => Some(*id),
            _ => None,
        });
        interfaces.collect()
    }

    /// A type as wasmtime compares it: by what it is made of, whatever it is called.
    fn shape(&self, of: &Type) -> String {
        let Type::Id(id) = of else { return format!("{of:?}") };
        let all = |types: &mut dyn Iterator<Item = (String, Option<Type>)>| {
            let parts = types.map(|(name, of)| format!("{name}:{}", self.maybe(of)));
            parts.collect::<Vec<_>>().join(",")
        };
        match &self.resolve.types[*id].kind {
            TypeDefKind::Type(of) => self.shape(of),
            TypeDefKind::Record(record) => {
                let fields = record.fields.iter();
                format!("record({})", all(&mut fields.map(|f| (f.name.clone(), Some(f.ty)))))
            }
            TypeDefKind::Variant(variant) => {
                let cases = variant.cases.iter();
                format!("variant({})", all(&mut cases.map(|case| (case.name.clone(), case.ty))))
            }
            TypeDefKind::Enum(cases) => {
                let cases = cases.cases.iter();
                format!("enum({})", all(&mut cases.map(|case| (case.name.clone(), None))))
            }
            TypeDefKind::Flags(flags) => {
                let flags = flags.flags.iter();
                format!("flags({})", all(&mut flags.map(|flag| (flag.name.clone(), None))))
            }
            TypeDefKind::Tuple(tuple) => {
                let types = tuple.types.iter();
                format!("tuple({})", all(&mut types.map(|of| (String::new(), Some(*of)))))
            }
            TypeDefKind::Option(of) => format!("option({})", self.shape(of)),
            TypeDefKind::List(of) => format!("list({})", self.shape(of)),
            TypeDefKind::Result(result) => {
                format!("result({},{})", self.maybe(result.ok), self.maybe(result.err))
            }
            TypeDefKind::Stream(of) => format!("stream({})", self.maybe(*of)),
            TypeDefKind::Future(of) => format!("future({})", self.maybe(*of)),
            TypeDefKind::Handle(Handle::Own(of)) => format!("own({})", self.shape(&Type::Id(*of))),
            TypeDefKind::Handle(Handle::Borrow(of)) => {
                format!("borrow({})", self.shape(&Type::Id(*of)))
            }
            other => format!("{other:?}"),
        }
    }

    fn maybe(&self, of: Option<Type>) -> String {
        of.map(|of| self.shape(&of)).unwrap_or_default()
    }

    fn signature(&self, function: &Function) -> String {
        let parameters = function.params.iter();
        let parameters =
            parameters.map(|parameter| format!("{}:{}", parameter.name, self.shape(&parameter.ty)));
        let parameters: Vec<String> = parameters.collect();
        let is_async = function.kind.is_async();
        format!("async={is_async} ({}) -> {}", parameters.join(","), self.maybe(function.result))
    }
}

/// What the present contract breaks of what was released.
fn broken_promises(released: &WitPackage, present: &WitPackage) -> Vec<String> {
    let mut broken = Vec::new();
    let exported = released.exported();
    for (name, id) in &released.package().interfaces {
        let before = &released.resolve.interfaces[*id];
        let Some(id_now) = present.package().interfaces.get(name) else {
            broken.push(format!("{name} is gone"));
            continue;
        };
        let now = &present.resolve.interfaces[*id_now];
        compare(&mut broken, name, (released, before), (present, now), exported.contains(id));
    }
    for (name, id) in &released.package().worlds {
        let Some(id_now) = present.package().worlds.get(name) else {
            broken.push(format!("world {name} is gone"));
            continue;
        };
        let (before, now) = (&released.resolve.worlds[*id], &present.resolve.worlds[*id_now]);
        let names =
            |of: &WitPackage, items: &wit_parser::IndexMap<wit_parser::WorldKey, WorldItem>| {
                items.keys().map(|key| of.resolve.name_world_key(key)).collect::<BTreeSet<_>>()
            };
        if names(released, &before.exports) != names(present, &now.exports) {
            broken.push(format!("world {name} exports something else"));
        }
        if !names(released, &before.imports).is_subset(&names(present, &now.imports)) {
            broken.push(format!("world {name} imports less"));
        }
    }
    broken
}

fn compare(
    broken: &mut Vec<String>,
    name: &str,
    (released, before): (&WitPackage, &Interface),
    (present, now): (&WitPackage, &Interface),
    is_exported: bool,
) {
    for (of, id) in &before.types {
        let shape = released.shape(&Type::Id(*id));
        match now.types.get(of).map(|id| present.shape(&Type::Id(*id))) {
            None => broken.push(format!("{name}.{of} is gone")),
            Some(other) if other != shape => broken.push(format!("{name}.{of} has changed")),
            Some(_) => {}
        }
    }
    for (function, item) in &before.functions {
        match now.functions.get(function) {
            None => broken.push(format!("{name}.{function} is gone")),
            Some(other) if present.signature(other) != released.signature(item) => {
                broken.push(format!("{name}.{function} has changed"));
            }
            Some(_) => {}
        }
    }
    for (function, item) in &now.functions {
        if before.functions.contains_key(function) {
            continue;
        }
        if is_exported {
            broken.push(format!("{name}.{function} is new, and guests export {name}"));
        } else if !matches!(item.stability, Stability::Stable { .. }) {
            broken.push(format!("{name}.{function} is new and not marked with @since"));
        }
    }
}

fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}

#[test]
fn what_was_released_is_kept() {
    let present = WitPackage::read(&wit().join("plugin"));
    // The folder begins with the first release.
    for release in std::fs::read_dir(wit().join("released")).into_iter().flatten() {
        let folder = release.unwrap().path();
        let released = WitPackage::read(&folder);
        let version = released.package().name.version.clone().expect("it has a version");
        assert_eq!(folder.file_name().unwrap().to_str(), Some(&*version.to_string()));
        let now = present.package().name.version.clone().unwrap();
        // A version that breaks with it has an adapter, and promises of its own.
        if (version.major, version.minor) != (now.major, now.minor) {
            continue;
        }
        let broken = broken_promises(&released, &present);
        assert!(broken.is_empty(), "since {version}: {broken:?}");
    }
}

/// The package with one of its texts changed.
fn changed(file: &str, from: &str, to: &str) -> WitPackage {
    let folder = tempfile::TempDir::new().unwrap();
    for entry in std::fs::read_dir(wit().join("plugin")).unwrap() {
        let entry = entry.unwrap();
        if !entry.path().is_file() {
            continue;
        }
        let mut text = std::fs::read_to_string(entry.path()).unwrap();
        if entry.file_name() == file {
            assert!(text.contains(from), "{file} has {from}");
            text = text.replacen(from, to, 1);
        }
        std::fs::write(folder.path().join(entry.file_name()), text).unwrap();
    }
    WitPackage::read(folder.path())
}

#[test]
fn a_broken_promise_is_noticed() {
    let released = WitPackage::read(&wit().join("plugin"));
    let check = |file: &str, from: &str, to: &str, expected: &[&str]| {
        assert_eq!(broken_promises(&released, &changed(file, from, to)), expected, "{from} {to}");
    };
    check("log.wit", "trace,", "trace, fine,", &["log.level has changed", "log.write has changed"]);
    check("log.wit", "message: string", "message: list<u8>", &["log.write has changed"]);
    check(
        "config.wit",
        "all: func",
        "everything: func",
        &["config.all is gone", "config.everything is new and not marked with @since"],
    );
    check(
        "config.wit",
        "all: func() -> json;",
        "all: func() -> json;\n@since(version = 0.1.0)\nkeys: func() -> list<string>;",
        &[],
    );
    check(
        "config.wit",
        "all: func() -> json;",
        "all: func() -> json;\nkeys: func() -> list<string>;",
        &["config.keys is new and not marked with @since"],
    );
    check(
        "cancellation.wit",
        "cancel: async func",
        "pause: async func();\ncancel: async func",
        &["cancellation.pause is new, and guests export cancellation"],
    );
    check(
        "cancellation.wit",
        "cancel: async func",
        "cancel: func",
        &["cancellation.cancel has changed"],
    );
    check(
        "worlds.wit",
        "world tool {\n    include base;\n    export lifecycle;",
        "world tool {\n    include base;\n    export lifecycle;\n    export prompts;",
        &["world tool exports something else"],
    );
    check("worlds.wit", "world everything", "world all", &["world everything is gone"]);
}
