//! What the host can lend to a plugin: one file for each capability.
//!
//! A file has what one capability does in the life of a plugin, on a state of its own; see `host_capability`. The
//! rows of `capabilities!` compose them for the stores of plugins. Which imports a capability stands for, who
//! gets it and what its values are is in the table [`CAPABILITIES`]: linker set-up, refusals, `inspect` and
//! `doctor` read that and nothing else. What is not granted is not linked, and the default is nothing.

pub(crate) mod bindings;
mod config;
mod console;
pub(crate) mod environment;
pub(crate) mod filesystem;
pub(crate) mod granted;
pub(crate) mod host_capability;
pub(crate) mod host_state;
pub(crate) mod host_tools;
pub(crate) mod inference;
pub(crate) mod keyvalue;
pub(crate) mod log;
mod mcp_server;
pub(crate) mod memory;
pub(crate) mod messaging;
pub(crate) mod network;
pub(crate) mod notify;
mod secrets;
pub(crate) mod served_calls;
pub(crate) mod server;
pub mod services;
mod stdio_child;
pub(crate) mod user;
mod wasi;

use wasmtime::component::Component;
use wasmtime::component::Linker;
use wasmtime::component::types::ComponentItem;

use tenon_config::grant::{
    CapabilityRow, Eligibility, Grants, MEMORY, MESSAGING, PROVIDERS, TOOLS, USER,
};

use host_capability::{Link, capabilities};
pub(crate) use host_state::{HostState, InstanceConfig};
pub(crate) use served_calls::RefusalReporter;

capabilities! {
    HostState => PluginCapabilities, InstanceCapabilities, LINKS, SYNC_LINKS;
    log: log::LogCapability,
    config: config::ConfigCapability,
    notify: notify::NotifyCapability,
    stdio_child: stdio_child::StdioChildCapability,
    mcp_server: mcp_server::McpServerCapability,
    messaging: messaging::MessagingCapability,
    memory: memory::MemoryCapability,
    inference: inference::InferenceCapability,
    host_tools: host_tools::HostToolsCapability,
    network: network::NetworkCapability,
    secrets: secrets::SecretsCapability,
    keyvalue: keyvalue::KeyValueCapability,
    user: user::UserCapability,
}

impl PluginCapabilities {
    /// Whether the plugin is the bridge to a child.
    fn has_child(&self) -> bool {
        self.stdio_child.is_some()
    }
}

/// What is linked because the standard libraries of guest languages import it, whether they use it or not. Files
/// and variables are lent through it.
const WASI_LINKS: &[(&str, Link<HostState>)] =
    &[("clocks", wasi::link_clocks), ("wasi", wasi::link)];

/// Who a component is, as far as lending goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ComponentRole<'a> {
    /// A plugin, with what it was granted.
    Plugin(&'a Grants),
    /// The bridge to a child.
    Bridge,
    /// The bridge to a server elsewhere, with what it takes to reach that one.
    RemoteBridge(&'a Grants),
}

/// Whether a capability is linked for a component.
fn is_lent_to(capability: &CapabilityRow, target: ComponentRole<'_>) -> bool {
    if capability.is_to_bridges && !matches!(target, ComponentRole::Plugin(_)) {
        return true;
    }
    match (capability.availability, target) {
        (Eligibility::All, _) => true,
        (Eligibility::Plugins, target) => matches!(target, ComponentRole::Plugin(_)),
        (Eligibility::PluginsAndRemoteBridge, target) => !matches!(target, ComponentRole::Bridge),
        (Eligibility::Bridges, target) => !matches!(target, ComponentRole::Plugin(_)),
        (Eligibility::StdioBridge, target) => matches!(target, ComponentRole::Bridge),
        (
            Eligibility::OnRequest { .. },
            ComponentRole::Plugin(grants) | ComponentRole::RemoteBridge(grants),
        ) => grants.has(capability.name),
        (Eligibility::OnRequest { .. }, ComponentRole::Bridge) => false,
    }
}

/// An import that a component cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ImportError {
    /// It needs a capability that is not granted.
    #[error("it imports {import}, and the capability `{capability}` is not granted")]
    NotGranted {
        /// The import.
        import: String,
        /// The capability that it belongs to.
        capability: &'static str,
        /// The line of the manifest's `[capabilities]` that would request it, where one can.
        request: Option<&'static str>,
        /// Whether the manifest requests something of it, and its user granted none.
        requested: bool,
    },
    /// The host has nothing of the kind.
    #[error("it imports {0}, which this host does not have")]
    Unknown(String),
}

