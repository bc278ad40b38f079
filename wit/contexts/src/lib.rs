//! The contexts of the well-known hook points, as Rust types.
//!
//! In the contract a context is a JSON object. Its well-known members are here, one type for each
//! point; whatever else a host puts into a context is kept in `other`, so that reading and writing
//! a context changes nothing. Members that not every host knows are optional. The host and the SDK
//! both re-export these types.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The members of a context that its type does not name.
pub type Other = Map<String, Value>;

/// What a member of a context is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    /// A text.
    Text,
    /// A list of anything.
    List,
    /// An object.
    Object,
    /// Anything that JSON has.
    Any,
}

/// The context of a well-known point.
pub trait PointContext {
    /// Its well-known members. Each may be missing, or `null`.
    const MEMBERS: &'static [MemberInfo];
}

/// A well-known member of a context.
#[derive(Debug)]
pub struct MemberInfo {
    /// Its name.
    pub name: &'static str,
    /// What it is.
    pub kind: MemberKind,
    /// What it means, in a sentence or two.
    pub description: &'static str,
}

/// A context, for documents and tools.
pub struct ContextInfo {
    /// The name of its type.
    pub name: &'static str,
    /// Its point, and when that is reached.
    pub description: &'static str,
    /// Its well-known members.
    pub members: &'static [MemberInfo],
    example: fn() -> Value,
}

impl ContextInfo {
    /// Returns a context as a host could make it: every well-known member is in it.
    pub fn example(&self) -> Value {
        (self.example)()
    }
}

/// The kinds of the types that members have.
trait HasKind {
    const KIND: MemberKind;
}

impl HasKind for String {
    const KIND: MemberKind = MemberKind::Text;
}

impl HasKind for Vec<Value> {
    const KIND: MemberKind = MemberKind::List;
}

impl HasKind for Map<String, Value> {
    const KIND: MemberKind = MemberKind::Object;
}

impl HasKind for Value {
    const KIND: MemberKind = MemberKind::Any;
}

