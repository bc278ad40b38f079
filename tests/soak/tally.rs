//! The account of all calls: what was sent, what came of it, and what should not have.

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use crate::project::SERVERS;

/// What a call is of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    Component,
    Script,
    /// The server that is killed.
    Killed,
    /// The server that is left alone.
    Spared,
}

impl Target {
    pub(crate) const ALL: [Self; 4] = [Self::Component, Self::Script, Self::Killed, Self::Spared];

    /// The tool, as clients see it.
    pub(crate) fn tool(self) -> &'static str {
        match self {
            Self::Component => "echo__echo",
            Self::Script => "script__say",
            Self::Killed => "killed__count",
            Self::Spared => "spared__count",
        }
    }

    /// The parameters of a call with a number.
    pub(crate) fn call(self, number: u64) -> Value {
        let arguments = match self {
            Self::Component => json!({ "text": number.to_string() }),
            // Some take as long as others are answered, and long enough to become a stream.
            Self::Killed | Self::Spared => {
                let millis = [0, 0, 20, 250][number as usize % 4];
                json!({ "number": number, "millis": millis })
            }
            Self::Script => json!({ "number": number }),
        };
        json!({ "name": self.tool(), "arguments": arguments })
    }
}

/// What came of a call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Answered,
    /// The server was killed meanwhile, and the answer says so.
    ServerEnded,
    /// The client went away.
    Vanished,
}

/// The errors of a call whose server was killed: before the call was answered, and before it was sent.
const ENDED: [&str; 2] = [
    "unavailable: the server was ended by signal 9",
    "unavailable: the server ends as soon as it is connected",
];

#[derive(Default)]
pub(crate) struct Tally {
    inner: Mutex<Inner>,
}

#[derive(Default)]
pub(crate) struct Inner {
    pub(crate) sent: u64,
    /// The calls by client, target and outcome.
    pub(crate) calls: BTreeMap<(&'static str, Target, Outcome), u64>,
    /// The calls that were answered, or of which nothing is known, by target.
    pub(crate) answered: BTreeMap<Target, BTreeSet<u64>>,
    pub(crate) unanswered: BTreeMap<Target, BTreeSet<u64>>,
    pub(crate) times: Vec<Duration>,
    /// The versions of the script that have answered.
    pub(crate) versions: BTreeSet<u32>,
    /// What else happened, by name.
    pub(crate) events: BTreeMap<&'static str, u64>,
    /// The errors of calls whose server was killed.
    pub(crate) errors: BTreeMap<&'static str, u64>,
    /// What went wrong: how often, and how it was the first time.
    pub(crate) failures: BTreeMap<&'static str, (u64, String)>,
}

impl Tally {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// A number that no other call has.
    pub(crate) fn number(&self) -> u64 {
        let mut inner = self.lock();
        inner.sent += 1;
        inner.sent
    }

    pub(crate) fn event(&self, what: &'static str) {
        *self.lock().events.entry(what).or_default() += 1;
    }

    pub(crate) fn fail(&self, what: &'static str, how: impl Into<String>) {
        self.lock().failures.entry(what).or_insert_with(|| (0, how.into())).0 += 1;
    }

    /// Takes what came in answer to a call.
    pub(crate) fn take(
        &self,
        client: &'static str,
        (target, number): (Target, u64),
        messages: &[Value],
        time: Duration,
    ) {
        let mut answers = messages.iter().filter(|message| message.get("method").is_none());
        let (answer, second) = (answers.next(), answers.next());
        if second.is_some() {
            self.fail("doubled", format!("{client}, {target:?}: {}", json!(messages)));
        }
        let Some(answer) = answer else {
            return self.fail("lost", format!("{client}, {target:?}: {}", json!(messages)));
        };
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_default();
        if answer["id"] != number {
            return self.fail("wrong", format!("{client}, {target:?}, {number}: {answer}"));
        }
        let outcome = if answer["result"]["isError"] == true {
            let known = ENDED.into_iter().find(|words| *words == text);
            let Some(error) = known.filter(|_| target == Target::Killed) else {
                return self.fail("refused", format!("{client}, {target:?}, {number}: {answer}"));
            };
            *self.lock().errors.entry(error).or_default() += 1;
            Outcome::ServerEnded
        } else {
            let (version, own) = match target {
                Target::Script => text.split_once(' ').unwrap_or_default(),
                _ => ("", text),
            };
            if own != number.to_string() {
                return self.fail("wrong", format!("{client}, {target:?}, {number}: {answer}"));
            }
            self.lock().versions.extend(version.parse::<u32>().ok());
            Outcome::Answered
        };
        let mut inner = self.lock();
        inner.times.push(time);
        inner.count(client, target, number, outcome);
    }

    /// Takes note of a call whose client has gone away.
    pub(crate) fn vanish(&self, client: &'static str, (target, number): (Target, u64)) {
        self.lock().count(client, target, number, Outcome::Vanished);
    }
}

impl Inner {
    fn count(&mut self, client: &'static str, target: Target, number: u64, outcome: Outcome) {
        *self.calls.entry((client, target, outcome)).or_default() += 1;
        let numbers = match outcome {
            Outcome::Answered => &mut self.answered,
            Outcome::ServerEnded | Outcome::Vanished => &mut self.unanswered,
        };
        numbers.entry(target).or_default().insert(number);
    }

    /// How many calls of a target had an outcome.
    pub(crate) fn of(&self, target: Target, outcome: Outcome) -> u64 {
        let calls =
            self.calls.iter().filter(|((_, of, came), _)| *of == target && *came == outcome);
        calls.map(|(_, count)| count).sum()
    }
}

/// Compares what the servers have carried out with what clients know. Each call was carried out once if it was answered,
/// and once at most if it was not.
pub(crate) fn audit(tally: &Tally, carried_out: impl Fn(&str) -> BTreeMap<u64, u32>) {
    for (target, server) in [Target::Killed, Target::Spared].into_iter().zip(SERVERS) {
        let carried_out = carried_out(server);
        let (answered, unanswered) = {
            let mut inner = tally.lock();
            let mut of = |answered: bool| match answered {
                true => inner.answered.remove(&target).unwrap_or_default(),
                false => inner.unanswered.remove(&target).unwrap_or_default(),
            };
            (of(true), of(false))
        };
        for (number, times) in &carried_out {
            if *times > 1 {
                tally.fail("carried out twice", format!("{server}, {number}: {times} times"));
            }
            if !answered.contains(number) && !unanswered.contains(number) {
                tally.fail("carried out, but never called", format!("{server}, {number}"));
            }
        }
        for number in answered.iter().filter(|number| !carried_out.contains_key(number)) {
            tally.fail("answered, but not carried out", format!("{server}, {number}"));
        }
    }
}
