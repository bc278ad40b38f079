//! `messaging`: messages that the host sends, behind [`crate::services::Messaging`]. Values are names of channels.
//! A message without a channel takes `*`.

use futures::FutureExt;
use serde_json::{Map, Value};
use tenon_config::grant::MESSAGING;
use tenon_types::{Error, HookPoint, OutgoingMessage};
use wasmtime::component::{Accessor, Linker};

use super::granted::{GrantedCapabilities, apart, as_contract, deeper};
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext, link_blocking,
    sync_interface,
};
use crate::call::mask::{Masked, Unmasked};
use crate::call::{CallError, Caller, HookOutcome};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{messaging, types};

/// Sends a message, unless a hook stops it. Handlers of `message-sending` may change its text; where it
/// goes stays. `caller` is on whose behalf the plugin itself was called.
pub(crate) async fn send_message(
    granted: &GrantedCapabilities,
    caller: Caller,
    message: Unmasked<OutgoingMessage>,
) -> Result<(), Error> {
    let message = granted.masked_message(message);
    let channel = message.channel.as_deref();
    let tried = match channel {
        Some(channel) => format!("sending a message to {channel}"),
        None => "sending a message".to_string(),
    };
    granted.require(MESSAGING, channel.unwrap_or("*"), &tried)?;
    let message = hooked(granted, caller, message).await?;
    granted.host_services.services.messaging.send(granted.plugin(), message).await
}

/// The message as hooks have left it.
async fn hooked(
    granted: &GrantedCapabilities,
    caller: Caller,
    message: Masked<OutgoingMessage>,
) -> Result<OutgoingMessage, Error> {
    let (other_plugins, caller) =
        (granted.host_services.other_plugins()?, deeper(granted, caller)?);
    let OutgoingMessage { channel, text, extra } = message.into_inner();
    if !other_plugins.is_handled(&HookPoint::MessageSending) {
        return Ok(OutgoingMessage { channel, text, extra });
    }
    let mut context = Map::new();
    context.insert("plugin".into(), granted.plugin().into());
    context.insert("message".into(), text.into());
    context.extend(channel.clone().map(|channel| ("channel".into(), channel.into())));
    let mut report = other_plugins.fire(&HookPoint::MessageSending, context, &caller).await;
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
        _ => Err(Error::denied("a hook left nothing of the message")),
    }
}

pub(crate) struct MessagingCapability;

impl HostCapability for MessagingCapability {
    const NAME: &'static str = MESSAGING;
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        messaging::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }

    fn link_sync<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        let mut instance = linker.instance(&sync_interface("messaging"))?;
        link_blocking(&mut instance, "send-message", begin_send)
    }
}

fn begin_send(
    view: CapabilityView<'_, MessagingCapability>,
    (message,): (messaging::OutgoingMessage,),
) -> impl Future<Output = Result<(), types::Error>> + use<> {
    let message = Unmasked::new(message.convert());
    let (granted, caller) = view.calls.access_and_caller();
    let span = view.calls.span();
    apart(span, async move { send_message(&granted, caller, message).await }).map(Convert::convert)
}

impl messaging::Host for CapabilityView<'_, MessagingCapability> {}

impl<T: 'static> messaging::HostWithStore<T> for HasView<MessagingCapability> {
    async fn send_message(
        accessor: &Accessor<T, Self>,
        message: messaging::OutgoingMessage,
    ) -> wasmtime::Result<Result<(), types::Error>> {
        Ok(accessor.with(|mut access| begin_send(access.get(), (message,))).await)
    }
}
