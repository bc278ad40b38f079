//! `tools`: other tools, through the same pipeline as for any caller. Values are names of tools.

use wasmtime::component::{Accessor, Linker};

use super::Host;
use super::lent::{Lent, apart, as_contract, deeper};
use crate::bindings::tools;
use crate::bindings::types::{Error, ToolDefinition, ToolResult};
use crate::invoke::{Call, Caller};
use crate::runtime::wasm::HostState;

/// The name in manifests.
pub(super) const NAME: &str = "tools";

/// The tools that a plugin may call, under the names that it calls them by.
pub(crate) fn list(lent: &Lent) -> Result<Vec<ToolDefinition>, Error> {
    let registry = lent.reach.hub()?.registry();
    let granted =
        registry.tools().filter(|(_, tool)| lent.grants().allow(NAME, tool.name.as_str()));
    let renamed = granted.map(|(_, tool)| ToolDefinition {
        name: tool.name.to_string(),
        ..ToolDefinition::clone(&tool.definition)
    });
    Ok(renamed.collect())
}

/// Calls a tool. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn call(
    lent: &Lent,
    caller: Caller,
    name: String,
    arguments: &str,
) -> Result<ToolResult, Error> {
    lent.require(NAME, &name, &format!("calling the tool {name}"))?;
    let caller = deeper(lent, caller)?;
    let arguments = serde_json::from_str(arguments)
        .map_err(|error| Error::InvalidInput(format!("the arguments are not JSON: {error}")))?;
    lent.reach.hub()?.call(Call { name, arguments, caller }).await.map_err(as_contract)
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    tools::add_to_linker::<_, Host>(linker, |state| state)
}

impl tools::Host for HostState {}

impl<T> tools::HostWithStore<T> for Host {
    async fn list_tools(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Result<Vec<ToolDefinition>, Error>> {
        let lent = accessor.with(|mut access| access.get().setting.lent.clone());
        Ok(list(&lent))
    }

    async fn call(
        accessor: &Accessor<T, Self>,
        name: String,
        arguments: String,
    ) -> wasmtime::Result<Result<ToolResult, Error>> {
        let (lent, caller) = accessor.with(|mut access| access.get().turned_to());
        Ok(apart(async move { call(&lent, caller, name, &arguments).await }).await)
    }
}
