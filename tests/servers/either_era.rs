//! An MCP server of the era that its first argument names, `legacy` or `modern`, with the same tools, resource and prompt in
//! both. Its second argument is the value of the members that no revision of MCP has.

#![allow(clippy::print_stdout)]

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, stdin};

/// What stands for the value of the unknown members until a message is written.
const UNKNOWN: &str = "the value of unknown members";

/// What a modern client gives back with its answer.
const STATE: &str = "asked";

/// The names of the tools, which their descriptions say as well.
const TOOLS: [&str; 6] = ["ask", "cancelled", "count", "enough", "greet", "wait"];

struct Server {
    is_modern: bool,
    unknown: String,
    /// The ids of the calls of `count` that run.
    counting: Vec<Value>,
    /// The ids of the calls of `wait` that run.
    waiting: BTreeSet<String>,
    /// Whether one of them was cancelled.
    was_cancelled: bool,
    /// The ids of the calls of `cancelled` that are not answered yet.
    unanswered: Vec<Value>,
    /// The calls of `ask` whose client is being asked, by the id of the request to the client.
    asking: BTreeMap<String, Value>,
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let era = arguments.next().expect("an argument names the era");
    let unknown = arguments.next().expect("an argument is the value of unknown members");
    let mut server = Server {
        is_modern: era == "modern",
        unknown,
        counting: Vec::new(),
        waiting: BTreeSet::new(),
        was_cancelled: false,
        unanswered: Vec::new(),
        asking: BTreeMap::new(),
    };
    for line in stdin().lock().lines() {
        let line = line.expect("the client writes text");
        server.receive(&serde_json::from_str(&line).expect("it is JSON"));
    }
}

/// An answer, which may come later.
type Answer = Result<Option<Value>, (i32, String)>;

impl Server {
    fn receive(&mut self, message: &Value) {
        let params = &message["params"];
        let Some(method) = message["method"].as_str() else {
            return self.answered(message);
        };
        let Some(id) = message.get("id") else {
            if method == "notifications/cancelled" {
                self.cancel(&params["requestId"]);
            }
            return;
        };
        let answer = match method {
            "tools/call" => self.call(id, params),
            method => self.answer(method, params).map(Some),
        };
        match answer {
            Ok(Some(result)) => self.send_result(id, result),
            Ok(None) => {}
            Err((code, message)) => {
                let error = json!({ "code": code, "message": message });
                self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        }
    }

    fn send(&self, message: &Value) {
        println!("{}", message.to_string().replace(&json!(UNKNOWN).to_string(), &self.unknown));
    }

    fn send_result(&self, id: &Value, mut result: Value) {
        if self.is_modern {
            let members = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            let members = members.as_object().cloned().unwrap_or_default();
            let all = members.into_iter().chain(result.as_object().cloned().unwrap_or_default());
            result = all.collect::<Map<_, _>>().into();
        }
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    }

    fn progress(&self, params: &Value, progress: f64, message: &str) {
        let token = &params["_meta"]["progressToken"];
        let params = json!({ "progressToken": token, "progress": progress, "total": 1.5, "message": message });
        self.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, (i32, String)> {
        let server = json!({ "name": "either-era", "version": "1" });
        let capabilities = json!({ "tools": {}, "resources": {}, "prompts": {} });
        let uri = self.uri();
        Ok(match method {
            "initialize" if !self.is_modern => json!({
                "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": server,
            }),
            "ping" if !self.is_modern => json!({}),
            "server/discover" if self.is_modern => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
                "_meta": { "io.modelcontextprotocol/serverInfo": server },
            }),
            "tools/list" => {
                let tool = |name: &str| {
                    json!({
                        "name": name, "description": name, "inputSchema": { "type": "object" }, "x-tool": UNKNOWN,
                    })
                };
                json!({ "tools": TOOLS.map(tool) })
            }
            "resources/list" => {
                json!({ "resources": [{ "uri": uri, "name": "note", "x-resource": UNKNOWN }] })
            }
            "resources/read" if params["uri"] == uri => json!({
                "contents": [{ "uri": uri, "text": format!("The note at {uri}"), "x-contents": UNKNOWN }],
                "x-read": UNKNOWN,
            }),
            "prompts/list" => json!({ "prompts": [
                { "name": "letter", "arguments": [{ "name": "to" }], "x-prompt": UNKNOWN },
            ] }),
            "prompts/get" => {
                let to = params["arguments"]["to"].as_str().unwrap_or_default();
                let text = json!({ "type": "text", "text": format!("Write to {to}") });
                let message = json!({ "role": "user", "content": text, "x-message": UNKNOWN });
                json!({ "messages": [message], "x-get": UNKNOWN })
            }
            method => return Err((-32601, format!("there is no {method}"))),
        })
    }

