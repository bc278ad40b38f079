//! Named tokens of MCP clients, in the store: their digests, and what each is good for.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;
use tenon_call_approvals::CallApprovals;
use tenon_config::json_file::{JsonFile, JsonFileError};
use tenon_host::HostEnvironment;
use tenon_host::services::Store;
use tenon_runs::Runs;
use tenon_serve::{HttpTokenDigest, TokenGrant, TokenStore};
use tenon_store::{Item, ItemOutcome, ItemQuota, all_items};

use crate::error::Error;
use crate::store::{self, StorePlace};
use crate::{Common, call_approval};

/// The kind of items that tokens are, by their digests.
const TOKENS: &str = "serve-tokens";

/// The kind of items that say which digest the token of a name has: no two have the same name.
const NAMES: &str = "serve-token-names";

/// How many tokens there may be, and how many bytes they may take.
const QUOTA: ItemQuota = ItemQuota { items: 10_000, bytes: 8 << 20 };

/// The file of former versions, in the user's folder for state.
const FORMER_FILE: &str = "serve-tokens.json";

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

/// Whose calls are made with the token of a name.
fn principal_of(name: &str) -> String {
    format!("token:{name}")
}

impl NamedToken {
    /// Whose calls are made with it, as rules and approvals name it.
    fn principal(&self) -> String {
        principal_of(&self.name)
    }

    /// Whether its time is over. One whose end cannot be read has none left.
    pub(crate) fn is_expired(&self, now: SystemTime) -> bool {
        let end = self.expires.as_deref().map(humantime::parse_rfc3339);
        end.is_some_and(|end| end.map_or(true, |end| end <= now))
    }
}

/// The file of former versions.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FormerFile {
    tokens: Vec<NamedToken>,
}

/// The named tokens of a store. Every call blocks.
#[derive(Clone)]
pub(crate) struct NamedTokenStore(Arc<dyn Store>);

impl fmt::Debug for NamedTokenStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NamedTokenStore")
    }
}

impl NamedTokenStore {
    /// Those of the user's store. What a file of a former version has is taken over.
    pub(crate) fn open(common: &Common) -> Result<Self, Error> {
        let tokens = Self(StorePlace::find(common)?.open()?);
        if let Some(folder) = HostEnvironment::of_process().state {
            tokens.take_over(&folder.join(FORMER_FILE))?;
        }
        Ok(tokens)
    }

    /// Returns all, in the order in which they were made.
    pub(crate) fn list(&self) -> Result<Vec<NamedToken>, Error> {
        let mut all = Vec::new();
        for item in all_items(&*self.0, TOKENS)? {
            let token = read(&item)?;
            if self.is_named(&token)? {
                all.push(token);
            }
        }
        all.sort_by(|a: &NamedToken, b| (&a.created, &a.name).cmp(&(&b.created, &b.name)));
        Ok(all)
    }

    /// Adds a token, unless a good one has its name. Says whether it did.
    pub(crate) fn add(&self, token: &NamedToken, now: SystemTime) -> Result<bool, Error> {
        // The name is taken first: one whose token is not there is nothing.
        let former = self.0.item(NAMES, &token.name)?;
        if let Some(former) = &former {
            let digest = String::from_utf8_lossy(&former.value);
            if self.of_digest(&digest)?.is_some_and(|known| !known.is_expired(now)) {
                return Ok(false);
            }
            // Also where somebody began to end it.
            self.end(&digest, token.principal())?;
        }
        let version = former.map(|former| former.version);
        let digest = token.sha256.as_bytes();
        let named = self.0.put_item(NAMES, &token.name, version, digest, None, QUOTA)?;
        if let ItemOutcome::Differs(_) = named {
            return Ok(false);
        }
        let value = serde_json::to_vec(token).map_err(|error| Error::Host(error.to_string()))?;
        let version = self.0.item(TOKENS, &token.sha256)?.map(|item| item.version);
        self.0.put_item(TOKENS, &token.sha256, version, &value, None, QUOTA)?;
        // Somebody else may have taken or ended the name meanwhile.
        let is_named = self.is_named(token)?;
        if !is_named {
            self.remove(&token.sha256)?;
        }
        Ok(is_named)
    }

