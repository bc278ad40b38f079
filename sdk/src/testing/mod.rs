//! A scripted host, for tests of a plugin's functions: natively, with `cargo test`.
//!
//! A test says what the host grants and how it answers, runs the function, and looks at what came
//! of it. Whatever is not scripted is answered as by a host that did not grant it.
//!
//! ```
//! use tenon_sdk::testing::Host;
//! use tenon_sdk::{Result, config, json, log, tool};
//!
//! /// Greets somebody.
//! #[tool]
//! async fn greet(name: String) -> Result<String> {
//!     log::info(format!("{name} is greeted"));
//!     let word = config::get("word")?.unwrap_or("Hello".to_string());
//!     Ok(format!("{word}, {name}!"))
//! }
//!
//! let host = Host::new();
//! let answer = host.run(greet("Ada".into()));
//! assert_eq!(answer.unwrap(), "Hello, Ada!");
//! assert_eq!(host.logged()[0].message, "Ada is greeted");
//!
//! // As the host calls it: by JSON.
//! let host = Host::new().config(json!({ "word": "Ciao" }));
//! let result = host.call_tool::<greet>(json!({ "name": "Ada" })).unwrap();
//! assert_eq!(result.plain_text(), "Ciao, Ada!");
//! assert!(host.call_tool::<greet>(json!({})).is_err());
//! ```
//!
//! Hooks, evaluations, resources, prompts and models are called in the same way:
//!
//! ```
//! use tenon_sdk::testing::Host;
//! use tenon_sdk::{notify, prompt, resource};
//!
//! /// A note.
//! #[resource("notes://{name}")]
//! async fn note(name: String) -> String {
//!     notify::resource_updated("notes://log");
//!     format!("This is {name}.")
//! }
//!
//! /// Has a note read.
//! #[prompt]
//! async fn read(#[complete("shopping", "log")] name: String) -> String {
//!     format!("What does notes://{name} say?")
//! }
//!
//! # fn main() {
//! let host = Host::new();
//! assert_eq!(host.read_resource::<note>("notes://shopping").unwrap().len(), 1);
//! assert!(host.read_resource::<note>("notes://a/b").is_err());
//! assert_eq!(host.resource_updates(), ["notes://log"]);
//! assert_eq!(host.get_prompt::<read>(&[("name", "log")]).unwrap().messages.len(), 1);
//! assert_eq!(host.complete_argument::<read>("name", "L", &[]).unwrap().values, ["log"]);
//! # }
//! ```
//!
//! HTTP requests are answered by the test, and [`sleep`](crate::sleep) lets the time pass at once:
//!
//! ```
//! use tenon_sdk::testing::Host;
//! use tenon_sdk::{Result, http, json, tool};
//!
//! /// Says how warm it is.
//! #[tool]
//! async fn temperature(city: String) -> Result<String> {
//!     let request = http::get("https://api.example.com/weather").query("city", city);
//!     let weather: tenon_sdk::Value = request.send().await?.error_for_status()?.json().await?;
//!     Ok(weather["degrees"].to_string())
//! }
//!
//! # fn main() {
//! let host = Host::new().http("GET https://api.example.com/*", json!({ "degrees": 21 }));
//! assert_eq!(host.run(temperature("Graz".into())).unwrap(), "21");
//! assert_eq!(host.requests()[0].url.query(), Some("city=Graz"));
//! # }
//! ```
//!
//! A `Host` belongs to the test that made it, and tests run in parallel as ever. Functions that wait
//! for a timer or a socket of some executor are run by that executor, within [`Host::scope`].
//!
//! What it cannot show is how the component behaves under the grants and limits of a real host, which checks arguments
//! against all that their schema says. The crate `tenon-harness` runs components.

mod calls;
mod http;
pub(crate) mod imports;
mod prompts;
mod resources;
mod run;
mod timers;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::task::Waker;
use std::time::Duration;

use serde_json::Value;

