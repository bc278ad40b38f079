//! Approvals of single calls, as the user of the command sees and decides them.

use async_trait::async_trait;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tenon_call_approvals::{CallApprovals, StandingApproval, is_approval_id};
use tenon_host::services::{
    ApprovalScope, ApprovalState, ApproverDecision, CallApprover, CallToApprove, PendingCall,
};
use tenon_host::types::text::{exact_json, one_line};
use tokio::sync::Mutex;

use crate::approval::{answer, say};
use crate::error::Error;
use crate::store::{self, StorePlace};
use crate::{Common, output};

/// The approvals of calls that the user's store has.
pub(crate) fn approvals(common: &Common) -> Result<CallApprovals, Error> {
    let approvals = CallApprovals::new(StorePlace::find(common)?.open()?);
    Ok(approvals.decided_by(user()))
}

/// Who decides by this command, as far as the environment says.
pub(crate) fn user() -> String {
    let named =
        ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    named.unwrap_or_else(|| "a user".into())
}

/// Says which approvals cannot be read, if there are any.
pub(crate) fn note_damaged(approvals: &CallApprovals) -> Result<(), Error> {
    for id in approvals.damaged()? {
        output::note(&format!(
            "what is kept of the approval {id} is damaged, and approves nothing: `tenon deny {id}` forgets it"
        ));
    }
    Ok(())
}

/// The id of an approval as the store has it, if somebody typed one: capital and small letters are the same.
pub(crate) fn read_id(typed: &str) -> Option<String> {
    Some(typed.to_ascii_uppercase()).filter(|id| is_approval_id(id))
}

/// Asks on the terminal whether a call may be made, one question at a time.
pub(crate) struct TerminalCallApprover(Arc<Mutex<()>>);

impl TerminalCallApprover {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }
}

#[async_trait]
impl CallApprover for TerminalCallApprover {
    async fn decide(&self, call: &CallToApprove) -> ApproverDecision {
        let terminal = self.0.clone().lock_owned().await;
        let shown = of_call(call);
        let (has_session, has_run) = (call.session.is_some(), call.run.is_some());
        let asked = tokio::task::spawn_blocking(move || {
            let _terminal = terminal;
            say(&shown);
            ask(has_session, has_run)
        });
        asked.await.ok().flatten().unwrap_or(ApproverDecision::Undecided)
    }
}

/// Asks what was shown; nothing where the input has ended. What is no answer decides nothing.
pub(crate) fn ask(has_session: bool, has_run: bool) -> Option<ApproverDecision> {
    let session = if has_session { "for this [s]ession, " } else { "" };
    let run = if has_run { "with any arguments in this [r]un, " } else { "" };
    let question =
        format!("may it be called? [o]nce, {session}{run}[a]lways exactly so for 30 days, [n]o: ");
    let approved = |scope| ApproverDecision::Approved { scope, holds: None };
    Some(match answer(&question)?.as_str() {
        "o" | "once" | "y" | "yes" => approved(ApprovalScope::Once),
        "s" | "session" if has_session => approved(ApprovalScope::Session { fixed: None }),
        "r" | "run" if has_run => approved(ApprovalScope::Run { fixed: Some(Vec::new()) }),
        "a" | "always" => approved(ApprovalScope::Standing { fixed: None }),
        "n" | "no" => ApproverDecision::Denied { reason: None },
        _ => {
            say("that is none of the answers: nothing is decided\n");
            ApproverDecision::Undecided
        }
    })
}

/// Somebody who may be known by several names.
struct CallerNames<'a> {
    principal: Option<&'a str>,
    agent: Option<&'a str>,
    session: Option<&'a str>,
    run: Option<&'a str>,
    /// The plugin that makes the call.
    caller: Option<&'a str>,
}

fn of_call(call: &CallToApprove) -> String {
    let CallToApprove {
        tool,
        plugin,
        arguments,
        by,
        principal,
        agent,
        session,
        run,
        caller,
        interrupted,
        ..
    } = call;
    let who = CallerNames {
        principal: principal.as_deref(),
        agent: agent.as_deref(),
        session: session.as_deref(),
        run: run.as_deref(),
        caller: caller.as_deref(),
    };
    let before = interrupted.is_some().then_some(INTERRUPTED);
    shown(&format!("tool {tool} of plugin \"{plugin}\""), &who, by, before, arguments)
}

const INTERRUPTED: &str = "it was begun before, and how it ended is not known";

