//! The contract as components have it: which version, which of its interfaces, and how they are
//! called.
//!
//! The host works with the types of one version, the newest. A version that is not compatible with
//! it has a file of its own beside [`newest`], which says in its own words what the host asks of a
//! plugin, and hands on what the plugin asks of the host to those who answer the newest. So what a
//! plugin may do is decided in one place, whatever it was built for. Such a file is one variant of
//! [`Track`], [`Indices`] and [`Exports`], and one row of [`OLDER`].

mod newest;
#[cfg(test)]
mod v0_0;

use semver::Version;
use std::sync::Arc;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{
    Accessor, Component, FutureReader, Instance, InstancePre, Linker, StreamReader,
};

use crate::bindings::PACKAGE_VERSION;
use crate::bindings::completions::{Blank, Suggestions};
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::lifecycle::Registration;
use crate::bindings::model::{Completion, CompletionRequest, CompletionSummary, Delta, ModelInfo};
use crate::bindings::prompts::{Prompt, PromptPage};
use crate::bindings::resources::{ResourcePage, TemplatePage};
use crate::bindings::types::{CallContext, Error, ResourceContents, ToolResult};
use crate::call::Failure;
use crate::capability::HostState;

/// Why a component is no plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// It exports nothing of the contract.
    #[error("it does not export tenon:plugin/plugin@{PACKAGE_VERSION}, so it is not a plugin")]
    NoPlugin,
    /// It was made for a version of the contract that this host does not speak.
    #[error(
        "it was built for tenon:plugin@{0}, and this host speaks tenon:plugin@{PACKAGE_VERSION}"
    )]
    Version(String),
    /// It needs functions that are not there: it was built for a later form of this version.
    #[error("it needs what this host's tenon:plugin@{PACKAGE_VERSION} does not have yet: {0}")]
    Missing(String),
    /// It exports an interface of the contract in another shape.
    #[error("its interfaces are not those of tenon:plugin@{PACKAGE_VERSION}: {0}")]
    Shape(String),
}

impl ExportError {
    /// Why a component does not fit what it is linked with.
    pub(crate) fn linking(error: &wasmtime::Error) -> Self {
        let problem = format!("{error:#}");
        // wasmtime has no type for it.
        match problem.contains("function implementation is missing") {
            true => Self::Missing(problem),
            false => Self::Shape(problem),
        }
    }

    /// What to do about it.
    pub(crate) fn remedy(&self) -> &'static str {
        match self {
            Self::NoPlugin => {
                "export a world of the package tenon:plugin, in Rust with `tenon_sdk::plugin!`"
            }
            Self::Version(version) if is_later(version) => {
                "a later Tenon loads it; or build it again with an SDK of this version"
            }
            Self::Missing(_) => {
                "a later Tenon loads it; or build it again with an SDK of this version"
            }
            Self::Version(_) | Self::Shape(_) => "build it again with an SDK of this version",
        }
    }
}

/// Whether this host speaks a version of the contract, as far as versions tell.
pub fn speaks(version: &str) -> bool {
    Track::of(version).is_some()
}

fn is_later(version: &str) -> bool {
    match (Version::parse(version), Version::parse(PACKAGE_VERSION)) {
        (Ok(version), Ok(ours)) => version > ours,
        _ => false,
    }
}

/// Versions of the contract that are compatible with each other, as one of them stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Track {
    Newest,
    #[cfg(test)]
    V0_0,
}

/// A version other than the newest.
struct Older {
    version: &'static str,
    track: Track,
    /// Puts the interfaces of a capability into a linker, by the capability's name.
    link: fn(&str, &mut Linker<HostState>) -> wasmtime::Result<()>,
}

/// The versions other than the newest that this host speaks.
const OLDER: &[Older] = &[
    #[cfg(test)]
    Older { version: v0_0::VERSION, track: Track::V0_0, link: v0_0::link },
];

impl Track {
    fn of(version: &str) -> Option<Self> {
        let version = Version::parse(version).ok()?;
        let newest = [(PACKAGE_VERSION, Self::Newest)].into_iter();
        let mut known = newest.chain(OLDER.iter().map(|older| (older.version, older.track)));
        let known = known.find(|(known, _)| {
            Version::parse(known).is_ok_and(|known| compatible(&known, &version))
        });
        known.map(|(_, track)| track)
    }
}

/// Whether a component of one version can be loaded where the other is spoken, as far as versions
/// tell: the leftmost number that is not zero is the same. See <https://semver.org>.
fn compatible(one: &Version, other: &Version) -> bool {
    let breaking = |version: &Version| match (version.major, version.minor) {
        (0, 0) => (0, 0, version.patch),
        (0, minor) => (0, minor, 0),
        (major, _) => (major, 0, 0),
    };
    breaking(one) == breaking(other)
}

/// Puts what a capability is in other versions of the contract beside what it is in the newest.
pub(crate) fn link_older(capability: &str, linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    OLDER.iter().try_for_each(|older| (older.link)(capability, linker))
}

