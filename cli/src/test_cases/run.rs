//! Runs a case: in a host of its own, with one plugin, and with nothing but what the case says.

use futures::future::join_all;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tenon_config::grant::FILESYSTEM;
use tenon_host::types::{
    Completion, CompletionRequest, Content, ContentBlock, FormAnswer, FormRequest, Part,
    ResourceBody, ResourceContents,
};
use tenon_host::{CallError, HookOutcome, HostEnvironment};
use tenon_test_host::{HttpAnswer, RunningPlugin, Scope, State, TestHost};

use super::check::{StepOutput, problems};
use super::file::{Action, Case, CaseFile, Expected, Given, HttpRow, UserRow};
use crate::client::form;
use crate::installed::requests_as_written;
use crate::plugin_in_folder::PluginInFolder;

/// The plugin that cases are for.
pub(crate) struct PluginUnderTest {
    /// The folder with its manifest.
    folder: PathBuf,
    /// What its manifest requests, which is granted where a case says nothing else.
    requested: BTreeMap<String, Vec<String>>,
    /// Where compiled components are kept.
    host_environment: HostEnvironment,
}

impl PluginUnderTest {
    /// The plugin of a folder, with what its manifest requests and the user's compiled components.
    pub(crate) fn new(authored: &PluginInFolder) -> Self {
        Self {
            folder: authored.folder.clone(),
            requested: requested(authored),
            host_environment: authored.sources.host_environment.clone(),
        }
    }
}

/// What a plugin's manifest requests. Files of the user's home folder and of the plugin's own are those of each case.
fn requested(authored: &PluginInFolder) -> BTreeMap<String, Vec<String>> {
    let mut requested = authored.plugin.requested();
    let text = fs::read_to_string(authored.plugin.named_in()).unwrap_or_default();
    let written = requests_as_written(&text);
    let (resolved, written) = (requested.get_mut(FILESYSTEM), written.get(FILESYSTEM));
    for (resolved, written) in resolved.into_iter().flatten().zip(written.into_iter().flatten()) {
        let path = written.split_once(':').map_or("", |(_, path)| path);
        if path.starts_with("~/") || path.starts_with("${data}") {
            resolved.clone_from(written);
        }
    }
    requested
}

/// How a case went.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CaseResult {
    pub(crate) name: String,
    /// Where it begins in its file.
    pub(crate) line: usize,
    /// What is not as expected; nothing where the case passes.
    pub(crate) problems: Vec<String>,
    #[serde(serialize_with = "milliseconds", rename = "timeMillis")]
    pub(crate) time: Duration,
}

fn milliseconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

/// Runs the cases of a file, several at a time. The results are in the order of the cases.
pub(crate) async fn run_all(plugin: &PluginUnderTest, file: &CaseFile) -> Vec<CaseResult> {
    let mut results = Vec::new();
    // The first has the component compiled, which the others find in the cache.
    let (first, others) = file.cases.split_at(file.cases.len().min(1));
    for cases in std::iter::once(first).chain(others.chunks(MAX_AT_A_TIME)) {
        results.extend(join_all(cases.iter().map(|case| run(plugin, case))).await);
    }
    results
}

/// The most cases that run at a time: each has a host of its own.
const MAX_AT_A_TIME: usize = 8;

/// Runs a case.
async fn run(plugin: &PluginUnderTest, case: &Case) -> CaseResult {
    let began = Instant::now();
    let (host, answers) = test_host(plugin, &case.given);
    let problems = match host.start().await {
        Ok(running) => {
            let found = steps(&running, case).await;
            let mut problems = std::mem::take(&mut *lock(&answers.wrong));
            problems.extend(found);
            // What was not reached asks for nothing, nor does what is to fail.
            let fails = |(_, expected): &(Action, Expected)| expected.is_failure();
            if problems.is_empty() && !case.steps.iter().any(fails) {
                problems = answers.unused(&running);
            }
            running.shutdown().await;
            problems
        }
        Err(error) => not_started(case, tenon_config::diagnostic::chain(&error)),
    };
    CaseResult { name: case.name.clone(), line: case.line, problems, time: began.elapsed() }
}

/// What is not as expected of a plugin that does not start: nothing where the first step expects this error.
fn not_started(case: &Case, error: String) -> Vec<String> {
    let expected = case.steps.first().and_then(|(_, expected)| expected.error.as_ref());
    match expected.is_some_and(|part| error.contains(part)) {
        true => Vec::new(),
        false => vec![error],
    }
}

