//! What stands behind [`#[hook]`](macro@crate::hook).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::base::tenon::plugin::types::Error;
use crate::bindings::hooks::exports::tenon::plugin::hooks as wit;
pub use crate::bindings::hooks::exports::tenon::plugin::hooks::{HookMode, HookRegistration};
use crate::{Context, Failure};

/// The contexts of the well-known points, as types: a handler takes the one of its point.
///
/// ```
/// use tenon_sdk::hook::Outcome;
/// use tenon_sdk::hook::context::MessageSending;
/// use tenon_sdk::hook;
///
/// #[hook(message_sending)]
/// async fn sign(mut context: MessageSending) -> Outcome<MessageSending> {
///     let Some(message) = &mut context.message else { return Outcome::Continue };
///     message.push_str("\nSent with Tenon");
///     Outcome::Replace(context)
/// }
/// # fn main() {}
/// ```
pub use tenon_contexts as context;

/// What a handler decides about a context of type `C`.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<C = serde_json::Value> {
    /// Go on unchanged.
    Continue,
    /// Go on with this context in its place.
    Replace(C),
    /// Stop what was about to happen.
    Veto(String),
}

/// A handler. The attribute implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no hook",
    label = "no `#[hook]`",
    note = "write `#[hook(before_plan)]` above its function, with the points to handle"
)]
pub trait Hook {
    /// The names of the points at which it is called: `before-plan`, or one of a host's own such as
    /// `acme:before-deploy`.
    const POINTS: &'static [&'static str];

    /// Handlers of a greater priority are called earlier.
    const PRIORITY: i32;

    /// Whether the host records its outcome and does not honour it.
    const AUDIT: bool;

    /// Handles an event whose context is JSON.
    fn handle(
        point: &str,
        context: &str,
        call: Context,
    ) -> impl Future<Output = Result<wit::HookOutcome, Failure>>;
}

/// What a handler's function may return: an outcome, alone or in a result.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a hook can return",
    label = "not what a hook returns",
    note = "return `Outcome`, or `Outcome<C>` of the type of the context, alone or in a \
            `Result`"
)]
pub trait IntoOutcome {
    type Context: Serialize;
    fn into_outcome(self) -> crate::Result<Outcome<Self::Context>>;
}

impl<C: Serialize> IntoOutcome for Outcome<C> {
    type Context = C;
    fn into_outcome(self) -> crate::Result<Self> {
        Ok(self)
    }
}

impl<C: Serialize, E: Into<Failure>> IntoOutcome for Result<Outcome<C>, E> {
    type Context = C;
    fn into_outcome(self) -> crate::Result<Outcome<C>> {
        self.map_err(Into::into)
    }
}

/// Reads the context of an event.
#[doc(hidden)]
pub fn parse<C: DeserializeOwned>(context: &str) -> Result<C, Error> {
    crate::error::parse_arguments("hook context", context)
}

/// Writes a decision down.
#[doc(hidden)]
pub fn lower<C: Serialize>(outcome: Outcome<C>) -> Result<wit::HookOutcome, Failure> {
    Ok(match outcome {
        Outcome::Continue => wit::HookOutcome::Continue,
        Outcome::Replace(context) => wit::HookOutcome::Replace(serde_json::to_string(&context)?),
        Outcome::Veto(reason) => wit::HookOutcome::Veto(reason),
    })
}

/// Which point a type is the context of, where it is a well-known one. The constants of single types
/// go before that of [`WellKnownPointFallback`].
#[doc(hidden)]
pub struct PointOfContext<C>(std::marker::PhantomData<C>);

/// Types of which it is not known.
#[doc(hidden)]
pub trait WellKnownPointFallback {
    const POINT: Option<&'static str> = None;
}

impl<C> WellKnownPointFallback for PointOfContext<C> {}

macro_rules! well_known {
    ($($context:ident = $point:literal),* $(,)?) => {$(
        impl PointOfContext<context::$context> {
            pub const POINT: Option<&'static str> = Some($point);
        }
    )*};
}

well_known!(
    BeforePlan = "before-plan",
    AfterPlan = "after-plan",
    BeforeExecute = "before-execute",
    AfterExecute = "after-execute",
    BeforeEvaluate = "before-evaluate",
    AfterEvaluate = "after-evaluate",
    OnLearning = "on-learning",
    OnPattern = "on-pattern",
    MessageReceived = "message-received",
    MessageSending = "message-sending",
    BeforeCompletion = "before-completion",
    AfterCompletion = "after-completion",
    BeforeToolCall = "before-tool-call",
    AfterToolCall = "after-tool-call",
);

/// Whether a context may be that of a handler of these points: that of a well-known point is of no
/// other one.
#[doc(hidden)]
pub const fn fits(point: Option<&str>, handled: &[&str]) -> bool {
    match point {
        Some(point) => handled.len() == 1 && is_among(point, handled),
        None => true,
    }
}

/// Whether a text is one of these, at compile time.
#[doc(hidden)]
pub const fn is_among(text: &str, texts: &[&str]) -> bool {
    let mut i = 0;
    while i < texts.len() {
        if is_same(text.as_bytes(), texts[i].as_bytes()) {
            return true;
        }
        i += 1;
    }
    false
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let mut i = 0;
    while i < one.len() {
        if one[i] != other[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// What a handler is registered as.
#[doc(hidden)]
pub fn registrations<H: Hook>() -> Vec<HookRegistration> {
    let mode = if H::AUDIT { HookMode::Audit } else { HookMode::Enforce };
    let registration =
        |point: &&str| HookRegistration { point: point.to_string(), mode, priority: H::PRIORITY };
    H::POINTS.iter().map(registration).collect()
}

/// The registrations of all handlers, one for each point. Of several handlers the greatest priority counts.
#[doc(hidden)]
pub fn joined(all: impl IntoIterator<Item = HookRegistration>) -> Vec<HookRegistration> {
    let mut joined: Vec<HookRegistration> = Vec::new();
    for registration in all {
        match joined.iter_mut().find(|known| known.point == registration.point) {
            Some(known) => known.priority = known.priority.max(registration.priority),
            None => joined.push(registration),
        }
    }
    joined
}

/// Whether two handlers of one plugin may be called at the same point and are of one mode there, or are called at
/// no point both.
#[doc(hidden)]
pub const fn agree(one: &[&str], audited: bool, other: &[&str], other_audited: bool) -> bool {
    let mut i = 0;
    while i < one.len() {
        if is_among(one[i], other) {
            return audited == other_audited;
        }
        i += 1;
    }
    true
}

/// Whether a text is the name of a point of a host's own: a prefix, a colon and the rest.
#[doc(hidden)]
pub const fn is_prefixed(name: &str) -> bool {
    let name = name.as_bytes();
    let mut i = 0;
    while i < name.len() {
        if name[i] == b':' {
            return i > 0 && i + 1 < name.len();
        }
        i += 1;
    }
    false
}

/// Folds the decision of one handler into those before it, for a plugin with several handlers at a
/// point. The first veto ends the chain.
#[doc(hidden)]
pub fn fold(
    context: &mut String,
    so_far: wit::HookOutcome,
    next: wit::HookOutcome,
) -> wit::HookOutcome {
    match (so_far, next) {
        (_, wit::HookOutcome::Veto(reason)) => wit::HookOutcome::Veto(reason),
        (_, wit::HookOutcome::Replace(json)) => {
            context.clone_from(&json);
            wit::HookOutcome::Replace(json)
        }
        (so_far, wit::HookOutcome::Continue) => so_far,
    }
}
