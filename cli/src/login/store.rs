//! What is kept of logins: tokens in the system's keychain or in private files, one for each server by its URL.

use oauth2::TokenResponse;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_config::files::{self, Digest};
use tenon_config::secret::{Secret, Storage, StoredSecretError, StoredSecrets};
use tenon_host::HostEnvironment;

use super::error::LoginError;
use crate::keychain::SystemKeychain;

/// The longest challenge that is kept, in bytes.
const MAX_CHALLENGE_BYTES: u64 = 8 << 10;

/// A login to one server.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Login {
    /// Who gave the tokens, if it has said its name.
    pub(crate) issuer: Option<String>,
    /// Where tokens are renewed.
    pub(crate) token_endpoint: String,
    pub(crate) client: LoginClient,
    /// What the tokens are for, as it was said when they were asked for (RFC 8707).
    pub(crate) resource: String,
    pub(crate) scopes: Vec<String>,
    pub(crate) access_token: String,
    pub(crate) refresh_token: Option<String>,
    /// When the access token ends, in seconds since 1970, if that is known.
    pub(crate) expires: Option<u64>,
}

/// As whom the authorization server knows Tenon.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct LoginClient {
    pub(crate) id: String,
    pub(crate) secret: Option<String>,
    /// The secret goes into the body of requests, and not into a header.
    pub(crate) secret_in_body: bool,
    /// It was registered for this one login, and for this port; nobody has named it.
    pub(crate) is_registered: bool,
    pub(crate) port: u16,
}

/// How long before its end a token is renewed.
const EARLY: Duration = Duration::from_secs(30);

/// The time in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Login {
    /// The same with other tokens. What is not said of them stays: the scopes (RFC 6749, section 5.1), and what renews them
    /// (section 6).
    pub(super) fn with_tokens(self, tokens: &impl TokenResponse) -> Self {
        let scopes = tokens.scopes().map(|scopes| scopes.iter().map(|of| of.to_string()).collect());
        let refresh_token = tokens.refresh_token().map(|token| token.secret().clone());
        Self {
            scopes: scopes.unwrap_or(self.scopes),
            access_token: tokens.access_token().secret().clone(),
            refresh_token: refresh_token.or(self.refresh_token),
            expires: tokens.expires_in().map(|time| now().saturating_add(time.as_secs())),
            ..self
        }
    }

    /// Whether its access token is still good for a while, as far as that is known.
    pub(super) fn is_fresh(&self) -> bool {
        self.expires.is_none_or(|end| now() + EARLY.as_secs() < end)
    }
}

/// The logins of the user.
#[derive(Clone)]
pub(crate) struct LoginStore {
    folder: PathBuf,
    values: StoredSecrets,
}

/// Nobody else renews tokens of a server as long as this lives.
pub(super) struct LoginLock(#[expect(dead_code, reason = "closing the file ends the lock")] File);

impl LoginStore {
    /// Those of a user, if there is a folder for them.
    pub(crate) fn new(host_environment: &HostEnvironment) -> Option<Self> {
        let folder = host_environment.state.as_ref()?.join("logins");
        let values = StoredSecrets::new(folder.clone(), Some(Arc::new(SystemKeychain)));
        Some(Self { folder, values })
    }

    /// The name of what is kept of a server. URLs are no names.
    fn name(server: &str) -> String {
        Digest::of(server).to_string()
    }

    fn file(&self, server: &str, kind: &str) -> PathBuf {
        self.folder.join(Self::name(server)).with_extension(kind)
    }

    /// What changes when a login to the server does: files, and the folder that they are in.
    pub(crate) fn files(&self, server: &str) -> impl Iterator<Item = PathBuf> {
        let files = self.values.files(&Self::name(server));
        files.into_iter().flatten().chain([self.folder.clone()])
    }

    /// Whether there is a login, without reading it.
    pub(crate) fn has(&self, server: &str) -> bool {
        matches!(self.values.storage(&Self::name(server)), Ok(Some(_)))
    }

    pub(crate) fn read(&self, server: &str) -> Result<Option<Login>, LoginError> {
        let value = self.values.read(&Self::name(server)).map_err(LoginError::Store)?;
        let read = |value: Secret| serde_json::from_str(value.reveal());
        value.map(read).transpose().map_err(LoginError::Damaged)
    }

    pub(super) fn write(&self, server: &str, login: &Login) -> Result<(), LoginError> {
        let value = Secret::new(serde_json::to_string(login).map_err(LoginError::Damaged)?);
        let name = Self::name(server);
        let written = match self.values.write(&name, &value, None) {
            // Some take short texts only.
            Err(StoredSecretError::Keychain(problem)) => {
                tracing::warn!(
                    "the system's keychain does not keep the login ({problem}); it is in a private file"
                );
                self.values.write(&name, &value, Some(Storage::File))
            }
            written => written,
        };
        written.map(drop).map_err(LoginError::Store)
    }

    /// Forgets all of a server. Gives whether there was a login.
    pub(crate) fn remove(&self, server: &str) -> Result<bool, LoginError> {
        self.forget_challenge(server);
        self.values.remove(&Self::name(server)).map_err(LoginError::Store)
    }

    /// What the server asked for when it refused a request last.
    pub(super) fn challenge(&self, server: &str) -> Option<String> {
        files::read_text(&self.file(server, "challenge"), MAX_CHALLENGE_BYTES).ok()
    }

    /// Keeps what a server asks for, for the next login.
    pub(super) fn note_challenge(&self, server: &str, challenge: &str) {
        if self.challenge(server).as_deref() == Some(challenge) {
            return;
        }
        let noted = files::make_private(&self.folder).and_then(|()| {
            files::replace_private(&self.file(server, "challenge"), challenge.as_bytes())
        });
        if let Err(error) = noted {
            tracing::warn!("what {server} asks for cannot be kept for a login: {error}");
        }
    }

    pub(super) fn forget_challenge(&self, server: &str) {
        // There may be none.
        let _ = std::fs::remove_file(self.file(server, "challenge"));
    }

    /// Waits until nobody else renews the tokens of a server. It may block.
    pub(super) fn lock(&self, server: &str) -> io::Result<LoginLock> {
        files::make_private(&self.folder)?;
        let file = File::options().create(true).append(true).open(self.file(server, "lock"))?;
        file.lock()?;
        Ok(LoginLock(file))
    }
}
