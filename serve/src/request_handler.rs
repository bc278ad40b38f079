//! Does what a request asks for: on the platform, through its pipeline, and in the words of the protocol.

use serde_json::{Value, json};
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tenon_host::runs::{CatalogTool, RunError, RunOutcome, RunReport, ToolCallCount, ToolCatalog};
use tenon_host::types::mcp_json::{self, McpJson};
use tenon_host::types::{
    ArgumentCompletion, CompletionReference, Error, ErrorCode, ResourceContents, ToolResult,
};
use tenon_host::{Call, CallError, Caller, Failure, Platform, RESULT_URI};

use crate::client::RequestClient;
use crate::offer::Peer;
use crate::offer::{Offer, Profile, ToolList, ToolMode, compact};
use crate::protocol::capabilities;
use crate::protocol::error::{INTERNAL, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError};
use crate::protocol::meta::SERVER_INFO;
use crate::protocol::request::{ListKind, Request};
use crate::protocol::version::{self, Era};
use crate::protocol::write::{self, Cache};
use crate::rates::CallRates;

/// How long a modern client may keep a list, in milliseconds. It is told of changes if it listens.
const LIST_TTL_MILLIS: u64 = 5_000;

/// The most values that a completion has.
const MAX_SUGGESTIONS: usize = 100;

/// How long plugins may take for values of an argument: a user types.
const MAX_SUGGESTING_TIME: Duration = Duration::from_secs(10);

/// The lists whose changes clients are told of. Templates go with the resources.
pub(crate) const LISTS: [ListKind; 3] = [ListKind::Tools, ListKind::Resources, ListKind::Prompts];

/// On whose behalf something is done, and how it is answered.
pub(crate) struct RequestHandler {
    pub(crate) platform: Platform,
    pub(crate) offer: Arc<Offer>,
    pub(crate) peer: Peer,
    pub(crate) rates: Arc<CallRates>,
    pub(crate) era: Era,
    pub(crate) caller: Caller,
    /// The project that runs belong to, if they belong to one.
    pub(crate) project: Option<String>,
    /// The client, where it can be asked.
    pub(crate) client: Option<Arc<RequestClient>>,
}

/// Who answers, as JSON.
pub(crate) fn server_info() -> Value {
    json!({ "name": "tenon", "title": "Tenon", "version": env!("CARGO_PKG_VERSION") })
}

/// The same as text, which stands in each modern result.
static SERVER_INFO_JSON: LazyLock<String> = LazyLock::new(|| server_info().to_string());

/// What the server offers, as JSON.
pub(crate) fn server_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": true },
        "prompts": { "listChanged": true },
        "completions": {},
        "logging": {},
    })
}

impl RequestHandler {
    /// Does what a request asks for. Gives the result, a JSON object.
    ///
    /// Requests that belong to a session or to a stream are none of these.
    pub(crate) async fn run(&self, request: Request) -> Result<String, RpcError> {
        match request {
            Request::Ping => Ok("{}".into()),
            Request::Discover => Ok(self.discover()),
            Request::List(kind, cursor) => {
                let (offer, profile) = (&self.offer, &self.peer.profile);
                let page = offer.page(kind, profile, self.era, cursor.as_deref(), &self.caller);
                Ok(self.cached(page.await?))
            }
            Request::CallTool { name, arguments, .. } => self.call_tool(&name, arguments).await,
            Request::ReadResource { uri, .. } => self.read_resource(&uri).await,
            Request::GetPrompt { name, arguments, .. } => self.get_prompt(&name, arguments).await,
            Request::Complete(argument) => self.complete(argument).await,
            Request::Subscribe { uri, wanted } => {
                self.subscribe(&uri, wanted).await?;
                Ok("{}".into())
            }
            Request::Initialize(_) | Request::SetLevel(_) | Request::Listen(_) => {
                Err(RpcError::new(INTERNAL, "the request is not for the platform"))
            }
        }
    }

    fn discover(&self) -> String {
        let supported: Vec<&str> = version::all().collect();
        let result = json!({
            "supportedVersions": supported,
            "capabilities": server_capabilities(),
        });
        self.cached(result.to_string())
    }

