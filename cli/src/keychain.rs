//! The system's keychain: that of macOS, the Credential Manager of Windows, and elsewhere the Secret Service, which desktops
//! offer over D-Bus.

use keyring::{Entry, Error};
use std::sync::Arc;
use tenon_config::secret::{Keychain, LocalSecretStore, Secret};
use tenon_host::HostEnvironment;

/// Under which service the keychain lists what is Tenon's.
const SERVICE: &str = "tenon";

/// The keychain. It is connected to when it is first needed, which takes some milliseconds.
pub(crate) struct SystemKeychain;

/// The secrets of the user: those of the keychain, too.
pub(crate) fn secret_store(host_environment: HostEnvironment) -> LocalSecretStore {
    LocalSecretStore::new(host_environment).with_keychain(Arc::new(SystemKeychain))
}

fn entry(name: &str) -> Result<Entry, String> {
    Entry::new(SERVICE, name).map_err(|error| error.to_string())
}

impl Keychain for SystemKeychain {
    fn is_available(&self) -> bool {
        Entry::store_status().is_ok()
    }

    fn read(&self, name: &str) -> Result<Option<Secret>, String> {
        match entry(name)?.get_password() {
            Ok(value) => Ok(Some(Secret::new(value))),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn write(&self, name: &str, value: &Secret) -> Result<(), String> {
        entry(name)?.set_password(value.reveal()).map_err(|error| error.to_string())
    }

    fn remove(&self, name: &str) -> Result<(), String> {
        match entry(name)?.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