/// Checks that a component imports nothing but what it gets.
pub(crate) fn check_imports(
    engine: &wasmtime::Engine,
    component: &Component,
    target: ComponentRole<'_>,
) -> Result<(), ImportError> {
    for (import, _) in component.component_type().imports(engine) {
        if is_types_only(import) {
            continue;
        }
        let Some(capability) = CapabilityRow::of_import(import) else {
            return Err(ImportError::Unknown(import.to_string()));
        };
        if !is_lent_to(capability, target) {
            let request = match capability.availability {
                Eligibility::OnRequest { line, .. } => Some(line),
                Eligibility::All
                | Eligibility::Plugins
                | Eligibility::PluginsAndRemoteBridge
                | Eligibility::Bridges
                | Eligibility::StdioBridge => None,
            };
            let (import, capability) = (import.to_string(), capability.name);
            let requested = match target {
                ComponentRole::Plugin(grants) => grants.requests(capability),
                ComponentRole::Bridge | ComponentRole::RemoteBridge(_) => false,
            };
            return Err(ImportError::NotGranted { import, capability, request, requested });
        }
    }
    Ok(())
}

/// Interfaces of the contract without functions: they are imported for their types.
fn is_types_only(import: &str) -> bool {
    ["tenon:plugin/types@", "tenon:plugin/model@"].iter().any(|name| import.starts_with(name))
}

/// The edition of the contract that a component imports: with async functions, or without. wasmtime tells the two apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Asyncness {
    Async,
    Sync,
}

impl Asyncness {
    /// The edition that a component was made for. One that imports none of what differs is of either.
    pub(crate) fn of(engine: &wasmtime::Engine, component: &Component) -> Self {
        let has_sync_import = component.component_type().imports(engine).any(|(import, item)| {
            let has_async = CapabilityRow::of_import(import)
                .is_some_and(|capability| ASYNC_CAPABILITIES.contains(&capability.name));
            let ComponentItem::ComponentInstance(instance) = item.ty else { return false };
            let mut functions = instance.exports(engine);
            has_async
                && functions.any(|(_, item)| match item.ty {
                    ComponentItem::ComponentFunc(function) => !function.async_(),
                    _ => false,
                })
        });
        if has_sync_import { Self::Sync } else { Self::Async }
    }
}

/// The capabilities whose functions are async.
const ASYNC_CAPABILITIES: &[&str] = &[MESSAGING, MEMORY, PROVIDERS, TOOLS, USER];

/// Which functions of the host a component is linked with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct LinkSet {
    edition: Asyncness,
    /// The names of the capabilities, in the order of the tables.
    lent: Vec<&'static str>,
}

impl LinkSet {
    /// What a component gets.
    pub(crate) fn of(target: ComponentRole<'_>, edition: Asyncness) -> Self {
        let is_lent = |name: &&str| {
            let capability = CapabilityRow::named(name).expect("what is linked is a capability");
            is_lent_to(capability, target)
        };
        let names = WASI_LINKS.iter().chain(LINKS).map(|(name, _)| *name);
        Self { edition, lent: names.filter(is_lent).collect() }
    }

