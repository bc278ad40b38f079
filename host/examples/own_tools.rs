//! A host with tools of its own, written in Rust: a notebook that plugins and callers see as a
//! plugin like any other.
//!
//! ```console
//! $ cargo run --package tenon-host --example own_tools
//! ```

#![allow(clippy::print_stdout)]

use serde_json::json;
use std::error::Error;
use std::sync::{Arc, Mutex};
use tenon_host::types::{Error as ToolError, HookPoint, ToolDefinition, ToolResult};
use tenon_host::{Builtin, Call, Config, Platform};

#[tokio::main(flavor = "current_thread")]
#[allow(dead_code)]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    for line in run().await? {
        println!("{line}");
    }
    Ok(())
}

/// A plugin with two tools over the notes of this host, and a hook.
fn notebook(notes: Arc<Mutex<Vec<String>>>) -> Builtin {
    let schema = json!({
        "type": "object",
        "properties": { "text": { "type": "string", "minLength": 1 } },
        "required": ["text"],
    });
    let add = ToolDefinition::new("add", "Writes a note", &schema);
    let mut list = ToolDefinition::new("list", "Lists the notes", &json!({ "type": "object" }));
    list.annotations.read_only = Some(true);
    let written = notes.clone();
    Builtin::new("notebook", "Keeps notes")
        .tool(add, move |arguments, _context| {
            let notes = written.clone();
            async move {
                // The host has checked that the arguments match the schema.
                let text: String = arguments.member("text")?;
                let mut notes = notes.lock().map_err(|e| ToolError::failed(e.to_string()))?;
                notes.push(text);
                Ok(ToolResult::text(format!("note {}", notes.len())))
            }
        })
        .tool(list, move |_arguments, _context| {
            let notes = notes.clone();
            async move {
                let notes = notes.lock().map_err(|e| ToolError::failed(e.to_string()))?;
                let structured = json!({ "notes": *notes }).to_string();
                Ok(ToolResult {
                    structured: Some(structured),
                    ..ToolResult::text(notes.join("\n"))
                })
            }
        })
        .hook(HookPoint::BeforeToolCall, |_event| async {
            Ok(tenon_host::types::HookDecision::Continue)
        })
}

/// Calls the tools as an agent would, and gives what they say.
pub async fn run() -> Result<Vec<String>, Box<dyn Error + Send + Sync>> {
    let notes = Arc::new(Mutex::new(Vec::new()));
    let config = Config::parse("tools.notebook__list.timeout = \"1s\"", "tenon.toml")?;
    let platform = Platform::builder()
        .config(config)
        .builtin("notebook", notebook(notes.clone()))
        .build()
        .await?;
    let mut said = Vec::new();
    for (tool, arguments) in [
        ("notebook__add", json!({ "text": "buy tea" })),
        ("notebook__add", json!({ "text": "" })),
        ("notebook__list", json!({})),
    ] {
        said.push(match platform.call(Call::new(tool, arguments)).await {
            Ok(result) => format!("{tool}: {}", result.plain_text()),
            Err(error) => format!("{tool}: {}: {error}", error.code()),
        });
    }
    platform.shutdown().await;
    Ok(said)
}
