//! Which calls wait for their clients, as all servers of a store know it. Where a client comes back to another server than
//! the one that asked it, or after that one has ended, it is told so.
//!
//! A call itself waits in its process only: what it has done so far is there.

use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tenon_store::{ItemOutcome, ItemQuota, LazyStore, LivenessLock, Store, StoreError};

use crate::seal::{KEY_BYTES, SealError, SealId, Sealer};

/// The kind of the items that name a waiting call, by the id in the state of its client.
const CALLS: &str = "parked-calls";

/// How many of them there may be, and how many bytes they may take.
const CALLS_QUOTA: ItemQuota = ItemQuota { items: 100_000, bytes: 32 << 20 };

/// The kind of the items that are keys of all servers of a store.
const KEYS: &str = "serve-keys";

/// The key that seals the states of clients.
const SEAL_KEY: &str = "parked-calls";

const KEYS_QUOTA: ItemQuota = ItemQuota { items: 16, bytes: 4 << 10 };

/// How long a call waits for the store. Without it, this server knows of its own calls only.
const STORE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where a call waits that does not wait in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParkedCallLocation {
    /// In another process, which lives.
    OtherServer,
    /// In a process that has ended, as far as the store knows.
    EndedServer,
    /// Nowhere, as far as is known.
    Unknown,
}

/// A call that waits.
#[derive(Serialize, Deserialize)]
struct ParkedItem {
    /// The lock of the process in which it does.
    lock: String,
}

/// The calls of a store that wait. Where the store fails, this process knows of its own only.
pub(crate) struct ParkedCallDirectory {
    store: Arc<LazyStore>,
    lock: LivenessLock,
    /// The seal of all servers of the store.
    shared: OnceLock<Arc<Sealer>>,
    /// That of this process, for what was sealed while the store failed.
    own: OnceLock<Option<Arc<Sealer>>>,
}

impl ParkedCallDirectory {
    /// Those of a store.
    pub(crate) fn new(store: Arc<LazyStore>) -> Arc<Self> {
        let lock = LivenessLock::new("parked-calls/");
        let (shared, own) = Default::default();
        Arc::new(Self { store, lock, shared, own })
    }

    /// The seal for states: that of all servers of the store, where it can be had. Nothing where the system has no random
    /// numbers.
    pub(super) async fn seal(self: &Arc<Self>) -> Option<Arc<Sealer>> {
        match self.shared().await {
            Some(shared) => Some(shared),
            None => self.own.get_or_init(|| Sealer::new().map(Arc::new)).clone(),
        }
    }

    /// What a state stands for.
    pub(super) async fn open(
        self: &Arc<Self>,
        state: &str,
        bound: &[&[u8]],
    ) -> Result<SealId, SealError> {
        let now = SystemTime::now();
        let own = self.own.get().cloned().flatten();
        // What this process has sealed itself needs no store.
        match own.map(|own| own.open(state, bound, now)) {
            None | Some(Err(SealError::Forged)) => {
                let shared = self.shared().await.ok_or(SealError::Forged)?;
                shared.open(state, bound, now)
            }
            Some(opened) => opened,
        }
    }

    async fn shared(self: &Arc<Self>) -> Option<Arc<Sealer>> {
        if let Some(shared) = self.shared.get() {
            return Some(shared.clone());
        }
        let key = self.with_store(|_, store| shared_key(store)).await.flatten()?;
        Some(self.shared.get_or_init(|| Arc::new(Sealer::with_key(&key))).clone())
    }

    /// Notes a call that waits in this process.
    pub(super) async fn note(self: &Arc<Self>, id: SealId, until: SystemTime) {
        let note = move |handles: &Self, store: &dyn Store| {
            store.remove_expired_items(CALLS, milliseconds(SystemTime::now()))?;
            let Some(lock) = handles.lock.name(store)? else { return Ok(()) };
            let value = serde_json::to_vec(&ParkedItem { lock }).expect("a handle is JSON");
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
    pub(super) async fn find(self: &Arc<Self>, id: SealId) -> ParkedCallLocation {
        let find = move |handles: &Self, store: &dyn Store| {
            let item = store.item(CALLS, &hex::encode(id))?;
            let item = item.filter(|item| !item.is_expired(milliseconds(SystemTime::now())));
            let handle =
                item.and_then(|item| serde_json::from_slice::<ParkedItem>(&item.value).ok());
            let Some(ParkedItem { lock }) = handle else { return Ok(ParkedCallLocation::Unknown) };
            // It waited here, and is being forgotten.
            if handles.lock.name(store)?.is_some_and(|own| own == lock) {
                return Ok(ParkedCallLocation::Unknown);
            }
            Ok(match store.is_locked(&lock)? {
                true => ParkedCallLocation::OtherServer,
                false => ParkedCallLocation::EndedServer,
            })
        };
        self.with_store(find).await.unwrap_or(ParkedCallLocation::Unknown)
    }

    /// Does something with the store, on a thread that may block. Gives nothing where the store fails or takes too long.
    async fn with_store<R: Send + 'static>(
        self: &Arc<Self>,
        act: impl FnOnce(&Self, &dyn Store) -> Result<R, StoreError> + Send + 'static,
    ) -> Option<R> {
        let handles = self.clone();
        let act = move || act(&handles, &*handles.store.get()?);
        let acting = tokio::task::spawn_blocking(act);
        let problem = match tokio::time::timeout(STORE_TIMEOUT, acting).await {
            Ok(acted) => match acted.expect("it does not panic, and is not aborted") {
                Ok(done) => return Some(done),
                Err(error) => error.to_string(),
            },
            Err(_) => format!("it has not answered for {STORE_TIMEOUT:?}"),
        };
        tracing::warn!(
            "servers of this store do not know of each other's waiting calls: {problem}"
        );
        None
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
