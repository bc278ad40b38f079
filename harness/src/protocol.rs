//! What a test and the command `tenon harness` say to each other: JSON objects, each on a line of its own.
//!
//! A request is `{ "id", "method", "params" }`; its response is `{ "id", "result" }` or `{ "id", "error" }`. The test
//! requests [`Start`](TestRequest::Start) first, and then anything, many requests at a time. The command asks the test what its
//! plugin asks the user and the default model ([`Question`]). Both are of one version, [`VERSION`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// The version of this protocol.
pub const VERSION: u32 = 2;

/// A message of one side, by what it requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Message<R> {
    /// A request.
    Request {
        /// Of the side that requests.
        id: u64,
        /// What is requested.
        #[serde(flatten)]
        request: R,
    },
    /// That a request was done, with what came of it.
    Result {
        /// That of the request.
        id: u64,
        /// What came of it.
        result: Value,
    },
    /// That a request failed.
    Error {
        /// That of the request.
        id: u64,
        /// Why.
        error: CallError,
    },
}

/// What a test requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "method",
    content = "params",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum TestRequest {
    /// Starts the plugin. Nothing comes of it.
    Start(Box<Setup>),
    /// Calls a tool; its result is one of MCP.
    Call {
        /// The tool, by the name that the plugin gives it.
        tool: String,
        /// Its arguments.
        arguments: Value,
        /// The session that the call belongs to.
        session: Option<String>,
    },
    /// Has the plugin handle an event; a [`HookResult`] comes of it.
    Hook {
        /// The point.
        point: String,
        /// The context, an object.
        context: Value,
        /// The session that the event belongs to.
        session: Option<String>,
    },
    /// Has a strategy judge a subject.
    Evaluate {
        /// The strategy.
        strategy: String,
        /// What is judged.
        subject: Value,
        /// How.
        options: Value,
    },
    /// Has a model of the plugin answer a request in the form of `tenon complete`.
    Complete(Value),
    /// Lists the resources.
    Resources {},
    /// Lists the templates of resources.
    ResourceTemplates {},
    /// Reads a resource.
    ReadResource {
        /// Which.
        uri: String,
    },
    /// Lists the prompts.
    Prompts {},
    /// Fills in a prompt.
    Prompt {
        /// Which.
        name: String,
        /// Its arguments.
        arguments: BTreeMap<String, String>,
    },
    /// Suggests values for an argument.
    Suggest {
        /// The name of a prompt, or the URI of a template of resources.
        of: String,
        /// Whether it is a template.
        is_template: bool,
        /// The argument.
        argument: String,
        /// What was typed of its value.
        typed: String,
        /// The arguments that have their values already.
        others: Vec<(String, String)>,
    },
    /// Lists what the plugin requested over HTTP.
    HttpRequests {},
    /// Reads a value of the plugin's state; `null` where there is none.
    StateValue {
        /// The scope.
        scope: Scope,
        /// The key.
        key: String,
    },
    /// Sets a value of the plugin's state.
    SetState(StateEntry),
    /// Lists the keys of a scope.
    StateKeys {
        /// The scope.
        scope: Scope,
    },
    /// Moves the clock on.
    AdvanceClock {
        /// By this much.
        milliseconds: u64,
    },
    /// Lists the calls of the cassette that were not played.
    UnplayedCalls {},
    /// Ends the host, and lets the plugin say good-bye.
    Shutdown {},
}

/// What the command asks a test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params", rename_all = "camelCase")]
pub enum Question {
    /// A form for the user. The answer is `{ "action": "accept" | "decline" | "cancel", "content": { … } }`, as in MCP.
    Form {
        /// What is asked and why.
        message: String,
        /// The form.
        schema: Value,
    },
    /// A page for the user. The answer is `{ "action": … }`.
    Page {
        /// What the page is for.
        message: String,
        /// Its address.
        url: String,
    },
    /// A request to the default model. The answer is a text.
    Model(Value),
}

