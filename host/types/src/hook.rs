//! The points at which hooks run: one row for each, with its names and the outcomes that it allows.

use serde::Deserialize;
use serde_json::{Map, Value};
use std::fmt;
use std::str::FromStr;
use tenon_contexts::{
    AfterCompletion, AfterEvaluate, AfterExecute, AfterPlan, AfterToolCall, BeforeCompletion,
    BeforeEvaluate, BeforeExecute, BeforePlan, BeforeToolCall, CONTEXTS, ContextInfo, MemberKind,
    MessageReceived, MessageSending, OnLearning, OnPattern, PointContext,
};

use crate::mcp_json;
use crate::name::nearest;
use crate::{CallContext, HookContext, ToolResult};

/// The contexts of the well-known points, as types.
pub use tenon_contexts as context;

/// A moment in a host's work at which hooks run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// An agent is about to plan.
    BeforePlan,
    /// A plan was made.
    AfterPlan,
    /// A step of the plan is about to run.
    BeforeExecute,
    /// A step has run.
    AfterExecute,
    /// A result is about to be evaluated.
    BeforeEvaluate,
    /// A result was evaluated.
    AfterEvaluate,
    /// The host keeps something it learned.
    OnLearning,
    /// The host noticed a pattern.
    OnPattern,
    /// A message came in.
    MessageReceived,
    /// A message is about to go out.
    MessageSending,
    /// A tool is about to be called.
    BeforeToolCall,
    /// A tool has answered.
    AfterToolCall,
    /// A language model is about to be asked.
    BeforeCompletion,
    /// A language model has answered.
    AfterCompletion,
    /// A point that no row of [`POINTS`] has, by its name: one of a host's own, such as `acme:before-deploy`, or one
    /// that a later host has.
    Custom(String),
}

/// A point at which a plugin wants to be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookRegistration {
    /// The point.
    pub point: HookPoint,
    /// What becomes of the outcome.
    pub mode: HookMode,
    /// Handlers of a greater priority are called earlier; those of the same in the order in which plugins were
    /// loaded.
    pub priority: i32,
}

impl HookRegistration {
    /// A handler whose outcome is honoured, of the usual priority.
    pub fn new(point: HookPoint) -> Self {
        Self { point, mode: HookMode::Enforce, priority: 0 }
    }
}

/// What becomes of a handler's outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum HookMode {
    /// The host honours it.
    #[default]
    Enforce,
    /// The host records it, and goes on as if it were [`HookDecision::Continue`].
    Audit,
}

/// A point that was reached.
#[derive(Debug, Clone, PartialEq)]
pub struct HookEvent {
    /// The point.
    pub point: HookPoint,
    /// What the point is about, as the previous handler left it.
    pub context: HookContext,
    /// The call that the event belongs to.
    pub call: CallContext,
}

/// What a handler decided.
#[derive(Debug, Clone, PartialEq)]
pub enum HookDecision {
    /// Go on with the context unchanged.
    Continue,
    /// Go on with this context in its place.
    Replace(HookContext),
    /// Stop what was about to happen; the reason is for people. Points that only report
    /// something which has happened do not allow it, and the host records it as this handler's
    /// error there.
    Veto(String),
}

/// A well-known point.
pub struct PointInfo {
    /// The point.
    pub point: HookPoint,
    /// Its name in commands and in the contract.
    pub name: &'static str,
    /// The name of a script's handler function, and of the type of its context.
    pub function: &'static str,
    /// Whether a handler may veto.
    pub veto: bool,
    /// The only member of the context that handlers can change, if there is one.
    pub subject: Option<&'static str>,
    /// Checks a context against its type.
    check: Check,
}

impl PointInfo {
    /// What its context has.
    pub fn context(&self) -> &'static ContextInfo {
        let found = CONTEXTS.iter().find(|context| context.name == self.function);
        found.expect("each point has a context")
    }
}

type Check = fn(&HookContext) -> Result<ParsedHookContext, String>;

/// What was read of a context when it was checked.
#[derive(Debug, Default)]
pub struct ParsedHookContext {
    /// The result of a tool, where the context has to have one.
    pub result: Option<ToolResult>,
}

