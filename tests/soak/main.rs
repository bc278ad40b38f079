//! `tenon serve` under load for a long time: clients of both eras, plugins that are loaded again and a server that is killed
//! each second, and clients that vanish. No answer is lost, doubled or another call's, no call is carried out twice,
//! memory stays, and no process does.
//!
//! `cargo xtask soak` builds what it needs and runs it. Its argument is the number of seconds. No verdict depends on how
//! fast the machine is: what is waited for has far more time than it needs.

#![allow(clippy::print_stdout)]

mod clients;
mod http;
mod process_stats;
mod project;
mod tally;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::VecDeque;
use std::io;
use std::process::{ExitCode, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use clients::{ClientContext, KINDS};
use http::{Connection, ServerEndpoint};
use process_stats::Sample;
use project::{Project, SERVERS};
use tally::{Outcome, Tally, Target};

/// How long it takes where nothing else is said.
const SECONDS: u64 = 600;

/// The most sessions that the server keeps. There are so many from the beginning on, so that sessions that are left behind
/// take no further memory.
const MAX_SESSIONS: u64 = 1000;

/// How much the median of memory may grow between the second quarter of the time and the last one: in percent, and in KiB
/// beside. In a minute there is more to settle than in ten, and an allocator gives little back.
const MEMORY_PERCENT: u64 = 5;
const MEMORY_KIB: u64 = 8 << 10;

/// How many open files and threads there may be more. Connections come and go, and so do threads for work that blocks. What
/// each reload or each killed server leaves behind is more than that.
const FILES: u64 = 24;
const THREADS: u64 = 24;

/// How long something may take that happens after all calls.
const SETTLING: Duration = Duration::from_secs(30);

/// The lines of the log that are printed where something is wrong.
const LOG_LINES: usize = 20;

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).map_or(Ok(SECONDS), |seconds| seconds.parse());
    let Ok(seconds) = seconds else {
        println!("the argument is a number of seconds");
        return ExitCode::from(2);
    };
    // One thread: the other core is the server's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the runtime starts");
    let tally = Arc::new(Tally::default());
    if let Err(error) = runtime.block_on(soak(&tally, Duration::from_secs(seconds))) {
        tally.fail("given up", error.to_string());
    }
    let failures = std::mem::take(&mut tally.lock().failures);
    for (what, (count, how)) in &failures {
        println!("FAILED: {what}, {count} times, at first: {how}");
    }
    match failures.is_empty() {
        true => println!("passed"),
        false => return ExitCode::FAILURE,
    }
    ExitCode::SUCCESS
}

/// The server that is served to clients over HTTP.
struct Served {
    server: Child,
    number: u32,
    address: ServerEndpoint,
    log: Arc<Mutex<VecDeque<String>>>,
}

impl Served {
    async fn start(project: &Project) -> io::Result<Self> {
        let mut command = project.serve(&["--http", "127.0.0.1:0"]);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut server = command.kill_on_drop(true).spawn()?;
        let number = server.id().ok_or(io::ErrorKind::BrokenPipe)?;
        let mut lines =
            BufReader::new(server.stderr.take().ok_or(io::ErrorKind::BrokenPipe)?).lines();
        let host = loop {
            let line = lines.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
            if let Some(url) = line.strip_prefix("listening on http://") {
                break url.trim_end_matches("/mcp").to_string();
            }
        };
        let log = Arc::new(Mutex::new(VecDeque::new()));
        let kept = log.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let mut kept = kept.lock().expect("nobody panicked");
                kept.push_back(line);
                if kept.len() > LOG_LINES {
                    kept.pop_front();
                }
            }
        });
        let token = std::fs::read_to_string(project.path("tenon/serve-token"))?;
        let address = ServerEndpoint { host, token: token.trim().to_string() };
        Ok(Self { server, number, address, log })
    }
}

/// What the server measures itself.
struct Metrics(String);

impl Metrics {
    async fn get(connection: &mut Connection) -> io::Result<Self> {
        connection.send("GET", "/metrics", &[], "").await?;
        Ok(Self(connection.receive().await?.body))
    }

