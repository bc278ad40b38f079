//! What the groups share: clocks, platforms, and calls whose answers are checked.

use serde_json::Value;
use std::time::{Duration, Instant};
use tenon_host::{Allocation, Builder, Call, Config, HostEnvironment, Platform};

/// The rounds of what takes long, and of what does not; the median of them counts.
const ROUNDS: (usize, usize) = (3, 7);

/// From when on a turn takes long.
const LONG: Duration = Duration::from_millis(500);

/// How long a round lasts that has many turns.
const ROUND: Duration = Duration::from_millis(20);

/// The most turns of a round.
const MAX_TURNS: u32 = 1_000_000;

/// The median time of a turn.
pub(crate) async fn time(mut turn: impl AsyncFnMut()) -> Duration {
    let mut turns = async |turns: u32| {
        let began = Instant::now();
        for _ in 0..turns {
            turn().await;
        }
        began.elapsed() / turns
    };
    // The first one fills caches.
    let first = turns(1).await;
    let each = if first > LONG { first } else { turns(1).await };
    let count = ROUND.as_nanos() / each.as_nanos().max(1);
    let count = u32::try_from(count).unwrap_or(MAX_TURNS).clamp(1, MAX_TURNS);
    median_time(each > LONG, async || turns(count).await).await
}

/// The median of times that rounds measure themselves.
pub(crate) async fn median_time(
    is_long: bool,
    mut round: impl AsyncFnMut() -> Duration,
) -> Duration {
    let rounds = if is_long { ROUNDS.0 } else { ROUNDS.1 };
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        times.push(round().await);
    }
    times.sort_unstable();
    times[rounds / 2]
}

/// A builder with this configuration, in an environment without a cache.
pub(crate) fn builder(configuration: &str) -> Builder {
    let config = Config::parse(configuration, "/tenon.toml").expect("the configuration is read");
    let host_environment = HostEnvironment { cache: None, ..HostEnvironment::of_process() };
    Platform::builder().host_environment(host_environment).config(config)
}

/// A platform with this configuration, whose plugins are all there.
pub(crate) async fn platform(configuration: &str, allocation: Allocation) -> Platform {
    let platform = builder(configuration).allocation(allocation).build().await;
    let platform = platform.expect("the platform is built");
    assert_ready(&platform);
    platform
}

/// Panics if a plugin is not there.
pub(crate) fn assert_ready(platform: &Platform) {
    let reports = platform.plugins();
    let missing = reports.iter().find(|report| report.detail.is_some());
    assert!(missing.is_none(), "{missing:?}");
    assert!(platform.diagnostics().is_empty(), "{:?}", platform.diagnostics());
}

/// Calls a tool, and panics unless it answers with this text.
pub(crate) async fn call(platform: &Platform, tool: &str, arguments: Value, expected: &str) {
    let result = platform.call(Call::new(tool, arguments)).await.expect("an answer");
    let answer = result.plain_text();
    assert!(answer == expected, "{} bytes: {:.100}", answer.len(), answer);
}
