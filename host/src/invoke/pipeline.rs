//! The one way of all that is asked of a plugin: found → before-hooks → check → rules → attempts → check
//! of the answer → mask → bound → after-hooks → what is hidden → record.
//!
//! A [`Request`] says what is asked; what differs between requests of different kinds is in its methods.
//! [`run`] takes it through the steps.

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tenon_config::secret::Redactor;
use tenon_types::{CallContext, HookContext, HookPoint, Json, ToolResult};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::hooks::{ChainReport, fire};
use super::permission::{self, permit};
use super::state::{Attempt, CallState};
use crate::call::mask::{MaskSecrets, Masked, Unmasked, within_unmasked};
use crate::call::{CallError, Failure, HookOutcome, Usage, within};
use crate::invoke::stored_results::ResultStore;
use crate::observe::event::Step;
use crate::register::call_settings::CallSettings;
use crate::register::tool_metrics::ToolMetrics;
use crate::register::{RegisteredPlugin, Registry};
use crate::runtime::PluginHandle;

/// Something that is asked of a plugin.
pub(super) trait Request: Send + Sync {
    /// What the plugin answers.
    type Answer: PipelineAnswer;

    /// The hook points around it, if there are any.
    const POINTS: Option<HookPoints>;

    /// Who is asked.
    fn plugin(&self) -> &Arc<RegisteredPlugin>;

    /// How it may be asked: whether at all, for how long, how often.
    fn constraints(&self) -> &CallSettings;

    /// How it may be asked by what a registry says; nothing where what is asked is not in it, or is another by now.
    fn constraints_in<'a>(&'a self, _: &CallState, _: &'a Registry) -> Option<&'a CallSettings> {
        Some(self.constraints())
    }

    /// The arguments as rules see them.
    fn ruled_arguments<'a>(&self, arguments: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(arguments)
    }

    /// Where it is counted.
    fn tool_metrics(&self) -> Option<&Arc<ToolMetrics>> {
        None
    }

    /// The span in which everything is done for it.
    fn span(&self, state: &CallState) -> Span;

    /// How long an attempt may take at most.
    fn wall(&self) -> Duration {
        let wall = self.plugin().loaded().limits().wall;
        self.constraints().timeout.map_or(wall, |timeout| timeout.min(wall))
    }

    /// Puts the arguments into the form that hooks, record and plugin see. What cannot be done at once is
    /// left to the future that it gives.
    fn prepare<'a>(&'a self, arguments: &'a mut Value) -> Option<BoxFuture<'a, ()>> {
        let _ = arguments;
        None
    }

    /// What hooks are told of which request it is.
    fn about(&self, state: &CallState) -> [(&'static str, String); 2] {
        let plugin = self.plugin().id().to_string();
        [("tool", state.name.clone()), ("plugin", plugin)]
    }

    /// What of the request hooks are told, and `before` can change.
    fn asked(&self, state: &CallState) -> Arc<Value> {
        match Self::POINTS.as_ref().and_then(|points| points.asked.1) {
            Some(member) => Arc::new(state.arguments.value()[member].clone()),
            None => state.arguments.shared_value().clone(),
        }
    }

    /// Takes what hooks have made of that.
    fn take_asked(&mut self, state: &mut CallState, changed: Arc<Value>) -> Result<(), String> {
        match Self::POINTS.as_ref().and_then(|points| points.asked.1) {
            Some(member) => {
                state.arguments.value_mut()[member] = Arc::unwrap_or_clone(changed);
            }
            None => state.arguments = changed.into(),
        }
        Ok(())
    }

    /// Checks the arguments: gives what is wrong with them.
    fn check(
        &self,
        state: &CallState,
    ) -> impl Future<Output = Result<Vec<String>, CallError>> + Send {
        let _ = state;
        std::future::ready(Ok(Vec::new()))
    }

    /// What names the definition of what is called, so that an approval of a call holds for no other.
    fn definition_digest(&self) -> String {
        String::new()
    }

    /// What the arguments are called in an error.
    fn arguments_of(&self) -> &'static str {
        "arguments"
    }

    /// Asks the plugin. Gives the length of what it is given in bytes, and its answer.
    fn ask(
        &mut self,
        plugin: PluginHandle<'_>,
        redactor: &Arc<Redactor>,
        arguments: &Json,
        context: CallContext,
    ) -> (u64, impl Future<Output = Unmasked<Result<Self::Answer, Failure>>> + Send);

    /// What an error comes to where more is known of it than the plugin says.
    fn explain(&self, state: &CallState, error: CallError) -> CallError {
        let _ = state;
        error
    }

    /// Checks an answer.
    fn check_answer(
        &self,
        answer: Self::Answer,
    ) -> impl Future<Output = Result<Self::Answer, CallError>> + Send {
        std::future::ready(Ok(answer))
    }
}