/// Does one step after the other, up to the first that is not as expected.
async fn steps(plugin: &RunningPlugin, case: &Case) -> Vec<String> {
    for (number, (action, expected)) in case.steps.iter().enumerate() {
        let outcome = outcome(plugin, action).await;
        let problems = problems(expected, &outcome, plugin);
        if !problems.is_empty() {
            let step = |problem| format!("step {}: {problem}", number + 1);
            return match case.steps.len() {
                1 => problems,
                _ => problems.into_iter().map(step).collect(),
            };
        }
    }
    Vec::new()
}

/// A host in which the plugin finds what is given, and the answers that it may ask for.
fn test_host(plugin: &PluginUnderTest, given: &Given) -> (TestHost, Arc<CaseAnswers>) {
    let mut host = TestHost::folder(&plugin.folder)
        .config(Value::Object(given.settings.clone().into_iter().collect()));
    let mut grants = plugin.requested.clone();
    grants.extend(given.grants.clone());
    for (capability, values) in grants {
        host = host.grant(capability, values);
    }
    // Even where no answer is given: no case reaches a network.
    host = host.http(given.http.iter().map(answer));
    for (name, value) in &given.secrets {
        host = host.secret_value(name, value);
    }
    for (name, value) in &given.environment {
        host = host.environment(name, value);
    }
    for (path, text) in &given.files {
        host = host.file(path.trim_start_matches("~/"), text.as_str());
    }
    host = host.share_compiled(&plugin.host_environment);
    let state = State::new();
    for (key, value) in &given.state {
        state.set(Scope::Project, key, value);
    }
    host = host.state(&state);
    let answers = Arc::new(CaseAnswers::of(given));
    if !given.model.is_empty() {
        let answers = answers.clone();
        host = host.answer_model(move |_| Ok(Completion::text("default", answers.model.next())));
    }
    if !given.user.is_empty() {
        let answers = answers.clone();
        host = host.answer_forms(move |form| answers.fill_in(form));
    }
    (host, answers)
}

/// What a case answers to questions.
struct CaseAnswers {
    model: AnswerQueue<String>,
    user: AnswerQueue<UserRow>,
    /// What is wrong with those that were given.
    wrong: Mutex<Vec<String>>,
}

impl CaseAnswers {
    fn of(given: &Given) -> Self {
        let (model, user) = (given.model.clone(), given.user.clone());
        Self {
            model: AnswerQueue::new(model),
            user: AnswerQueue::new(user),
            wrong: Mutex::default(),
        }
    }

    fn fill_in(&self, form: &FormRequest) -> FormAnswer {
        match self.user.next() {
            UserRow::Accept(content) => {
                if let Err(problem) = check_form(form, &content) {
                    lock(&self.wrong).push(problem);
                }
                FormAnswer::accept(content)
            }
            UserRow::Decline => FormAnswer::Declined,
            UserRow::Cancel => FormAnswer::Cancelled,
        }
    }

    /// The answers that the plugin did not ask for.
    fn unused(&self, plugin: &RunningPlugin) -> Vec<String> {
        let mut problems = Vec::new();
        for (key, unused) in [("model", self.model.unused()), ("user", self.user.unused())] {
            let asked_for = if unused == 1 { "1 answer" } else { &format!("{unused} answers") };
            if unused > 0 {
                problems.push(format!("nothing asked for {asked_for} of `{key}`"));
            }
        }
        let unused = plugin.unused_http_answers().into_iter().map(|answer| {
            let method = answer.method.map(|method| format!("{method} ")).unwrap_or_default();
            format!("nothing was requested that `http` has for {method}{}", answer.url)
        });
        problems.extend(unused);
        problems
    }
}

/// Whether a user could fill in a form like this.
fn check_form(form: &FormRequest, given: &BTreeMap<String, Value>) -> Result<(), String> {
    let fields = form::fields(&form.schema)?;
    let given = given.clone().into_iter().collect();
    if let Some(name) = form::unknown(&fields, &given) {
        return Err(format!(
            "`user` answers {name:?}, and the form {:?} has no such member",
            form.message
        ));
    }
    form::filled_in(&fields, &given).map(drop).map_err(|problem| format!("`user`: {problem}"))
}

/// Answers, in their order; the last again and again.
struct AnswerQueue<T>(Mutex<(Vec<T>, usize)>);