pub use crate::bindings::base::tenon::plugin::types::CallContext;
use crate::host_tools::{ToolAnnotations, ToolDefinition};
use crate::inference::{Completion, CompletionRequest};
use crate::log::Level;
use crate::memory::MemoryEntry;
use crate::messaging::OutgoingMessage;
use crate::provider::IntoTestCompletion;
use crate::state::Scope;
use crate::tool::{IntoToolResult, answered};
use crate::user::{Answer, FormAnswer, FormRequest, UrlAnswer, UrlRequest};
use crate::{Context, Error, Result, ToolResult};

pub use calls::StreamedAnswer;
pub use http::{HttpAnswer, IntoHttpAnswer};
pub use prompts::{FilledPrompt, PromptDefinition, PromptMessage};
pub use resources::ResourceTemplate;
pub(crate) use run::current;

/// A host that does what it was told to. A clone is the same host.
#[derive(Clone, Default)]
pub struct Host(Rc<ScriptedHost>);

type Tool = Rc<dyn Fn(Value) -> Result<ToolResult, Error>>;
type Model = Rc<dyn Fn(CompletionRequest) -> Result<Completion, Error>>;
type Messaging = Rc<dyn Fn(&OutgoingMessage) -> Result<(), Error>>;
type MemorySearch = Rc<dyn Fn(&str, u32) -> Vec<MemoryEntry>>;
type Forms = Rc<dyn Fn(&str, Value) -> Answer<Value>>;
type Pages = Rc<dyn Fn(&UrlRequest) -> UrlAnswer>;

/// What a host was told, and what it has seen.
#[derive(Default)]
struct ScriptedHost {
    config: RefCell<Value>,
    secrets: RefCell<BTreeMap<String, Option<String>>>,
    tools: RefCell<BTreeMap<String, Tool>>,
    models: RefCell<BTreeMap<String, Model>>,
    messaging: RefCell<Option<Messaging>>,
    memory: RefCell<Option<MemorySearch>>,
    caller: RefCell<Caller>,
    calls: Cell<u64>,
    logged: RefCell<Vec<LogLine>>,
    progress: RefCell<Vec<Progress>>,
    messages: RefCell<Vec<OutgoingMessage>>,
    updates: RefCell<Vec<String>>,
    changes: Cell<usize>,
    /// What the instance keeps in memory.
    kept: RefCell<Vec<Rc<dyn Any>>>,
    /// What the plugin keeps, by the names of the scopes that are granted.
    state: RefCell<BTreeMap<&'static str, BTreeMap<String, Vec<u8>>>>,
    forms: RefCell<Option<Forms>>,
    pages: RefCell<Option<Pages>>,
    network: http::Network,
    timers: timers::Timers,
}

#[derive(Clone, Default)]
struct Caller {
    agent_id: Option<String>,
    session_id: Option<String>,
    time_left: Option<Duration>,
}

/// A line that the plugin wrote to the log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// What it says.
    pub message: String,
    /// Its fields, in the order in which they were written.
    pub fields: Vec<(String, String)>,
}

/// A report of the plugin on how far a call has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The call.
    pub call_id: String,
    /// How far it has come.
    pub progress: f64,
    /// Where it ends, if that is known.
    pub total: Option<f64>,
    /// What it says.
    pub message: Option<String>,
}

/// What a test tells a host before anything runs.
impl Host {
    /// A host that grants nothing, with an empty configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// The plugin's configuration: an object.
    ///
    /// # Panics
    ///
    /// When it is no object, which no configuration can be.
    pub fn config(self, config: Value) -> Self {
        assert!(config.is_object(), "a configuration is an object, and not {config}");
        self.0.config.replace(config);
        self
    }

    /// Grants a secret, and sets it.
    pub fn secret(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.0.secrets.borrow_mut().insert(name.into(), Some(value.into()));
        self
    }

    /// Grants a secret that nobody has set.
    pub fn unset_secret(self, name: impl Into<String>) -> Self {
        self.0.secrets.borrow_mut().insert(name.into(), None);
        self
    }

