//! What a component is, read from its bytes: nothing of it runs.

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzz;

use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tenon_config::files::Digest;
use tenon_config::grant::CapabilityRow;
use wasm_metadata::{Payload, Producers};
use wasmparser::Payload::CustomSection;
use wasmparser::WasmFeatures;
use wit_component::{DecodedWasm, WitPrinter};
use wit_parser::{PackageId, Resolve, WorldId, WorldItem, WorldKey};

/// The worlds of the contract by what they export besides `lifecycle`.
pub(crate) const WORLDS: [(&str, &str); 7] = [
    ("tool", "tools"),
    ("hook", "hooks"),
    ("provider", "providers"),
    ("streaming-provider", "provider-stream"),
    ("eval", "evals"),
    ("resource", "resources"),
    ("prompt", "prompts"),
];

/// The member of the metadata that says why there is no more of it.
pub(crate) const UNREADABLE: &str = "unreadable";

/// The package of the contract.
const CONTRACT: &str = "tenon:plugin/";

/// A component, decoded.
pub(crate) struct Component {
    resolve: Resolve,
    world: WorldId,
    /// The worlds of the contract whose exports it has.
    pub(crate) worlds: Vec<&'static str>,
    /// The version of the contract, where it exports anything of it.
    pub(crate) contract: Option<String>,
    pub(crate) exports: Vec<String>,
    pub(crate) imports: Vec<ImportCapability>,
    pub(crate) metadata: Map<String, Value>,
    /// Whether it has debug information, which makes it several times as large.
    pub(crate) has_debug_info: bool,
}

/// What an import needs.
#[derive(Serialize)]
pub(crate) struct ImportCapability {
    pub(crate) import: String,
    /// The capability that lends it; nothing for one that no capability has.
    pub(crate) capability: Option<&'static str>,
    /// Whether a plugin gets it without asking.
    pub(crate) granted: bool,
}

impl Component {
    /// Reads a component, or says why the bytes are none.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, String> {
        if bytes.starts_with(b"\0asm\x01\0\0\0") {
            return Err("it is a core WebAssembly module, not a component; build it with `--target wasm32-wasip2`".into());
        }
        if !bytes.starts_with(b"\0asm") {
            return Err("it is not a component".into());
        }
        if !tenon_contract::is_whole(bytes) {
            return Err("the component is truncated: a section is longer than the file".into());
        }
        // The decoder panics at some imports that are no interfaces.
        let decoded = std::panic::catch_unwind(|| wit_component::decode(bytes))
            .map_err(|_| "the types of the component cannot be read".to_string())?
            .map_err(|error| format!("it is not a component: {error:#}"))?;
        // Its types say nothing of the code in it.
        wasmparser::Validator::new_with_features(WasmFeatures::all())
            .validate_all(bytes)
            .map_err(|error| format!("it is not a valid component: {error}"))?;
        let DecodedWasm::Component(resolve, world) = decoded else {
            return Err("it is a WIT package, not a component".into());
        };
        let items = &resolve.worlds[world];
        let mut exports: Vec<String> =
            items.exports.keys().map(|key| name(&resolve, key)).collect();
        // The order in a component is that of its linker, which means nothing.
        exports.sort_unstable();
        let mut imports: Vec<ImportCapability> = { items.imports.iter() }
            .filter(|(_, item)| has_functions(&resolve, item))
            .map(|(key, _)| ImportCapability::new(name(&resolve, key)))
            .collect();
        imports.sort_unstable_by(|a, b| a.import.cmp(&b.import));
        let exported = |interface: &str| {
            let name = format!("{CONTRACT}{interface}");
            let mut exports = exports.iter().filter_map(|export| export.split_once('@'));
            exports.find(|(export, _)| *export == name).map(|(_, version)| version.to_string())
        };
        let contract = exported("lifecycle");
        let worlds = WORLDS.iter().filter(|(_, export)| exported(export).is_some());
        let worlds = worlds.map(|(world, _)| *world).filter(|_| contract.is_some()).collect();
        let metadata = metadata(bytes);
        let has_debug_info = has_section(bytes, ".debug_info");
        let component =
            Self { resolve, world, worlds, contract, exports, imports, metadata, has_debug_info };
        Ok(component)
    }

    /// The names of what it imports.
    pub(crate) fn import_names(&self) -> Vec<String> {
        self.imports.iter().map(|import| import.import.clone()).collect()
    }

    /// Its world as WIT, and the packages that it refers to.
    pub(crate) fn wit(&self) -> Result<String, String> {
        let package = self.resolve.worlds[self.world].package.ok_or("its world has no package")?;
        let others = self.resolve.packages.iter().map(|(id, _)| id).filter(|id| *id != package);
        let others: Vec<PackageId> = others.collect();
        let mut printer = WitPrinter::default();
        printer.print(&self.resolve, package, &others).map_err(|error| format!("{error:#}"))?;
        Ok(printer.output.to_string())
    }
}

