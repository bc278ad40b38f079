//! Rules of calls, as configurations write them: what becomes of the calls of some tools.
//!
//! A [`CallRule`] stands under `[tools]` and speaks of the tools whose names fit its pattern. It may have conditions: on
//! arguments, on what the tool says of itself, on who calls. How rules of several configurations come together is left to
//! [`call_policy`](crate::call_policy).

mod argument;
mod rule;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use argument::{ArgumentPointer, ArgumentTest};
pub use rule::{AnnotationHint, CallRule};
pub(crate) use rule::{CallRuleTable, may_fit_principal};

/// What becomes of a call, from the loosest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallDecision {
    /// It is made.
    Allow,
    /// It is made if somebody approves it.
    Ask,
    /// It is not made.
    Deny,
}

impl CallDecision {
    /// The decision as configurations spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What becomes of calls of which no rule says anything.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum DefaultCallMode {
    /// All are made.
    #[default]
    Trusting,
    /// Calls are made of tools that are known to destroy nothing. All others have to be approved.
    Careful,
    /// None is made.
    Locked,
}

impl DefaultCallMode {
    /// The mode as configurations spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trusting => "trusting",
            Self::Careful => "careful",
            Self::Locked => "locked",
        }
    }

    /// What becomes of the calls of a tool that destroys something, or does not.
    pub(crate) fn decide(self, destructive: Fit) -> CallDecision {
        match self {
            Self::Trusting => CallDecision::Allow,
            Self::Careful if destructive == Fit::No => CallDecision::Allow,
            Self::Careful => CallDecision::Ask,
            Self::Locked => CallDecision::Deny,
        }
    }
}

/// Whether something is as a condition demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    /// It is not.
    No,
    /// Nobody can tell. What forbids or asks holds then, and what allows does not.
    Unclear,
    /// It is.
    Yes,
}

impl Fit {
    pub(crate) fn of(is_so: bool) -> Self {
        if is_so { Self::Yes } else { Self::No }
    }

    /// Whether a rule that decides so speaks of what fits so.
    pub(crate) fn lets_speak(self, decision: CallDecision) -> bool {
        match decision {
            CallDecision::Allow => self == Self::Yes,
            CallDecision::Ask | CallDecision::Deny => self != Self::No,
        }
    }
}

/// What a decision is made of besides the tool.
#[derive(Debug, Clone, Copy)]
pub struct CallFacts<'a> {
    /// The arguments of the call.
    pub arguments: &'a Value,
    /// Whose call it is, if known.
    pub principal: Option<&'a str>,
    /// The profile that the client uses, if it uses one.
    pub profile: Option<&'a str>,
}
