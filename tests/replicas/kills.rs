//! Commands that are killed at any moment: what they have confirmed is kept, and nothing is done twice without a record
//! that it is unknown how it ended.
//!
//! `TENON_KILLS` says how often one is killed; twenty times, where it does not. `TENON_KILLS_SEED` says when; where it does
//! not, the moments are others each time, and a line says which seed they have. `cargo xtask kills` sets both.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::process::{Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::support::{Project, parsed, stderr, stdout};
use crate::{counted, project};

/// How often a command is killed where nothing else is said.
const KILLS: u64 = 20;

/// The first number that is counted. Smaller ones need no approval.
const FIRST_NUMBER: u64 = 10;

/// How many numbers go through one store. Each leaves a run that is paused, and beyond a hundred of those no other one
/// pauses; so far below the bounds of a store, what is missing at the end was lost, and made no room for anything.
const NUMBERS_OF_STORE: u64 = 40;

/// How long a command takes of which none has come to its end yet. It is far too long, so that the first one mostly does.
const LONGEST: Duration = Duration::from_secs(10);

/// Enough for all that a store has in its records.
const ALL: &str = "100000";

pub(crate) fn killed_again_and_again() {
    let kills = number_in("TENON_KILLS").unwrap_or(KILLS);
    let seed = number_in("TENON_KILLS_SEED").unwrap_or_else(seed_of_now);
    eprintln!("note: processes are killed with TENON_KILLS={kills} TENON_KILLS_SEED={seed}");
    let (mut chance, mut killed) = (Chance(seed), 0);
    while killed < kills {
        let mut round = Round::new(&mut chance);
        for number in FIRST_NUMBER..FIRST_NUMBER + NUMBERS_OF_STORE {
            if killed + round.killed >= kills {
                break;
            }
            round.go_through(number);
            round.note_hashes();
        }
        round.check_all();
        killed += round.killed;
    }
}

fn number_in(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is no number: {text}")))
}

/// A seed that no other run of this test has had.
fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_secs().rotate_left(32) ^ u64::from(now.subsec_nanos()) ^ u64::from(std::process::id())
}

/// Numbers without a pattern that anything depends on: the same for the same seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// When a command is killed.
#[derive(Clone, Copy)]
enum Moment {
    /// After some time.
    After(Duration),
    /// As soon as the server has counted a number: in the middle of its call.
    Counted(u64),
}

/// Runs a command that is killed at a moment, if it has not ended before. Gives what it wrote, if it was not killed.
fn killed_at(project: &Project, arguments: &[&str], moment: Moment) -> Option<Output> {
    let mut command = project.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().expect("tenon starts");
    let mut output = process.stdout.take().expect("it is piped");
    let (ended, end) = mpsc::channel();
    // The output closes with the process: nobody has to look again and again whether it still runs.
    let reading = thread::spawn(move || {
        let mut said = Vec::new();
        let _ = output.read_to_end(&mut said);
        let _ = ended.send(());
        said
    });
    let has_ended = match moment {
        Moment::After(time) => end.recv_timeout(time).is_ok(),
        Moment::Counted(number) => loop {
            if end.try_recv().is_ok() {
                break true;
            }
            if times(project, number) > 0 {
                break false;
            }
            thread::yield_now();
        },
    };
    if !has_ended {
        let _ = process.kill();
    }
    let output = process.wait_with_output().expect("it ends");
    let stdout = reading.join().expect("it does not panic");
    output.status.code().is_some().then_some(Output { stdout, ..output })
}

/// How often a number was counted.
fn times(project: &Project, number: u64) -> usize {
    counted(project).iter().filter(|counted| **counted == number).count()
}

/// A store, and what commands have confirmed that use it.
struct Round<'a> {
    project: Project,
    chance: &'a mut Chance,
    /// How long commands took that were not killed, by what they do.
    usual: BTreeMap<&'static str, Duration>,
    /// How many commands were killed.
    killed: u64,
    /// The runs that were confirmed or listed, and how each of them was at last.
    runs: BTreeMap<String, String>,
    /// The approvals that were confirmed, with the numbers that they let be counted.
    approved: BTreeMap<String, u64>,
    /// The runs of which a command has said that they are done, with their numbers.
    done: Vec<(String, u64)>,
    /// The hashes of records, as `--noted` takes them.
    noted: BTreeSet<String>,
}

impl<'a> Round<'a> {
    fn new(chance: &'a mut Chance) -> Self {
        let project = project();
        let approved = project.tenon(&["approve", "--all", "--yes"]);
        assert!(approved.status.success(), "{}", stderr(&approved));
        Self {
            project,
            chance,
            usual: BTreeMap::new(),
            killed: 0,
            runs: BTreeMap::new(),
            approved: BTreeMap::new(),
            done: Vec::new(),
            noted: BTreeSet::new(),
        }
    }

