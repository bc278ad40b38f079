//! News of the platform for clients: lists that have changed, and resources that clients have subscribed to.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tenon_host::{DiskChange, Event, Platform};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Mutex, broadcast};

use crate::client::Outlet;
use crate::offer::Offer;
use crate::protocol::error::RpcError;
use crate::protocol::request::ListKind;
use crate::protocol::write;
use crate::request_handler::{LISTS, RequestHandler};

/// How long changes are gathered, so that a reload of many plugins is one change of their lists.
const GATHERING_TIME: Duration = Duration::from_millis(20);

/// The most news that wait for a client that does not read them. It misses the oldest.
const MAX_QUEUED: usize = 256;

/// Something that clients may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Change {
    /// A list is another one.
    List(ListKind),
    /// A resource is another one.
    Resource(Arc<str>),
}

impl Change {
    /// The notification, with a `_meta` where the client's era has one.
    pub(crate) fn notification(&self, meta: Option<&str>) -> String {
        let meta = meta.map(|meta| format!(r#""_meta":{meta}"#));
        let (method, member) = match self {
            Self::List(ListKind::Tools) => ("notifications/tools/list_changed", None),
            Self::List(ListKind::Prompts) => ("notifications/prompts/list_changed", None),
            Self::List(_) => ("notifications/resources/list_changed", None),
            Self::Resource(uri) => {
                ("notifications/resources/updated", Some(format!(r#""uri":{}"#, write::text(uri))))
            }
        };
        let members: Vec<String> = meta.into_iter().chain(member).collect();
        let params = (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")));
        write::notification(method, params.as_deref())
    }
}

/// Where news come from.
pub(crate) struct ChangeBroadcast(broadcast::Sender<Change>);

impl ChangeBroadcast {
    pub(crate) fn new() -> Self {
        Self(broadcast::Sender::new(MAX_QUEUED))
    }

    pub(crate) fn subscribe(&self) -> broadcast::Receiver<Change> {
        self.0.subscribe()
    }

    /// Passes on what the platform tells, until it ends.
    pub(crate) fn follow(
        self: &Arc<Self>,
        platform: &Platform,
        offer: &Arc<Offer>,
        subscriptions: &Arc<Subscriptions>,
    ) {
        let (mut events, changes) = (platform.changes(), Arc::downgrade(self));
        let (offer, subscriptions) = (Arc::downgrade(offer), Arc::downgrade(subscriptions));
        tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let (Some(changes), Some(offer)) = (changes.upgrade(), offer.upgrade()) else {
                    return;
                };
                if let Event::ResourceUpdated { uri, .. } = event {
                    let _ = changes.0.send(Change::Resource(uri.into()));
                    continue;
                }
                log(&event);
                if !is_of_lists(&event) {
                    continue;
                }
                tokio::time::sleep(GATHERING_TIME).await;
                while let Some(event) = events.try_next() {
                    log(&event);
                    if let Event::ResourceUpdated { uri, .. } = event {
                        let _ = changes.0.send(Change::Resource(uri.into()));
                    }
                }
                offer.forget();
                // A plugin that took the place of another one knows of no subscriptions.
                if let Some(subscriptions) = subscriptions.upgrade() {
                    subscriptions.renew().await;
                }
                for kind in LISTS {
                    let _ = changes.0.send(Change::List(kind));
                }
            }
        });
    }
}

/// Tells a client of the changes that it wants, until it goes away or there are no more. `resources` gives the resources
/// that it has subscribed to.
pub(crate) async fn tell(
    mut news: broadcast::Receiver<Change>,
    outlet: &Outlet,
    meta: Option<&str>,
    wants: impl Fn(&Change) -> bool,
    resources: impl Fn() -> Vec<String>,
) {
    loop {
        let change = tokio::select! {
            change = news.recv() => change,
            () = outlet.closed() => return,
        };
        let changes = match change {
            Ok(change) => vec![change],
            // It has missed some: all that it wants may have changed.
            Err(RecvError::Lagged(_)) => {
                let resources = resources().into_iter().map(|uri| Change::Resource(uri.into()));
                LISTS.map(Change::List).into_iter().chain(resources).collect()
            }
            Err(RecvError::Closed) => return,
        };
        for change in changes.into_iter().filter(&wants) {
            outlet.tell(change.notification(meta));
        }
    }
}

/// Whether lists may be others after an event. After one that was missed they may, and a plugin whose new form is not
/// loaded may have lost its former one.
fn is_of_lists(event: &Event) -> bool {
    matches!(
        event,
        Event::Registered { .. }
            | Event::Reloaded { .. }
            | Event::NotReloaded { .. }
            | Event::Missed { .. }
    )
}

/// Tells the operator of changes of plugins: nobody else sees them.
fn log(event: &Event) {
    match event {
        Event::Reloaded { plugin, change: DiskChange::Removed } => {
            tracing::warn!(
                "plugin \"{plugin}\" is unloaded: it is gone, disabled, or not trusted any more"
            );
        }
        Event::Reloaded { plugin, .. } => tracing::info!("plugin \"{plugin}\" is loaded anew"),
        Event::NotReloaded { plugin: Some(plugin), problem } => {
            tracing::warn!("plugin \"{plugin}\" is not loaded as it is now: {problem}");
        }
        Event::NotReloaded { plugin: None, problem } => tracing::warn!("{problem}"),
        _ => {}
    }
}

/// The resources that clients have subscribed to. A plugin is asked once for each.
#[derive(Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, Subscribed>>);

/// A resource that clients have subscribed to.
struct Subscribed {
    /// How many.
    clients: usize,
    /// On whose behalf the plugin was asked.
    work: Arc<RequestHandler>,
}

/// One client's subscription. Dropping it ends it.
pub(crate) struct ClientSubscription {
    uri: String,
    work: Arc<RequestHandler>,
    subscriptions: Weak<Subscriptions>,
}

impl Subscriptions {
    /// Subscribes a resource for a client.
    pub(crate) async fn subscribe(
        self: &Arc<Self>,
        work: &Arc<RequestHandler>,
        uri: &str,
    ) -> Result<ClientSubscription, RpcError> {
        let mut all = self.0.lock().await;
        match all.get_mut(uri) {
            Some(subscribed) => subscribed.clients += 1,
            None => {
                work.subscribe(uri, true).await?;
                all.insert(uri.to_string(), Subscribed { clients: 1, work: work.clone() });
            }
        }
        let (uri, work) = (uri.to_string(), work.clone());
        Ok(ClientSubscription { uri, work, subscriptions: Arc::downgrade(self) })
    }

    /// Subscribes all resources anew.
    async fn renew(&self) {
        for (uri, subscribed) in &*self.0.lock().await {
            if let Err(error) = subscribed.work.subscribe(uri, true).await {
                tracing::warn!("{uri:?} is not subscribed any more: {}", error.message);
            }
        }
    }

    async fn unsubscribe(&self, work: &RequestHandler, uri: &str) {
        let mut all = self.0.lock().await;
        let Some(subscribed) = all.get_mut(uri) else { return };
        subscribed.clients -= 1;
        if subscribed.clients == 0 {
            all.remove(uri);
            if let Err(error) = work.subscribe(uri, false).await {
                tracing::debug!("the subscription of {uri:?} does not end: {}", error.message);
            }
        }
    }
}

impl Drop for ClientSubscription {
    fn drop(&mut self) {
        let Some(subscriptions) = self.subscriptions.upgrade() else { return };
        let (uri, work) = (std::mem::take(&mut self.uri), self.work.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { subscriptions.unsubscribe(&work, &uri).await });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_in_the_words_of_the_era() {
        let check = |change: Change, meta: Option<&str>, expected: &str| {
            assert_eq!(change.notification(meta), format!(r#"{{"jsonrpc":"2.0",{expected}}}"#));
        };
        check(
            Change::List(ListKind::Tools),
            None,
            r#""method":"notifications/tools/list_changed""#,
        );
        check(
            Change::List(ListKind::Resources),
            Some(r#"{"x":1}"#),
            r#""method":"notifications/resources/list_changed","params":{"_meta":{"x":1}}"#,
        );
        check(
            Change::Resource("a:\"b".into()),
            None,
            r#""method":"notifications/resources/updated","params":{"uri":"a:\"b"}"#,
        );
        check(
            Change::Resource("a:b".into()),
            Some("{}"),
            r#""method":"notifications/resources/updated","params":{"_meta":{},"uri":"a:b"}"#,
        );
    }
}
