//! `config`: the plugin's configuration, as the operator wrote it.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;
use wasmtime::component::Linker;

use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::capability::bindings::config;

/// A plugin's configuration, rendered once for all of its instances.
pub(crate) struct RenderedConfig {
    values: BTreeMap<String, String>,
    all: String,
}

impl From<&Map<String, Value>> for RenderedConfig {
    fn from(map: &Map<String, Value>) -> Self {
        Self {
            values: map.iter().map(|(key, value)| (key.clone(), value.to_string())).collect(),
            all: Value::Object(map.clone()).to_string(),
        }
    }
}

pub(crate) struct ConfigCapability;

impl HostCapability for ConfigCapability {
    const NAME: &'static str = "config";
    type Plugin = Arc<RenderedConfig>;
    type Instance = Arc<RenderedConfig>;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        Arc::new(preparation.settings.into())
    }

    fn instantiate(config: &Self::Plugin) -> Self::Instance {
        config.clone()
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        config::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

impl config::Host for CapabilityView<'_, ConfigCapability> {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.state.values.get(&key).cloned())
    }

    fn all(&mut self) -> wasmtime::Result<String> {
        Ok(self.state.all.clone())
    }
}
