//! A plugin built with `cargo component`, from the sync edition of the package.

#[allow(warnings)]
mod bindings;

use bindings::exports::tenon::plugin::{lifecycle, tools};
use bindings::tenon::plugin::log;
use bindings::tenon::plugin::types::{
    CallContext, Content, ContentBlock, Error, ErrorCode, ToolAnnotations, ToolDefinition, ToolResult,
};
use serde_json::{Value, json};

struct Component;

bindings::export!(Component with_types_in bindings);

const TOOLS: [(&str, &str); 3] = [
    ("echo", "Answers with its `text`."),
    ("fail", "Answers with an error, the `text`."),
    ("hang", "Never answers."),
];

impl lifecycle::Guest for Component {
    fn start() -> Result<lifecycle::Identity, Error> {
        Ok(lifecycle::Identity {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: env!("CARGO_PKG_DESCRIPTION").into(),
            extra: None,
        })
    }

    fn stop() {}
}

impl tools::Guest for Component {
    fn list_tools() -> Result<Vec<ToolDefinition>, Error> {
        Ok(TOOLS.map(definition).into())
    }

    fn call_tool(
        name: String,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Error> {
        let fields = [("call".to_owned(), context.call_id)];
        log::write(log::Level::Debug, &format!("{name} is called"), &fields);
        let arguments: Value = serde_json::from_str(&arguments)
            .map_err(|wrong| error(ErrorCode::InvalidInput, wrong.to_string()))?;
        let text = arguments["text"].as_str().unwrap_or_default().to_string();
        match name.as_str() {
            "echo" => Ok(answer(text, false)),
            "fail" => Ok(answer(text, true)),
            "hang" => loop {},
            _ => Err(error(ErrorCode::NotFound, format!("there is no tool {name:?}"))),
        }
    }
}

fn error(code: ErrorCode, message: String) -> Error {
    Error { code, message, retry_after: None, data: None }
}

fn answer(text: String, is_error: bool) -> ToolResult {
    let content = vec![ContentBlock { body: Content::Text(text), extra: None }];
    ToolResult { content, structured: None, is_error, extra: None }
}

fn definition((name, description): (&str, &str)) -> ToolDefinition {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    ToolDefinition {
        name: name.into(),
        title: None,
        description: description.into(),
        input_schema: schema.to_string(),
        output_schema: None,
        annotations: ToolAnnotations {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        },
        capabilities: vec![],
        extra: None,
    }
}
