//! More of the machine than a plugin's share, in components on fresh and on shared instances and in
//! scripts. Each is tried while another plugin is at work.

use serde_json::{Value, json};

use crate::action::{Action, Expect, ExpectedLog, StoppedBy};
use crate::case::{ApiSurface, Capability};
use crate::plugins::{LIMITED, LOG_BURST, LOG_RATE, ample, limits_of};
use crate::row::{AttemptEffects, Control, Row, answered, echo};
use crate::table::network::get;

const BY: [ApiSurface; 3] = [ApiSurface::Component, ApiSurface::SharedComponent, ApiSurface::Rhai];

/// What is tried with an amount, about which limit, and what comes of it where it is too much.
struct AmountCase {
    tried: &'static str,
    /// The limit of the plugin that it is too much for.
    about: &'static str,
    /// The tools of components and of scripts, and how much of it they are to do.
    component: Option<(&'static str, &'static str)>,
    script: Option<(&'static str, &'static str)>,
    stops: &'static [StoppedBy],
}

/// What is too much for one plugin and not for another, which has more.
const AMOUNTS: &[AmountCase] = &[
    AmountCase {
        tried: "compute too long",
        about: "cpu",
        component: Some(("compute", "1500000000")),
        // It takes longer than 300 ms, however fast the machine is.
        script: Some(("compute", "80000000")),
        stops: &[StoppedBy::Cpu],
    },
    AmountCase {
        tried: "wait too long",
        about: "wall",
        component: Some(("wait", "2000")),
        script: None,
        stops: &[StoppedBy::Wall],
    },
    AmountCase {
        tried: "give others a turn for too long",
        about: "wall",
        component: Some(("take_turns", "2000")),
        script: None,
        stops: &[StoppedBy::Wall],
    },
    AmountCase {
        tried: "hoard memory",
        about: "memory",
        component: Some(("take_memory", "48")),
        script: None,
        stops: &[StoppedBy::Memory],
    },
    AmountCase {
        tried: "call the host too often",
        about: "calls",
        // A shared instance may make as many again when it is older than a call may take.
        component: Some(("ask_host", "15000")),
        script: Some(("ask_host", "6000")),
        stops: &[StoppedBy::HostCalls],
    },
];

/// What is too much for every plugin, and how much is not.
struct FixedLimit {
    tried: &'static str,
    script: bool,
    component: bool,
    tool: &'static str,
    too_much: &'static str,
    fits: &'static str,
    answer: &'static str,
    stops: &'static [StoppedBy],
}

const MOST: &[FixedLimit] = &[
    FixedLimit {
        tried: "recurse too deep",
        component: true,
        script: false,
        tool: "go_down",
        too_much: "10000000",
        fits: "100",
        answer: "100",
        stops: &[StoppedBy::Depth, StoppedBy::Trap],
    },
    FixedLimit {
        tried: "recurse too deep",
        component: false,
        script: true,
        tool: "go_down",
        too_much: "1000",
        fits: "20",
        answer: "20",
        stops: &[StoppedBy::Depth],
    },
    // Nobody here may hold more than 10,000.
    FixedLimit {
        tried: "hold objects of the host without end",
        component: true,
        script: false,
        tool: "take_handles",
        too_much: "20000",
        fits: "500",
        answer: "500",
        stops: &[StoppedBy::Trap],
    },
    FixedLimit {
        tried: "take random bytes without end",
        component: true,
        script: false,
        tool: "take_random",
        // One more than 1 MiB.
        too_much: "1048577",
        fits: "1048576",
        answer: "1048576",
        stops: &[StoppedBy::Trap],
    },
    FixedLimit {
        tried: "hoard a text",
        component: false,
        script: true,
        tool: "double",
        too_much: "30",
        fits: "10",
        answer: "1024",
        stops: &[StoppedBy::ValueSize],
    },
    // Rhai counts all items each time, which takes long before there are too many.
    FixedLimit {
        tried: "hoard the items of an array",
        component: false,
        script: true,
        tool: "take_items",
        too_much: "200000",
        fits: "100",
        answer: "100",
        stops: &[StoppedBy::ValueSize, StoppedBy::Cpu],
    },
];

/// What a component does that no host bears, whatever it may use.
const BREAKS: &[(&str, &str, &[StoppedBy])] = &[
    ("answer with what is no JSON", "nonsense", &[StoppedBy::Contract]),
    ("trap", "trap", &[StoppedBy::Trap]),
    ("panic", "panic", &[StoppedBy::Trap]),
    ("end the process", "exit", &[StoppedBy::Trap]),
];

