//! Many calls at a time: so many in flight, and so many that begin at once.

use futures::future::join_all;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use tenon_host::{Allocation, Platform};
use tenon_tests::bare;
use wasmtime::Store;

use crate::table::Table;
use crate::{
    BareWasmtime, SERVERS, WasiState, arguments, bare_call, bridge, context, echo, guests, median,
    ours, platform, rmcp_client, rmcp_echo, versus,
};

/// Calls a second with 64 in flight, ours and the bare library's.
pub(crate) struct Throughput {
    what: &'static str,
    ours: f64,
    bare: (&'static str, f64),
}

pub(crate) fn print(title: &str, rows: Vec<Throughput>) {
    let mut table = Table::new(title, ["work", "tenon", "bare", "ratio", "beside"]);
    for Throughput { what, ours, bare: (beside, bare) } in rows {
        let ratio = format!("{:.2}×", ours / bare);
        table.row([
            what.into(),
            format!("{ours:.0}/s"),
            format!("{bare:.0}/s"),
            ratio,
            beside.into(),
        ]);
    }
    table.print();
}

/// How many calls are in flight at a time.
const IN_FLIGHT: u32 = 64;

/// How many calls follow each other in one of their places, in a round.
const IN_ROW: u32 = 50;

/// How many calls a round is.
const ROUND: u32 = IN_FLIGHT * IN_ROW;

/// Keeps calls in flight for a round: where one has its answer, the next one begins.
async fn round(call: impl AsyncFn()) {
    let in_row = async || {
        for _ in 0..IN_ROW {
            call().await;
        }
    };
    join_all((0..IN_FLIGHT).map(|_| in_row())).await;
}

pub(crate) async fn in_flight() -> Vec<Throughput> {
    // Which of a server's threads share a core with the client is luck, and stays as it is for long:
    // it makes a tenth of difference either way.
    const PAIRS: usize = 21;
    let mut rows = Vec::new();
    for (what, server) in SERVERS {
        let mut times = (Vec::with_capacity(PAIRS), Vec::with_capacity(PAIRS));
        for _ in 0..PAIRS {
            let platform = bridge(server).await;
            let client = rmcp_client(server).await;
            let ours = async || round(async || echo(&platform).await).await;
            let bare = async || round(async || rmcp_echo(&client).await).await;
            let (bridged, rmcp) = versus(5, 1, ours, bare).await;
            client.cancel().await.expect("the client ends");
            platform.shutdown().await;
            times.0.push(bridged);
            times.1.push(rmcp);
        }
        let (bridged, rmcp) = (median(times.0), median(times.1));
        let (ours, bare) = (per_second(ROUND, bridged), ("rmcp client", per_second(ROUND, rmcp)));
        rows.push(Throughput { what, ours, bare });
    }

    let platform = slug("shared").await;
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let mut bare = BareInstance::new(&wasm).await;
    let shared = async || round(async || ours(&platform, "w__slug").await).await;
    let (shared, beside) = versus(10, 2, shared, async || bare.round().await).await;
    platform.shutdown().await;
    let bare = ("call_concurrent", per_second(ROUND, beside));
    rows.push(Throughput {
        what: "calls of one shared instance",
        ours: per_second(ROUND, shared),
        bare,
    });
    rows
}

/// The same, where each caller is a task, so that callers use all cores: with the one instance of a plugin, and with those
/// of a plugin that says it is stateless.
pub(crate) async fn in_flight_of_tasks() -> Vec<Throughput> {
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let mut rows = Vec::new();
    for (what, instance) in
        [("one shared instance", "shared"), ("stateless instances, one for each core", "stateless")]
    {
        let platform = slug(instance).await;
        let mut bare = BareInstance::new(&wasm).await;
        let tasks = async || {
            let callers = (0..IN_FLIGHT).map(|_| {
                let platform = platform.clone();
                tokio::spawn(async move {
                    for _ in 0..IN_ROW {
                        ours(&platform, "w__slug").await;
                    }
                })
            });
            join_all(callers).await.into_iter().for_each(|caller| caller.expect("no panic"));
        };
        let (tasks, beside) = versus(10, 2, tasks, async || bare.round().await).await;
        platform.shutdown().await;
        let bare = ("call_concurrent, one core", per_second(ROUND, beside));
        rows.push(Throughput { what, ours: per_second(ROUND, tasks), bare });
    }
    rows
}

/// How many calls a second these are.
fn per_second(calls: u32, time: Duration) -> f64 {
    f64::from(calls) / time.as_secs_f64()
}

/// A platform with the tool `w__slug`, on such instances.
async fn slug(instance: &str) -> Platform {
    let wasm = guests::TEXT_TOOLS;
    let entry = format!("{{ path = {wasm:?}, id = \"w\", instance = {instance:?} }}");
    platform(&format!("plugins.wasm = [{entry}]"), Allocation::OnDemand).await
}

/// One instance of the same component, with wasmtime alone.
struct BareInstance {
    store: Store<WasiState>,
    tools: bare::Guest,
}

impl BareInstance {
    async fn new(wasm: &[u8]) -> Self {
        let (store, tools) = BareWasmtime::new(false, wasm).instance().await;
        Self { store, tools }
    }

    async fn round(&mut self) {
        let Self { store, tools } = self;
        let calls = store.run_concurrent(async |accessor| {
            round(async || {
                let arguments = arguments().to_string();
                let call = tools.call_call_tool(accessor, "slug".into(), arguments, context());
                let answer = call.await.expect("no trap");
                drop(black_box(answer.expect("an answer")));
            })
            .await;
        });
        calls.await.expect("the loop runs");
    }
}

/// How many calls begin at once in [`at_once`].
const BURST: u32 = 20_000;

/// Calls of fresh instances that all begin at once, of a host that is built as the README has it.
pub(crate) async fn at_once() -> Vec<Throughput> {
    let wasm = std::fs::read(guests::TEXT_TOOLS).expect("the guest was built");
    let bare = Arc::new(BareWasmtime::new(true, &wasm));
    let mut rows = Vec::new();
    for (what, allocation) in [
        ("fresh instances, as a host is built by default", Allocation::default()),
        ("fresh instances, on demand", Allocation::OnDemand),
    ] {
        let config = format!("plugins.wasm = [{{ path = {:?}, id = \"w\" }}]", guests::TEXT_TOOLS);
        let platform = platform(&config, allocation).await;
        let ours = async || {
            let calls = (0..BURST).map(|_| {
                let platform = platform.clone();
                tokio::spawn(async move { ours(&platform, "w__slug").await })
            });
            join_all(calls).await.into_iter().for_each(|call| call.expect("no panic"));
        };
        let beside = async || {
            let calls = (0..BURST).map(|_| {
                let bare = bare.clone();
                tokio::spawn(async move {
                    let (mut store, tools) = bare.instance().await;
                    bare_call(&mut store, &tools).await;
                })
            });
            join_all(calls).await.into_iter().for_each(|call| call.expect("no panic"));
        };
        let (ours, beside) = versus(5, 1, ours, beside).await;
        platform.shutdown().await;
        let bare = ("the same, bare, with a pool", per_second(BURST, beside));
        rows.push(Throughput { what, ours: per_second(BURST, ours), bare });
    }
    rows
}
