use super::*;
use crate::Event;
use crate::platform::Platform;
use crate::{Config, HostEnvironment};
use serde_json::json;
use std::fs;
use std::path::Path;
use tempfile::TempDir;
use tenon_config::secret::SecretValues;

/// Scripts, by their ids.
type Scripts<'a> = &'a [(&'a str, &'a str)];

fn config(folder: &Path, settings: &str, scripts: Scripts<'_>) -> Config {
    fs::create_dir(folder).unwrap();
    for (id, script) in scripts {
        fs::write(folder.join(format!("{id}.rhai")), script).unwrap();
    }
    let names: Vec<String> = scripts.iter().map(|(id, _)| format!("{id}.rhai")).collect();
    let text = format!("{settings}\nplugins.scripts = {names:?}");
    Config::parse(&text, folder.join("tenon.toml")).unwrap()
}

/// A host with scripts of a project, and with some of its user's.
async fn platform_of(settings: &str, project: Scripts<'_>, user: Scripts<'_>) -> Platform {
    let folder = TempDir::new().unwrap();
    let project = config(&folder.path().join("project"), settings, project);
    let user = config(&folder.path().join("user"), "", user).of_user();
    let builder = Platform::builder().host_environment(HostEnvironment::default());
    builder.config(project).config(user).build().await.unwrap()
}

async fn platform(settings: &str, scripts: Scripts<'_>) -> Platform {
    platform_of(settings, scripts, &[]).await
}

async fn fire(platform: &Platform, point: HookPoint, context: Value) -> HookReport {
    platform.fire(&point, context, &Caller::default()).await.unwrap()
}

fn custom() -> HookPoint {
    HookPoint::Custom("test:x".into())
}

/// A script that does this at a point of its own.
fn at_custom(deed: &str) -> String {
    format!("hook(\"test:x\", |context| {{ {deed} }});")
}

/// Who was asked, and what each answered.
fn asked(report: &HookReport) -> Vec<(&str, &str)> {
    report.handlers.iter().map(|handler| (&*handler.plugin, handler.outcome)).collect()
}

#[tokio::test]
async fn each_handler_sees_what_those_before_it_left() {
    let [first, second] = ["a", "b"].map(|letter| {
        at_custom(&format!("if \"said\" in context {{ context.said += \"{letter}\"; }}"))
    });
    let platform = platform("", &[("first", &first), ("second", &second)]).await;
    let report = fire(&platform, custom(), json!({ "said": "" })).await;
    assert!(matches!(report.outcome, HookOutcome::Continue));
    assert_eq!(report.context, json!({ "said": "ab" }));
    assert_eq!(asked(&report), [("first", "replace"), ("second", "replace")]);
    let report = fire(&platform, custom(), json!({})).await;
    assert_eq!(asked(&report), [("first", "continue"), ("second", "continue")]);
}

#[tokio::test]
async fn a_veto_ends_the_chain_where_there_may_be_one() {
    let script = "fn BeforePlan(context) { veto(\"no\") } fn AfterPlan(context) { veto(\"no\") }";
    let platform = platform("", &[("first", script), ("second", script)]).await;
    let report = fire(&platform, HookPoint::BeforePlan, json!({ "goal": "x" })).await;
    let HookOutcome::Veto { plugin, reason } = &report.outcome else { panic!("{report:?}") };
    assert_eq!((&**plugin, &**reason), ("first", "no"));
    assert_eq!(asked(&report), [("first", "veto")]);
    let report = fire(&platform, HookPoint::AfterPlan, json!({ "goal": "x" })).await;
    assert!(matches!(report.outcome, HookOutcome::Continue), "{report:?}");
    assert_eq!(asked(&report), [("first", "error"), ("second", "error")]);
}

#[tokio::test]
async fn a_handler_that_fails_is_skipped_or_stops_the_chain_as_is_configured() {
    let scripts = [("first", at_custom("throw \"no\"")), ("second", at_custom("context.b = 1;"))];
    let scripts = scripts.each_ref().map(|(id, script)| (*id, &**script));
    let skips = platform("", &scripts).await;
    let report = fire(&skips, custom(), json!({ "a": 1 })).await;
    assert!(matches!(report.outcome, HookOutcome::Continue), "{report:?}");
    assert_eq!(asked(&report), [("first", "error"), ("second", "replace")]);
    assert_eq!(report.context, json!({ "a": 1, "b": 1 }));
    let stops = platform("hooks.on_failure = \"stop\"", &scripts).await;
    let report = fire(&stops, custom(), json!({ "a": 1 })).await;
    let HookOutcome::Stopped { plugin, .. } = &report.outcome else { panic!("{report:?}") };
    assert_eq!((&**plugin, &*asked(&report)), ("first", &[("first", "error")][..]));
    assert_eq!(report.context, json!({ "a": 1 }));
}

