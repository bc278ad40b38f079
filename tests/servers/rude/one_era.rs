//! Servers of one era only.

use serde_json::{Value, json};
use std::process::exit;

use crate::Habit;
use crate::server::{answer, properly, receive, refuse, send, serve, text, tool};

const REVISION: &str = "2026-07-28";

pub(crate) const HABITS: &[Habit] = &[
    // Of the older era, and it cannot bear to be asked about the newer.
    ("old", || {
        serve(|message| {
            if message["method"] == "server/discover" {
                exit(12);
            }
            false
        });
    }),
    // Of the newer era: it has never heard of `initialize`.
    ("modern", || modern(|_| false)),
    // It cannot bear to hear of it.
    ("modern-dies", || {
        modern(|message| {
            if message["method"] == "initialize" {
                eprintln!("what is initialize?");
                exit(13);
            }
            false
        });
    }),
    // It does not know which revision it speaks until it is asked twice.
    ("modern-twice", || {
        let mut asked = false;
        modern(move |message| {
            let first =
                message["method"] == "server/discover" && !std::mem::replace(&mut asked, true);
            if first {
                unsupported(message, &[REVISION]);
            }
            first
        });
    }),
    // What it lists and reads holds for a minute, as it says, and is another each time.
    ("modern-fresh", || {
        let mut asked = 0;
        modern(move |message| {
            asked += 1;
            let mut result = match message["method"].as_str() {
                Some("server/discover") => discovery(json!({ "tools": {}, "resources": {} })),
                Some("resources/list") => {
                    json!({ "resources": [{ "uri": "a:b", "name": asked.to_string() }] })
                }
                Some("resources/read") => {
                    json!({ "contents": [{ "uri": "a:b", "text": asked.to_string() }] })
                }
                _ => return false,
            };
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(60_000);
            result["cacheScope"] = json!("public");
            answer(message, result);
            true
        });
    }),
    // It is ahead of its time.
    ("ahead", || {
        serve(|message| {
            unsupported(message, &["2099-12-31"]);
            true
        });
    }),
];

fn unsupported(request: &Value, supported: &[&str]) {
    let data = json!({ "supported": supported, "requested": REVISION });
    let problem = "unsupported protocol version";
    refuse(request, json!({ "code": -32022, "message": problem, "data": data }));
}

/// A server of the newer era that behaves, but for a habit. It ends when it gets a response, which
/// its era does not have.
fn modern(mut habit: impl FnMut(&Value) -> bool) {
    let mut tools = ["echo", "ask", "sample", "grow", "odd", "slow", "lacks"].map(tool).to_vec();
    let mut stream = None;
    // How often it was asked for what it cannot do.
    let mut lacking = 0;
    // What the task was told that it needs.
    let mut told = None;
    while let Some(message) = receive() {
        if habit(&message) {
            continue;
        }
        let method = message["method"].as_str().unwrap_or_else(|| exit(14));
        let params = &message["params"];
        if message.get("id").is_none() {
            continue;
        }
        if method == "initialize" {
            refuse(&message, json!({ "code": -32601, "message": "initialize is not known" }));
            continue;
        }
        if let Some(problem) = missing(&params["_meta"]) {
            refuse(&message, json!({ "code": -32602, "message": problem }));
            continue;
        }
        match (method, params["name"].as_str()) {
            ("server/discover", _) => {
                answer(&message, discovery(json!({ "tools": { "listChanged": true } })));
            }
            ("tools/list", _) => answer(&message, json!({ "tools": tools, "ttlMs": 0 })),
            ("subscriptions/listen", _) => {
                stream = Some(message["id"].clone());
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                send(&json!({
                    "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
                    "params": { "notifications": params["notifications"], "_meta": meta },
                }));
            }
            ("tools/call", Some("grow")) => {
                tools.push(tool("learnt"));
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": stream });
                if stream.is_some() {
                    send(&json!({
                        "jsonrpc": "2.0", "method": "notifications/tools/list_changed",
                        "params": { "_meta": meta },
                    }));
                }
                answer(&message, text("grown"));
            }
            ("tools/call", Some("ask")) => {
                let form = json!({ "message": "who?", "requestedSchema": { "type": "object" } });
                needs(&message, "elicitation/create", form);
            }
            ("tools/call", Some("sample")) => {
                needs(
                    &message,
                    "sampling/createMessage",
                    json!({ "messages": [], "maxTokens": 1 }),
                );
            }
            ("tools/call", Some("slow")) => answer(&message, task("working", json!({}))),
            ("tasks/get", _) => answer(&message, standing(told.as_ref())),
            ("tasks/update", _) => {
                told = Some(params["inputResponses"].clone());
                answer(&message, json!({ "resultType": "complete" }));
            }
            ("tools/call", Some("lacks")) => {
                lacking += 1;
                let data = json!({ "requiredCapabilities": { "sampling": {} } });
                let problem = format!("call {lacking} needs a model");
                refuse(&message, json!({ "code": -32021, "message": problem, "data": data }));
            }
            ("tools/call", Some("odd")) => answer(&message, json!({ "resultType": "odd" })),
            _ => properly(&message),
        }
    }
}

/// The answer to `server/discover` of a server with these capabilities.
fn discovery(capabilities: Value) -> Value {
    let info = json!({ "name": "modern", "version": "1" });
    json!({
        "resultType": "complete",
        "supportedVersions": [REVISION],
        "capabilities": capabilities,
        "_meta": { "io.modelcontextprotocol/serverInfo": info },
    })
}

/// The one task that there is.
fn task(status: &str, more: Value) -> Value {
    let kind = if status == "working" { "task" } else { "complete" };
    let mut task = json!({
        "resultType": kind, "taskId": "t1", "status": status, "ttlMs": null, "pollIntervalMs": 50,
        "createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z",
    });
    let more = more.as_object().cloned().unwrap_or_default();
    task.as_object_mut().expect("it is an object").extend(more);
    task
}

/// How it stands: it needs to be told something, and says what it was told.
fn standing(told: Option<&Value>) -> Value {
    let form = json!({ "message": "who?", "requestedSchema": { "type": "object" } });
    let requests = json!({ "who": { "method": "elicitation/create", "params": form } });
    match told {
        None => task("input_required", json!({ "inputRequests": requests })),
        Some(told) => task("completed", json!({ "result": text(told.to_string()) })),
    }
}

/// Answers a call with what it got, or by asking for it.
fn needs(call: &Value, method: &str, params: Value) {
    let state = "st\u{e4}te \"1\"\n";
    match call["params"].get("inputResponses") {
        None => {
            let requests = json!({ "it": { "method": method, "params": params } });
            let result = json!({
                "resultType": "input_required", "inputRequests": requests, "requestState": state,
            });
            answer(call, result);
        }
        Some(responses) => {
            let same = call["params"]["requestState"] == state;
            answer(call, text(json!([responses["it"], same]).to_string()));
        }
    }
}

/// What a request of the newer era must carry and does not.
fn missing(meta: &Value) -> Option<String> {
    let member = |name: &str| &meta[format!("io.modelcontextprotocol/{name}")];
    if member("protocolVersion") != REVISION {
        return Some(format!("the revision is missing: {meta}"));
    }
    (!member("clientCapabilities").is_object()).then(|| format!("no capabilities: {meta}"))
}
