//! What handlers have answered that are deterministic: asked the same again, they need not run.
//!
//! Which plugins are, the operator says. A fingerprint finds the answer, and the whole question
//! confirms it: fingerprints are easily made to collide, and what is remembered may be a guard's.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tenon_types::HookPoint;

use crate::call::{Caller, Fingerprint};
use crate::observe::history::weight::weigh_members;

/// An outcome that was checked.
#[derive(Debug, Clone)]
pub(crate) enum Decision {
    Continue,
    Replace(Map<String, Value>),
    Veto(String),
}

/// The most answers of one plugin that are remembered.
const MAX_ANSWERS: usize = 256;

/// The largest question and answer together that are remembered, in bytes or so.
const MAX_QUESTION_BYTES: usize = 64 << 10;

/// The answers of one plugin.
#[derive(Default)]
pub(crate) struct HookCache(Mutex<HashMap<Fingerprint, (HookCacheKey, Decision)>>);

/// What a handler is asked.
#[derive(PartialEq)]
pub(crate) struct HookCacheKey {
    fingerprint: Fingerprint,
    point: HookPoint,
    context: Map<String, Value>,
    /// On whose behalf, which handlers get to see as well.
    agent: Option<String>,
    session: Option<String>,
}

impl HookCacheKey {
    pub(crate) fn new(point: &HookPoint, context: &Map<String, Value>, caller: &Caller) -> Self {
        let context = Value::Object(context.clone());
        let fingerprint = Fingerprint::of(&point.to_string(), &context);
        let Value::Object(context) = context else { unreachable!("it was made an object") };
        let (agent, session) = (caller.agent_id.clone(), caller.session_id.clone());
        Self { fingerprint, point: point.clone(), context, agent, session }
    }
}

impl HookCache {
    pub(crate) fn answer(&self, question: &HookCacheKey) -> Option<Decision> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, decision) = answers.get(&question.fingerprint)?;
        (asked == question).then(|| decision.clone())
    }

    pub(crate) fn remember(&self, question: HookCacheKey, decision: &Decision) {
        let replaced = match decision {
            Decision::Replace(context) => weigh_members(context),
            Decision::Continue | Decision::Veto(_) => 0,
        };
        if weigh_members(&question.context) + replaced > MAX_QUESTION_BYTES {
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
            HookCacheKey::new(&HookPoint::BeforePlan, context.as_object().unwrap(), &caller)
        };
        let memory = HookCache::default();
        memory.remember(question("a"), &Decision::Veto("no".into()));
        assert!(matches!(memory.answer(&question("a")), Some(Decision::Veto(_))));
        assert!(memory.answer(&question("b")).is_none());
        // Another question that is made to have the same fingerprint.
        let forged = HookCacheKey { fingerprint: question("a").fingerprint, ..question("b") };
        assert!(memory.answer(&forged).is_none());
        let other = HookCacheKey { agent: Some("other".into()), ..question("a") };
        assert!(memory.answer(&other).is_none());
        // What is large is not kept.
        memory.remember(question(&"x".repeat(MAX_QUESTION_BYTES)), &Decision::Continue);
        assert!(memory.answer(&question(&"x".repeat(MAX_QUESTION_BYTES))).is_none());
    }
}
