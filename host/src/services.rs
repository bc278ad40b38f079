//! What a host can offer to plugins, as traits with safe defaults: a plugin that asks a host which
//! offers nothing is told so.
//!
//! Plugins reach a service only if their manifest requests it and the host's [`Approver`] grants it.

use async_trait::async_trait;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use crate::bindings::services::{Memory, OutgoingMessage};

use crate::bindings::types::Error;
use crate::discover::PluginKind;

/// Sends the messages of plugins.
#[async_trait]
pub trait Messaging: Send + Sync + 'static {
    /// Sends a message. The default sends none.
    ///
    /// # Errors
    ///
    /// [`Error::NotFound`] for a channel that does not exist, [`Error::Denied`] for one that is not
    /// for plugins.
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let _ = (plugin, message);
        Err(Error::Denied("this host sends no messages".into()))
    }
}

/// Searches what the host remembers.
#[async_trait]
pub trait MemorySearch: Send + Sync + 'static {
    /// Finds at most `limit` memories, best match first. The default finds none.
    ///
    /// # Errors
    ///
    /// Where it cannot be searched.
    async fn search(&self, plugin: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        let _ = (plugin, query, limit);
        Ok(Vec::new())
    }
}

/// Says what plugins get of what they request.
#[async_trait]
pub trait Approver: Send + Sync + 'static {
    /// Gives what is granted, which may be less than was requested; what was not requested is not
    /// granted either way. It is asked before the plugin is loaded, each time. The default grants
    /// nothing.
    async fn approve(&self, request: &ApprovalRequest) -> BTreeMap<String, Vec<String>> {
        let _ = request;
        BTreeMap::new()
    }
}

/// What a plugin requests.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ApprovalRequest {
    /// The plugin's id.
    pub plugin: String,
    /// Its kind.
    pub kind: PluginKind,
    /// Where its code is.
    pub source: String,
    /// What it requests: values by the names of capabilities, as in `[capabilities]` of its
    /// manifest.
    pub capabilities: BTreeMap<String, Vec<String>>,
}

/// Grants everything that is requested, for hosts that trust all their plugins.
#[derive(Debug, Clone, Copy, Default)]
pub struct GrantAll;

#[async_trait]
impl Approver for GrantAll {
    async fn approve(&self, request: &ApprovalRequest) -> BTreeMap<String, Vec<String>> {
        request.capabilities.clone()
    }
}

/// A host that offers nothing.
struct Nothing;

impl Messaging for Nothing {}
impl MemorySearch for Nothing {}
impl Approver for Nothing {}

/// The services of a host.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) messaging: Arc<dyn Messaging>,
    pub(crate) memory: Arc<dyn MemorySearch>,
    pub(crate) approver: Arc<dyn Approver>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            messaging: Arc::new(Nothing),
            memory: Arc::new(Nothing),
            approver: Arc::new(Nothing),
        }
    }
}
