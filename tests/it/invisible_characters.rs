//! What a reader of an answer would not see is visible in it, whatever was asked of a plugin.

use async_trait::async_trait;
use serde_json::{Value, json};
use tenon_host::types::{
    ArgumentCompletion, CallContext, Completion, CompletionReference, CompletionRequest,
    CompletionSummary, Content, ContentBlock, EvalDefinition, Evaluation, Finding, HookDecision,
    HookEvent, HookPoint, HookRegistration, Identity, Json, ModelInfo, Part, Prompt, PromptMessage,
    PromptRole, ProviderDefinition, Reasoning, Registration, ResourceBody, ResourceContents,
    StopReason, Suggestions, TokenUsage, ToolCall, ToolCallResult, ToolDefinition, ToolResult,
    Verdict,
};
use tenon_host::{Call, Caller, Failure, Platform, Plugin, ReadLimit};

use crate::support::{Project, RunningPlatform};

/// A text that reads as another one.
const HIDDEN: &str = "a\u{202e}b";

/// How it is shown in a text, and in JSON, as Rust prints both.
const SHOWN: [&str; 2] = ["a\\\\u{202e}b", "a\\\\u202eb"];

/// As Rust prints it.
const RAW: &str = "a\\u{202e}b";

fn hidden_json() -> Option<String> {
    Some(format!("{{\"x\":\"{HIDDEN}\"}}"))
}

fn block() -> ContentBlock {
    ContentBlock { body: Content::Text(HIDDEN.into()), extra: hidden_json() }
}

/// A plugin all of whose answers hide something.
struct HidingPlugin;

#[async_trait]
impl Plugin for HidingPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let (name, version) = ("hiding", "1.0.0");
        let schema = json!({ "type": "object" });
        Ok(Registration {
            tools: vec![ToolDefinition::new("t", "d", &schema)],
            hooks: vec![HookRegistration::new(HookPoint::Custom("test:veto".into()))],
            providers: vec![ProviderDefinition { name: "p".into(), description: String::new() }],
            evals: vec![EvalDefinition {
                name: "e".into(),
                description: String::new(),
                options_schema: None,
            }],
            resources: true,
            prompts: true,
            ..Registration::new(Identity::new(name, version, ""))
        })
    }

    async fn call_tool(&self, _: &str, _: Json, _: CallContext) -> Result<ToolResult, Failure> {
        Ok(ToolResult {
            content: vec![block()],
            structured: hidden_json(),
            is_error: false,
            extra: hidden_json(),
        })
    }

    async fn handle(&self, _: HookEvent) -> Result<HookDecision, Failure> {
        Ok(HookDecision::Veto(HIDDEN.into()))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        Ok(Vec::new())
    }

    async fn complete(&self, _: CompletionRequest, _: CallContext) -> Result<Completion, Failure> {
        let reasoning = |signature| Part::Reasoning(Reasoning { text: HIDDEN.into(), signature });
        let (id, name) = ("1".to_string(), "t".to_string());
        Ok(Completion {
            parts: vec![
                Part::Text(HIDDEN.into()),
                reasoning(None),
                Part::ToolCall(ToolCall {
                    id: id.clone(),
                    name,
                    arguments: hidden_json().unwrap(),
                }),
                Part::ToolCallResult(ToolCallResult {
                    id,
                    content: vec![block()],
                    is_error: false,
                }),
                Part::Other(hidden_json().unwrap()),
            ],
            summary: CompletionSummary {
                model: "m".into(),
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 },
                extra: hidden_json(),
            },
        })
    }

    async fn evaluate(
        &self,
        _: &str,
        _: Json,
        _: Json,
        _: CallContext,
    ) -> Result<Evaluation, Failure> {
        let (criterion, reason) = (HIDDEN.into(), HIDDEN.into());
        Ok(Evaluation {
            score: 1.0,
            verdict: Verdict::Pass,
            findings: vec![Finding { criterion, verdict: Verdict::Pass, score: None, reason }],
            extra: hidden_json(),
        })
    }

    async fn read_resource(
        &self,
        uri: &str,
        _: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let body = ResourceBody::Text(HIDDEN.into());
        Ok(vec![ResourceContents { uri: uri.into(), mime_type: None, body, extra: hidden_json() }])
    }

    async fn get_prompt(
        &self,
        _: &str,
        _: Vec<(String, String)>,
        _: CallContext,
    ) -> Result<Prompt, Failure> {
        let role = PromptRole::User;
        Ok(Prompt {
            description: Some(HIDDEN.into()),
            messages: vec![PromptMessage { role, content: block(), extra: hidden_json() }],
            extra: hidden_json(),
        })
    }

    async fn suggest(&self, _: ArgumentCompletion, _: CallContext) -> Result<Suggestions, Failure> {
        Ok(Suggestions { values: Vec::new(), total: None, has_more: false, extra: hidden_json() })
    }
}

