//! `tenon harness`: hosts one plugin for a test of its author's, in the protocol of [`tenon_harness::protocol`]. Standard input
//! has the test's requests, standard output what comes of them; where input ends, so does the host.

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tenon_harness::protocol::{
    AnswerableQuestions, CallError, HookResult, Message, PluginSource, Question, Setup,
    TestRequest, VERSION,
};
use tenon_host::services::{AskingPlugin, ClientFeature, ClientFeatures, Offers};
use tenon_host::types::{
    ArgumentCompletion, Completion, CompletionReference, CompletionRequest, Error as PluginError,
    FormAnswer, FormRequest, HookPoint, UrlAnswer, UrlRequest, completion_json, mcp_json,
};
use tenon_host::{Caller, HookOutcome, HostEnvironment};
use tenon_test_host::{ManualClock, RunningPlugin, State, TestHost};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::stdio;

type Outcome = Result<Value, CallError>;

/// Hosts a plugin until its test has done with it.
pub(crate) async fn run() -> Result<ExitCode, Error> {
    let (input, output) = stdio::streams();
    serve(input, output).await?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(
    input: impl AsyncBufRead + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), Error> {
    let (lines, written) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(written, output));
    let test =
        Arc::new(TestConnection { lines, next: AtomicU64::new(1), waiting: Mutex::default() });
    let mut input = input.lines();
    let mut starting: Option<StartingPlugin> = None;
    let mut work = JoinSet::new();
    let ended = watch::Sender::new(false);
    loop {
        let line = input.next_line().await;
        let line = line.map_err(|error| Error::Host(format!("input cannot be read: {error}")))?;
        let Some(line) = line else { break };
        let strange = |error: serde_json::Error| {
            Error::Input(format!(
                "`tenon harness` is for tests that use the crate tenon-harness: {error}"
            ))
        };
        let message: Value = serde_json::from_str(&line).map_err(strange)?;
        let id = message["id"].as_u64();
        if let Some(problem) = other_version(&message) {
            test.done(id.unwrap_or_default(), Err(problem));
            continue;
        }
        match serde_json::from_value(message) {
            Ok(Message::Request { id, request: TestRequest::Start(_) })
                if starting.as_ref().is_some_and(|starting| !has_failed(starting)) =>
            {
                test.done(id, Err(CallError::new("protocol", "the plugin runs already")));
            }
            Ok(Message::Request { id, request: TestRequest::Start(setup) }) => {
                let test = test.clone();
                let started = {
                    let test = test.clone();
                    async move { HostedPlugin::start(*setup, &test).await.map(Arc::new) }
                };
                let started = started.boxed().shared();
                starting = Some(started.clone());
                work.spawn(async move { test.done(id, started.await.map(|_| Value::Null)) });
            }
            Ok(Message::Request { id, request: TestRequest::Shutdown {} }) => {
                if let Some(starting) = starting.take()
                    && let Ok(hosted) = starting.await
                {
                    hosted.shutdown().await;
                }
                // The calls that are still in flight end with it, and their test is told.
                ended.send_replace(true);
                while work.join_next().await.is_some() {}
                test.done(id, Ok(Value::Null));
                break;
            }
            Ok(Message::Request { id, request }) => match starting.clone() {
                Some(starting) => {
                    let (test, mut ended) = (test.clone(), ended.subscribe());
                    // Its calls are in flight together.
                    work.spawn(async move {
                        let called = async {
                            let hosted = starting.await?;
                            hosted.answer(request).await
                        };
                        let outcome = tokio::select! {
                            outcome = called => outcome,
                            _ = ended.wait_for(|ended| *ended) => {
                                Err(CallError::new("lost", "the host has ended"))
                            }
                        };
                        test.done(id, outcome);
                    });
                }
                None => test.done(id, Err(CallError::new("protocol", "no plugin was started"))),
            },
            Ok(Message::Result { id, result }) => test.answered(id, Ok(result)),
            Ok(Message::Error { id, error }) => test.answered(id, Err(error)),
            Err(error) => match id {
                Some(id) => test.done(id, Err(CallError::new("protocol", error.to_string()))),
                None => return Err(strange(error)),
            },
        }
    }
    drop((starting, work, test));
    // Calls that are still in flight hold the other end; nobody waits for them.
    let _ = tokio::time::timeout(Duration::from_millis(100), writer).await;
    Ok(())
}

/// A plugin that starts, or has.
type StartingPlugin = Shared<BoxFuture<'static, Result<Arc<HostedPlugin>, CallError>>>;

fn has_failed(starting: &StartingPlugin) -> bool {
    matches!(starting.peek(), Some(Err(_)))
}

/// Says that a test of another version wants to start a plugin. What else it says may have another form.
fn other_version(message: &Value) -> Option<CallError> {
    let theirs = message.get("params")?.get("protocol")?;
    let is_other = message["method"] == "start" && *theirs != json!(VERSION);
    let problem = || format!("it speaks version {VERSION} of the protocol, and the test {theirs}");
    is_other.then(|| CallError::new("protocol", problem()))
}

