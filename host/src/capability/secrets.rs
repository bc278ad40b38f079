//! `secrets`: values that the host's [`crate::capability::services::SecretStore`] keeps for a plugin. Values are
//! their names.

use std::collections::BTreeMap;
use std::sync::Arc;
use tenon_config::grant::SECRETS;
use tenon_config::secret::Secret;
use tenon_types::Error;
use wasmtime::component::Linker;

use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{secrets, types};

pub(crate) struct SecretsCapability;

impl HostCapability for SecretsCapability {
    const NAME: &'static str = SECRETS;
    type Plugin = Arc<BTreeMap<String, Secret>>;
    type Instance = Arc<BTreeMap<String, Secret>>;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        preparation.secrets.clone()
    }

    fn instantiate(secrets: &Self::Plugin) -> Self::Instance {
        secrets.clone()
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        secrets::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

impl secrets::Host for CapabilityView<'_, SecretsCapability> {
    fn get(&mut self, name: String) -> wasmtime::Result<Result<String, types::Error>> {
        let tried = format!("the secret {name}");
        if let Err(denied) = self.calls.granted().require(SECRETS, &name, &tried) {
            return Ok(Err(denied.convert()));
        }
        let unset = || Error::not_found(format!("the secret {name} is not set"));
        let secret = self.state.get(&name).ok_or_else(unset);
        Ok(secret.map(|secret| secret.reveal().to_string()).convert())
    }
}
