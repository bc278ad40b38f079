//! Named tokens of MCP clients, in a file that only this user can read and write. It has their digests only.

use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tenon_config::json_file::{JsonStore, StoreError};
use tenon_host::HostEnvironment;
use tenon_serve::{HttpToken, TokenGrant, TokenStore};

use crate::error::Error;

/// The name of the file, in the user's folder for state.
const FILE: &str = "serve-tokens.json";

/// The largest such file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A token that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct NamedToken {
    /// What it is called.
    pub(crate) name: String,
    /// The SHA-256 of its text, in hexadecimal digits.
    pub(crate) sha256: String,
    /// The only profile that it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    /// The only tools that it is good for, as patterns of their full names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tools: Option<Vec<String>>,
    /// When it was made, after RFC 3339.
    pub(crate) created: String,
    /// When it ends, after RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) expires: Option<String>,
}

impl NamedToken {
    /// Whether its time is over. One whose end cannot be read has none left.
    pub(crate) fn is_expired(&self, now: SystemTime) -> bool {
        let end = self.expires.as_deref().map(humantime::parse_rfc3339);
        end.is_some_and(|end| end.map_or(true, |end| end <= now))
    }
}

/// The file, as it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenFileJson {
    pub(crate) tokens: Vec<NamedToken>,
}

/// The file with the named tokens, which need not be there yet.
#[derive(Debug)]
pub(crate) struct TokenFile(JsonStore);

impl TokenFile {
    /// The user's own.
    pub(crate) fn of_user() -> Result<Self, Error> {
        let folder = HostEnvironment::of_process().state;
        let no_folder = || Error::Host("no folder for tokens: HOME is not set".into());
        Ok(Self(JsonStore::new(folder.ok_or_else(no_folder)?.join(FILE), MAX_FILE_BYTES)))
    }

    pub(crate) fn read(&self) -> Result<Vec<NamedToken>, Error> {
        let read = self.0.read::<TokenFileJson>().map_err(|error| self.failed(error))?;
        Ok(read.tokens)
    }

    /// Changes the tokens, alone of all who do. What the change gives is given.
    pub(crate) fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<NamedToken>) -> T,
    ) -> Result<T, Error> {
        let mut given = None;
        let change = |file: &mut TokenFileJson| given = Some(change(&mut file.tokens));
        self.0.change(change).map_err(|error| self.failed(error))?;
        given.ok_or_else(|| Error::Host("the tokens were not changed".into()))
    }

    fn failed(&self, error: StoreError) -> Error {
        let path = self.0.path().display();
        match error {
            StoreError::Unguarded(other) => Error::Input(format!(
                "refusing to read tokens that others could have written: {} belongs to another user, or others can \
                 write to it",
                other.display()
            )),
            StoreError::Io(error) => Error::Host(format!("{path}: {error}")),
            StoreError::Damaged(error) => Error::Input(format!(
                "{path} is no file of tokens: {error}; move it away to start over"
            )),
        }
    }
}

/// When a file was written, how long it is, and what else may have changed of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    written: SystemTime,
    bytes: u64,
    /// Of the file itself and who may write to it: its number, when that changed, and its mode.
    #[cfg(unix)]
    identity: (u64, i64, i64, u32),
}

impl FileVersion {
    fn of(path: &Path) -> Option<Self> {
        let about = path.metadata().ok()?;
        #[cfg(unix)]
        let identity = {
            use std::os::unix::fs::MetadataExt;
            (about.ino(), about.ctime(), about.ctime_nsec(), about.mode())
        };
        Some(Self {
            written: about.modified().ok()?,
            bytes: about.len(),
            #[cfg(unix)]
            identity,
        })
    }
}

/// The tokens of a server: its user's own, which is good for all, and the named ones. The file is read again when it has
/// changed, so that a token ends when it is revoked.
#[derive(Debug)]
pub(crate) struct ServerTokens {
    own: HttpToken,
    file: TokenFile,
    /// What was read last, and of what; nothing where it could not be read.
    read: Mutex<Option<Arc<ReadTokens>>>,
}

/// What a file had, and which version of it.
type ReadTokens = (FileVersion, Vec<NamedToken>);

impl ServerTokens {
    pub(crate) fn new(own: HttpToken, file: TokenFile) -> Self {
        Self { own, file, read: Mutex::default() }
    }
}

impl TokenStore for ServerTokens {
    fn grant(&self, token: &HttpToken) -> Option<TokenGrant> {
        if *token == self.own {
            return Some(TokenGrant::default());
        }
        // The lock is held for as long as it takes to copy a pointer: every request comes here.
        let last = || self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let mut read = last().clone();
        let version = FileVersion::of(self.file.0.path());
        // Two changes may leave the same time, so what has just changed is read again.
        let is_settled = |version: &FileVersion| {
            version.written.elapsed().is_ok_and(|age| age >= Duration::from_secs(2))
        };
        let is_read = version
            .filter(is_settled)
            .is_some_and(|version| read.as_ref().is_some_and(|read| read.0 == version));
        if !is_read {
            read = match self.file.read() {
                Ok(tokens) => version.map(|version| Arc::new((version, tokens))),
                Err(error) => {
                    tracing::warn!("no named token is good: {error}");
                    None
                }
            };
            last().clone_from(&read);
        }
        let (_, tokens) = &*read?;
        let now = SystemTime::now();
        let named = tokens.iter().find(|named| {
            HttpToken::from_sha256(&named.sha256).is_some_and(|known| known == *token)
        });
        let named = named.filter(|named| !named.is_expired(now))?;
        Some(TokenGrant {
            principal: Some(format!("token:{}", named.name)),
            profile: named.profile.clone(),
            tools: named.tools.clone(),
        })
    }
}

/// The text of a new token.
pub(crate) fn random_token() -> Result<String, Error> {
    HttpToken::random_text().ok_or_else(|| Error::Host("the system has no random numbers".into()))
}