#[tokio::test]
async fn what_an_auditing_handler_decides_is_recorded_and_changes_nothing() {
    let auditing =
        |deed: &str| format!("hook(\"test:x\", #{{ mode: \"audit\" }}, |context| {{ {deed} }});");
    let [vetoes, replaces, fails] =
        ["veto(\"no\")", "context.a = 2;", "throw \"no\""].map(auditing);
    let honoured = at_custom("context.b = 1;");
    let scripts: &[(&str, &str)] =
        &[("vetoes", &vetoes), ("replaces", &replaces), ("fails", &fails), ("last", &honoured)];
    let platform = platform("hooks.on_failure = \"stop\"", scripts).await;
    let report = fire(&platform, custom(), json!({ "a": 1 })).await;
    assert!(matches!(report.outcome, HookOutcome::Continue), "{report:?}");
    assert_eq!(report.context, json!({ "a": 1, "b": 1 }));
    let expected =
        [("vetoes", "veto"), ("replaces", "replace"), ("fails", "error"), ("last", "replace")];
    assert_eq!(asked(&report), expected);
    let audited: Vec<bool> = report.handlers.iter().map(|handler| handler.audited).collect();
    assert_eq!(audited, [true, true, true, false]);
}

#[tokio::test]
async fn what_no_handler_can_read_is_stopped_where_there_is_one() {
    let script = at_custom("context.seen = true;");
    let (guarded, unguarded) =
        (platform("", &[("guard", &script)]).await, platform("", &[("other", "")]).await);
    let nested =
        |depth: usize| json!({ "m": (1..depth).fold(json!([]), |inner, _| json!([inner])) });
    let report = fire(&guarded, custom(), nested(MAX_CONTEXT_DEPTH)).await;
    assert_eq!(asked(&report), [("guard", "replace")], "{report:?}");
    let report = fire(&guarded, custom(), nested(MAX_CONTEXT_DEPTH + 1)).await;
    assert!(matches!(report.outcome, HookOutcome::Stopped { .. }), "{report:?}");
    let error = report.handlers[0].error.as_deref().unwrap();
    assert!(error.contains("nested deeper than 120"), "{error}");
    let report = fire(&unguarded, custom(), nested(MAX_CONTEXT_DEPTH + 1)).await;
    assert!(matches!(report.outcome, HookOutcome::Continue), "{report:?}");
}

#[test]
fn a_value_is_as_deep_as_what_it_has_within_lists_and_objects() {
    let check = |value: Value, depth: usize| {
        assert!(!is_deeper_than(&value, depth), "{value} has {depth} levels at most");
        assert!(depth == 0 || is_deeper_than(&value, depth - 1), "{value} has {depth} levels");
    };
    check(json!(1), 0);
    check(json!([]), 1);
    check(json!({}), 1);
    check(json!({ "a": 1 }), 1);
    check(json!([1, [2]]), 2);
    check(json!({ "a": 1, "b": { "c": [] } }), 3);
}

#[tokio::test]
async fn a_guard_of_the_users_that_fails_is_not_skipped_where_a_project_has_changed_the_context() {
    let (changes, sees) = (at_custom("context.a = 2;"), at_custom("context.a"));
    let fails = at_custom("throw \"no\"");
    for (project, user, is_stopped) in [
        (&changes, &fails, true),
        (&sees, &fails, false),
        // What fails of the project's is its own affair.
        (&fails, &changes, false),
    ] {
        let project = [("first", &**project), ("again", &*at_custom("throw \"no\""))];
        let platform = platform_of("", &project, &[("guard", user)]).await;
        let report = fire(&platform, custom(), json!({ "a": 1 })).await;
        assert_eq!(report.handlers.len(), 3, "{report:?}");
        assert_eq!(report.handlers[2].plugin, "guard");
        let is =
            matches!(&report.outcome, HookOutcome::Stopped { plugin, .. } if &**plugin == "guard");
        assert_eq!(is, is_stopped, "{report:?}");
    }
}

