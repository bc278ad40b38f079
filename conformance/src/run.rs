//! Goes through rows, one host after the other.

use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;
use tenon_host::{Builder, PluginState};

use crate::action::Action;
use crate::fixture::FolderSnapshot;
use crate::host_under_test::HostUnderTest;
use crate::plugins::ServicesSource;
use crate::race::{held, reached};
use crate::report::{RowResult, Verdict};
use crate::row::{AttemptEffects, AttemptKind, Control, Row, echo};

/// How many rows are tried at a time of those that do not get in each other's way.
const AT_A_TIME: usize = 3;

/// Tries rows. Outcomes are in the same order.
pub(crate) async fn run(
    rows: Vec<Row>,
    cache: Option<&Path>,
    mut host: impl FnMut(Builder) -> Builder,
) -> Vec<RowResult> {
    let mut outcomes = Vec::new();
    let (theirs, ours): (Vec<_>, Vec<_>) =
        rows.into_iter().enumerate().partition(|(_, row)| row.variant == ServicesSource::Theirs);
    for (variant, rows) in [(ServicesSource::Theirs, theirs), (ServicesSource::Ours, ours)] {
        if !rows.is_empty() {
            outcomes.extend(on_variant(variant, rows, cache, &mut host).await);
        }
    }
    outcomes.sort_by_key(|(place, _)| *place);
    outcomes.into_iter().map(|(_, outcome)| outcome).collect()
}

type Placed<T> = (usize, T);

