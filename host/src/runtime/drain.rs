//! The end of a plugin: it takes no new calls, and those in flight finish.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

use super::Plugin;

/// How long a plugin may take to end itself.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(15);

/// Who uses a plugin: whoever has one of these. Calls in flight do, and so does the registry.
#[derive(Clone)]
pub(crate) struct UseToken {
    _user: mpsc::Sender<Infallible>,
    ended: Arc<Mutex<Option<mpsc::Receiver<Infallible>>>>,
}

impl Default for UseToken {
    fn default() -> Self {
        let (_user, ended) = mpsc::channel(1);
        Self { _user, ended: Arc::new(Mutex::new(Some(ended))) }
    }
}

impl UseToken {
    /// Takes a plugin out of use, which is ended when nobody uses it any more.
    pub(crate) fn retire(&self, plugin: Arc<dyn Plugin>) -> RetiringPlugin {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        RetiringPlugin { plugin, ended }
    }
}

/// A plugin that takes no new calls, and may still have some in flight.
pub(crate) struct RetiringPlugin {
    plugin: Arc<dyn Plugin>,
    ended: Option<mpsc::Receiver<Infallible>>,
}

impl RetiringPlugin {
    /// Waits until nobody uses the plugin any more, or for so long, and ends it.
    pub(crate) async fn end(self, patience: impl Future<Output = ()>) {
        let Self { plugin, ended } = self;
        if let Some(mut ended) = ended {
            tokio::select! {
                // Nothing is ever sent: it closes with the last user.
                _ = ended.recv() => {}
                () = patience => {}
            }
        }
        if tokio::time::timeout(SHUTDOWN_TIMEOUT, plugin.shutdown()).await.is_err() {
            tracing::warn!("a plugin did not end in time and was dropped");
        }
    }
}
