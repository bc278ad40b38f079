//! The bridge: a component that makes an MCP server a plugin.
//!
//! It reaches its one child through the host's `stdio-child` and nothing else; it has not even
//! WASI. As the package `remote-bridge` it reaches one server elsewhere through `wasi:http` instead.
//! All of the protocol is in `mcp-client`; this is the shell around it, which carries messages and
//! timers in one direction and actions in the other, and turns JSON into the contract's types.

mod bindings;
mod configuration;
mod connection;
mod convert;
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
mod server_requests;
mod transport;

use bindings::exports::tenon::plugin::completions::{
    ArgumentCompletion, CompletionReference, Suggestions,
};
use bindings::exports::tenon::plugin::lifecycle::Identity;
use bindings::exports::tenon::plugin::prompts::{Prompt, PromptPage};
use bindings::exports::tenon::plugin::resources::{ResourcePage, TemplatePage};
use bindings::exports::tenon::plugin::{
    cancellation, completions, lifecycle, prompts, resources, subscriptions, tools,
};
use bindings::tenon::bridge::mcp_server::{self, Offer};
use bindings::tenon::plugin::notify;
use bindings::tenon::plugin::types::{
    CallContext, Error, ResourceContents, ToolDefinition, ToolResult,
};
use connection::ToolCallOptions;
use convert::Execution;
use futures::future::{join, join3};
use mcp_client::{EmptyLists, HeaderArgument, Json, JsonSlice, Members, Outcome, Request};
use serde_json::{Value, json};
use std::collections::BTreeMap;

struct Bridge;

// Elsewhere the names of the exports are none that a linker takes.
#[cfg(target_arch = "wasm32")]
bindings::export!(Bridge with_types_in bindings::wrapped_exports);

impl lifecycle::Guest for Bridge {
    async fn start() -> Result<Identity, Error> {
        connection::connected(None).await?;
        let server = connection::server().unwrap_or_default();
        Ok(Identity {
            name: server.name,
            version: server.version,
            description: server.instructions.unwrap_or_default(),
            extra: None,
        })
    }

    async fn stop() {
        transport::stop().await;
    }
}

impl cancellation::Guest for Bridge {
    async fn cancel(call_id: String) {
        connection::cancel(&call_id);
    }
}

impl tools::Guest for Bridge {
    async fn list_tools() -> Result<Vec<ToolDefinition>, Error> {
        let capabilities = connection::connected(None).await?;
        let (tools, resources, prompts) = join3(
            list_tools(capabilities.tasks),
            async { capabilities.resources && has_resources().await },
            async { capabilities.prompts && lists_any("prompts/list", "prompts").await },
        )
        .await;
        let tools = tools?;
        connection::await_lists(EmptyLists {
            resources: capabilities.resources && !resources,
            prompts: capabilities.prompts && !prompts,
        });
        let offered = [(Offer::RESOURCES, resources), (Offer::PROMPTS, prompts)];
        let offered = offered.into_iter().filter(|(_, is_offered)| *is_offered);
        mcp_server::offers(offered.fold(Offer::empty(), |all, (one, _)| all | one));
        Ok(tools)
    }