    /// A linker with it. `link_older` puts a capability into it for other versions of the contract.
    pub(crate) fn linker(
        &self,
        engine: &wasmtime::Engine,
        link_older: impl Fn(&str, &mut Linker<HostState>) -> wasmtime::Result<()>,
    ) -> wasmtime::Result<Linker<HostState>> {
        let mut linker = Linker::new(engine);
        let links = match self.edition {
            Asyncness::Async => LINKS,
            Asyncness::Sync => SYNC_LINKS,
        };
        for (name, link) in WASI_LINKS.iter().chain(links) {
            if self.lent.contains(name) {
                link(&mut linker)?;
                link_older(name, &mut linker)?;
            }
        }
        Ok(linker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::wasm::link_older;
    use std::path::Path;
    use tenon_config::grant::{CAPABILITIES, GrantSet, NETWORK, ValueKind};
    use tenon_config::path_context::PathContext;

    #[test]
    fn an_import_is_found_by_its_package_or_interface_in_any_version() {
        let check = |import, expected: Option<&str>| {
            assert_eq!(
                CapabilityRow::of_import(import).map(|capability| capability.name),
                expected
            );
        };
        check("wasi:http/outgoing-handler@0.2.4", Some("network"));
        check("wasi:cli/stdout@0.3.0", Some("wasi"));
        check("tenon:plugin/messaging@0.2.0", Some("messaging"));
        check("tenon:bridge/stdio-child@0.2.0", Some("stdio-child"));
        check("wasi:nn/tensor", None);
        check("tenon:plugin/messagingx", None);
    }

    #[test]
    fn names_are_unique() {
        for (i, capability) in CAPABILITIES.iter().enumerate() {
            assert!(CAPABILITIES[..i].iter().all(|other| other.name != capability.name));
        }
    }

    #[test]
    fn every_import_of_a_capability_is_linked_by_one() {
        let imported = CAPABILITIES.iter().filter(|capability| !capability.imports.is_empty());
        let mut imported: Vec<&str> = imported.map(|capability| capability.name).collect();
        let mut linked: Vec<&str> = WASI_LINKS.iter().chain(LINKS).map(|(name, _)| *name).collect();
        imported.sort();
        linked.sort();
        assert_eq!(imported, linked);
    }

    /// All that can be granted.
    fn everything() -> Grants {
        let mut all = GrantSet::default();
        for capability in CAPABILITIES {
            let value = match capability.availability {
                Eligibility::OnRequest { values: ValueKind::Paths, .. } => "read:/x",
                Eligibility::OnRequest { values: ValueKind::Urls, .. } => "https://x/*",
                Eligibility::OnRequest { values: ValueKind::Among(names), .. } => names[0],
                _ => "x",
            };
            all.add(capability.name, value, &PathContext::in_folder(Path::new("/"))).unwrap();
        }
        Grants::new(all.clone(), all)
    }

    /// Who asks: a plugin that was granted everything, one that was granted nothing, the bridge to a child,
    /// and the one to a server elsewhere, which was granted that.
    fn borrowers<'a>(
        all: &'a Grants,
        none: &'a Grants,
        origin: &'a Grants,
    ) -> [ComponentRole<'a>; 4] {
        [
            ComponentRole::Plugin(all),
            ComponentRole::Plugin(none),
            ComponentRole::Bridge,
            ComponentRole::RemoteBridge(origin),
        ]
    }

    fn origin() -> Grants {
        let mut origin = GrantSet::default();
        let here = Path::new("/");
        origin.add(NETWORK, "https://x/*", &PathContext::in_folder(here)).unwrap();
        Grants::new(origin.clone(), origin)
    }

    #[test]
    fn every_linker_is_free_of_conflicts() {
        let engine = wasmtime::Engine::default();
        for target in borrowers(&everything(), &Grants::default(), &origin()) {
            for edition in [Asyncness::Async, Asyncness::Sync] {
                let links = LinkSet::of(target, edition);
                links.linker(&engine, link_older).expect("each interface is linked once");
            }
        }
    }

    /// Whether a linker has the one function that a component imports. What it finds to be of another type
    /// is there.
    fn has(linker: &Linker<HostState>, component: &Component) -> bool {
        match linker.instantiate_pre(component) {
            Ok(_) => true,
            Err(error) => !format!("{error:#}").contains("function implementation is missing"),
        }
    }

    #[test]
    fn what_is_not_granted_is_neither_linked_nor_let_through() {
        const ALL: [bool; 4] = [true, true, true, true];
        const PLUGINS: [bool; 4] = [true, true, false, false];
        const NOT_THE_BRIDGE: [bool; 4] = [true, true, false, true];
        const GRANTED: [bool; 4] = [true, false, false, false];
        const GRANTED_ORIGIN: [bool; 4] = [true, false, false, true];
        const GRANTED_AND_BRIDGES: [bool; 4] = [true, false, true, true];
        const BRIDGES: [bool; 4] = [false, false, true, true];
        const BRIDGE: [bool; 4] = [false, false, true, false];
        const NOBODY: [bool; 4] = [false, false, false, false];
        let rows = [
            ("tenon:plugin/log@0.2.0", "write", ALL),
            ("tenon:plugin/config@0.2.0", "get", ALL),
            ("tenon:plugin/notify@0.2.0", "contributions-changed", ALL),
            // Of a version before the newest.
            ("tenon:plugin/log@0.0.1", "write", ALL),
            ("tenon:bridge/stdio-child@0.2.0", "start", BRIDGE),
            ("tenon:bridge/stdio-child@0.2.0", "stderr-tail", BRIDGE),
            ("tenon:bridge/mcp-server@0.2.0", "connected", BRIDGES),
            ("tenon:bridge/mcp-server@0.2.0", "offers", BRIDGES),
            ("tenon:plugin/user@0.2.0", "ask", GRANTED_AND_BRIDGES),
            ("tenon:plugin/messaging@0.2.0", "send-message", GRANTED),
            ("tenon:plugin/memory@0.2.0", "search-memory", GRANTED),
            ("tenon:plugin/inference@0.2.0", "complete", GRANTED_AND_BRIDGES),
            ("tenon:plugin/host-tools@0.2.0", "call-tool", GRANTED),
            ("tenon:plugin/host-tools@0.2.0", "list-tools", GRANTED),
            ("tenon:plugin/secrets@0.2.0", "get", GRANTED),
            ("wasi:keyvalue/store@0.2.0-draft2", "open", GRANTED),
            ("wasi:keyvalue/atomics@0.2.0-draft2", "increment", GRANTED),
            ("wasi:keyvalue/batch@0.2.0-draft2", "delete-many", GRANTED),
            ("wasi:http/outgoing-handler@0.2.0", "handle", GRANTED_ORIGIN),
            ("wasi:http/types@0.2.0", "http-error-code", GRANTED_ORIGIN),
            ("wasi:http/client@0.3.0", "send", GRANTED_ORIGIN),
            ("wasi:clocks/monotonic-clock@0.2.0", "now", NOT_THE_BRIDGE),
            ("wasi:clocks/wall-clock@0.2.0", "now", NOT_THE_BRIDGE),
            ("wasi:clocks/monotonic-clock@0.3.0", "now", NOT_THE_BRIDGE),
            ("wasi:clocks/system-clock@0.3.0", "now", NOT_THE_BRIDGE),
            ("wasi:io/poll@0.2.0", "poll", PLUGINS),
            ("wasi:random/random@0.2.0", "get-random-bytes", PLUGINS),
            ("wasi:random/insecure@0.2.0", "get-insecure-random-bytes", PLUGINS),
            ("wasi:random/random@0.3.0", "get-random-bytes", PLUGINS),
            ("wasi:cli/environment@0.2.0", "get-environment", PLUGINS),
            ("wasi:cli/exit@0.2.0", "exit", PLUGINS),
            ("wasi:cli/stdout@0.2.0", "get-stdout", PLUGINS),
            ("wasi:cli/environment@0.3.0", "get-environment", PLUGINS),
            ("wasi:cli/stdout@0.3.0", "write-via-stream", PLUGINS),
            ("wasi:sockets/tcp-create-socket@0.2.0", "create-tcp-socket", PLUGINS),
            ("wasi:sockets/udp-create-socket@0.2.0", "create-udp-socket", PLUGINS),
            ("wasi:sockets/ip-name-lookup@0.2.0", "resolve-addresses", PLUGINS),
            ("wasi:sockets/ip-name-lookup@0.3.0", "resolve-addresses", PLUGINS),
            ("wasi:filesystem/preopens@0.2.0", "get-directories", PLUGINS),
            ("wasi:filesystem/types@0.2.0", "filesystem-error-code", PLUGINS),
            ("wasi:filesystem/preopens@0.3.0", "get-directories", PLUGINS),
            ("wasi:nn/tensor@0.2.0", "make", NOBODY),
        ];
        let engine = wasmtime::Engine::default();
        let (all, none, origin) = (everything(), Grants::default(), origin());
        let borrowers = borrowers(&all, &none, &origin);
        let linkers = borrowers.map(|target| {
            LinkSet::of(target, Asyncness::Async).linker(&engine, link_older).unwrap()
        });
        for (import, function, expected) in rows {
            let function = format!("(export \"{function}\" (func))");
            let text = format!("(component (import \"{import}\" (instance {function})))");
            let component = wat::parse_str(text).expect("it is a component");
            let component = Component::new(&engine, component).expect("it is a component");
            assert_eq!(
                linkers.each_ref().map(|linker| has(linker, &component)),
                expected,
                "{import}"
            );
            let let_through =
                borrowers.map(|target| check_imports(&engine, &component, target).is_ok());
            assert_eq!(let_through, expected, "{import}");
        }
        for import in CAPABILITIES.iter().flat_map(|capability| capability.imports) {
            let is_of = |row: &str| {
                row.starts_with(&format!("{import}/")) || row.starts_with(&format!("{import}@"))
            };
            assert!(rows.iter().any(|(row, ..)| is_of(row)), "{import} has no row");
        }
    }
}
