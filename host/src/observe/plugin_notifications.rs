//! What plugins tell the host, for it to act on after the call.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

use crate::observe::event::Events;

/// Where the news of all plugins goes. A plugin that says over and over that it has changed says it
/// once, until the host has acted on it.
#[derive(Clone, Default)]
pub(crate) struct PluginNotifications {
    changed: Arc<ChangedPlugins>,
    events: Events,
}

#[derive(Default)]
struct ChangedPlugins {
    plugins: Mutex<BTreeSet<Arc<str>>>,
    some: Notify,
}

impl PluginNotifications {
    /// What the host tells those who watch it.
    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// Waits until a plugin has changed. It may be told so without one.
    pub(crate) async fn changed(&self) {
        self.changed.some.notified().await;
    }

    /// The plugins that have changed since this was last asked.
    pub(crate) fn take_changed(&self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut *self.changed.plugins.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn note_change(&self, plugin: &Arc<str>) {
        let mut plugins = self.changed.plugins.lock().unwrap_or_else(PoisonError::into_inner);
        plugins.insert(plugin.clone());
        self.changed.some.notify_one();
    }
}