    /// Grants a tool, which answers calls as any tool does: with text, `Json`, `Content` or a
    /// `ToolResult`, alone or in a [`Result`].
    pub fn tool<T: IntoToolResult>(
        self,
        name: impl Into<String>,
        answer: impl Fn(Value) -> T + 'static,
    ) -> Self {
        let answer = move |arguments| answered(answer(arguments).into_tool_result());
        self.0.tools.borrow_mut().insert(name.into(), Rc::new(answer));
        self
    }

    /// Grants a model, which answers requests: with text or a `Completion`, alone or in a
    /// [`Result`].
    pub fn model<T: IntoTestCompletion>(
        self,
        name: impl Into<String>,
        answer: impl Fn(CompletionRequest) -> T + 'static,
    ) -> Self {
        let model = name.into();
        let named = model.clone();
        let answer = move |request| answer(request).into_completion(&named);
        self.0.models.borrow_mut().insert(model, Rc::new(answer));
        self
    }

    /// Grants messages. Those for which `send` answers `Ok` were sent, and are among
    /// [`Self::messages`].
    pub fn messaging(self, send: impl Fn(&OutgoingMessage) -> Result<(), Error> + 'static) -> Self {
        self.0.messaging.replace(Some(Rc::new(send)));
        self
    }

    /// Grants the search of the memory, which gets a query and the most memories that are wanted.
    pub fn memory(self, search: impl Fn(&str, u32) -> Vec<MemoryEntry> + 'static) -> Self {
        self.0.memory.replace(Some(Rc::new(search)));
        self
    }

    /// Grants the state of a scope, which is empty.
    pub fn state(self, scope: Scope) -> Self {
        self.0.state.borrow_mut().entry(scope.name()).or_default();
        self
    }

    /// Grants questions to the user, who answers them by their message and JSON Schema.
    pub fn user(self, answer: impl Fn(&str, Value) -> Answer<Value> + 'static) -> Self {
        self.0.forms.replace(Some(Rc::new(answer)));
        self
    }

    /// Grants questions to the user to open a page.
    pub fn pages(self, answer: impl Fn(&UrlRequest) -> UrlAnswer + 'static) -> Self {
        self.0.pages.replace(Some(Rc::new(answer)));
        self
    }

    /// Has the calls to come be made on behalf of an agent.
    pub fn agent(self, id: impl Into<String>) -> Self {
        self.0.caller.borrow_mut().agent_id = Some(id.into());
        self
    }

    /// Has the calls to come belong to a session.
    pub fn session(self, id: impl Into<String>) -> Self {
        self.0.caller.borrow_mut().session_id = Some(id.into());
        self
    }

    /// Gives the calls to come this much time. The host only says so: it ends none.
    pub fn time_left(self, time_left: Duration) -> Self {
        self.0.caller.borrow_mut().time_left = Some(time_left);
        self
    }
}

/// Running what is tested.
impl Host {
    /// Drives a future to its end. What it asks for, this host answers.
    ///
    /// # Panics
    ///
    /// When the future waits and nothing is left that could wake it.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        run::block_on(self.scope(future))
    }

    /// A future that turns to this host whenever it is polled, by whatever executor.
    pub async fn scope<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        // Kept weakly: who looks for a future that waits for ever counts who could wake it.
        let mut former = Weak::<timers::NotingWaker>::new();
        poll_fn(|task| {
            let known = former.upgrade().filter(|known| known.wakes(task.waker()));
            let noting = known.unwrap_or_else(|| timers::NotingWaker::new(task.waker()));
            former = Arc::downgrade(&noting);
            noting.take();
            let polled = {
                let _entered = run::HostScope::new(self);
                let waker = Waker::from(noting.clone());
                future.as_mut().poll(&mut std::task::Context::from_waker(&waker))
            };
            if polled.is_pending() && !noting.take() {
                self.0.timers.advance();
            }
            polled
        })
        .await
    }

    /// The context of another call, for functions that take one.
    pub fn context(&self) -> Context {
        let number = self.0.calls.get() + 1;
        self.0.calls.set(number);
        let Caller { agent_id, session_id, time_left } = self.0.caller.borrow().clone();
        Context::from(CallContext {
            call_id: format!("call-{number}"),
            agent_id,
            session_id,
            traceparent: None,
            time_left: time_left.map(|time_left| time_left.as_millis() as u64),
            extra: None,
        })
    }

    /// Asks for a call to end, as a host does when its caller gave up.
    pub fn cancel(&self, context: &Context) {
        context.cancel();
    }

    /// Puts a new instance of the plugin in the place of the one before: what it kept with
    /// [`instance`](mod@crate::instance) is gone, and what it kept with [`state`](mod@crate::state) is there.
    pub fn restart(&self) {
        self.0.kept.borrow_mut().clear();
    }
}

