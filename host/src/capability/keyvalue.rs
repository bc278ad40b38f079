//! `state`: what a plugin keeps between calls, in buckets of the host's [`StateStore`]. Components use the standard
//! interfaces `wasi:keyvalue`. Values are the scopes of buckets: `user`, `project` and `session`.

use std::sync::Arc;
use tenon_config::grant::{STATE, STATE_SCOPES};
use tenon_config::limits::Limits;
use tenon_store::{Bucket, MAX_PAGE_KEYS, Quota, StateStore, StoreError, SwapOutcome};
use tenon_types::Error;
use wasmtime::component::{Linker, Resource};

use super::granted::GrantedCapabilities;
use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::call::Caller;
use crate::capability::services::StateBackend;
use generated::wasi::keyvalue::{atomics, batch, store};

mod generated {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, unused_variables, unused)]
    #![allow(clippy::all, rustdoc::all, unused_doc_comments)]

    wasmtime::component::bindgen!({
        path: "wit/keyvalue",
        world: "wasi:keyvalue/imports",
        imports: { default: async | trappable },
        with: {
            "wasi:keyvalue/store.bucket": super::OpenBucket,
            "wasi:keyvalue/atomics.cas": super::SeenValue,
        },
    });
}

/// The most keys of a bucket. Each costs more than its bytes.
const MAX_KEYS: u64 = 100_000;

/// How much a plugin may keep in each of its buckets.
pub(crate) fn quota_of(limits: &Limits) -> Quota {
    Quota { bytes: limits.state as u64, keys: MAX_KEYS }
}

/// A bucket of a plugin, as it was opened.
#[derive(Clone)]
#[expect(unreachable_pub, reason = "the generated code reexports it")]
pub struct OpenBucket {
    backend: Arc<StateBackend>,
    bucket: Bucket,
    quota: Quota,
}

/// A value as it was, for a compare-and-swap.
#[expect(unreachable_pub, reason = "the generated code reexports it")]
pub struct SeenValue {
    bucket: OpenBucket,
    key: String,
    value: Option<Vec<u8>>,
}

impl OpenBucket {
    /// Opens a bucket of a plugin by the name of its scope, or the one that is meant by `default` and no name.
    pub(crate) fn open(
        granted: &GrantedCapabilities,
        caller: &Caller,
        name: &str,
        quota: Quota,
    ) -> Result<Self, OpenError> {
        let scope = match name {
            // The narrowest that is granted: what is kept there reaches the fewest.
            "" | "default" => STATE_SCOPES.iter().copied().find(|scope| granted.has(STATE, scope)),
            _ => STATE_SCOPES.iter().copied().find(|scope| *scope == name),
        };
        let scope = match scope {
            Some(scope) => scope,
            None if matches!(name, "" | "default") => "project",
            None => return Err(OpenError::Unknown(name.to_string())),
        };
        let tried = format!("keeping state of the scope \"{scope}\"");
        granted.require(STATE, scope, &tried).map_err(OpenError::Denied)?;
        let services = &granted.host_services.services;
        let plugin = granted.plugin();
        let bucket = match scope {
            "user" => Bucket::user(plugin),
            "session" => {
                let session = caller.session_id.as_ref().ok_or(OpenError::NoSession)?;
                Bucket::session(plugin, session)
            }
            _ => {
                let project = services.state.project().ok_or(OpenError::NoProject)?;
                Bucket::project(plugin, project)
            }
        };
        Ok(Self { backend: services.state.clone(), bucket, quota })
    }

    /// Does something with the bucket, on a thread that may block.
    pub(crate) async fn with<T: Send + 'static>(
        &self,
        act: impl FnOnce(&dyn StateStore, &Bucket, Quota) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let Self { backend, bucket, quota } = self.clone();
        backend.run(move |store| act(store, &bucket, quota)).await
    }
}

