//! `tools`: other tools, through the same pipeline as for any caller. Values are names of tools.

use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::{GrantSet, Host};
use crate::bindings::tools;
use crate::bindings::types::{Error, ToolDefinition, ToolResult};
use crate::invoke::{Call, Caller, operations};
use crate::runtime::wasm::HostState;
use crate::text::fits;

/// The name in manifests.
pub(super) const NAME: &str = "tools";

/// Whether a tool could be among those that are requested whose name begins so.
pub(crate) fn may_be_among(requests: &GrantSet, prefix: &str) -> bool {
    requests.values(NAME).any(|pattern| {
        let plain = pattern.split('*').next().unwrap_or_default();
        match plain.len() < pattern.len() {
            true => plain.starts_with(prefix) || prefix.starts_with(plain),
            false => plain.starts_with(prefix),
        }
    })
}

/// Whether one is requested that a host has once for all plugins.
pub(crate) fn is_one_shared(requests: &GrantSet) -> bool {
    let mut shared = operations::on(true, true).map(|(operation, _)| operation.name());
    shared.any(|name| requests.values(NAME).any(|pattern| fits(pattern, name)))
}

/// The tools that a plugin may call, under the names that it calls them by.
pub(crate) fn list(granted: &GrantedCapabilities) -> Result<Vec<ToolDefinition>, Error> {
    let registry = granted.host_services.platform_api()?.registry();
    let allowed =
        registry.tools().filter(|(_, tool)| granted.grants().allow(NAME, tool.name.as_str()));
    let renamed = allowed.map(|(_, tool)| ToolDefinition {
        name: tool.name.to_string(),
        ..ToolDefinition::clone(&tool.definition)
    });
    Ok(renamed.collect())
}

/// Calls a tool. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn call(
    granted: &GrantedCapabilities,
    caller: Caller,
    name: String,
    arguments: &str,
) -> Result<ToolResult, Error> {
    granted.require(NAME, &name, &format!("calling the tool {name}"))?;
    let caller = deeper(granted, caller)?;
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| Error::InvalidInput(format!("the arguments are not JSON: {error}")))?;
    granted
        .host_services
        .platform_api()?
        .call(Call { name, arguments, caller })
        .await
        .map_err(as_contract)
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    tools::add_to_linker::<_, Host>(linker, |state| state)
}

impl tools::Host for HostState {}

impl<T> tools::HostWithStore<T> for Host {
    async fn list_tools(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Result<Vec<ToolDefinition>, Error>> {
        let granted = accessor.with(|mut access| access.get().setting.granted.clone());
        Ok(list(&granted))
    }

    async fn call(
        accessor: &Accessor<T, Self>,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<Result<ToolResult, Error>> {
        let (granted, caller) = accessor.with(|mut access| access.get().access_and_caller());
        Ok(apart(async move { call(&granted, caller, name, &arguments).await }).await)
    }
}