/// The well-known points. At each of them a handler may replace the context.
pub static POINTS: [PointInfo; 14] = [
    row(HookPoint::BeforePlan, "before-plan", "BeforePlan", true, is::<BeforePlan>),
    row(HookPoint::AfterPlan, "after-plan", "AfterPlan", false, is::<AfterPlan>),
    row(HookPoint::BeforeExecute, "before-execute", "BeforeExecute", true, is::<BeforeExecute>),
    row(HookPoint::AfterExecute, "after-execute", "AfterExecute", false, is::<AfterExecute>),
    PointInfo {
        point: HookPoint::BeforeEvaluate,
        name: "before-evaluate",
        function: "BeforeEvaluate",
        veto: true,
        subject: Some("subject"),
        check: is::<BeforeEvaluate>,
    },
    row(HookPoint::AfterEvaluate, "after-evaluate", "AfterEvaluate", false, is::<AfterEvaluate>),
    row(HookPoint::OnLearning, "on-learning", "OnLearning", false, is::<OnLearning>),
    row(HookPoint::OnPattern, "on-pattern", "OnPattern", false, is::<OnPattern>),
    row(
        HookPoint::MessageReceived,
        "message-received",
        "MessageReceived",
        true,
        is::<MessageReceived>,
    ),
    PointInfo {
        point: HookPoint::MessageSending,
        name: "message-sending",
        function: "MessageSending",
        veto: true,
        subject: Some("message"),
        check: is::<MessageSending>,
    },
    PointInfo {
        point: HookPoint::BeforeToolCall,
        name: "before-tool-call",
        function: "BeforeToolCall",
        veto: true,
        subject: Some("arguments"),
        check: is_tool_call,
    },
    PointInfo {
        point: HookPoint::AfterToolCall,
        name: "after-tool-call",
        function: "AfterToolCall",
        veto: false,
        subject: Some("result"),
        check: is_tool_result,
    },
    PointInfo {
        point: HookPoint::BeforeCompletion,
        name: "before-completion",
        function: "BeforeCompletion",
        veto: true,
        subject: Some("request"),
        check: is_before_completion,
    },
    PointInfo {
        point: HookPoint::AfterCompletion,
        name: "after-completion",
        function: "AfterCompletion",
        veto: false,
        subject: Some("completion"),
        check: is_after_completion,
    },
];

const fn row(
    point: HookPoint,
    name: &'static str,
    function: &'static str,
    veto: bool,
    check: Check,
) -> PointInfo {
    PointInfo { point, name, function, veto, subject: None, check }
}

/// Checks that the members of a context have the types that the point says. Nothing is made of them: they may be large.
fn is<C: PointContext>(context: &HookContext) -> Result<ParsedHookContext, String> {
    for member in C::MEMBERS {
        if let Some(value) = context.get(member.name) {
            check_kind(member.kind, value).map_err(|error| error.to_string())?;
        }
    }
    Ok(ParsedHookContext::default())
}

fn check_kind(kind: MemberKind, value: &Value) -> serde_json::Result<()> {
    match (kind, value) {
        (MemberKind::Any, _)
        | (_, Value::Null)
        | (MemberKind::Text, Value::String(_))
        | (MemberKind::List, Value::Array(_))
        | (MemberKind::Object, Value::Object(_)) => Ok(()),
        // It fails, and says what the value is.
        (MemberKind::Text, _) => String::deserialize(value).map(drop),
        (MemberKind::List, _) => Vec::<Value>::deserialize(value).map(drop),
        (MemberKind::Object, _) => Map::<String, Value>::deserialize(value).map(drop),
    }
}

/// A call needs arguments.
fn is_tool_call(context: &HookContext) -> Result<ParsedHookContext, String> {
    let checked = is::<BeforeToolCall>(context)?;
    required(context, "arguments").map(|_| checked)
}

/// A result must be valid after all handlers have run.
fn is_tool_result(context: &HookContext) -> Result<ParsedHookContext, String> {
    is::<AfterToolCall>(context)?;
    let result = mcp_json::read_tool_result(required(context, "result")?.clone());
    let result = result.map_err(|error| format!("invalid tool result: {error}"))?;
    Ok(ParsedHookContext { result: Some(result) })
}

/// A model is asked something.
fn is_before_completion(context: &HookContext) -> Result<ParsedHookContext, String> {
    let checked = is::<BeforeCompletion>(context)?;
    required(context, "request").map(|_| checked)
}

fn is_after_completion(context: &HookContext) -> Result<ParsedHookContext, String> {
    let checked = is::<AfterCompletion>(context)?;
    required(context, "completion").map(|_| checked)
}

