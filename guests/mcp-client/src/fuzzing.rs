//! What is fuzzed: whole conversations. An input is text, a step on each line; what it leads to is
//! held against what a [`Client`] promises its driver.
//!
//! A line of the server's is one that begins with none of the driver's words:
//!
//! * `!call`, `!task`, `!list`, `!subscribe`, `!unsubscribe`: something is asked of the server
//! * `!cancel N`: the Nth operation is given up
//! * `!answer N`, `!deny N`: the Nth thing that the server asked is answered
//! * `!long N`: a line was too long, of which the beginning is a response with this id
//! * `!failed N`: a request will have no answer
//! * `!wait N`: so many milliseconds go by
//! * `!lost`, `!restart`, `!connect`: as they say, where the driver could say so
//!
//! The first line says how the client is set up, with any of `probe`, `legacy`, `modern`, `was-modern`,
//! `all`, `ping` and `log`.

use serde::de::IgnoredAny;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Action, AskId, Client, Era, Error, Features, HandshakeMode, Members, OperationId, Request,
    Root, Settings,
};

/// Runs a conversation, and panics where the client does not keep a promise.
pub fn conversation(data: &[u8]) {
    let mut lines = data.split(|byte| *byte == b'\n');
    let words = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let mut driver = Driver::new(settings(&words));
    driver.connect();
    for line in lines {
        driver.step(line);
        driver.act();
    }
    driver.end();
}

fn settings(words: &str) -> Settings {
    let has = |word: &str| words.split_whitespace().any(|said| said == word);
    let protocol = match () {
        () if has("probe") => HandshakeMode::Probe,
        () if has("legacy") => HandshakeMode::Legacy,
        () if has("modern") => HandshakeMode::Modern,
        () => HandshakeMode::Auto,
    };
    let all = has("all");
    Settings {
        name: "fuzz".into(),
        version: "1".into(),
        timeout: 1_000,
        protocol,
        era: has("was-modern").then_some(Era::Modern),
        features: Features { forms: all, pages: all, sampling: all, roots: all },
        roots: all.then(|| Root { uri: "file:///a".into(), name: None }).into_iter().collect(),
        log_level: has("log").then(|| "info".into()),
        ping: has("ping").then_some(5_000),
    }
}

/// One that does what it is told, and remembers it.
struct Driver {
    client: Client,
    now: u64,
    operations: Vec<OperationId>,
    /// Those that are not over.
    open: BTreeSet<OperationId>,
    connecting: Option<OperationId>,
    /// All that was asked, and whether an answer is still wanted.
    asks: BTreeMap<AskId, bool>,
    restart: bool,
    disconnect: bool,
    /// The last request that was written.
    last_request: u64,
}

impl Driver {
    fn new(settings: Settings) -> Self {
        Self {
            client: Client::new(settings),
            now: 0,
            operations: Vec::new(),
            open: BTreeSet::new(),
            connecting: None,
            asks: BTreeMap::new(),
            restart: false,
            disconnect: false,
            last_request: 0,
        }
    }

    fn began(&mut self, operation: OperationId) {
        assert!(!self.operations.contains(&operation), "an operation has a number of its own");
        self.operations.push(operation);
        self.open.insert(operation);
    }

    fn connect(&mut self) {
        if self.client.server().is_none() && self.connecting.is_none() {
            let operation = self.client.connect(self.now, 3_000);
            self.connecting = Some(operation);
            self.began(operation);
        }
        self.act();
    }

    fn request(&mut self, task: bool) {
        let request = Request {
            method: if task { "tools/call" } else { "resources/read" },
            params: Members::new().with("name", "t").with("uri", "file:///a"),
            meta: Members::new().with("traceparent", "x"),
            subject: Some("t"),
            timeout: task.then_some(500),
            progress: true,
            task,
            features: None,
        };
        let operation = self.client.request(request, self.now);
        self.began(operation);
    }

