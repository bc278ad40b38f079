//! Which resources somebody wants news of.

use super::table::{Entry, find};
use crate::{Error, instance};

/// How many resources may be subscribed to. Who subscribes to more does so to no end.
const MOST: usize = 10_000;

/// What is subscribed to at this instance, in order.
#[derive(Default)]
struct Subscriptions(Vec<String>);

impl Subscriptions {
    /// Where a URI is, or would be.
    fn position(&self, uri: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|known| known.as_str().cmp(uri))
    }
}

/// Whether a resource is subscribed to at this instance.
///
/// A shared instance (`instance = "shared"` under `[runtime]`) keeps its subscriptions as long as it
/// lives; any other does not know of them.
pub fn is_subscribed(uri: &str) -> bool {
    instance::with(|subscriptions: &mut Subscriptions| subscriptions.position(uri).is_ok())
}

/// What is subscribed to at this instance, for plugins that watch what others want to know of.
pub fn subscribed() -> Vec<String> {
    instance::with(|subscriptions: &mut Subscriptions| subscriptions.0.clone())
}

/// Subscribes to a resource of one of these.
#[doc(hidden)]
pub fn subscribe(entries: &[Entry], uri: String) -> Result<(), Error> {
    if find(entries, &uri).is_none() {
        return Err(Error::not_found(format!("this plugin has no news of \"{uri}\"")));
    }
    instance::with(|subscriptions: &mut Subscriptions| match subscriptions.position(&uri) {
        Err(_) if subscriptions.0.len() >= MOST => {
            Err(Error::unavailable(format!("{MOST} resources are subscribed to already")))
        }
        Err(position) => {
            subscriptions.0.insert(position, uri);
            Ok(())
        }
        Ok(_) => Ok(()),
    })
}

/// Ends the subscription to a resource.
#[doc(hidden)]
pub fn unsubscribe(uri: &str) {
    instance::with(|subscriptions: &mut Subscriptions| {
        if let Ok(position) = subscriptions.position(uri) {
            subscriptions.0.remove(position);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::resource::entry;

    /// Has news.
    #[crate::resource("a:b")]
    async fn news() -> String {
        String::new()
    }

    const ALL: &[Entry] = &[entry::<news>()];

    #[test]
    fn what_has_no_news_cannot_be_subscribed_to() {
        let error = subscribe(ALL, "a:c".into()).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
        assert!(!is_subscribed("a:c"));
    }

    #[test]
    fn subscriptions_end() {
        subscribe(ALL, "a:b".into()).unwrap();
        subscribe(ALL, "a:b".into()).unwrap();
        assert_eq!(subscribed(), ["a:b"]);
        unsubscribe("a:b");
        unsubscribe("a:b");
        assert!(!is_subscribed("a:b"));
    }
}