/// All that a test says of a plugin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Setup {
    /// The [`VERSION`] of the test.
    pub protocol: u32,
    /// The plugin.
    pub plugin: PluginSource,
    /// Whether one instance serves all calls.
    pub shared: bool,
    /// Its settings.
    pub config: Map<String, Value>,
    /// What it is granted, by capability.
    pub grants: BTreeMap<String, Vec<String>>,
    /// Secrets, which it gets if they are granted.
    pub secrets: BTreeMap<String, String>,
    /// The host's environment.
    pub environment: BTreeMap<String, String>,
    /// Limits, in the words of a `plugin.toml`.
    pub limits: Map<String, Value>,
    /// Components beside it.
    pub beside: Vec<PathBuf>,
    /// Answers to its requests over HTTP; without it, the network is the real one.
    pub http: Option<Vec<HttpAnswer>>,
    /// Files of the home folder.
    pub files: Vec<HomeFile>,
    /// What it finds in its state.
    pub state: Vec<StateEntry>,
    /// Where its state is kept.
    pub state_folder: Option<PathBuf>,
    /// The time of its clock, after RFC 3339.
    pub clock: Option<String>,
    /// What of others is recorded or played.
    pub cassette: Option<CassetteSetup>,
    /// What the test answers.
    pub answers: AnswerableQuestions,
}

/// A file that has what the plugin asked of others, and what they answered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CassetteSetup {
    /// What becomes of it.
    #[serde(rename = "use")]
    pub how: CassetteUse,
    /// The file.
    pub file: PathBuf,
}

/// What becomes of a cassette.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CassetteUse {
    /// It is recorded anew.
    Record,
    /// It answers in place of others.
    Replay,
}

/// Where a plugin is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PluginSource {
    /// The folder of a plugin, with its manifest.
    Folder(PathBuf),
    /// A component.
    Component(PathBuf),
    /// A script.
    Script(PathBuf),
    /// An MCP server.
    Server {
        /// Its program.
        command: String,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

/// Which questions a test answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AnswerableQuestions {
    /// Forms.
    pub forms: bool,
    /// Pages.
    pub pages: bool,
    /// Requests to the default model.
    pub model: bool,
}

/// A value in a plugin's state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StateEntry {
    /// Its scope.
    pub scope: Scope,
    /// Its key.
    pub key: String,
    /// The value.
    pub value: Value,
}

/// A scope of state, as a manifest requests it under `state`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// What belongs to the user.
    User,
    /// What belongs to the project of the test.
    Project,
    /// What belongs to the session of this id.
    Session(String),
}

/// What came of an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HookResult {
    /// The context as the plugin left it.
    pub context: Value,
    /// Why the plugin vetoed what was about to happen; nothing if it did not.
    pub veto: Option<String>,
    /// Why its handler failed; nothing if it did not.
    pub error: Option<String>,
}

impl HookResult {
    /// A report of these.
    pub fn new(context: Value, veto: Option<String>, error: Option<String>) -> Self {
        Self { context, veto, error }
    }
}

/// Why a plugin or the host did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct CallError {
    /// The stable code of the error, as `tenon --json` has it: `not-found`, `invalid-input`, `vetoed`, `trapped`, `limit`,
    /// `deadline`, that of the plugin's own error, or `lost` where the command has ended.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

impl CallError {
    /// An error of a code.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// Bytes, which JSON has in base64.
mod base64 {
    use ::base64::Engine as _;
    use ::base64::prelude::BASE64_STANDARD;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&BASE64_STANDARD.encode(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        BASE64_STANDARD.decode(text).map_err(D::Error::custom)
    }
}

/// A file of the test's home folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeFile {
    /// Its path below the home folder.
    pub path: PathBuf,
    /// What is in it.
    #[serde(with = "base64")]
    pub content: Vec<u8>,
}

/// What a test answers to HTTP requests of its plugin.
///
/// ```
/// use serde_json::json;
/// use tenon_harness::HttpAnswer;
///
/// let busy = HttpAnswer::new("https://api.example.com/v1/*").status(503);
/// let found = HttpAnswer::new("https://api.example.com/v1/*").json(&json!({ "degrees": 21 }));
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// The method that it is for; without one, any.
    pub method: Option<String>,
    /// The URL, in which `*` stands for any text.
    pub url: String,
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "base64")]
    pub body: Vec<u8>,
}

