//! A plugin that runs in the host of a test.

use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenon_types::mcp_json::{self, McpJsonError};
use tenon_types::{
    ArgumentCompletion, CompletionReference, Evaluation, FormRequest, ListedResource, Prompt,
    PromptDefinition, ResourceContents, ResourceTemplate, Suggestions, ToolResult, UrlRequest,
};

use crate::answers::Answers;
use crate::connection::Connection;
use crate::protocol::{CallError, HookResult, HttpRequest, Scope, Setup, StateEntry, TestRequest};
use crate::{StartError, milliseconds, nothing};

/// A plugin that runs. Dropping the last clone ends the host at once; [`Self::shutdown`] lets the plugin say good-bye.
#[derive(Clone)]
pub struct RunningPlugin {
    connection: Arc<Connection>,
    answers: Arc<Answers>,
    session: Option<String>,
}

impl RunningPlugin {
    pub(crate) async fn start(
        command: PathBuf,
        setup: Setup,
        answers: Answers,
    ) -> Result<Self, StartError> {
        let answers = Arc::new(answers);
        let connection = Connection::start(&command, answers.clone())?;
        match connection.request(TestRequest::Start(Box::new(setup))).await {
            Ok(_) => Ok(Self { connection: Arc::new(connection), answers, session: None }),
            Err(error) if matches!(&*error.code, "lost" | "protocol") => {
                let (version, problem) = (env!("CARGO_PKG_VERSION"), error.message);
                Err(StartError::OtherVersion { command, version, problem })
            }
            Err(error) => Err(StartError::Refused(error.message)),
        }
    }

    /// Returns the same plugin, called in a session.
    pub fn in_session(&self, id: impl Into<String>) -> Self {
        Self { session: Some(id.into()), ..self.clone() }
    }

