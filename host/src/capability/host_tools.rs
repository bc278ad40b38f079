//! `tools`: the host's other tools, through the same pipeline as for any caller. Values are names of tools.

use futures::FutureExt;
use serde_json::Value;
use tenon_config::grant::TOOLS;
use tenon_types::{Error, ToolDefinition, ToolResult};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext, link_blocking,
    sync_interface,
};
use crate::call::{Call, Caller};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{host_tools, types};

/// The tools that a plugin may call, under the names that it calls them by.
pub(crate) fn list(granted: &GrantedCapabilities) -> Result<Vec<ToolDefinition>, Error> {
    let is_allowed = |name: &str| granted.grants().allow(TOOLS, name);
    Ok(granted.host_services.other_plugins()?.tools(&is_allowed))
}

/// Calls a tool. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn call(
    granted: &GrantedCapabilities,
    caller: Caller,
    name: String,
    arguments: Value,
) -> Result<ToolResult, Error> {
    granted.require(TOOLS, &name, &format!("calling the tool {name}"))?;
    let caller = deeper(granted, caller)?;
    let other_plugins = granted.host_services.other_plugins()?;
    let Some(interceptor) = &granted.host_services.services.interceptor else {
        return other_plugins.call(Call { name, arguments, caller }).await.map_err(as_contract);
    };
    let call = Call { name: name.clone(), arguments: arguments.clone(), caller };
    let call = async move { other_plugins.call(call).await.map_err(as_contract) };
    interceptor.call_tool(&name, &arguments, Box::pin(call)).await
}

pub(crate) struct HostToolsCapability;

impl HostCapability for HostToolsCapability {
    const NAME: &'static str = TOOLS;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        host_tools::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }

    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&sync_interface("host-tools"))?;
        link_blocking(&mut instance, "list-tools", |view: CapabilityView<'_, Self>, (): ()| {
            std::future::ready(begin_list(view))
        })?;
        link_blocking(&mut instance, "call-tool", begin_call)
    }
}

fn begin_list(
    view: CapabilityView<'_, HostToolsCapability>,
) -> Result<Vec<types::ToolDefinition>, types::Error> {
    list(view.calls.granted()).convert()
}

fn begin_call(
    view: CapabilityView<'_, HostToolsCapability>,
    (name, arguments): (String, String),
) -> impl Future<Output = Result<types::ToolResult, types::Error>> + use<> {
    let (granted, caller) = view.calls.access_and_caller();
    let span = view.calls.span();
    let call = async move {
        let arguments = serde_json::from_str(&arguments).map_err(|error| {
            Error::invalid_input(format!("the arguments are not JSON: {error}"))
        })?;
        call(&granted, caller, name, arguments).await
    };
    apart(span, call).map(Convert::convert)
}

impl host_tools::Host for CapabilityView<'_, HostToolsCapability> {}

impl<T: 'static> host_tools::HostWithStore<T> for HasView<HostToolsCapability> {
    async fn list_tools(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Result<Vec<types::ToolDefinition>, types::Error>> {
        Ok(accessor.with(|mut access| begin_list(access.get())))
    }

    async fn call_tool(
        accessor: &Accessor<T, Self>,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<Result<types::ToolResult, types::Error>> {
        Ok(accessor.with(|mut access| begin_call(access.get(), (name, arguments))).await)
    }
}
