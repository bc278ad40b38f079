//! What handlers have answered that are deterministic: asked the same again, they need not run.
//!
//! Which plugins are, the operator says. A fingerprint finds the answer, and the whole question
//! confirms it: fingerprints are easily made to collide, and what is remembered may be a guard's.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_types::{HookContext, HookPoint, ToolResult};

use crate::call::{CallFingerprint, Caller};
use crate::observe::history::weight::{weigh, weigh_members};

/// An outcome that was checked.
#[derive(Debug, Clone)]
pub(crate) enum ValidatedDecision {
    Continue,
    Replace(Replacement),
    Veto(String),
}

/// What a handler puts in place of a context, as far as the point lets it.
#[derive(Debug, Clone)]
pub(crate) enum Replacement {
    /// Another context.
    Context(HookContext),
    /// Another value of the one member that handlers can change at the point, or none.
    Member {
        name: &'static str,
        value: Option<Arc<Value>>,
        /// The value as the result of a tool, where it is one.
        result: Option<Box<ToolResult>>,
    },
}

impl Replacement {
    /// How much of a context it puts there, in bytes or so.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Context(context) => weigh_members(context.members()),
            Self::Member { value, .. } => value.as_deref().map_or(0, weigh),
        }
    }
}

/// The most answers of one plugin that are remembered.
const MAX_ANSWERS: usize = 256;

/// The largest question and answer together that are remembered, in bytes or so.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// The answers of one plugin.
#[derive(Default)]
pub(crate) struct HookCache(Mutex<HashMap<CallFingerprint, (HookQuestion, ValidatedDecision)>>);

/// What a handler is asked.
#[derive(PartialEq)]
pub(crate) struct HookQuestion {
    fingerprint: CallFingerprint,
    point: HookPoint,
    context: HookContext,
    /// On whose behalf, which handlers get to see as well.
    agent: Option<String>,
    session: Option<String>,
}

impl HookQuestion {
    pub(crate) fn new(point: &HookPoint, context: &HookContext, caller: &Caller) -> Self {
        let fingerprint = CallFingerprint::of_members(&point.to_string(), context.members());
        let (agent, session) = (caller.agent_id.clone(), caller.session_id.clone());
        Self { fingerprint, point: point.clone(), context: context.clone(), agent, session }
    }
}

impl HookCache {
    pub(crate) fn answer(&self, question: &HookQuestion) -> Option<ValidatedDecision> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, decision) = answers.get(&question.fingerprint)?;
        (asked == question).then(|| decision.clone())
    }

    pub(crate) fn remember(&self, question: HookQuestion, decision: &ValidatedDecision) {
        let replaced = match decision {
            ValidatedDecision::Replace(replacement) => replacement.weight(),
            ValidatedDecision::Continue | ValidatedDecision::Veto(_) => 0,
        };
        if weigh_members(question.context.members()) + replaced > MAX_QUESTION_BYTES {
            return;
        }
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MAX_ANSWERS {
            answers.clear();
        }
        answers.insert(question.fingerprint, (question, decision.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_very_same_question_has_the_answer() {
        let question = |goal: &str| {
            let context = json!({ "goal": goal });
            let caller = Caller::default();
            let context = HookContext::from(context.as_object().unwrap().clone());
            HookQuestion::new(&HookPoint::BeforePlan, &context, &caller)
        };
        let memory = HookCache::default();
        memory.remember(question("a"), &ValidatedDecision::Veto("no".into()));
        assert!(matches!(memory.answer(&question("a")), Some(ValidatedDecision::Veto(_))));
        assert!(memory.answer(&question("b")).is_none());
        // Another question that is made to have the same fingerprint.
        let forged = HookQuestion { fingerprint: question("a").fingerprint, ..question("b") };
        assert!(memory.answer(&forged).is_none());
        let other = HookQuestion { agent: Some("other".into()), ..question("a") };
        assert!(memory.answer(&other).is_none());
        // What is large is not kept.
        memory.remember(question(&"x".repeat(MAX_QUESTION_BYTES)), &ValidatedDecision::Continue);
        assert!(memory.answer(&question(&"x".repeat(MAX_QUESTION_BYTES))).is_none());
    }
}
