//! Where secrets of plugins are kept.

use async_trait::async_trait;
use std::io;
use std::path::PathBuf;

use super::Secret;
use super::names::upper_snake;
use crate::files;
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

/// Secrets from the environment and from files, where a host has no other place for them. The
/// secret `api-key` is the variable `API_KEY`, or what is in the file `secrets/api-key` in the
/// user's configuration folder, which nobody else may be able to read.
pub struct LocalSecretStore {
    host_environment: HostEnvironment,
}

impl LocalSecretStore {
    /// Looks for secrets there.
    pub fn new(host_environment: HostEnvironment) -> Self {
        Self { host_environment }
    }

    /// The file of a secret; nothing where there is no folder for it, or the name is none of a file's.
    fn file(&self, name: &str) -> Option<PathBuf> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let folder = self.host_environment.configuration.as_ref()?.join("secrets");
        name.chars().all(is_name).then(|| folder.join(name))
    }

    fn find(&self, name: &str) -> Option<Secret> {
        let variable = self.host_environment.variable(&secret_variable(name));
        if let Some(value) = variable.filter(|value| !value.is_empty()) {
            return Some(Secret::new(value));
        }
        let file = self.file(name)?;
        match files::read_private(&file) {
            Ok(value) => Some(Secret::new(value.trim_end_matches(['\r', '\n']))),
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!("the secret in {} cannot be used: {error}", file.display());
                }
                None
            }
        }
    }
}

#[async_trait]
impl SecretStore for LocalSecretStore {
    async fn secret(&self, _: &str, name: &str) -> Option<Secret> {
        self.find(name)
    }

    fn remedy(&self, name: &str) -> Option<String> {
        let variable = secret_variable(name);
        Some(match self.file(name) {
            Some(file) => {
                format!("set the variable {variable}, or write it to {}", file.display())
            }
            None => format!("set the variable {variable}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logged::logged;
    use futures::FutureExt;

    /// A place without secrets.
    struct NoSecrets;

    impl SecretStore for NoSecrets {}

    #[test]
    fn a_place_without_a_remedy_says_none() {
        assert_eq!(NoSecrets.remedy("api-key"), None);
    }

    #[test]
    #[cfg(unix)]
    fn secrets_come_from_the_environment_and_from_private_files() {
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
        let check = |name: &str, expected: Option<&str>| {
            let found = secrets.find(name);
            assert_eq!(found.as_ref().map(Secret::reveal), expected, "{name}");
        };
        check("api-key", Some("from the environment"));
        check("private", Some("of private"));
        let said = logged(|| check("open", None));
        assert!(said.contains("secrets/open cannot be used: "), "{said}");
        assert_eq!(logged(|| check("missing", None)), "");
        let given = secrets.secret("p", "private").now_or_never().flatten();
        assert_eq!(given.as_ref().map(Secret::reveal), Some("of private"));
        check("../secrets/private", None);
        let remedy = secrets.remedy("weather-key").unwrap();
        let file = folder.path().join("secrets/weather-key");
        let expected = format!("set the variable WEATHER_KEY, or write it to {}", file.display());
        assert_eq!(remedy, expected);
        assert_eq!(secrets.remedy("../x").unwrap(), "set the variable ___X");
        assert_eq!(format!("{:?}", Secret::new("x")), "Secret");
    }
}
