//! The contract as components have it: which version, which of its interfaces, and how they are
//! called.
//!
//! The host works with types of its own ([`tenon_types`]). Each version of the contract that is not compatible
//! with the others has a file here, which says in that version's words what the host asks of a plugin, and hands
//! on what the plugin asks of the host to those who answer every version. So what a plugin may do is decided in
//! one place, whatever it was built for. Such a file is one row of [`VERSIONS`].

#[cfg(test)]
mod v0_0;
mod v0_2;

use async_trait::async_trait;
use semver::Version;
use std::sync::Arc;
use tenon_config::contract::PACKAGE_VERSION;
use tenon_types::{
    ArgumentCompletion, CallContext, Completion, CompletionRequest, Error, EvalDefinition,
    Evaluation, HookDecision, HookEvent, HookRegistration, Identity, ModelInfo, Prompt, PromptPage,
    ProviderDefinition, Registration, ResourceContents, ResourcePage, Suggestions, TemplatePage,
    ToolDefinition, ToolResult,
};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Accessor, Component, Instance, InstancePre, Linker};

use super::stream::AnswerWriter;
use crate::call::Failure;
use crate::capability::HostState;

/// Why a component is no plugin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ExportError {
    /// It exports nothing of the contract.
    #[error("it does not export tenon:plugin/lifecycle@{PACKAGE_VERSION}, so it is not a plugin")]
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
    Abi::of(version).is_some()
}

fn is_later(version: &str) -> bool {
    match (Version::parse(version), Version::parse(PACKAGE_VERSION)) {
        (Ok(version), Ok(ours)) => version > ours,
        _ => false,
    }
}

/// Versions of the contract that are compatible with each other, as one of them stands for.
struct Abi {
    version: &'static str,
    /// Finds the exports of a component, by the names of the interfaces that it has.
    find: fn(&InstancePre<HostState>, &ExportedInterfaces) -> Result<Indices, ExportError>,
    /// Puts the interfaces of a capability into a linker, by the capability's name. The newest has none: its
    /// interfaces are those of the capabilities themselves.
    link: fn(&str, &mut Linker<HostState>) -> wasmtime::Result<()>,
}

/// The versions that this host speaks, the newest first.
static VERSIONS: &[Abi] = &[
    Abi { version: PACKAGE_VERSION, find: v0_2::find, link: |_, _| Ok(()) },
    #[cfg(test)]
    Abi { version: v0_0::VERSION, find: v0_0::find, link: v0_0::link },
];

impl Abi {
    /// The version that a component of this one is spoken to in.
    fn of(version: &str) -> Option<&'static Self> {
        let version = Version::parse(version).ok()?;
        VERSIONS
            .iter()
            .find(|abi| Version::parse(abi.version).is_ok_and(|known| compatible(&known, &version)))
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
    VERSIONS.iter().try_for_each(|abi| (abi.link)(capability, linker))
}

/// An interface that plugins may export, besides `lifecycle`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    Cancellation,
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
            Self::Cancellation => "cancellation",
            Self::Tools => "tools",
            Self::Hooks => "hooks",
            Self::Provider => "providers",
            Self::Stream => "provider-stream",
            Self::Evals => "evals",
            Self::Resources => "resources",
            Self::Subscriptions => "subscriptions",
            Self::Prompts => "prompts",
            Self::Completions => "completions",
        }
    }

    /// What a plugin contributes by it.
    pub(super) fn contribution(self) -> &'static str {
        match self {
            Self::Cancellation => "cancellation",
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
struct ExportedInterfaces {
    /// Interfaces, without `tenon:plugin/` and version, and the version of each.
    interfaces: Vec<(String, String)>,
}

impl ExportedInterfaces {
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
    fn abi(&self) -> Result<&'static Abi, ExportError> {
        let plugin = self.interfaces.iter().find(|(interface, _)| interface == "lifecycle");
        let (_, version) =
            plugin.or_else(|| self.interfaces.first()).ok_or(ExportError::NoPlugin)?;
        let refused = || ExportError::Version(version.clone());
        let abi = Abi::of(version).ok_or_else(refused)?;
        let is_other =
            |version: &&String| Abi::of(version).is_none_or(|other| other.version != abi.version);
        if let Some(other) = self.interfaces.iter().map(|(_, version)| version).find(is_other) {
            return Err(ExportError::Version(other.clone()));
        }
        plugin.map(|_| abi).ok_or(ExportError::NoPlugin)
    }
}

