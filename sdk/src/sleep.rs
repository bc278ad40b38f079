//! Waiting for some time.

use std::time::Duration;

use crate::imports::clock;

/// Waits for some time, while other calls of the instance go on. In a test, [`testing::Host`](crate::testing::Host)
/// lets the time pass at once.
///
/// ```no_run
/// # async fn example() {
/// use std::time::Duration;
///
/// tenon_sdk::sleep(Duration::from_secs(2)).await;
/// # }
/// ```
pub async fn sleep(time: Duration) {
    clock::wait_for(time).await;
}

/// The same over `wasi:clocks`.
#[cfg(target_arch = "wasm32")]
pub(crate) mod component {
    use std::time::Duration;

    pub(crate) async fn wait_for(time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        wasip3::clocks::monotonic_clock::wait_for(nanoseconds).await;
    }
}
