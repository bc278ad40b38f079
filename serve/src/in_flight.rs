//! The requests of a client that are not answered yet.

use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::task::{AbortHandle, Id};

use crate::lock;
use crate::protocol::error::{INVALID_REQUEST, RpcError, UNAVAILABLE};
use crate::protocol::message::{RequestId, cancelled_id};

/// The requests that are not answered yet, with what ends their tasks.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<RequestId, AbortHandle>>);

impl InFlight {
    /// Checks that a request may begin: its id is free, and there are fewer than so many.
    pub(crate) fn check(&self, id: &RequestId, most: usize) -> Result<(), RpcError> {
        check(&lock(&self.0), id, most)
    }

    /// Begins the task of a request, if it may begin. The task may end before it is noted, so both is done under one
    /// lock.
    pub(crate) fn begin<T>(
        &self,
        id: RequestId,
        most: usize,
        spawn: impl FnOnce() -> (AbortHandle, T),
    ) -> Result<T, RpcError> {
        let mut requests = lock(&self.0);
        check(&requests, &id, most)?;
        let (handle, begun) = spawn();
        requests.insert(id, handle);
        Ok(begun)
    }

    /// A request is to be answered, or is given up: its client may give its id to another one.
    pub(crate) fn leave(&self, id: &RequestId) {
        lock(&self.0).remove(id);
    }

    /// The same, where its task has ended: another request may have the id since it was answered.
    pub(crate) fn ended(&self, id: &RequestId, task: Id) {
        let mut requests = lock(&self.0);
        if requests.get(id).is_some_and(|handle| handle.id() == task) {
            requests.remove(id);
        }
    }

    /// Gives up the request that a `notifications/cancelled` names.
    pub(crate) fn cancel(&self, params: Option<&RawValue>) {
        let Some(id) = cancelled_id(params) else { return };
        if let Some(handle) = lock(&self.0).get(&id) {
            handle.abort();
        }
    }

    /// Gives up all.
    pub(crate) fn abort_all(&self) {
        lock(&self.0).drain().for_each(|(_, handle)| handle.abort());
    }

    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.0).is_empty()
    }
}

fn check(
    requests: &HashMap<RequestId, AbortHandle>,
    id: &RequestId,
    most: usize,
) -> Result<(), RpcError> {
    if requests.contains_key(id) {
        let message = format!("the id {} is that of a request in flight", id.json());
        return Err(RpcError::new(INVALID_REQUEST, message));
    }
    match requests.len() < most {
        true => Ok(()),
        false => Err(RpcError::new(UNAVAILABLE, format!("{most} requests are in flight already"))),
    }
}
