//! An MCP server that answers what a file says: its argument names a JSON file of results by their
//! methods, which is read again for each request. After a call of a tool it says that its tools have
//! changed, or what the script names under `changes`. Errors stand under `errors`, by their methods, and
//! what it logs before it answers a call under `log`.

#![allow(clippy::print_stdout)]

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};

fn main() {
    let path = std::env::args().nth(1).expect("it is told what to say");
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let Some(id) = message.get("id") else { continue };
        let script = std::fs::read(&path).expect("there is a script");
        // Text, so that it says each number as it is written there.
        let script: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(&script).expect("it is JSON");
        let method = message["method"].as_str().unwrap_or_default();
        let errors = script.get("errors").map_or("{}", |errors| errors.get());
        let errors: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(errors).expect("they are by methods");
        if let Some(said) = script.get("log").filter(|_| method == "tools/call") {
            let said: Value = serde_json::from_str(said.get()).expect("it is JSON");
            let news =
                json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": said });
            println!("{news}");
        }
        let result = match script.get(method) {
            _ if method == "initialize" => {
                let offers = |what: &str| script.keys().any(|method| method.starts_with(what));
                let capabilities = [
                    ("tools", "tools"),
                    ("resources", "resources"),
                    ("prompts", "prompts"),
                    ("completion/", "completions"),
                ];
                let offered = capabilities.into_iter().filter(|(methods, _)| offers(methods));
                let subscribes = errors.contains_key("resources/subscribe");
                let capabilities = offered.map(|(_, what)| {
                    let subscribes = subscribes && what == "resources";
                    (what.to_string(), json!({ "listChanged": true, "subscribe": subscribes }))
                });
                let instructions = script.get("instructions").map(|text| text.get());
                let instructions = instructions.and_then(|text| serde_json::from_str(text).ok());
                let result = json!({
                    "instructions": instructions.unwrap_or(Value::String(String::new())),
                    "protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": capabilities.collect::<Map<String, Value>>(),
                    "serverInfo": { "name": "scripted", "version": "1" },
                });
                format!("\"result\":{result}")
            }
            _ if errors.contains_key(method) => format!("\"error\":{}", errors[method].get()),
            Some(result) => format!("\"result\":{}", result.get().replace('\n', " ")),
            None => r#""error":{"code":-32601,"message":"not in the script"}"#.into(),
        };
        println!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{result}}}");
        if method == "tools/call" {
            let changes = script.get("changes").map(|changes| changes.get());
            let changes: Vec<String> =
                serde_json::from_str(changes.unwrap_or(r#"["tools"]"#)).expect("it is a list");
            for list in changes {
                let method = format!("notifications/{list}/list_changed");
                println!("{}", json!({ "jsonrpc": "2.0", "method": method }));
            }
        }
        stdout().flush().expect("standard output is open");
    }
}
