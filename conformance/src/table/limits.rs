//! More of the machine than a plugin's share, in components on fresh and on shared instances and in
//! scripts. Each is tried while another plugin is at work.

use serde_json::{Value, json};

use crate::attempt::{Deed, Expect, Stop, Unlogged};
use crate::expectation::{Access, Capability};
use crate::plugins::{LIMITED, LOG_LINES, limits_of};
use crate::row::{Row, answered, echo};
use crate::table::network::get;

const BY: [Access; 3] = [Access::Component, Access::SharedComponent, Access::Rhai];

/// What is tried, about which limit, by which tool of components and of scripts, and what stops it.
type Flood =
    (&'static str, &'static str, Option<&'static str>, Option<&'static str>, &'static [Stop]);

const FLOODS: &[Flood] = &[
    ("compute for ever", "cpu", Some("spin"), Some("spin"), &[Stop::Cpu]),
    ("wait for ever", "wall", Some("hang"), None, &[Stop::Wall]),
    (
        "compute for ever and give others a turn",
        "wall",
        Some("spin_politely"),
        None,
        &[Stop::Wall, Stop::Cpu],
    ),
    ("hoard memory", "memory", Some("hoard"), Some("hoard"), &[Stop::Memory, Stop::ValueSize]),
    // Rhai counts all items each time, which takes long before there are too many.
    (
        "hoard the items of an array",
        "cpu",
        None,
        Some("hoard_items"),
        &[Stop::ValueSize, Stop::Cpu],
    ),
    ("grow a table for ever", "table", Some("hoard_table"), None, &[Stop::Table]),
    ("recurse for ever", "plain", Some("recurse"), Some("recurse"), &[Stop::Depth, Stop::Trap]),
    ("call the host for ever", "calls", Some("flood_host"), Some("flood_host"), &[Stop::HostCalls]),
    ("log for ever", "log", Some("flood_log"), Some("flood_log"), &[Stop::Cpu, Stop::HostCalls]),
    (
        "write to the console for ever",
        "log",
        Some("flood_console"),
        None,
        &[Stop::Cpu, Stop::HostCalls],
    ),
    ("answer with 32 MiB", "transfer", Some("flood_output"), None, &[Stop::Transfer]),
    ("answer with what is no JSON", "plain", Some("nonsense"), None, &[Stop::Contract]),
    ("trap", "plain", Some("trap"), None, &[Stop::Trap]),
    ("panic", "plain", Some("panic"), None, &[Stop::Trap]),
    ("end the process", "plain", Some("exit"), None, &[Stop::Trap]),
];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for (i, by) in BY.into_iter().enumerate() {
        let plugin = |about: &str| {
            let (_, ids) = LIMITED.iter().find(|(of, _)| *of == about).expect("it is a limit");
            ids[i]
        };
        for (tried, about, component, script, stops) in FLOODS {
            let tool = if by == Access::Rhai { script } else { component };
            let Some(tool) = tool else { continue };
            let plugin = plugin(about);
            let expect = Expect::Stopped(stops, Box::new(limits_of(about)));
            let deed = Deed::new(plugin, tool, json!({}), expect);
            let deed = match *about {
                "log" => deed.unlogged(Unlogged::More("again and again", LOG_LINES)),
                _ => deed,
            };
            rows.push(row(by, tried, deed).then(echo(plugin)));
        }
        let plugin = plugin("output");
        let limits = limits_of("output");
        let text = json!({ "text": "x".repeat(4 * limits.output) });
        let long = Deed::new(plugin, "echo", text, Expect::Cut(limits.output));
        rows.push(row(by, "answer with more than is passed on", long).then(echo(plugin)));
    }
    let held = Expect::Stopped(&[Stop::Cpu], Box::new(limits_of("greedy")));
    rows.push(
        row(
            Access::Component,
            "compute for an hour, as its manifest asks and its operator does not allow",
            Deed::new("greedy", "spin", json!({}), held),
        )
        .then(echo("greedy")),
    );
    rows.extend(downloads());
    rows.extend(chains());
    rows
}

/// Responses that have no end, or are longer than they may be.
fn downloads() -> Vec<Row> {
    let mut rows = Vec::new();
    let long = &[
        "HttpResponseBodySize(Some(1048576))",
        "body size exceeds limit",
        "is longer than",
        "gave no answer within",
    ];
    for by in [Access::Wasi02, Access::Wasi03, Access::Rhai] {
        let plugin = if by == Access::Rhai { "download-script" } else { "download" };
        for (tried, path, expect) in [
            ("get a response of a byte more than it may have", "/big?1048577", Expect::Says(long)),
            ("get a response that has no end", "/endless", Expect::Says(long)),
            ("get a response that comes slowly for ever", "/slow", Expect::End),
            ("get a response that never comes", "/silent", Expect::End),
        ] {
            let deed = get(plugin, by, &format!("http://{{server}}{path}"), expect);
            let well = get(plugin, by, "http://{server}/ok", Expect::answer("200 ok"));
            rows.push(row(by, tried, deed).then(well));
        }
    }
    rows
}

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
    for (by, plugin, own) in [(Access::Import, "asking", asking), (Access::Rhai, "script", script)]
    {
        let well = || answered(plugin, "call", witness(), "echo was called");
        for (tried, names) in [("call itself", [own, own]), ("call each other", [asking, script])] {
            let end = Expect::Says(&["calls of plugins by plugins is longer than"]);
            let deed = Deed::new(plugin, "call", nested(names, 12), end);
            let row = row(by, &format!("{tried} again and again"), deed);
            rows.push(row.then(well()).also("asking").also("script"));
            let deed = answered(plugin, "call", nested(names, 4), "echo was called");
            rows.push(
                self::row(by, &format!("{tried} four times"), deed).also("asking").also("script"),
            );
        }
    }
    let bomb = json!({ "name": "conformance-script__fork" });
    let deed = Deed::new("script", "fork", bomb, Expect::End);
    let well = answered("script", "call", witness(), "echo was called");
    rows.push(row(Access::Rhai, "call itself twice in each call", deed).then(well));
    rows
}

/// A row that is tried while another plugin is at work.
fn row(by: Access, tried: &str, deed: Deed) -> Row {
    Row { meanwhile: true, ..Row::new(Capability::Limits, by, tried, deed) }
}

impl Row {
    fn also(mut self, plugin: &'static str) -> Self {
        self.others.push(plugin);
        self
    }
}