    /// Runs a script that has a number counted, approves the call, resumes the run, and runs the script anew. Each of these
    /// but the last may be killed.
    fn go_through(&mut self, number: u64) {
        let script = format!("counting.count(#{{ number: {number} }})");
        self.project.write("s.rhai", &script);
        let Some((run, approval)) = self.begin(number, &script) else { return };
        self.approve(&approval, number);
        self.resume(&run, number);
        self.run_anew(number);
    }

    /// Begins the run of a number. Gives its id and that of the approval it waits for, if it came so far.
    fn begin(&mut self, number: u64, script: &str) -> Option<(String, String)> {
        let told = self.attempt("run", &["--json", "run", "s.rhai"]).map(|said| parsed(&said));
        let all = self.list(&["runs"]);
        let run = all.iter().find(|run| run["script"] == script);
        let text = |value: &Value| value.as_str().map(str::to_string);
        let state = run.and_then(|run| text(&run["state"]));
        let id = run.and_then(|run| text(&run["id"]));
        if let Some(told) = told {
            // Whatever was said to be kept is kept.
            let confirmed = (text(&told["id"]), text(&told["paused"]["approval"]));
            assert!(confirmed.0.is_some() && confirmed.1.is_some(), "{told}");
            let approval = run.and_then(|run| text(&run["approval"]));
            assert_eq!((&id, &approval), (&confirmed.0, &confirmed.1), "{number}: {all:?}");
            assert_eq!(state.as_deref(), Some("paused"), "{number}: {all:?}");
        }
        assert_eq!(times(&self.project, number), 0, "nobody has approved it");
        let (id, state) = (id?, state?);
        let is_paused = state == "paused";
        self.runs.insert(id.clone(), state);
        let approval = run.and_then(|run| text(&run["approval"])).filter(|_| is_paused)?;
        Some((id, approval))
    }

    fn approve(&mut self, approval: &str, number: u64) {
        let approve = ["approve", approval, "--yes"];
        // One that is killed may have approved it or not. Either is good to go on with: whoever approves it again says so.
        let said = self.attempt("approve", &approve);
        let said = said.unwrap_or_else(|| self.project.tenon(&approve));
        assert!(said.status.success(), "{number}: {}", stderr(&said));
        let pending = self.list(&["pending", "--all"]);
        let kept = pending.iter().find(|call| call["id"] == approval);
        assert_eq!(kept.map(|call| &call["state"]), Some(&json!("approved")), "{pending:?}");
        self.approved.insert(approval.to_string(), number);
    }

    fn resume(&mut self, run: &str, number: u64) {
        let resume = ["--json", "run", "--resume", run];
        let resumed = match self.chance.below(3) {
            // A call takes a moment only, which hardly any command would be killed in by chance.
            0 => {
                let resumed = killed_at(&self.project, &resume, Moment::Counted(number));
                self.killed += u64::from(resumed.is_none());
                resumed
            }
            _ => self.attempt("resume", &resume),
        };
        let cut_off = self.state(run);
        let is_confirmed = match resumed {
            Some(said) => {
                assert!(said.status.success(), "{number}: {}{}", stdout(&said), stderr(&said));
                true
            }
            // It was killed before it went on, or after that.
            None => {
                let again = self.project.tenon(&resume);
                let goes_on = cut_off == "paused";
                assert_eq!(again.status.success(), goes_on, "{cut_off}: {}", stdout(&again));
                goes_on
            }
        };
        let (state, times) = (self.state(run), times(&self.project, number));
        if is_confirmed {
            assert_eq!((state.as_str(), times), ("done", 1), "{number}");
            self.done.push((run.to_string(), number));
        } else {
            // What was cut off is done, or known to be unknown.
            let is_known = (state == "done" && times == 1) || (state == "unknown" && times <= 1);
            assert!(is_known, "{number} is {state}, and was counted {times} times");
        }
        self.runs.insert(run.to_string(), state);
    }

    /// Whoever runs it anew is asked again, unless nothing was begun.
    fn run_anew(&mut self, number: u64) {
        let before = times(&self.project, number);
        let told = self.json(&["run", "s.rhai"]);
        let run = told["id"].as_str().unwrap_or_else(|| panic!("{told}")).to_string();
        let times = times(&self.project, number);
        let state = if told["paused"].is_null() {
            assert_eq!((before, times), (0, 1), "{number} was done without a question: {told}");
            assert!(told["error"].is_null(), "{number}: {told}");
            self.done.push((run.clone(), number));
            "done"
        } else {
            assert_eq!(times, before, "{number} was done before its question: {told}");
            "paused"
        };
        assert_eq!(self.state(&run), state, "{number}: {told}");
        self.runs.insert(run, state.to_string());
    }

