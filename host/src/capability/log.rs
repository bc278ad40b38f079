//! `log`: a plugin's words for the operator; see [`crate::observe::PluginLog`].

use tenon_types::LogLevel;
use wasmtime::component::Linker;

use super::{Host, HostState};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::log::{self, Level};

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    log::add_to_linker::<_, Host>(linker, |state| state)
}

impl log::Host for HostState {
    fn write(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        let level: LogLevel = level.convert();
        self.span().in_scope(|| self.setting.log.write(level, &message, &fields));
        Ok(())
    }
}
