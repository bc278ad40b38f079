//! What a call is: who makes it, what it costs, and why it has no answer.
//!
//! How calls are made is in [`crate::invoke`].

pub(crate) mod approver;
pub(crate) mod client;
mod current;
pub(crate) mod escape;
pub(crate) mod failure;
mod fingerprint;
mod hook_report;
pub(crate) mod mask;
mod paused_time;
pub(crate) mod refusal;
mod trace;

use futures::FutureExt;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tenon_types::name::nearest;
use tenon_types::{CallContext, ErrorCode, McpOperation};

pub(crate) use client::CallerClient;
pub(crate) use current::CurrentCall;
pub use current::Usage;
pub use failure::Failure;
pub use fingerprint::CallFingerprint;
pub use hook_report::{HandlerReport, HookOutcome, HookReport};
pub use paused_time::OuterCalls;
pub(crate) use paused_time::PauseGuard;
pub use refusal::CallRefusal;
pub(crate) use trace::TraceParent;

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The tool's rendered name.
    pub name: String,
    /// Its arguments, a JSON object.
    pub arguments: Value,
    /// On whose behalf.
    pub caller: Caller,
}

impl Call {
    /// A call on nobody's behalf, with the plugin's own time limit.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self { name: name.into(), arguments, caller: Caller::default() }
    }
}

/// What disables a tool that a rule does not let be called.
pub(crate) const TOOL_RULE: &str = "`enabled = false` under [tools]";

/// The kind of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallKind {
    /// A call of a tool.
    #[default]
    Tool,
    /// The list of its resources.
    ListResources,
    /// The list of its resource templates.
    ListResourceTemplates,
    /// What is in a resource.
    ReadResource,
    /// To tell when a resource changes.
    SubscribeResource,
    /// Not to tell that any more.
    UnsubscribeResource,
    /// The list of its prompts.
    ListPrompts,
    /// A prompt, filled in.
    GetPrompt,
    /// Values for an argument.
    Suggest,
    /// An answer of a model.
    Completion,
    /// An evaluation.
    Evaluation,
    /// To handle a hook point.
    Hook,
}

impl From<McpOperation> for CallKind {
    fn from(operation: McpOperation) -> Self {
        match operation {
            McpOperation::ListResources => Self::ListResources,
            McpOperation::ReadResource => Self::ReadResource,
            McpOperation::ListTemplates => Self::ListResourceTemplates,
            McpOperation::ListPrompts => Self::ListPrompts,
            McpOperation::GetPrompt => Self::GetPrompt,
            McpOperation::Subscribe => Self::SubscribeResource,
            McpOperation::Unsubscribe => Self::UnsubscribeResource,
            McpOperation::Suggest => Self::Suggest,
        }
    }
}

impl CallKind {
    /// All kinds.
    pub const ALL: [Self; 12] = [
        Self::Tool,
        Self::ListResources,
        Self::ListResourceTemplates,
        Self::ReadResource,
        Self::SubscribeResource,
        Self::UnsubscribeResource,
        Self::ListPrompts,
        Self::GetPrompt,
        Self::Suggest,
        Self::Completion,
        Self::Evaluation,
        Self::Hook,
    ];

    /// Returns the kind as call records spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::ListResources => "list-resources",
            Self::ListResourceTemplates => "list-resource-templates",
            Self::ReadResource => "read-resource",
            Self::SubscribeResource => "subscribe-resource",
            Self::UnsubscribeResource => "unsubscribe-resource",
            Self::ListPrompts => "list-prompts",
            Self::GetPrompt => "get-prompt",
            Self::Suggest => "suggest",
            Self::Completion => "completion",
            Self::Evaluation => "evaluation",
            Self::Hook => "hook",
        }
    }
}

