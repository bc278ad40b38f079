//! Whether a call may be made: what the operator's rules say of it, and whoever has to approve it.
//!
//! Three are asked, one after the other: the host's [`CallApprover`]; the user of the client that the call is made for,
//! where the client can ask; and whoever reads later which calls wait. The first who decides does so for this exact call.

use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tenon_call_approvals::{
    Action, ApprovalScope, AskedCall, BegunCall, CallApprovalError, CallApprovals, Found,
};
use tenon_config::call_policy::{CallDecision, CallFacts};
use tenon_config::diagnostic::chain;
use tenon_store::{IdKind, LazyStore};
use tenon_types::text::{cut, visible};
use tenon_types::{FormAnswer, FormRequest, INPUT_KEY};

use super::pipeline::Request;
use super::state::CallState;
use crate::call::approver::{CallApproval, CallApprover, CallToApprove};
use crate::call::client::Requester;
use crate::call::refusal::CallRefusal;
use crate::call::{CallError, TOOL_RULE};
use crate::capability::services::InStore;
use crate::observe::event::Step;

/// The most of arguments that an error repeats, in bytes of JSON.
const MAX_REPEATED_BYTES: usize = 500;

/// The longest arguments that the user of a client is asked about, in bytes of JSON: forms are small.
const MAX_FORM_BYTES: usize = 8 << 10;

/// Approvals of calls, and who gives them.
pub(crate) struct CallPermissions {
    approvals: InStore<CallApprovals>,
    approver: Arc<dyn CallApprover>,
}

impl CallPermissions {
    pub(crate) fn new(store: Arc<LazyStore>, approver: Arc<dyn CallApprover>) -> Self {
        Self { approvals: InStore::new(store, CallApprovals::new), approver }
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
    if let Some(policy) = &settings.policy {
        let verdict = policy.decide(&CallFacts {
            arguments: state.arguments.value(),
            principal: state.caller.principal.as_deref(),
            profile: state.caller.profile.as_deref(),
        });
        let by = verdict.by.to_string();
        match verdict.decision {
            CallDecision::Allow => {}
            CallDecision::Deny => return Err(refused(state, CallRefusal::Forbidden { by })),
            CallDecision::Ask => Box::pin(approve(request, state, by)).await?,
        }
    }
    state.step(|| Step::Permitted);
    Ok(())
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
    let permissions = state.invoke_context.permissions.clone();
    let unkept = |state: &CallState, by: &str, error: &CallApprovalError| {
        let problem = match error.is_full() {
            true => "too many calls wait for approval; `tenon pending` shows them".to_string(),
            false => format!("nobody can be asked: {}", chain(error)),
        };
        refused(state, CallRefusal::Unasked { by: by.to_string(), problem })
    };
    let action = Arc::new(action(request, state));
    let mut call = to_approve(request, state, by);
    let asked = AskedCall::new(call.arguments.clone(), call.by.clone())
        .in_session(call.session.clone())
        .in_run(call.run.as_deref().map(str::to_string))
        .by_agent(call.agent.clone());
    let (taken, of) = (action.clone(), asked.clone());
    let found = permissions.run(move |all, now| all.take(&taken, &of, now)).await;
    match found.map_err(|error| unkept(state, &call.by, &error))? {
        Found::Begun(begun) => {
            state.begun = Some(begun);
            return Ok(());
        }
        Found::Denied { reason, .. } => {
            return Err(refused(state, CallRefusal::Denied { reason }));
        }
        Found::Running { id } => return Err(refused(state, CallRefusal::Running { id })),
        Found::Undecided { unknown_since } => {
            let time = |at| SystemTime::UNIX_EPOCH + Duration::from_millis(at);
            call.interrupted = unknown_since.map(time);
        }
    }
    match decide(&permissions, state, &call).await {
        CallApproval::Approved { scope, holds } => {
            let begin = move |all: &Arc<CallApprovals>, now| {
                all.begin_approved(&action, asked, scope, holds, now)
            };
            let begun = permissions.run(begin).await;
            let begun = begun.map_err(|error| unkept(state, &call.by, &error))?;
            state.begun = Some(begun.into());
            Ok(())
        }
        CallApproval::Denied { reason } => {
            let noted = permissions.run(move |all, now| all.note_denied(&action, asked, now));
            if let Err(error) = noted.await {
                tracing::warn!("that a call was denied is not kept: {}", chain(&error));
            }
            Err(refused(state, CallRefusal::Denied { reason }))
        }
        CallApproval::Undecided => {
            let asked = permissions.run(move |all, now| all.ask(&action, asked, now)).await;
            let id = asked.map_err(|error| unkept(state, &call.by, &error))?;
            let mut arguments = call.arguments.to_string();
            if arguments.len() > MAX_REPEATED_BYTES {
                arguments = format!("{}…", cut(&arguments, MAX_REPEATED_BYTES));
            }
            let was_interrupted = call.interrupted.is_some();
            let refusal = CallRefusal::Pending { id, by: call.by, arguments, was_interrupted };
            Err(refused(state, refusal))
        }
    }
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
    state.mask(&mut arguments);
    CallToApprove {
        tool: state.name.clone(),
        plugin: request.plugin().id().clone(),
        arguments,
        by,
        principal: state.caller.principal.clone(),
        agent: state.caller.agent_id.clone(),
        session: state.caller.session_id.clone(),
        run: state.caller.run.clone(),
        interrupted: None,
    }
}

/// Asks who can decide at once.
async fn decide(
    permissions: &CallPermissions,
    state: &CallState,
    call: &CallToApprove,
) -> CallApproval {
    match permissions.approver.decide(call).await {
        CallApproval::Undecided => ask_client(state, call).await,
        decided => decided,
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
async fn ask_client(state: &CallState, call: &CallToApprove) -> CallApproval {
    let Some(client) = state.caller.client.as_ref().map(|client| client.features()) else {
        return CallApproval::Undecided;
    };
    let arguments = serde_json::to_string_pretty(&call.arguments).unwrap_or_default();
    if !client.offers().forms || arguments.len() > MAX_FORM_BYTES {
        return CallApproval::Undecided;
    }
    let requester = Requester {
        plugin: call.plugin.to_string(),
        agent_id: call.agent.clone(),
        session_id: call.session.clone(),
        ..Requester::default()
    };
    let Some(name) = QUESTIONS.random() else { return CallApproval::Undecided };
    let mut form = form(call, &arguments);
    // An answer that was sent before the question is none: nobody knows this name.
    form.extra.insert("_meta".into(), json!({ INPUT_KEY: name }));
    match client.ask(&requester, form).await {
        Ok(FormAnswer::Accepted(content)) => decision(&content, call.run.is_some()),
        Ok(FormAnswer::Declined) => CallApproval::Denied { reason: None },
        Ok(FormAnswer::Cancelled) => {
            CallApproval::Denied { reason: Some("its user did not answer".into()) }
        }
        // Somebody may still decide later.
        Err(_) => CallApproval::Undecided,
    }
}

fn form(call: &CallToApprove, arguments: &str) -> FormRequest {
    let CallToApprove { tool, plugin, by, interrupted, .. } = call;
    let before = match interrupted {
        Some(_) => "\nThe same call was begun before, and it is not known how it ended.",
        None => "",
    };
    let message = format!(
        "Tenon asks whether the tool {tool} of the plugin \"{plugin}\" may be called. It has to be approved, by \
         {by}.{before}\nArguments: {}",
        visible(arguments)
    );
    let mut answers = vec![ONCE, STANDING, DENY];
    if call.session.is_some() {
        answers.insert(1, SESSION);
    }
    if call.run.is_some() {
        answers.insert(1, RUN);
    }
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Decision",
                "description": "Beyond this call, what is approved is this tool with exactly these arguments; for a run, with any.",
                "enum": answers,
            },
        },
        "required": ["decision"],
    });
    FormRequest { message, schema, extra: serde_json::Map::new() }
}

