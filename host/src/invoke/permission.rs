//! Whether a call may be made: what the operator's rules say of it, and whoever has to approve it.
//!
//! Three are asked, one after the other: the host's [`CallApprover`]; the user of the client that the call is made for,
//! where the client can ask; and whoever reads later which calls wait. The first who decides does so for this exact call.

use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenon_call_approvals::{
    Action, ApprovalScope, Asked, BeginOutcome, BegunCall, CallApprovalError, CallApprovals,
    CallDetails, Decider, ImmediateApproval,
};
use tenon_config::call_policy::{CallDecision, CallFacts};
use tenon_config::diagnostic::chain;
use tenon_store::{IdKind, LazyStore};
use tenon_types::text::{cut, exact_json};
use tenon_types::{FormAnswer, FormRequest, INPUT_KEY};

use super::pipeline::Request;
use super::state::CallState;
use crate::call::approver::{ApproverDecision, CallApprover, CallToApprove};
use crate::call::client::AskingPlugin;
use crate::call::refusal::CallRefusal;
use crate::call::{CallError, PauseGuard, TOOL_RULE};
use crate::capability::services::LazyInStore;
use crate::observe::event::Step;
use crate::register::call_settings::CallSettings;

/// The most of arguments that an error repeats, in bytes of JSON.
const MAX_REPEATED_BYTES: usize = 500;

/// How often it is begun anew where somebody decides while another is asked.
const MAX_ROUNDS: usize = 4;

/// The longest arguments that the user of a client is asked about, in bytes of JSON: forms are small.
const MAX_FORM_BYTES: usize = 8 << 10;

/// Approvals of calls, and who gives them.
pub(crate) struct CallApprovalGate {
    approvals: LazyInStore<CallApprovals>,
    approver: Arc<dyn CallApprover>,
}

impl CallApprovalGate {
    pub(crate) fn new(store: Arc<LazyStore>, approver: Arc<dyn CallApprover>) -> Self {
        Self { approvals: LazyInStore::new(store, CallApprovals::new), approver }
    }

    /// Does something with the approvals, on a thread that may block.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Arc<CallApprovals>, u64) -> Result<T, CallApprovalError> + Send + 'static,
    ) -> Result<T, CallApprovalError> {
        self.approvals.run(act).await
    }
}

/// Checks that a call may be made. One that was approved has begun then.
pub(super) async fn permit<R: Request>(
    request: &R,
    state: &mut CallState,
) -> Result<(), CallError> {
    let settings = request.constraints();
    if !settings.enabled {
        return Err(CallError::Disabled { tool: state.name.clone(), by: TOOL_RULE });
    }
    if let Some((decision, by)) = decided_by_rules(request, settings, state) {
        match decision {
            CallDecision::Allow => {}
            CallDecision::Deny => return Err(refused(state, CallRefusal::Forbidden { by })),
            CallDecision::Ask => Box::pin(approve(request, state, by)).await?,
        }
    }
    state.step(|| Step::Permitted);
    Ok(())
}

/// What rules decide, and which of them, where there are any.
fn decided_by_rules<R: Request>(
    request: &R,
    settings: &CallSettings,
    state: &CallState,
) -> Option<(CallDecision, String)> {
    let policy = settings.policy.as_ref()?;
    let arguments = request.ruled_arguments(state.arguments.value());
    let verdict = policy.decide(&CallFacts {
        arguments: &arguments,
        principal: state.caller.principal.as_deref(),
        profile: state.caller.profile.as_deref(),
    });
    Some((verdict.decision, verdict.by.to_string()))
}

/// Checks again whether a call may be made that somebody has approved after a while: its plugin may be gone by then, and the
/// rules may be others.
fn check_again<R: Request>(request: &R, state: &CallState, by: &str) -> Result<(), CallError> {
    let Some(registry) = state.invoke_services.latest_registry() else { return Ok(()) };
    let Some(settings) = request.constraints_in(state, &registry) else {
        let problem = "its plugin is gone or another by now: call it again".to_string();
        return Err(refused(state, CallRefusal::Unasked { by: by.to_string(), problem }));
    };
    if !settings.enabled {
        return Err(CallError::Disabled { tool: state.name.clone(), by: TOOL_RULE });
    }
    match decided_by_rules(request, settings, state) {
        Some((CallDecision::Deny, by)) => Err(refused(state, CallRefusal::Forbidden { by })),
        _ => Ok(()),
    }
}

fn refused(state: &CallState, refusal: CallRefusal) -> CallError {
    CallError::NotApproved { tool: state.name.clone(), refusal: Box::new(refusal) }
}

