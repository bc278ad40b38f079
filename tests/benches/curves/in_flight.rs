//! By the number of calls in flight: of one shared instance, of fresh instances from a pool, and of a server behind the bridge.

use futures::future::join_all;
use serde_json::json;
use tenon_host::{Allocation, Platform};

use crate::curve::{Curve, CurveReport};
use crate::guests;
use crate::support::{call, platform, time};

const SIZES: &[usize] = &[1, 2, 8, 32, 128, 512];

/// How many calls a round has, however many of them are in flight at a time.
const CALLS: usize = 1_024;

/// The server that takes no time.
const SERVER: &str = env!("CARGO_BIN_EXE_rude-server");

pub(crate) async fn all(report: &mut CurveReport) {
    let component = |mode: &str| {
        format!(
            "plugins.wasm = [{{ path = {:?}, id = \"p\", instance = {mode:?} }}]",
            guests::MISBEHAVE
        )
    };
    let server = format!("plugins.mcp = [{{ name = \"p\", command = {SERVER:?} }}]");
    for (what, configuration, allocation, exponent, reason) in [
        (
            "each call of one shared instance",
            component("shared"),
            Allocation::OnDemand,
            0.0,
            "calls only share the instance",
        ),
        (
            "each call of fresh instances from a pool",
            component("fresh"),
            Allocation::Pool { instances: 1_024 },
            0.0,
            "each call has an instance of its own",
        ),
        (
            "each call of a server behind the bridge",
            server,
            Allocation::OnDemand,
            0.0,
            "messages only share the pipes",
        ),
    ] {
        let mut curve = Curve::new(what, "calls in flight", exponent, reason);
        let platform = platform(&configuration, allocation).await;
        for &size in SIZES {
            let round = time(async || calls(&platform, size).await).await;
            curve.time(size, round / CALLS as u32);
        }
        platform.shutdown().await;
        report.add(curve);
    }
}

/// Makes all calls of a round: where one has its answer, the next one begins.
async fn calls(platform: &Platform, in_flight: usize) {
    join_all((0..in_flight).map(async |place| {
        for number in (place..CALLS).step_by(in_flight) {
            let text = number.to_string();
            call(platform, "p__echo", json!({ "text": text }), &text).await;
        }
    }))
    .await;
}