    /// A result that a modern client may keep, which has no `_meta` of its own. Where clients have tokens, others may see
    /// something else at the same address.
    fn cached(&self, mut result: String) -> String {
        if self.era == Era::Modern && result.pop() == Some('}') {
            let info = &*SERVER_INFO_JSON;
            result += &format!(r#","_meta":{{"{SERVER_INFO}":{info}}}}}"#);
        }
        let is_public = !self.peer.is_known && !self.peer.profile.is_narrowed();
        write::complete(self.era, result, Some(Cache { ttl: LIST_TTL_MILLIS, is_public }))
    }

    /// Who answers, among the further members of a modern result.
    fn sign(&self, extra: &mut Option<String>) {
        if self.era == Era::Modern {
            mcp_json::insert_meta_json(extra, SERVER_INFO, &SERVER_INFO_JSON);
        }
    }

    async fn call_tool(&self, name: &str, arguments: Value) -> Result<String, RpcError> {
        let tools = self.offer.tools(&self.peer.profile, self.era);
        if let Some(catalog) = tools.catalog().cloned() {
            // Most clients never come here: what it keeps is not part of every call.
            return Box::pin(self.call_compact(&tools, &catalog, name, arguments)).await;
        }
        let Some(target) = tools.target(name) else {
            return Err(no_tool(name));
        };
        let target = target.name.clone();
        drop(tools);
        self.call_target(name, target, arguments).await
    }

    /// Calls a tool that is offered, by the name that the platform has for it.
    async fn call_target(
        &self,
        name: &str,
        target: String,
        arguments: Value,
    ) -> Result<String, RpcError> {
        if let Err(wait) = self.rates.count(&self.peer, &target) {
            let text = too_often(name, &self.peer.profile, wait);
            return Ok(self.write_tool_result(too_often_result(text, wait)));
        }
        let call = Call { name: target, arguments, caller: self.caller.clone() };
        let result = match self.platform.call(call).await {
            Ok(result) => result,
            // It went away since.
            Err(error @ CallError::NotFound { .. }) => {
                return Err(RpcError::invalid_params(error.to_string()));
            }
            Err(error) => failed(&error),
        };
        if result.is_error {
            self.check_capabilities()?;
        }
        Ok(self.write_tool_result(result))
    }

    /// Calls one of the tools of a profile that does not list all.
    async fn call_compact(
        &self,
        tools: &ToolList,
        catalog: &Arc<ToolCatalog>,
        name: &str,
        mut arguments: Value,
    ) -> Result<String, RpcError> {
        let mode = self.peer.profile.mode;
        let wrong = |problem: String| {
            let mut result = ToolResult::error(format!("arguments of {name}: {problem}"));
            mcp_json::insert_meta(&mut result, "tenon/error", &json!({ "code": "invalid-input" }));
            Ok(self.write_tool_result(result))
        };
        if let Some(problem) = compact::unknown_argument(mode, name, &arguments) {
            return wrong(problem);
        }
        match (name, mode) {
            (compact::SEARCH, _) => {
                let Some(query) = arguments["query"].as_str() else {
                    return wrong("`query` has to be a text".into());
                };
                let shown = |tool: &CatalogTool| {
                    tools.shown_name(&tool.tool).unwrap_or(&tool.tool).to_string()
                };
                let meant = tools.target(query).map(|target| target.name.as_str());
                let limit = match &arguments["limit"] {
                    Value::Null => None,
                    limit => {
                        match limit.as_u64().filter(|limit| compact::FOUND_RANGE.contains(limit)) {
                            None => {
                                let (least, most) = compact::FOUND_RANGE.into_inner();
                                let problem =
                                    format!("`limit` has to be an integer from {least} to {most}");
                                return wrong(problem);
                            }
                            limit => limit,
                        }
                    }
                };
                let found = compact::found(catalog, mode, shown, query, meant, limit);
                Ok(self.write_tool_result(ToolResult::text(found)))
            }
            (compact::CALL, ToolMode::Search) => {
                let Some(tool) = arguments["name"].as_str().map(str::to_string) else {
                    return wrong("`name` has to be the name of a tool".into());
                };
                let Some(target) = tools.target(&tool) else {
                    return wrong(format!("there is no tool {tool:?}; `search` finds tools"));
                };
                let inner = match arguments["arguments"].take() {
                    Value::Null => json!({}),
                    given => given,
                };
                self.call_target(&tool, target.name.clone(), inner).await
            }
            (compact::RUN, ToolMode::Code) => {
                let (script, resume) = (&arguments["script"], &arguments["resume"]);
                let begin = match (script.as_str(), resume.as_str()) {
                    (Some(script), None) if resume.is_null() => {
                        RunStart::Script(script.to_string())
                    }
                    (None, Some(id)) if script.is_null() => RunStart::Resume(id.to_string()),
                    _ => {
                        return wrong("it takes a `script`, or the id of a run to `resume`".into());
                    }
                };
                let data = arguments["data"].take();
                if matches!(begin, RunStart::Resume(_)) && !data.is_null() {
                    return wrong("a run that is resumed has its `data` already".into());
                }
                Ok(self.write_tool_result(self.run_script(catalog, begin, data).await?))
            }
            _ => Err(no_tool(name)),
        }
    }

    /// Runs a script, or has one go on.
    async fn run_script(
        &self,
        catalog: &Arc<ToolCatalog>,
        begin: RunStart,
        data: Value,
    ) -> Result<ToolResult, RpcError> {
        let (rates, peer) = (self.rates.clone(), self.peer.clone());
        let admits = move |tool: &str| {
            rates.count(&peer, tool).map_err(|wait| too_often(tool, &peer.profile, wait))
        };
        let runner = self.platform.runner(catalog, self.caller.clone()).admitting(admits);
        let runner = match &self.project {
            Some(folder) => runner.in_project(folder),
            None => runner,
        };
        let ran = match begin {
            RunStart::Script(script) => runner.run(script, data).await,
            RunStart::Resume(id) => runner.resume(&id).await,
        };
        Ok(match ran {
            Ok(report) => run_result(&report),
            Err(error) => {
                let code = match &error {
                    RunError::NotFound(_) => "not-found",
                    RunError::NotPaused { .. } | RunError::OtherProject { .. } => "not-paused",
                    _ => "state",
                };
                let mut result = ToolResult::error(error.to_string());
                mcp_json::insert_meta(&mut result, "tenon/error", &json!({ "code": code }));
                result
            }
        })
    }

    /// A tool's result in the form of the era.
    fn write_tool_result(&self, mut result: ToolResult) -> String {
        // What a server of the newer era says of its own result is said anew here.
        write::without(&mut result.extra, "resultType");
        if self.era == Era::Legacy
            && !result.structured.as_deref().is_none_or(|json| json.starts_with('{'))
        {
            result.structured = None;
        }
        self.sign(&mut result.extra);
        write::complete(self.era, write::text(&McpJson(&result)), None)
    }

    /// Whether something failed since the client has not declared what it takes. A modern client is told so in a way that
    /// it can act upon.
    fn check_capabilities(&self) -> Result<(), RpcError> {
        let missing = self.client.as_ref().and_then(|client| client.missing());
        match missing.filter(|_| self.era == Era::Modern) {
            Some(feature) => Err(RpcError::missing_capability(capabilities::declaration(feature))),
            None => Ok(()),
        }
    }

    async fn read_resource(&self, uri: &str) -> Result<String, RpcError> {
        if uri.starts_with(RESULT_URI) {
            // Its address is all that somebody needs to read it, so it is told to one client alone.
            let read = self.platform.read_result_within(uri, Default::default()).await;
            let contents = read.map_err(|_| self.no_resource(uri))?;
            let cache = Cache { ttl: LIST_TTL_MILLIS, is_public: false };
            return Ok(write::complete(self.era, contents_form(&contents), Some(cache)));
        }
        let owner = self.offer.resource(&self.peer.profile, uri, &self.caller).await;
        let owner = owner.ok_or_else(|| self.no_resource(uri))?;
        let read = self.platform.read_resource(&owner.plugin, uri, &self.caller).await;
        let contents = read.map_err(|error| self.unread(uri, &error))?;
        Ok(self.cached(contents_form(&contents)))
    }

    /// There is no such resource, in the words of the era.
    fn no_resource(&self, uri: &str) -> RpcError {
        let message = format!("there is no resource {uri:?}");
        let error = match self.era {
            Era::Legacy => RpcError::new(RESOURCE_NOT_FOUND, message),
            Era::Modern => RpcError::invalid_params(message),
        };
        error.with_data(json!({ "uri": uri }))
    }

    fn unread(&self, uri: &str, error: &CallError) -> RpcError {
        match is_not_found(error) {
            true => self.no_resource(uri),
            false => self.refused(error),
        }
    }

    /// What is said of a failure of something that is no tool.
    fn refused(&self, error: &CallError) -> RpcError {
        if let Err(missing) = self.check_capabilities() {
            return missing;
        }
        let is_input = matches!(error, CallError::InvalidInput { .. })
            || answered(error).is_some_and(|error| error.code == ErrorCode::InvalidInput);
        let code = if is_input { INVALID_PARAMS } else { INTERNAL };
        RpcError::new(code, error.to_string()).with_data(json!({ "code": error.code() }))
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
    ) -> Result<String, RpcError> {
        let unknown = || RpcError::invalid_params(format!("there is no prompt {name:?}"));
        let owner = self.offer.prompt(&self.peer.profile, name, &self.caller).await;
        let owner = owner.ok_or_else(unknown)?;
        let prompt = self.platform.prompt(&owner.plugin, &owner.name, arguments, &self.caller);
        let mut prompt = prompt.await.map_err(|error| match is_not_found(&error) {
            true => RpcError::invalid_params(error.to_string()),
            false => self.refused(&error),
        })?;
        write::without(&mut prompt.extra, "resultType");
        self.sign(&mut prompt.extra);
        Ok(write::complete(self.era, write::text(&McpJson(&prompt)), None))
    }

    async fn complete(&self, mut argument: ArgumentCompletion) -> Result<String, RpcError> {
        let caller = Caller { timeout: Some(MAX_SUGGESTING_TIME), ..self.caller.clone() };
        let (owner, unknown) = match &mut argument.reference {
            CompletionReference::Prompt(name) => {
                let owner = self.offer.prompt(&self.peer.profile, name, &caller).await;
                let unknown = format!("there is no prompt {name:?}");
                if let Some(owner) = &owner {
                    name.clone_from(&owner.name);
                }
                (owner, unknown)
            }
            CompletionReference::ResourceTemplate(template) => {
                let owner = self.offer.template(&self.peer.profile, template, &caller).await;
                (owner, format!("there is no resource template {template:?}"))
            }
        };
        let owner = owner.ok_or_else(|| RpcError::invalid_params(unknown))?;
        let mut suggestions = match self.platform.suggest(&owner.plugin, argument, &caller).await {
            Ok(suggestions) => suggestions,
            // Not every plugin that has arguments knows values of them.
            Err(CallError::Failed { failure: Failure::Unsupported(_), .. }) => {
                return Ok(write::complete(
                    self.era,
                    r#"{"completion":{"values":[]}}"#.into(),
                    None,
                ));
            }
            Err(error) => return Err(self.refused(&error)),
        };
        if suggestions.values.len() > MAX_SUGGESTIONS {
            suggestions.values.truncate(MAX_SUGGESTIONS);
            suggestions.has_more = true;
        }
        write::without(&mut suggestions.extra, "resultType");
        self.sign(&mut suggestions.extra);
        Ok(write::complete(self.era, write::text(&McpJson(&suggestions)), None))
    }

    /// Subscribes a plugin's resource, or no longer.
    pub(crate) async fn subscribe(&self, uri: &str, wanted: bool) -> Result<(), RpcError> {
        let owner = self.offer.resource(&self.peer.profile, uri, &self.caller).await;
        let owner = owner.ok_or_else(|| self.no_resource(uri))?;
        let subscribed = match wanted {
            true => self.platform.subscribe(&owner.plugin, uri, &self.caller).await,
            false => self.platform.unsubscribe(&owner.plugin, uri, &self.caller).await,
        };
        subscribed.map_err(|error| self.unread(uri, &error))
    }
}

/// What a plugin answered in place of what was asked for.
fn answered(error: &CallError) -> Option<&Error> {
    match error {
        CallError::Failed { failure: Failure::Answered(error), .. } => Some(error),
        _ => None,
    }
}

/// A failure as the result of a tool: a model reads it and may do better.
fn failed(error: &CallError) -> ToolResult {
    let answered = answered(error);
    let text = answered.map_or_else(|| error.to_string(), Error::to_string);
    let mut result = ToolResult::error(text);
    let mut data = json!({ "code": error.code() });
    if let Some(wait) = answered.and_then(|error| error.retry_after) {
        data["retryAfterMs"] = json!(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
    }
    if let CallError::NotApproved { refusal, .. } = error
        && let Some(approval) = refusal.pending()
    {
        data["approval"] = json!(approval);
    }
    if let Some(more) = answered.and_then(|error| error.data.as_ref()) {
        data["data"] = more.value().clone();
    }
    mcp_json::insert_meta(&mut result, "tenon/error", &data);
    result
}

/// Says that a tool was called too often, and is not called now.
fn too_often(tool: &str, profile: &Profile, wait: Duration) -> String {
    let often = match profile.calls_per_minute.map_or(0, NonZeroU32::get) {
        1 => "once".to_string(),
        calls => format!("{calls} times"),
    };
    let seconds = wait.as_millis().div_ceil(1000);
    format!(
        "the tool {tool:?} can be called {often} in a minute: try again in {seconds} s; nothing was done"
    )
}

/// The same as a result.
fn too_often_result(text: String, wait: Duration) -> ToolResult {
    let mut result = ToolResult::error(text);
    let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let code = ErrorCode::Unavailable.name();
    mcp_json::insert_meta(
        &mut result,
        "tenon/error",
        &json!({ "code": code, "retryAfterMs": wait }),
    );
    result
}

/// What a run begins with.
enum RunStart {
    Script(String),
    Resume(String),
}

fn no_tool(name: &str) -> RpcError {
    RpcError::invalid_params(format!("there is no tool {name:?}"))
}

/// What a run came to, as the result of a tool.
fn run_result(report: &RunReport) -> ToolResult {
    let RunReport { id, outcome, printed, called, usage, .. } = report;
    let (text, error) = match outcome {
        RunOutcome::Done(Value::String(text)) => (text.clone(), None),
        RunOutcome::Done(value) => (value.to_string(), None),
        RunOutcome::Paused { approval, message, .. } => (
            format!("{message}: call `run` with {{\"resume\": \"{id}\"}}"),
            Some(json!({ "code": "approval-required", "approval": approval })),
        ),
        RunOutcome::Failed { code, message } => {
            let done = match called.is_empty() || code == "invalid-script" {
                true => String::new(),
                false => {
                    let called: Vec<String> = called.iter().map(ToolCallCount::to_string).collect();
                    format!("\nCalled before: {}", called.join(", "))
                }
            };
            (format!("{message}{done}"), Some(json!({ "code": code })))
        }
        _ => ("the run ended in a way that this server does not know".into(), None),
    };
    let mut result = match &error {
        Some(_) => ToolResult::error(text),
        None => ToolResult::text(text),
    };
    if !printed.is_empty() {
        let printed = ToolResult::text(format!("printed:\n{}", printed.trim_end()));
        result.content.extend(printed.content);
    }
    if let Some(error) = error {
        mcp_json::insert_meta(&mut result, "tenon/error", &error);
    }
    mcp_json::insert_meta(&mut result, "tenon/run", &json!({ "id": id, "usage": usage }));
    result
}

fn is_not_found(error: &CallError) -> bool {
    matches!(error, CallError::NotFound { .. })
        || answered(error).is_some_and(|error| error.code == ErrorCode::NotFound)
}

/// What was read of a resource, as the result of `resources/read`.
fn contents_form(contents: &[ResourceContents]) -> String {
    let mut form = r#"{"contents":["#.to_string();
    for (i, part) in contents.iter().enumerate() {
        if i > 0 {
            form.push(',');
        }
        form += &write::text(&McpJson(part));
    }
    form.push_str("]}");
    form
}