/// The answers of a platform, each by how it was asked for.
async fn answers(platform: &Platform, caller: &Caller) -> Vec<(&'static str, String)> {
    let call = async |tool: &str, arguments: Value| {
        let call = Call { caller: caller.clone(), ..Call::new(tool, arguments) };
        format!("{:?}", platform.call(call).await)
    };
    let reference = CompletionReference::Prompt("p".into());
    let blank = ArgumentCompletion {
        reference,
        name: "a".into(),
        value: String::new(),
        others: Vec::new(),
    };
    let request = CompletionRequest::new("t/m", "text");
    let veto = HookPoint::Custom("test:veto".into());
    vec![
        ("call", call("t__t", json!({})).await),
        ("read as a tool", call("t__read_resource", json!({ "uri": "a:b" })).await),
        ("prompt as a tool", call("t__get_prompt", json!({ "name": "p" })).await),
        ("read", format!("{:?}", platform.read_resource("t", "a:b", caller).await)),
        ("prompt", format!("{:?}", platform.prompt("t", "p", Vec::new(), caller).await)),
        ("suggest", format!("{:?}", platform.suggest("t", blank, caller).await)),
        ("evaluate", format!("{:?}", platform.evaluate("t/e", json!({}), json!({}), caller).await)),
        ("complete", format!("{:?}", platform.complete(request, caller).await)),
        ("veto", format!("{:?}", platform.fire(&veto, json!({}), caller).await)),
    ]
}

#[tokio::test]
async fn what_a_reader_of_an_answer_would_not_see_is_visible_in_all_of_them() {
    let raw = Caller { raw: true, ..Caller::default() };
    for (settings, caller, is_shown) in [
        ("", Caller::default(), true),
        ("", raw, false),
        ("results.invisible = \"raw\"", Caller::default(), false),
    ] {
        let project = Project::new(settings);
        let builder = project.builder().builtin("t", HidingPlugin);
        let platform = RunningPlatform::new(builder.build().await.expect("it is built"), project);
        for (way, answer) in answers(&platform, &caller).await {
            let shows = SHOWN.iter().any(|shown| answer.contains(shown));
            let hides = SHOWN.iter().fold(answer.clone(), |text, shown| text.replace(shown, ""));
            let hides = hides.contains(RAW);
            // What a prompt says of itself is for reading in any case, as descriptions are.
            let is_right = if is_shown { shows && !hides } else { hides };
            assert!(is_right, "{way}, {settings:?}: {answer}");
        }
        platform.clone().shutdown().await;
    }
}

#[tokio::test]
async fn what_was_too_long_is_kept_as_it_is_and_read_as_it_is_shown() {
    let project = Project::new("limits.output_kib = 1\nplugins.scripts = [\"s.rhai\"]");
    project.write(
        "s.rhai",
        "tool(#{ name: \"t\", description: \"d\" }, |a| { let text = \"a\\u202eb\"; text.pad(4000, 'x'); text })",
    );
    let platform = project.platform().await;
    let result = platform.call(Call::new("s__t", json!({}))).await.unwrap();
    let extra: Value = serde_json::from_str(&result.extra.unwrap()).unwrap();
    let uri = extra["_meta"]["tenon/truncated"]["uri"].as_str().expect("it is kept");
    let text = |read: &[ResourceContents]| match &read[0].body {
        ResourceBody::Text(text) => text.clone(),
        ResourceBody::Blob(_) => panic!("it is text"),
    };
    let whole = platform.read_result(uri).await.unwrap();
    assert!(text(&whole).starts_with(HIDDEN));
    let shown = platform.read_result_within(uri, ReadLimit::default()).await.unwrap();
    assert!(text(&shown).starts_with("a\\u{202e}b"));
}