    async fn call_tool(
        name: String,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Error> {
        let capabilities = connection::connected(Some(&context.call_id)).await?;
        if !connection::knows_tools() && (capabilities.tasks || transport::mirrors()) {
            // The instance has not seen the list yet, which says how each is called.
            list_tools(capabilities.tasks).await?;
        }
        let ToolCallOptions { task, mirrored } = connection::called(&name);
        let arguments = Json::parse(arguments).map_err(|error| {
            Error::invalid_input(format!("the arguments are not JSON: {error}"))
        })?;
        let mut params = Members::new().with("name", &*name);
        params.push("arguments", arguments);
        let asked = ServerQuery { method: "tools/call", params, subject: Some(&name) };
        let again = transport::mirrors().then(|| asked.clone());
        let mut result = ask(asked, &context, true, task).await;
        if let Err(mcp_client::Error::Rpc { code: HEADER_MISMATCH, .. }) = result
            && let Some(asked) = again
        {
            // It has not done the call, for want of headers that it did not ask for before.
            list_tools(capabilities.tasks).await?;
            if connection::called(&name).mirrored != mirrored {
                notify::contributions_changed();
                result = ask(asked, &context, true, task).await;
            }
        }
        convert::tool_result(result.map_err(convert::error)?)
    }
}

impl resources::Guest for Bridge {
    async fn list_resources(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Error> {
        let asked = ServerQuery { method: "resources/list", params: page(cursor), subject: None };
        match of_resources(asked, &context).await? {
            Some(result) => convert::resource_page(result.get(), connection::not_listed),
            None => Ok(ResourcePage { resources: Vec::new(), next: None }),
        }
    }

    async fn list_templates(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Error> {
        let method = "resources/templates/list";
        let asked = ServerQuery { method, params: page(cursor), subject: None };
        match of_resources(asked, &context).await? {
            Some(result) => convert::template_page(result.get(), connection::not_listed),
            None => Ok(TemplatePage { templates: Vec::new(), next: None }),
        }
    }

    async fn read_resource(
        uri: String,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Error> {
        let params = Members::new().with("uri", &*uri);
        let asked = ServerQuery { method: "resources/read", params, subject: Some(&uri) };
        let read = of_resources(asked, &context).await;
        match read.map_err(convert::of_resource)? {
            Some(result) => convert::resource_contents(result.get(), &uri),
            None => Err(Error::not_found("the server reads no resources")),
        }
    }
}

impl subscriptions::Guest for Bridge {
    async fn subscribe(uri: String, context: CallContext) -> Result<(), Error> {
        subscribe(&uri, true, &context).await
    }

    async fn unsubscribe(uri: String, context: CallContext) -> Result<(), Error> {
        subscribe(&uri, false, &context).await
    }
}

async fn subscribe(uri: &str, wanted: bool, context: &CallContext) -> Result<(), Error> {
    connection::connected(Some(&context.call_id)).await?;
    let subscribed = connection::run(None, |client, now| client.subscribe(uri, wanted, now)).await;
    subscribed.map(drop).map_err(convert::error).map_err(convert::of_resource)
}

impl prompts::Guest for Bridge {
    async fn list_prompts(
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Error> {
        let asked = ServerQuery { method: "prompts/list", params: page(cursor), subject: None };
        match of_prompts(asked, &context).await? {
            Some(result) => convert::prompt_page(result.get(), connection::not_listed),
            None => Ok(PromptPage { prompts: Vec::new(), next: None }),
        }
    }

    async fn get_prompt(
        name: String,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Error> {
        let params = Members::new().with("name", &*name).with("arguments", object(arguments));
        let asked = ServerQuery { method: "prompts/get", params, subject: Some(&name) };
        match of_prompts(asked, &context).await? {
            Some(result) => convert::prompt(result.get()),
            None => Err(Error::not_found("the server has no prompts")),
        }
    }
}

impl completions::Guest for Bridge {
    async fn complete_argument(
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Error> {
        let capabilities = connection::connected(Some(&context.call_id)).await?;
        if !capabilities.completions {
            return Err(Error::not_found("the server suggests nothing"));
        }
        let reference = match argument.reference {
            CompletionReference::Prompt(name) => json!({ "type": "ref/prompt", "name": name }),
            CompletionReference::ResourceTemplate(uri) => {
                json!({ "type": "ref/resource", "uri": uri })
            }
        };
        let typed = json!({ "name": argument.name, "value": argument.value });
        let mut params = Members::new().with("ref", reference).with("argument", typed);
        // Servers before 2025-06-18 know of no context.
        if !argument.others.is_empty() {
            params = params.with("context", json!({ "arguments": object(argument.others) }));
        }
        let asked = ServerQuery { method: "completion/complete", params, subject: None };
        let result = request(asked, &context, false, false).await?;
        convert::suggestions(result.get())
    }
}

/// The code of a refusal of a server whose tools are marked otherwise than the client knows.
const HEADER_MISMATCH: i64 = -32020;

/// Lists the tools, and notes how each is called.
async fn list_tools(has_tasks: bool) -> Result<Vec<ToolDefinition>, Error> {
    // What is listed again must not hide for longer than a call that a server has fallen silent.
    let first = !connection::knows_tools();
    let deadline = first.then(connection::listed_by);
    let list = connection::run(None, |client, now| client.list_tools(now, deadline)).await;
    let list = list.map_err(|error| match error {
        mcp_client::Error::Timeout if first => connection::not_started("list its tools"),
        error => convert::error(error),
    });
    let Outcome::Items(items) = list? else {
        return Err(Error::failed("the list of tools is no list"));
    };
    let mut tools = Vec::new();
    let mut known = BTreeMap::new();
    for item in items {
        match listed(&item, has_tasks) {
            Ok((tool, called)) => {
                // The first of a name is the one that counts.
                known.entry(tool.name.clone()).or_insert(called);
                tools.push(tool);
            }
            Err(problem) => {
                connection::left_out(&format!("a tool is left out: {problem}"));
            }
        }
    }
    connection::note_tools(known);
    Ok(tools)
}

/// A tool of a list, and how it is called.
fn listed(item: &str, has_tasks: bool) -> Result<(ToolDefinition, ToolCallOptions), String> {
    let (tool, execution) = convert::tool(item)?;
    let problem = |problem: String| format!("\"{}\": {problem}", tool.name);
    let task = execution == Execution::Task;
    if task && !has_tasks {
        return Err(problem("it can only be called as a task, and the server has none".into()));
    }
    let mirrored = match transport::mirrors() {
        true => HeaderArgument::in_schema(&tool.input_schema).map_err(problem)?,
        false => Vec::new(),
    };
    Ok((tool, ToolCallOptions { task, mirrored }))
}

/// Whether the server lists a resource, or a template of some. Many servers declare that they have
/// resources, and have none.
async fn has_resources() -> bool {
    let listed = lists_any("resources/list", "resources");
    let templates = lists_any("resources/templates/list", "resourceTemplates");
    let (listed, templates) = join(listed, templates).await;
    listed || templates
}

/// How long a server may take to say whether a list has anything, in milliseconds.
const LISTING_TIMEOUT_MILLIS: u64 = 3_000;

/// Whether a list of the server's has anything. Where it does not say so in time, it may have.
async fn lists_any(method: &'static str, member: &str) -> bool {
    let timeout = Some(LISTING_TIMEOUT_MILLIS);
    let request = Request {
        method,
        params: Members::new(),
        meta: Members::new(),
        subject: None,
        timeout,
        progress: false,
        task: false,
        features: None,
    };
    match connection::run(None, |client, now| client.request(request, now)).await {
        Ok(Outcome::Result(page)) => convert::has_items(page.get(), member),
        Err(mcp_client::Error::Rpc { code: -32601, .. }) => false,
        Ok(_) | Err(_) => true,
    }
}

/// What is asked of the server.
#[derive(Clone)]
struct ServerQuery<'a> {
    method: &'static str,
    params: Members,
    /// What it is about.
    subject: Option<&'a str>,
}

/// A request about resources, to a server that has them. It may say that it has them and not know
/// the method.
async fn of_resources(
    asked: ServerQuery<'_>,
    context: &CallContext,
) -> Result<Option<JsonSlice>, Error> {
    match connection::connected(Some(&context.call_id)).await?.resources {
        true => if_known(asked, context).await,
        false => Err(Error::not_found("the server has no resources")),
    }
}

/// A request about prompts, in the same way.
async fn of_prompts(
    asked: ServerQuery<'_>,
    context: &CallContext,
) -> Result<Option<JsonSlice>, Error> {
    match connection::connected(Some(&context.call_id)).await?.prompts {
        true => if_known(asked, context).await,
        false => Err(Error::not_found("the server has no prompts")),
    }
}

async fn if_known(
    asked: ServerQuery<'_>,
    context: &CallContext,
) -> Result<Option<JsonSlice>, Error> {
    match ask(asked, context, false, false).await {
        Ok(payload) => Ok(Some(payload)),
        Err(mcp_client::Error::Rpc { code: -32601, .. }) => Ok(None),
        Err(error) => Err(convert::error(error)),
    }
}

/// The parameters of a request for a page.
fn page(cursor: Option<String>) -> Members {
    match cursor {
        Some(cursor) => Members::new().with("cursor", cursor),
        None => Members::new(),
    }
}

fn object(pairs: Vec<(String, String)>) -> Value {
    Value::Object(pairs.into_iter().map(|(key, value)| (key, value.into())).collect())
}

/// What a server is told of who calls: the place in a trace, and who it is if the operator wants it
/// passed on.
fn meta(context: &CallContext) -> Members {
    let who = connection::passes_callers_on()
        .then_some([("agent_id", &context.agent_id), ("session_id", &context.session_id)]);
    let members = who.into_iter().flatten().chain([("traceparent", &context.traceparent)]);
    members.fold(Members::new(), |meta, (name, value)| match value.as_deref() {
        Some(value) => meta.with(name, value),
        None => meta,
    })
}

/// How much longer than the host a request is waited for. The host's own deadline comes first and
/// cancels it; this one is for a host that does not.
const TIMEOUT_SLACK_MILLIS: u64 = 1_000;

async fn request(
    asked: ServerQuery<'_>,
    context: &CallContext,
    progress: bool,
    task: bool,
) -> Result<JsonSlice, Error> {
    ask(asked, context, progress, task).await.map_err(convert::error)
}

async fn ask(
    asked: ServerQuery<'_>,
    context: &CallContext,
    progress: bool,
    task: bool,
) -> Result<JsonSlice, mcp_client::Error> {
    let timeout = context.time_left.map(|time_left| time_left.saturating_add(TIMEOUT_SLACK_MILLIS));
    let meta = meta(context);
    let ServerQuery { method, params, subject } = asked;
    let features = Some(connection::client_features());
    let request = Request { method, params, meta, subject, timeout, progress, task, features };
    let call_id = Some(&*context.call_id);
    match connection::run(call_id, |client, now| client.request(request, now)).await? {
        Outcome::Result(payload) => Ok(payload),
        Outcome::Connected(_) | Outcome::Items(_) => {
            Err(mcp_client::Error::Protocol("the answer is not one to this request".into()))
        }
    }
}
