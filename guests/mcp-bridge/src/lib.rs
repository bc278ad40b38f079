//! The bridge: a component that makes an MCP server a plugin.
//!
//! It reaches its one child through the host's `stdio-child` and nothing else; it has not even
//! WASI. All of the protocol is in `mcp-client`; this is the shell around it, which carries lines
//! and timers in one direction and actions in the other, and turns JSON into the contract's types.

mod bindings;
mod connection;
mod convert;

use bindings::exports::tenon::plugin::plugin::{Identity, Registration};
use bindings::exports::tenon::plugin::prompts::{Prompt, PromptPage};
use bindings::exports::tenon::plugin::resources::{ResourcePage, TemplatePage};
use bindings::exports::tenon::plugin::{plugin, prompts, resources, tool_handler};
use bindings::tenon::plugin::log::{self, Level};
use bindings::tenon::plugin::stdio_child;
use bindings::tenon::plugin::types::{CallContext, Error, ResourceContents, ToolResult};
use mcp_client::{Outcome, Payload, Request};
use serde_json::Value;

struct Bridge;

// Elsewhere the names of the exports are none that a linker takes.
#[cfg(target_arch = "wasm32")]
bindings::export!(Bridge with_types_in bindings);

impl plugin::Guest for Bridge {
    async fn register() -> Result<Registration, Error> {
        let server = connection::connected(None).await?;
        let listed = connection::run(|client, now| client.list_tools(now)).await;
        let Outcome::Items(items) = listed.map_err(convert::error)? else {
            return Err(Error::Failed("the list of tools is no list".into()));
        };
        let mut tools = Vec::new();
        for item in items {
            match convert::tool(&item) {
                Ok(tool) => tools.push(tool),
                Err(problem) => {
                    log::write(Level::Warn, &format!("a tool is left out: {problem}"), &[]);
                }
            }
        }
        Ok(Registration {
            identity: Identity {
                name: server.name,
                version: server.version,
                description: server.instructions.unwrap_or_default(),
            },
            tools,
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources: server.capabilities.resources,
            prompts: server.capabilities.prompts,
        })
    }

    async fn shutdown() {
        stdio_child::stop().await;
    }
}

impl tool_handler::Guest for Bridge {
    async fn call(
        name: String,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Error> {
        connection::connected(Some(&context.call_id)).await?;
        let params = format!("\"name\":{},\"arguments\":{arguments}", Value::String(name));
        let result = request("tools/call", &params, &context, true).await?;
        convert::tool_result(result.get())
    }

    async fn cancel(call_id: String) {
        connection::cancel(&call_id);
    }
}

impl resources::Guest for Bridge {
    async fn list_resources(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Error> {
        let result = of_resources("resources/list", &page(cursor), &context).await?;
        convert::resource_page(result.get())
    }

    async fn list_templates(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Error> {
        let result = of_resources("resources/templates/list", &page(cursor), &context).await?;
        convert::template_page(result.get())
    }

    async fn read(uri: String, context: CallContext) -> Result<Vec<ResourceContents>, Error> {
        let params = format!("\"uri\":{}", Value::String(uri));
        let result = of_resources("resources/read", &params, &context).await?;
        convert::resource_contents(result.get())
    }
}

impl prompts::Guest for Bridge {
    async fn list_prompts(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Error> {
        let result = of_prompts("prompts/list", &page(cursor), &context).await?;
        convert::prompt_page(result.get())
    }

    async fn get(
        name: String,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Error> {
        let arguments: serde_json::Map<_, _> =
            arguments.into_iter().map(|(key, value)| (key, value.into())).collect();
        let name = Value::String(name);
        let params = format!("\"name\":{name},\"arguments\":{}", Value::Object(arguments));
        let result = of_prompts("prompts/get", &params, &context).await?;
        convert::prompt(result.get())
    }
}

/// A request about resources, to a server that has them.
async fn of_resources(method: &str, params: &str, context: &CallContext) -> Result<Payload, Error> {
    match connection::connected(Some(&context.call_id)).await?.capabilities.resources {
        true => request(method, params, context, false).await,
        false => Err(Error::NotFound("the server has no resources".into())),
    }
}

/// A request about prompts, to a server that has them.
async fn of_prompts(method: &str, params: &str, context: &CallContext) -> Result<Payload, Error> {
    match connection::connected(Some(&context.call_id)).await?.capabilities.prompts {
        true => request(method, params, context, false).await,
        false => Err(Error::NotFound("the server has no prompts".into())),
    }
}

/// The parameters of a request for a page.
fn page(cursor: Option<String>) -> String {
    cursor.map_or_else(String::new, |cursor| format!("\"cursor\":{}", Value::String(cursor)))
}

/// What a server is told of who calls: the place in a trace, and who it is if the operator wants it
/// passed on.
fn meta(context: &CallContext) -> String {
    let who = connection::passes_callers_on()
        .then_some([("agent_id", &context.agent_id), ("session_id", &context.session_id)]);
    let members = who.into_iter().flatten().chain([("traceparent", &context.traceparent)]);
    let members = members.filter_map(|(name, value)| {
        let value = Value::String(value.clone()?);
        Some(format!("\"{name}\":{value}"))
    });
    members.collect::<Vec<_>>().join(",")
}

/// How much longer than the host a request is waited for. The host's own deadline comes first and
/// cancels it; this one is for a host that does not.
const SLACK: u64 = 1_000;

async fn request(
    method: &str,
    params: &str,
    context: &CallContext,
    progress: bool,
) -> Result<Payload, Error> {
    let timeout = context.deadline.map(|deadline| deadline.saturating_add(SLACK));
    let meta = meta(context);
    let request = Request { method, params, meta: &meta, timeout, progress };
    match connection::run_call(&context.call_id, request).await.map_err(convert::error)? {
        Outcome::Result(payload) => Ok(payload),
        Outcome::Connected(_) | Outcome::Items(_) => {
            Err(Error::Failed("the answer is not one to this request".into()))
        }
    }
}
