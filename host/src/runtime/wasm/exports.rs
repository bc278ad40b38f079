//! Which of the contract's interfaces a component exports.

use wasmtime::AsContextMut;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, InstancePre};

use super::HostState;
use crate::bindings::{
    PACKAGE_VERSION, eval_handler, hook_handler, lifecycle, prompts, provider_handler,
    provider_stream, resources, tool_handler,
};

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
    pub(super) lifecycle: lifecycle::GuestIndices,
    pub(super) tools: Option<tool_handler::GuestIndices>,
    pub(super) hooks: Option<hook_handler::GuestIndices>,
    pub(super) provider: Option<provider_handler::GuestIndices>,
    pub(super) stream: Option<provider_stream::GuestIndices>,
    pub(super) evals: Option<eval_handler::GuestIndices>,
    pub(super) resources: Option<resources::GuestIndices>,
    pub(super) prompts: Option<prompts::GuestIndices>,
}

/// The exports of one instance.
pub(crate) struct Exports {
    pub(super) lifecycle: lifecycle::Guest,
    tools: Option<tool_handler::Guest>,
    hooks: Option<hook_handler::Guest>,
    provider: Option<provider_handler::Guest>,
    stream: Option<provider_stream::Guest>,
    evals: Option<eval_handler::Guest>,
    resources: Option<resources::Guest>,
    prompts: Option<prompts::Guest>,
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
            lifecycle: lifecycle::GuestIndices::new(pre).map_err(shape)?,
            tools: optional!("tool-handler", tool_handler),
            hooks: optional!("hook-handler", hook_handler),
            provider: optional!("provider-handler", provider_handler),
            stream: optional!("provider-stream", provider_stream),
            evals: optional!("eval-handler", eval_handler),
            resources: optional!("resources", resources),
            prompts: optional!("prompts", prompts),
        })
    }

    /// Finds the exports in an instance, checking the types of their functions.
    pub(super) fn load(
        &self,
        mut store: impl AsContextMut<Data = HostState>,
        instance: &Instance,
    ) -> wasmtime::Result<Exports> {
        macro_rules! optional {
            ($field:ident) => {
                match &self.$field {
                    Some(indices) => Some(indices.load(&mut store, instance)?),
                    None => None,
                }
            };
        }
        Ok(Exports {
            lifecycle: self.lifecycle.load(&mut store, instance)?,
            tools: optional!(tools),
            hooks: optional!(hooks),
            provider: optional!(provider),
            stream: optional!(stream),
            evals: optional!(evals),
            resources: optional!(resources),
            prompts: optional!(prompts),
        })
    }
}

macro_rules! accessors {
    ($($field:ident: $module:ident = $interface:literal),* $(,)?) => {$(
        /// The interface, for a component that exports it.
        pub(super) fn $field(&self) -> wasmtime::Result<&$module::Guest> {
            match &self.$field {
                Some(guest) => Ok(guest),
                None => Err(NotExported($interface).into()),
            }
        }
    )*};
}

/// The component does not export an interface that a call needs.
#[derive(Debug, thiserror::Error)]
#[error("the component does not export {0}")]
pub(super) struct NotExported(pub(super) &'static str);

impl Exports {
    accessors! {
        tools: tool_handler = "tool-handler",
        hooks: hook_handler = "hook-handler",
        provider: provider_handler = "provider-handler",
        stream: provider_stream = "provider-stream",
        evals: eval_handler = "eval-handler",
        resources: resources = "resources",
        prompts: prompts = "prompts",
    }
}