    /// The resource, which has another URI in each era.
    fn uri(&self) -> &'static str {
        if self.is_modern { "test://modern/note" } else { "test://legacy/note" }
    }

    fn call(&mut self, id: &Value, params: &Value) -> Answer {
        Ok(match params["name"].as_str().unwrap_or_default() {
            "greet" => {
                let name = params["arguments"]["name"].as_str().unwrap_or_default();
                let text = format!("Hello, {name}!");
                let block = json!({ "type": "text", "text": text, "x-block": UNKNOWN, "_meta": { "x-block-meta": UNKNOWN } });
                Some(
                    json!({ "content": [block], "x-result": UNKNOWN, "_meta": { "x-meta": UNKNOWN } }),
                )
            }
            "count" => {
                self.counting.push(id.clone());
                self.progress(params, 0.5, "one");
                self.progress(params, 1.5, "two");
                // Progress is not the last that is said of a call: the client has heard it before the call ends.
                None
            }
            "enough" => {
                for id in std::mem::take(&mut self.counting) {
                    self.send_result(&id, said("counted to two"));
                }
                Some(said("enough"))
            }
            "wait" => {
                self.waiting.insert(id.to_string());
                // So that the client knows that it runs.
                self.progress(params, 0.5, "waiting");
                None
            }
            "cancelled" => {
                self.unanswered.push(id.clone());
                self.tell_of_cancelled();
                None
            }
            "ask" => self.ask(id, params),
            name => return Err((-32602, format!("there is no tool {name}"))),
        })
    }

    fn ask(&mut self, id: &Value, params: &Value) -> Option<Value> {
        let schema = json!({
            "type": "object", "properties": { "color": { "type": "string" } }, "required": ["color"],
        });
        let question =
            json!({ "message": "Which color?", "requestedSchema": schema, "x-form": UNKNOWN });
        if !self.is_modern {
            let own = format!("ask-{id}");
            self.send(&json!({
                "jsonrpc": "2.0", "id": own, "method": "elicitation/create", "params": question,
            }));
            self.asking.insert(own, id.clone());
            return None;
        }
        let answer = &params["inputResponses"]["color"];
        if answer.is_object() && params["requestState"] == STATE {
            return Some(said(&answer_text(answer)));
        }
        let request = json!({ "method": "elicitation/create", "params": question });
        Some(json!({
            "resultType": "input_required", "inputRequests": { "color": request }, "requestState": STATE,
        }))
    }

    /// The client has answered a request.
    fn answered(&mut self, message: &Value) {
        let call = message["id"].as_str().and_then(|id| self.asking.remove(id));
        if let Some(call) = call {
            self.send_result(&call, said(&answer_text(&message["result"])));
        }
    }

    fn cancel(&mut self, id: &Value) {
        self.was_cancelled |= self.waiting.remove(&id.to_string());
        self.tell_of_cancelled();
    }

    /// Answers those who wait for a call to be cancelled.
    fn tell_of_cancelled(&mut self) {
        if self.was_cancelled {
            for id in std::mem::take(&mut self.unanswered) {
                self.send_result(&id, said("a call was cancelled"));
            }
        }
    }
}

fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// What a user's answer says.
fn answer_text(answer: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("nothing").to_string();
    format!("{}: {}", word(&answer["action"]), word(&answer["content"]["color"]))
}
