//! Plugins that were granted nothing, that nobody has decided about, or that have changed since.

use serde_json::json;

use crate::attempt::{Deed, Expect, Words};
use crate::expectation::{Access, Capability};
use crate::plugins::{IMPORTING, Stage};
use crate::row::{Attempt, Row, answered, echo, refused};
use crate::table::filesystem::{edition, refusal};

pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    for by in [Access::Std, Access::Wasi02, Access::Wasi03] {
        let well = || answered("bare-files", "roots", json!({}), "/");
        for (deed, path) in [
            ("read", "/etc/passwd"),
            ("read", "{ground}/pub/a.txt"),
            ("write", "{ground}/pub/a.txt"),
            ("list", "{ground}/pub"),
            ("stat", "{ground}/pub/a.txt"),
            ("make-folder", "{ground}/pub/new"),
            ("unlink", "{ground}/pub/a.txt"),
        ] {
            let arguments = json!({ "edition": edition(by), "deed": deed, "path": path });
            let tried = Deed::new("bare-files", "attempt", arguments, refusal(by, deed));
            rows.push(row(by, &format!("{deed} {path}"), tried).then(well()));
        }
        let arguments = json!({ "edition": edition(by) });
        let variables = answered("bare-files", "variables", arguments, "");
        rows.push(row(by, "list the environment", variables));
    }
    let read = Deed::new(
        "bare-misbehaving",
        "read_file",
        json!({ "text": "../../../../../../etc/passwd" }),
        Expect::Refused(None, Words::None),
    );
    rows.push(
        row(Access::Std, "read ../../../../../../etc/passwd", read).then(echo("bare-misbehaving")),
    );
    let connect = Deed::new(
        "bare-misbehaving",
        "connect",
        json!({ "text": "{server}" }),
        Expect::Refused(None, Words::None),
    );
    rows.push(row(Access::Std, "connect to {server}", connect).then(echo("bare-misbehaving")));
    for (plugin, name, capability) in IMPORTING {
        let words = match capability {
            Some(capability) => format!("the capability `{capability}` is not granted"),
            None => format!("it imports {name}, which this host does not have"),
        };
        let interface = name.split('@').next().unwrap_or(name);
        rows.push(load(&format!("be loaded with {interface}"), plugin, &words));
    }
    rows.extend([
        load(
            "be loaded with requests in it",
            "bare-web",
            "the capability `network` is not granted",
        ),
        load("be loaded while nobody has decided", "undecided", "which nobody has approved")
            .on(Stage::Ours),
        load("be loaded with other code than was approved", "stale", "it is not what was approved")
            .on(Stage::Ours),
    ]);
    let script = "bare-script";
    for (tried, tool, arguments, capability) in [
        ("get http://{server}/ok/x", "fetch", json!({ "url": "http://{server}/ok/x" }), "network"),
        (
            "call a tool",
            "call",
            json!({ "name": "conformance-witness__echo", "arguments": {} }),
            "tools",
        ),
        (
            "ask a model",
            "ask",
            json!({ "model": "conformance-witness/known", "prompt": "may I?" }),
            "providers",
        ),
        ("send a message", "send", json!({ "text": "hi" }), "services"),
        ("search the memory", "recall", json!({ "query": "tea" }), "services"),
    ] {
        let deed = refused(script, tool, arguments, capability);
        rows.push(row(Access::Rhai, tried, deed).then(echo(script)));
    }
    let by = Access::Rhai;
    rows.extend([
        loading(by, "import a file", "script-importing", "etc/passwd"),
        loading(by, "make code of a text", "script-evaluating", "'eval' is disabled"),
    ]);
    rows
}

fn row(by: Access, tried: &str, deed: Deed) -> Row {
    Row::new(Capability::Nothing, by, tried, deed)
}

fn load(tried: &str, plugin: &'static str, words: &str) -> Row {
    loading(Access::Import, tried, plugin, words)
}

fn loading(by: Access, tried: &str, plugin: &'static str, words: &str) -> Row {
    let expected = format!("it is left out, and the host says: {words}");
    Row::trying(Capability::Nothing, by, tried, expected, Attempt::Load(plugin, words.into()))
}
