//! What stands behind [`#[hook]`](macro@crate::hook).

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::base::tenon::plugin::types::Error;
pub use crate::bindings::base::tenon::plugin::types::HookPoint;
use crate::bindings::hook_handler::exports::tenon::plugin::hook_handler as wit;
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
pub trait Hook {
    /// The points it subscribes to.
    fn points() -> Vec<HookPoint>;

    /// Handles an event whose context is JSON.
    fn handle(
        point: &HookPoint,
        context: &str,
        call: Context,
    ) -> impl Future<Output = Result<wit::Outcome, Failure>>;
}

/// Reads the context of an event.
#[doc(hidden)]
pub fn parse<C: DeserializeOwned>(context: &str) -> Result<C, Error> {
    crate::error::parse_arguments("hook context", context)
}

/// Writes a decision down.
#[doc(hidden)]
pub fn lower<C: Serialize>(outcome: Outcome<C>) -> Result<wit::Outcome, Failure> {
    Ok(match outcome {
        Outcome::Continue => wit::Outcome::Continue,
        Outcome::Replace(context) => wit::Outcome::Replace(serde_json::to_string(&context)?),
        Outcome::Veto(reason) => wit::Outcome::Veto(reason),
    })
}

/// Folds the decision of one handler into those before it, for a plugin with several handlers at a
/// point. The first veto ends the chain.
#[doc(hidden)]
pub fn fold(context: &mut String, so_far: wit::Outcome, next: wit::Outcome) -> wit::Outcome {
    match (so_far, next) {
        (_, wit::Outcome::Veto(reason)) => wit::Outcome::Veto(reason),
        (_, wit::Outcome::Replace(json)) => {
            context.clone_from(&json);
            wit::Outcome::Replace(json)
        }
        (so_far, wit::Outcome::Continue) => so_far,
    }
}
