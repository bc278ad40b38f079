//! Locks: which processes live. Whoever works on an item names a lock of its own there, and others see by that lock
//! whether it still does.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use crate::error::StoreResult;
use crate::short_id::IdKind;

/// A lock that this process holds. Dropping it lets the lock go at once, and so does the end of the process, however
/// it comes. It may outlive the store that gave it.
///
/// Dropping it blocks for a moment, as every call of a store does.
pub trait HeldLock: fmt::Debug + Send + Sync + 'static {}

/// Stores locks. Every call blocks, and is meant for threads that may, but none waits until a lock is free.
///
/// No clock decides whether a process lives: its locks are free as soon as the system that keeps them sees its end.
/// Names are any text up to [`MAX_KEY_BYTES`](crate::MAX_KEY_BYTES). One that is random is never held twice.
///
/// A store on a network may lose the connection that keeps its locks. It then loses the locks, and their holder does not
/// learn of it by itself: another may have taken over meanwhile. So whoever ends its work on an item changes the item
/// from the version that it has seen ([`ItemStore::put_item`](crate::ItemStore::put_item)). To learn whether its lock is still there, a
/// holder asks [`Self::is_locked`] for a name that nobody else takes.
///
/// # Errors
///
/// Each operation fails where the store does ([`StoreError`](crate::StoreError)), or if a name is too long.
pub trait LockStore: Send + Sync + 'static {
    /// Takes a lock, unless somebody holds it: another process, or this one.
    fn hold_lock(&self, name: &str) -> StoreResult<Option<Box<dyn HeldLock>>>;

    /// Returns whether somebody holds a lock: another process, or this one. Asking keeps nobody from taking it.
    fn is_locked(&self, name: &str) -> StoreResult<bool>;
}

/// The lock by which others see that this process lives, under a random name. It is taken when it is first needed.
#[derive(Debug)]
pub struct LivenessLock {
    names: IdKind,
    held: Mutex<Option<(String, Box<dyn HeldLock>)>>,
}

impl LivenessLock {
    /// A lock whose name begins so.
    #[must_use]
    pub const fn new(beginning: &'static str) -> Self {
        Self { names: IdKind::new(beginning), held: Mutex::new(None) }
    }

    /// Returns the name of the lock, which is held as long as this lives. One that the store has lost is taken anew, under
    /// another name. Nothing where no name can be made.
    ///
    /// # Errors
    ///
    /// Where the store fails.
    pub fn name(&self, store: &(impl LockStore + ?Sized)) -> StoreResult<Option<String>> {
        let mut known = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((name, _)) = &*known
            && store.is_locked(name)?
        {
            return Ok(Some(name.clone()));
        }
        let Some(name) = self.names.random() else { return Ok(None) };
        let Some(held) = store.hold_lock(&name)? else { return Ok(None) };
        *known = Some((name.clone(), held));
        Ok(Some(name))
    }

    /// Lets the lock go, as the end of the process does.
    pub fn release(&self) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
