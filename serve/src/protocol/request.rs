//! Requests of clients, with their parameters read.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tenon_host::types::{ArgumentCompletion, CompletionReference};

use super::capabilities::{ClientCapabilities, Severity};
use super::error::RpcError;
use super::version::Era;

/// The most resources that one request may subscribe to.
pub(crate) const MAX_LISTENED_RESOURCES: usize = 1000;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// Legacy: to begin a session.
    Initialize(Initialize),
    /// Modern: what the server is.
    Discover,
    /// Legacy: whether the server is there.
    Ping,
    /// Legacy: the least of what is logged that the client wants.
    SetLevel(Severity),
    /// A page of a list.
    List(ListKind, Option<String>),
    CallTool {
        name: String,
        arguments: Value,
        input: Input,
    },
    ReadResource {
        uri: String,
        input: Input,
    },
    GetPrompt {
        name: String,
        arguments: Vec<(String, String)>,
        input: Input,
    },
    Complete(ArgumentCompletion),
    /// Legacy: to be told when a resource changes, or no longer.
    Subscribe {
        uri: String,
        wanted: bool,
    },
    /// Modern: to be told of changes as long as the request is open.
    Listen(ListenFilter),
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ListKind {
    Tools,
    Resources,
    ResourceTemplates,
    Prompts,
}

impl ListKind {
    /// The member of a result that has the list.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::ResourceTemplates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }
}

/// How a session begins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Initialize {
    pub(crate) version: String,
    pub(crate) capabilities: ClientCapabilities,
    /// The name of the client.
    pub(crate) client: Option<String>,
}

/// What a client brings with a request that may need its user: answers to what the server asked before, and the state
/// that came with the questions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Input {
    pub(crate) answers: Map<String, Value>,
    pub(crate) state: Option<String>,
}

/// What a client wants to be told of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListenFilter {
    pub(crate) tools: bool,
    pub(crate) resources: bool,
    pub(crate) prompts: bool,
    /// The resources whose changes are wanted.
    pub(crate) updates: Vec<String>,
}

impl Input {
    fn new(answers: Option<Map<String, Value>>, state: Option<String>) -> Self {
        Self { answers: answers.unwrap_or_default(), state }
    }
}

impl Request {
    /// Reads a request of an era, by its method.
    ///
    /// # Errors
    ///
    /// Where the era has no such method, or the parameters are wrong.
    pub(crate) fn read(
        era: Era,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<Self, RpcError> {
        let (legacy, modern) = (era == Era::Legacy, era == Era::Modern);
        Ok(match method {
            "initialize" if legacy => Self::Initialize(read_initialize(params)?),
            "ping" if legacy => Self::Ping,
            "logging/setLevel" if legacy => {
                let LevelForm { level } = read(params)?;
                let severity = Severity::read(&level).ok_or_else(|| {
                    RpcError::invalid_params(format!("there is no log level {level:?}"))
                })?;
                Self::SetLevel(severity)
            }
            "server/discover" if modern => Self::Discover,
            "tools/list" => Self::List(ListKind::Tools, read_cursor(params)?),
            "resources/list" => Self::List(ListKind::Resources, read_cursor(params)?),
            "resources/templates/list" => {
                Self::List(ListKind::ResourceTemplates, read_cursor(params)?)
            }
            "prompts/list" => Self::List(ListKind::Prompts, read_cursor(params)?),
            "tools/call" => {
                let CallForm { name, arguments, input_responses, request_state } = read(params)?;
                let input = Input::new(input_responses, request_state);
                let arguments = match arguments {
                    None | Some(Value::Null) => Value::Object(Map::new()),
                    Some(arguments) if arguments.is_object() => arguments,
                    Some(_) => {
                        return Err(RpcError::invalid_params("`arguments` is not an object"));
                    }
                };
                Self::CallTool { name, arguments, input }
            }
            "resources/read" => {
                let ReadForm { uri, input_responses, request_state } = read(params)?;
                let input = Input::new(input_responses, request_state);
                Self::ReadResource { uri, input }
            }
            "prompts/get" => {
                let GetPromptParams { name, arguments, input_responses, request_state } =
                    read(params)?;
                let input = Input::new(input_responses, request_state);
                let arguments = arguments.into_iter().flatten().collect();
                Self::GetPrompt { name, arguments, input }
            }
            "completion/complete" => Self::Complete(read_completion(params)?),
            "resources/subscribe" | "resources/unsubscribe" if legacy => {
                let UriForm { uri } = read(params)?;
                Self::Subscribe { uri, wanted: method == "resources/subscribe" }
            }
            "subscriptions/listen" if modern => Self::Listen(read_filter(params)?),
            _ => return Err(RpcError::method_not_found(method)),
        })
    }

    /// What a modern request over HTTP repeats in the header `Mcp-Name`.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::CallTool { name, .. } | Self::GetPrompt { name, .. } => Some(name),
            Self::ReadResource { uri, .. } => Some(uri),
            _ => None,
        }
    }
}

fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, RpcError> {
    let params = params.map_or("{}", RawValue::get);
    serde_json::from_str(params)
        .map_err(|error| RpcError::invalid_params(format!("the parameters are wrong: {error}")))
}

#[derive(Deserialize)]
struct LevelForm {
    level: String,
}

#[derive(Deserialize)]
struct UriForm {
    uri: String,
}

#[derive(Deserialize)]
struct CursorForm {
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallForm {
    name: String,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    input_responses: Option<Map<String, Value>>,
    #[serde(default)]
    request_state: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadForm {
    uri: String,
    #[serde(default)]
    input_responses: Option<Map<String, Value>>,
    #[serde(default)]
    request_state: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct GetPromptParams {
    name: String,
    #[serde(default)]
    arguments: Option<BTreeMap<String, String>>,
    #[serde(default)]
    input_responses: Option<Map<String, Value>>,
    #[serde(default)]
    request_state: Option<String>,
}

fn read_cursor(params: Option<&RawValue>) -> Result<Option<String>, RpcError> {
    read::<CursorForm>(params).map(|CursorForm { cursor }| cursor)
}

fn read_initialize(params: Option<&RawValue>) -> Result<Initialize, RpcError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InitializeParams {
        protocol_version: String,
        #[serde(default)]
        capabilities: Value,
        #[serde(default)]
        client_info: Value,
    }
    let InitializeParams { protocol_version: version, capabilities, client_info } = read(params)?;
    let capabilities = ClientCapabilities::read(&capabilities);
    Ok(Initialize { version, capabilities, client: client_info["name"].as_str().map(Into::into) })
}

fn read_completion(params: Option<&RawValue>) -> Result<ArgumentCompletion, RpcError> {
    #[derive(Deserialize)]
    struct InitializeParams {
        #[serde(rename = "ref")]
        reference: Reference,
        argument: Argument,
        #[serde(default)]
        context: Option<CompletionContext>,
    }
    #[derive(Deserialize)]
    #[serde(tag = "type")]
    enum Reference {
        #[serde(rename = "ref/prompt")]
        Prompt { name: String },
        #[serde(rename = "ref/resource")]
        Resource { uri: String },
    }
    #[derive(Deserialize)]
    struct Argument {
        name: String,
        value: String,
    }
    #[derive(Deserialize)]
    struct CompletionContext {
        #[serde(default)]
        arguments: BTreeMap<String, String>,
    }
    let InitializeParams { reference, argument, context } = read(params)?;
    let reference = match reference {
        Reference::Prompt { name } => CompletionReference::Prompt(name),
        Reference::Resource { uri } => CompletionReference::ResourceTemplate(uri),
    };
    let others = context.map(|context| context.arguments.into_iter().collect());
    let Argument { name, value } = argument;
    Ok(ArgumentCompletion { reference, name, value, others: others.unwrap_or_default() })
}

fn read_filter(params: Option<&RawValue>) -> Result<ListenFilter, RpcError> {
    #[derive(Deserialize)]
    struct InitializeParams {
        notifications: Wanted,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        #[serde(default)]
        tools_list_changed: bool,
        #[serde(default)]
        resources_list_changed: bool,
        #[serde(default)]
        prompts_list_changed: bool,
        #[serde(default)]
        resource_subscriptions: Vec<String>,
    }
    let InitializeParams { notifications: wanted } = read(params)?;
    if wanted.resource_subscriptions.len() > MAX_LISTENED_RESOURCES {
        return Err(RpcError::invalid_params(format!(
            "one request subscribes to {MAX_LISTENED_RESOURCES} resources at most"
        )));
    }
    Ok(ListenFilter {
        tools: wanted.tools_list_changed,
        resources: wanted.resources_list_changed,
        prompts: wanted.prompts_list_changed,
        updates: wanted.resource_subscriptions,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(era: Era, method: &str, params: Value) -> Result<Request, RpcError> {
        let params = RawValue::from_string(params.to_string()).unwrap();
        Request::read(era, method, Some(&params))
    }

    #[test]
    fn each_era_has_its_methods() {
        let both = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
        for method in both {
            assert!(request(Era::Legacy, method, json!({})).is_ok());
            assert!(request(Era::Modern, method, json!({})).is_ok());
        }
        let check = |era, method, is_there: bool| {
            let read = request(
                era,
                method,
                json!({ "protocolVersion": "x", "level": "info", "uri": "a:b", "notifications": {} }),
            );
            let code = read.as_ref().err().map(|error| error.code);
            assert_eq!(code, (!is_there).then_some(-32601), "{method} {read:?}");
        };
        for method in [
            "initialize",
            "ping",
            "logging/setLevel",
            "resources/subscribe",
            "resources/unsubscribe",
        ] {
            check(Era::Legacy, method, true);
            check(Era::Modern, method, false);
        }
        for method in ["server/discover", "subscriptions/listen"] {
            check(Era::Legacy, method, false);
            check(Era::Modern, method, true);
        }
        for method in ["", "tools", "tools/List", "tasks/list", "sampling/createMessage"] {
            check(Era::Legacy, method, false);
            check(Era::Modern, method, false);
        }
    }

    #[test]
    fn wrong_parameters_are_named() {
        let check = |method: &str, params: Value, problem: &str| {
            let error = request(Era::Legacy, method, params).unwrap_err();
            assert_eq!(error.code, -32602, "{method}");
            assert!(error.message.contains(problem), "{}", error.message);
        };
        check("tools/call", json!({}), "missing field `name`");
        check("tools/call", json!({ "name": 3 }), "expected a string");
        check("tools/call", json!({ "name": "t", "arguments": [1] }), "`arguments`");
        check("tools/list", json!({ "cursor": 3 }), "expected a string");
        check("resources/read", json!({}), "missing field `uri`");
        check("prompts/get", json!({ "name": "p", "arguments": { "a": 1 } }), "expected a string");
        check("logging/setLevel", json!({ "level": "loud" }), "\"loud\"");
        check("completion/complete", json!({ "ref": { "type": "x" } }), "ref/prompt");
        check("initialize", json!({}), "missing field `protocolVersion`");
        let many = json!({ "notifications": { "resourceSubscriptions": vec!["a:b"; 1001] } });
        assert!(request(Era::Modern, "subscriptions/listen", many).is_err());
    }

    #[test]
    fn arguments_may_be_left_out_and_answers_are_taken_along() {
        let bare =
            Request::CallTool { name: "t".into(), arguments: json!({}), input: Input::default() };
        assert_eq!(request(Era::Modern, "tools/call", json!({ "name": "t" })), Ok(bare.clone()));
        let nulls = json!({ "name": "t", "arguments": null, "inputResponses": null });
        assert_eq!(request(Era::Modern, "tools/call", nulls), Ok(bare));
        let again = json!({ "name": "t", "inputResponses": { "a": 1 }, "requestState": "s" });
        let Ok(Request::CallTool { input, .. }) = request(Era::Modern, "tools/call", again) else {
            panic!("it is a call")
        };
        assert_eq!((input.answers["a"].clone(), input.state.as_deref()), (json!(1), Some("s")));
        let prompt = json!({ "name": "p", "arguments": { "b": "1", "a": "2" } });
        let Ok(Request::GetPrompt { arguments, .. }) = request(Era::Modern, "prompts/get", prompt)
        else {
            panic!("it is a prompt")
        };
        assert_eq!(arguments, [("a".into(), "2".into()), ("b".into(), "1".into())]);
    }
}