fn required<'a>(context: &'a HookContext, name: &str) -> Result<&'a Value, String> {
    let value = context.get(name).filter(|value| !value.is_null());
    value.ok_or_else(|| format!("missing field `{name}`"))
}

/// The error for a text that names no hook point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no hook point \"{0}\"; {meant}", meant = meant(.0))]
pub struct UnknownPoint(String);

/// Suggests a point for a text that names none. Plugins in Rust spell points differently.
fn meant(text: &str) -> String {
    let text = text.to_lowercase();
    if text.contains(':') {
        return "a point of your own is written PREFIX:NAME, such as \"acme:deploy\"".into();
    }
    let text = text.replace(['_', ' '], "-");
    let known = POINTS.iter().flat_map(|info| [info.name, info.function]);
    match nearest(&text, known) {
        Some(known) => format!("did you mean \"{known}\"?"),
        None => format!("a point of your own has a prefix, such as \"acme:{text}\""),
    }
}

impl HookPoint {
    /// The point of this name in the contract, whether it is known here or not.
    pub fn named(name: String) -> Self {
        let found = POINTS.iter().find(|info| info.name == name);
        found.map_or(Self::Custom(name), |info| info.point.clone())
    }

    /// Whether it is a point of a host's own, by its name: it has a prefix.
    pub fn has_prefix(&self) -> bool {
        matches!(self, Self::Custom(name) if is_prefixed(name))
    }

    /// Returns the table row of a well-known point.
    pub fn info(&self) -> Option<&'static PointInfo> {
        POINTS.iter().find(|info| info.point == *self)
    }

    /// Checks the types of a context's well-known members. A custom point has none.
    ///
    /// # Errors
    ///
    /// A description of the first member with a wrong type.
    pub fn check(&self, context: &HookContext) -> Result<ParsedHookContext, String> {
        self.info().map_or_else(|| Ok(ParsedHookContext::default()), |info| (info.check)(context))
    }

    /// Whether a handler may veto.
    pub fn allows_veto(&self) -> bool {
        self.info().is_none_or(|info| info.veto)
    }

    /// Returns a context of the point, such as a host could make, with every well-known member. With it a handler
    /// can be tried before a host reaches the point. That of a custom point is empty.
    ///
    /// ```
    /// use tenon_types::HookPoint;
    ///
    /// let context = HookPoint::BeforeToolCall.example_context();
    /// assert_eq!(context["arguments"]["path"], "notes.txt");
    /// ```
    pub fn example_context(&self) -> Value {
        self.info().map_or_else(|| Value::Object(Map::new()), |info| info.context().example())
    }
}

/// Whether a name is one of a host's own: a prefix, a colon and the rest, none of them empty or with spaces.
fn is_prefixed(name: &str) -> bool {
    let is_name = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    name.split_once(':').is_some_and(|(prefix, rest)| is_name(prefix) && is_name(rest))
}

impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.info(), self) {
            (Some(info), _) => f.write_str(info.name),
            (None, Self::Custom(name)) => f.write_str(name),
            (None, point) => write!(f, "{point:?}"),
        }
    }
}

impl FromStr for HookPoint {
    type Err = UnknownPoint;

