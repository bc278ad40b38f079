//! How often clients may call tools: a token bucket for each client and tool.

use governor::clock::Clock;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::lock;
use crate::offer::Profile;

/// A client and a tool.
type Key = (Arc<str>, String);

type Limiter = RateLimiter<Key, HashMapStateStore<Key>, RuntimeClock>;

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

impl CallRates {
    /// Counts a call, if it may be made now.
    ///
    /// # Errors
    ///
    /// How long the client has to wait.
    pub(crate) fn count(
        &self,
        profile: &Profile,
        principal: &Arc<str>,
        tool: &str,
    ) -> Result<(), Duration> {
        let Some(calls) = profile.calls_per_minute else { return Ok(()) };
        let limiter = {
            let mut limiters = lock(&self.0);
            let quota = Quota::per_minute(calls);
            let new = || Arc::new(Limiter::new(quota, Default::default(), RuntimeClock));
            limiters.entry(profile.name.clone()).or_insert_with(new).clone()
        };
        if limiter.len() > MAX_IDLE_BUCKETS {
            limiter.retain_recent();
        }
        let counted = limiter.check_key(&(principal.clone(), tool.to_string()));
        counted.map_err(|early| early.wait_time_from(RuntimeClock.now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    #[tokio::test(start_paused = true)]
    async fn each_client_has_its_calls_of_each_tool() {
        let rates = CallRates::default();
        let profile = Profile { calls_per_minute: NonZeroU32::new(2), ..Profile::default() };
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let check = |principal, tool: &str, expected: Result<(), u64>| {
            let counted = rates.count(&profile, principal, tool);
            assert_eq!(counted.map_err(|wait| wait.as_secs()), expected, "{principal} {tool}");
        };
        check(&ada, "a", Ok(()));
        check(&ada, "a", Ok(()));
        check(&ada, "a", Err(30));
        check(&ada, "b", Ok(()));
        check(&bob, "a", Ok(()));
        tokio::time::advance(Duration::from_secs(31)).await;
        check(&ada, "a", Ok(()));
        check(&ada, "a", Err(29));
        let all = Profile { calls_per_minute: None, ..profile.clone() };
        assert_eq!(rates.count(&all, &ada, "a"), Ok(()));
    }
}
