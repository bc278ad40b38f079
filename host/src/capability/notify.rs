//! `notify`: news from a plugin, for the host to act on after the call.

use std::time::Instant;
use tenon_types::text::cut;
use wasmtime::component::Linker;

use super::{Host, HostState};
use crate::call::mask::Unmasked;
use crate::capability::bindings::notify;
use crate::observe::event::Event;

/// The longest message of progress, and the longest id, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    notify::add_to_linker::<_, Host>(linker, |state| state)
}

impl notify::Host for HostState {
    fn resource_updated(&mut self, uri: String) -> wasmtime::Result<()> {
        // A URI that is cut is another one.
        if uri.len() > MAX_MESSAGE_BYTES || self.setting.updates.take(Instant::now()).is_none() {
            return Ok(());
        }
        let uri = Unmasked::new(uri);
        self.setting.news.events().publish(|| {
            let plugin = self.setting.id.clone();
            let uri = self.setting.log.masked(uri).into_inner();
            Event::ResourceUpdated { plugin, uri }
        });
        Ok(())
    }

    fn changed(&mut self) -> wasmtime::Result<()> {
        self.setting.news.note_change(&self.setting.id);
        Ok(())
    }

    fn progress(
        &mut self,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        // Of a call that is over nobody waits for news, and nobody can follow any number.
        if !self.serves(&call_id) || self.setting.progress.take(Instant::now()).is_none() {
            return Ok(());
        }
        let message = Unmasked::new(message);
        self.setting.news.events().publish(|| {
            let plugin = self.setting.id.clone();
            // It is that of a call which is served.
            let call_id = cut(&call_id, MAX_MESSAGE_BYTES).to_string();
            let message = self.setting.log.masked(message).into_inner();
            let message = message.map(|message| cut(&message, MAX_MESSAGE_BYTES).into());
            Event::Progress { plugin, call_id, progress, total, message }
        });
        Ok(())
    }
}