/// The hook points around a request, and the members of their contexts that handlers can change.
pub(super) struct HookPoints {
    pub(super) before: HookPoint,
    pub(super) after: HookPoint,
    /// What of the arguments `before` can change: its name in the context, and in the arguments unless
    /// they are all of it.
    pub(super) asked: (&'static str, Option<&'static str>),
    /// What `after` can change.
    pub(super) answer: &'static str,
}

/// What a plugin answers to a request.
pub(super) trait PipelineAnswer: MaskSecrets + Sized + Send + Sync {
    /// How long it is, in bytes.
    fn length(&self) -> usize;

    /// The word for how the call has ended.
    fn outcome(&self) -> &'static str {
        "ok"
    }

    /// The same with no more than so many bytes or so. `kept` says where the whole is, if it was cut
    /// before; gives where it is now.
    fn bound(
        self,
        most: usize,
        kept: Option<String>,
        results: &Arc<ResultStore>,
    ) -> impl Future<Output = (Self, Option<String>)> + Send {
        let _ = (most, results);
        std::future::ready((self, kept))
    }

    /// Its form for hooks.
    fn form(&self) -> Value {
        Value::Null
    }

    /// The answer that hooks have made of it.
    fn changed(self, change: AnswerChange<'_>) -> Result<Self, String> {
        let _ = change;
        Ok(self)
    }

    /// Makes visible what a reader would not see. Gives whether that changed anything.
    fn show(&mut self) -> bool;

    /// Says what it took, where the answer can.
    fn tell(&mut self, usage: &Usage, refusals: &[String]) {
        let _ = (usage, refusals);
    }

    /// Whether the answer only begins here. Then it has to end the call.
    const GOES_ON: bool = false;

    /// Has the answer end the call.
    fn ending(self, state: Box<CallState>) -> Self {
        drop(state);
        self
    }
}

/// What hooks have made of an answer.
pub(super) struct AnswerChange<'a> {
    /// Its form before them.
    pub(super) before: &'a Value,
    pub(super) after: Arc<Value>,
    /// The same as the result of a tool, where it is one.
    pub(super) result: Option<Box<ToolResult>>,
}

/// Takes a request through all steps, if it was found. Together they have the time that the caller
/// gives.
pub(super) async fn run<R: Request>(
    registry: &Registry,
    mut state: Box<CallState>,
    found: Result<R, CallError>,
) -> Result<Masked<R::Answer>, CallError> {
    let mut request = match found {
        Ok(request) => request,
        Err(error) => {
            let usage = state.usage();
            return Err(state.failed(error, usage));
        }
    };
    let id = request.plugin().id().clone();
    state.tool_metrics = request.tool_metrics().cloned();
    let span = state.found(&id, |state| request.span(state));
    let timeout = state.caller.timeout;
    let steps = Box::pin(steps(registry, &mut request, &mut state)).instrument(span);
    let result = match timeout {
        None => steps.await,
        // Each step has what is left of the caller's time, and knows better whose fault it is when there
        // is none: this comes after it.
        Some(timeout) => {
            let timed = within(timeout.saturating_add(DEADLINE_GRACE), steps.map(Ok)).await;
            timed.map_err(CallError::failed(&id)).flatten()
        }
    };
    let outcome = match &result {
        Ok(answer) => answer.outcome(),
        Err(error) => error.code(),
    };
    let is_known = !result.as_ref().is_err_and(CallError::is_outcome_unknown);
    permission::end(&mut state, is_known.then_some(outcome)).await;
    let usage = state.usage();
    match result {
        Ok(answer) if R::Answer::GOES_ON => Ok(answer.map(|answer| answer.ending(state))),
        Ok(answer) => {
            let answer = answer.map(|mut answer| {
                answer.tell(&usage, state.refusals());
                answer
            });
            state.answered(answer.outcome(), usage);
            Ok(answer)
        }
        Err(error) => {
            let error = request.explain(&state, error);
            Err(state.failed(error, usage))
        }
    }
}

/// How much later than the caller's time a call is given up that no step has given up itself.
const DEADLINE_GRACE: Duration = Duration::from_millis(20);

