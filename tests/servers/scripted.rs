//! An MCP server that answers what a file says: its argument names a JSON file of results by their
//! methods, which is read again for each request. After a call of a tool it says that its tools have
//! changed.

#![allow(clippy::print_stdout)]

use serde_json::{Map, Value, json};
use std::io::{BufRead, Write, stdin, stdout};

fn main() {
    let path = std::env::args().nth(1).expect("it is told what to say");
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let script = std::fs::read(&path).expect("there is a script");
        let script: Map<String, Value> = serde_json::from_slice(&script).expect("it is JSON");
        let method = message["method"].as_str().unwrap_or_default();
        let mut response = json!({ "jsonrpc": "2.0", "id": id });
        match script.get(method) {
            _ if method == "initialize" => {
                let offers = |what: &str| script.keys().any(|method| method.starts_with(what));
                let offered =
                    ["tools", "resources", "prompts"].into_iter().filter(|what| offers(what));
                let capabilities =
                    offered.map(|what| (what.to_string(), json!({ "listChanged": true })));
                response["result"] = json!({
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": capabilities.collect::<Map<String, Value>>(),
                    "serverInfo": { "name": "scripted", "version": "1" },
                });
            }
            Some(result) => response["result"] = result.clone(),
            None => response["error"] = json!({ "code": -32601, "message": "not in the script" }),
        }
        println!("{response}");
        if method == "tools/call" {
            println!(
                "{}",
                json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" })
            );
        }
        stdout().flush().expect("standard output is open");
    }
}