impl HttpAnswer {
    /// Answers requests to a URL, in which `*` stands for any text, with the status 200 and nothing else. Of several
    /// answers to a request each is given once, in their order, and the last again and again.
    pub fn new(url: impl Into<String>) -> Self {
        let (method, headers, body) = (None, Vec::new(), Vec::new());
        Self { method, url: url.into(), status: 200, headers, body }
    }

    /// Answers requests with this method only.
    pub fn method(mut self, method: impl Into<String>) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Sets the status.
    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Sets the body to JSON, and says that it is.
    pub fn json(self, body: &Value) -> Self {
        self.header("content-type", "application/json").body(body.to_string())
    }
}

/// What a plugin requested over HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpRequest {
    /// The method, in capitals.
    pub method: String,
    /// The whole URL. A port other than 443 is taken for one of `http`.
    pub url: String,
    /// The headers, by their names in small letters.
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(with = "base64")]
    pub body: Vec<u8>,
    /// Whether the test had an answer. A request without one fails.
    pub was_answered: bool,
}

impl Setup {
    /// A plugin, of which nothing else is said.
    pub fn new(plugin: PluginSource) -> Self {
        Self {
            protocol: VERSION,
            plugin,
            shared: false,
            config: Map::new(),
            grants: BTreeMap::new(),
            secrets: BTreeMap::new(),
            environment: BTreeMap::new(),
            limits: Map::new(),
            beside: Vec::new(),
            http: None,
            files: Vec::new(),
            state: Vec::new(),
            state_folder: None,
            clock: None,
            cassette: None,
            answers: AnswerableQuestions::default(),
        }
    }

    /// Makes the paths absolute: those of a test begin in the folder that it runs in.
    pub(crate) fn resolve(&mut self) -> io::Result<()> {
        let own = match &mut self.plugin {
            PluginSource::Folder(path)
            | PluginSource::Component(path)
            | PluginSource::Script(path) => Some(path),
            PluginSource::Server { .. } => None,
        };
        let cassette = self.cassette.as_mut().map(|cassette| &mut cassette.file);
        let others = self.beside.iter_mut().chain(&mut self.state_folder).chain(cassette);
        for path in own.into_iter().chain(others) {
            *path = std::path::absolute(&*path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let check = |message: Message<TestRequest>, expected: Value| {
            assert_eq!(serde_json::to_value(&message).unwrap(), expected);
            assert_eq!(serde_json::from_value::<Message<TestRequest>>(expected).unwrap(), message);
        };
        let call = TestRequest::Call {
            tool: "greet".into(),
            arguments: json!({ "name": "Ada" }),
            session: None,
        };
        check(
            Message::Request { id: 1, request: call },
            json!({ "id": 1, "method": "call", "params": { "tool": "greet", "arguments": { "name": "Ada" }, "session": null } }),
        );
        check(
            Message::Request { id: 2, request: TestRequest::Prompts {} },
            json!({ "id": 2, "method": "prompts", "params": {} }),
        );
        check(Message::Result { id: 1, result: Value::Null }, json!({ "id": 1, "result": null }));
        let error = CallError::new("vetoed", "no");
        check(
            Message::Error { id: 1, error },
            json!({ "id": 1, "error": { "code": "vetoed", "message": "no" } }),
        );
        let mut setup = Setup::new(PluginSource::Script("s.rhai".into()));
        setup.files.push(HomeFile { path: "a".into(), content: vec![0xff, 0] });
        setup.state.push(StateEntry {
            scope: Scope::Session("monday".into()),
            key: "k".into(),
            value: json!(1),
        });
        setup.http = Some(vec![HttpAnswer::new("*").json(&json!({}))]);
        let start = Message::Request { id: 3, request: TestRequest::Start(Box::new(setup)) };
        let written = serde_json::to_value(&start).unwrap();
        assert_eq!(written["params"]["files"][0]["content"], "/wA=");
        check(start, written);
    }
}