impl<T: Clone> AnswerQueue<T> {
    fn new(answers: Vec<T>) -> Self {
        Self(Mutex::new((answers, 0)))
    }

    fn next(&self) -> T {
        let mut state = lock(&self.0);
        let (answers, next) = &mut *state;
        let answer = answers[(*next).min(answers.len() - 1)].clone();
        *next += 1;
        answer
    }

    fn unused(&self) -> usize {
        let (answers, next) = &*lock(&self.0);
        answers.len().saturating_sub(*next)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn answer(row: &HttpRow) -> HttpAnswer {
    let mut answer = HttpAnswer::new(&row.url);
    if let Some(method) = &row.method {
        answer = answer.method(method);
    }
    if let Some(status) = row.status {
        answer = answer.status(status);
    }
    if let Some(json) = &row.json {
        answer = answer.json(json);
    }
    if let Some(body) = &row.body {
        answer = answer.body(body.as_str());
    }
    for (name, value) in &row.headers {
        answer = answer.header(name, value);
    }
    answer
}

/// Does a step.
async fn outcome(plugin: &RunningPlugin, action: &Action) -> StepOutput {
    let done = match action {
        Action::Call { tool, arguments } => {
            plugin.call(tool, arguments.clone()).await.map(|result| {
                let text = result.plain_text();
                let structured = result.structured.as_deref().unwrap_or(&text);
                StepOutput {
                    json: serde_json::from_str(structured).ok(),
                    error: result.is_error.then(|| text.clone()),
                    text,
                    ..StepOutput::default()
                }
            })
        }
        Action::Hook { point, context } => {
            let report = plugin.hook(point.clone(), context.clone()).await;
            report.map(|report| {
                let (mut error, mut veto) = (None, None);
                match &report.outcome {
                    HookOutcome::Veto { reason, .. } => veto = Some(reason.clone()),
                    HookOutcome::Stopped { failure, .. } => error = Some(failure.to_string()),
                    _ => {
                        let mut errors = report.handlers.iter().filter_map(|of| of.error.clone());
                        error = errors.next();
                    }
                }
                let text = report.context.to_string();
                StepOutput {
                    text,
                    json: Some(report.context),
                    error,
                    veto,
                    ..StepOutput::default()
                }
            })
        }
        Action::Evaluate { strategy, subject, options } => {
            let evaluation = plugin.evaluate(strategy, subject.clone(), options.clone()).await;
            evaluation.map(|evaluation| StepOutput {
                json: Some(tenon_host::types::mcp_json::evaluation(&evaluation)),
                score: Some(evaluation.score),
                text: { evaluation.findings.iter() }
                    .map(|finding| finding.reason.as_str())
                    .collect::<Vec<_>>()
                    .join("\n"),
                ..StepOutput::default()
            })
        }
        Action::Complete { model, prompt } => {
            let request = CompletionRequest::new(model, prompt);
            plugin.complete(request).await.map(|completion| {
                let parts = completion.parts.iter().filter_map(|part| match part {
                    Part::Text(text) => Some(text.as_str()),
                    _ => None,
                });
                of_text(parts.collect())
            })
        }
        Action::Read { uri } => plugin.read_resource(uri).await.map(|contents| {
            let texts: Vec<String> = contents.iter().map(text_of).collect();
            of_text(texts.join("\n"))
        }),
        Action::Prompt { name, arguments } => {
            let arguments: Vec<(&str, &str)> =
                arguments.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            plugin.prompt(name, &arguments).await.map(|prompt| {
                let texts: Vec<String> = { prompt.messages.iter() }
                    .map(|message| text_of_block(&message.content))
                    .collect();
                of_text(texts.join("\n"))
            })
        }
    };
    done.unwrap_or_else(|error: CallError| StepOutput {
        error: Some(tenon_config::diagnostic::chain(&error)),
        ..StepOutput::default()
    })
}

fn of_text(text: String) -> StepOutput {
    let json: Option<Value> = serde_json::from_str(&text).ok();
    StepOutput { text, json, ..StepOutput::default() }
}

fn text_of(contents: &ResourceContents) -> String {
    match &contents.body {
        ResourceBody::Text(text) => text.clone(),
        ResourceBody::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
    }
}

fn text_of_block(block: &ContentBlock) -> String {
    match &block.body {
        Content::Text(text) => text.clone(),
        Content::Resource(contents) => text_of(contents),
        _ => String::new(),
    }
}
