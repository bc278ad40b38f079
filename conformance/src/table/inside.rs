//! What plugins ask the host itself for: its environment, secrets, services, models, other tools.

use serde_json::{Value, json};

use crate::attempt::{Deed, Expect, Unlogged, Words};
use crate::expectation::{Access, Capability};
use crate::plugins::Stage;
use crate::row::{Attempt, Row, Traces, answered, lines, refused};
use crate::standins::SECRET;
use crate::table::filesystem;

/// The ways to ask, and who asks so.
const WAYS: [(Access, &str); 2] = [(Access::Import, "asking"), (Access::Rhai, "script")];

pub(super) fn rows() -> Vec<Row> {
    let mut rows = filesystem::environment();
    rows.extend(secrets());
    for (by, plugin) in WAYS {
        rows.extend(services(by, plugin));
        rows.extend(providers(by, plugin));
        rows.extend(tools(by, plugin));
        rows.extend(approved(by));
    }
    let listed = "conformance-asking__call conformance-script__call conformance-script__fork \
                  conformance-witness__echo";
    let list = answered("asking", "list", json!({}), listed);
    rows.push(
        Row::new(Capability::Tools, Access::Import, "list the tools that were granted", list)
            .with(&["script", "files"]),
    );
    rows
}

fn secrets() -> Vec<Row> {
    let row = |tried: &str, deed| {
        Row::new(Capability::Secrets, Access::Import, tried, deed).on(Stage::Ours)
    };
    let get = |plugin, name: &str, plain: bool, expect| {
        Deed::new(plugin, "secret", json!({ "name": name, "plain": plain }), expect)
    };
    let masked = || get("secretive", "api-key", true, Expect::answer("it is [redacted]"));
    let spelt = "h u n t e r 2 2 - c o n f o r m a n c e - s e c r e t i v e ";
    let refused = || Expect::Refused(None, Words::Request("secrets"));
    let recorded = Attempt::Recorded(masked(), SECRET);
    let mut record = Row::trying(
        Capability::Secrets,
        Access::Import,
        "write a secret into the record of calls",
        "a record without it",
        recorded,
    );
    record.stage = Stage::Ours;
    vec![
        row(
            "use a secret that was granted",
            get("secretive", "api-key", false, Expect::answer(spelt)),
        ),
        row("answer with a secret", masked()),
        row("log a secret", masked().unlogged(Unlogged::Text(SECRET))),
        row(
            "use a secret that nobody has set",
            get("secretive", "unset", true, Expect::Says(&["nobody has set the secret unset"])),
        )
        .then(masked()),
        row("use a secret that was not granted", get("secretive", "other", true, refused()))
            .then(masked()),
        row(
            "use a secret that was requested and not approved",
            get("narrow-asking", "api-key", true, refused()),
        ),
        row(
            "use a secret that was approved and not requested",
            get("wide-asking", "other", true, refused()),
        ),
        record,
    ]
}

fn services(by: Access, plugin: &'static str) -> Vec<Row> {
    let row = |tried: &str, deed| Row::new(Capability::Services, by, tried, deed);
    let told = |what: &str| Traces {
        services: vec![format!("conformance-{plugin} {what}")],
        ..Traces::default()
    };
    let well = || well(plugin);
    vec![
        row(
            "send a message to a channel that was granted",
            answered(plugin, "send", json!({ "channel": "ops", "text": "hi" }), "sent"),
        )
        .leaves(told("to ops: hi")),
        row(
            "send a message to another channel",
            refused(plugin, "send", json!({ "channel": "all", "text": "hi" }), "services"),
        )
        .then(well()),
        row(
            "send a message to the user",
            refused(plugin, "send", json!({ "text": "hi" }), "services"),
        )
        .then(well()),
        row(
            "search the memory, which finds more than was asked for",
            answered(plugin, "recall", json!({ "query": "tea" }), "tea 0; tea 1; tea 2"),
        )
        .leaves(told("searches tea")),
    ]
}

fn providers(by: Access, plugin: &'static str) -> Vec<Row> {
    let row = |tried: &str, deed| Row::new(Capability::Providers, by, tried, deed);
    let ask = |model: &str| json!({ "model": model, "prompt": "may I?" });
    vec![
        row(
            "ask a model that was granted",
            answered(plugin, "ask", ask("conformance-witness/known"), "yes"),
        )
        .leaves(called(&["model known"])),
        row(
            "ask another model",
            refused(plugin, "ask", ask("conformance-witness/other"), "providers"),
        )
        .then(well(plugin)),
        row("ask a model by another name", refused(plugin, "ask", ask("known"), "providers"))
            .then(well(plugin)),
    ]
}

fn tools(by: Access, plugin: &'static str) -> Vec<Row> {
    let row = |tried: &str, deed| Row::new(Capability::Tools, by, tried, deed);
    vec![
        row("call a tool that was granted", well(plugin)).leaves(called(&["echo {}"])),
        row(
            "call another tool",
            refused(plugin, "call", call("conformance-witness__other", json!({})), "tools"),
        )
        .then(well(plugin)),
        row(
            "call a tool that does not exist",
            refused(plugin, "call", call("conformance-nobody__x", json!({})), "tools"),
        )
        .then(well(plugin)),
    ]
}

/// What was approved holds, if it was requested; what was requested holds, if it was approved.
fn approved(by: Access) -> Vec<Row> {
    let (narrow, wide) = match by {
        Access::Rhai => ("narrow-script", "wide-script"),
        _ => ("narrow-asking", "wide-asking"),
    };
    let row = |capability, tried: &str, deed| Row::new(capability, by, tried, deed).on(Stage::Ours);
    let send = || json!({ "text": "hi" });
    let ask = || json!({ "model": "conformance-witness/other", "prompt": "may I?" });
    let other = || call("conformance-witness__other", json!({}));
    let mut rows = vec![
        row(Capability::Tools, "call a tool that was requested and approved", well(narrow))
            .leaves(called(&["echo {}"])),
    ];
    for (what, plugin) in [
        ("what was requested and not approved", narrow),
        ("what was approved and not requested", wide),
    ] {
        rows.extend([
            row(
                Capability::Services,
                &format!("send a message, which is {what}"),
                refused(plugin, "send", send(), "services"),
            ),
            row(
                Capability::Providers,
                &format!("ask a model, which is {what}"),
                refused(plugin, "ask", ask(), "providers"),
            ),
            row(
                Capability::Tools,
                &format!("call a tool, which is {what}"),
                refused(plugin, "call", other(), "tools"),
            ),
        ]);
    }
    rows
}

/// What still works: a call of a tool.
fn well(plugin: &'static str) -> Deed {
    answered(plugin, "call", call("conformance-witness__echo", json!({})), "echo was called")
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn called(with: &[&str]) -> Traces {
    Traces { called: lines(with), ..Traces::default() }
}
