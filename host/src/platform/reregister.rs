//! Registering plugins again that say, while they run, that what they contribute has changed.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::{Inner, plugin_report};
use crate::observe::PluginNotifications;
use crate::observe::event::Event;
use crate::register::register_again;

/// How long a plugin's changes are gathered before it registers again.
const SETTLE_TIME: Duration = Duration::from_millis(100);

/// How long the next registration of plugins that have changed is put off after one.
const MIN_INTERVAL: Duration = Duration::from_secs(1);

/// Registers plugins again that say they have changed, for as long as the platform is there.
pub(super) async fn reregister(platform: Weak<Inner>, news: PluginNotifications) {
    loop {
        news.changed().await;
        // Several changes in a row are one.
        tokio::time::sleep(SETTLE_TIME).await;
        let changed = news.take_changed();
        let Some(inner) = platform.upgrade() else { return };
        inner.register_again(&changed).await;
        drop(inner);
        // A plugin that never stops changing must not keep the host busy.
        tokio::time::sleep(MIN_INTERVAL).await;
    }
}

impl Inner {
    /// Asks plugins again what they contribute.
    async fn register_again(&self, changed: &BTreeSet<Arc<str>>) {
        let mut plugins = self.plugins.lock().await;
        let asked = plugins.slots.iter_mut().map(async |slot| {
            let former = slot.registered.clone()?;
            let plugin = former.id().clone();
            if !changed.contains(&plugin) {
                return None;
            }
            Some(match register_again(&former).await {
                Ok(registered) => {
                    slot.report = plugin_report::there(&registered);
                    slot.registered = Some(Arc::new(registered));
                    Event::Registered { plugin }
                }
                Err(failure) => {
                    tracing::warn!(
                        plugin = &*plugin,
                        "the plugin did not register again: {failure}"
                    );
                    Event::NotRegistered { plugin, problem: failure.to_string() }
                }
            })
        });
        let events = futures::future::join_all(asked).await;
        plugins.check_pins().await;
        let (former, current) = (self.current.load(), plugins.current());
        // Whoever asked before it was registered again has not seen it.
        let known = former.registry.diagnostics();
        let new = current.registry.diagnostics().iter().filter(|now| !known.contains(now));
        for diagnostic in new {
            tracing::warn!("{diagnostic}");
        }
        self.current.store(Arc::new(current));
        drop(plugins);
        for event in events.into_iter().flatten() {
            self.invoke_services.news.events().publish(|| event.clone());
        }
    }
}
