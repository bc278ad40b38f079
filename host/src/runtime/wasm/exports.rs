//! Which of the contract's interfaces a component exports.

use std::sync::{Arc, OnceLock};
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Accessor, Component, Instance, InstancePre};

use super::HostState;
use crate::bindings::lifecycle::Registration;
use crate::bindings::{
    PACKAGE_VERSION, completions, eval_handler, hook_handler, lifecycle, prompts, provider_handler,
    provider_stream, resources, subscriptions, tool_handler,
};
use crate::runtime::Failure;

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
    /// It exports an interface of the contract in another shape.
    #[error("its interfaces are not those of tenon:plugin@{PACKAGE_VERSION}: {0}")]
    Shape(String),
}

/// Where a component's exports are, found once.
#[derive(Clone)]
pub(crate) struct ExportIndices {
    pub(super) lifecycle: Option<lifecycle::GuestIndices>,
    pub(super) tools: Option<tool_handler::GuestIndices>,
    pub(super) hooks: Option<hook_handler::GuestIndices>,
    pub(super) provider: Option<provider_handler::GuestIndices>,
    pub(super) stream: Option<provider_stream::GuestIndices>,
    pub(super) evals: Option<eval_handler::GuestIndices>,
    pub(super) resources: Option<resources::GuestIndices>,
    pub(super) subscriptions: Option<subscriptions::GuestIndices>,
    pub(super) prompts: Option<prompts::GuestIndices>,
    pub(super) completions: Option<completions::GuestIndices>,
}

/// The exports of one instance. Each interface is found, and the types of its functions checked,
/// when it is first called: a fresh instance has one of them called and no other.
pub(crate) struct Exports {
    indices: Arc<ExportIndices>,
    instance: Instance,
    lifecycle: OnceLock<lifecycle::Guest>,
    tools: OnceLock<tool_handler::Guest>,
    hooks: OnceLock<hook_handler::Guest>,
    provider: OnceLock<provider_handler::Guest>,
    stream: OnceLock<provider_stream::Guest>,
    evals: OnceLock<eval_handler::Guest>,
    resources: OnceLock<resources::Guest>,
    subscriptions: OnceLock<subscriptions::Guest>,
    prompts: OnceLock<prompts::Guest>,
    completions: OnceLock<completions::Guest>,
}

/// Checks that a component exports the contract, in the version that this host speaks.
pub(crate) fn check(engine: &wasmtime::Engine, component: &Component) -> Result<(), ExportError> {
    let mut found = false;
    for (name, export) in component.component_type().exports(engine) {
        let ComponentItem::ComponentInstance(_) = export.ty else { continue };
        let Some((interface, version)) = contract_interface(name) else { continue };
        if version != PACKAGE_VERSION {
            return Err(ExportError::Version(version.to_string()));
        }
        found |= interface == "plugin";
    }
    if found { Ok(()) } else { Err(ExportError::NoPlugin) }
}

/// The interface and version of a name such as `tenon:plugin/tool-handler@0.1.0`.
fn contract_interface(name: &str) -> Option<(&str, &str)> {
    let (interface, version) = name.strip_prefix("tenon:plugin/")?.split_once('@')?;
    Some((interface, version))
}

impl ExportIndices {
    pub(crate) fn new(pre: &InstancePre<HostState>) -> Result<Self, ExportError> {
        let shape = |error: wasmtime::Error| ExportError::Shape(format!("{error:#}"));
        let component = pre.component();
        let has = |interface: &str| {
            let name = format!("tenon:plugin/{interface}@{PACKAGE_VERSION}");
            component.get_export_index(None, &name).is_some()
        };
        /// An interface that may be there; if it is, all of its functions must be.
        macro_rules! optional {
            ($interface:literal, $module:ident) => {
                match has($interface) {
                    true => Some($module::GuestIndices::new(pre).map_err(shape)?),
                    false => None,
                }
            };
        }
        Ok(Self {
            lifecycle: optional!("plugin", lifecycle),
            tools: optional!("tool-handler", tool_handler),
            hooks: optional!("hook-handler", hook_handler),
            provider: optional!("provider-handler", provider_handler),
            stream: optional!("provider-stream", provider_stream),
            evals: optional!("eval-handler", eval_handler),
            resources: optional!("resources", resources),
            subscriptions: optional!("subscriptions", subscriptions),
            prompts: optional!("prompts", prompts),
            completions: optional!("completions", completions),
        })
    }
}

