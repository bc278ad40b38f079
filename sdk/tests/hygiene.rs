//! An author's items may have the names that the macros could have for their own.

use tenon_sdk::hook::{HookMode, Outcome, registrations};
use tenon_sdk::provider::{Completion, CompletionRequest, ModelInfo, Provider};
use tenon_sdk::testing::Host;
use tenon_sdk::{Context, Error, Result, json, plugin};

mod types {
    use tenon_sdk::{Result, tool};

    /// Greets somebody.
    #[tool]
    pub(super) async fn greet(name: String) -> Result<String> {
        Ok(format!("hello {name}"))
    }
}

struct Plugin;

impl Provider for Plugin {
    const NAME: &'static str = "own";
    const DESCRIPTION: &'static str = "Says nothing";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(Vec::new())
    }

    async fn complete(_: CompletionRequest, _: Context) -> Result<Completion> {
        Err(Error::not_found("there is no model").into())
    }
}

/// Functions with the names of what calls them.
mod callers {
    use tenon_sdk::eval::{Evaluation, Subject, summarize};
    use tenon_sdk::hook::Outcome;
    use tenon_sdk::resource::ListedResource;
    use tenon_sdk::{Context, Value, eval, hook, prompt, resource, tool};

    /// Takes some.
    #[tool]
    pub(super) async fn arguments(arguments: String, _context: &Context) -> String {
        arguments
    }

    #[hook(before_plan, audit, priority = -7)]
    pub(super) async fn point(_context: Value, point: String, _call: &Context) -> Outcome {
        Outcome::Veto(point)
    }

    /// Judges.
    #[eval]
    pub(super) async fn subject(_subject: Subject, _context: &Context) -> Evaluation {
        summarize(Vec::new())
    }

    /// Reads.
    #[resource("uri:{arguments}", list = context)]
    pub(super) async fn uri(#[complete(typed)] arguments: String, _context: &Context) -> String {
        arguments
    }

    async fn context() -> Vec<ListedResource> {
        vec![ListedResource::of([("arguments", "listed")])]
    }

    async fn typed(typed: &str) -> Vec<String> {
        vec![typed.to_string()]
    }

    /// Asks.
    #[prompt]
    pub(super) async fn name(#[complete(others)] name: String, _context: &Context) -> String {
        name
    }

    async fn others(typed: &str) -> Vec<String> {
        vec![typed.to_string()]
    }
}

plugin!(
    tools: [types::greet, callers::arguments],
    hooks: [callers::point],
    evals: [callers::subject],
    resources: [callers::uri],
    prompts: [callers::name],
    completions: [callers::uri, callers::name],
    provider: Plugin,
);

#[test]
fn functions_may_be_called_like_their_callers() {
    let host = Host::new();
    let called = host.call_tool::<callers::arguments>(json!({ "arguments": "a" })).unwrap();
    assert_eq!(called.plain_text(), "a");
    let outcome = host.handle::<callers::point>("before-plan", json!({})).unwrap();
    assert_eq!(outcome, Outcome::Veto("before-plan".into()));
    assert!(host.evaluate::<callers::subject>(json!({ "output": "" }), json!({})).is_ok());
    assert_eq!(host.list_resources::<callers::uri>().unwrap()[0].uri, "uri:listed");
    assert!(host.read_resource::<callers::uri>("uri:x").is_ok());
    let suggested = host.complete_argument::<callers::uri>("arguments", "t", &[]).unwrap();
    assert_eq!(suggested.values, ["t"]);
    assert_eq!(host.get_prompt::<callers::name>(&[("name", "n")]).unwrap().messages.len(), 1);
    let suggested = host.complete_argument::<callers::name>("name", "t", &[]).unwrap();
    assert_eq!(suggested.values, ["t"]);
}

#[test]
fn handlers_register_with_their_options() {
    let [registration] = &registrations::<callers::point>()[..] else { panic!() };
    assert_eq!((registration.mode, registration.priority), (HookMode::Audit, -7));
}

#[test]
fn they_are_the_authors_own() {
    let greeting = Host::new().run(types::greet("Ada".into()));
    assert_eq!(greeting.unwrap(), "hello Ada");
    assert_eq!(<Plugin as Provider>::NAME, "own");
}
