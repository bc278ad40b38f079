//! Which calls wait for their clients, as all servers of a store know it. Where a client comes back to another server than
//! the one that asked it, or after that one has ended, it is told so.
//!
//! A call itself waits in its process only: what it has done so far is there.

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tenon_store::{ItemOutcome, ItemQuota, LazyStore, ProcessLock, Store, StoreError};
use tokio::sync::OnceCell;

use crate::seal::{KEY_BYTES, Seal, SealId};

/// The kind of items that calls are which wait, by the ids in what their clients were given.
const CALLS: &str = "parked-calls";

/// How many of them there may be, and how many bytes they may take.
const CALLS_QUOTA: ItemQuota = ItemQuota { items: 100_000, bytes: 32 << 20 };

/// The kind of items that keys are which all servers of a store use.
const KEYS: &str = "serve-keys";

/// The key by which what clients are given is sealed.
const SEAL_KEY: &str = "parked-calls";

const KEYS_QUOTA: ItemQuota = ItemQuota { items: 16, bytes: 4 << 10 };

/// Where a call waits that does not wait in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    /// In another process, which lives.
    Elsewhere,
    /// In a process that has ended.
    Ended,
    /// Nowhere, as far as is known.
    Unknown,
}

/// A call that waits.
#[derive(Serialize, Deserialize)]
struct Handle {
    /// The lock of the process in which it does.
    lock: String,
}

/// The calls of a store that wait. Where the store fails, this process knows of its own only.
pub(crate) struct ParkedHandles {
    store: Arc<LazyStore>,
    lock: ProcessLock,
    seal: OnceCell<Option<Arc<Seal>>>,
}

impl ParkedHandles {
    /// Those of a store.
    pub(crate) fn new(store: Arc<LazyStore>) -> Arc<Self> {
        let lock = ProcessLock::new("parked-calls/");
        Arc::new(Self { store, lock, seal: OnceCell::new() })
    }

    /// The seal that all servers of the store have. Nothing where the system has no random numbers.
    pub(super) async fn seal(self: &Arc<Self>) -> Option<Arc<Seal>> {
        let make = async || {
            let shared = self.with_store(|_, store| shared_key(store)).await.flatten();
            match shared {
                Some(key) => Some(Arc::new(Seal::with_key(&key))),
                None => Seal::new().map(Arc::new),
            }
        };
        self.seal.get_or_init(make).await.clone()
    }

    /// Notes a call that waits in this process.
    pub(super) async fn note(self: &Arc<Self>, id: SealId, until: SystemTime) {
        let note = move |handles: &Self, store: &dyn Store| {
            store.remove_expired_items(CALLS, milliseconds(SystemTime::now()))?;
            let Some(lock) = handles.lock.name(store)? else { return Ok(()) };
            let value = serde_json::to_vec(&Handle { lock }).expect("a handle is JSON");
            let until = Some(milliseconds(until));
            store.put_item(CALLS, &hex::encode(id), None, &value, until, CALLS_QUOTA)?;
            Ok(())
        };
        self.with_store(note).await;
    }

    /// Forgets a call that waits no longer. Nobody waits for it.
    pub(super) fn forget(self: &Arc<Self>, id: SealId) {
        let handles = self.clone();
        tokio::spawn(async move {
            let forget = move |_: &Self, store: &dyn Store| {
                let id = hex::encode(id);
                match store.item(CALLS, &id)? {
                    Some(item) => store.remove_item(CALLS, &id, item.version),
                    None => Ok(false),
                }
            };
            handles.with_store(forget).await
        });
    }

    /// Where a call waits that does not wait in this process.
    pub(super) async fn find(self: &Arc<Self>, id: SealId) -> Whereabouts {
        let find = move |handles: &Self, store: &dyn Store| {
            let item = store.item(CALLS, &hex::encode(id))?;
            let item = item.filter(|item| !item.is_expired(milliseconds(SystemTime::now())));
            let handle = item.and_then(|item| serde_json::from_slice::<Handle>(&item.value).ok());
            let Some(Handle { lock }) = handle else { return Ok(Whereabouts::Unknown) };
            // It waited here, and is being forgotten.
            if handles.lock.name(store)?.is_some_and(|own| own == lock) {
                return Ok(Whereabouts::Unknown);
            }
            Ok(match store.is_locked(&lock)? {
                true => Whereabouts::Elsewhere,
                false => Whereabouts::Ended,
            })
        };
        self.with_store(find).await.unwrap_or(Whereabouts::Unknown)
    }

    /// Does something with the store, on a thread that may block. Gives nothing where it fails.
    async fn with_store<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self, &dyn Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Option<R> {
        let handles = self.clone();
        let act = move || act(&handles, &*handles.store.get()?);
        let acted = tokio::task::spawn_blocking(act).await;
        match acted.expect("it does not panic, and is not aborted") {
            Ok(done) => Some(done),
            Err(error) => {
                tracing::warn!(
                    "other servers know nothing of calls that wait in this one: {error}"
                );
                None
            }
        }
    }
}

/// The key that all servers of a store use. Who comes first makes it.
fn shared_key(store: &dyn Store) -> Result<Option<[u8; KEY_BYTES]>, StoreError> {
    let mut new = [0; KEY_BYTES];
    if SystemRandom::new().fill(&mut new).is_err() {
        return Ok(None);
    }
    let known = match store.put_item(KEYS, SEAL_KEY, None, &new, None, KEYS_QUOTA)? {
        ItemOutcome::Changed(_) => return Ok(Some(new)),
        ItemOutcome::Differs(known) => known,
    };
    Ok(known.and_then(|item| item.value.try_into().ok()))
}

fn milliseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
