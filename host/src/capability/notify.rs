//! `notify`: news from a plugin, for the host to act on after the call.

use std::sync::Arc;
use tokio::sync::mpsc;
use wasmtime::component::Linker;

use super::Host;
use crate::bindings::notify;
use crate::runtime::wasm::HostState;

/// One piece of news.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Item {
    /// The plugin's registration has changed.
    Changed(Arc<str>),
    /// A call has come so far.
    Progress {
        plugin: Arc<str>,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    },
}

/// Where a plugin's news goes. What a plugin sends faster than the host reads is dropped: news of
/// progress is replaced by the next, and a change is remembered as long as one is waiting.
#[derive(Clone)]
pub(crate) struct News(mpsc::Sender<Item>);

/// How much news waits for the host.
const WAITING: usize = 1024;

impl News {
    pub(crate) fn channel() -> (Self, mpsc::Receiver<Item>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    fn send(&self, item: Item) {
        if self.0.try_send(item).is_err() {
            tracing::debug!("news from a plugin was dropped");
        }
    }
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    notify::add_to_linker::<_, Host>(linker, |state| state)
}

impl notify::Host for HostState {
    fn changed(&mut self) -> wasmtime::Result<()> {
        self.setting.news.send(Item::Changed(self.setting.id.clone()));
        Ok(())
    }

    fn progress(
        &mut self,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        let plugin = self.setting.id.clone();
        self.setting.news.send(Item::Progress { plugin, call_id, progress, total, message });
        Ok(())
    }
}
