//! What handlers have answered that are deterministic: asked the same again, they need not run.
//!
//! Which plugins are, the operator says. A fingerprint finds the answer, and the whole question
//! confirms it: fingerprints are easily made to collide, and what is remembered may be a guard's.

use serde_json::{Map, Value};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::Fingerprint;
use super::hooks::Decision;
use crate::bindings::types::HookPoint;

/// The most answers of one plugin that are remembered.
const MOST: usize = 256;

/// The answers of one plugin.
#[derive(Default)]
pub(crate) struct Memory(Mutex<HashMap<Fingerprint, (Question, Decision)>>);

/// What a handler is asked.
#[derive(PartialEq)]
pub(super) struct Question {
    fingerprint: Fingerprint,
    point: HookPoint,
    context: Map<String, Value>,
}

impl Question {
    pub(super) fn new(point: &HookPoint, context: &Map<String, Value>) -> Self {
        let context = Value::Object(context.clone());
        let fingerprint = Fingerprint::of(&point.to_string(), &context);
        let Value::Object(context) = context else { unreachable!("it was made an object") };
        Self { fingerprint, point: point.clone(), context }
    }
}

impl Memory {
    pub(super) fn answer(&self, question: &Question) -> Option<Decision> {
        let answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, decision) = answers.get(&question.fingerprint)?;
        (asked == question).then(|| decision.clone())
    }

    pub(super) fn remember(&self, question: Question, decision: &Decision) {
        let mut answers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if answers.len() >= MOST {
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
            Question::new(&HookPoint::BeforePlan, context.as_object().unwrap())
        };
        let memory = Memory::default();
        memory.remember(question("a"), &Decision::Veto("no".into()));
        assert!(matches!(memory.answer(&question("a")), Some(Decision::Veto(_))));
        assert!(memory.answer(&question("b")).is_none());
        // Another question that is made to have the same fingerprint.
        let forged = Question { fingerprint: question("a").fingerprint, ..question("b") };
        assert!(memory.answer(&forged).is_none());
    }
}
