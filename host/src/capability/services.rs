//! `services`: what the host itself does for plugins, behind [`crate::services`]. Values are
//! `send-message`, or `send-message:CHANNEL` for one channel alone, and `search-memory`.

use wasmtime::component::{Accessor, Linker};

use super::Host;
use super::lent::{Lent, apart};
use crate::bindings::services::{self, Memory, OutgoingMessage};
use crate::bindings::types::Error;
use crate::runtime::wasm::HostState;

/// The name in manifests.
pub(super) const NAME: &str = "services";

/// What its values are.
pub(super) const SERVICES: &[&str] = &["send-message", "send-message:*", "search-memory"];

/// The most memories that are found at a time.
const MEMORIES: u32 = 100;

/// Sends a message.
pub(crate) async fn send_message(lent: &Lent, message: OutgoingMessage) -> Result<(), Error> {
    let allows_one =
        |channel: &String| lent.grants().allow(NAME, &format!("send-message:{channel}"));
    if !message.channel.as_ref().is_some_and(allows_one) {
        lent.require(NAME, "send-message", "sending a message")?;
    }
    lent.reach.services.messaging.send(lent.plugin(), message).await
}

/// Searches the host's memory.
pub(crate) async fn search_memory(
    lent: &Lent,
    query: &str,
    limit: u32,
) -> Result<Vec<Memory>, Error> {
    lent.require(NAME, "search-memory", "searching the memory")?;
    let limit = limit.min(MEMORIES);
    let mut found = lent.reach.services.memory.search(lent.plugin(), query, limit).await?;
    found.truncate(limit as usize);
    Ok(found)
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    services::add_to_linker::<_, Host>(linker, |state| state)
}

impl services::Host for HostState {}

impl<T> services::HostWithStore<T> for Host {
    async fn send_message(
        accessor: &Accessor<T, Self>,
        message: OutgoingMessage,
    ) -> wasmtime::Result<Result<(), Error>> {
        let lent = accessor.with(|mut access| access.get().setting.lent.clone());
        Ok(apart(async move { send_message(&lent, message).await }).await)
    }

    async fn search_memory(
        accessor: &Accessor<T, Self>,
        query: String,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<Memory>, Error>> {
        let lent = accessor.with(|mut access| access.get().setting.lent.clone());
        Ok(apart(async move { search_memory(&lent, &query, limit).await }).await)
    }
}