/// Why no plugin may do it.
const ENDLESS: &str = "it is no call that comes to an end";

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (i, by) in BY.into_iter().enumerate() {
        let plugin = |about: &str| {
            let (_, ids) = LIMITED.iter().find(|(of, _)| *of == about).expect("it is a limit");
            ids[i]
        };
        let stopped = |stops, about| Expect::Stopped(stops, Box::new(limits_of(about)));
        // What a plugin that has more can do, where its host has not made that less.
        let fits = |deed: &Action, plugin, answer| {
            let expect = Expect::Fits(Box::new(answer), Box::new(ample()));
            Control::Call(deed.by(plugin, expect), AttemptEffects::default())
        };
        let is_script = by == ApiSurface::Rhai;
        for AmountCase { tried, about, component, script, stops } in AMOUNTS {
            let Some((tool, amount)) = *(if is_script { script } else { component }) else {
                continue;
            };
            // A guest that sleeps holds up its instance, for others as well.
            if tool == "wait" && by == ApiSurface::SharedComponent {
                continue;
            }
            let arguments = json!({ "text": amount });
            let deed = Action::new(plugin(about), tool, arguments, stopped(stops, about));
            let control = fits(&deed, plugin("plain"), Expect::answer(amount));
            rows.push(row(by, tried, deed, control).then(echo(plugin(about))));
        }
        let mosts = MOST.iter().filter(|m| if is_script { m.script } else { m.component });
        for FixedLimit { tried, tool, too_much, fits, answer, stops, .. } in mosts {
            let plugin = plugin("plain");
            let expect = stopped(stops, "plain");
            let deed = Action::new(plugin, tool, json!({ "text": too_much }), expect);
            let little = answered(plugin, tool, json!({ "text": fits }), answer);
            let control = Control::Call(little, AttemptEffects::default());
            rows.push(row(by, tried, deed, control).then(echo(plugin)));
        }
        if !is_script {
            let breaks = BREAKS.iter().map(|(tried, tool, stops)| {
                let plugin = plugin("plain");
                let deed = Action::new(plugin, tool, json!({}), stopped(stops, "plain"));
                let control = Control::never(echo(plugin), ENDLESS);
                row(by, tried, deed, control).then(echo(plugin))
            });
            rows.extend(breaks);
            let waiting = plugin("wall");
            let stopped_late = stopped(&[StoppedBy::Wall], "wall");
            let deed = Action::new(waiting, "hang", json!({}), stopped_late);
            let control = Control::never(echo(waiting), ENDLESS);
            rows.push(row(by, "wait for ever", deed, control).then(echo(waiting)));
            // It grows by a thousand elements for each byte of this.
            let arguments = json!({ "text": "twenty bytes" });
            let deed = Action::new(
                plugin("table"),
                "hoard_table",
                arguments,
                stopped(&[StoppedBy::Table], "table"),
            );
            let control = fits(&deed, plugin("plain-table"), Expect::answer("fine"));
            rows.push(row(by, "grow a table", deed, control).then(echo(plugin("table"))));
            let expect = stopped(&[StoppedBy::Transfer], "transfer");
            let arguments = json!({ "text": "12" });
            let deed = Action::new(plugin("transfer"), "answer_with", arguments, expect);
            let control = fits(&deed, plugin("plain"), Expect::Begins("xxxxxxxx"));
            rows.push(row(by, "answer with 12 MiB", deed, control).then(echo(plugin("transfer"))));
        }
        rows.extend(floods(by, plugin));
        let plugin = plugin("output");
        let most = limits_of("output").output;
        let text = "x".repeat(4 * most);
        let whole = &text[..most];
        let control = answered(plugin, "echo", json!({ "text": whole }), whole);
        let control = Control::Call(control, AttemptEffects::default());
        let long = Expect::Cut(text.clone(), most);
        let long = Action::new(plugin, "echo", json!({ "text": text }), long);
        rows.push(row(by, "answer with more than is passed on", long, control).then(echo(plugin)));
    }
    let held = Expect::Stopped(&[StoppedBy::Cpu], Box::new(limits_of("greedy")));
    let deed = Action::new("greedy", "compute", json!({ "text": "1500000000" }), held);
    let expect = Expect::Fits(Box::new(Expect::answer("1500000000")), Box::new(ample()));
    let control = Control::Call(deed.by("plain", expect), AttemptEffects::default());
    let tried = "compute as long as its manifest asks and its operator does not allow";
    rows.push(row(ApiSurface::Component, tried, deed, control).then(echo("greedy")));
    rows.extend(downloads());
    rows.extend(chains());
    rows
}

/// More lines in the log than there is room for. What is too much is dropped, and nothing stopped.
fn floods(by: ApiSurface, plugin: impl Fn(&str) -> &'static str) -> Vec<Row> {
    let mut rows = Vec::new();
    let floods = [
        ("log without end", "log", "log_lines"),
        ("write to the console without end", "console", "write_lines"),
    ];
    for (tried, about, tool) in floods {
        // A script has no console, and what a shared instance writes there is no call's own.
        if by != ApiSurface::Component && about == "console" {
            continue;
        }
        let logged = |least, most, rate| {
            let present = "again and again";
            ExpectedLog { present, least, most, rate, absent: None }
        };
        let call = |plugin, lines: &str| {
            Action::new(plugin, tool, json!({ "text": lines }), Expect::answer(lines))
        };
        let deed = call(plugin(about), "5000").logged(logged(1, LOG_BURST, LOG_RATE));
        // As many as there is room for are all written.
        let few = call(plugin("plain"), "5").logged(logged(5, 5, 0));
        let control = Control::Call(few, AttemptEffects::default());
        rows.push(row(by, tried, deed, control).then(echo(plugin(about))));
    }
    rows
}