/// An interface that plugins may export, besides `plugin`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    Tools,
    Hooks,
    Provider,
    Stream,
    Evals,
    Resources,
    Subscriptions,
    Prompts,
    Completions,
}

impl Interface {
    /// Its name in the contract.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Tools => "tool-handler",
            Self::Hooks => "hook-handler",
            Self::Provider => "provider-handler",
            Self::Stream => "provider-stream",
            Self::Evals => "eval-handler",
            Self::Resources => "resources",
            Self::Subscriptions => "subscriptions",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
        }
    }

    /// What a plugin contributes by it.
    pub(super) fn contribution(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Hooks => "hooks",
            Self::Provider | Self::Stream => "a provider",
            Self::Evals => "evals",
            Self::Resources => "resources",
            Self::Subscriptions => "subscriptions",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
        }
    }
}

/// The component does not export an interface that a call needs.
#[derive(Debug, thiserror::Error)]
#[error("the component does not export {}", .0.name())]
pub(super) struct NotExported(pub(super) Interface);

/// What a component exports of the contract, read once.
struct Exported {
    /// Interfaces, without `tenon:plugin/` and version, and the version of each.
    interfaces: Vec<(String, String)>,
}

impl Exported {
    fn read(engine: &wasmtime::Engine, component: &Component) -> Self {
        let exports = component.component_type();
        let interfaces = exports.exports(engine).filter_map(|(name, export)| {
            let ComponentItem::ComponentInstance(_) = export.ty else { return None };
            let (interface, version) = name.strip_prefix("tenon:plugin/")?.split_once('@')?;
            Some((interface.to_string(), version.to_string()))
        });
        Self { interfaces: interfaces.collect() }
    }

    fn has(&self, wanted: &str) -> bool {
        self.interfaces.iter().any(|(interface, _)| interface == wanted)
    }

    /// The one version that all of them are of, as far as this host tells versions apart.
    fn track(&self) -> Result<Track, ExportError> {
        let plugin = self.interfaces.iter().find(|(interface, _)| interface == "plugin");
        let (_, version) =
            plugin.or_else(|| self.interfaces.first()).ok_or(ExportError::NoPlugin)?;
        let refused = || ExportError::Version(version.clone());
        let track = Track::of(version).ok_or_else(refused)?;
        let mut versions = self.interfaces.iter().map(|(_, version)| version);
        if let Some(other) = versions.find(|version| Track::of(version) != Some(track)) {
            return Err(ExportError::Version(other.clone()));
        }
        plugin.map(|_| track).ok_or(ExportError::NoPlugin)
    }
}

/// Checks that a component exports the contract, in one version that this host speaks.
pub(crate) fn check(engine: &wasmtime::Engine, component: &Component) -> Result<(), ExportError> {
    Exported::read(engine, component).track().map(drop)
}

/// Where a component's exports are, found once.
#[derive(Clone)]
pub(crate) enum Indices {
    Newest(Arc<newest::Indices>),
    #[cfg(test)]
    V0_0(Arc<v0_0::Indices>),
}

impl Indices {
    pub(crate) fn new(pre: &InstancePre<HostState>) -> Result<Self, ExportError> {
        let exported = Exported::read(pre.engine(), pre.component());
        Ok(match exported.track()? {
            Track::Newest => {
                let has = |interface: &str| exported.has(interface);
                Self::Newest(Arc::new(newest::Indices::new(pre, has)?))
            }
            #[cfg(test)]
            Track::V0_0 => Self::V0_0(Arc::new(v0_0::Indices::new(pre)?)),
        })
    }

    pub(super) fn has(&self, interface: Interface) -> bool {
        match self {
            Self::Newest(indices) => indices.has(interface),
            #[cfg(test)]
            Self::V0_0(indices) => indices.has(interface),
        }
    }

    /// Checks that the component exports what its registration needs.
    pub(super) fn serve(&self, registration: &Registration) -> Result<(), Failure> {
        let needs = [
            ("tools", Interface::Tools, !registration.tools.is_empty()),
            ("hooks", Interface::Hooks, !registration.hooks.is_empty()),
            ("providers", Interface::Provider, !registration.providers.is_empty()),
            ("evals", Interface::Evals, !registration.evals.is_empty()),
            ("resources", Interface::Resources, registration.resources),
            ("prompts", Interface::Prompts, registration.prompts),
        ];
        let lacks = |(_, interface, registered): &(_, Interface, bool)| {
            *registered && !self.has(*interface)
        };
        match needs.into_iter().find(lacks) {
            None => Ok(()),
            Some((what, interface, _)) => Err(Failure::Contract(format!(
                "it registers {what} and does not export {}",
                interface.name()
            ))),
        }
    }
}

/// What comes of a call: what the component answers, unless it traps.
type Answer<T> = wasmtime::Result<Result<T, Error>>;

