//! An MCP server that has what the conformance suite asks one for, under the names that the suite knows. Its argument
//! names the file where it keeps what it remembers.

#![allow(clippy::print_stdout)]

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, Write, stdin, stdout};
use std::thread;
use std::time::Duration;

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

fn main() {
    let memory = std::env::args().nth(1).expect("it is told where to remember");
    let mut updates = 0;
    while let Some(message) = receive() {
        let params = &message["params"];
        let result = match message["method"].as_str().unwrap_or_default() {
            "tools/call" => call(params, &memory, &mut updates),
            "resources/read" => read(params["uri"].as_str().unwrap_or_default(), updates),
            "prompts/get" => prompt(params),
            method => answer(method, params),
        };
        // What has no id wants no answer, and what waits is never answered.
        let Some(id) = message.get("id") else { continue };
        match result {
            Ok(Value::Null) => {}
            Ok(result) => send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })),
            Err((code, problem)) => {
                let error = json!({ "code": code, "message": problem });
                send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
            }
        }
    }
}

type Answer = Result<Value, (i32, String)>;

fn receive() -> Option<Value> {
    let mut line = String::new();
    if stdin().lock().read_line(&mut line).ok()? == 0 {
        return None;
    }
    serde_json::from_str(&line).ok()
}

fn send(message: &Value) {
    println!("{message}");
    stdout().flush().expect("standard output is open");
}

fn tell(method: &str, params: Value) {
    let method = format!("notifications/{method}");
    send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
}

/// What the client answers to a request.
fn ask(method: &str, params: Value) -> Value {
    send(&json!({ "jsonrpc": "2.0", "id": "asked", "method": method, "params": params }));
    loop {
        let message = receive().expect("the client answers");
        if message["id"] == "asked" {
            return message["result"].clone();
        }
    }
}

fn text(text: impl Into<Value>) -> Value {
    json!({ "type": "text", "text": text.into() })
}

fn said(words: impl Into<Value>) -> Answer {
    Ok(json!({ "content": [text(words)] }))
}

fn embedded(uri: &Value, mime_type: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": mime_type, "text": text } })
}

fn answer(method: &str, params: &Value) -> Answer {
    let tool = |name: &str, argument: Option<&str>| {
        let properties: Value = match argument {
            Some(argument) => json!({ argument: { "type": "string" } }),
            None => json!({}),
        };
        let required: Vec<_> = argument.into_iter().collect();
        let schema = json!({ "type": "object", "properties": properties, "required": required });
        json!({ "name": name, "description": format!("Tests {name}"), "inputSchema": schema })
    };
    Ok(match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {
                "tools": { "listChanged": true }, "resources": { "subscribe": true },
                "prompts": {}, "completions": {}, "logging": {},
            },
            "serverInfo": { "name": "everything", "version": "1" },
        }),
        "ping" | "resources/subscribe" | "resources/unsubscribe" | "logging/setLevel" => json!({}),
        "tools/list" => json!({ "tools": [
            tool("test_simple_text", None), tool("test_image_content", None),
            tool("test_audio_content", None), tool("test_embedded_resource", None),
            tool("test_multiple_content_types", None), tool("test_tool_with_logging", None),
            tool("test_tool_with_progress", None), tool("test_error_handling", None),
            tool("test_update_watched_resource", None), tool("test_trigger_tool_change", None),
            tool("test_sampling", Some("prompt")), tool("test_elicitation", Some("message")),
            tool("test_remember", Some("word")), tool("test_wait", None),
        ]}),
        "resources/list" => json!({ "resources": [
            { "uri": "test://static-text", "name": "static-text" },
            { "uri": "test://static-binary", "name": "static-binary", "mimeType": "image/png" },
            { "uri": "test://watched-resource", "name": "watched-resource" },
        ]}),
        "resources/templates/list" => json!({ "resourceTemplates": [
            { "uriTemplate": "test://template/{id}/data", "name": "template" },
        ]}),
        "prompts/list" => json!({ "prompts": [
            { "name": "test_simple_prompt", "description": "A simple prompt" },
            { "name": "test_prompt_with_arguments", "description": "A prompt with arguments", "arguments": [
                { "name": "arg1", "required": true }, { "name": "arg2", "required": true },
            ]},
            { "name": "test_prompt_with_embedded_resource", "description": "A prompt with a resource", "arguments": [
                { "name": "resourceUri", "required": true },
            ]},
            { "name": "test_prompt_with_image", "description": "A prompt with an image" },
        ]}),
        "completion/complete" => {
            let known: &[&str] = match params["ref"]["type"].as_str() {
                Some("ref/prompt") => &["paris", "park", "party", "test", "testing"],
                _ => &["123", "124", "200"],
            };
            let begun = params["argument"]["value"].as_str().unwrap_or_default();
            let values: Vec<_> = known.iter().filter(|value| value.starts_with(begun)).collect();
            json!({ "completion": { "values": values } })
        }
        method if method.starts_with("notifications/") => Value::Null,
        method => return Err((-32601, format!("there is no {method}"))),
    })
}