/// What an answer means. One that is none of those that can be given approves nothing.
fn decision(content: &serde_json::Map<String, Value>, has_run: bool) -> CallApproval {
    let approved = |scope| CallApproval::Approved { scope, holds: None };
    match content.get("decision").and_then(Value::as_str) {
        Some(ONCE) => approved(ApprovalScope::Once),
        Some(SESSION) => approved(ApprovalScope::Session { fixed: None }),
        Some(RUN) if has_run => approved(ApprovalScope::Run { fixed: Some(Vec::new()) }),
        Some(STANDING) => approved(ApprovalScope::Standing { fixed: None }),
        _ => CallApproval::Denied { reason: None },
    }
}

/// A call that was approved has ended so.
pub(super) async fn end(state: &mut CallState, outcome: &'static str) {
    let Some(begun) = state.begun.take() else { return };
    let ended = state.invoke_context.permissions.clone();
    if let Err(error) = ended.run(move |_, now| begun.end(outcome, now)).await {
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
            interrupted: None,
        }
    }

    #[test]
    fn a_form_shows_what_would_be_done_and_nothing_that_hides_it() {
        let asked = call(json!({ "path": "/a\u{202e}" }), None);
        let FormRequest { message, schema, .. } = form(&asked, &asked.arguments.to_string());
        assert!(message.contains("files__write of the plugin \"files\""), "{message}");
        assert!(message.contains("by a rule") && message.contains("\\u{202e}"), "{message}");
        let answers = |schema: &Value| schema["properties"]["decision"]["enum"].clone();
        assert_eq!(answers(&schema), json!([ONCE, STANDING, DENY]));
        let of_session = form(&call(json!({}), Some("s")), "{}");
        assert_eq!(answers(&of_session.schema), json!([ONCE, SESSION, STANDING, DENY]));
        assert!(!of_session.message.contains("begun before"));
        let of_run =
            form(&CallToApprove { run: Some("R-1".into()), ..call(json!({}), None) }, "{}");
        assert_eq!(answers(&of_run.schema), json!([ONCE, RUN, STANDING, DENY]));
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
                CallApproval::Approved { scope, .. } => Some(scope),
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