/// What came of it.
impl Host {
    /// What was logged so far.
    pub fn logged(&self) -> Vec<LogLine> {
        self.0.logged.borrow().clone()
    }

    /// What was reported of progress so far.
    pub fn progress(&self) -> Vec<Progress> {
        self.0.progress.borrow().clone()
    }

    /// The messages that were sent so far.
    pub fn messages(&self) -> Vec<OutgoingMessage> {
        self.0.messages.borrow().clone()
    }

    /// The URIs of the resources that were said to have changed so far. A host tells those who
    /// subscribed to them.
    pub fn resource_updates(&self) -> Vec<String> {
        self.0.updates.borrow().clone()
    }

    /// How much time has passed for the plugin: what [`sleep`](crate::sleep) has waited for.
    pub fn elapsed(&self) -> Duration {
        self.0.timers.now()
    }

    /// How often the plugin said that it lists other things than before.
    pub fn contribution_changes(&self) -> usize {
        self.0.changes.get()
    }
}

/// What the plugin's imports come to.
impl Host {
    fn setting(&self, key: &str) -> Option<Value> {
        self.0.config.borrow().get(key).cloned()
    }

    fn settings(&self) -> Value {
        match &*self.0.config.borrow() {
            Value::Null => Value::Object(serde_json::Map::new()),
            config => config.clone(),
        }
    }

    fn reveal(&self, name: &str) -> Result<String, Error> {
        match self.0.secrets.borrow().get(name) {
            Some(Some(value)) => Ok(value.clone()),
            Some(None) => Err(Error::not_found(format!("the secret {name} is not set"))),
            None => Err(not_granted(&format!("the secret {name}"), "secrets", name, "secret")),
        }
    }

    fn log(&self, level: Level, message: &str, fields: &[(String, String)]) {
        let (message, fields) = (message.to_string(), fields.to_vec());
        self.0.logged.borrow_mut().push(LogLine { level, message, fields });
    }

    fn report(&self, call: &str, progress: f64, total: Option<f64>, message: Option<&str>) {
        let (call_id, message) = (call.to_string(), message.map(str::to_string));
        self.0.progress.borrow_mut().push(Progress { call_id, progress, total, message });
    }

    fn note_update(&self, uri: &str) {
        self.0.updates.borrow_mut().push(uri.to_string());
    }

    fn note_change(&self) {
        self.0.changes.set(self.0.changes.get() + 1);
    }

    fn tools(&self) -> Vec<ToolDefinition> {
        let definition = |name: &String| ToolDefinition {
            name: name.clone(),
            title: None,
            description: "A tool of the test".into(),
            input_schema: r#"{"type":"object"}"#.into(),
            output_schema: None,
            annotations: ToolAnnotations {
                read_only: None,
                destructive: None,
                idempotent: None,
                open_world: None,
            },
            capabilities: Vec::new(),
            extra: None,
        };
        self.0.tools.borrow().keys().map(definition).collect()
    }