    /// The sum of what has this name and these labels.
    fn sum(&self, name: &str, labels: &[&str]) -> u64 {
        let lines = self.0.lines().filter(|line| {
            let is_named = line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
            is_named && labels.iter().all(|label| line.contains(label))
        });
        let values = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        values.sum::<f64>() as u64
    }
}

async fn soak(tally: &Arc<Tally>, time: Duration) -> io::Result<()> {
    let (project, of_stdio) = (Arc::new(Project::new()), Project::new());
    let mut served = Served::start(&project).await?;
    let (address, until) = (served.address.clone(), Instant::now());
    let mut clients = ClientContext { address, tally: tally.clone(), until };
    for target in Target::ALL {
        call_until_answered(&clients, target).await?;
    }
    let mut filling = Connection::open(&served.address).await?;
    for _ in 0..MAX_SESSIONS {
        clients::begin_session(&mut filling).await?;
    }
    drop(filling);
    let at_rest = process_stats::marked(project.mark()).len();

    let began = Instant::now();
    clients.until = began + time;
    let samples = load(&clients, &project, &of_stdio, served.number).await;
    let took = began.elapsed();
    if let Err(error) = settle(&clients, &project, at_rest).await {
        tally.fail("given up", error.to_string());
    }
    let end = end(&clients, &project, &mut served).await;
    if let Err(error) = &end {
        tally.fail("given up", error.to_string());
    }
    for project in [&*project, &of_stdio] {
        let is_gone = async || process_stats::marked(project.mark()).is_empty();
        if !eventually(is_gone).await {
            let left = process_stats::marked(project.mark());
            tally.fail("processes are left", format!("{left:?}"));
        }
    }

    print_calls(tally, took);
    tally::audit(tally, |server| {
        let mut calls = project.calls(server);
        for (number, times) in of_stdio.calls(server) {
            *calls.entry(number).or_default() += times;
        }
        calls
    });
    judge_samples(tally, &samples);
    println!(
        "{} processes of the killed server, {} versions of the script answered, {} ms until the end",
        project.starts(SERVERS[0]).len(),
        tally.lock().versions.len(),
        end.unwrap_or_default().as_millis()
    );
    if !tally.lock().failures.is_empty() {
        for line in served.log.lock().expect("nobody panicked").iter() {
            println!("log: {line}");
        }
    }
    Ok(())
}

/// Runs all clients until their time is up, while plugins are written and servers are killed. Gives what the server took
/// each second.
async fn load(
    clients: &ClientContext,
    project: &Arc<Project>,
    of_stdio: &Project,
    server: u32,
) -> Vec<Sample> {
    let tally = &clients.tally;
    let writing = each_second({
        let (project, tally) = (project.clone(), tally.clone());
        move || {
            project.rewrite();
            tally.event("plugins written");
        }
    });
    let killing = each_second({
        let (project, tally) = (project.clone(), tally.clone());
        move || {
            if project.kill_server() {
                tally.event("servers killed");
            }
        }
    });
    let samples = Arc::new(Mutex::new(Vec::new()));
    let sampling = each_second({
        let samples = samples.clone();
        move || samples.lock().expect("nobody panicked").extend(Sample::of(server))
    });
    let mut running = JoinSet::new();
    for (kind, name, count) in KINDS {
        for place in 0..count {
            running.spawn(clients.clone().run(kind, name, place));
        }
    }
    for (name, is_modern) in [("modern, stdio", true), ("legacy, stdio", false)] {
        let (server, tally, until) = (of_stdio.serve(&[]), tally.clone(), clients.until);
        running.spawn(async move {
            let result = clients::run_stdio(&tally, name, is_modern, server, until).await;
            if let Err(error) = result {
                tally.fail("lost", format!("{name}: {error}"));
            }
        });
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            tally.fail("a client has failed", error.to_string());
        }
    }
    [writing, killing, sampling].iter().for_each(JoinHandle::abort);
    std::mem::take(&mut *samples.lock().expect("nobody panicked"))
}