#[tokio::test]
async fn a_chain_has_the_time_that_its_caller_has() {
    let endless = at_custom("loop {}");
    let scripts = [("first", &*endless), ("second", &*endless), ("third", &*endless)];
    let platform = platform("hooks.timeout = \"300ms\"", &scripts).await;
    let caller = Caller { timeout: Some(Duration::from_millis(500)), ..Caller::default() };
    let report = platform.fire(&custom(), json!({}), &caller).await.unwrap();
    // The third is not asked any more.
    assert_eq!(asked(&report), [("first", "error"), ("second", "error")]);
    let HookOutcome::Stopped { plugin, failure } = &report.outcome else { panic!("{report:?}") };
    assert_eq!(&**plugin, "second");
    let Failure::Deadline(time) = failure else { panic!("{failure}") };
    assert!(*time <= Duration::from_millis(200), "{time:?}");
    assert_eq!(
        report.handlers[0].error.as_deref(),
        Some("it gave no answer within 300ms"),
        "{report:?}"
    );
}

#[tokio::test]
async fn a_guard_of_the_users_knows_tools_by_their_names_in_its_users_style() {
    let sees = "fn BeforeToolCall(context) { context.arguments.seen = context.tool; }
                fn AfterToolCall(context) { context.result.content[0].text = context.tool; }
                fn OnError(context) { context.seen = context.tool; }";
    let tool = "tool(#{ name: \"t\", description: \"d\" }, |a| \"\");";
    let style = "names.style = \"namespace::tool\"";
    for (project, user, name) in [
        (&[("p", tool)][..], &[("guard", sees)][..], "p__t"),
        (&[("p", tool), ("q", sees)], &[], "p::t"),
    ] {
        let platform = platform_of(style, project, user).await;
        let context = json!({ "plugin": "p", "tool": "p::t", "arguments": {} });
        let report = fire(&platform, HookPoint::BeforeToolCall, context).await;
        assert_eq!(report.context["arguments"], json!({ "seen": name }), "{report:?}");
        // It is the tool of that name that is called.
        assert_eq!(report.context["tool"], "p::t");
        let content = json!([{ "type": "text", "text": "" }]);
        let context = json!({
            "plugin": "p", "tool": "p::t", "arguments": {}, "result": { "content": content }
        });
        let report = fire(&platform, HookPoint::AfterToolCall, context).await;
        assert_eq!(report.context["result"]["content"][0]["text"], name, "{report:?}");
    }
}

#[tokio::test]
async fn the_record_has_of_a_context_what_no_other_row_has() {
    let script = "fn BeforeToolCall(context) {} fn BeforePlan(context) {}";
    let platform = platform("history.enabled = false", &[("p", script)]).await;
    let mut events = platform.events();
    let recorded = |event: &Event| match event {
        Event::Call(call) => Some(call.fingerprint),
        _ => None,
    };
    let mut of = async |point: HookPoint, context: Value| {
        fire(&platform, point, context).await;
        std::iter::from_fn(|| events.try_next())
            .filter_map(|event| recorded(&event))
            .last()
            .unwrap()
    };
    let plan = of(HookPoint::BeforePlan, json!({ "goal": "x" })).await;
    assert_ne!(plan, of(HookPoint::BeforePlan, json!({ "goal": "y" })).await);
    let call = |tool: &str, text: &str| json!({ "plugin": "p", "tool": tool, "arguments": { "text": text } });
    let first = of(HookPoint::BeforeToolCall, call("a", "x")).await;
    assert_eq!(first, of(HookPoint::BeforeToolCall, call("a", "y")).await);
    assert_ne!(first, of(HookPoint::BeforeToolCall, call("b", "x")).await);
}