/// Has somebody approve a call, and begins it.
async fn approve<R: Request>(
    request: &R,
    state: &mut CallState,
    by: String,
) -> Result<(), CallError> {
    let permissions = state.invoke_services.permissions.clone();
    let unkept = |state: &CallState, by: &str, error: &CallApprovalError| {
        let problem = match error {
            CallApprovalError::TooLong => {
                "its arguments are too long to be shown to anybody".to_string()
            }
            error if error.is_full() => {
                "too many calls wait for approval; `tenon pending` shows them".to_string()
            }
            error => {
                let (by, problem) = (by.to_string(), chain(error));
                return refused(state, CallRefusal::Unkept { by, problem });
            }
        };
        refused(state, CallRefusal::Unasked { by: by.to_string(), problem })
    };
    let action = Arc::new(action(request, state));
    let mut call = to_approve(request, state, by);
    let asked = CallDetails::new(call.arguments.clone(), call.by.clone())
        .in_session(call.session.clone())
        .in_run(call.run.as_deref().map(str::to_string))
        .by_plugin(call.caller.as_deref().map(str::to_string))
        .by_agent(call.agent.clone());
    // What somebody else decides meanwhile counts.
    for _ in 0..MAX_ROUNDS {
        let (taken, of) = (action.clone(), asked.clone());
        let found = permissions.run(move |all, now| all.take(&taken, &of, now)).await;
        match begin(state, found.map_err(|error| unkept(state, &call.by, &error))?)? {
            ControlFlow::Break(()) => return Ok(()),
            ControlFlow::Continue(interrupted) => call.interrupted = interrupted,
        }
        let decided = decide(&permissions, (&action, &asked), state, &call).await;
        let (action, asked) = (action.clone(), asked.clone());
        match decided.map_err(|error| unkept(state, &call.by, &error))? {
            AskOutcome::By(by, ApproverDecision::Approved { scope, holds }, waited) => {
                check_again(request, state, &call.by)?;
                let given = ImmediateApproval { scope, holds, by, waited };
                let approve = move |all: &Arc<CallApprovals>, now| {
                    all.begin_approved(&action, asked, given, now)
                };
                let found = permissions.run(approve).await;
                let found = found.map_err(|error| unkept(state, &call.by, &error))?;
                match begin(state, found)? {
                    ControlFlow::Break(()) => return Ok(()),
                    ControlFlow::Continue(_) => continue,
                }
            }
            AskOutcome::By(who, ApproverDecision::Denied { reason }, _) => {
                let why = reason.clone();
                let note = move |all: &Arc<CallApprovals>, now| {
                    all.note_denied(&action, asked, why, who, now)
                };
                if let Err(error) = permissions.run(note).await {
                    tracing::warn!("that a call was denied is not kept: {}", chain(&error));
                }
                return Err(refused(state, CallRefusal::Denied { reason }));
            }
            AskOutcome::By(_, ApproverDecision::Undecided, _) | AskOutcome::Meanwhile => {}
            AskOutcome::Waits(id) => return Err(refused(state, pending(call, id))),
        }
    }
    let problem = "others decide of it all the time".to_string();
    Err(refused(state, CallRefusal::Unasked { by: call.by, problem }))
}

/// Begins a call of which something is decided. Else it goes on with when the same call began of which it is not known how it
/// ended, if there is one.
fn begin(
    state: &mut CallState,
    found: BeginOutcome,
) -> Result<ControlFlow<(), Option<SystemTime>>, CallError> {
    match found {
        BeginOutcome::Begun(begun) => {
            state.begun = Some(begun);
            Ok(ControlFlow::Break(()))
        }
        BeginOutcome::Denied { reason, .. } => Err(refused(state, CallRefusal::Denied { reason })),
        BeginOutcome::Running { id } => Err(refused(state, CallRefusal::Running { id })),
        BeginOutcome::Undecided { unknown_since } => {
            let time = |at| SystemTime::UNIX_EPOCH + Duration::from_millis(at);
            Ok(ControlFlow::Continue(unknown_since.map(time)))
        }
    }
}

/// That a call waits under an id.
fn pending(call: CallToApprove, id: String) -> CallRefusal {
    let CallToApprove { by, run, arguments, interrupted, caller, .. } = call;
    let mut arguments = arguments.to_string();
    if arguments.len() > MAX_REPEATED_BYTES {
        arguments = format!("{}…", cut(&arguments, MAX_REPEATED_BYTES));
    }
    let arguments = exact_json(&arguments).into_owned();
    // A run does not wait for what a plugin calls.
    let run = run.filter(|_| caller.is_none());
    CallRefusal::Pending { id, by, arguments, was_interrupted: interrupted.is_some(), run }
}

/// The call as it would be made.
fn action<R: Request>(request: &R, state: &CallState) -> Action {
    let loaded = request.plugin().loaded();
    Action {
        tool: state.name.clone(),
        plugin: loaded.id().to_string(),
        code: loaded.code_digest(),
        definition: request.definition_digest(),
        principal: state.caller.principal.as_deref().map(str::to_string),
        arguments: state.arguments.value().clone(),
    }
}

