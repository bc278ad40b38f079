//! How one tool is called: what its plugin says of it, and what the operator says about that.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;
use tenon_config::call_policy::ToolCallPolicy;
use tenon_config::config::{DEFAULT_RETRY_BACKOFF, SideEffects, ToolSettings};
use tenon_types::{Error, ErrorCode, ToolAnnotations};

use crate::call::Failure;

/// The longest wait between attempts.
const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// How one tool is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallSettings {
    pub(crate) enabled: bool,
    /// How long one attempt may take, where it is less than the plugin's limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) attempts: u32,
    backoff: Duration,
    /// What decides of its calls; nothing where each is made.
    pub(crate) policy: Option<Arc<ToolCallPolicy>>,
}

impl CallSettings {
    /// How what is no tool is asked for: once, with the plugin's own limit of time.
    pub(crate) const ONCE: Self = Self {
        enabled: true,
        timeout: None,
        attempts: 1,
        backoff: DEFAULT_RETRY_BACKOFF,
        policy: None,
    };

    /// How a tool is called by what the operator says of it and its plugin's hints, as far as they are
    /// believed.
    pub(crate) fn new(hints: Option<&ToolAnnotations>, said: ToolSettings) -> Self {
        let repeatable = match said.side_effects {
            Some(effects) => effects != SideEffects::Repeated,
            None => hints.is_some_and(|hints| {
                hints.idempotent == Some(true) || hints.read_only == Some(true)
            }),
        };
        let attempts = said.max_attempts.map_or(1, NonZeroU32::get);
        Self {
            enabled: said.enabled.unwrap_or(true),
            timeout: said.timeout,
            attempts: if repeatable { attempts } else { 1 },
            backoff: said.retry_backoff.unwrap_or(DEFAULT_RETRY_BACKOFF),
            policy: None,
        }
    }

    /// The same, with what decides of its calls.
    pub(crate) fn with_policy(self, policy: ToolCallPolicy) -> Self {
        let policy = (!policy.allows_all()).then(|| Arc::new(policy));
        Self { policy, ..self }
    }

    /// How long to wait after the attempt of this number, counted from one, has failed; nothing
    /// where there is to be no other.
    pub(crate) fn wait(&self, attempt: u32, failure: &Failure) -> Option<Duration> {
        if attempt >= self.attempts {
            return None;
        }
        let asked = match failure {
            Failure::Answered(Error { code: ErrorCode::Unavailable, retry_after, .. }) => {
                retry_after.unwrap_or_default()
            }
            Failure::Answered(Error { code: ErrorCode::Timeout, .. })
            | Failure::Deadline(_)
            | Failure::Lost(_) => Duration::ZERO,
            _ => return None,
        };
        let doubled = self.backoff.saturating_mul(1 << (attempt - 1).min(16));
        Some(doubled.max(asked).min(MAX_BACKOFF))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_config::config::Config;
    use tenon_config::config::combine::ToolRules;
    use tenon_config::discover::PluginOrigin;

    fn constraints(
        config: &str,
        read_only: Option<bool>,
        idempotent: Option<bool>,
    ) -> CallSettings {
        let config = Config::parse(config, "tenon.toml").expect("it is read");
        let annotations =
            ToolAnnotations { read_only, destructive: None, idempotent, open_world: None };
        let rules = ToolRules::new(&[config]);
        CallSettings::new(Some(&annotations), rules.of("p__t", "p__t", PluginOrigin::Config.into()))
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

    // MCP.md: E2
    #[test]
    fn only_what_may_be_repeated_is() {
        let rule = "tools.p__t.max_attempts = 3";
        assert_eq!(constraints(rule, None, None).attempts, 1);
        // What a plugin hints does nothing that its operator has not asked for.
        let hinted = constraints("", Some(true), Some(true));
        assert_eq!(hinted, constraints("", None, None));
        assert_eq!(hinted, CallSettings::ONCE);
        assert_eq!(constraints(rule, Some(true), None).attempts, 3);
        assert_eq!(constraints(rule, None, Some(true)).attempts, 3);
        let told = "tools.p__t = { max_attempts = 3, side_effects = \"repeated\" }";
        assert_eq!(constraints(told, Some(true), None).attempts, 1);
        let of_nobody = |rule: &str| {
            let config = Config::parse(rule, "tenon.toml").expect("it is read");
            CallSettings::new(
                None,
                ToolRules::new(&[config]).of("p__t", "p__t", PluginOrigin::Config.into()),
            )
            .attempts
        };
        assert_eq!(of_nobody(rule), 1);
        assert_eq!(
            of_nobody("tools.p__t = { max_attempts = 3, side_effects = \"idempotent\" }"),
            3
        );
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
        let busy = Error::unavailable("busy").retry_after(Some(Duration::from_secs(9)));
        assert_eq!(seconds(1, &Failure::Answered(busy)), Some(9));
        assert_eq!(seconds(1, &Failure::Trapped("x".into())), None);
        assert_eq!(seconds(1, &Failure::Answered(Error::failed("x"))), None);
    }
}