async fn write(mut lines: mpsc::UnboundedReceiver<Vec<u8>>, mut output: impl AsyncWrite + Unpin) {
    while let Some(line) = lines.recv().await {
        // A test that does not read any more has ended, and so does its input.
        if output.write_all(&line).await.is_err() || output.flush().await.is_err() {
            return;
        }
    }
}

/// The test: what is said to it, and what it was asked.
struct TestConnection {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    next: AtomicU64,
    waiting: Mutex<BTreeMap<u64, oneshot::Sender<Outcome>>>,
}

impl TestConnection {
    fn say(&self, message: &Message<Question>) {
        if let Ok(mut line) = serde_json::to_vec(message) {
            line.push(b'\n');
            // Nobody reads it where the writer has ended.
            let _ = self.lines.send(line);
        }
    }

    fn done(&self, id: u64, outcome: Outcome) {
        self.say(&match outcome {
            Ok(result) => Message::Result { id, result },
            Err(error) => Message::Error { id, error },
        });
    }

    fn answered(&self, id: u64, outcome: Outcome) {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(waiting) = waiting {
            // The call that asked may have been given up.
            let _ = waiting.send(outcome);
        }
    }

    /// Asks the test, and waits for its answer.
    async fn ask(&self, question: Question) -> Result<Value, PluginError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(id, answered);
        self.say(&Message::Request { id, request: question });
        match answer.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(PluginError::denied(error.message)),
            Err(_) => Err(PluginError::denied("the test has ended")),
        }
    }
}

/// The user and the default model of the plugin.
struct TestClient {
    answers: AnswerableQuestions,
    test: Arc<TestConnection>,
}

#[async_trait]
impl ClientFeatures for TestClient {
    fn offers(&self) -> Offers {
        let AnswerableQuestions { forms, pages, model } = self.answers;
        Offers { forms, pages, sampling: model, roots: false }
    }

    fn remedy(&self, missing: ClientFeature) -> String {
        let method = match missing {
            ClientFeature::Forms => "user",
            ClientFeature::Pages => "pages",
            _ => "default_model",
        };
        format!("the test answers with `Harness::{method}`")
    }