async fn on_variant(
    variant: ServicesSource,
    rows: Vec<Placed<Row>>,
    cache: Option<&Path>,
    host: &mut impl FnMut(Builder) -> Builder,
) -> Vec<Placed<RowResult>> {
    let needed: BTreeSet<_> = rows.iter().flat_map(|(_, row)| row.plugins()).collect();
    let mut world = match HostUnderTest::new(variant, &needed, cache, host).await {
        Ok(world) => world,
        Err(error) => {
            let seen = format!("the suite could not be set up: {error}");
            let failed = |row: Row| outcome(row, vec![seen.clone()], Instant::now());
            return rows.into_iter().map(|(place, row)| (place, failed(row))).collect();
        }
    };
    world.log_once().await;
    let mut outcomes = Vec::new();
    let (together, alone): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, row)| row.meanwhile);
    let mut recorded = Vec::new();
    for (place, row) in alone {
        let began = Instant::now();
        if row.requires.is_some_and(|what| world.lacks(what)) {
            outcomes.push((place, untried(row)));
            continue;
        }
        if let AttemptKind::Recorded(deed, ..) = &row.attempt {
            let mut wrong = control(&mut world, &row).await;
            wrong.extend(world.check(deed).await);
            recorded.push((place, row, began, wrong));
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
    for (place, row, began, wrong) in recorded {
        let mut seen: Vec<_> = wrong.into_iter().chain(end.clone()).collect();
        if let AttemptKind::Recorded(_, absent, present) = &row.attempt
            && seen.is_empty()
        {
            if world.recorded(present).is_empty() {
                seen.push(format!("{present:?} is not in the record of calls"));
            }
            let found = world.recorded(absent).into_iter();
            seen.extend(found.map(|file| format!("{absent:?} in {file}")));
        }
        outcomes.push((place, outcome(row, seen, began)));
    }
    outcomes
}

fn outcome(row: Row, seen: Vec<String>, began: Instant) -> RowResult {
    let verdict = if seen.is_empty() { Verdict::Passed } else { Verdict::Failed };
    let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    RowResult { expectation: row.expectation, verdict, seen, milliseconds }
}

fn untried(row: Row) -> RowResult {
    let why = format!("there are no {} on this system", row.requires.unwrap_or_default());
    let expectation = row.expectation;
    RowResult { expectation, verdict: Verdict::Untried, seen: vec![why], milliseconds: 0 }
}

/// Tries a row by itself. Gives what was seen that should not be.
async fn alone_with(world: &mut HostUnderTest, row: &Row) -> Vec<String> {
    let mut seen = control(world, row).await;
    if let AttemptKind::Race(race) = row.attempt {
        seen.extend(held(world, race).await);
    } else {
        let before = WorldSnapshot::of(world).await;
        seen.extend(match &row.attempt {
            AttemptKind::Calls(deeds) => calls(world, deeds).await,
            AttemptKind::Load(plugin, words) => load(world, plugin, words),
            AttemptKind::Race(_) | AttemptKind::Recorded(..) => Vec::new(),
        });
        seen.extend(before.judge(world, &row.traces, !seen.is_empty()).await);
    }
    seen.extend(usable(world, row).await);
    seen
}

/// Tries what shows that a row could come out otherwise. Gives what was seen that should not be.
async fn control(world: &mut HostUnderTest, row: &Row) -> Vec<String> {
    let seen = match &row.control {
        Control::Ready(plugin) => world.absence(plugin).into_iter().collect(),
        Control::RaceReaches(plugin) => match row.attempt {
            AttemptKind::Race(race) => reached(world, plugin, race).await,
            _ => vec!["it is no race".into()],
        },
        Control::Call(..) | Control::Refused(_) | Control::Never(..) => {
            let (deeds, traces) = row.control.calls();
            let before = WorldSnapshot::of(world).await;
            let mut seen = calls(world, deeds).await;
            // What it changed must not be there for the attempt.
            seen.extend(before.judge(world, &traces, true).await);
            seen
        }
    };
    seen.into_iter().map(|seen| format!("{}: {seen}", row.control.place())).collect()
}

/// The world before something was done.
struct WorldSnapshot(FolderSnapshot);

impl WorldSnapshot {
    async fn of(world: &HostUnderTest) -> Self {
        world.traces().await;
        Self(world.survey())
    }

    /// What was left that should not be, and what was not. Files are put there again where they were
    /// changed, if that is asked for or something is wrong.
    async fn judge(
        self,
        world: &mut HostUnderTest,
        expected: &AttemptEffects,
        put_back: bool,
    ) -> Vec<String> {
        let mut traces = world.traces().await;
        let after = world.survey();
        traces.files = self.0.changes_to(&after);
        let mut seen = Vec::new();
        for (what, left, expected) in [
            ("changes of files", &traces.files, &expected.files),
            ("requests to the server", &traces.server, &expected.server),
            ("requests to a server that may not be asked", &traces.other, &expected.other),
            ("connections", &traces.connected, &expected.connected),
            ("uses of the services", &traces.services, &expected.services),
            ("calls of the witness", &traces.called, &expected.called),
        ] {
            let mut expected: Vec<_> = expected.iter().map(|line| world.fill(line)).collect();
            if what == "changes of files" {
                expected.sort();
            }
            if *left != expected {
                seen.push(format!("{what}: {left:?}, where {expected:?} were expected"));
            }
        }
        if traces.silent != expected.silent {
            let (left, expected) = (traces.silent, expected.silent);
            seen.push(format!(
                "connections without a request: {left}, where {expected} were expected"
            ));
        }
        if (put_back || !seen.is_empty()) && !traces.files.is_empty() {
            // What comes after is not about this.
            let lost = world.lay_again(&self.0, &after).err();
            seen.extend(lost.map(|error| format!("the files are lost: {error}")));
        }
        seen
    }
}

/// Tries a row while another plugin is at work.
async fn beside_another(world: &HostUnderTest, row: &Row) -> Vec<String> {
    let AttemptKind::Calls(deeds) = &row.attempt else { return vec!["it is no call".into()] };
    let mut seen = calls(world, row.control.calls().0).await;
    for seen in &mut seen {
        seen.insert_str(0, &format!("{}: ", row.control.place()));
    }
    let bystander = async {
        let answer = echo("bystander");
        world.check(&answer).await.map(|seen| format!("of another plugin meanwhile: {seen}"))
    };
    let (wrong, meanwhile) = futures::join!(calls(world, deeds), bystander);
    seen.extend(wrong.into_iter().chain(meanwhile));
    seen.extend(usable(world, row).await);
    seen
}

async fn calls(world: &HostUnderTest, deeds: &[Action]) -> Vec<String> {
    for deed in deeds {
        if let Some(seen) = world.check(deed).await {
            return vec![seen];
        }
    }
    Vec::new()
}

async fn usable(world: &HostUnderTest, row: &Row) -> Option<String> {
    let deed = row.usable.as_ref()?;
    let seen = world.check(deed).await?;
    Some(format!("afterwards, of what should still work: {seen}"))
}

/// Whether a plugin was left out, with these words.
fn load(world: &HostUnderTest, plugin: &str, words: &str) -> Vec<String> {
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
