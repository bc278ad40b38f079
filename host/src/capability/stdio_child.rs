//! `stdio-child`: the bridge's one child, behind [`crate::capability::server`].

use std::future::{pending, ready};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wasmtime::component::{Accessor, Linker};

use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{stdio_child, types};
use crate::capability::server::{
    Child, ChildEvent, ChildSlot, ChildSpec, ExitStatus, OversizedLine,
};

pub(crate) struct StdioChildCapability;

impl HostCapability for StdioChildCapability {
    const NAME: &'static str = "stdio-child";
    type Plugin = Option<Arc<ChildSpec>>;
    type Instance = Option<ChildSlot>;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        preparation.child.clone()
    }

    fn instantiate(child: &Self::Plugin) -> Self::Instance {
        child.clone().map(ChildSlot::new)
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        stdio_child::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

/// A component that is linked with a child but was given none.
#[derive(Debug, thiserror::Error)]
#[error("this instance has no child")]
struct NoChild;

/// Reaches the slot of the child between two points of waiting.
fn with<T: 'static, R>(
    accessor: &Accessor<T, HasView<StdioChildCapability>>,
    act: impl FnOnce(&mut ChildSlot) -> R,
) -> wasmtime::Result<R> {
    accessor.with(|mut access| Ok(act(access.get().state.as_mut().ok_or(NoChild)?)))
}

impl<T: 'static> stdio_child::HostWithStore<T> for HasView<StdioChildCapability> {
    async fn start(accessor: &Accessor<T, Self>) -> wasmtime::Result<Result<(), types::Error>> {
        if let Some(former) = with(accessor, ChildSlot::take)? {
            former.stop().await;
        }
        if let Some(distrust) = with(accessor, |slot| slot.spec())?.distrust().await {
            return Ok(Err(distrust.convert()));
        }
        let supervisor = with(accessor, |slot| slot.supervisor())?;
        let started = match supervisor.start(Instant::now()) {
            Ok(wait) => {
                tokio::time::sleep(wait).await;
                with(accessor, ChildSlot::start)?
            }
            Err(too_often) => Err(too_often.into()),
        };
        Ok(started.map_err(|error| error.into_contract()).convert())
    }

    async fn write_lines(
        accessor: &Accessor<T, Self>,
        lines: Vec<Vec<u8>>,
    ) -> wasmtime::Result<Result<(), types::Error>> {
        let Some(child) = with(accessor, |slot| slot.child())? else {
            let error = crate::capability::server::unavailable("the server is not running");
            return Ok(Err(error.convert()));
        };
        Ok(child.write_lines(lines).await.convert())
    }

    async fn next_events(
        accessor: &Accessor<T, Self>,
    ) -> wasmtime::Result<Vec<stdio_child::Event>> {
        loop {
            let (child, changed, due) = with(accessor, |slot| slot.watch())?;
            let events = tokio::select! {
                biased;
                events = next_events(child.as_deref()) => events,
                () = ready(()), if due => Vec::new(),
                () = changed.notified() => continue,
            };
            let mut events: Vec<_> = events.into_iter().map(in_the_contract).collect();
            // Behind what the child said, which must not hide it by never falling silent.
            if due {
                with(accessor, ChildSlot::clear_timer)?;
                events.push(stdio_child::Event::Timer);
            }
            return Ok(events);
        }
    }

    async fn stop(accessor: &Accessor<T, Self>) -> wasmtime::Result<()> {
        if let Some(child) = with(accessor, ChildSlot::take)? {
            child.stop().await;
        }
        Ok(())
    }
}

/// The events of a child, or nothing for ever.
async fn next_events(child: Option<&Child>) -> Vec<ChildEvent> {
    match child {
        Some(child) => child.next_events().await,
        None => pending().await,
    }
}

/// What happened to a child, in the words of the contract.
fn in_the_contract(event: ChildEvent) -> stdio_child::Event {
    match event {
        ChildEvent::Line(line) => stdio_child::Event::Line(line),
        ChildEvent::Oversized(OversizedLine { prefix, length }) => {
            stdio_child::Event::Oversized(stdio_child::OversizedLine { prefix, length })
        }
        ChildEvent::Closed => stdio_child::Event::Closed,
        ChildEvent::Exited(ExitStatus { code, signal }) => {
            stdio_child::Event::Exited(stdio_child::ExitStatus { code, signal })
        }
    }
}

impl stdio_child::Host for CapabilityView<'_, StdioChildCapability> {
    fn stderr_tail(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(self.state.as_ref().ok_or(NoChild)?.stderr_tail())
    }

    fn set_timer(&mut self, at: u64) -> wasmtime::Result<()> {
        self.state.as_mut().ok_or(NoChild)?.set_timer(Duration::from_millis(at));
        Ok(())
    }

    fn now(&mut self) -> wasmtime::Result<u64> {
        let elapsed = self.state.as_ref().ok_or(NoChild)?.elapsed();
        Ok(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
    }
}
