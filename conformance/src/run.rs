//! Goes through rows, one host after the other.

use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use tenon_host::{Builder, PluginState};

use crate::attempt::{Deed, Expect};
use crate::plugins::Stage;
use crate::report::{Outcome, Verdict};
use crate::row::{Attempt, Row, echo};
use crate::world::World;

/// How many rows are tried at a time of those that do not get in each other's way.
const AT_A_TIME: usize = 3;

/// Tries rows. Outcomes are in the same order.
pub(crate) async fn run(
    rows: Vec<Row>,
    cache: Option<&Path>,
    mut host: impl FnMut(Builder) -> Builder,
) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let (theirs, ours): (Vec<_>, Vec<_>) =
        rows.into_iter().enumerate().partition(|(_, row)| row.stage == Stage::Theirs);
    for (stage, rows) in [(Stage::Theirs, theirs), (Stage::Ours, ours)] {
        if !rows.is_empty() {
            outcomes.extend(on_stage(stage, rows, cache, &mut host).await);
        }
    }
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

type Placed<T> = (usize, T);

async fn on_stage(
    stage: Stage,
    rows: Vec<Placed<Row>>,
    cache: Option<&Path>,
    host: &mut impl FnMut(Builder) -> Builder,
) -> Vec<Placed<Outcome>> {
    let needed: BTreeSet<_> = rows.iter().flat_map(|(_, row)| row.plugins()).collect();
    let mut world = match World::new(stage, &needed, cache, host).await {
        Ok(world) => world,
        Err(error) => {
            let seen = format!("the suite could not be set up: {error}");
            let failed = |row: Row| outcome(row, vec![seen.clone()], Instant::now());
            return rows.into_iter().map(|(place, row)| (place, failed(row))).collect();
        }
    };
    let mut outcomes = Vec::new();
    let (together, alone): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| row.meanwhile);
    let mut recorded = Vec::new();
    for (place, row) in alone {
        let began = Instant::now();
        if row.requires.is_some_and(|what| world.lacks(what)) {
            outcomes.push((place, untried(row)));
            continue;
        }
        if let Attempt::Recorded(deed, text) = &row.attempt {
            let wrong = world.check(deed).await;
            let text = *text;
            recorded.push((place, row, began, wrong, text));
            continue;
        }
        let seen = alone_with(&mut world, &row).await;
        outcomes.push((place, outcome(row, seen, began)));
    }
    // Calls of one plugin may share an instance, and must not end it for each other.
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    for (place, row) in together {
        groups.entry(row.plugins()[0]).or_default().push((place, row));
    }
    let groups = groups.into_values().map(async |rows| {
        let mut outcomes = Vec::new();
        for (place, row) in rows {
            let began = Instant::now();
            let seen = beside_another(&world, &row).await;
            outcomes.push((place, outcome(row, seen, began)));
        }
        outcomes
    });
    let groups: Vec<_> = futures::stream::iter(groups).buffer_unordered(AT_A_TIME).collect().await;
    outcomes.extend(groups.into_iter().flatten());
    let end = world.end().await.err();
    for (place, row, began, wrong, text) in recorded {
        let mut seen: Vec<_> = wrong.into_iter().chain(end.clone()).collect();
        if seen.is_empty() {
            match world.recorded(text) {
                (_, 0) => seen.push("there is no record of calls".into()),
                (found, _) => {
                    seen.extend(found.into_iter().map(|file| format!("{text:?} in {file}")));
                }
            }
        }
        outcomes.push((place, outcome(row, seen, began)));
    }
    outcomes
}

fn outcome(row: Row, seen: Vec<String>, began: Instant) -> Outcome {
    let verdict = if seen.is_empty() { Verdict::Passed } else { Verdict::Failed };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Outcome { expectation: row.expectation, verdict, seen, milliseconds }
}

fn untried(row: Row) -> Outcome {
    let why = format!("there are no {} on this system", row.requires.unwrap_or_default());
    let expectation = row.expectation;
    Outcome { expectation, verdict: Verdict::Untried, seen: vec![why], milliseconds: 0 }
}

/// Tries a row by itself. Gives what was seen that should not be.
async fn alone_with(world: &mut World, row: &Row) -> Vec<String> {
    let before = world.survey();
    world.traces();
    let mut seen = match &row.attempt {
        Attempt::Calls(deeds) => calls(world, deeds).await,
        Attempt::Race(edition, path) => race(world, edition, path).await,
        Attempt::Load(plugin, words) => load(world, plugin, words),
        Attempt::Recorded(..) => Vec::new(),
    };
    let mut traces = world.traces();
    if !matches!(row.attempt, Attempt::Race(..)) {
        traces.files = before.changes_to(&world.survey());
    }
    for (what, left, expected) in [
        ("changes of files", &traces.files, &row.traces.files),
        ("requests to the server", &traces.server, &row.traces.server),
        ("requests to a server that may not be asked", &traces.other, &row.traces.other),
        ("connections", &traces.connected, &row.traces.connected),
        ("uses of the services", &traces.services, &row.traces.services),
        ("calls of the witness", &traces.called, &row.traces.called),
    ] {
        let expected: Vec<_> = expected.iter().map(|line| world.fill(line)).collect();
        if *left != expected {
            seen.push(format!("{what}: {left:?}, where {expected:?} were expected"));
        }
    }
    if !seen.is_empty() && !traces.files.is_empty() {
        // What comes after is not about this.
        seen.extend(world.lay_again().err().map(|error| format!("the files are lost: {error}")));
    }
    seen.extend(usable(world, row).await);
    seen
}