async fn steps<R: Request>(
    registry: &Registry,
    request: &mut R,
    state: &mut CallState,
) -> Result<Masked<R::Answer>, CallError> {
    let redactor = registry.redactor();
    // Hooks and the record see what is passed on.
    if let Some(preparing) = request.prepare(state.arguments.value_mut()) {
        preparing.await;
    }
    before(registry, request, state).await?;
    check(request, state).await?;
    permit(request, state).await?;
    let answer = attempt(registry, request, state).await?;
    let answer = Unmasked::of(|opening| request.check_answer(answer.open(opening))).await;
    let answer = answer.mask(redactor).transpose()?;
    state.bytes_out = answer.length() as u64;
    let answer = shorten(request, state, answer).await;
    state.bounded();
    let answer = after(registry, request, state, answer).await?;
    Ok(show(request, state, answer).await)
}

/// Lets hooks change the arguments or stop the call.
async fn before<R: Request>(
    registry: &Registry,
    request: &mut R,
    state: &mut CallState,
) -> Result<(), CallError> {
    let Some(HookPoints { before, asked: (name, _), .. }) = &R::POINTS else { return Ok(()) };
    if registry.handlers(before).is_empty() {
        return Ok(());
    }
    let asked = request.asked(state);
    // What is no object is refused better than by any handler.
    if !asked.is_object() {
        return Ok(());
    }
    let context = context(request, state, [(*name, asked.clone())]);
    let caller = state.caller_now();
    let ChainReport { outcome, mut context, handlers, .. } =
        fire(&state.invoke_services, registry, before, context, &caller).await;
    let changed = handlers.iter().rev().find(|handler| handler.outcome == "replace");
    state.changed_by = changed.map(|handler| handler.plugin.as_str().into());
    state.step(|| Step::HooksBefore { handlers });
    match outcome {
        HookOutcome::Veto { plugin, reason } => Err(CallError::Vetoed { plugin, reason }),
        HookOutcome::Stopped { plugin, failure } => Err(CallError::Failed { plugin, failure }),
        HookOutcome::Continue => {
            let changed = context.remove(name).unwrap_or_default();
            if !Arc::ptr_eq(&asked, &changed) {
                drop(asked);
                request.take_asked(state, changed).map_err(|problem| {
                    let of_request = request.plugin().id().clone();
                    let plugin = state.changed_by.clone().unwrap_or(of_request);
                    CallError::Failed { plugin, failure: Failure::Contract(problem) }
                })?;
            }
            if let Some(preparing) = request.prepare(state.arguments.value_mut()) {
                preparing.await;
            }
            Ok(())
        }
    }
}

/// The context of a hook at a request.
fn context<R: Request, const N: usize>(
    request: &R,
    state: &CallState,
    members: [(&str, Arc<Value>); N],
) -> HookContext {
    let about =
        request.about(state).map(|(name, value)| (name.to_string(), Arc::new(value.into())));
    let members = members.map(|(name, value)| (name.to_string(), value));
    about.into_iter().chain(members).collect()
}

async fn check<R: Request>(request: &R, state: &CallState) -> Result<(), CallError> {
    let problems = request.check(state).await?;
    if problems.is_empty() {
        state.step(|| Step::Checked);
        return Ok(());
    }
    let name = &state.name;
    Err(match &state.changed_by {
        None => {
            CallError::InvalidInput { what: request.arguments_of(), name: name.clone(), problems }
        }
        Some(plugin) => CallError::failed(plugin)(Failure::Contract(format!(
            "its hook left {} that {name} does not take: {}",
            request.arguments_of(),
            problems.join("; ")
        ))),
    })
}