/// Why a bucket was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    /// There is no such scope.
    #[error(
        "there is no bucket \"{0}\"; a bucket is named after its scope: `user`, `project` or `session`"
    )]
    Unknown(String),
    /// The scope is not granted.
    #[error(transparent)]
    Denied(Error),
    /// The call belongs to no session.
    #[error(
        "the call belongs to no session, so there is no state of one; `tenon call --session ID` names a session"
    )]
    NoSession,
    /// The host has no project.
    #[error("the host was started without a project, so there is no state of one")]
    NoProject,
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Denied(error) => error,
            _ => Self::not_found(error.to_string()),
        }
    }
}

/// What a script is told. The contract has no code for a quota that is exceeded: it is `failed`, as it is for components.
pub(crate) fn as_contract(error: StoreError) -> Error {
    let message = error.to_string();
    match error {
        StoreError::KeyTooLong { .. }
        | StoreError::ValueTooLarge { .. }
        | StoreError::TooManyKeys { .. }
        | StoreError::TooManyBytes
        | StoreError::NotANumber { .. }
        | StoreError::Overflow { .. } => Error::invalid_input(message),
        StoreError::Busy(_) => Error::unavailable(message),
        _ => Error::failed(message),
    }
}

impl From<OpenError> for store::Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Denied(_) => Self::AccessDenied,
            OpenError::Unknown(_) => Self::NoSuchStore,
            OpenError::NoSession | OpenError::NoProject => Self::Other(error.to_string()),
        }
    }
}

impl From<StoreError> for store::Error {
    fn from(error: StoreError) -> Self {
        Self::Other(error.to_string())
    }
}

pub(crate) struct KeyValueCapability;

impl HostCapability for KeyValueCapability {
    const NAME: &'static str = STATE;
    type Plugin = Quota;
    type Instance = Quota;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        quota_of(preparation.limits)
    }

    fn instantiate(quota: &Self::Plugin) -> Self::Instance {
        *quota
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        store::add_to_linker::<_, HasView<Self>>(linker, T::view)?;
        atomics::add_to_linker::<_, HasView<Self>>(linker, T::view)?;
        batch::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

type Answer<T> = wasmtime::Result<Result<T, store::Error>>;

impl CapabilityView<'_, KeyValueCapability> {
    /// Does something with a bucket.
    async fn act<T: Send + 'static>(
        &mut self,
        bucket: &Resource<OpenBucket>,
        act: impl FnOnce(&dyn StateStore, &Bucket, Quota) -> Result<T, StoreError> + Send + 'static,
    ) -> Answer<T> {
        let bucket = self.table.get(bucket)?.clone();
        Ok(bucket.with(act).await.map_err(Into::into))
    }

    /// The value of a key, remembered for a swap.
    async fn see(&mut self, bucket: OpenBucket, key: String) -> Answer<Resource<SeenValue>> {
        let wanted = key.clone();
        match bucket.with(move |store, bucket, _| store.get(bucket, &wanted)).await {
            Ok(value) => Ok(Ok(self.table.push(SeenValue { bucket, key, value })?)),
            Err(error) => Ok(Err(error.into())),
        }
    }
}

impl store::Host for CapabilityView<'_, KeyValueCapability> {
    async fn open(&mut self, identifier: String) -> Answer<Resource<OpenBucket>> {
        let (granted, caller) = self.calls.access_and_caller();
        match OpenBucket::open(&granted, &caller, &identifier, *self.state) {
            Ok(bucket) => Ok(Ok(self.table.push(bucket)?)),
            Err(error) => Ok(Err(error.into())),
        }
    }
}