/// What whoever decides sees of a call.
fn to_approve<R: Request>(request: &R, state: &CallState, by: String) -> CallToApprove {
    let mut arguments = state.arguments.value().clone();
    state.mask_known(&mut arguments);
    CallToApprove {
        tool: state.name.clone(),
        plugin: request.plugin().id().clone(),
        arguments,
        by,
        principal: state.caller.principal.clone(),
        agent: state.caller.agent_id.clone(),
        session: state.caller.session_id.clone(),
        run: state.caller.run.clone(),
        caller: state.caller.by.clone(),
        interrupted: None,
    }
}

/// What comes of asking.
enum AskOutcome {
    /// Somebody has decided, and whether the call has waited for others meanwhile.
    By(Decider, ApproverDecision, bool),
    /// Nobody has; the call waits under this id.
    Waits(String),
    /// Somebody else has decided meanwhile.
    Meanwhile,
}

/// Asks who can decide at once. While the user of a client is asked, the call waits for anybody who decides.
async fn decide(
    permissions: &CallApprovalGate,
    (action, asked): (&Arc<Action>, &CallDetails),
    state: &CallState,
    call: &CallToApprove,
) -> Result<AskOutcome, CallApprovalError> {
    // How long that takes is not the doing of what the call is made for.
    let _pause = PauseGuard::of(state.caller.outer.innermost().cloned());
    match permissions.approver.decide(call).await {
        ApproverDecision::Undecided => {}
        decided => return Ok(AskOutcome::By(Decider::Approver, decided, false)),
    }
    let (action, asked) = (action.clone(), asked.clone());
    let waits = match permissions.run(move |all, now| all.ask(&action, asked, now)).await {
        Ok(Asked::Decided) => return Ok(AskOutcome::Meanwhile),
        Ok(Asked::Waits(id)) => Ok(id),
        // There is no room for it, but its user may be there.
        Err(error) => Err(error),
    };
    match ask_client(state, call).await {
        ApproverDecision::Undecided => waits.map(AskOutcome::Waits),
        decided => Ok(AskOutcome::By(Decider::Client, decided, waits.is_ok())),
    }
}

/// The answers that the user of a client can give, and what each means.
const ONCE: &str = "approve this call";
const SESSION: &str = "approve it for this session";
const RUN: &str = "approve all calls of this tool in this run";
const STANDING: &str = "approve it always";
const DENY: &str = "deny";

/// What questions are called among those of their call.
const QUESTIONS: IdKind = IdKind::new("approval-");

/// Asks the user of the client that the call is made for.
async fn ask_client(state: &CallState, call: &CallToApprove) -> ApproverDecision {
    let Some(client) = state.caller.client.as_ref().map(|client| client.features()) else {
        return ApproverDecision::Undecided;
    };
    let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    if !client.offers().forms || arguments.len() > MAX_FORM_BYTES {
        return ApproverDecision::Undecided;
    }
    let requester = AskingPlugin {
        plugin: call.plugin.to_string(),
        agent_id: call.agent.clone(),
        session_id: call.session.clone(),
        is_host: true,
        ..AskingPlugin::default()
    };
    let Some(name) = QUESTIONS.random() else { return ApproverDecision::Undecided };
    let mut form = form(call, &arguments);
    // An answer that was sent before the question is none: nobody knows this name.
    form.extra.insert("_meta".into(), json!({ INPUT_KEY: name }));
    match client.ask(&requester, form).await {
        Ok(FormAnswer::Accepted(content)) => decision(&content, call.run.is_some()),
        Ok(FormAnswer::Declined) => ApproverDecision::Denied { reason: None },
        Ok(FormAnswer::Cancelled) => {
            ApproverDecision::Denied { reason: Some("its user did not answer".into()) }
        }
        // Somebody may still decide later.
        Err(_) => ApproverDecision::Undecided,
    }
}

fn form(call: &CallToApprove, arguments: &str) -> FormRequest {
    let CallToApprove { tool, plugin, by, interrupted, caller, .. } = call;
    let caller = caller.as_ref().map(|caller| format!(" by the plugin \"{caller}\""));
    let caller = caller.unwrap_or_default();
    let before = match interrupted {
        Some(_) => "\nThe same call was begun before, and it is not known how it ended.",
        None => "",
    };
    let message = format!(
        "Tenon asks whether the tool {tool} of the plugin \"{plugin}\" may be called{caller}. It has to be approved, by \
         {by}.{before}\nArguments: {}",
        exact_json(arguments)
    );
    let mut answers = vec![ONCE, STANDING, DENY];
    if call.session.is_some() {
        answers.insert(1, SESSION);
    }
    if call.run.is_some() {
        answers.insert(1, RUN);
    }
    let beyond = match call.run {
        None => "Beyond this call, what is approved is this tool with exactly these arguments.",
        Some(_) => {
            "Beyond this call, what is approved is this tool with exactly these arguments; for the run, with any."
        }
    };
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": beyond,
                "enum": answers,
            },
        },
        "required": ["decision"],
    });
    FormRequest { message, schema, extra: serde_json::Map::new() }
}