/// Tries a row while another plugin is at work.
async fn beside_another(world: &World, row: &Row) -> Vec<String> {
    let Attempt::Calls(deeds) = &row.attempt else { return vec!["it is no call".into()] };
    let bystander = async {
        let answer = echo("bystander");
        world.check(&answer).await.map(|seen| format!("of another plugin meanwhile: {seen}"))
    };
    let (mut seen, meanwhile) = futures::join!(calls(world, deeds), bystander);
    seen.extend(meanwhile);
    seen.extend(usable(world, row).await);
    seen
}

async fn calls(world: &World, deeds: &[Deed]) -> Vec<String> {
    for deed in deeds {
        if let Some(seen) = world.check(deed).await {
            return vec![seen];
        }
    }
    Vec::new()
}

async fn usable(world: &World, row: &Row) -> Option<String> {
    let deed = row.usable.as_ref()?;
    let seen = world.check(deed).await?;
    Some(format!("afterwards, of what should still work: {seen}"))
}

/// Whether a plugin was left out, with these words.
fn load(world: &World, plugin: &str, words: &str) -> Vec<String> {
    let report = match world.report(plugin) {
        Ok(report) => report,
        Err(absence) => return vec![absence],
    };
    let detail = report.detail.unwrap_or_default();
    match report.state {
        PluginState::Refused | PluginState::Failed if detail.contains(words) => Vec::new(),
        state => vec![format!("plugin \"{}\" is {state}: {detail}", report.plugin)],
    }
}

/// How often a file is read that is swapped meanwhile, at least and at most.
const READS: (u32, u32) = (300, 6_000);

/// How often in one call, which has to come to an end on a tight host, too.
const ROUNDS: u32 = 30;

/// Swaps a file and a link that leads out all the time, and has the file read.
async fn race(world: &World, edition: &str, path: &str) -> Vec<String> {
    if let Some(absence) = world.absence("files") {
        return vec![absence];
    }
    let swapping = match Swapping::begin(world.base().join(path)) {
        Ok(swapping) => swapping,
        Err(error) => return vec![format!("the file could not be swapped: {error}")],
    };
    let (mut read, mut tried) = (0, 0);
    while read < READS.0 && tried < READS.1 {
        tried += ROUNDS;
        match attempts(world, edition, path).await {
            Ok(more) => read += more,
            Err(seen) => return vec![seen],
        }
    }
    drop(swapping);
    // A machine that is busy may have let nobody swap, and a link stand there all the time.
    if let Err(error) = fs::write(world.base().join(path), "granted") {
        return vec![format!("the file could not be put back: {error}")];
    }
    match attempts(world, edition, path).await {
        Ok(0) => vec![format!("nothing could be read, {read} times of {tried} before")],
        Ok(_) => Vec::new(),
        Err(seen) => vec![seen],
    }
}

/// Has the file read for so many rounds, and gives how often there was something to read. Nothing of
/// what is outside may be among that.
async fn attempts(world: &World, edition: &str, path: &str) -> Result<u32, String> {
    let arguments = serde_json::json!({
        "edition": edition, "path": format!("{{ground}}/{path}"), "rounds": ROUNDS
    });
    // `escaped of read`; it is not known before how often there was something to read.
    let deed = Deed::new("files", "attempts", arguments, Expect::Begins("0 of "));
    let came = world.done(&deed).await?;
    Ok(came.text().rsplit(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0))
}

/// A file that is swapped until this is dropped.
struct Swapping {
    over: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    path: PathBuf,
}

impl Swapping {
    fn begin(path: PathBuf) -> std::io::Result<Self> {
        fs::write(&path, "granted")?;
        let over = Arc::new(AtomicBool::new(false));
        let thread = std::thread::Builder::new().name("tenon-conformance-swap".into()).spawn({
            let (over, path) = (over.clone(), path.clone());
            move || {
                let next = path.with_extension("next");
                // Where it cannot go on, the file stays as it is.
                let swap = |link: bool| {
                    match link {
                        true => crate::ground::link(&next, "../secret/s.txt"),
                        false => fs::write(&next, "granted"),
                    }
                    .and_then(|()| fs::rename(&next, &path))
                };
                while !over.load(Ordering::Relaxed) {
                    for link in [true, false] {
                        if swap(link).is_err() {
                            return;
                        }
                    }
                }
            }
        })?;
        Ok(Self { over, thread: Some(thread), path })
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        for path in [&self.path, &self.path.with_extension("next")] {
            let _ = fs::remove_file(path);
        }
    }
}