/// Asks the plugin, and again where the failure may pass and it may be asked twice. All attempts
/// together, with the waits between them, have the plugin's limit of time: who may say how often a tool
/// is called cannot lift it.
async fn attempt<R: Request>(
    registry: &Registry,
    request: &mut R,
    state: &mut CallState,
) -> Result<Unmasked<R::Answer>, CallError> {
    let plugin = request.plugin().clone();
    let (loaded, redactor) = (plugin.loaded(), registry.redactor());
    let (limit, most) = (loaded.limits().wall, request.wall());
    let mut left = limit;
    loop {
        let started = match loaded.plugin().starting() {
            Some(starting) => starting.await,
            None => Ok(()),
        };
        let wall = most.min(left);
        let Attempt { number: attempt, timeout, context, current_call } = state.next_attempt(wall);
        let began = Instant::now();
        let started = started.and_then(|()| match state.caller.begins.set() {
            true => Ok(()),
            false => Err(Failure::Lost("nobody waits for the call any more".into())),
        });
        let (bytes_in, answer) = request.ask(loaded.plugin(), redactor, &state.arguments, context);
        state.bytes_in = bytes_in;
        let answer = async {
            match started {
                Ok(()) => answer.await,
                Err(failure) => Unmasked::new(Err(failure)),
            }
        };
        // Of the caller's own time all counts.
        let answer = match timeout < wall {
            true => current_call.by(within_unmasked(timeout, answer)).await,
            false => {
                let answer = current_call.by(current_call.in_time(timeout, answer)).await;
                let time = if left < most { limit } else { timeout };
                answer.unwrap_or_else(|| Unmasked::new(Err(Failure::Deadline(time))))
            }
        };
        state.used();
        let answer = answer.or_masked_failure(redactor);
        let error = answer.as_ref().err();
        state.step(|| Step::Attempted { attempt, error: error.map(ToString::to_string) });
        let failure = match answer {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        left = left.saturating_sub(began.elapsed().saturating_sub(current_call.stood()));
        let wait = request.constraints().wait(attempt, &failure).filter(|wait| *wait < left);
        let Some(wait) = wait else {
            return Err(CallError::failed(loaded.id())(failure));
        };
        tracing::info!("attempt {attempt} failed: {failure}");
        tokio::time::sleep(wait).await;
        left = left.saturating_sub(wait);
    }
}

/// Cuts an answer that is too long; the whole is kept.
async fn shorten<R: Request>(
    request: &R,
    state: &mut CallState,
    answer: Masked<R::Answer>,
) -> Masked<R::Answer> {
    let most = request.plugin().loaded().limits().output;
    let (kept, results) = (state.whole.clone(), &state.invoke_services.results);
    let mut whole = None;
    let answer = answer.then(|answer| async {
        let (answer, kept) = answer.bound(most, kept, results).await;
        whole = kept;
        answer
    });
    let answer = answer.await;
    state.whole = whole;
    answer
}

/// Makes visible what a reader of the answer would not see. Another plugin is no reader, nor is a
/// program that asks for the answer as it is.
async fn show<R: Request>(
    request: &R,
    state: &mut CallState,
    answer: Masked<R::Answer>,
) -> Masked<R::Answer> {
    if state.caller.by.is_some() || state.caller.raw || state.invoke_services.results.are_raw() {
        return answer;
    }
    let mut is_changed = false;
    let answer = answer.map(|mut answer| {
        is_changed = answer.show();
        answer
    });
    match is_changed {
        // Escapes are longer than what they stand for.
        true => shorten(request, state, answer).await,
        false => answer,
    }
}

/// Lets hooks change the answer. What they make of it is kept as short.
async fn after<R: Request>(
    registry: &Registry,
    request: &R,
    state: &mut CallState,
    answer: Masked<R::Answer>,
) -> Result<Masked<R::Answer>, CallError> {
    let Some(HookPoints { after, asked: (name, _), answer: answered, .. }) = &R::POINTS else {
        return Ok(answer);
    };
    if registry.handlers(after).is_empty() {
        return Ok(answer);
    }
    let form = Arc::new(answer.form());
    let context =
        context(request, state, [(*name, request.asked(state)), (*answered, form.clone())]);
    let caller = state.caller_now();
    let ChainReport { outcome, mut context, handlers, result } =
        fire(&state.invoke_services, registry, after, context, &caller).await;
    let changed_by = handlers.iter().rev().find(|handler| handler.outcome == "replace");
    let changed_by = changed_by.map(|handler| Arc::from(handler.plugin.as_str()));
    state.step(|| Step::HooksAfter { handlers });
    if let HookOutcome::Stopped { plugin, failure } = outcome {
        return Err(CallError::Failed { plugin, failure });
    }
    let changed = context.remove(answered).unwrap_or_default();
    if Arc::ptr_eq(&changed, &form) || changed == form {
        return Ok(answer);
    }
    let change = AnswerChange { before: &form, after: changed, result };
    let answer = answer.map(|answer| answer.changed(change)).transpose();
    let answer = answer.map_err(|problem| {
        let plugin = changed_by.unwrap_or_else(|| request.plugin().id().clone());
        CallError::Failed { plugin, failure: Failure::Contract(problem) }
    })?;
    let answer = answer.again().mask(registry.redactor());
    Ok(shorten(request, state, answer).await)
}
