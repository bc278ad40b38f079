//! `memory`: what the host remembers, behind [`crate::services::MemorySearch`]. The only value is `search`.

use futures::FutureExt;
use tenon_config::grant::MEMORY;
use tenon_types::{Error, Memory};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext, link_blocking,
    sync_interface,
};
use crate::call::mask::Unmasked;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{memory, types};

/// The most memories that are found at a time.
const MAX_MEMORIES: u32 = 100;

/// Searches the host's memory.
pub(crate) async fn search_memory(
    granted: &GrantedCapabilities,
    query: Unmasked<String>,
    limit: u32,
) -> Result<Vec<Memory>, Error> {
    granted.require(MEMORY, "search", "searching the memory")?;
    let limit = limit.min(MAX_MEMORIES);
    let query = granted.masked(query);
    let mut found =
        granted.host_services.services.memory.search(granted.plugin(), &query, limit).await?;
    found.truncate(limit as usize);
    Ok(found)
}

pub(crate) struct MemoryCapability;

impl HostCapability for MemoryCapability {
    const NAME: &'static str = MEMORY;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        memory::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }

    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&sync_interface("memory"))?;
        link_blocking(&mut instance, "search-memory", begin_search)
    }
}

fn begin_search(
    view: CapabilityView<'_, MemoryCapability>,
    (query, limit): (String, u32),
) -> impl Future<Output = Result<Vec<memory::MemoryEntry>, types::Error>> + use<> {
    let (granted, query) = (view.calls.granted().clone(), Unmasked::new(query));
    let span = view.calls.span();
    apart(span, async move { search_memory(&granted, query, limit).await }).map(Convert::convert)
}

impl memory::Host for CapabilityView<'_, MemoryCapability> {}

impl<T: 'static> memory::HostWithStore<T> for HasView<MemoryCapability> {
    async fn search_memory(
        accessor: &Accessor<T, Self>,
        query: String,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<memory::MemoryEntry>, types::Error>> {
        Ok(accessor.with(|mut access| begin_search(access.get(), (query, limit))).await)
    }
}
