//! How one tool is called: what its plugin says of it, and what the operator says about that.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::bindings::types::{Error, ToolAnnotations};
use crate::config::{SideEffects, ToolRule};
use crate::runtime::Failure;
use crate::text::fits;

/// How long to wait before a second attempt, where nothing is said.
const BACKOFF: Duration = Duration::from_millis(200);

/// The longest wait between attempts.
const LONGEST: Duration = Duration::from_secs(30);

/// How one tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Constraints {
    pub(crate) enabled: bool,
    /// How long one attempt may take, where it is less than the plugin's limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempts: u32,
    backoff: Duration,
}

impl Constraints {
    /// What rules come to for a tool of this name. The first rule that says something holds.
    pub(crate) fn new(
        name: &str,
        annotations: &ToolAnnotations,
        rules: &[(String, ToolRule)],
    ) -> Self {
        let mut said = ToolRule::default();
        for (_, rule) in rules.iter().filter(|(pattern, _)| fits(pattern, name)) {
            let ToolRule { enabled, timeout, max_attempts, retry_backoff, side_effects } = rule;
            said.enabled = said.enabled.or(*enabled);
            said.timeout = said.timeout.or(*timeout);
            said.max_attempts = said.max_attempts.or(*max_attempts);
            said.retry_backoff = said.retry_backoff.or(*retry_backoff);
            said.side_effects = said.side_effects.or(*side_effects);
        }
        let repeatable = match said.side_effects {
            Some(effects) => effects != SideEffects::Repeated,
            None => annotations.idempotent == Some(true) || annotations.read_only == Some(true),
        };
        let attempts = said.max_attempts.map_or(1, NonZeroU32::get);
        Self {
            enabled: said.enabled.unwrap_or(true),
            timeout: said.timeout,
            attempts: if repeatable { attempts } else { 1 },
            backoff: said.retry_backoff.unwrap_or(BACKOFF),
        }
    }

    /// How long to wait after the attempt of this number, counted from one, has failed; nothing
    /// where there is to be no other.
    pub(crate) fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let asked = match failure {
            Failure::Answered(Error::Unavailable(unavailable)) => {
                unavailable.retry_after.map_or(Duration::ZERO, Duration::from_millis)
            }
            Failure::Answered(Error::Timeout(_)) | Failure::Deadline(_) | Failure::Lost(_) => {
                Duration::ZERO
            }
            _ => return None,
        };
        let doubled = self.backoff.saturating_mul(1 << (attempt - 1).min(16));
        Some(doubled.max(asked).min(LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::types::Unavailability;
    use crate::config::Config;

    fn constraints(config: &str, read_only: Option<bool>, idempotent: Option<bool>) -> Constraints {
        let config = Config::parse(config, "tenon.toml").expect("it is read");
        let annotations =
            ToolAnnotations { read_only, destructive: None, idempotent, open_world: None };
        Constraints::new("p__t", &annotations, &config.tools)
    }

    #[test]
    fn the_rule_that_says_more_holds() {
        let made = constraints(
            "tools = { \"*\" = { timeout = \"1s\", max_attempts = 2 }, \"p__*\" = { timeout = \"2s\" }, \"p__t\" = { side_effects = \"none\" } }",
            None,
            None,
        );
        assert_eq!(made.timeout, Some(Duration::from_secs(2)));
        assert_eq!(made.attempts, 2);
    }

    #[test]
    fn only_what_may_be_repeated_is() {
        let rule = "tools.p__t.max_attempts = 3";
        assert_eq!(constraints(rule, None, None).attempts, 1);
        assert_eq!(constraints(rule, Some(true), None).attempts, 3);
        assert_eq!(constraints(rule, None, Some(true)).attempts, 3);
        let told = "tools.p__t = { max_attempts = 3, side_effects = \"repeated\" }";
        assert_eq!(constraints(told, Some(true), None).attempts, 1);
    }

    #[test]
    fn waits_grow_and_only_failures_that_may_pass_are_waited_for() {
        let made = constraints(
            "tools.p__t = { max_attempts = 4, retry_backoff = \"1s\" }",
            Some(true),
            None,
        );
        let lost = Failure::Lost("x".into());
        let seconds = |attempt, failure: &Failure| made.wait(attempt, failure).map(|w| w.as_secs());
        assert_eq!(
            [1, 2, 3, 4].map(|attempt| seconds(attempt, &lost)),
            [Some(1), Some(2), Some(4), None]
        );
        let busy = Unavailability { message: "busy".into(), retry_after: Some(9_000) };
        assert_eq!(seconds(1, &Failure::Answered(Error::Unavailable(busy))), Some(9));
        assert_eq!(seconds(1, &Failure::Trapped("x".into())), None);
        assert_eq!(seconds(1, &Failure::Answered(Error::Failed("x".into()))), None);
    }
}