    /// Reads `before-plan`, `BeforePlan` and the like, or `PREFIX:NAME`.
    fn from_str(text: &str) -> Result<Self, UnknownPoint> {
        if is_prefixed(text) {
            return Ok(Self::Custom(text.to_string()));
        }
        let found = POINTS.iter().find(|info| info.name == text || info.function == text);
        found.map(|info| info.point.clone()).ok_or_else(|| UnknownPoint(text.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn members_have_the_types_that_contexts_say() {
        let check = |point: HookPoint, context: Value, expected: Option<&str>| {
            let Value::Object(members) = context.clone() else { panic!("{context}") };
            let problem = point.check(&members.into()).err();
            assert_eq!(problem.as_deref(), expected, "{context}");
        };
        check(HookPoint::BeforePlan, json!({ "goal": "x", "other": 1 }), None);
        check(HookPoint::BeforePlan, json!({ "goal": null }), None);
        let no_text = "invalid type: integer `1`, expected a string";
        check(HookPoint::BeforePlan, json!({ "goal": 1 }), Some(no_text));
        check(HookPoint::AfterPlan, json!({ "plan": [1] }), None);
        check(HookPoint::AfterPlan, json!({ "plan": null }), None);
        let no_list = "invalid type: map, expected a sequence";
        check(HookPoint::AfterPlan, json!({ "plan": {} }), Some(no_list));
        check(HookPoint::BeforeEvaluate, json!({ "subject": {} }), None);
        check(HookPoint::BeforeEvaluate, json!({ "subject": null }), None);
        let no_object = "invalid type: sequence, expected a map";
        check(HookPoint::BeforeEvaluate, json!({ "subject": [] }), Some(no_object));
        check(HookPoint::AfterExecute, json!({ "result": [1] }), None);
    }

    #[test]
    fn each_point_is_read_by_both_of_its_names() {
        for info in &POINTS {
            assert_eq!(info.name.parse(), Ok(info.point.clone()));
            assert_eq!(info.function.parse(), Ok(info.point.clone()));
            assert_eq!(info.point.to_string(), info.name);
        }
    }

    #[test]
    fn other_points_are_custom_and_say_so() {
        assert_eq!("acme:deploy".parse(), Ok(HookPoint::Custom("acme:deploy".into())));
        assert!("before-lunch".parse::<HookPoint>().is_err());
        assert!(HookPoint::Custom("acme:deploy".into()).allows_veto());
    }

    #[test]
    fn contexts_are_checked_by_their_points() {
        let check = |point: &str, context: Value, expected: Option<&str>| {
            let point: HookPoint = point.parse().unwrap();
            let Value::Object(context) = context else { panic!("a context is an object") };
            let problem = point.check(&context.into()).err();
            assert_eq!(problem.as_deref(), expected, "{point}");
        };
        check("before-plan", json!({ "goal": "g", "more": 1 }), None);
        check("before-plan", json!({}), None);
        check(
            "after-plan",
            json!({ "plan": 3 }),
            Some("invalid type: integer `3`, expected a sequence"),
        );
        check("before-tool-call", json!({ "arguments": {} }), None);
        check("before-tool-call", json!({}), Some("missing field `arguments`"));
        check("before-tool-call", json!({ "arguments": null }), Some("missing field `arguments`"));
        let wrong = json!({ "arguments": [1] });
        check("before-tool-call", wrong, Some("invalid type: sequence, expected a map"));
        let wrong = json!({ "arguments": {}, "tool": 1 });
        check("before-tool-call", wrong, Some("invalid type: integer `1`, expected a string"));
        check("before-evaluate", json!({ "subject": {}, "strategy": "s" }), None);
        let wrong = json!({ "subject": 1 });
        check("before-evaluate", wrong, Some("invalid type: integer `1`, expected a map"));
        let wrong = json!({ "subject": {}, "evaluation": 1 });
        check("after-evaluate", wrong, Some("invalid type: integer `1`, expected a map"));
        check("after-tool-call", json!({ "result": { "content": [] } }), None);
        let broken = json!({ "result": { "content": 1 } });
        check("after-tool-call", broken, Some("invalid tool result: /content: not an array"));
        check("acme:deploy", json!({ "goal": 3 }), None);
        check("before-completion", json!({ "request": {} }), None);
        check("before-completion", json!({}), Some("missing field `request`"));
        let wrong = json!({ "request": 1 });
        check("before-completion", wrong, Some("invalid type: integer `1`, expected a map"));
        check("after-completion", json!({ "request": {}, "completion": {} }), None);
        check("after-completion", json!({ "request": {} }), Some("missing field `completion`"));
        let wrong = json!({ "request": {}, "completion": 1 });
        check("after-completion", wrong, Some("invalid type: integer `1`, expected a map"));
    }

    #[test]
    fn examples_are_contexts_of_their_points_in_the_forms_that_hosts_write() {
        use crate::completion_json;
        for info in &POINTS {
            let Value::Object(context) = info.point.example_context() else {
                panic!("a context is an object")
            };
            info.point.check(&context.clone().into()).expect(info.name);
            for (name, value) in context {
                let written = match &*name {
                    "request" => completion_json::request(
                        &completion_json::read_request(value.clone()).expect(info.name),
                    ),
                    "result" if info.point == HookPoint::AfterToolCall => mcp_json::tool_result(
                        &mcp_json::read_tool_result(value.clone()).expect(info.name),
                    ),
                    "evaluation" => mcp_json::evaluation(
                        &mcp_json::read_evaluation(value.clone()).expect(info.name),
                    ),
                    "completion" => {
                        completion_json::read_parts(&mut value.clone()).expect(info.name);
                        continue;
                    }
                    _ => continue,
                };
                assert_eq!(written, value, "{}: {name}", info.name);
            }
        }
        assert_eq!(HookPoint::Custom("acme:deploy".into()).example_context(), json!({}));
    }

    /// `TENON_BLESS=1` writes what is below the mark.
    #[test]
    fn the_page_on_contexts_has_each_point() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs/reference/hook-contexts.md");
        let mark = "<!-- points -->\n";
        let page = std::fs::read_to_string(&path).expect("the page is there");
        let (above, below) = page.split_once(mark).expect("the page has a mark");
        let expected: String = POINTS.iter().map(section).collect();
        if std::env::var_os("TENON_BLESS").is_some() {
            std::fs::write(&path, format!("{above}{mark}{expected}")).expect("it can be written");
        } else {
            assert!(
                below == expected,
                "hook-contexts.md is to have, as TENON_BLESS=1 writes it:\n{expected}"
            );
        }
    }

    /// A point, for the page on contexts.
    fn section(info: &PointInfo) -> String {
        use crate::hook::context::{MemberInfo, MemberKind};
        let PointInfo { name, veto, subject, .. } = info;
        let context = info.context();
        let about = context.description.trim();
        let about =
            about.strip_prefix(&format!("`{name}`: ")).expect("a description names its point");
        let mut letters = about.chars();
        let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
        let veto = if *veto { "A handler may veto. " } else { "A handler cannot veto. " };
        let changes = subject.map_or("everything".into(), |subject| format!("`{subject}`"));
        let mut text = format!(
            "\n## `{name}`\n\n{first}{}\n\n{veto}It may change {changes}.\n\n| member | type | meaning |\n|---|---|---|\n",
            letters.as_str()
        );
        for MemberInfo { name, kind, description } in context.members {
            let kind = match kind {
                MemberKind::Text => "text",
                MemberKind::List => "list",
                MemberKind::Object => "object",
                MemberKind::Any => "any",
            };
            text.push_str(&format!("| `{name}` | {kind} | {} |\n", description.trim()));
        }
        let mut example = context.example();
        example.sort_all_objects();
        let example = serde_json::to_string_pretty(&example).expect("it is JSON");
        text.push_str(&format!("\n```json\n{example}\n```\n"));
        text
    }

    #[test]
    fn a_name_of_the_contract_is_a_point_whether_it_is_known_or_not() {
        let named = |name: &str| HookPoint::named(name.into());
        for info in &POINTS {
            assert_eq!(named(info.name), info.point);
            assert!(!named(info.name).has_prefix());
        }
        assert!(named("acme:deploy").has_prefix());
        // One of a later version of the contract.
        let later = named("before-lunch");
        assert!(later.info().is_none() && !later.has_prefix());
    }

    #[test]
    fn what_has_happened_cannot_be_vetoed() {
        for info in &POINTS {
            let happened = info.name.starts_with("after-") || info.name.starts_with("on-");
            assert_eq!(info.veto, !happened, "{}", info.name);
        }
    }

    #[test]
    fn points_are_the_same_by_their_names() {
        let custom = |name: &str| HookPoint::Custom(name.into());
        assert_eq!(custom("a"), custom("a"));
        assert_ne!(custom("a"), custom("b"));
        assert_ne!(custom("before-plan"), HookPoint::BeforePlan);
        assert_eq!(custom("x:a").to_string(), "x:a");
        for (row, info) in POINTS.iter().enumerate() {
            assert_eq!(info.point.allows_veto(), info.veto, "{}", info.name);
            for (other, of) in POINTS.iter().enumerate() {
                assert_eq!(info.point == of.point, row == other, "{} {}", info.name, of.name);
            }
        }
    }

    #[test]
    fn what_names_no_point_is_told_what_it_may_mean() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<HookPoint>().unwrap_err().to_string();
            assert_eq!(error, format!("there is no hook point \"{text}\"; {expected}"));
        };
        check("before-plann", "did you mean \"before-plan\"?");
        check("Before_Tool_Call", "did you mean \"before-tool-call\"?");
        check("deploy", "a point of your own has a prefix, such as \"acme:deploy\"");
        let form = "a point of your own is written PREFIX:NAME, such as \"acme:deploy\"";
        ["acme:", ":deploy", "a b:c"].into_iter().for_each(|text| check(text, form));
    }
}
