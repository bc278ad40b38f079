//! What is kept in the host's store, and opened when it is first needed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tenon_store::{LazyStore, Store, StoreError};

use crate::observe::history::milliseconds;

/// Something that is kept in the host's store.
pub(crate) struct LazyInStore<T>(Arc<Inner<T>>);

struct Inner<T> {
    store: Arc<LazyStore>,
    make: fn(Arc<dyn Store>) -> T,
    made: Mutex<Option<Arc<T>>>,
}

impl<T> Clone for LazyInStore<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T: Send + Sync + 'static> LazyInStore<T> {
    pub(crate) fn new(store: Arc<LazyStore>, make: fn(Arc<dyn Store>) -> T) -> Self {
        Self(Arc::new(Inner { store, make, made: Mutex::default() }))
    }

    /// Does something with it at this time, in milliseconds since 1970, on a thread that may block. It is done also where
    /// nobody waits for it any more.
    pub(crate) fn run<R, E, F>(
        &self,
        act: F,
    ) -> impl Future<Output = Result<R, E>> + Send + use<T, R, E, F>
    where
        F: FnOnce(&Arc<T>, u64) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let inner = self.0.clone();
        let act = tokio::task::spawn_blocking(move || {
            act(&inner.get()?, milliseconds(SystemTime::now()))
        });
        async { act.await.expect("it does not panic, and is not aborted") }
    }
}

impl<T> Inner<T> {
    fn get(&self) -> Result<Arc<T>, StoreError> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        match &*made {
            Some(known) => Ok(known.clone()),
            None => Ok(made.insert(Arc::new((self.make)(self.store.get()?))).clone()),
        }
    }
}
