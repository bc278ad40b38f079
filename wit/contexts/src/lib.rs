//! The contexts of the well-known hook points, as Rust types.
//!
//! In the contract a context is a JSON object. Its well-known members are here, one type for each
//! point; whatever else a host puts into a context is kept in `other`, so that reading and writing
//! a context changes nothing. Members that not every host knows are optional. The host and the SDK
//! both re-export these types.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The members of a context that its type does not name.
pub type Other = Map<String, Value>;

/// Declares the contexts: each a type with its members and `other`.
macro_rules! contexts {
    ($(
        $(#[$about:meta])*
        $name:ident { $( $(#[$member_about:meta])* $member:ident: $type:ty ),* $(,)? }
    )*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        pub struct $name {
            $(
                $(#[$member_about])*
                #[serde(default, skip_serializing_if = "Option::is_none")]
                pub $member: Option<$type>,
            )*
            /// Further members.
            #[serde(flatten)]
            pub other: Other,
        }
    )*};
}

contexts! {
    /// `before-plan`: a goal is about to be planned.
    BeforePlan {
        /// What is to be planned.
        goal: String,
    }
    /// `after-plan`: there is a plan.
    AfterPlan {
        /// What was planned.
        goal: String,
        /// The steps, in the host's form.
        plan: Vec<Value>,
    }
    /// `before-execute`: a step is about to run.
    BeforeExecute {
        /// The step, in the host's form.
        step: Value,
    }
    /// `after-execute`: a step has run.
    AfterExecute {
        /// The step, in the host's form.
        step: Value,
        /// What came of it.
        result: Value,
    }
    /// `before-evaluate`: an output is about to be scored.
    BeforeEvaluate {
        /// What is judged: an object with `output`, and `input` and `expected` where they matter.
        subject: Map<String, Value>,
    }
    /// `after-evaluate`: an output was scored.
    AfterEvaluate {
        /// What was judged.
        subject: Map<String, Value>,
        /// The evaluation: an object with `score`, `verdict` and `findings`.
        evaluation: Map<String, Value>,
    }
    /// `on-learning`: the host keeps something that it has learnt.
    OnLearning {
        /// What.
        learning: Value,
    }
    /// `on-pattern`: the host has noticed a pattern.
    OnPattern {
        /// Which.
        pattern: Value,
    }
    /// `message-received`: a message has come in and is about to be acted on.
    MessageReceived {
        /// Its text.
        message: String,
        /// Where it came from, such as the name of a chat.
        channel: String,
        /// Who sent it.
        sender: String,
    }
    /// `message-sending`: a message is about to go out.
    MessageSending {
        /// Its text.
        message: String,
        /// Where it goes, such as the name of a chat.
        channel: String,
        /// Whom it is for.
        recipient: String,
    }
    /// `before-completion`: a language model is about to be asked. Handlers may change the request, but for its model;
    /// the other members say which model it is.
    BeforeCompletion {
        /// The model, as its plugin names it.
        model: String,
        /// The plugin that provides it.
        plugin: String,
        /// The request: an object with `messages`, and `tools` and limits where it has any.
        request: Map<String, Value>,
    }
    /// `after-completion`: a language model has answered. Handlers may change the parts of the answer.
    AfterCompletion {
        /// The model, as its plugin names it.
        model: String,
        /// The plugin that provides it.
        plugin: String,
        /// The request.
        request: Map<String, Value>,
        /// The answer: an object with `parts`, and with how it ended and what it took.
        completion: Map<String, Value>,
    }
    /// `before-tool-call`: a tool is about to be called. Handlers may change the arguments; the
    /// other members say which call it is.
    BeforeToolCall {
        /// The tool's name, as callers use it.
        tool: String,
        /// The plugin that has it.
        plugin: String,
        /// What it will be called with.
        arguments: Map<String, Value>,
    }
    /// `after-tool-call`: a tool has answered. Handlers may change the result; the other members say
    /// which call it was.
    AfterToolCall {
        /// The tool's name, as callers use it.
        tool: String,
        /// The plugin that has it.
        plugin: String,
        /// What it was called with.
        arguments: Map<String, Value>,
        /// Its answer, in the form of an MCP tool result.
        result: Map<String, Value>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_known_is_kept() {
        let form = json!({ "goal": "tidy up", "mood": { "of": ["the", "day"] } });
        let context: BeforePlan = serde_json::from_value(form.clone()).unwrap();
        assert_eq!(context.goal.as_deref(), Some("tidy up"));
        assert_eq!(serde_json::to_value(context).unwrap(), form);
    }

    #[test]
    fn a_member_of_another_type_is_an_error() {
        assert!(serde_json::from_value::<BeforePlan>(json!({ "goal": 3 })).is_err());
        assert!(serde_json::from_value::<BeforeToolCall>(json!({ "arguments": [] })).is_err());
        assert!(serde_json::from_value::<OnPattern>(json!({ "pattern": [1] })).is_ok());
    }
}
