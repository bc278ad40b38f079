//! The time of a test.

use chrono::DateTime;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tenon_host::services::Clock;

/// A clock that stands still until the test moves it. A clone is the same clock.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use serde_json::json;
/// use std::time::Duration;
/// use tenon_test_host::{TestHost, ManualClock};
///
/// let clock = ManualClock::at("2026-01-31T08:30:00Z");
/// let plugin = TestHost::script("chores.rhai").clock(&clock).start().await?;
/// plugin.call("done", json!({ "chore": "dishes" })).await?;
/// clock.advance(Duration::from_secs(7 * 24 * 60 * 60));
/// let result = plugin.call("due", json!({ "chore": "dishes" })).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<ClockState>>);

#[derive(Debug)]
struct ClockState {
    now: SystemTime,
    /// How far the clock goes on each time that it is read.
    step: Duration,
}

impl ManualClock {
    /// Makes a clock that shows a time of RFC 3339.
    ///
    /// # Panics
    ///
    /// If the text is no such time.
    pub fn at(time: &str) -> Self {
        Self::parse(time).unwrap_or_else(|problem| panic!("{problem}"))
    }

    /// Makes a clock that shows a time of RFC 3339.
    ///
    /// # Errors
    ///
    /// Says why the text is no such time.
    pub fn parse(time: &str) -> Result<Self, String> {
        let now = DateTime::parse_from_rfc3339(time)
            .map_err(|error| format!("{time:?} is no time of RFC 3339: {error}"))?;
        Ok(Self(Arc::new(Mutex::new(ClockState { now: now.into(), step: Duration::ZERO }))))
    }

    /// Has the clock go on by this much after each reading, so that no two readings are the same.
    pub fn step(self, step: Duration) -> Self {
        self.with(|reading| reading.step = step);
        self
    }

    /// Moves the clock on.
    pub fn advance(&self, by: Duration) {
        self.with(|reading| reading.now += by);
    }

    fn with<T>(&self, act: impl FnOnce(&mut ClockState) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> SystemTime {
        self.with(|reading| {
            let now = reading.now;
            reading.now += reading.step;
            now
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_stands_still_until_it_is_moved() {
        let clock = ManualClock::at("1970-01-01T01:00:10+01:00");
        let seconds =
            || clock.now().duration_since(SystemTime::UNIX_EPOCH).expect("it is later").as_secs();
        assert_eq!([seconds(), seconds()], [10, 10]);
        clock.clone().advance(Duration::from_secs(5));
        assert_eq!(seconds(), 15);
        let _same = clock.clone().step(Duration::from_secs(2));
        assert_eq!([seconds(), seconds(), seconds()], [15, 17, 19]);
    }
}