    /// Whether the name of a token is its own still. One that has lost it is good for nothing.
    fn is_named(&self, token: &NamedToken) -> Result<bool, Error> {
        let named = self.0.item(NAMES, &token.name)?;
        Ok(named.is_some_and(|named| named.value == token.sha256.as_bytes()))
    }

    /// The token of a digest, if it is good.
    fn good(&self, digest: &str) -> Result<Option<NamedToken>, Error> {
        let Some(token) = self.of_digest(digest)? else { return Ok(None) };
        Ok(self.is_named(&token)?.then_some(token))
    }

    fn remove(&self, digest: &str) -> Result<(), Error> {
        if let Some(item) = self.0.item(TOKENS, digest)? {
            self.0.remove_item(TOKENS, digest, item.version)?;
        }
        Ok(())
    }

    /// Ends the token of a name. Says whether there was one.
    pub(crate) fn revoke(&self, name: &str) -> Result<bool, Error> {
        let Some(named) = self.0.item(NAMES, name)? else { return Ok(false) };
        let digest = String::from_utf8_lossy(&named.value);
        let token = self.of_digest(&digest)?;
        // The token goes first, so that one without a name is good for nothing. Its name goes last: until then all this is
        // done again.
        self.end(&digest, principal_of(name))?;
        self.0.remove_item(NAMES, name, named.version)?;
        Ok(token.is_some())
    }

    /// Ends a token. Whoever gets one of its name has nothing of what was approved for this one.
    fn end(&self, digest: &str, principal: String) -> Result<(), Error> {
        self.remove(digest)?;
        let now = store::now();
        let approvals = CallApprovals::new(self.0.clone()).decided_by(call_approval::user());
        approvals.end_principal(&principal, now)?;
        Ok(Runs::new(self.0.clone()).end_principal(&principal, now)?)
    }

    /// The token of a digest.
    fn of_digest(&self, digest: &str) -> Result<Option<NamedToken>, Error> {
        self.0.item(TOKENS, digest)?.as_ref().map(read).transpose()
    }

    /// Adds the tokens of a file, and removes it. Where that is interrupted it is done again.
    fn take_over(&self, path: &Path) -> Result<(), Error> {
        if !path.exists() {
            return Ok(());
        }
        let file = JsonFile::new(path.to_path_buf(), MAX_FILE_BYTES);
        let mut added = Ok(());
        // Under the lock of the file, so that no former version changes it meanwhile.
        let changed = file.change(|former: &mut FormerFile| {
            added = { former.tokens.iter() }.try_for_each(|token| {
                match self.of_digest(&token.sha256)? {
                    Some(_) => Ok(()),
                    None => self.add(token, SystemTime::now()).map(drop),
                }
            });
            if added.is_ok() {
                former.tokens.clear();
            }
        });
        changed.map_err(|error| failed(path, error))?;
        added?;
        std::fs::remove_file(path).map_err(|error| Error::Write(path.into(), error))
    }
}

fn read(item: &Item) -> Result<NamedToken, Error> {
    let damaged = |error| Error::Host(format!("the token {} is damaged: {error}", item.id));
    serde_json::from_slice(&item.value).map_err(damaged)
}

fn failed(path: &Path, error: JsonFileError) -> Error {
    match error {
        JsonFileError::Unguarded(other) => Error::Input(format!(
            "refusing to read tokens that others could have written: {} belongs to another user, or others can write \
             to it",
            other.display()
        )),
        JsonFileError::Io(error) => Error::Host(format!("{}: {error}", path.display())),
        JsonFileError::Damaged(error) => Error::Input(format!(
            "{} is no file of tokens: {error}; move it away to start over",
            path.display()
        )),
    }
}

/// The tokens of a server: its user's own, which is good for all, and the named ones, which end when they are revoked.
#[derive(Debug)]
pub(crate) struct ServerTokens {
    own: HttpTokenDigest,
    /// Nothing where the store could not be opened.
    named: Option<NamedTokenStore>,
}

impl ServerTokens {
    pub(crate) fn new(own: HttpTokenDigest, named: Option<NamedTokenStore>) -> Self {
        Self { own, named }
    }
}

