//! What stops calls to a server that does not answer.

use std::time::Duration;
use tokio::time::Instant;

use super::{BreakerState, Supervision};

/// A circuit breaker. It counts calls that got no answer; what an answer says is none of its
/// business. Of calls that were in flight together, all of which may fail for one reason, it counts
/// one.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    /// Calls in a row without an answer.
    unanswered: u32,
    /// When the last of them was over.
    last: Option<Instant>,
    opened: Option<Instant>,
    /// The one call is on its way.
    trying: bool,
}

impl Breaker {
    pub(super) fn state(&self, now: Instant, policy: &Supervision) -> BreakerState {
        match self.opened {
            None => BreakerState::Closed,
            Some(opened) if now < opened + policy.breaker_cooldown => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// Whether a call may be tried; if not, in how long.
    pub(super) fn admit(&mut self, now: Instant, policy: &Supervision) -> Result<(), Duration> {
        let Some(opened) = self.opened else { return Ok(()) };
        let until = opened + policy.breaker_cooldown;
        if now < until {
            return Err(until - now);
        }
        match std::mem::replace(&mut self.trying, true) {
            false => Ok(()),
            true => Err(policy.breaker_cooldown),
        }
    }

    /// A call got an answer. Returns whether that closes it.
    pub(super) fn answered(&mut self) -> bool {
        std::mem::take(self).opened.is_some()
    }

    /// A call got no answer that began at `began`.
    pub(super) fn unanswered(&mut self, began: Instant, now: Instant, policy: &Supervision) {
        if !self.trying && self.last.is_some_and(|last| began < last) {
            return;
        }
        self.last = Some(now);
        self.unanswered = self.unanswered.saturating_add(1);
        if self.trying || (self.opened.is_none() && self.unanswered >= policy.breaker_failures) {
            self.opened = Some(now);
            self.trying = false;
        }
    }

    /// The caller gave up before there could be an answer.
    pub(super) fn abandoned(&mut self) {
        self.trying = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_after_calls_without_an_answer_and_closes_with_one() {
        let policy = Supervision { breaker_failures: 2, ..Supervision::default() };
        let begin = Instant::now();
        let mut breaker = Breaker::default();
        let state = |breaker: &Breaker, now| breaker.state(now, &policy);
        breaker.unanswered(begin, begin, &policy);
        assert!(!breaker.answered(), "it was closed");
        breaker.unanswered(begin, begin, &policy);
        assert_eq!(state(&breaker, begin), BreakerState::Closed);
        breaker.unanswered(begin, begin, &policy);
        assert_eq!(state(&breaker, begin), BreakerState::Open);
        assert_eq!(breaker.admit(begin, &policy), Err(policy.breaker_cooldown));
        // Calls that were on their way already say nothing new.
        let late = begin + Duration::from_secs(20);
        breaker.unanswered(late, late, &policy);

        let later = begin + policy.breaker_cooldown;
        assert_eq!(state(&breaker, later), BreakerState::HalfOpen);
        assert_eq!(breaker.admit(later, &policy), Ok(()));
        assert!(breaker.admit(later, &policy).is_err(), "one call at a time");
        breaker.unanswered(later, later, &policy);
        assert_eq!(state(&breaker, later), BreakerState::Open);

        let again = later + policy.breaker_cooldown;
        assert_eq!(breaker.admit(again, &policy), Ok(()));
        breaker.abandoned();
        assert_eq!(breaker.admit(again, &policy), Ok(()), "the one before told nothing");
        assert!(breaker.answered());
        assert_eq!(state(&breaker, again), BreakerState::Closed);
    }

    #[test]
    fn calls_that_were_in_flight_together_count_as_one() {
        let policy = Supervision { breaker_failures: 2, ..Supervision::default() };
        let (begin, mut breaker) = (Instant::now(), Breaker::default());
        let end = begin + Duration::from_secs(1);
        for _ in 0..64 {
            breaker.unanswered(begin, end, &policy);
        }
        assert_eq!(breaker.state(end, &policy), BreakerState::Closed);
        breaker.unanswered(end, end + Duration::from_secs(1), &policy);
        assert_eq!(breaker.state(end, &policy), BreakerState::Open);
    }

    #[test]
    fn states_have_one_name() {
        for state in [BreakerState::Closed, BreakerState::Open, BreakerState::HalfOpen] {
            assert_eq!(serde_json::to_value(state).unwrap(), state.to_string());
        }
        assert_eq!(BreakerState::HalfOpen.to_string(), "half-open");
    }
}
