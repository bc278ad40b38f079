//! Results of megabytes: they arrive, or are kept whole, and cost no more than a few times what the
//! server wrote.

use serde_json::{Value, json};
use std::fs;
use std::io::Read;
use std::process::Stdio;

use crate::support::{Project, SCRIPTED_SERVER, stderr, stdout};

/// How long the large results are, in bytes, or so.
const LARGE: usize = 10 << 20;

/// How long the small ones are: longer than what a pipe holds, so that the command cannot end
/// before all of its output is read.
const SMALL: usize = 256 << 10;

/// A text of many lines, which is longer in JSON.
fn lines(length: usize) -> String {
    "0123456789abcde\n".repeat(length / 17)
}

fn text(length: usize) -> Value {
    json!({ "content": [{ "type": "text", "text": lines(length) }] })
}

/// The same twice, as servers answer whose tools have an output schema.
fn twice(length: usize) -> Value {
    let lines = lines(length / 2);
    let content = [json!({ "type": "text", "text": lines })];
    json!({ "content": content, "structuredContent": { "content": lines } })
}

/// Of which a tree would be many times as long.
fn numbers(length: usize) -> Value {
    let content = [json!({ "type": "text", "text": lines(SMALL) })];
    json!({ "content": content, "structuredContent": { "content": vec![1; length / 2] } })
}

fn blocks(length: usize) -> Value {
    let block = json!({ "type": "text", "text": lines(1000) });
    json!({ "content": vec![block; length / 1000] })
}

fn image(length: usize) -> Value {
    let text = json!({ "type": "text", "text": lines(SMALL) });
    let image =
        json!({ "type": "image", "mimeType": "image/png", "data": "QUJD".repeat(length / 4) });
    json!({ "content": [text, image] })
}

/// The most memory that `tenon call` has had by the time that it prints what a tool answers, in
/// bytes, and how long the line of the server was.
fn peak(result: &Value) -> (usize, usize) {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]"
    ));
    let schema = json!({ "type": "object", "required": ["content"] });
    let tool =
        json!({ "name": "read", "inputSchema": { "type": "object" }, "outputSchema": schema });
    let script = json!({ "tools/list": { "tools": [tool] }, "tools/call": result });
    project.write("script.json", script.to_string());
    let mut command = project.command(&["call", "s__read"]);
    let mut tenon = command.stdout(Stdio::piped()).spawn().expect("tenon starts");
    let mut output = tenon.stdout.take().expect("it is piped");
    // It has begun to print, and cannot end before the rest is read.
    output.read_exact(&mut [0]).expect("it prints something");
    let status = fs::read_to_string(format!("/proc/{}/status", tenon.id())).expect("it runs");
    let mut rest = Vec::new();
    output.read_to_end(&mut rest).expect("it prints the rest");
    assert!(tenon.wait().expect("it ends").success());
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let peak = peak.and_then(|line| line.trim().strip_suffix(" kB")).expect("the peak is known");
    (peak.parse::<usize>().expect("it is a number") << 10, result.to_string().len())
}

#[test]
fn a_result_of_megabytes_costs_less_than_four_times_its_length() {
    let (small, _) = peak(&twice(SMALL));
    for (what, result) in [
        ("text", text(LARGE)),
        ("text twice", twice(LARGE)),
        ("numbers", numbers(LARGE)),
        ("blocks", blocks(LARGE)),
        ("image", image(LARGE)),
    ] {
        let (large, length) = peak(&result);
        let times = large.saturating_sub(small) as f64 / length as f64;
        assert!(times < 4.0, "{what}: {times:.2} times {length} bytes");
    }
}

/// How long a result may be that is kept, and how much of all, is for the operator to say.
#[test]
fn no_more_is_kept_of_results_than_the_operator_lets_be() {
    for (settings, kept) in [
        ("", [true, true]),
        ("results.max_result_mib = 2", [false, true]),
        ("results.max_result_mib = 1", [false, false]),
        // The newest is kept, at the cost of all before.
        ("results.max_mib = 4", [false, true]),
    ] {
        let project = Project::new(&format!(
            "{settings}\nplugins.mcp = [{{ name = \"s\", command = {SCRIPTED_SERVER:?}, args = [\"script.json\"] }}]"
        ));
        let call = |length: usize| {
            let tool = json!({ "name": "long", "inputSchema": { "type": "object" } });
            let script = json!({ "tools/list": { "tools": [tool] }, "tools/call": text(length) });
            project.write("script.json", script.to_string());
            let output = project.tenon(&["--config", "tenon.toml", "call", "s__long"]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            stdout(&output)
        };
        let uri = |said: &str| {
            let (_, rest) = said.split_once("tenon://results/")?;
            let id: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
            Some(format!("tenon://results/{id}"))
        };
        let said = [call(3 << 20), call(3 << 19)];
        let read = said.map(|said| {
            uri(&said).is_some_and(|uri| {
                let output = project.tenon(&["--config", "tenon.toml", "resources", "read", &uri]);
                output.status.code() == Some(0)
            })
        });
        assert_eq!(read, kept, "{settings}");
    }
}
