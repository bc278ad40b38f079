//! `log`: a plugin's words for the operator; see [`crate::observe::PluginLog`].

use tenon_types::LogLevel;
use wasmtime::component::Linker;

use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::log::{self, Level};

pub(crate) struct LogCapability;

impl HostCapability for LogCapability {
    const NAME: &'static str = "log";
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &Preparation<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        log::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

impl log::Host for View<'_, LogCapability> {
    fn write(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        let level: LogLevel = level.convert();
        let client = self.calls.client();
        let write = || self.calls.log().write_for(client, level, &message, &fields);
        self.calls.span().in_scope(write);
        Ok(())
    }
}