/// A call that waits, as people see it.
pub(crate) fn of_pending(call: &PendingCall, now: u64) -> String {
    let PendingCall { id, tool, plugin, principal, call: asked, state, .. } = call;
    let who = CallerNames {
        principal: principal.as_deref(),
        agent: asked.agent.as_deref(),
        session: asked.session.as_deref(),
        run: asked.run.as_deref(),
        caller: asked.caller.as_deref(),
    };
    let ago = now.saturating_sub(call.asked) / 1_000;
    let ago = humantime::format_duration(Duration::from_secs(ago));
    let head = format!("{id}  tool {tool} of plugin \"{plugin}\", {ago} ago");
    let status = match state {
        ApprovalState::Approved { .. } => Some("it is approved, and not called again yet".into()),
        ApprovalState::Denied { reason: None, .. } => Some("it was denied".into()),
        ApprovalState::Denied { reason: Some(reason), .. } => {
            Some(format!("it was denied: {}", one_line(reason)))
        }
        ApprovalState::Running { .. } => Some("it is approved, and runs".into()),
        ApprovalState::Unknown { .. } => Some(INTERRUPTED.to_string()),
        _ => None,
    };
    shown(&head, &who, &asked.reason, status.as_deref(), &asked.arguments)
}

/// How many lines of arguments can be seen at once.
const MAX_SCREEN_LINES: usize = 20;

/// Arguments stand as JSON with one member on a line, and with escapes for what a reader does not see.
fn shown(
    head: &str,
    who: &CallerNames<'_>,
    by: &str,
    status: Option<&str>,
    arguments: &Value,
) -> String {
    let mut text = format!("{}\n", one_line(head));
    let known = [
        ("called by plugin", who.caller),
        ("principal", who.principal),
        ("agent", who.agent),
        ("session", who.session),
        ("run", who.run),
    ];
    for (word, name) in known {
        if let Some(name) = name {
            let _ = writeln!(text, "  {word}: {}", one_line(name));
        }
    }
    let _ = writeln!(text, "  has to be approved by {}", one_line(by));
    if let Some(status) = status {
        let _ = writeln!(text, "  {status}");
    }
    match arguments {
        Value::Null => text.push_str("  its arguments are too long to be shown\n"),
        arguments => {
            let json = serde_json::to_string_pretty(arguments).unwrap_or_default();
            let _ = writeln!(text, "  with {}", exact_json(&json).replace('\n', "\n  "));
            let (lines, bytes) = (json.lines().count(), json.len());
            // What it is about may be out of sight.
            if lines > MAX_SCREEN_LINES || bytes > MAX_SCREEN_LINES * 80 {
                let _ = writeln!(
                    text,
                    "  these arguments have {lines} lines and {bytes} bytes: {}",
                    one_line(head)
                );
            }
        }
    }
    text
}

/// A standing approval, as people see it.
pub(crate) fn of_standing(standing: &StandingApproval) -> String {
    let StandingApproval {
        id,
        tool,
        plugin,
        principal,
        session,
        run,
        fixed,
        shown,
        given,
        expires,
        ..
    } = standing;
    let values = match shown {
        Value::Null => "too long to be shown".to_string(),
        shown => exact_json(&shown.to_string()).into_owned(),
    };
    let calls = match fixed {
        None => format!("with exactly {values}"),
        Some(names) if names.is_empty() => "with any arguments".to_string(),
        Some(_) => format!("with {values} and any others"),
    };
    let mut text = format!("{id}  calls of tool {tool} of plugin \"{plugin}\" {calls}");
    if *given > 0 {
        let _ = write!(text, ", approved {}", store::shown_time(*given));
    }
    for (word, name) in [("by", principal), ("in session", session), ("in run", run)] {
        if let Some(name) = name {
            let _ = write!(text, ", {word} {name}");
        }
    }
    if let Some(expires) = expires {
        let _ = write!(text, ", until {}", store::shown_time(*expires));
    }
    one_line(&text).into_owned()
}

/// A call that waits, as programs read it.
pub(crate) fn json_of(call: &PendingCall) -> Value {
    let (state, reason) = match &call.state {
        ApprovalState::Approved { .. } => ("approved", None),
        ApprovalState::Denied { reason, .. } => ("denied", reason.as_ref()),
        ApprovalState::Running { .. } => ("running", None),
        ApprovalState::Unknown { .. } => ("unknown", None),
        _ => ("pending", None),
    };
    json!({
        "id": call.id,
        "state": state,
        "reason": reason,
        "tool": call.tool,
        "plugin": call.plugin,
        "principal": call.principal,
        "agent": call.call.agent,
        "session": call.call.session,
        "run": call.call.run,
        "caller": call.call.caller,
        "arguments": call.call.arguments,
        "by": call.call.reason,
        "digest": call.digest,
        "askedAt": call.asked,
        "expiresAt": call.expires,
    })
}

/// A standing approval, as programs read it.
pub(crate) fn json_of_standing(standing: &StandingApproval) -> Value {
    json!({
        "id": standing.id,
        "state": "standing",
        "tool": standing.tool,
        "plugin": standing.plugin,
        "principal": standing.principal,
        "session": standing.session,
        "run": standing.run,
        "fixed": standing.fixed,
        "arguments": standing.shown,
        "approvedAt": standing.given,
        "expiresAt": standing.expires,
    })
}