/// What an answer means. One that is none of those that can be given approves nothing.
fn decision(content: &serde_json::Map<String, Value>, has_run: bool) -> ApproverDecision {
    let approved = |scope| ApproverDecision::Approved { scope, holds: None };
    match content.get("decision").and_then(Value::as_str) {
        Some(ONCE) => approved(ApprovalScope::Once),
        Some(SESSION) => approved(ApprovalScope::Session { fixed: None }),
        Some(RUN) if has_run => approved(ApprovalScope::Run { fixed: Some(Vec::new()) }),
        Some(STANDING) => approved(ApprovalScope::Standing { fixed: None }),
        _ => ApproverDecision::Denied { reason: None },
    }
}

/// A call that was approved has ended so, if that is known.
pub(super) async fn end(state: &mut CallState, outcome: Option<&'static str>) {
    let Some(begun) = state.begun.take() else { return };
    let ended = state.invoke_services.permissions.clone();
    let end = move |_: &Arc<CallApprovals>, now| match outcome {
        Some(outcome) => begun.end(outcome, now),
        None => begun.lose(now),
    };
    if let Err(error) = ended.run(end).await {
        tracing::warn!("how an approved call ended is not kept: {}", chain(&error));
    }
}

/// A call that was approved is given up: how it ends is not known.
pub(super) fn give_up(begun: Box<BegunCall>) {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => drop(runtime.spawn_blocking(move || drop(begun))),
        Err(_) => drop(begun),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(arguments: Value, session: Option<&str>) -> CallToApprove {
        CallToApprove {
            tool: "files__write".into(),
            plugin: "files".into(),
            arguments,
            by: "a rule".into(),
            principal: None,
            agent: None,
            session: session.map(str::to_string),
            run: None,
            caller: None,
            interrupted: None,
        }
    }

    #[test]
    fn a_form_shows_what_would_be_done_and_nothing_that_hides_it() {
        let asked = call(json!({ "path": "/a\u{202e}" }), None);
        let FormRequest { message, schema, .. } = form(&asked, &asked.arguments.to_string());
        assert!(message.contains("files__write of the plugin \"files\""), "{message}");
        assert!(message.contains("by a rule") && message.contains("\\u202e"), "{message}");
        let answers = |schema: &Value| schema["properties"]["decision"]["enum"].clone();
        assert_eq!(answers(&schema), json!([ONCE, STANDING, DENY]));
        let of_session = form(&call(json!({}), Some("s")), "{}");
        assert_eq!(answers(&of_session.schema), json!([ONCE, SESSION, STANDING, DENY]));
        assert!(!of_session.message.contains("begun before"));
        let of_run =
            form(&CallToApprove { run: Some("R-1".into()), ..call(json!({}), None) }, "{}");
        assert_eq!(answers(&of_run.schema), json!([ONCE, RUN, STANDING, DENY]));
        let caller = Some("mail".into());
        let nested = form(&CallToApprove { caller, ..call(json!({}), None) }, "{}").message;
        assert!(nested.contains("may be called by the plugin \"mail\""), "{nested}");
        let interrupted = Some(SystemTime::UNIX_EPOCH);
        let again = form(&CallToApprove { interrupted, ..call(json!({}), None) }, "{}");
        assert!(again.message.contains("it is not known how it ended"), "{}", again.message);
    }

    #[test]
    fn only_an_answer_that_was_offered_approves() {
        let check = |content: Value, expected: Option<ApprovalScope>| {
            let has_run = content["run"] == true;
            let decided = decision(content.as_object().expect("it is an object"), has_run);
            let scope = match decided {
                ApproverDecision::Approved { scope, .. } => Some(scope),
                _ => None,
            };
            assert_eq!(scope, expected, "{content}");
        };
        check(json!({ "decision": ONCE }), Some(ApprovalScope::Once));
        check(json!({ "decision": SESSION }), Some(ApprovalScope::Session { fixed: None }));
        check(json!({ "decision": STANDING }), Some(ApprovalScope::Standing { fixed: None }));
        let any = Some(ApprovalScope::Run { fixed: Some(Vec::new()) });
        check(json!({ "decision": RUN, "run": true }), any);
        check(json!({ "decision": RUN }), None);
        for none in [
            json!({ "decision": DENY }),
            json!({ "decision": "yes" }),
            json!({}),
            json!({ "decision": true }),
        ] {
            check(none, None);
        }
    }
}