/// Why a call failed, and whose fault it is.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// There is nothing of this name.
    #[error("there is no {what} \"{name}\"")]
    NotFound {
        /// What was looked for: a tool, a strategy, a model.
        what: &'static str,
        /// Its name.
        name: String,
        /// A name that is like it.
        nearest: Option<String>,
    },
    /// What the caller passed is not what the plugin says it takes.
    #[error("{what} of {name}: {}", .problems.join("; "))]
    InvalidInput {
        /// The arguments of a tool, the options of a strategy, and the like.
        what: &'static str,
        /// The name of what was called.
        name: String,
        /// What is wrong, each with its place in the input.
        problems: Vec<String>,
    },
    /// The operator's configuration does not let it be called.
    #[error("the tool {tool} is disabled by {by}")]
    Disabled {
        /// The tool.
        tool: String,
        /// What of the configuration.
        by: &'static str,
    },
    /// Its definition is not the one that was first seen, and nobody has accepted that.
    #[error("the {what} {name} is held: {why}; `tenon approve {plugin}` shows it and accepts it")]
    Held {
        /// A tool or a prompt.
        what: &'static str,
        /// Its name.
        name: String,
        /// Its plugin.
        plugin: Arc<str>,
        /// What is wrong.
        why: String,
    },
    /// The operator's rules forbid it, or it has to be approved and was not.
    #[error("the tool {tool} {refusal}")]
    NotApproved {
        /// The tool.
        tool: String,
        /// Why it is not made.
        refusal: Box<CallRefusal>,
    },
    /// A hook has stopped it.
    #[error("plugin \"{plugin}\" vetoed it: {reason}")]
    Vetoed {
        /// Who.
        plugin: Arc<str>,
        /// Why.
        reason: String,
    },
    /// The plugin gave no answer.
    #[error("plugin \"{plugin}\": {failure}")]
    Failed {
        /// The plugin.
        plugin: Arc<str>,
        /// Why, and whose fault it is.
        failure: Failure,
    },
}

impl CallError {
    /// Whether the plugin may have begun with what was asked of it.
    pub(crate) fn may_have_begun(&self) -> bool {
        matches!(self, Self::Failed { failure, .. } if !matches!(failure, Failure::Unsupported(_)))
    }

    /// Whether the plugin may have done what was asked of it all the same.
    pub(crate) fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Failed { failure: Failure::Deadline(_) | Failure::Lost(_), .. } => true,
            Self::Failed { failure: Failure::Answered(error), .. } => error.is_outcome_unknown(),
            _ => false,
        }
    }

    /// Returns a stable code for programs: `not-found`, `invalid-input`, `disabled`, `held`, `vetoed`, or that of a
    /// [`CallRefusal`]. If the plugin failed, it is the contract's code of the plugin's error, or `trapped`, `limit`,
    /// `deadline`, `lost`, `unsupported`, `contract` or `host`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not-found",
            Self::InvalidInput { .. } => "invalid-input",
            Self::Disabled { .. } => "disabled",
            Self::Held { .. } => "held",
            Self::NotApproved { refusal, .. } => refusal.code(),
            Self::Vetoed { .. } => "vetoed",
            Self::Failed { failure, .. } => match failure {
                Failure::Answered(error) => error.code.name(),
                Failure::Trapped(_) => "trapped",
                Failure::LimitExceeded(_) => "limit",
                Failure::Deadline(_) => "deadline",
                Failure::Lost(_) => "lost",
                Failure::Unsupported(_) => "unsupported",
                Failure::Contract(_) => "contract",
                Failure::Host(_) => "host",
            },
        }
    }

    pub(crate) fn failed(plugin: &Arc<str>) -> impl FnOnce(Failure) -> Self {
        move |failure| Self::Failed { plugin: plugin.clone(), failure }
    }

    /// That a call of a tool which is there once for all plugins names none of them.
    pub fn without_plugin(tool: &str) -> Self {
        let problem =
            format!("at /{}: it must be the id of a plugin", McpOperation::PLUGIN_ARGUMENT);
        Self::InvalidInput { what: "arguments", name: tool.to_string(), problems: vec![problem] }
    }

    /// That a plugin has nothing which a tool is for that is there once for all plugins. Nothing where
    /// there is no such tool.
    pub fn nothing_for_shared_tool(tool: &str, plugin: &str) -> Option<Self> {
        let what = McpOperation::of_tool(tool)?.looked_for();
        Some(Self::NotFound { what, name: plugin.to_string(), nearest: None })
    }

    /// Returns whether a plugin may have answered so because it has nothing of the name that was asked for: not
    /// every plugin says that in the word for it.
    pub fn may_be_misspelt(&self) -> bool {
        let Self::Failed { failure: Failure::Answered(error), .. } = self else { return false };
        matches!(error.code, ErrorCode::NotFound | ErrorCode::InvalidInput | ErrorCode::Failed)
    }

    /// Returns that nothing is called `name`; the nearest of `names` may be what was meant.
    pub fn not_found<'a>(
        what: &'static str,
        name: &str,
        names: impl Iterator<Item = &'a str>,
    ) -> Self {
        let nearest = nearest(name, names).map(Into::into);
        Self::NotFound { what, name: name.to_string(), nearest }
    }
}

