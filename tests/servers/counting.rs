//! An MCP server of one era that keeps account of what it does: `counting-server legacy|modern FOLDER`. Its tool `count`
//! answers with the `number` that it is given, after so many `millis`. Each number is a line in the file `calls` of the
//! folder before it is answered, and each start of the server one in the file `starts`, with the number of the process.

#![allow(clippy::print_stdout)]

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::{BufRead, Write, stdin};
use std::path::Path;
use std::thread;
use std::time::Duration;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let is_modern = arguments.next().expect("it is told its era") == "modern";
    let folder = arguments.next().expect("it is told where to keep account");
    let folder = Path::new(&folder);
    append(&folder.join("starts"), std::process::id());
    for line in stdin().lock().lines() {
        let Ok(line) = line else { return };
        let message: Value = serde_json::from_str(&line).expect("it is JSON");
        let Some(id) = message.get("id").cloned() else { continue };
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" if !is_modern => json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "counting", "version": "1" },
            }),
            "server/discover" if is_modern => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "counting", "version": "1" },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "counting", "version": "1" } },
            }),
            "ping" => json!({}),
            "tools/list" => json!({ "tools": [tool()] }),
            "tools/call" => {
                let arguments = &params["arguments"];
                let number = arguments["number"].as_u64().expect("the call has a number");
                append(&folder.join("calls"), number);
                let result = json!({ "content": [{ "type": "text", "text": number.to_string() }] });
                let millis = arguments["millis"].as_u64().unwrap_or_default();
                if millis > 0 {
                    thread::spawn(move || {
                        thread::sleep(Duration::from_millis(millis));
                        answer(&id, result, is_modern);
                    });
                    continue;
                }
                result
            }
            method => {
                let error = json!({ "code": -32601, "message": format!("there is no {method}") });
                println!("{}", json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                continue;
            }
        };
        answer(&id, result, is_modern);
    }
}

fn tool() -> Value {
    let properties = json!({ "number": { "type": "integer" }, "millis": { "type": "integer" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["number"] });
    json!({ "name": "count", "description": "Keeps account of its `number`", "inputSchema": schema })
}

fn answer(id: &Value, mut result: Value, is_modern: bool) {
    if is_modern {
        result["resultType"] = "complete".into();
        result["ttlMs"] = 0.into();
        result["cacheScope"] = "private".into();
    }
    println!("{}", json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

/// Adds a line to a file in one piece, so that a process that is killed leaves none in part.
fn append(file: &Path, line: impl ToString) {
    let mut file = OpenOptions::new().create(true).append(true).open(file).expect("it may write");
    file.write_all(format!("{}\n", line.to_string()).as_bytes()).expect("there is room");
}
