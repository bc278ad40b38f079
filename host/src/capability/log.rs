//! `log`: a plugin's words for the operator; see [`crate::observe::PluginLog`].

use tenon_types::LogLevel;
use wasmtime::component::Linker;

use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::log::{self, Level};

pub(crate) struct LogCapability;

impl HostCapability for LogCapability {
    const NAME: &'static str = "log";
    type Plugin = ();
    type Instance = ();

    fn prepare(_: &PrepareContext<'_>) {}

    fn instantiate((): &()) {}

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        log::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

impl log::Host for CapabilityView<'_, LogCapability> {
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
