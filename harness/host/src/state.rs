//! What the plugin of a test keeps between its calls.

use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use tenon_harness::Scope;
use tenon_host::services::{Bucket, Quota, STATE_FILE, SqliteStore, StateStore, Store, StoreError};

use crate::ID;

/// More than any test needs: the limits of the plugin are for what it keeps itself.
const QUOTA: Quota = Quota { keys: 1 << 32, bytes: 1 << 40 };

/// What a plugin keeps with the capability `state`, in a temporary folder. A clone is the same state, so the plugin of
/// one run finds what it kept in another.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use tenon_test_host::{TestHost, Scope, State};
///
/// let state = State::new();
/// state.set(Scope::User, "name", &json!("Ada"));
/// let harness = TestHost::component("plugin.wasm").grant("state", ["user"]).state(&state);
/// let plugin = harness.start().await?;
/// plugin.call("welcome", json!({})).await?;
/// assert_eq!(state.get(Scope::User, "visits"), Some(json!(1)));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct State(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    store: SqliteStore,
    /// Deletes the folder, if it is a temporary one.
    _temporary: Option<TempDir>,
}

impl Default for State {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    /// Makes state in which nothing is kept.
    ///
    /// # Panics
    ///
    /// If there is no room for a temporary folder.
    pub fn new() -> Self {
        let folder = TempDir::new().expect("there is room for a temporary folder");
        let state = Self::open_in(folder.path().into(), Some(folder));
        state.expect("a database is made")
    }

    /// Opens the state in a folder, which is made where there is none and stays.
    ///
    /// # Errors
    ///
    /// Where it is not this user's, or there is no room.
    pub fn open(folder: impl Into<PathBuf>) -> Result<Self, StoreError> {
        Self::open_in(folder.into(), None)
    }

    fn open_in(path: PathBuf, temporary: Option<TempDir>) -> Result<Self, StoreError> {
        let store = SqliteStore::open(path.join(STATE_FILE))?;
        // By its real path, as the host names it.
        let path = path.canonicalize().unwrap_or(path);
        Ok(Self(Arc::new(Folder { path, store, _temporary: temporary })))
    }

    /// Returns the value of a key, which the SDK and scripts write as JSON.
    ///
    /// # Panics
    ///
    /// If the value is not JSON; [`Self::bytes`] returns it.
    pub fn get(&self, scope: Scope, key: &str) -> Option<Value> {
        let bytes = self.bytes(scope, key)?;
        let value = serde_json::from_slice(&bytes);
        Some(value.unwrap_or_else(|error| panic!("the value of {key:?} is not JSON: {error}")))
    }

    /// Sets the value of a key as JSON, as the SDK and scripts do.
    ///
    /// # Panics
    ///
    /// If no store takes the key or the value, for example because it is too long.
    pub fn set(&self, scope: Scope, key: &str, value: &Value) {
        self.set_bytes(scope, key, value.to_string().as_bytes());
    }

    /// Returns the bytes of a value, for plugins that use `wasi:keyvalue` themselves.
    ///
    /// # Panics
    ///
    /// If the value cannot be read.
    pub fn bytes(&self, scope: Scope, key: &str) -> Option<Vec<u8>> {
        self.0.store.get(&self.bucket(scope), key).expect("the state is read")
    }

    /// Sets the bytes of a value, for plugins that use `wasi:keyvalue` themselves.
    ///
    /// # Panics
    ///
    /// If no store takes the key or the value, for example because it is too long.
    pub fn set_bytes(&self, scope: Scope, key: &str, value: &[u8]) {
        self.0.store.set(&self.bucket(scope), key, value, QUOTA).expect("the value is kept");
    }

    /// Sets the value of a key as JSON.
    ///
    /// # Errors
    ///
    /// If no store takes the key or the value, for example because it is too long.
    pub fn try_set(&self, scope: Scope, key: &str, value: &Value) -> Result<(), StoreError> {
        self.0.store.set(&self.bucket(scope), key, value.to_string().as_bytes(), QUOTA)
    }

    /// Returns the keys of a scope in the order of their bytes.
    ///
    /// # Panics
    ///
    /// If they cannot be read.
    pub fn keys(&self, scope: Scope) -> Vec<String> {
        self.0.store.all_keys(&self.bucket(scope)).expect("the state is read")
    }

    /// The project that the host works in.
    pub(crate) fn project(&self) -> PathBuf {
        self.0.path.clone()
    }

    /// The same state, for a host.
    pub(crate) fn store(&self) -> Result<impl Store + use<>, StoreError> {
        SqliteStore::open(self.0.path.join(STATE_FILE))
    }

    fn bucket(&self, scope: Scope) -> Bucket {
        match scope {
            Scope::User => Bucket::user(ID),
            Scope::Project => Bucket::project(ID, self.project()),
            Scope::Session(session) => Bucket::session(ID, &session),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_set_is_there_in_its_scope_and_in_no_other() {
        let state = State::new();
        state.set(Scope::Session("a".into()), "words", &json!(["tenon"]));
        state.set_bytes(Scope::Project, "picture", &[0xff]);
        let again = state.clone();
        assert_eq!(again.get(Scope::Session("a".into()), "words"), Some(json!(["tenon"])));
        assert_eq!(again.bytes(Scope::Project, "picture"), Some(vec![0xff]));
        assert_eq!(again.keys(Scope::Project), ["picture"]);
        for empty in [Scope::User, Scope::Session("b".into())] {
            assert!(again.keys(empty.clone()).is_empty(), "{empty:?}");
        }
    }
}
