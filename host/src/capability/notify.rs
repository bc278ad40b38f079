//! `notify`: news from a plugin, for the host to act on after the call.

use std::sync::Arc;
use std::time::Instant;
use tenon_types::text::cut;
use wasmtime::component::Linker;

use super::host_capability::{
    CapabilityView, HasCapability, HasView, HostCapability, PrepareContext,
};
use crate::call::CallerClient;
use crate::call::client::Progress;
use crate::call::mask::Unmasked;
use crate::capability::bindings::notify;
use crate::observe::event::Event;
use crate::observe::{PluginLog, PluginNotifications, RateLimiter};

/// The longest message of progress, and the longest id, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

pub(crate) struct NotifyCapability;

/// A call that has come further.
pub(crate) struct ProgressingCall<'a> {
    pub(crate) id: &'a str,
    /// The client that it is made for.
    pub(crate) client: Option<&'a CallerClient>,
}

/// How much news a plugin may still give, and where it goes.
pub(crate) struct PluginNotifier {
    progress: RateLimiter,
    /// News of resources, which must not be in the way of the other.
    updates: RateLimiter,
    news: PluginNotifications,
}

impl HostCapability for NotifyCapability {
    const NAME: &'static str = "notify";
    type Plugin = Arc<PluginNotifier>;
    type Instance = Arc<PluginNotifier>;

    fn prepare(preparation: &PrepareContext<'_>) -> Self::Plugin {
        let rate = preparation.limits.log_rate;
        Arc::new(PluginNotifier {
            progress: RateLimiter::of(rate),
            updates: RateLimiter::of(rate),
            news: preparation.news.clone(),
        })
    }

    fn instantiate(news: &Self::Plugin) -> Self::Instance {
        news.clone()
    }

    fn link<T: HasCapability<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        notify::add_to_linker::<_, HasView<Self>>(linker, T::view)
    }
}

impl PluginNotifier {
    /// News that nobody hears.
    #[cfg(test)]
    pub(crate) fn unheard() -> Arc<Self> {
        let (progress, updates) = (RateLimiter::of(1), RateLimiter::of(1));
        Arc::new(Self { progress, updates, news: PluginNotifications::default() })
    }

    /// A resource of a plugin is another one now.
    pub(crate) fn resource_updated(
        &self,
        plugin: &Arc<str>,
        log: &PluginLog,
        uri: Unmasked<String>,
    ) {
        if self.updates.take(Instant::now()).is_none() {
            return;
        }
        let uri = log.masked(uri).into_inner();
        // A URI that is cut is another one.
        if uri.len() <= MAX_MESSAGE_BYTES {
            let plugin = plugin.clone();
            self.news.events().publish(|| Event::ResourceUpdated { plugin, uri });
        }
    }

    /// What a plugin contributes has changed.
    pub(crate) fn contributions_changed(&self, plugin: &Arc<str>) {
        self.news.note_change(plugin);
    }

    /// A call that is served has come so far.
    pub(crate) fn progress(
        &self,
        plugin: &Arc<str>,
        log: &PluginLog,
        call: ProgressingCall<'_>,
        progress: f64,
        total: Option<f64>,
        message: Unmasked<Option<String>>,
    ) {
        // Nobody can follow any number.
        if self.progress.take(Instant::now()).is_none() {
            return;
        }
        let ProgressingCall { id, client } = call;
        if client.is_none() && !self.news.events().are_heard() {
            return;
        }
        let message = log.masked(message).into_inner();
        let message = message.map(|message| cut(&message, MAX_MESSAGE_BYTES).to_string());
        if let Some(client) = client {
            client.progress(Progress::new(progress, total, message.clone()));
        }
        self.news.events().publish(|| {
            let call_id = cut(id, MAX_MESSAGE_BYTES).to_string();
            Event::Progress { plugin: plugin.clone(), call_id, progress, total, message }
        });
    }
}

impl notify::Host for CapabilityView<'_, NotifyCapability> {
    fn resource_updated(&mut self, uri: String) -> wasmtime::Result<()> {
        let uri = Unmasked::new(uri);
        self.state.resource_updated(self.calls.plugin(), self.calls.log(), uri);
        Ok(())
    }

    fn contributions_changed(&mut self) -> wasmtime::Result<()> {
        self.state.contributions_changed(self.calls.plugin());
        Ok(())
    }

    fn progress(
        &mut self,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        // Of a call that is over nobody waits for news.
        if self.calls.has(&call_id) {
            let (plugin, log) = (self.calls.plugin(), self.calls.log());
            let call =
                ProgressingCall { id: &call_id, client: self.calls.progress_client(&call_id) };
            self.state.progress(plugin, log, call, progress, total, Unmasked::new(message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::bindings::notify::Host;
    use crate::capability::host_capability::CapabilityContext;
    use crate::capability::host_state::InstanceConfig;
    use crate::capability::served_calls::ServedCalls;
    use crate::observe::event::Subscription;
    use tenon_config::grant::Grants;
    use tenon_config::limits::Limits;
    use wasmtime::component::ResourceTable;

    /// What a flood of news comes to: of progress, and of resources.
    fn heard(news: &mut Subscription) -> (u64, u64) {
        let (mut progress, mut updates) = (0, 0);
        while let Some(event) = news.try_next() {
            match event {
                Event::Progress { call_id, .. } => {
                    assert_eq!(call_id, "served");
                    progress += 1;
                }
                Event::ResourceUpdated { .. } => updates += 1,
                other => panic!("{other:?}"),
            }
        }
        (progress, updates)
    }

    #[test]
    fn news_of_each_kind_come_at_the_rate_of_the_limit_and_of_calls_that_are_served() {
        let limits = Limits { log_rate: 3, ..Limits::default() };
        let context: Arc<CapabilityContext> =
            InstanceConfig::without_grants("p", limits.clone()).context;
        let notifications = PluginNotifications::default();
        let mut state = NotifyCapability::prepare(&PrepareContext {
            context: &context,
            grants: &Grants::default(),
            limits: &limits,
            settings: &Default::default(),
            secrets: &Arc::default(),
            news: &notifications,
            child: None,
            server: None,
            remote: None,
        });
        let (mut table, mut calls) = (ResourceTable::new(), ServedCalls::new(context));
        calls.begin("served".into(), None);
        let mut news = notifications.events().subscribe();
        let mut view = CapabilityView::<NotifyCapability> {
            state: &mut state,
            table: &mut table,
            calls: &calls,
        };
        let began = Instant::now();
        for _ in 0..1000 {
            view.progress("over".into(), 1.0, None, None).unwrap();
            view.progress("served".into(), 1.0, None, None).unwrap();
            view.resource_updated("a:b".into()).unwrap();
        }
        let (progress, updates) = heard(&mut news);
        // At once 5 seconds' worth of each, and what the time that it takes adds to that.
        let expected = 15..=15 + 3 * (began.elapsed().as_secs() + 1);
        assert!(expected.contains(&progress), "{progress}");
        assert!(expected.contains(&updates), "{updates}");
    }
}