/// Responses that have no end, or are longer than they may be.
fn downloads() -> Vec<Row> {
    let mut rows = Vec::new();
    let wall = limits_of("download").wall;
    for by in [ApiSurface::Wasi02, ApiSurface::Wasi03, ApiSurface::Rhai] {
        let plugin = if by == ApiSurface::Rhai { "download-script" } else { "download" };
        let long = || match by {
            ApiSurface::Rhai => Expect::Says(&["body size exceeds limit"]),
            _ => Expect::Tells(&["HttpResponseBodySize(Some(1048576))", "body size exceeds limit"]),
        };
        // Its own deadline and that of its request are the same.
        let late = || {
            let stopped = Expect::Stopped(&[StoppedBy::Wall], Box::new(limits_of("download")));
            let told = match by {
                ApiSurface::Rhai => Expect::Says(LATE),
                _ => Expect::Tells(LATE),
            };
            Expect::Within(vec![stopped, told], wall / 2, 15 * wall)
        };
        for (tried, path, expect, fits, answer) in [
            (
                "get a response of a byte more than it may have",
                "/big?1048577",
                long(),
                // A text of a script has a limit of its own, and this is not all of its answer.
                if by == ApiSurface::Rhai { "/big?1000000" } else { "/big?1048576" },
                Expect::Begins("200 xxxxxxxx"),
            ),
            (
                "get a response that has no end",
                "/endless",
                long(),
                "/big?1000",
                Expect::Begins("200 xxxxxxxx"),
            ),
            (
                "get a response that comes slowly for ever",
                "/slow",
                late(),
                "/slow?25",
                Expect::answer(format!("200 {}", "x".repeat(25))),
            ),
            (
                "get a response that never comes",
                "/silent",
                late(),
                "/silent?500",
                Expect::answer("200 ok"),
            ),
        ] {
            let get = |path, expect| get(plugin, by, &format!("http://{{server}}{path}"), expect);
            let control = Control::Call(get(fits, answer), AttemptEffects::default());
            let well = get("/ok", Expect::answer("200 ok"));
            rows.push(row(by, tried, get(path, expect), control).then(well));
        }
    }
    rows
}

/// What a plugin is told whose response does not come in time: a component by the name of the error, a script in words.
const LATE: &[&str] = &["HttpResponseTimeout", "HTTP response timeout"];

/// Calls of plugins by plugins, which have an end.
fn chains() -> Vec<Row> {
    let call = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let witness = || call("conformance-witness__echo", json!({}));
    // Each calls the next, until the last calls the witness.
    let nested = |names: [&str; 2], depth: usize| {
        (0..depth).fold(witness(), |inner, i| call(names[i % 2], inner))
    };
    let (asking, script) = ("conformance-asking__call", "conformance-script__call");
    let mut rows = Vec::new();
    for (by, plugin, own) in
        [(ApiSurface::Import, "asking", asking), (ApiSurface::Rhai, "script", script)]
    {
        let well = || answered(plugin, "call", witness(), "echo was called");
        for (tried, names) in [("call itself", [own, own]), ("call each other", [asking, script])] {
            let long = &["calls of plugins by plugins is longer than"];
            // A script puts the error of who it called into its own words, and a component passes it on.
            let end = if names[0] == names[1] { Expect::Says(long) } else { Expect::Tells(long) };
            let many = Action::new(plugin, "call", nested(names, 12), end);
            let few = answered(plugin, "call", nested(names, 4), "echo was called");
            let control = Control::Call(few.clone(), AttemptEffects::default());
            let again = row(by, &format!("{tried} again and again"), many.clone(), control);
            rows.push(again.then(well()).also("asking").also("script"));
            let row = row(by, &format!("{tried} four times"), few, Control::Refused(many));
            rows.push(row.also("asking").also("script"));
        }
    }
    // It answers how many calls came of it.
    let fork = |depth: u32, expect| {
        let arguments = json!({ "name": "conformance-script__fork", "depth": depth });
        Action::new("script", "fork", arguments, expect)
    };
    let control = Control::Call(fork(3, Expect::answer("15")), AttemptEffects::default());
    let well = answered("script", "call", witness(), "echo was called");
    let tried = "call itself twice in each call";
    // Where its host gives it less time, that may end it before.
    let all = Expect::Fits(Box::new(Expect::answer("511")), Box::new(ample()));
    rows.push(row(ApiSurface::Rhai, tried, fork(100, all), control).then(well));
    rows
}

/// A row that is tried while another plugin is at work.
fn row(by: ApiSurface, tried: &str, deed: Action, control: Control) -> Row {
    Row { meanwhile: true, ..Row::new(Capability::Limits, by, tried, deed, control) }
}

impl Row {
    fn also(mut self, plugin: &'static str) -> Self {
        self.others.push(plugin);
        self
    }
}