/// Does something each second.
fn each_second(mut act: impl FnMut() + Send + 'static) -> JoinHandle<()> {
    tokio::spawn(async move {
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            act();
        }
    })
}

/// Waits until something holds, for a bounded time.
async fn eventually(mut holds: impl AsyncFnMut() -> bool) -> bool {
    let until = Instant::now() + SETTLING;
    loop {
        if holds().await {
            return true;
        }
        if Instant::now() > until {
            return false;
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Calls a tool until it answers. A server that was killed a moment ago may need a second call.
async fn call_until_answered(clients: &ClientContext, target: Target) -> io::Result<()> {
    let is_answered = async || {
        let before = clients.tally.lock().of(target, Outcome::Answered);
        let called = clients.call_once(target).await;
        called.is_ok() && clients.tally.lock().of(target, Outcome::Answered) > before
    };
    match eventually(is_answered).await {
        true => Ok(()),
        false => Err(io::Error::other(format!("{target:?} does not answer"))),
    }
}

/// After all clients have gone: everything works, and nothing is kept of them.
async fn settle(clients: &ClientContext, project: &Project, at_rest: usize) -> io::Result<()> {
    let tally = &clients.tally;
    let mut watching = Connection::open(&clients.address).await?;
    for target in Target::ALL {
        call_until_answered(clients, target).await?;
    }
    let is_newest = async || {
        let called = clients.call_once(Target::Script).await;
        called.is_ok() && tally.lock().versions.contains(&project.version())
    };
    if !eventually(is_newest).await {
        tally.fail("not loaded again", format!("version {} of the script", project.version()));
    }
    if project.starts(SERVERS[0]).len() < 2 {
        tally.fail("not killed", "the server had one process");
    }
    let mut counts = (0, 0, 0);
    let is_at_rest = async || {
        let Ok(metrics) = Metrics::get(&mut watching).await else { return false };
        let connections = metrics.sum("tenon_serve_connections", &[]);
        let waiting = metrics.sum("tenon_serve_waiting_calls", &[]);
        counts = (connections, waiting, process_stats::marked(project.mark()).len());
        counts == (1, 0, at_rest)
    };
    if !eventually(is_at_rest).await {
        let how =
            format!("connections, calls that wait, processes: {counts:?}, not (1, 0, {at_rest})");
        tally.fail("kept of clients that have gone", how);
    }
    let metrics = Metrics::get(&mut watching).await?;
    let sessions = metrics.sum("tenon_serve_sessions", &[]);
    if sessions > MAX_SESSIONS {
        tally.fail("too many sessions", sessions.to_string());
    }
    for target in [Target::Component, Target::Script] {
        let label = format!("tool={:?}", target.tool());
        let counted = metrics.sum("tenon_calls_total", &[&label]);
        // Those over stdio are of other processes.
        let calls: u64 = {
            let inner = tally.lock();
            let calls = inner
                .calls
                .iter()
                .filter(|((client, of, _), _)| *of == target && !client.ends_with("stdio"));
            calls.map(|(_, count)| count).sum()
        };
        if counted != calls {
            let how =
                format!("{target:?}: {calls} calls, of which the server has counted {counted}");
            tally.fail("calls and answers differ", how);
        }
    }
    Ok(())
}

/// Ends the server while calls are in flight, which are answered. Gives how long it took.
async fn end(
    clients: &ClientContext,
    project: &Project,
    served: &mut Served,
) -> io::Result<Duration> {
    let tally = &clients.tally;
    let mut last = JoinSet::new();
    let mut numbers = Vec::new();
    for _ in 0..8 {
        let (number, clients) = (tally.number(), clients.clone());
        numbers.push(number);
        last.spawn(async move {
            let call = json!({ "number": number, "millis": 1000 });
            clients.call_with(Target::Spared, number, Some(call)).await
        });
    }
    let are_in_flight = async || {
        let calls = project.calls(SERVERS[1]);
        numbers.iter().all(|number| calls.contains_key(number))
    };
    if !eventually(are_in_flight).await {
        tally.fail("lost", "calls at the end do not arrive");
    }
    let pid = i32::try_from(served.number).ok().and_then(Pid::from_raw);
    kill_process(pid.ok_or(io::ErrorKind::NotFound)?, Signal::TERM)?;
    let began = Instant::now();
    while let Some(call) = last.join_next().await {
        if let Err(error) = call.map_err(io::Error::other)? {
            tally.fail("lost", format!("when the server ends: {error}"));
        }
    }
    match timeout(SETTLING, served.server.wait()).await {
        Err(_) => tally.fail("it does not end", format!("{} s after SIGTERM", SETTLING.as_secs())),
        Ok(status) => {
            let status = status?;
            if !status.success() {
                tally.fail("ended badly", status.to_string());
            }
        }
    }
    Ok(began.elapsed())
}

fn print_calls(tally: &Tally, took: Duration) {
    let mut inner = tally.lock();
    println!(
        "{:<28} {:<10} {:>9} {:>12} {:>9}",
        "clients", "calls of", "answered", "server ended", "vanished"
    );
    let mut rows: Vec<_> =
        inner.calls.keys().map(|(client, target, _)| (*client, *target)).collect();
    rows.dedup();
    for (client, target) in rows {
        let count =
            |outcome| inner.calls.get(&(client, target, outcome)).copied().unwrap_or_default();
        let [answered, ended, vanished] =
            [Outcome::Answered, Outcome::ServerEnded, Outcome::Vanished].map(count);
        let target = format!("{target:?}");
        println!("{client:<28} {target:<10} {answered:>9} {ended:>12} {vanished:>9}");
    }
    inner.times.sort();
    let at = |share: usize| {
        let time = inner.times.get(inner.times.len() * share / 100).copied().unwrap_or_default();
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    };
    let per_second = inner.times.len() as f64 / took.as_secs_f64();
    println!(
        "{} calls in {} s, {per_second:.0}/s; half of the answers within {}, 99 of 100 within {}",
        inner.sent,
        took.as_secs(),
        at(50),
        at(99)
    );
    for (what, count) in &inner.events {
        println!("{what}: {count}");
    }
    for (error, count) in &inner.errors {
        println!("{error:?}: {count}");
    }
}

/// Prints how memory went, and compares the medians of the second quarter of the time with those of the last.
fn judge_samples(tally: &Tally, samples: &[Sample]) {
    let quarter = samples.len() / 4;
    if quarter == 0 {
        return tally.fail("too short", "there is nothing to compare");
    }
    let second = &samples[quarter..2 * quarter];
    let last = &samples[samples.len() - quarter..];
    let median = |samples: &[Sample], value: fn(&Sample) -> u64| {
        let mut values: Vec<_> = samples.iter().map(value).collect();
        values.sort_unstable();
        values[values.len() / 2]
    };
    let tenths = samples.chunks(samples.len().div_ceil(10));
    let tenths = tenths.map(|tenth| (median(tenth, |sample| sample.memory) >> 10).to_string());
    println!("MiB of memory, in tenths of the time: {}", tenths.collect::<Vec<_>>().join(" "));
    for (what, value, percent, beside) in [
        (
            "KiB of memory",
            (|sample| sample.memory) as fn(&Sample) -> u64,
            MEMORY_PERCENT,
            MEMORY_KIB,
        ),
        ("open files", |sample| sample.files, 0, FILES),
        ("threads", |sample| sample.threads, 0, THREADS),
    ] {
        let (before, after) = (median(second, value), median(last, value));
        let (first, end) = (value(&samples[0]), value(&samples[samples.len() - 1]));
        let most = before + before * percent / 100 + beside;
        let shown = format!(
            "{what}: {before} in the second quarter, {after} in the last, at most {most}; first {first}, last {end}"
        );
        println!("{shown}");
        if after > most {
            tally.fail("grows", shown);
        }
    }
}
