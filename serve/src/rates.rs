//! How often clients may call tools: a token bucket for each client and tool.

use governor::clock::Clock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use metrics::{counter, describe_counter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock;
use crate::offer::Peer;

/// A client and a tool.
type Key = (Arc<str>, String);

type Limiter = RateLimiter<Key, HashMapStateStore<Key>, RuntimeClock>;

/// The calls that were not made because their client had made too many.
const LIMITED_CALLS: &str = "tenon_serve_rate_limited_calls_total";

/// How many buckets there may be before those that are full again are dropped.
const MAX_IDLE_BUCKETS: usize = 10_000;

/// The clock of the runtime, which tests set.
#[derive(Debug, Clone, Copy, Default)]
struct RuntimeClock;

impl Clock for RuntimeClock {
    type Instant = Instant;

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }
}

/// The buckets, by the names of profiles. A bucket holds the calls of one minute, and fills evenly.
#[derive(Default)]
pub(crate) struct CallRates(Mutex<HashMap<String, Arc<Limiter>>>);

/// Tells the recorder what is measured.
pub(crate) fn describe() {
    describe_counter!(LIMITED_CALLS, "Calls that were refused because their client made too many.");
    counter!(LIMITED_CALLS).increment(0);
}

impl CallRates {
    /// Counts a call, if it may be made now.
    ///
    /// # Errors
    ///
    /// How long the client has to wait.
    pub(crate) fn count(&self, peer: &Peer, tool: &str) -> Result<(), Duration> {
        let Peer { principal, is_known, profile, .. } = peer;
        let Some(calls) = profile.calls_per_minute else { return Ok(()) };
        // Where nobody is asked for a token, all are one client.
        let principal = if *is_known { principal.clone() } else { "".into() };
        let limiter = {
            let mut limiters = lock(&self.0);
            let quota = Quota::per_minute(calls);
            let new = || Arc::new(Limiter::new(quota, Default::default(), RuntimeClock));
            limiters.entry(profile.name.clone()).or_insert_with(new).clone()
        };
        if limiter.len() > MAX_IDLE_BUCKETS {
            limiter.retain_recent();
        }
        let counted = limiter.check_key(&(principal, tool.to_string()));
        counted.map_err(|early| {
            counter!(LIMITED_CALLS).increment(1);
            early.wait_time_from(RuntimeClock.now())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offer::Profile;
    use std::num::NonZeroU32;

    #[tokio::test(start_paused = true)]
    async fn each_client_has_its_calls_of_each_tool() {
        let rates = CallRates::default();
        let profile = Profile { calls_per_minute: NonZeroU32::new(2), ..Profile::default() };
        let check = |principal: &str, is_known, tool: &str, expected: Result<(), u64>| {
            let profile = Arc::new(profile.clone());
            let peer = Peer { principal: principal.into(), is_known, name: None, profile };
            let counted = rates.count(&peer, tool);
            assert_eq!(counted.map_err(|wait| wait.as_secs()), expected, "{principal} {tool}");
        };
        check("ada", true, "a", Ok(()));
        check("ada", true, "a", Ok(()));
        check("ada", true, "a", Err(30));
        check("ada", true, "b", Ok(()));
        check("bob", true, "a", Ok(()));
        // Whoever needs no token may call itself anything.
        check("x", false, "a", Ok(()));
        check("y", false, "a", Ok(()));
        check("z", false, "a", Err(30));
        tokio::time::advance(Duration::from_secs(31)).await;
        check("ada", true, "a", Ok(()));
        check("ada", true, "a", Err(29));
        let profile = Arc::new(Profile::default());
        let all = Peer { principal: "ada".into(), is_known: true, name: None, profile };
        assert_eq!(rates.count(&all, "a"), Ok(()));
    }
}
