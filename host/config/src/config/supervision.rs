//! `[supervision]`

use serde::Deserialize;
use std::num::NonZeroU32;
use std::time::Duration;

/// How servers are kept running: `[supervision]` of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Supervision {
    /// How often a server is started again within [`Supervision::restart_window`]. One that ends
    /// more often has failed, until it is restarted.
    pub max_restarts: u32,
    /// See [`Supervision::max_restarts`].
    #[serde(with = "humantime_serde")]
    pub restart_window: Duration,
    /// How long to wait before the first restart in a window, more or less; before each further one
    /// twice as long.
    #[serde(with = "humantime_serde")]
    pub backoff: Duration,
    /// The longest time to wait before a restart.
    #[serde(with = "humantime_serde")]
    pub max_backoff: Duration,
    /// How many calls in a row may get no answer before no more are tried for a while.
    pub breaker_failures: u32,
    /// How long no calls are tried then. After it one is, and if it gets an answer, all are.
    #[serde(with = "humantime_serde")]
    pub breaker_cooldown: Duration,
    /// How long a server may take to end, each time it is asked more firmly: by the end of its
    /// input, by a signal, by force.
    #[serde(with = "humantime_serde")]
    pub shutdown_grace: Duration,
    /// The longest message of a server, in bytes. A longer one costs its request.
    pub max_message: usize,
    /// How many servers are started at a time; where nothing is said, as many as there are
    /// processors, and two at least. A server that takes longer than ten seconds to start lets the
    /// next one begin.
    pub concurrent_starts: Option<NonZeroU32>,
}

impl Default for Supervision {
    fn default() -> Self {
        Self {
            max_restarts: 5,
            restart_window: Duration::from_secs(60),
            backoff: Duration::from_millis(250),
            max_backoff: Duration::from_secs(10),
            breaker_failures: 5,
            breaker_cooldown: Duration::from_secs(30),
            shutdown_grace: Duration::from_secs(5),
            max_message: 16 << 20,
            concurrent_starts: None,
        }
    }
}