#[async_trait]
impl TokenStore for ServerTokens {
    async fn grant(&self, token: &HttpTokenDigest) -> Option<TokenGrant> {
        if *token == self.own {
            return Some(TokenGrant::default());
        }
        let (named, digest) = (self.named.clone()?, token.sha256());
        let found = tokio::task::spawn_blocking(move || named.good(&digest)).await.ok()?;
        let found = found.unwrap_or_else(|error| {
            tracing::warn!("no named token is good: {error}");
            None
        });
        let named = found.filter(|named| !named.is_expired(SystemTime::now()))?;
        Some(TokenGrant {
            principal: Some(named.principal()),
            profile: named.profile,
            tools: named.tools,
        })
    }
}

/// The text of a new token.
pub(crate) fn random_token() -> Result<String, Error> {
    HttpTokenDigest::random_text()
        .ok_or_else(|| Error::Host("the system has no random numbers".into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_runs::{NewRun, RunState};
    use tenon_store::SqliteStore;

    fn token(name: &str, text: &str, expires: Option<&str>) -> NamedToken {
        NamedToken {
            name: name.into(),
            sha256: HttpTokenDigest::new(text).sha256(),
            profile: None,
            tools: None,
            created: "2026-01-01T00:00:00Z".into(),
            expires: expires.map(str::to_string),
        }
    }

    fn tokens() -> NamedTokenStore {
        NamedTokenStore(Arc::new(SqliteStore::in_memory().expect("there is memory")))
    }

    #[test]
    fn a_name_is_that_of_one_token() {
        let (tokens, now) = (tokens(), SystemTime::now());
        let [first, second] = ["a", "b"].map(|text| token("laptop", text, None));
        assert!(tokens.add(&first, now).unwrap());
        assert!(!tokens.add(&second, now).unwrap());
        assert!(tokens.good(&first.sha256).unwrap().is_some());
        assert!(tokens.good(&second.sha256).unwrap().is_none());
        assert!(tokens.revoke("laptop").unwrap() && !tokens.revoke("laptop").unwrap());
        assert!(tokens.good(&first.sha256).unwrap().is_none());
        // One that is over makes room.
        let over = token("laptop", "c", Some("2026-01-02T00:00:00Z"));
        assert!(tokens.add(&over, now).unwrap() && tokens.add(&second, now).unwrap());
        assert!(tokens.good(&over.sha256).unwrap().is_none());
        assert_eq!(tokens.list().unwrap(), [second]);
    }

    #[test]
    fn a_token_that_has_lost_its_name_is_good_for_nothing() {
        let (tokens, now) = (tokens(), SystemTime::now());
        let [first, second] = ["a", "b"].map(|text| token("laptop", text, None));
        assert!(tokens.add(&first, now).unwrap());
        // As where somebody else takes the name at the same time.
        let named = tokens.0.item(NAMES, "laptop").unwrap().unwrap();
        let digest = second.sha256.as_bytes();
        tokens.0.put_item(NAMES, "laptop", Some(named.version), digest, None, QUOTA).unwrap();
        assert!(tokens.good(&first.sha256).unwrap().is_none());
        assert!(tokens.list().unwrap().is_empty());
        assert!(tokens.add(&second, now).unwrap());
        assert_eq!(tokens.list().unwrap(), [second]);
    }

    #[test]
    fn what_ends_a_token_is_done_again_where_it_was_broken_off() {
        let (tokens, now) = (tokens(), SystemTime::now());
        let [first, second] = ["a", "b"].map(|text| token("laptop", text, None));
        assert!(tokens.add(&first, now).unwrap());
        let runs = Arc::new(Runs::new(tokens.0.clone()));
        let pause = || {
            let mut new = NewRun::new("1", serde_json::Value::Null);
            new.principal = Some(principal_of("laptop"));
            let hold = runs.begin(Runs::new_id().unwrap(), new, store::now()).unwrap();
            let (approval, tool, key) = ("A-1".into(), "t".into(), "1".into());
            let paused = RunState::Paused { approval, tool, key, call: None, arguments: None };
            hold.end(paused, &[], store::now()).unwrap().id
        };
        let is_paused = |id: &str| runs.get(id, store::now()).unwrap().unwrap().is_paused();
        // As where the process has died after its first step.
        let id = pause();
        tokens.remove(&first.sha256).unwrap();
        assert!(is_paused(&id));
        assert!(tokens.add(&second, now).unwrap());
        assert!(!is_paused(&id));
        let id = pause();
        tokens.remove(&second.sha256).unwrap();
        assert!(!tokens.revoke("laptop").unwrap());
        assert!(!is_paused(&id));
    }
}