    /// Calls a tool by the name that the plugin gives it.
    ///
    /// # Errors
    ///
    /// Those of the host. A tool that could not do what it was asked is none: its result says so.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<ToolResult, CallError> {
        let call =
            TestRequest::Call { tool: tool.into(), arguments, session: self.session.clone() };
        read(self.connection.request(call).await?, mcp_json::read_tool_result)
    }

    /// Has the plugin handle an event, whose context is an object. What its handler did is in the report.
    ///
    /// # Errors
    ///
    /// Where the point is none, or the context does not fit it.
    pub async fn hook(&self, point: &str, context: Value) -> Result<HookResult, CallError> {
        let hook =
            TestRequest::Hook { point: point.into(), context, session: self.session.clone() };
        deserialized(self.connection.request(hook).await?)
    }

    /// Has a strategy judge a subject. Both the subject and the options are objects.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn evaluate(
        &self,
        strategy: &str,
        subject: Value,
        options: Value,
    ) -> Result<Evaluation, CallError> {
        let evaluate = TestRequest::Evaluate { strategy: strategy.into(), subject, options };
        read(self.connection.request(evaluate).await?, mcp_json::read_evaluation)
    }

    /// Has a model of the plugin answer a request, an object with `model` and `messages` as `tenon complete` has it. The
    /// answer has `parts`.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn complete(&self, request: Value) -> Result<Value, CallError> {
        self.connection.request(TestRequest::Complete(request)).await
    }

    /// Lists the resources of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn resources(&self) -> Result<Vec<ListedResource>, CallError> {
        let list = self.connection.request(TestRequest::Resources {}).await?;
        read_all(list, mcp_json::read_listed_resource)
    }

    /// Lists the templates of the plugin's resources.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn resource_templates(&self) -> Result<Vec<ResourceTemplate>, CallError> {
        let list = self.connection.request(TestRequest::ResourceTemplates {}).await?;
        read_all(list, mcp_json::read_resource_template)
    }

    /// Reads a resource of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn read_resource(&self, uri: &str) -> Result<Vec<ResourceContents>, CallError> {
        let contents =
            self.connection.request(TestRequest::ReadResource { uri: uri.into() }).await?;
        read_all(contents, mcp_json::read_contents)
    }

    /// Lists the prompts of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn prompts(&self) -> Result<Vec<PromptDefinition>, CallError> {
        let list = self.connection.request(TestRequest::Prompts {}).await?;
        read_all(list, mcp_json::read_prompt_definition)
    }

    /// Fills in a prompt of the plugin.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
    ) -> Result<Prompt, CallError> {
        let arguments = arguments.iter().map(|(name, value)| (name.to_string(), value.to_string()));
        let prompt = TestRequest::Prompt { name: name.into(), arguments: arguments.collect() };
        read(self.connection.request(prompt).await?, mcp_json::read_prompt)
    }

    /// Suggests values for an argument of a prompt or resource template.
    ///
    /// # Errors
    ///
    /// Those of the host.
    pub async fn suggest(&self, argument: ArgumentCompletion) -> Result<Suggestions, CallError> {
        let (of, is_template) = match argument.reference {
            CompletionReference::Prompt(name) => (name, false),
            CompletionReference::ResourceTemplate(uri) => (uri, true),
        };
        let ArgumentCompletion { name: argument, value: typed, others, .. } = argument;
        let suggest = TestRequest::Suggest { of, is_template, argument, typed, others };
        read(self.connection.request(suggest).await?, mcp_json::read_suggestions)
    }

    /// The forms that the user was asked to fill in so far.
    pub fn forms(&self) -> Vec<FormRequest> {
        self.answers.asked().forms.clone()
    }

    /// The pages that the user was asked to open so far.
    pub fn pages(&self) -> Vec<UrlRequest> {
        self.answers.asked().pages.clone()
    }

    /// The requests to the default model so far, as `tenon complete` has them.
    pub fn model_requests(&self) -> Vec<Value> {
        self.answers.asked().model.clone()
    }

    /// What the plugin requested over HTTP so far, where the test answers ([`Harness::http`](crate::Harness::http)).
    ///
    /// # Errors
    ///
    /// Where the host has ended.
    pub async fn http_requests(&self) -> Result<Vec<HttpRequest>, CallError> {
        deserialized(self.connection.request(TestRequest::HttpRequests {}).await?)
    }

    /// Returns the calls of the cassette that the plugin has not made so far
    /// ([`Harness::replay`](crate::Harness::replay)).
    ///
    /// # Errors
    ///
    /// Where the host has ended.
    pub async fn unplayed_calls(&self) -> Result<Vec<String>, CallError> {
        deserialized(self.connection.request(TestRequest::UnplayedCalls {}).await?)
    }

    /// Returns the value of a key in the plugin's state, which the SDK and scripts write as JSON.
    ///
    /// # Errors
    ///
    /// Where the host has ended, or the value is not JSON.
    pub async fn state(&self, scope: Scope, key: &str) -> Result<Option<Value>, CallError> {
        let value =
            self.connection.request(TestRequest::StateValue { scope, key: key.into() }).await?;
        Ok(Some(value).filter(|value| !value.is_null()))
    }

    /// Sets the value of a key in the plugin's state as JSON, as the SDK and scripts do.
    ///
    /// # Errors
    ///
    /// Where the host has ended.
    pub async fn set_state(&self, scope: Scope, key: &str, value: Value) -> Result<(), CallError> {
        let entry = StateEntry { scope, key: key.into(), value };
        self.connection.request(TestRequest::SetState(entry)).await.map(drop)
    }

    /// Returns the keys of a scope of the plugin's state, in the order of their bytes.
    ///
    /// # Errors
    ///
    /// Where the host has ended.
    pub async fn state_keys(&self, scope: Scope) -> Result<Vec<String>, CallError> {
        deserialized(self.connection.request(TestRequest::StateKeys { scope }).await?)
    }

    /// Moves the clock on that [`Harness::clock`](crate::Harness::clock) has set.
    ///
    /// # Errors
    ///
    /// Where none was set.
    pub async fn advance_clock(&self, by: Duration) -> Result<(), CallError> {
        let milliseconds = milliseconds(by);
        self.connection.request(TestRequest::AdvanceClock { milliseconds }).await.map(drop)
    }

    /// Ends the host, and lets the plugin say good-bye.
    pub async fn shutdown(self) {
        // A host that has ended already has nothing to end.
        if self.connection.request(TestRequest::Shutdown {}).await.is_ok() {
            self.connection.ended().await;
        }
    }
}

/// What the command says is read as it is written: anything else is of another version.
fn protocol(error: impl std::fmt::Display) -> CallError {
    CallError::new("protocol", format!("the command says what this version does not know: {error}"))
}

fn read<T>(
    form: Value,
    read: impl FnOnce(Value) -> Result<T, McpJsonError>,
) -> Result<T, CallError> {
    read(form).map_err(protocol)
}

fn read_all<T>(
    forms: Value,
    read: impl Fn(Value) -> Result<T, McpJsonError>,
) -> Result<Vec<T>, CallError> {
    let Value::Array(forms) = forms else { return Err(protocol(nothing())) };
    forms.into_iter().map(|form| read(form).map_err(protocol)).collect()
}

fn deserialized<T: serde::de::DeserializeOwned>(form: Value) -> Result<T, CallError> {
    serde_json::from_value(form).map_err(protocol)
}