#[test]
fn an_outcome_means_what_it_may_at_its_point() {
    let said = |point: HookPoint, outcome: HookDecision| match decide(&point, outcome) {
        Ok(ValidatedDecision::Continue) => "continue".to_string(),
        Ok(ValidatedDecision::Veto(reason)) => format!("veto {reason}"),
        Ok(ValidatedDecision::Replace(Replacement::Context(context))) => context.to_string(),
        Ok(ValidatedDecision::Replace(Replacement::Member { name, value, result })) => {
            format!("{name} {} {}", value.unwrap_or_default(), result.is_some())
        }
        Err(failure) => failure.to_string(),
    };
    let check = |point, outcome, expected: &str| {
        let said = said(point, outcome);
        assert!(said.contains(expected), "{said}");
    };
    let replace = |text: &str| HookDecision::Replace(HookContext::parse(text).unwrap());
    let veto = || HookDecision::Veto("no".into());
    use HookPoint::{AfterPlan, AfterToolCall, BeforePlan, BeforeToolCall};
    check(BeforePlan, HookDecision::Continue, "continue");
    check(BeforePlan, veto(), "veto no");
    check(AfterPlan, veto(), "after-plan cannot be vetoed: it has happened");
    check(BeforePlan, replace(r#"{"goal":"x"}"#), r#"{"goal":"x"}"#);
    check(BeforePlan, replace(r#"{"goal":3}"#), "the new context: ");
    // Of a call only this is changed.
    let call = r#"{"tool":"other","plugin":"other","arguments":{"a":1}}"#;
    check(BeforeToolCall, replace(call), r#"arguments {"a":1} false"#);
    let call = r#"{"tool":"t","plugin":"p","arguments":{},"result":{"content":[]}}"#;
    check(AfterToolCall, replace(call), r#"result {"content":[]} true"#);
}

/// A decision to put a text somewhere.
fn decisions(text: &str) -> [ValidatedDecision; 4] {
    let mut context = HookContext::default();
    context.set("a", text.into());
    let content = json!({ "content": [{ "type": "text", "text": text }] });
    let call = json!({ "tool": "t", "plugin": "p", "arguments": {}, "result": content });
    let call = HookContext::parse(&call.to_string()).unwrap();
    let replaced = decide(&HookPoint::AfterToolCall, HookDecision::Replace(call));
    [
        ValidatedDecision::Continue,
        ValidatedDecision::Replace(Replacement::Context(context)),
        replaced.unwrap(),
        ValidatedDecision::Veto(text.into()),
    ]
}

#[test]
fn secrets_are_masked_in_what_a_handler_answers_and_invisible_characters_shown_in_its_reason() {
    let mut secrets = SecretValues::default();
    secrets.add_value("hunter22");
    let (idle, redactor) = (Arc::<Redactor>::default(), Arc::new(Redactor::new(&secrets)));
    for (redactor, has_secret) in [(&idle, true), (&redactor, false)] {
        for mut decision in decisions("a hunter22").into_iter().skip(1) {
            decision.mask(redactor);
            let said = format!("{decision:?}");
            assert_eq!(said.contains("hunter22"), has_secret, "{said}");
            assert_eq!(said.contains("[redacted]"), !has_secret, "{said}");
        }
    }
    let shown = decisions("a\u{202e}").map(|mut decision| {
        let is_changed = decision.show();
        (is_changed, format!("{decision:?}").contains("\\\\u{202e}"))
    });
    assert_eq!(shown, [(false, false), (false, false), (false, false), (true, true)]);
    assert!(!ValidatedDecision::Veto("plain".into()).show());
}

#[test]
fn a_decision_is_as_long_as_what_it_says_and_a_reason_has_an_end() {
    let lengths = decisions("0123456789").map(|decision| decision.length());
    assert_eq!((lengths[0], lengths[3]), (0, 10));
    assert!(lengths[1] > 10 && lengths[2] > 10, "{lengths:?}");
    let mut veto = ValidatedDecision::Veto("x".repeat(MAX_REASON_BYTES + 1));
    veto.mask(&Arc::default());
    let length = veto.length();
    assert!((MAX_REASON_BYTES / 2..=MAX_REASON_BYTES + 100).contains(&length), "{length}");
    let mut veto = ValidatedDecision::Veto("x".repeat(1000));
    veto.mask(&Arc::default());
    assert_eq!(veto.length(), 1000);
}

#[test]
fn the_record_of_a_handler_says_what_it_decided() {
    let replaced = Replacement::Context(HookContext::default());
    for (decision, expected) in [
        (ValidatedDecision::Continue, "ok"),
        (ValidatedDecision::Replace(replaced), "replace"),
        (ValidatedDecision::Veto("no".into()), "veto"),
    ] {
        assert_eq!(decision.outcome(), expected);
    }
}
