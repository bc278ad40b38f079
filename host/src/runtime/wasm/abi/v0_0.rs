//! The version 0.0, which only tests speak.

use async_trait::async_trait;
use std::sync::Arc;
use tenon_types::{CallContext, Error, Identity, ToolDefinition, ToolResult};
use wasmtime::component::{Accessor, Instance, InstancePre, Linker};

use super::{ExportError, ExportedInterfaces, FindExports, GuestAnswer, Interface};
use crate::capability::HostState;
use crate::capability::bindings::log::Level;
use crate::capability::host_capability::{CapabilityView, HasCapability, HasView};
use crate::capability::log::LogCapability;

mod bindings {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, rustdoc::all)]

    wasmtime::component::bindgen!({
        path: "src/runtime/wasm/abi/v0_0.wit",
        world: "tool",
        imports: { default: trappable },
        exports: { default: async | store },
    });
}

use bindings::exports::tenon::plugin::{lifecycle, tools};
use bindings::tenon::plugin::log;

pub(super) const VERSION: &str = "0.0.1";

/// Puts the interfaces of a capability into a linker.
pub(super) fn link(capability: &str, linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    match capability {
        "log" => log::add_to_linker::<_, HasView<LogCapability>>(linker, HasCapability::view),
        _ => Ok(()),
    }
}

impl log::Host for CapabilityView<'_, LogCapability> {
    /// Its messages have no level and no fields.
    fn write(&mut self, message: String) -> wasmtime::Result<()> {
        crate::capability::bindings::log::Host::write(self, Level::Info, message, Vec::new())
    }
}

/// Where a component's exports are.
struct Indices {
    lifecycle: lifecycle::GuestIndices,
    tools: tools::GuestIndices,
}

/// Finds the exports.
pub(super) fn find(
    pre: &InstancePre<HostState>,
    _: &ExportedInterfaces,
) -> Result<super::Indices, ExportError> {
    let shape = |error: wasmtime::Error| ExportError::Shape(format!("{error:#}"));
    Ok(Arc::new(Indices {
        lifecycle: lifecycle::GuestIndices::new(pre).map_err(shape)?,
        tools: tools::GuestIndices::new(pre).map_err(shape)?,
    }))
}

impl FindExports for Indices {
    fn has(&self, interface: Interface) -> bool {
        interface == Interface::Tools
    }

    fn of(self: Arc<Self>, instance: Instance) -> Box<dyn super::Exports> {
        Box::new(Exports { indices: self, instance })
    }
}

/// The exports of one instance.
struct Exports {
    indices: Arc<Indices>,
    instance: Instance,
}

#[async_trait]
impl super::Exports for Exports {
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        accessor.with(|mut access| {
            self.indices.tools.load(&mut access, &self.instance)?;
            self.indices.lifecycle.load(&mut access, &self.instance).map(drop)
        })
    }

    async fn start(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Identity> {
        let lifecycle =
            accessor.with(|access| self.indices.lifecycle.load(access, &self.instance))?;
        lifecycle.call_start(accessor).await?;
        let (name, version, description) = Default::default();
        Ok(Ok(Identity { name, version, description, extra: None }))
    }

    async fn list_tools(&self, accessor: &Accessor<HostState>) -> GuestAnswer<Vec<ToolDefinition>> {
        let tools = accessor.with(|access| self.indices.tools.load(access, &self.instance))?;
        let tools = tools.call_list_tools(accessor).await?.into_iter();
        let schema = serde_json::json!({ "type": "object" });
        let tools =
            tools.map(|(name, description)| ToolDefinition::new(name, description, &schema));
        Ok(Ok(tools.collect()))
    }

    async fn call_tool(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: String,
        _: CallContext,
    ) -> GuestAnswer<ToolResult> {
        let tools = accessor.with(|access| self.indices.tools.load(access, &self.instance))?;
        let answer = tools.call_call_tool(accessor, name, arguments).await?;
        Ok(answer.map(ToolResult::text).map_err(Error::failed))
    }
}