/// An answer that comes in pieces.
type Streamed = (StreamReader<Delta>, FutureReader<Result<CompletionSummary, Error>>);

/// The exports of one instance, whatever version of the contract they are of.
#[allow(clippy::large_enum_variant, reason = "the newest is what almost every instance has")]
pub(crate) enum Exports {
    Newest(newest::Newest),
    #[cfg(test)]
    V0_0(v0_0::V0_0),
}

impl Exports {
    pub(super) fn new(indices: &Indices, instance: Instance) -> Self {
        match indices {
            Indices::Newest(indices) => {
                Self::Newest(newest::Newest::new(indices.clone(), instance))
            }
            #[cfg(test)]
            Indices::V0_0(indices) => Self::V0_0(v0_0::V0_0::new(indices.clone(), instance)),
        }
    }
}

/// What the host asks of the exports of an instance.
macro_rules! operations {
    ($($interface:ident: $operation:ident($($argument:ident: $kind:ty),*) -> $answer:ty;)*) => {
        /// A version of the contract, in the words of the newest. What it does not know, no plugin of
        /// it exports.
        #[allow(unused_variables, reason = "who does not export an interface has no use for them")]
        trait Abi: Sync {
            /// Checks the types of all functions, so that a plugin whose interfaces are of another
            /// shape is found out before it is registered.
            fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()>;

            fn register(
                &self,
                accessor: &Accessor<HostState>,
            ) -> impl Future<Output = Answer<Registration>> + Send;

            fn shutdown(
                &self,
                accessor: &Accessor<HostState>,
            ) -> impl Future<Output = wasmtime::Result<()>> + Send {
                async { Ok(()) }
            }

            /// Asks the guest to end a call.
            fn cancel(
                &self,
                accessor: &Accessor<HostState>,
                call_id: String,
            ) -> impl Future<Output = wasmtime::Result<()>> + Send {
                async { Ok(()) }
            }

            $(fn $operation(
                &self,
                accessor: &Accessor<HostState>,
                $($argument: $kind),*
            ) -> impl Future<Output = Answer<$answer>> + Send {
                async { Err(NotExported(Interface::$interface).into()) }
            })*
        }

        impl Exports {
            // It is no `async fn`, which would have room for the arguments twice.
            $(pub(super) fn $operation(
                &self,
                accessor: &Accessor<HostState>,
                $($argument: $kind),*
            ) -> impl Future<Output = Answer<$answer>> + Send {
                each!(self, exports => exports.$operation(accessor, $($argument),*))
            })*
        }
    };
}

/// The same future of whatever version it is.
#[cfg(not(test))]
macro_rules! each {
    ($exports:expr, $each:ident => $future:expr) => {{
        let Exports::Newest($each) = $exports;
        $future
    }};
}

#[cfg(test)]
macro_rules! each {
    ($exports:expr, $each:ident => $future:expr) => {
        match $exports {
            Exports::Newest($each) => futures::future::Either::Left($future),
            Exports::V0_0($each) => futures::future::Either::Right($future),
        }
    };
}

operations! {
    Tools: call_tool(name: String, arguments: String, context: CallContext) -> ToolResult;
    Hooks: handle(event: Event) -> Outcome;
    Provider: models() -> Vec<ModelInfo>;
    Provider: complete(request: CompletionRequest, context: CallContext) -> Completion;
    Stream: stream(request: CompletionRequest, context: CallContext) -> Streamed;
    Evals: evaluate(strategy: String, subject: String, options: String, context: CallContext) -> Evaluation;
    Resources: list_resources(cursor: Option<String>, context: CallContext) -> ResourcePage;
    Resources: list_templates(cursor: Option<String>, context: CallContext) -> TemplatePage;
    Resources: read_resource(uri: String, context: CallContext) -> Vec<ResourceContents>;
    Subscriptions: subscribe(uri: String, context: CallContext) -> ();
    Subscriptions: unsubscribe(uri: String, context: CallContext) -> ();
    Prompts: list_prompts(cursor: Option<String>, context: CallContext) -> PromptPage;
    Prompts: get_prompt(name: String, arguments: Vec<(String, String)>, context: CallContext) -> Prompt;
    Completions: suggest(blank: Blank, context: CallContext) -> Suggestions;
}

impl Exports {
    /// Checks the types of all functions, and asks the instance what it contributes.
    pub(super) async fn register(&self, accessor: &Accessor<HostState>) -> Answer<Registration> {
        let register = each!(self, exports => async {
            exports.check_types(accessor)?;
            exports.register(accessor).await
        });
        register.await
    }

    pub(super) async fn shutdown(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        each!(self, exports => exports.shutdown(accessor)).await
    }

    /// Asks the guest to end a call.
    pub(super) async fn cancel(
        &self,
        accessor: &Accessor<HostState>,
        call_id: String,
    ) -> wasmtime::Result<()> {
        each!(self, exports => exports.cancel(accessor, call_id)).await
    }
}

#[cfg(test)]
mod tests;