impl ImportCapability {
    fn new(import: String) -> Self {
        let capability = CapabilityRow::of_import(&import);
        Self {
            granted: capability
                .is_some_and(|capability| capability.availability.is_to_every_plugin()),
            capability: capability.map(|capability| capability.name),
            import,
        }
    }
}

/// Interfaces without functions are imported for their types, which need nothing.
fn has_functions(resolve: &Resolve, item: &WorldItem) -> bool {
    match item {
        WorldItem::Interface { id, .. } => !resolve.interfaces[*id].functions.is_empty(),
        WorldItem::Function(_) => true,
        WorldItem::Type { .. } => false,
    }
}

fn name(resolve: &Resolve, key: &WorldKey) -> String {
    resolve.name_world_key(key)
}

/// Whether a component, or a module in it, has a custom section of this name.
fn has_section(bytes: &[u8], name: &str) -> bool {
    let payloads = wasmparser::Parser::new(0).parse_all(bytes).filter_map(Result::ok);
    { payloads }.any(|payload| matches!(payload, CustomSection(section) if section.name() == name))
}

/// What the component's custom sections say about it.
fn metadata(bytes: &[u8]) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("size".into(), json!(bytes.len()));
    metadata.insert("sha256".into(), json!(Digest::of(bytes).to_string()));
    let payload = match Payload::from_binary(bytes) {
        Ok(payload) => payload,
        // It is no worse a plugin for what it says of itself.
        Err(error) => {
            metadata.insert(UNREADABLE.into(), format!("{error:#}").into());
            return metadata;
        }
    };
    let of = payload.metadata();
    let texts = [
        ("name", of.name.clone()),
        ("description", of.description.as_ref().map(ToString::to_string)),
        ("version", of.version.as_ref().map(ToString::to_string)),
        ("authors", of.authors.as_ref().map(ToString::to_string)),
        ("licenses", of.licenses.as_ref().map(ToString::to_string)),
        ("source", of.source.as_ref().map(ToString::to_string)),
        ("homepage", of.homepage.as_ref().map(ToString::to_string)),
        ("revision", of.revision.as_ref().map(ToString::to_string)),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            metadata.insert(key.into(), value.into());
        }
    }
    let mut made = BTreeMap::new();
    add_producers(&payload, &mut made);
    if !made.is_empty() {
        metadata.insert("producers".into(), json!(made));
    }
    metadata
}

/// What made the component, and the modules in it.
fn add_producers(payload: &Payload, made: &mut BTreeMap<String, BTreeMap<String, String>>) {
    let producers = payload.metadata().producers.iter().flat_map(Producers::iter);
    for (field, values) in producers {
        let field = made.entry(field.clone()).or_default();
        field.extend(values.iter().map(|(name, version)| (name.clone(), version.clone())));
    }
    if let Payload::Component { children, .. } = payload {
        children.iter().for_each(|child| add_producers(child, made));
    }
}