    /// Runs a command that is killed after some time, if it takes so long, as half of them do. Gives what it wrote, if it was
    /// not killed.
    fn attempt(&mut self, what: &'static str, arguments: &[&str]) -> Option<Output> {
        let usual = self.usual.get(what).copied().unwrap_or(LONGEST);
        let part = u32::try_from(self.chance.below(2_000)).expect("it is small");
        let began = Instant::now();
        let output = killed_at(&self.project, arguments, Moment::After(usual * part / 1_000));
        match &output {
            Some(_) => {
                self.usual.insert(what, began.elapsed());
            }
            None => self.killed += 1,
        }
        output
    }

    /// What a command says that is not killed.
    fn json(&self, arguments: &[&str]) -> Value {
        parsed(&self.project.tenon(&[&["--json"][..], arguments].concat()))
    }

    fn list(&self, arguments: &[&str]) -> Vec<Value> {
        let said = self.json(arguments);
        said.as_array().unwrap_or_else(|| panic!("{arguments:?}: {said}")).clone()
    }

    /// How a run is by now.
    fn state(&self, run: &str) -> String {
        let shown = self.json(&["runs", "show", run]);
        shown["state"].as_str().unwrap_or_else(|| panic!("{shown}")).to_string()
    }

    /// Checks that the records are whole, and notes the last of each as somebody would note it elsewhere: by themselves they
    /// do not show that their end is missing.
    fn note_hashes(&mut self) {
        let verified = self.json(&["history", "verify"]);
        assert_eq!(verified["isWhole"], true, "{verified}");
        for log in verified["logs"].as_array().expect("there are logs") {
            let last = log["next"].as_u64().expect("it has a number") - 1;
            if last > 0 {
                let text = |name: &str| log[name].as_str().expect("it is a text");
                self.noted.insert(format!("{}={last}:{}", text("log"), text("lastHash")));
            }
        }
    }

    /// Compares all that was confirmed with what is there.
    fn check_all(&self) {
        self.check_runs();
        self.check_approvals();
        self.check_calls();
        let noted = self.noted.iter().flat_map(|noted| ["--noted", noted.as_str()]);
        let verify: Vec<&str> = ["history", "verify"].into_iter().chain(noted).collect();
        let verified = self.project.tenon(&verify);
        assert!(verified.status.success(), "{}{}", stdout(&verified), stderr(&verified));
    }

    fn check_runs(&self) {
        let all = self.list(&["runs"]);
        for (id, state) in &self.runs {
            let run = all.iter().find(|run| run["id"] == id.as_str());
            let found = run.and_then(|run| run["state"].as_str());
            assert_eq!(found, Some(state.as_str()), "{id}: {all:?}");
        }
    }

    /// Each approval is there, or was used for one call, and it is known how that ended or that nobody knows.
    fn check_approvals(&self) {
        // First what waits: by that, calls of processes that have died are unknown from here on.
        let pending = self.list(&["pending", "--all"]);
        let events = self.list(&["history", "approvals", "--limit", ALL]);
        for (approval, number) in &self.approved {
            let steps = events.iter().filter(|event| event["id"] == approval.as_str());
            let steps: Vec<&str> = steps.filter_map(|event| event["step"].as_str()).collect();
            let count = |step: &str| steps.iter().filter(|other| **other == step).count();
            assert!(count("approved") > 0, "that {number} was approved is lost: {steps:?}");
            let begun = count("begun");
            let is_known = begun == count("ended") + count("unknown");
            assert!(begun <= 1 && is_known, "{number}: {steps:?}");
            assert!(times(&self.project, *number) <= begun, "{number}: {steps:?}");
            let kept = pending.iter().find(|call| call["id"] == approval.as_str());
            let state = kept.and_then(|call| call["state"].as_str());
            let expected = match steps.last().copied() {
                Some("asked") => Some("pending"),
                Some("approved") => Some("approved"),
                Some("unknown") => Some("unknown"),
                _ => None,
            };
            assert_eq!(state, expected, "{number}: {steps:?}");
        }
        for (run, number) in &self.done {
            let approval = self.approved.iter().find(|(_, approved)| *approved == number);
            let (id, _) = approval.expect("it was approved");
            let ended = events.iter().find(|of| of["id"] == id.as_str() && of["step"] == "ended");
            assert_eq!(ended.map(|of| &of["outcome"]), Some(&json!("ok")), "{run} of {number}");
        }
    }

    /// A command that ends by itself has written its calls before: each run that it said is done has its call in the record.
    fn check_calls(&self) {
        let counting = ["history", "--tool", "counting__count", "--outcome", "ok", "--limit", ALL];
        let calls = self.list(&counting);
        for (run, number) in &self.done {
            assert_eq!(times(&self.project, *number), 1, "{number} was counted once");
            let recorded = calls.iter().filter(|call| call["run"] == run.as_str());
            let recorded: Vec<&Value> = recorded.map(|call| &call["arguments"]).collect();
            assert_eq!(recorded, [&json!({ "number": number })], "the call of {run}");
        }
    }
}
