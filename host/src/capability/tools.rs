//! `tools`: other tools, through the same pipeline as for any caller. Values are names of tools.

use serde_json::Value;
use tenon_config::grant::TOOLS;
use tenon_types::{Error, ToolDefinition, ToolResult};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::{Call, Caller};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{tools, types};

/// The tools that a plugin may call, under the names that it calls them by.
pub(crate) fn list(granted: &GrantedCapabilities) -> Result<Vec<ToolDefinition>, Error> {
    let is_allowed = |name: &str| granted.grants().allow(TOOLS, name);
    Ok(granted.host_services.platform_api()?.tools(&is_allowed))
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
    granted
        .host_services
        .platform_api()?
        .call(Call { name, arguments, caller })
        .await
        .map_err(as_contract)
}

pub(crate) struct ToolsCapability;

impl HostCapability for ToolsCapability {
    const NAME: &'static str = TOOLS;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &Preparation<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        tools::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

impl tools::Host for View<'_, ToolsCapability> {}

impl<T: 'static> tools::HostWithStore<T> for InView<ToolsCapability> {
    async fn list_tools(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Result<Vec<types::ToolDefinition>, types::Error>> {
        let granted = accessor.with(|mut access| access.get().calls.granted().clone());
        Ok(list(&granted).convert())
    }

    async fn call(
        accessor: &Accessor<T, Self>,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<Result<types::ToolResult, types::Error>> {
        let (granted, caller) = accessor.with(|mut access| access.get().calls.access_and_caller());
        let call = async move {
            let arguments = serde_json::from_str(&arguments).map_err(|error| {
                Error::InvalidInput(format!("the arguments are not JSON: {error}"))
            })?;
            call(&granted, caller, name, arguments).await
        };
        Ok(apart(call).await.convert())
    }
}
