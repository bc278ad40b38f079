//! Where secrets of plugins are kept.

use async_trait::async_trait;
use futures::channel::oneshot;
use std::sync::Arc;
use std::thread;

use super::Secret;
use super::sensitive_names::upper_snake;
use super::stored_secrets::{Keychain, Storage, StoredSecretError, StoredSecrets, is_value_name};
use crate::diagnostic::chain;
use crate::host_environment::HostEnvironment;

/// Stores secrets for plugins.
#[async_trait]
pub trait SecretStore: Send + Sync + 'static {
    /// Returns the value of a secret, or `None` if it is not set. Called before a plugin is loaded, for each
    /// granted name. The default returns `None`.
    async fn secret(&self, plugin: &str, name: &str) -> Option<Secret> {
        let _ = (plugin, name);
        None
    }

    /// Returns what the user does to set a secret, as a sentence without a full stop. It is logged where a plugin is granted
    /// a secret that is not set. The default returns `None`.
    fn remedy(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }
}

/// The variable of the environment that has a secret for [`LocalSecretStore`].
pub fn secret_variable(name: &str) -> String {
    upper_snake(name)
}

/// Secrets from the environment, from private files and from a keychain, where a host has no other place for them. The
/// secret `api-key` is the variable `API_KEY`, or else what `tenon secret set api-key` stored: in the file
/// `secrets/api-key` in the user's configuration folder, which nobody else may be able to read, or in the keychain.
pub struct LocalSecretStore {
    host_environment: HostEnvironment,
    keychain: Option<Arc<dyn Keychain>>,
}

impl LocalSecretStore {
    /// Looks for secrets there.
    pub fn new(host_environment: HostEnvironment) -> Self {
        Self { host_environment, keychain: None }
    }

    /// Looks for secrets in a keychain, too.
    pub fn with_keychain(self, keychain: Arc<dyn Keychain>) -> Self {
        Self { keychain: Some(keychain), ..self }
    }

    /// The secrets that the user has stored; `None` where there is no folder for them.
    pub fn stored(&self) -> Option<StoredSecrets> {
        let folder = self.host_environment.configuration.as_ref()?.join("secrets");
        Some(StoredSecrets::new(folder, self.keychain.clone()))
    }

    /// The variable of the environment that has a secret, if it is set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let variable = self.host_environment.variable(&secret_variable(name));
        variable.filter(|value| !value.is_empty())
    }
}

/// Reads a secret that its user has stored.
fn read(stored: &StoredSecrets, name: &str) -> Option<Secret> {
    match stored.read(name) {
        Ok(value) => value.map(|value| Secret::new(value.reveal().trim_end_matches(['\r', '\n']))),
        Err(StoredSecretError::Name(_)) => None,
        Err(error) => {
            tracing::warn!("the secret \"{name}\" cannot be used: {}", chain(&error));
            None
        }
    }
}

#[async_trait]
impl SecretStore for LocalSecretStore {
    async fn secret(&self, _: &str, name: &str) -> Option<Secret> {
        if let Some(value) = self.variable(name) {
            return Some(Secret::new(value));
        }
        let stored = self.stored()?;
        if !matches!(stored.storage(name), Ok(Some(Storage::Keychain))) {
            return read(&stored, name);
        }
        // A keychain may ask its user to unlock it, and others go on meanwhile.
        let (give, given) = oneshot::channel();
        let name = name.to_string();
        let reads = thread::Builder::new().name("tenon-keychain".into());
        let reads = reads.spawn(move || drop(give.send(read(&stored, &name))));
        if let Err(error) = &reads {
            tracing::warn!("the system's keychain cannot be asked: {error}");
        }
        given.await.ok().flatten()
    }

    fn remedy(&self, name: &str) -> Option<String> {
        let variable = secret_variable(name);
        Some(match is_value_name(name) && self.host_environment.configuration.is_some() {
            true => format!("run `tenon secret set {name}`, or set the variable {variable}"),
            false => format!("set the variable {variable}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_capture::logged;
    use crate::secret::stored_secrets::tests::FakeKeychain;
    use futures::executor::block_on;

    /// A place without secrets.
    struct NoSecrets;

    impl SecretStore for NoSecrets {}

    #[test]
    fn a_place_without_a_remedy_says_none() {
        assert_eq!(NoSecrets.remedy("api-key"), None);
    }

    #[test]
    #[cfg(unix)]
    fn secrets_come_from_the_environment_from_private_files_and_from_the_keychain() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("secrets")).unwrap();
        let write = |name: &str, mode: u32| {
            let path = folder.path().join("secrets").join(name);
            std::fs::write(&path, format!("of {name}\n")).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        };
        write("private", 0o600);
        write("open", 0o644);
        write("api-key", 0o600);
        let host_environment = HostEnvironment {
            environment: [("API_KEY".into(), "from the environment".into())].into(),
            configuration: Some(folder.path().into()),
            ..HostEnvironment::default()
        };
        let secrets = LocalSecretStore::new(host_environment);
        let find = |secrets: &LocalSecretStore, name: &str| block_on(secrets.secret("p", name));
        let check = |name: &str, expected: Option<&str>| {
            let found = find(&secrets, name);
            assert_eq!(found.as_ref().map(Secret::reveal), expected, "{name}");
        };
        check("api-key", Some("from the environment"));
        check("private", Some("of private"));
        let said = logged(|| check("open", None));
        assert!(said.contains("the secret \"open\" cannot be used: "), "{said}");
        assert!(said.contains("secrets/open: others can read it"), "{said}");
        assert_eq!(logged(|| check("missing", None)), "");
        check("../secrets/private", None);
        let remedy = |name: &str| secrets.remedy(name).unwrap();
        let expected = "run `tenon secret set weather-key`, or set the variable WEATHER_KEY";
        assert_eq!(remedy("weather-key"), expected);
        assert_eq!(remedy("../x"), "set the variable ___X");
        assert_eq!(format!("{:?}", Secret::new("x")), "Secret");

        let keychain = Arc::new(FakeKeychain::default());
        let secrets = secrets.with_keychain(keychain.clone());
        let stored = secrets.stored().unwrap();
        stored.write("kept", &Secret::new("of keychain"), Some(Storage::Keychain)).unwrap();
        let found = find(&secrets, "kept");
        assert_eq!(found.as_ref().map(Secret::reveal), Some("of keychain"));
        assert_eq!(find(&secrets, "private").as_ref().map(Secret::reveal), Some("of private"));
    }
}