    fn step(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        let (word, number) = text.split_once(' ').unwrap_or((&text, ""));
        let number: usize = number.trim().parse().unwrap_or(0);
        match word {
            "!call" => self.request(false),
            "!task" => self.request(true),
            "!list" => {
                let operation = self.client.list_tools(self.now, None);
                self.began(operation);
            }
            "!subscribe" | "!unsubscribe" => {
                let uri = format!("file:///{}", number % 4);
                let operation = self.client.subscribe(&uri, word == "!subscribe", self.now);
                self.began(operation);
            }
            "!cancel" => {
                let operation = self.operations[number % self.operations.len()];
                self.client.cancel(operation);
                self.act();
                assert!(!self.open.contains(&operation), "what is cancelled is over");
            }
            "!answer" | "!deny" => {
                let Some((&ask, _)) = self.asks.iter().nth(number) else { return };
                let result = match word {
                    "!answer" => Ok(r#"{"action":"accept"}"#.into()),
                    _ => Err((-1, "no \"thanks\"\n".into())),
                };
                self.client.answer(ask, result, self.now);
                self.asks.insert(ask, false);
            }
            "!long" => {
                let prefix = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"result\":");
                self.client.oversized(prefix.as_bytes(), 1 << 30);
            }
            "!failed" => {
                let error = Error::Protocol("it failed".into());
                self.client.failed(number as u64, error);
            }
            "!wait" => self.wait(number.min(100_000) as u64),
            "!lost" => self.lost(),
            "!restart" if std::mem::take(&mut self.restart) => self.client.restarted(self.now),
            "!connect" => self.connect(),
            _ => self.client.receive(line.to_vec(), self.now),
        }
    }

    fn wait(&mut self, time: u64) {
        self.now += time;
        self.client.tick(self.now);
        self.act();
        let deadline = self.client.deadline();
        assert!(deadline.is_none_or(|deadline| deadline > self.now), "{deadline:?} is over");
    }

    fn answer_all(&mut self) {
        let asks = self.asks.iter_mut().filter(|(_, wanted)| **wanted);
        let asks: Vec<_> = asks.map(|(ask, wanted)| (*ask, *wanted = false).0).collect();
        for ask in asks {
            self.client.answer(ask, Ok("{}".into()), self.now);
            self.act();
        }
    }

    fn lost(&mut self) {
        self.restart = false;
        self.disconnect = false;
        self.client.lost("it was lost");
        self.act();
        assert!(self.asks.values().all(|wanted| !wanted), "nobody is there to be answered");
    }

    /// Does what the client wants done.
    fn act(&mut self) {
        while let Some(action) = self.client.action() {
            match action {
                Action::Write { line, request } => self.write(&line, request),
                Action::Abandon(request) => {
                    assert!(self.client.head(request).is_none(), "it is not waited for");
                }
                Action::Finish(operation, result) => {
                    assert!(self.open.remove(&operation), "an operation ends once: {result:?}");
                    if self.connecting == Some(operation) {
                        self.connecting = None;
                        self.restart = false;
                        assert_eq!(result.is_ok(), self.client.server().is_some());
                    }
                }
                Action::Restart => self.restart = true,
                Action::Disconnect(_) => self.disconnect = true,
                Action::Progress { operation, .. } => {
                    assert!(self.open.contains(&operation), "what is over makes no progress");
                }
                Action::Ask { ask, operation, .. } => {
                    assert!(self.asks.insert(ask, true).is_none(), "it is asked once");
                    assert!(operation.is_none_or(|operation| self.open.contains(&operation)));
                }
                Action::Withdraw(ask) => {
                    let wanted = self.asks.insert(ask, false);
                    assert_eq!(wanted, Some(true), "what is withdrawn was asked");
                }
                Action::ToolsChanged
                | Action::ResourceUpdated(_)
                | Action::Skipped(_)
                | Action::Log { .. } => {}
            }
        }
        // Who does not answer any more is ended.
        if self.disconnect {
            self.lost();
        }
    }

    fn write(&mut self, line: &[u8], request: Option<u64>) {
        let shown = String::from_utf8_lossy(line);
        assert!(!line.iter().any(|byte| matches!(byte, b'\n' | b'\r')), "not one line: {shown}");
        let message: BTreeMap<String, &serde_json::value::RawValue> =
            serde_json::from_slice(line).unwrap_or_else(|error| panic!("{error}: {shown}"));
        serde_json::from_slice::<IgnoredAny>(line).expect("it is JSON");
        assert_eq!(message.get("jsonrpc").map(|value| value.get()), Some("\"2.0\""), "{shown}");
        let is_response = !message.contains_key("method");
        if let Some(id) = request {
            assert_eq!(message.get("id").map(|id| id.get().to_string()), Some(id.to_string()));
            assert!(id > self.last_request, "an id is used once: {shown}");
            self.last_request = id;
        }
        let Some(server) = self.client.server() else { return };
        if server.era == Era::Modern {
            assert!(!is_response, "the newer era has no responses: {shown}");
            let meta = message.get("params").and_then(|params| {
                let params: BTreeMap<String, &serde_json::value::RawValue> =
                    serde_json::from_str(params.get()).ok()?;
                serde_json::from_str::<Value>(params.get("_meta")?.get()).ok()
            });
            let meta = meta.unwrap_or_else(|| panic!("it says nothing of itself: {shown}"));
            assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], crate::MODERN);
        }
    }

    /// Whatever is still open is over when the server is, or at the latest when its time is, which goes on
    /// while nobody is asked.
    fn end(mut self) {
        if self.now.is_multiple_of(2) {
            self.lost();
            // It may be started again for the other era, and then that fails.
            self.lost();
            assert_eq!(self.client.deadline(), None);
        } else {
            // A handshake that waits for its server to be started is in the driver's hands.
            if self.restart {
                self.lost();
            }
            for _ in 0..100 {
                self.answer_all();
                self.wait(10_000);
            }
        }
        assert!(self.open.is_empty(), "{:?} never ended", self.open);
    }
}

