//! What the messages of each client take together, from their first byte until they are answered. Without a bound, one
//! client with many connections takes all memory there is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::lock;

/// How much each client takes.
#[derive(Debug)]
pub(super) struct ClientMemoryBudget {
    most: usize,
    /// In bytes, by the principals of clients. One that takes nothing is not in it.
    taken: Mutex<HashMap<Arc<str>, usize>>,
}

/// What one message takes. Dropped, it is free again.
#[derive(Debug)]
pub(super) struct MemoryPermit {
    memory: Arc<ClientMemoryBudget>,
    principal: Arc<str>,
    bytes: usize,
}

impl ClientMemoryBudget {
    /// Lets each client take so many bytes.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::default() })
    }

    /// A message of a client begins.
    pub(super) fn begin(self: &Arc<Self>, principal: &Arc<str>) -> MemoryPermit {
        MemoryPermit { memory: self.clone(), principal: principal.clone(), bytes: 0 }
    }
}

impl MemoryPermit {
    /// Takes more, if the client can have it.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let mut all = lock(&self.memory.taken);
        let taken = all.get(&self.principal).copied().unwrap_or_default() + bytes;
        if taken > self.memory.most {
            return false;
        }
        all.insert(self.principal.clone(), taken);
        self.bytes += bytes;
        true
    }
}

impl Drop for MemoryPermit {
    fn drop(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let mut all = lock(&self.memory.taken);
        if let Some(taken) = all.get_mut(&self.principal) {
            *taken -= self.bytes;
            if *taken == 0 {
                all.remove(&self.principal);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_takes_so_much_and_gives_it_back() {
        let memory = ClientMemoryBudget::new(10);
        let (ada, ben): (Arc<str>, Arc<str>) = ("ada".into(), "ben".into());
        let mut first = memory.begin(&ada);
        assert!(first.take(4) && first.take(2));
        let mut second = memory.begin(&ada);
        assert!(second.take(4) && !second.take(1));
        assert!(memory.begin(&ben).take(10));
        drop(first);
        assert!(second.take(6) && !second.take(1));
        drop(second);
        assert!(lock(&memory.taken).is_empty());
    }
}
