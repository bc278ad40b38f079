//! What all habits have in common: a server that behaves.

use serde_json::{Value, json};
use std::io::{BufRead, Write, stdin, stdout};
use std::process::exit;

/// Answers what comes, for as long as anything does. The habit goes first, and says whether it has
/// seen to a message.
pub(crate) fn serve(mut habit: impl FnMut(&Value) -> bool) {
    while let Some(message) = receive() {
        if !habit(&message) {
            properly(&message);
        }
    }
}

/// The same where the habit is to do something else with a call of the tool `rude`.
pub(crate) fn on_call(mut habit: impl FnMut(&Value)) {
    serve(|message| match message["method"].as_str() {
        Some("tools/list") => {
            answer(message, json!({ "tools": [tool("echo"), tool("rude")] }));
            true
        }
        Some("tools/call") if message["params"]["name"] == "rude" => {
            habit(message);
            true
        }
        _ => false,
    });
}

/// The next message, or nothing at the end of the input.
pub(crate) fn receive() -> Option<Value> {
    let mut line = String::new();
    let read = stdin().lock().read_line(&mut line);
    if read.ok()? == 0 {
        return None;
    }
    Some(serde_json::from_str(&line).expect("the host writes messages and nothing else"))
}

/// Writes bytes at once, whatever they are. Where nobody reads them any more, it is over.
pub(crate) fn write(bytes: impl AsRef<[u8]>) {
    let mut out = stdout().lock();
    if out.write_all(bytes.as_ref()).and_then(|()| out.flush()).is_err() {
        exit(0);
    }
}

pub(crate) fn send(message: &Value) {
    write(format!("{message}\n"));
}

pub(crate) fn tell(method: &str, params: Value) {
    send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

pub(crate) fn answer(request: &Value, result: Value) {
    send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
}

pub(crate) fn refuse(request: &Value, error: Value) {
    send(&json!({ "jsonrpc": "2.0", "id": request["id"], "error": error }));
}

/// The result of a tool that says this.
pub(crate) fn text(text: impl Into<Value>) -> Value {
    json!({ "content": [{ "type": "text", "text": text.into() }] })
}

/// An answer as it should be: the line without its end.
pub(crate) fn said(request: &Value, said: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": request["id"], "result": text(said) }).to_string()
}

pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "description": "A tool", "inputSchema": { "type": "object" } })
}

/// The answer to `initialize` of a server with these capabilities.
pub(crate) fn introduction(request: &Value, capabilities: Value) -> Value {
    json!({
        "protocolVersion": request["params"]["protocolVersion"],
        "capabilities": capabilities,
        "serverInfo": { "name": "rude", "version": "0" },
    })
}

/// Answers as one should.
pub(crate) fn properly(message: &Value) {
    if message.get("id").is_none() || message.get("method").is_none() {
        return;
    }
    let params = &message["params"];
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => answer(message, introduction(message, json!({ "tools": {} }))),
        "ping" => answer(message, json!({})),
        "tools/list" => answer(message, json!({ "tools": [tool("echo"), tool("meta")] })),
        "tools/call" if params["name"] == "meta" => {
            answer(message, text(params["_meta"].to_string()));
        }
        "tools/call" => answer(message, text(params["arguments"]["text"].clone())),
        method => {
            let problem = format!("no {method} here");
            refuse(message, json!({ "code": -32601, "message": problem }));
        }
    }
}