    fn answer_call(&self, name: &str, arguments: &str) -> Result<ToolResult, Error> {
        // Nothing is borrowed while the test's own function runs: it may look at the host.
        let tool = self.0.tools.borrow().get(name).cloned();
        let tried = format!("calling the tool {name}");
        let tool = tool.ok_or_else(|| not_granted(&tried, "tools", name, "tool"))?;
        let arguments = serde_json::from_str(arguments).map_err(|error| {
            Error::invalid_input(format!("the arguments are not JSON: {error}"))
        })?;
        tool(arguments)
    }

    fn answer_request(&self, request: CompletionRequest) -> Result<Completion, Error> {
        let model = self.0.models.borrow().get(&request.model).cloned();
        let tried = format!("asking the model {}", request.model);
        let denied = || not_granted(&tried, "providers", &request.model, "model");
        model.ok_or_else(denied)?(request)
    }

    fn send(&self, message: OutgoingMessage) -> Result<(), Error> {
        let messaging = self.0.messaging.borrow().clone();
        let denied = || not_granted("sending a message", "messaging", "*", "messaging");
        messaging.ok_or_else(denied)?(&message)?;
        self.0.messages.borrow_mut().push(message);
        Ok(())
    }

    fn search(&self, query: &str, limit: u32) -> Result<Vec<MemoryEntry>, Error> {
        let memory = self.0.memory.borrow().clone();
        let denied = || not_granted("searching the memory", "memory", "search", "memory");
        let mut found = memory.ok_or_else(denied)?(query, limit);
        found.truncate(limit as usize);
        Ok(found)
    }

    fn with_state<T>(
        &self,
        bucket: &str,
        act: impl FnOnce(&mut BTreeMap<String, Vec<u8>>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut scopes = self.0.state.borrow_mut();
        let granted = match bucket {
            // The narrowest.
            "default" => {
                Scope::ALL.iter().map(|scope| scope.name()).find(|name| scopes.contains_key(name))
            }
            name => Some(name),
        };
        let scope = granted.unwrap_or("project");
        let state = scopes.get_mut(scope);
        let tried = format!("keeping state of the scope \"{scope}\"");
        act(state.ok_or_else(|| not_granted(&tried, "state", scope, "state"))?)
    }

    fn answer_form(&self, form: FormRequest) -> Result<FormAnswer, Error> {
        let answer = self.0.forms.borrow().clone();
        let denied = || not_granted("asking the user", "user", "ask", "user");
        let schema = serde_json::from_str(&form.schema)
            .map_err(|error| Error::invalid_input(format!("the schema is no JSON: {error}")))?;
        Ok(match answer.ok_or_else(denied)?(&form.message, schema) {
            Answer::Accepted(content) => FormAnswer::Accepted(content.to_string()),
            Answer::Declined => FormAnswer::Declined,
            Answer::Cancelled => FormAnswer::Cancelled,
        })
    }

    fn answer_page(&self, page: &UrlRequest) -> Result<UrlAnswer, Error> {
        let answer = self.0.pages.borrow().clone();
        let denied = || not_granted("asking the user to open a page", "user", "ask-url", "pages");
        Ok(answer.ok_or_else(denied)?(page))
    }

    fn network(&self) -> &http::Network {
        &self.0.network
    }

    fn timers(&self) -> &timers::Timers {
        &self.0.timers
    }

    /// What the instance keeps in memory.
    pub(crate) fn kept(&self) -> std::cell::RefMut<'_, Vec<Rc<dyn Any>>> {
        self.0.kept.borrow_mut()
    }
}

/// The words of a refusal: which line requests it of a real host, and what grants it here.
fn not_granted(tried: &str, capability: &str, value: &str, method: &str) -> Error {
    Error::denied(format!(
        "{tried} is not granted; the plugin.toml would request it with `{capability} = \
         [{value:?}]` under [capabilities], and a test grants it with `Host::{method}`"
    ))
}

impl fmt::Debug for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Host")
            .field("logged", &self.0.logged)
            .field("progress", &self.0.progress)
            .field("messages", &self.0.messages)
            .field("resource_updates", &self.0.updates)
            .finish_non_exhaustive()
    }
}
