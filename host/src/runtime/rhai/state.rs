//! What a script keeps between its calls: `state`, behind the same grant as `wasi:keyvalue`. Values are kept as JSON.

use rhai::serde::to_dynamic;
use rhai::{Array, Dynamic, Engine, FnPtr, NativeCallContext};
use serde_json::Value;
use tenon_config::limits::Limits;
use tenon_types::Error;

use super::engine::MAX_STRING_BYTES;
use super::error::ScriptResult;
use super::json::to_text;
use super::running_call::ask;
use crate::capability::keyvalue::{OpenBucket, as_contract, quota_of};
use crate::services::{Bucket, Quota, StateStore, StoreError, SwapOutcome};

/// The name by which scripts use it.
pub(super) const NAME: &str = "state";

/// How often `update` tries again when another call has changed the value meanwhile.
const MAX_UPDATE_ATTEMPTS: usize = 100;

/// A bucket of the script's, by the name of its scope.
#[derive(Clone, Default)]
pub(super) struct ScriptState {
    /// Empty for the one that is granted.
    scope: &'static str,
}

/// Puts the functions of `state` into an engine. What the name stands for, the engine asks [`ScriptState::default`].
pub(super) fn add(engine: &mut Engine, limits: &Limits) {
    let quota = quota_of(limits);
    engine
        .register_type_with_name::<ScriptState>("State")
        .register_get("user", |_: &mut ScriptState| ScriptState { scope: "user" })
        .register_get("project", |_: &mut ScriptState| ScriptState { scope: "project" })
        .register_get("session", |_: &mut ScriptState| ScriptState { scope: "session" })
        .register_fn("get", move |state: &mut ScriptState, key: &str| {
            value(state.get(key, quota)?.as_deref())
        })
        .register_fn("get", move |state: &mut ScriptState, key: &str, default: Dynamic| {
            let found = state.get(key, quota)?;
            if found.is_some() { value(found.as_deref()) } else { Ok(default) }
        })
        .register_fn("set", move |state: &mut ScriptState, key: &str, value: Dynamic| {
            let (key, value) = (key.to_string(), bytes(&value)?);
            state.with(quota, move |store, bucket, quota| store.set(bucket, &key, &value, quota))
        })
        .register_fn("remove", move |state: &mut ScriptState, key: &str| {
            let key = key.to_string();
            state.with(quota, move |store, bucket, _| store.delete(bucket, &key))
        })
        .register_fn("contains", move |state: &mut ScriptState, key: &str| {
            let key = key.to_string();
            state.with(quota, move |store, bucket, _| store.exists(bucket, &key))
        })
        .register_fn("keys", move |state: &mut ScriptState| state.keys(quota))
        .register_fn("increment", move |state: &mut ScriptState, key: &str, by: i64| {
            let key = key.to_string();
            state.with(quota, move |store, bucket, quota| store.increment(bucket, &key, by, quota))
        })
        .register_fn(
            "update",
            move |context: NativeCallContext<'_>,
                  state: &mut ScriptState,
                  key: &str,
                  change: FnPtr| state.update(&context, key, &change, quota),
        );
}

impl ScriptState {
    /// Does something with the bucket, while the script waits.
    fn with<T: Send + 'static>(
        &self,
        quota: Quota,
        act: impl FnOnce(&dyn StateStore, &Bucket, Quota) -> Result<T, StoreError> + Send + 'static,
    ) -> ScriptResult<T> {
        let scope = self.scope;
        ask(|host| async move {
            let bucket = OpenBucket::open(&host.granted, &host.caller, scope, quota);
            bucket.map_err(Error::from)?.with(act).await.map_err(as_contract)
        })
    }

    fn get(&self, key: &str, quota: Quota) -> ScriptResult<Option<Vec<u8>>> {
        let key = key.to_string();
        self.with(quota, move |store, bucket, _| store.get(bucket, &key))
    }

    fn keys(&self, quota: Quota) -> ScriptResult<Array> {
        let keys = self.with(quota, |store, bucket, _| store.all_keys(bucket))?;
        Ok(keys.into_iter().map(Dynamic::from).collect())
    }

    /// Sets a value to what a function makes of it, and returns it. The function is called again where another call
    /// has changed the value meanwhile.
    fn update(
        &self,
        context: &NativeCallContext<'_>,
        key: &str,
        change: &FnPtr,
        quota: Quota,
    ) -> ScriptResult<Dynamic> {
        let mut before = self.get(key, quota)?;
        for _ in 0..MAX_UPDATE_ATTEMPTS {
            let changed: Dynamic =
                change.call_within_context(context, (value(before.as_deref())?,))?;
            let (key, expected, new) = (key.to_string(), before, bytes(&changed)?);
            let swapped = self.with(quota, move |store, bucket, quota| {
                store.compare_and_swap(bucket, &key, expected.as_deref(), &new, quota)
            })?;
            match swapped {
                SwapOutcome::Swapped => return Ok(changed),
                SwapOutcome::Differs(current) => before = current,
            }
        }
        Err(format!("others change {key:?} all the time; the update was not made").into())
    }
}

/// What is kept, as a script sees it: `()` where there is nothing.
fn value(kept: Option<&[u8]>) -> ScriptResult<Dynamic> {
    let Some(kept) = kept else { return Ok(Dynamic::UNIT) };
    let value: Value = serde_json::from_slice(kept)
        .map_err(|error| format!("what is kept is no value of a script: {error}"))?;
    to_dynamic(value)
}

/// A script's value as it is kept.
fn bytes(value: &Dynamic) -> ScriptResult<Vec<u8>> {
    let bytes = to_text(value)?.into_bytes();
    match bytes.len() > MAX_STRING_BYTES {
        true => Err(format!("a value that is kept has at most {MAX_STRING_BYTES} bytes").into()),
        false => Ok(bytes),
    }
}
