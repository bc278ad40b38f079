//! Habits of asking: servers that want something of their client, whether it has it or not.

use serde_json::{Value, json};

use crate::Habit;
use crate::server::{
    answer, introduction, on_call, receive, refuse, send, serve, tell, text, tool,
};

pub(crate) const HABITS: &[Habit] = &[
    // Asks for all there is, one after the other, and says what came of it.
    ("asks", || {
        on_call(|call| {
            let form = json!({ "message": "who?", "requestedSchema": { "type": "object" } });
            let page = json!({ "mode": "url", "message": "see", "url": "https://example.com" });
            let sample = json!({ "messages": [], "maxTokens": 5 });
            let asked = [
                ("ping", json!({})),
                ("roots/list", json!({})),
                ("elicitation/create", form),
                ("elicitation/create", page),
                ("sampling/createMessage", sample),
                ("unheard/of", json!({})),
            ];
            let answers: Vec<Value> =
                asked.into_iter().map(|(method, params)| ask(method, params)).collect();
            answer(call, text(json!(answers).to_string()));
        });
    }),
    // Asks what its argument says: a list of methods with parameters.
    ("asks-for", || {
        on_call(|call| {
            let asked = call["params"]["arguments"]["text"].as_str().expect("it is told what");
            let asked: Vec<(String, Value)> = serde_json::from_str(asked).expect("it is a list");
            let answers: Vec<Value> =
                asked.into_iter().map(|(method, params)| ask(&method, params)).collect();
            answer(call, text(json!(answers).to_string()));
        });
    }),
    // Says what it was given in all that it says beside its answers; so it does of the revision.
    ("says", || {
        let said = std::env::var("SAID").unwrap_or_default();
        serve(|message| {
            match message["method"].as_str() {
                Some("initialize") => {
                    let all = json!({ "tools": {}, "resources": { "subscribe": true } });
                    answer(message, introduction(message, all));
                }
                Some("tools/list") => {
                    let spoilt = json!({ "name": said, "inputSchema": said });
                    answer(message, json!({ "tools": [tool("echo"), tool("rude"), spoilt] }));
                }
                Some("resources/subscribe") => answer(message, json!({})),
                Some("tools/call") if message["params"]["name"] == "rude" => {
                    eprintln!("{said}");
                    tell("notifications/resources/updated", json!({ "uri": said }));
                    let token = &message["params"]["_meta"]["progressToken"];
                    let progress =
                        json!({ "progressToken": token, "progress": 1, "message": said });
                    tell("notifications/progress", progress);
                    let form = json!({ "message": said, "requestedSchema": { "type": "object" } });
                    ask("elicitation/create", form);
                    let page = json!({ "mode": "url", "elicitationId": said, "url": said, "message": said });
                    ask("elicitation/create", page);
                    let content = json!({ "type": "text", "text": said });
                    let messages = json!([{ "role": "user", "content": content }]);
                    let sample = json!({ "messages": messages, "maxTokens": 5 });
                    ask("sampling/createMessage", sample);
                    answer(message, text("rude"));
                }
                _ => return false,
            }
            true
        });
    }),
    // Says that the user has done what nobody has asked of him, and then that there is something to do
    // before it answers.
    ("page-first", || {
        on_call(|call| {
            tell("notifications/elicitation/complete", json!({ "elicitationId": "unheard-of" }));
            let page = |id: &str| {
                let url = format!("https://example.com/{id}");
                json!({ "mode": "url", "elicitationId": id, "url": url, "message": "sign in" })
            };
            let data = json!({ "elicitations": [page("one"), page("two")] });
            refuse(call, json!({ "code": -32042, "message": "not yet", "data": data }));
        });
    }),
    // Asks the user, does not want to know any more, and goes on.
    ("fickle", || {
        on_call(|call| {
            let params = json!({ "message": "who?" });
            send(&json!({ "id": "q", "method": "elicitation/create", "params": params }));
            // The call says when somebody was asked.
            let gate = call["params"]["arguments"]["text"].as_str().expect("it names a file");
            while !std::path::Path::new(gate).exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
            tell("notifications/cancelled", json!({ "requestId": "q", "reason": "never mind" }));
            answer(call, text("rude"));
        });
    }),
];

/// Asks, and gives the result or the code of the error.
fn ask(method: &str, params: Value) -> Value {
    send(&json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }));
    loop {
        let message = receive().expect("it is answered");
        if message.get("method").is_none() && message["id"] == method {
            return match message.get("result") {
                Some(result) => result.clone(),
                None => message["error"]["code"].clone(),
            };
        }
    }
}