/// Checks that a component exports the contract, in one version that this host speaks.
pub(crate) fn check(engine: &wasmtime::Engine, component: &Component) -> Result<(), ExportError> {
    ExportedInterfaces::read(engine, component).abi().map(drop)
}

/// Where a component's exports are, found once.
pub(crate) type Indices = Arc<dyn FindExports>;

/// Where the exports of a component of one version of the contract are.
pub(crate) trait FindExports: Send + Sync {
    /// Whether the component exports an interface.
    fn has(&self, interface: Interface) -> bool;

    /// The exports of an instance of it.
    fn of(self: Arc<Self>, instance: Instance) -> Box<dyn Exports>;
}

/// Finds the exports of a component that was linked.
pub(crate) fn find_exports(pre: &InstancePre<HostState>) -> Result<Indices, ExportError> {
    let exported = ExportedInterfaces::read(pre.engine(), pre.component());
    (exported.abi()?.find)(pre, &exported)
}

/// Asks an instance that was started what it contributes, by each interface that it exports. `offered` says what of
/// resources and prompts there is, where the component does not offer all that it exports.
pub(super) async fn contributions(
    indices: &dyn FindExports,
    exports: &dyn Exports,
    accessor: &Accessor<HostState>,
    identity: Identity,
) -> GuestAnswer<Registration> {
    /// What an interface lists; nothing where it is not exported.
    macro_rules! listed {
        ($interface:ident, $list:ident) => {
            match indices.has(Interface::$interface) {
                true => match exports.$list(accessor).await? {
                    Ok(listed) => listed,
                    Err(error) => return Ok(Err(error)),
                },
                false => Vec::new(),
            }
        };
    }
    let mut registration = Registration {
        tools: listed!(Tools, list_tools),
        hooks: listed!(Hooks, list_hooks),
        providers: listed!(Provider, list_providers),
        evals: listed!(Evals, list_evals),
        resources: indices.has(Interface::Resources),
        prompts: indices.has(Interface::Prompts),
        ..Registration::new(identity)
    };
    if let Some(offered) = accessor.with(|mut access| access.get().offered_by_server()) {
        registration.resources &= offered.resources;
        registration.prompts &= offered.prompts;
    }
    Ok(Ok(registration))
}

/// What comes of a call: what the component answers, unless it traps.
pub(crate) type GuestAnswer<T> = wasmtime::Result<Result<T, Error>>;

/// What the host asks of an instance, in its own types. What a version of the contract does not know, no plugin
/// of it exports.
#[async_trait]
#[allow(unused_variables, reason = "who does not export an interface has no use for them")]
pub(crate) trait Exports: Send + Sync {
    /// Checks the types of all functions, so that a plugin whose interfaces are of another shape is found out
    /// before it is registered.
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()>;

