//! `secrets`: values that the host's [`crate::services::SecretStore`] keeps for a plugin. Values are
//! their names.

use tenon_config::grant::SECRETS;
use tenon_types::Error;
use wasmtime::component::Linker;

use super::Host;
use crate::capability::HostState;
use crate::capability::bindings::convert::Convert;
use crate::capability::bindings::{secrets, types};

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    secrets::add_to_linker::<_, Host>(linker, |state| state)
}

impl secrets::Host for HostState {
    fn get(&mut self, name: String) -> wasmtime::Result<Result<String, types::Error>> {
        let setting = &self.setting;
        if let Err(denied) = setting.granted.require(SECRETS, &name, &format!("the secret {name}"))
        {
            return Ok(Err(denied.convert()));
        }
        let unset = || Error::NotFound(format!("the secret {name} is not set"));
        let secret = setting.secrets.get(&name).ok_or_else(unset);
        Ok(secret.map(|secret| secret.reveal().to_string()).convert())
    }
}