/// Who makes a call, and its timeout.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Caller {
    /// The agent.
    pub agent_id: Option<String>,
    /// The conversation or session.
    pub session_id: Option<String>,
    /// The run of a script that the call is of, if it is of one.
    pub run: Option<Arc<str>>,
    /// Whose call it is: a name that the host vouches for. Rules of the operator and approvals are about it.
    pub principal: Option<Arc<str>>,
    /// The profile that the client uses, if it uses one. Rules of the operator are about it.
    pub profile: Option<Arc<str>>,
    /// The W3C Trace Context `traceparent` to continue.
    pub traceparent: Option<String>,
    /// A shorter time than the plugin's own limit.
    pub timeout: Option<Duration>,
    /// Whether the answer is for a program and no reader: characters that a reader would not see stay
    /// in it as they are, whatever the operator says under `[results]`.
    pub raw: bool,
    /// The client that the call is made for; `None` for the one of the platform.
    pub client: Option<CallerClient>,
    /// The plugin that calls, where it is not the host.
    pub by: Option<Arc<str>>,
    /// How many plugins there are between the host and the call, each of which has called the next.
    pub depth: u32,
    /// The calls that this one is made for, where it is a plugin that calls.
    pub outer: OuterCalls,
    /// Says whether the call has reached its plugin.
    pub begins: StartedFlag,
}

/// Says of a call whether it has reached its plugin, also where nobody waits for it any more. A host leaves it empty.
#[derive(Debug, Clone, Default)]
pub struct StartedFlag(Option<Arc<AtomicU8>>);

/// The call may begin.
const OPEN: u8 = 0;
/// It has begun.
const BEGUN: u8 = 1;
/// It may not begin any more.
const FORBIDDEN: u8 = 2;

impl StartedFlag {
    /// A mark of a call that begins later.
    pub(crate) fn new() -> Self {
        Self(Some(Arc::default()))
    }

    /// The call begins. Says whether it may: nobody has forbidden it.
    pub(crate) fn set(&self) -> bool {
        self.change(BEGUN) != Some(FORBIDDEN)
    }

    /// Forbids the call to begin from here on. Says whether it has begun before.
    pub(crate) fn forbid(&self) -> bool {
        self.change(FORBIDDEN) == Some(BEGUN)
    }

    /// Changes a mark that is open. Gives what it was.
    fn change(&self, to: u8) -> Option<u8> {
        let change = |mark: &Arc<AtomicU8>| {
            mark.compare_exchange(OPEN, to, Ordering::SeqCst, Ordering::SeqCst)
        };
        self.0.as_ref().map(|mark| change(mark).unwrap_or_else(|before| before))
    }
}

impl PartialEq for StartedFlag {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for StartedFlag {}

impl Caller {
    /// The client that hears how far the call has come: that of a call which no plugin makes, and which handles no
    /// hook.
    pub(crate) fn progress_client(&self) -> Option<&CallerClient> {
        self.client.as_ref().filter(|client| self.by.is_none() && client.hears_progress())
    }

    /// The place of the next call in the caller's trace.
    pub(crate) fn trace(&self) -> Option<TraceParent> {
        self.traceparent.as_deref().and_then(TraceParent::parse).map(TraceParent::child)
    }

    /// The time that a call of this id and place in a trace may take, and what the plugin is told of it.
    pub(crate) fn context_of(
        &self,
        call_id: String,
        trace: Option<TraceParent>,
        wall: Duration,
    ) -> (Duration, CallContext) {
        let timeout = self.timeout.map_or(wall, |timeout| timeout.min(wall));
        let context = CallContext {
            call_id,
            agent_id: self.agent_id.clone(),
            session_id: self.session_id.clone(),
            traceparent: trace.map(|trace| trace.to_string()),
            time_left: Some(timeout),
            extra: None,
        };
        (timeout, context)
    }
}

/// Waits for an answer, and gives the call up when there is none in time: dropping its future is
/// how a plugin of any kind learns. The time begins now.
///
/// It is no `async fn`, which would have room for the answer twice.
pub(crate) fn within<T>(
    timeout: Duration,
    answer: impl Future<Output = Result<T, Failure>>,
) -> impl Future<Output = Result<T, Failure>> {
    let timed = tokio::time::timeout(timeout, answer);
    timed.map(move |answer| answer.unwrap_or(Err(Failure::Deadline(timeout))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_written_as_its_word() {
        for kind in CallKind::ALL {
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
    }

    #[test]
    fn a_slip_of_the_finger_finds_what_was_meant() {
        let nearest = |name: &str| {
            let names = ["text-tools__count", "text-tools__slug"].into_iter();
            match CallError::not_found("tool", name, names) {
                CallError::NotFound { nearest, .. } => nearest,
                _ => None,
            }
        };
        assert_eq!(nearest("text-tools__cuont").as_deref(), Some("text-tools__count"));
        assert_eq!(nearest("weather"), None);
    }
}