impl ExportIndices {
    /// Checks that the component exports what its registration needs.
    pub(super) fn serve(&self, registration: &Registration) -> Result<(), Failure> {
        let needs = [
            ("tools", "tool-handler", !registration.tools.is_empty(), self.tools.is_some()),
            ("hooks", "hook-handler", !registration.hooks.is_empty(), self.hooks.is_some()),
            (
                "providers",
                "provider-handler",
                !registration.providers.is_empty(),
                self.provider.is_some(),
            ),
            ("evals", "eval-handler", !registration.evals.is_empty(), self.evals.is_some()),
            ("resources", "resources", registration.resources, self.resources.is_some()),
            ("prompts", "prompts", registration.prompts, self.prompts.is_some()),
        ];
        match needs.into_iter().find(|(_, _, registered, exported)| *registered && !exported) {
            None => Ok(()),
            Some((what, interface, ..)) => Err(Failure::Contract(format!(
                "it registers {what} and does not export {interface}"
            ))),
        }
    }
}

/// The interface that a call needs, from the place of its index and its guest.
macro_rules! interfaces {
    ($($field:ident: $module:ident = $interface:literal),* $(,)?) => {$(
        /// The interface, for a component that exports it.
        pub(super) fn $field(
            &self,
            accessor: &Accessor<HostState>,
        ) -> wasmtime::Result<&$module::Guest> {
            if let Some(guest) = self.$field.get() {
                return Ok(guest);
            }
            let indices = self.indices.$field.as_ref().ok_or(NotExported($interface))?;
            let guest = accessor.with(|access| indices.load(access, &self.instance))?;
            Ok(self.$field.get_or_init(|| guest))
        }
    )*};
}

/// The component does not export an interface that a call needs.
#[derive(Debug, thiserror::Error)]
#[error("the component does not export {0}")]
pub(super) struct NotExported(pub(super) &'static str);

impl Exports {
    pub(super) fn new(indices: Arc<ExportIndices>, instance: Instance) -> Self {
        Self {
            indices,
            instance,
            lifecycle: OnceLock::new(),
            tools: OnceLock::new(),
            hooks: OnceLock::new(),
            provider: OnceLock::new(),
            stream: OnceLock::new(),
            evals: OnceLock::new(),
            resources: OnceLock::new(),
            subscriptions: OnceLock::new(),
            prompts: OnceLock::new(),
            completions: OnceLock::new(),
        }
    }

    /// Checks the types of all functions, so that a plugin whose interfaces are of another shape is
    /// found out before it is registered.
    pub(super) fn check(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        let ExportIndices {
            lifecycle: _,
            tools,
            hooks,
            provider,
            stream,
            evals,
            resources,
            subscriptions,
            prompts,
            completions,
        } = &*self.indices;
        if tools.is_some() {
            self.tools(accessor)?;
        }
        if hooks.is_some() {
            self.hooks(accessor)?;
        }
        if provider.is_some() {
            self.provider(accessor)?;
        }
        if stream.is_some() {
            self.stream(accessor)?;
        }
        if evals.is_some() {
            self.evals(accessor)?;
        }
        if resources.is_some() {
            self.resources(accessor)?;
        }
        if subscriptions.is_some() {
            self.subscriptions(accessor)?;
        }
        if prompts.is_some() {
            self.prompts(accessor)?;
        }
        if completions.is_some() {
            self.completions(accessor)?;
        }
        Ok(())
    }

    interfaces! {
        lifecycle: lifecycle = "plugin",
        tools: tool_handler = "tool-handler",
        hooks: hook_handler = "hook-handler",
        provider: provider_handler = "provider-handler",
        stream: provider_stream = "provider-stream",
        evals: eval_handler = "eval-handler",
        resources: resources = "resources",
        subscriptions: subscriptions = "subscriptions",
        prompts: prompts = "prompts",
        completions: completions = "completions",
    }
}