/// Declares the contexts: each a type with its members and `other`, and a row of [`CONTEXTS`] with an example.
macro_rules! contexts {
    ($(
        $(#[doc = $about:literal])*
        $name:ident { $( $(#[doc = $member_about:literal])* $member:ident: $type:ty ),* $(,)? }
        example $example:tt
    )*) => {
        $(
            $(#[doc = $about])*
            #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                $(
                    $(#[doc = $member_about])*
                    #[serde(default, skip_serializing_if = "Option::is_none")]
                    pub $member: Option<$type>,
                )*
                /// Further members.
                #[serde(flatten)]
                pub other: Other,
            }

            impl PointContext for $name {
                const MEMBERS: &'static [MemberInfo] = &[$(
                    MemberInfo {
                        name: stringify!($member),
                        kind: <$type as HasKind>::KIND,
                        description: concat!($($member_about),*),
                    }
                ),*];
            }
        )*

        /// All contexts.
        pub static CONTEXTS: &[ContextInfo] = &[$(
            ContextInfo {
                name: stringify!($name),
                description: concat!($($about),*),
                members: $name::MEMBERS,
                example: || json!($example),
            }
        ),*];
    };
}

contexts! {
    /// `before-plan`: a goal is about to be planned.
    BeforePlan {
        /// What is to be planned.
        goal: String,
    } example { "goal": "Tidy up the repository" }
    /// `after-plan`: there is a plan.
    AfterPlan {
        /// What was planned.
        goal: String,
        /// The steps, in the host's form.
        plan: Vec<Value>,
    } example {
        "goal": "Tidy up the repository",
        "plan": [{ "step": 1, "do": "List the files" }, { "step": 2, "do": "Delete what is generated" }]
    }
    /// `before-execute`: a step is about to run.
    BeforeExecute {
        /// The step, in the host's form.
        step: Value,
    } example { "step": { "step": 1, "do": "List the files" } }
    /// `after-execute`: a step has run.
    AfterExecute {
        /// The step, in the host's form.
        step: Value,
        /// What came of it.
        result: Value,
    } example {
        "step": { "step": 1, "do": "List the files" },
        "result": { "files": ["README.md"] }
    }
    /// `before-evaluate`: an output is about to be scored.
    BeforeEvaluate {
        /// What is judged: an object with `output`, and `input` and `expected` where they matter.
        subject: Map<String, Value>,
    } example {
        "strategy": "checks/length",
        "plugin": "checks",
        "subject": { "input": "Say hello", "output": "Hello, Ada!", "expected": "Hello!" }
    }
    /// `after-evaluate`: an output was scored.
    AfterEvaluate {
        /// What was judged.
        subject: Map<String, Value>,
        /// The evaluation: an object with `score`, `verdict` and `findings`.
        evaluation: Map<String, Value>,
    } example {
        "strategy": "checks/length",
        "plugin": "checks",
        "subject": { "input": "Say hello", "output": "Hello, Ada!", "expected": "Hello!" },
        "evaluation": {
            "score": 0.5,
            "verdict": "fail",
            "findings": [
                { "criterion": "length", "verdict": "fail", "score": 0.5, "reason": "it is too long" }
            ]
        }
    }
    /// `on-learning`: the host keeps something that it has learnt.
    OnLearning {
        /// What.
        learning: Value,
    } example { "learning": { "text": "Ada likes short answers" } }
    /// `on-pattern`: the host has noticed a pattern.
    OnPattern {
        /// Which.
        pattern: Value,
    } example { "pattern": { "text": "The tests run before each commit" } }
    /// `message-received`: a message has come in and is about to be acted on.
    MessageReceived {
        /// Its text.
        message: String,
        /// Where it came from, such as the name of a chat.
        channel: String,
        /// Who sent it.
        sender: String,
    } example { "message": "Hi, is it done?", "channel": "ops", "sender": "ada" }
    /// `message-sending`: a message is about to go out.
    MessageSending {
        /// Its text.
        message: String,
        /// Where it goes, such as the name of a chat.
        channel: String,
        /// Whom it is for.
        recipient: String,
    } example {
        "message": "It is done.",
        "channel": "ops",
        "recipient": "ada",
        "plugin": "reporter"
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
    } example {
        "model": "parrot",
        "plugin": "birds",
        "request": {
            "model": "parrot",
            "messages": [
                { "role": "system", "content": [{ "type": "text", "text": "Be brief." }] },
                { "role": "user", "content": [{ "type": "text", "text": "Say hello." }] }
            ],
            "tools": [
                { "name": "greet", "description": "Greets somebody", "inputSchema": { "type": "object" } }
            ],
            "toolChoice": "auto",
            "maxTokens": 100,
            "temperature": 0.5
        }
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
    } example {
        "model": "parrot",
        "plugin": "birds",
        "request": {
            "model": "parrot",
            "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Say hello." }] }]
        },
        "completion": {
            "model": "parrot",
            "parts": [{ "type": "text", "text": "Hello!" }],
            "stopReason": "end-turn",
            "usage": { "input": 4, "output": 2, "cachedInput": null, "reasoning": null }
        }
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
    } example {
        "tool": "files__read_file",
        "plugin": "files",
        "arguments": { "path": "notes.txt" }
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
    } example {
        "tool": "files__read_file",
        "plugin": "files",
        "arguments": { "path": "notes.txt" },
        "result": { "content": [{ "type": "text", "text": "Buy milk." }], "isError": false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_every_member_and_is_kept() {
        fn check<C: Serialize + serde::de::DeserializeOwned>() {
            let name = std::any::type_name::<C>().rsplit("::").next().unwrap_or_default();
            let info = CONTEXTS.iter().find(|info| info.name == name).expect(name);
            let example = info.example();
            let context: C = serde_json::from_value(example.clone()).expect(name);
            assert_eq!(serde_json::to_value(context).expect(name), example);
            for MemberInfo { name, kind, .. } in info.members {
                let value = &example[*name];
                let is_right = match kind {
                    MemberKind::Text => value.is_string(),
                    MemberKind::List => value.is_array(),
                    MemberKind::Object => value.is_object(),
                    MemberKind::Any => !value.is_null(),
                };
                assert!(is_right, "{}: {name}", info.name);
            }
        }
        check::<BeforePlan>();
        check::<AfterPlan>();
        check::<BeforeExecute>();
        check::<AfterExecute>();
        check::<BeforeEvaluate>();
        check::<AfterEvaluate>();
        check::<OnLearning>();
        check::<OnPattern>();
        check::<MessageReceived>();
        check::<MessageSending>();
        check::<BeforeCompletion>();
        check::<AfterCompletion>();
        check::<BeforeToolCall>();
        check::<AfterToolCall>();
        assert_eq!(CONTEXTS.len(), 14);
    }

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
