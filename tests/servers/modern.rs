//! An MCP server of the newer era alone, whose tools need something of their client. Two of them have the names that
//! the conformance suite knows.

#![allow(clippy::print_stdout)]

use serde_json::{Map, Value, json};
use std::io::{BufRead, stdin};

/// What it gives its client to give back.
const STATE: &str = "as it was";

fn main() {
    for line in stdin().lock().lines() {
        let message: Value =
            serde_json::from_str(&line.expect("the client writes text")).expect("it is JSON");
        let Some(id) = message.get("id") else { continue };
        let answer =
            match answer(message["method"].as_str().unwrap_or_default(), &message["params"]) {
                Some(mut result) => {
                    let more = json!({ "ttlMs": 0, "cacheScope": "private" });
                    result.as_object_mut().expect("it is an object").extend(members(more));
                    result["resultType"] =
                        result.get("resultType").cloned().unwrap_or("complete".into());
                    json!({ "jsonrpc": "2.0", "id": id, "result": result })
                }
                None => {
                    let error = json!({ "code": -32601, "message": "there is no such method" });
                    json!({ "jsonrpc": "2.0", "id": id, "error": error })
                }
            };
        println!("{answer}");
    }
}

fn members(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn answer(method: &str, params: &Value) -> Option<Value> {
    let tool = |name: &str| json!({ "name": name, "description": format!("Tests {name}"), "inputSchema": { "type": "object" } });
    Some(match method {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "modern", "version": "1" },
            "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "modern", "version": "1" } },
        }),
        "tools/list" => json!({ "tools": [
            tool("declared"),
            tool("test_input_required_result_list_roots"),
            tool("test_input_required_result_multiple_inputs"),
        ] }),
        "tools/call" => call(params["name"].as_str()?, params)?,
        _ => return None,
    })
}

fn call(tool: &str, params: &Value) -> Option<Value> {
    let roots = json!({ "method": "roots/list", "params": {} });
    let said = |text: String| json!({ "content": [{ "type": "text", "text": text }] });
    let needed = match tool {
        // What the client can be asked for.
        "declared" => {
            let declared = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            let declared = declared.as_object()?.keys().filter(|name| *name != "extensions");
            return Some(said(declared.cloned().collect::<Vec<_>>().join(" ")));
        }
        "test_input_required_result_list_roots" => json!({ "client_roots": roots }),
        "test_input_required_result_multiple_inputs" => json!({
            "user_name": { "method": "elicitation/create", "params": {
                "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": { "name": { "type": "string" } },
                    "required": ["name"],
                },
            } },
            "greeting": { "method": "sampling/createMessage", "params": {
                "messages": [
                    { "role": "user", "content": { "type": "text", "text": "Generate a greeting" } },
                ],
                "maxTokens": 50,
            } },
            "client_roots": roots,
        }),
        _ => return None,
    };
    let answers = &params["inputResponses"];
    let is_answered = params["requestState"] == STATE
        && needed.as_object()?.keys().all(|key| answers[key].is_object());
    Some(match is_answered {
        true => said(answers["client_roots"]["roots"].to_string()),
        false => json!({
            "resultType": "input_required",
            "inputRequests": needed,
            "requestState": STATE,
        }),
    })
}
