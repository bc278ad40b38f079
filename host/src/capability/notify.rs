//! `notify`: news from a plugin, for the host to act on after the call.

use std::sync::Arc;
use std::time::Instant;
use tenon_types::text::cut;
use wasmtime::component::Linker;

use super::lifecycle::{Holds, HostCapability, InView, Preparation, View};
use crate::call::mask::Unmasked;
use crate::capability::bindings::notify;
use crate::observe::event::Event;
use crate::observe::{PluginNotifications, RateLimiter};

/// The longest message of progress, and the longest id, in bytes.
const MAX_MESSAGE_BYTES: usize = 1 << 10;

pub(crate) struct NotifyCapability;

/// How much news a plugin may still give, and where it goes.
pub(crate) struct PluginNews {
    progress: RateLimiter,
    /// News of resources, which must not be in the way of the other.
    updates: RateLimiter,
    news: PluginNotifications,
}

impl HostCapability for NotifyCapability {
    const NAME: &'static str = "notify";
    type Plugin = Arc<PluginNews>;
    type Instance = Arc<PluginNews>;

    fn prepare(preparation: &Preparation<'_>) -> Self::Plugin {
        let rate = preparation.limits.log_rate;
        Arc::new(PluginNews {
            progress: RateLimiter::of(rate),
            updates: RateLimiter::of(rate),
            news: preparation.news.clone(),
        })
    }

    fn instantiate(news: &Self::Plugin) -> Self::Instance {
        news.clone()
    }

    fn link<T: Holds<Self>>(linker: &mut Linker<T>) -> wasmtime::Result<()> {
        notify::add_to_linker::<_, InView<Self>>(linker, T::view)
    }
}

impl notify::Host for View<'_, NotifyCapability> {
    fn resource_updated(&mut self, uri: String) -> wasmtime::Result<()> {
        // A URI that is cut is another one.
        if uri.len() > MAX_MESSAGE_BYTES || self.state.updates.take(Instant::now()).is_none() {
            return Ok(());
        }
        let uri = Unmasked::new(uri);
        self.state.news.events().publish(|| {
            let plugin = self.calls.plugin().clone();
            let uri = self.calls.log().masked(uri).into_inner();
            Event::ResourceUpdated { plugin, uri }
        });
        Ok(())
    }

    fn changed(&mut self) -> wasmtime::Result<()> {
        self.state.news.note_change(self.calls.plugin());
        Ok(())
    }

    fn progress(
        &mut self,
        call_id: String,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> wasmtime::Result<()> {
        // Of a call that is over nobody waits for news, and nobody can follow any number.
        if !self.calls.has(&call_id) || self.state.progress.take(Instant::now()).is_none() {
            return Ok(());
        }
        let message = Unmasked::new(message);
        self.state.news.events().publish(|| {
            let plugin = self.calls.plugin().clone();
            // It is that of a call which is served.
            let call_id = cut(&call_id, MAX_MESSAGE_BYTES).to_string();
            let message = self.calls.log().masked(message).into_inner();
            let message = message.map(|message| cut(&message, MAX_MESSAGE_BYTES).into());
            Event::Progress { plugin, call_id, progress, total, message }
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::bindings::notify::Host;
    use crate::capability::lifecycle::PluginContext;
    use crate::capability::served::ServedCalls;
    use crate::capability::state::InstanceConfig;
    use crate::observe::event::Subscription;
    use tenon_config::discover::PluginKind;
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
        let context: Arc<PluginContext> =
            InstanceConfig::without_grants("p", limits.clone()).context;
        let notifications = PluginNotifications::default();
        let mut state = NotifyCapability::prepare(&Preparation {
            kind: PluginKind::Wasm,
            context: &context,
            grants: &Grants::default(),
            limits: &limits,
            settings: &Default::default(),
            secrets: &Arc::default(),
            news: &notifications,
            child: None,
            server: None,
        });
        let (mut table, mut calls) = (ResourceTable::new(), ServedCalls::new(context));
        calls.begin("served".into(), None);
        let mut news = notifications.events().subscribe();
        let mut view =
            View::<NotifyCapability> { state: &mut state, table: &mut table, calls: &calls };
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