// How much was tried is for who runs the tests.
#[cfg(test)]
#[allow(clippy::print_stdout)]
mod tests {
    use super::conversation;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestError, TestRunner};
    use std::cell::Cell;
    use std::fs;
    use std::path::Path;
    use std::time::{Duration, Instant};

    /// For how many seconds conversations are made up that nobody has seen.
    const SECONDS: &str = "TENON_FUZZ_SECONDS";

    fn seeds() -> Vec<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/mcp_client");
        let seeds = fs::read_dir(folder).expect("there are seeds");
        seeds.map(|seed| fs::read_to_string(seed.unwrap().path()).unwrap()).collect()
    }

    /// A line of a conversation, with numbers that are likely to mean something.
    fn line(known: Vec<String>) -> impl Strategy<Value = Vec<u8>> {
        let words = prop::sample::select(vec![
            "!call",
            "!task",
            "!list",
            "!subscribe",
            "!unsubscribe",
            "!cancel",
            "!answer",
            "!deny",
            "!long",
            "!failed",
            "!lost",
            "!restart",
            "!connect",
        ]);
        prop_oneof![
            3 => (words, 0..12).prop_map(|(word, number)| format!("{word} {number}").into_bytes()),
            1 => (0..4_000).prop_map(|time| format!("!wait {time}").into_bytes()),
            // Lines of the seeds, with the id of another request.
            6 => (prop::sample::select(known), prop::option::of(0..16)).prop_map(|(line, id)| {
                match (id, line.split_once("\"id\":")) {
                    (Some(id), Some((before, after))) => {
                        let after = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
                        format!("{before}\"id\":{id}{after}").into_bytes()
                    }
                    _ => line.into_bytes(),
                }
            }),
            1 => any::<Vec<u8>>(),
        ]
    }

    #[test]
    fn the_seeds_are_conversations() {
        for seed in seeds() {
            conversation(seed.as_bytes());
        }
    }

    // MCP.md: A2, A3, B1, C8
    #[test]
    fn whatever_a_server_says_the_client_keeps_its_promises() {
        let seconds = std::env::var(SECONDS).ok();
        let seconds = seconds.map(|seconds| seconds.parse().expect("a number of seconds"));
        let settings = prop::sample::select(vec![
            "",
            "all",
            "probe all",
            "legacy ping log",
            "modern all",
            "was-modern",
            "ping all log",
        ]);
        let known = seeds();
        let known: Vec<String> =
            known.iter().flat_map(|seed| seed.lines().skip(1)).map(Into::into).collect();
        // From a beginning that leads somewhere, and from nothing.
        let beginning = prop::sample::select(
            seeds().into_iter().map(String::into_bytes).chain([Vec::new()]).collect::<Vec<_>>(),
        );
        let lines = prop::collection::vec(line(known), 0..40);
        let inputs = (settings, beginning, 0..12_usize, lines).prop_map(
            |(settings, beginning, kept, lines)| {
                let kept = beginning.split(|byte| *byte == b'\n').skip(1).take(kept);
                let settings = settings.as_bytes().to_vec();
                let all = [settings].into_iter().chain(kept.map(<[u8]>::to_vec)).chain(lines);
                all.collect::<Vec<_>>().join(&b'\n')
            },
        );
        let (begin, cases) = (Instant::now(), Cell::new(0));
        loop {
            let config = Config { failure_persistence: None, ..Config::default() };
            let result = TestRunner::new(config).run(&inputs, |input| {
                cases.set(cases.get() + 1);
                conversation(&input);
                Ok(())
            });
            if let Err(TestError::Fail(reason, input)) = result {
                panic!("{reason}\n{}", String::from_utf8_lossy(&input));
            }
            if seconds.is_none_or(|seconds| begin.elapsed() >= Duration::from_secs(seconds)) {
                break;
            }
        }
        println!("mcp_client: {} conversations in {:?}", cases.get(), begin.elapsed());
    }
}
