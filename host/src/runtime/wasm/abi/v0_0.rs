//! The version 0.0, which only tests speak.

use std::sync::Arc;
use wasmtime::component::{Accessor, Instance, InstancePre, Linker};

use super::{Abi, Answer, ExportError, Interface};
use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::log::Level;
use crate::bindings::types::{CallContext, Error, ToolDefinition, ToolResult};
use crate::capability::{Host, HostState};

mod bindings {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all, rustdoc::all)]

    wasmtime::component::bindgen!({
        path: "src/runtime/wasm/abi/v0_0.wit",
        world: "tool",
        imports: { default: trappable },
        exports: { default: async | store },
    });
}

use bindings::exports::tenon::plugin::{plugin, tool_handler};
use bindings::tenon::plugin::log;

pub(super) const VERSION: &str = "0.0.1";

/// Puts the interfaces of a capability into a linker.
pub(super) fn link(capability: &str, linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    match capability {
        "log" => log::add_to_linker::<_, Host>(linker, |state| state),
        _ => Ok(()),
    }
}

impl log::Host for HostState {
    /// Its messages have no level and no fields.
    fn write(&mut self, message: String) -> wasmtime::Result<()> {
        crate::bindings::log::Host::write(self, Level::Info, message, Vec::new())
    }
}

/// Where a component's exports are.
pub(crate) struct Indices {
    plugin: plugin::GuestIndices,
    tools: tool_handler::GuestIndices,
}

impl Indices {
    pub(super) fn new(pre: &InstancePre<HostState>) -> Result<Self, ExportError> {
        let shape = |error: wasmtime::Error| ExportError::Shape(format!("{error:#}"));
        Ok(Self {
            plugin: plugin::GuestIndices::new(pre).map_err(shape)?,
            tools: tool_handler::GuestIndices::new(pre).map_err(shape)?,
        })
    }

    pub(super) fn has(&self, interface: Interface) -> bool {
        interface == Interface::Tools
    }
}

/// The exports of one instance.
pub(crate) struct V0_0 {
    indices: Arc<Indices>,
    instance: Instance,
}

impl V0_0 {
    pub(super) fn new(indices: Arc<Indices>, instance: Instance) -> Self {
        Self { indices, instance }
    }
}

impl Abi for V0_0 {
    fn check_types(&self, accessor: &Accessor<HostState>) -> wasmtime::Result<()> {
        accessor.with(|mut access| {
            self.indices.plugin.load(&mut access, &self.instance)?;
            self.indices.tools.load(&mut access, &self.instance)?;
            Ok(())
        })
    }

    async fn register(&self, accessor: &Accessor<HostState>) -> Answer<Registration> {
        let plugin = accessor.with(|access| self.indices.plugin.load(access, &self.instance))?;
        let tools = plugin.call_register(accessor).await?.into_iter();
        let schema = serde_json::json!({ "type": "object" });
        let tools =
            tools.map(|(name, description)| ToolDefinition::new(name, description, &schema));
        Ok(Ok(Registration {
            identity: Identity {
                name: String::new(),
                version: String::new(),
                description: String::new(),
            },
            tools: tools.collect(),
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources: false,
            prompts: false,
        }))
    }

    async fn call_tool(
        &self,
        accessor: &Accessor<HostState>,
        name: String,
        arguments: String,
        _: CallContext,
    ) -> Answer<ToolResult> {
        let tools = accessor.with(|access| self.indices.tools.load(access, &self.instance))?;
        let answer = tools.call_call(accessor, name, arguments).await?;
        Ok(answer.map(ToolResult::text).map_err(Error::Failed))
    }
}
