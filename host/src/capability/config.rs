//! `config`: the plugin's configuration, as the operator wrote it.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use wasmtime::component::Linker;

use super::Host;
use crate::capability::HostState;
use crate::capability::bindings::config;

/// A plugin's configuration, rendered once for all of its instances.
#[derive(Debug, Clone, Default)]
pub(crate) struct Config {
    values: BTreeMap<String, String>,
    all: String,
}

impl From<&Map<String, Value>> for Config {
    fn from(map: &Map<String, Value>) -> Self {
        Self {
            values: map.iter().map(|(key, value)| (key.clone(), value.to_string())).collect(),
            all: Value::Object(map.clone()).to_string(),
        }
    }
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    config::add_to_linker::<_, Host>(linker, |state| state)
}

impl config::Host for HostState {
    fn get(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        Ok(self.setting.config.values.get(&key).cloned())
    }

    fn all(&mut self) -> wasmtime::Result<String> {
        Ok(self.setting.config.all.clone())
    }
}