    /// Starts the instance, which says who the plugin is.
    async fn start(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Identity>;

    /// Tells the instance that it ends.
    async fn stop(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        Ok(())
    }

    /// Lists the tools.
    async fn list_tools(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<ToolDefinition>> {
        Err(NotExported(Interface::Tools).into())
    }

    /// Lists the points at which the plugin wants to be called.
    async fn list_hooks(
        &self,
        accessor: &Accessor<HostState>,
    ) -> GuestAnswer<Vec<HookRegistration>> {
        Err(NotExported(Interface::Hooks).into())
    }

    /// Lists the providers of language models.
    async fn list_providers(
        &self,
        accessor: &Accessor<HostState>,
    ) -> GuestAnswer<Vec<ProviderDefinition>> {
        Err(NotExported(Interface::Provider).into())
    }

    /// Lists the evaluation strategies.
    async fn list_evals(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<EvalDefinition>> {
        Err(NotExported(Interface::Evals).into())
    }

    /// Asks the instance to end a call.
    async fn cancel(
        &self,
        accessor: &Accessor<HostState>,
        call_id: String,
    ) -> wasmtime::Result<()> {
        Ok(())
    }

    /// As [`Plugin::call_tool`](super::Plugin::call_tool).
    async fn call_tool(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: String,
        context: CallContext,
    ) -> GuestAnswer<ToolResult> {
        Err(NotExported(Interface::Tools).into())
    }

    /// As [`Plugin::handle`](super::Plugin::handle). A decision of a plugin may be none.
    async fn handle(
        &self,
        accessor: &Accessor<HostState>,
        event: HookEvent,
    ) -> GuestAnswer<Result<HookDecision, Failure>> {
        Err(NotExported(Interface::Hooks).into())
    }

    /// As [`Plugin::models`](super::Plugin::models).
    async fn models(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<ModelInfo>> {
        Err(NotExported(Interface::Provider).into())
    }

    /// As [`Plugin::complete`](super::Plugin::complete).
    async fn complete(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
    ) -> GuestAnswer<Completion> {
        Err(NotExported(Interface::Provider).into())
    }

    /// Has an answer written in pieces, and is over when it is.
    async fn stream(
        &self,
        accessor: &Accessor<HostState>,
        request: CompletionRequest,
        context: CallContext,
        answer: AnswerWriter,
    ) -> GuestAnswer<()> {
        Err(NotExported(Interface::Stream).into())
    }

    /// As [`Plugin::evaluate`](super::Plugin::evaluate).
    async fn evaluate(
        &self,
        accessor: &Accessor<HostState>,
        strategy: String,
        subject: String,
        options: String,
        context: CallContext,
    ) -> GuestAnswer<Evaluation> {
        Err(NotExported(Interface::Evals).into())
    }

    /// As [`Plugin::list_resources`](super::Plugin::list_resources).
    async fn list_resources(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<ResourcePage> {
        Err(NotExported(Interface::Resources).into())
    }

    /// As [`Plugin::list_templates`](super::Plugin::list_templates).
    async fn list_templates(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<TemplatePage> {
        Err(NotExported(Interface::Resources).into())
    }

    /// As [`Plugin::read_resource`](super::Plugin::read_resource).
    async fn read_resource(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<Vec<ResourceContents>> {
        Err(NotExported(Interface::Resources).into())
    }

    /// As [`Plugin::subscribe`](super::Plugin::subscribe).
    async fn subscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<()> {
        Err(NotExported(Interface::Subscriptions).into())
    }

    /// Ends what [`Exports::subscribe`] began.
    async fn unsubscribe(
        &self,
        accessor: &Accessor<HostState>,
        uri: String,
        context: CallContext,
    ) -> GuestAnswer<()> {
        Err(NotExported(Interface::Subscriptions).into())
    }

    /// As [`Plugin::list_prompts`](super::Plugin::list_prompts).
    async fn list_prompts(
        &self,
        accessor: &Accessor<HostState>,
        cursor: Option<String>,
        context: CallContext,
    ) -> GuestAnswer<PromptPage> {
        Err(NotExported(Interface::Prompts).into())
    }

    /// As [`Plugin::get_prompt`](super::Plugin::get_prompt).
    async fn get_prompt(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> GuestAnswer<Prompt> {
        Err(NotExported(Interface::Prompts).into())
    }

    /// As [`Plugin::suggest`](super::Plugin::suggest).
    async fn suggest(
        &self,
        accessor: &Accessor<HostState>,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> GuestAnswer<Suggestions> {
        Err(NotExported(Interface::Completions).into())
    }
}

#[cfg(test)]
mod tests;