    async fn ask(&self, _: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, PluginError> {
        let FormRequest { message, schema, .. } = form;
        let mut answer = self.test.ask(Question::Form { message, schema }).await?;
        Ok(match answer["action"].as_str() {
            Some("accept") => match answer["content"].take() {
                Value::Object(content) => FormAnswer::Accepted(content),
                _ => FormAnswer::accept::<String, Value>([]),
            },
            Some("decline") => FormAnswer::Declined,
            _ => FormAnswer::Cancelled,
        })
    }

    async fn ask_url(&self, _: &AskingPlugin, page: UrlRequest) -> Result<UrlAnswer, PluginError> {
        let UrlRequest { message, url, .. } = page;
        let answer = self.test.ask(Question::Page { message, url }).await?;
        Ok(match answer["action"].as_str() {
            Some("accept") => UrlAnswer::Accepted,
            Some("decline") => UrlAnswer::Declined,
            _ => UrlAnswer::Cancelled,
        })
    }

    async fn complete(
        &self,
        _: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, PluginError> {
        let model = request.model.clone();
        let answer = self.test.ask(Question::Model(completion_json::request(&request))).await?;
        Ok(Completion::text(model, answer.as_str().unwrap_or_default()))
    }
}

/// The plugin of the test, in its host.
struct HostedPlugin {
    plugin: RunningPlugin,
    clock: Option<ManualClock>,
}

impl HostedPlugin {
    async fn start(setup: Setup, test: &Arc<TestConnection>) -> Result<Self, CallError> {
        let wrong = |problem: String| CallError::new("invalid-input", problem);
        let is_folder = matches!(setup.plugin, PluginSource::Folder(_));
        let mut host = TestHost::of(setup.plugin);
        if is_folder {
            // Beside its component would be among its author's files.
            host = host.share_compiled(&HostEnvironment::of_process());
        }
        let limits = toml::Table::try_from(&setup.limits)
            .map_err(|error| wrong(format!("its limits: {error}")))?;
        host = host.config(Value::Object(setup.config)).limits_table(limits);
        if setup.shared {
            host = host.shared();
        }
        for (capability, values) in setup.grants {
            host = host.grant(capability, values);
        }
        for (name, value) in setup.secrets {
            host = host.secret_value(name, value);
        }
        for (name, value) in setup.environment {
            host = host.environment(name, value);
        }
        for path in setup.beside {
            host = host.beside(path);
        }
        for file in setup.files {
            host = host.file(file.path, file.content);
        }
        if let Some(answers) = setup.http {
            host = host.http(answers);
        }
        if let Some(cassette) = setup.cassette {
            host = host.cassette(cassette.how, cassette.file);
        }
        let state = match setup.state_folder {
            Some(folder) => State::open(folder).map_err(|error| wrong(error.to_string()))?,
            None => State::new(),
        };
        for entry in setup.state {
            let set = state.try_set(entry.scope, &entry.key, &entry.value);
            set.map_err(|error| wrong(format!("the state {:?}: {error}", entry.key)))?;
        }
        host = host.state(&state);
        let clock = setup.clock.as_deref().map(ManualClock::parse).transpose().map_err(wrong)?;
        if let Some(clock) = &clock {
            host = host.clock(clock);
        }
        let client = TestClient { answers: setup.answers, test: test.clone() };
        let started = host.host(|builder| builder.client_features(client)).start().await;
        let plugin =
            started.map_err(|error| CallError::new("not-started", tenon_config::chain(&error)))?;
        Ok(Self { plugin, clock })
    }

    async fn shutdown(&self) {
        self.plugin.platform().clone().shutdown().await;
    }

    fn in_session(&self, session: Option<String>) -> RunningPlugin {
        self.plugin.with_caller(Caller { session_id: session, ..Caller::default() })
    }

    async fn answer(&self, request: TestRequest) -> Outcome {
        let plugin = &self.plugin;
        let list = |forms: Vec<Value>| Value::Array(forms);
        let done = match request {
            TestRequest::Call { tool, arguments, session } => {
                let called = self.in_session(session).call(&tool, arguments).await;
                called.map(|result| mcp_json::tool_result(&result))
            }
            TestRequest::Hook { point, context, session } => {
                let point: HookPoint =
                    point.parse().map_err(|problem| invalid(format_args!("{problem}")))?;
                let report = self.in_session(session).hook(point, context).await;
                report.map(|report| json!(hook_report(report)))
            }
            TestRequest::Evaluate { strategy, subject, options } => {
                let evaluation = plugin.evaluate(&strategy, subject, options).await;
                evaluation.map(|evaluation| mcp_json::evaluation(&evaluation))
            }
            TestRequest::Complete(request) => {
                let request = completion_json::read_request(request)
                    .map_err(|problem| invalid(format_args!("the request: {problem}")))?;
                plugin.complete(request).await.map(|answer| completion_json::completion(&answer))
            }
            TestRequest::Resources {} => { plugin.resources().await }
                .map(|listed| list(listed.iter().map(mcp_json::listed_resource).collect())),
            TestRequest::ResourceTemplates {} => { plugin.resource_templates().await }
                .map(|listed| list(listed.iter().map(mcp_json::resource_template).collect())),
            TestRequest::ReadResource { uri } => { plugin.read_resource(&uri).await }
                .map(|read| list(read.iter().map(mcp_json::resource_contents).collect())),
            TestRequest::Prompts {} => { plugin.prompts().await }
                .map(|listed| list(listed.iter().map(mcp_json::prompt_definition).collect())),
            TestRequest::Prompt { name, arguments } => {
                let arguments: Vec<(&str, &str)> =
                    arguments.iter().map(|(name, value)| (&**name, &**value)).collect();
                { plugin.prompt(&name, &arguments).await }.map(|prompt| mcp_json::prompt(&prompt))
            }
            TestRequest::Suggest { of, is_template, argument, typed, others } => {
                let reference = match is_template {
                    true => CompletionReference::ResourceTemplate(of),
                    false => CompletionReference::Prompt(of),
                };
                let argument =
                    ArgumentCompletion { reference, name: argument, value: typed, others };
                { plugin.suggest(argument).await }.map(|values| mcp_json::suggestions(&values))
            }
            TestRequest::HttpRequests {} => Ok(json!(plugin.http_requests())),
            TestRequest::UnplayedCalls {} => Ok(json!(plugin.unplayed_calls())),
            TestRequest::StateValue { scope, key } => {
                return match plugin.state().bytes(scope, &key) {
                    None => Ok(Value::Null),
                    Some(bytes) => serde_json::from_slice(&bytes)
                        .map_err(|error| invalid(format_args!("{key:?} is not JSON: {error}"))),
                };
            }
            TestRequest::SetState(entry) => {
                let set = plugin.state().try_set(entry.scope, &entry.key, &entry.value);
                set.map_err(|error| invalid(format_args!("{:?}: {error}", entry.key)))?;
                Ok(Value::Null)
            }
            TestRequest::StateKeys { scope } => Ok(json!(plugin.state().keys(scope))),
            TestRequest::AdvanceClock { milliseconds } => match &self.clock {
                Some(clock) => {
                    clock.advance(Duration::from_millis(milliseconds));
                    Ok(Value::Null)
                }
                None => return Err(invalid(format_args!("the test has no clock"))),
            },
            TestRequest::Start(_) | TestRequest::Shutdown {} => {
                return Err(CallError::new("protocol", "the plugin runs already"));
            }
        };
        done.map_err(|error| CallError::new(error.code(), tenon_config::chain(&error)))
    }
}

fn invalid(problem: std::fmt::Arguments<'_>) -> CallError {
    CallError::new("invalid-input", problem.to_string())
}

fn hook_report(report: tenon_host::HookReport) -> HookResult {
    let (veto, error) = match &report.outcome {
        HookOutcome::Veto { reason, .. } => (Some(reason.clone()), None),
        HookOutcome::Stopped { failure, .. } => (None, Some(failure.to_string())),
        HookOutcome::Continue => {
            (None, report.handlers.iter().find_map(|handler| handler.error.clone()))
        }
    };
    HookResult::new(report.context, veto, error)
}
