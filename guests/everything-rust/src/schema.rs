//! A tool with a schema that no type describes, which is written by hand.

use tenon_sdk::host_tools::{ToolAnnotations, ToolDefinition};
use tenon_sdk::tool::{IntoToolResult, Tool};
use tenon_sdk::{Context, Failure, ToolResult};

/// Shows whether a host leaves a JSON Schema as it is.
pub(crate) struct DialectTool;

const SCHEMA: &str = r##"{
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
        }
    },
    "properties": {
        "name": { "type": "string" },
        "address": { "$ref": "#/$defs/address" },
        "contactMethod": { "type": "string", "enum": ["phone", "email"] },
        "phone": { "type": "string" },
        "email": { "type": "string" }
    },
    "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
    "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
    "then": { "required": ["phone"] },
    "else": { "required": ["email"] },
    "additionalProperties": false
}"##;

impl Tool for DialectTool {
    const NAME: &'static str = "json_schema_2020_12_tool";

    fn definition() -> ToolDefinition {
        ToolDefinition {
            name: Self::NAME.to_string(),
            title: None,
            description: "Tool with JSON Schema 2020-12 features".to_string(),
            input_schema: SCHEMA.to_string(),
            output_schema: None,
            annotations: ToolAnnotations {
                read_only: Some(true),
                destructive: None,
                idempotent: None,
                open_world: None,
            },
            capabilities: Vec::new(),
            extra: None,
        }
    }

    async fn call(arguments: String, _: Context) -> Result<ToolResult, Failure> {
        format!("JSON Schema 2020-12 tool called with: {arguments}").into_tool_result()
    }
}
