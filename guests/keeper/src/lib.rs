//! Keeps count between calls, which a shared instance can, and ends those that nobody waits for.

use std::future::pending;

use tenon_sdk::{Context, Result, Value, host_tools, instance, plugin, tool};

plugin!(tools: [count, wait, wait_for_a_tool, wait_politely]);

/// What the instance keeps.
#[derive(Default)]
struct CallCounts {
    calls: u32,
    /// How many calls of `wait` were dropped.
    dropped: u32,
}

/// Counts this call, and says how many there were and how many others were dropped.
#[tool]
async fn count() -> String {
    instance::with(|tally: &mut CallCounts| {
        tally.calls += 1;
        format!("{} calls, {} dropped", tally.calls, tally.dropped)
    })
}

struct DroppedCallCounter;

impl Drop for DroppedCallCounter {
    fn drop(&mut self) {
        instance::with(|tally: &mut CallCounts| tally.dropped += 1);
    }
}

/// Waits for ever.
#[tool]
async fn wait() {
    let _waiting = DroppedCallCounter;
    pending().await
}

/// Waits for another tool.
#[tool]
async fn wait_for_a_tool(name: String, arguments: Value) -> Result<String> {
    let _waiting = DroppedCallCounter;
    Ok(host_tools::call(name, arguments).await?.plain_text())
}

/// Waits until nobody wants the answer, and counts itself.
#[tool]
async fn wait_politely(context: &Context) -> String {
    context.cancelled().await;
    count().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::testing::Host;

    #[test]
    fn an_instance_counts_its_own_calls() {
        let host = Host::new();
        host.run(count());
        assert_eq!(host.run(count()), "2 calls, 0 dropped");
        host.restart();
        assert_eq!(host.run(count()), "1 calls, 0 dropped");
    }
}
