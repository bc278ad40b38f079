//! `services`: what the host itself does for plugins, behind [`crate::services`]. Values are
//! `send-message`, or `send-message:CHANNEL` for one channel alone, and `search-memory`.

use serde_json::{Map, Value};
use wasmtime::component::{Accessor, Linker};

use super::Host;
use super::lent::{Lent, apart, as_contract, deeper};
use crate::bindings::services::{self, Memory, OutgoingMessage};
use crate::bindings::types::{Error, HookPoint};
use crate::invoke::{CallError, Caller, HookOutcome, Masked, Unmasked};
use crate::runtime::wasm::HostState;

/// The name in manifests.
pub(super) const NAME: &str = "services";

/// What its values are.
pub(super) const SERVICES: &[&str] = &["send-message", "send-message:*", "search-memory"];

/// The most memories that are found at a time.
const MEMORIES: u32 = 100;

/// Sends a message, unless a hook stops it. Handlers of `message-sending` may change its text; where it
/// goes stays. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn send_message(
    lent: &Lent,
    caller: Caller,
    message: Unmasked<OutgoingMessage>,
) -> Result<(), Error> {
    let message = lent.masked(message);
    let allows_one =
        |channel: &String| lent.grants().allow(NAME, &format!("send-message:{channel}"));
    if !message.channel.as_ref().is_some_and(allows_one) {
        lent.require(NAME, "send-message", "sending a message")?;
    }
    let message = hooked(lent, caller, message).await?;
    lent.reach.services.messaging.send(lent.plugin(), message).await
}

/// The message as hooks have left it.
async fn hooked(
    lent: &Lent,
    caller: Caller,
    message: Masked<OutgoingMessage>,
) -> Result<OutgoingMessage, Error> {
    let (hub, caller) = (lent.reach.hub()?, deeper(lent, caller)?);
    let registry = hub.registry();
    let OutgoingMessage { channel, text, extra } = message.into_inner();
    if registry.handlers(&HookPoint::MessageSending).is_empty() {
        return Ok(OutgoingMessage { channel, text, extra });
    }
    let mut context = Map::new();
    context.insert("plugin".into(), lent.plugin().into());
    context.insert("message".into(), text.into());
    context.extend(channel.clone().map(|channel| ("channel".into(), channel.into())));
    let mut report = hub.fire(&HookPoint::MessageSending, context, &caller).await;
    match report.outcome {
        HookOutcome::Veto { plugin, reason } => {
            return Err(as_contract(CallError::Vetoed { plugin, reason }));
        }
        HookOutcome::Stopped { plugin, failure } => {
            return Err(as_contract(CallError::Failed { plugin, failure }));
        }
        HookOutcome::Continue => {}
    }
    match report.context["message"].take() {
        Value::String(text) => Ok(OutgoingMessage { channel, text, extra }),
        _ => Err(Error::Denied("a hook left nothing of the message".into())),
    }
}

/// Searches the host's memory.
pub(crate) async fn search_memory(
    lent: &Lent,
    query: Unmasked<String>,
    limit: u32,
) -> Result<Vec<Memory>, Error> {
    lent.require(NAME, "search-memory", "searching the memory")?;
    let limit = limit.min(MEMORIES);
    let query = lent.masked(query);
    let mut found = lent.reach.services.memory.search(lent.plugin(), &query, limit).await?;
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
        let message = Unmasked::new(message);
        let (lent, caller) = accessor.with(|mut access| access.get().turned_to());
        Ok(apart(async move { send_message(&lent, caller, message).await }).await)
    }

    async fn search_memory(
        accessor: &Accessor<T, Self>,
        query: String,
        limit: u32,
    ) -> wasmtime::Result<Result<Vec<Memory>, Error>> {
        let query = Unmasked::new(query);
        let lent = accessor.with(|mut access| access.get().setting.lent.clone());
        Ok(apart(async move { search_memory(&lent, query, limit).await }).await)
    }
}