fn call(params: &Value, memory: &str, updates: &mut u32) -> Answer {
    let arguments = &params["arguments"];
    let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
    Ok(match params["name"].as_str().unwrap_or_default() {
        "test_simple_text" => return said("This is a simple text response for testing."),
        "test_image_content" => json!({ "content": [image] }),
        "test_audio_content" => {
            json!({ "content": [{ "type": "audio", "data": WAV, "mimeType": "audio/wav" }] })
        }
        "test_embedded_resource" => {
            let words = "This is an embedded resource content.";
            json!({ "content": [embedded(&json!("test://embedded-resource"), "text/plain", words)] })
        }
        "test_multiple_content_types" => {
            let uri = json!("test://mixed-content-resource");
            let data = embedded(&uri, "application/json", r#"{"test":"data","value":123}"#);
            json!({ "content": [text("Multiple content types test:"), image, data] })
        }
        "test_tool_with_logging" => {
            for words in
                ["Tool execution started", "Tool processing data", "Tool execution completed"]
            {
                tell("message", json!({ "level": "info", "data": words }));
            }
            return said("Tool with logging executed successfully");
        }
        "test_tool_with_progress" => {
            for step in [0, 50, 100] {
                // As the suite wants it. What follows at once may be left out.
                thread::sleep(Duration::from_millis(60));
                let words = format!("Completed step {step} of 100");
                let token = &params["_meta"]["progressToken"];
                tell(
                    "progress",
                    json!({ "progressToken": token, "progress": step, "total": 100, "message": words }),
                );
            }
            return said("Tool with progress executed successfully");
        }
        "test_error_handling" => {
            let words = "This tool intentionally returns an error for testing";
            json!({ "isError": true, "content": [text(words)] })
        }
        "test_update_watched_resource" => {
            *updates += 1;
            tell("resources/updated", json!({ "uri": "test://watched-resource" }));
            return said("Resource updated");
        }
        "test_trigger_tool_change" => {
            tell("tools/list_changed", json!({}));
            return said("Tools changed");
        }
        "test_sampling" => {
            let message = json!({ "role": "user", "content": text(arguments["prompt"].clone()) });
            let asked = json!({ "messages": [message], "maxTokens": 100 });
            let answer = ask("sampling/createMessage", asked);
            let words = answer["content"]["text"].as_str().unwrap_or_default();
            return said(format!("LLM response: {words}"));
        }
        "test_elicitation" => {
            let schema = json!({
                "type": "object",
                "properties": { "username": { "type": "string" }, "email": { "type": "string" } },
                "required": ["username"],
            });
            let asked = json!({ "message": arguments["message"], "requestedSchema": schema });
            let answer = ask("elicitation/create", asked);
            let action = answer["action"].as_str().unwrap_or_default();
            let user = |name: &str| answer["content"][name].as_str().unwrap_or_default();
            return said(match action {
                "accept" => {
                    format!("User response: accept, {}, {}", user("username"), user("email"))
                }
                _ => format!("User response: {action}"),
            });
        }
        "test_remember" => {
            let mut words = fs::read_to_string(memory).unwrap_or_default();
            words += arguments["word"].as_str().unwrap_or_default();
            words.push('\n');
            fs::write(memory, &words).expect("it can write there");
            return said(words.lines().count().to_string());
        }
        "test_wait" => Value::Null,
        name => return Err((-32602, format!("there is no tool {name}"))),
    })
}

fn read(uri: &str, updates: u32) -> Answer {
    let words = |mime_type: &str, words: String| json!({ "contents": [{ "uri": uri, "mimeType": mime_type, "text": words }] });
    let id = uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
    Ok(match uri {
        "test://static-text" => {
            words("text/plain", "This is the content of the static text resource.".into())
        }
        "test://static-binary" => {
            json!({ "contents": [{ "uri": uri, "mimeType": "image/png", "blob": PNG }] })
        }
        "test://watched-resource" => {
            words("text/plain", format!("Watched resource content, changed {updates} times"))
        }
        _ => {
            let Some(id) = id else { return Err((-32002, format!("there is no {uri}"))) };
            let data =
                json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
            words("application/json", data.to_string())
        }
    })
}

fn prompt(params: &Value) -> Answer {
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let user = |content: Value| json!({ "role": "user", "content": content });
    let messages = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![user(text("This is a simple prompt for testing."))],
        "test_prompt_with_arguments" => {
            let (first, second) = (argument("arg1"), argument("arg2"));
            vec![user(text(format!("Prompt with arguments: arg1='{first}', arg2='{second}'")))]
        }
        "test_prompt_with_embedded_resource" => {
            let uri = json!(argument("resourceUri"));
            let words = "Embedded resource content for testing.";
            let instructions = text("Please process the embedded resource above.");
            vec![user(embedded(&uri, "text/plain", words)), user(instructions)]
        }
        "test_prompt_with_image" => {
            let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
            vec![user(image), user(text("Please analyze the image above."))]
        }
        name => return Err((-32602, format!("there is no prompt {name}"))),
    };
    Ok(json!({ "messages": messages }))
}