impl store::HostBucket for CapabilityView<'_, KeyValueCapability> {
    async fn get(&mut self, bucket: Resource<OpenBucket>, key: String) -> Answer<Option<Vec<u8>>> {
        self.act(&bucket, move |store, bucket, _| store.get(bucket, &key)).await
    }

    async fn set(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
        value: Vec<u8>,
    ) -> Answer<()> {
        self.act(&bucket, move |store, bucket, quota| store.set(bucket, &key, &value, quota)).await
    }

    async fn delete(&mut self, bucket: Resource<OpenBucket>, key: String) -> Answer<()> {
        self.act(&bucket, move |store, bucket, _| store.delete(bucket, &key)).await
    }

    async fn exists(&mut self, bucket: Resource<OpenBucket>, key: String) -> Answer<bool> {
        self.act(&bucket, move |store, bucket, _| store.exists(bucket, &key)).await
    }

    async fn list_keys(
        &mut self,
        bucket: Resource<OpenBucket>,
        cursor: Option<String>,
    ) -> Answer<store::KeyResponse> {
        let page = self.act(&bucket, move |store, bucket, _| {
            store.keys(bucket, cursor.as_deref(), MAX_PAGE_KEYS)
        });
        Ok(page.await?.map(|page| store::KeyResponse { keys: page.keys, cursor: page.next }))
    }

    async fn drop(&mut self, bucket: Resource<OpenBucket>) -> wasmtime::Result<()> {
        self.table.delete(bucket)?;
        Ok(())
    }
}

impl atomics::HostCas for CapabilityView<'_, KeyValueCapability> {
    async fn new(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
    ) -> Answer<Resource<SeenValue>> {
        let bucket = self.table.get(&bucket)?.clone();
        self.see(bucket, key).await
    }

    async fn current(&mut self, cas: Resource<SeenValue>) -> Answer<Option<Vec<u8>>> {
        Ok(Ok(self.table.get(&cas)?.value.clone()))
    }

    async fn drop(&mut self, cas: Resource<SeenValue>) -> wasmtime::Result<()> {
        self.table.delete(cas)?;
        Ok(())
    }
}

impl atomics::Host for CapabilityView<'_, KeyValueCapability> {
    async fn increment(
        &mut self,
        bucket: Resource<OpenBucket>,
        key: String,
        delta: i64,
    ) -> Answer<i64> {
        let add = move |store: &dyn StateStore, bucket: &Bucket, quota| {
            store.increment(bucket, &key, delta, quota)
        };
        self.act(&bucket, add).await
    }

    async fn swap(
        &mut self,
        cas: Resource<SeenValue>,
        value: Vec<u8>,
    ) -> wasmtime::Result<Result<(), atomics::CasError>> {
        let SeenValue { bucket, key, value: seen } = self.table.delete(cas)?;
        let wanted = key.clone();
        let swap = move |store: &dyn StateStore, bucket: &Bucket, quota| {
            store.compare_and_swap(bucket, &wanted, seen.as_deref(), &value, quota)
        };
        match bucket.with(swap).await {
            Ok(SwapOutcome::Swapped) => Ok(Ok(())),
            Ok(SwapOutcome::Differs(value)) => {
                let current = self.table.push(SeenValue { bucket, key, value })?;
                Ok(Err(atomics::CasError::CasFailed(current)))
            }
            Err(error) => Ok(Err(atomics::CasError::StoreError(error.into()))),
        }
    }
}

fn texts(keys: &[String]) -> Vec<&str> {
    keys.iter().map(String::as_str).collect()
}

impl batch::Host for CapabilityView<'_, KeyValueCapability> {
    async fn get_many(
        &mut self,
        bucket: Resource<OpenBucket>,
        keys: Vec<String>,
    ) -> Answer<Vec<Option<(String, Vec<u8>)>>> {
        self.act(&bucket, move |store, bucket, _| {
            let values = store.get_many(bucket, &texts(&keys))?;
            Ok(keys.into_iter().zip(values).map(|(key, value)| Some((key, value?))).collect())
        })
        .await
    }

    async fn set_many(
        &mut self,
        bucket: Resource<OpenBucket>,
        entries: Vec<(String, Vec<u8>)>,
    ) -> Answer<()> {
        self.act(&bucket, move |store, bucket, quota| {
            let entries = entries.iter().map(|(key, value)| (&**key, &**value));
            store.set_many(bucket, &entries.collect::<Vec<_>>(), quota)
        })
        .await
    }

    async fn delete_many(&mut self, bucket: Resource<OpenBucket>, keys: Vec<String>) -> Answer<()> {
        self.act(&bucket, move |store, bucket, _| store.delete_many(bucket, &texts(&keys))).await
    }
}
