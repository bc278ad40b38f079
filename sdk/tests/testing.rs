//! The scripted host, as authors use it.

use std::time::Duration;

use tenon_sdk::eval::{Evaluation, Subject, finding, summarize};
use tenon_sdk::hook::{Outcome, context::MessageSending};
use tenon_sdk::inference::{self, CompletionRequest};
use tenon_sdk::log::Level;
use tenon_sdk::memory::{self, MemoryEntry};
use tenon_sdk::messaging::{self, OutgoingMessage};
use tenon_sdk::provider::{
    Completion, CompletionSummary, Delta, Deltas, ModelInfo, Part, Provider, StopReason,
    StreamingProvider, TokenUsage,
};
use tenon_sdk::state::Scope;
use tenon_sdk::testing::Host;
use tenon_sdk::user::{Answer, UrlAnswer};
use tenon_sdk::{
    Context, Deserialize, Error, ErrorCode, Failure, JsonSchema, Result, Value, config, eval, hook,
    host_tools, instance, json, log, plugin, secrets, state, tool, user,
};

plugin!(tools: [ask_everybody, patient, r#type], hooks: [sign], evals: [nonempty], streaming_provider: WordsProvider);

/// Turns to the host for whatever its argument names.
#[tool]
async fn ask_everybody(whom: String, context: &Context) -> Result<String> {
    context.progress(1.0, Some(2.0), Some("asking"));
    log::write(Level::Info, "asking", &[("whom", &whom)]);
    Ok(match whom.as_str() {
        "config" => config::get("key")?.unwrap_or_default(),
        "all" => config::all::<Value>()?.to_string(),
        "secret" => secrets::get("key")?,
        "tool" => host_tools::call("slug", json!({ "text": "A b" })).await?.plain_text(),
        "tools" => host_tools::list().await?.into_iter().map(|tool| tool.name).collect(),
        "model" => inference::complete(CompletionRequest::new("m", "hi")).await?.plain_text(),
        "message" => {
            messaging::send(OutgoingMessage::to_channel("ops", "hi")).await?;
            "sent".into()
        }
        "memory" => {
            let found = memory::search("tea", 1).await?;
            found.into_iter().map(|memory| memory.text).collect()
        }
        "caller" => format!(
            "{} {:?} {:?} {:?}",
            context.call_id(),
            context.agent_id(),
            context.session_id(),
            context.time_left()
        ),
        other => return Err(Failure::message(format!("nobody is called {other}"))),
    })
}

/// Has a name that is a word of Rust's.
#[tool]
async fn r#type(r#in: String) -> String {
    r#in
}

/// Counts its calls, and waits to be cancelled when it is told to.
#[tool]
async fn patient(until_cancelled: bool, context: &Context) -> String {
    if until_cancelled {
        context.cancelled().await;
    }
    instance::with(|calls: &mut u32| {
        *calls += 1;
        calls.to_string()
    })
}

#[hook(message_sending)]
async fn sign(mut context: MessageSending) -> Outcome<MessageSending> {
    match &mut context.message {
        None => Outcome::Continue,
        Some(message) if message.is_empty() => Outcome::Veto("an empty message".into()),
        Some(message) => {
            message.push_str(" - signed");
            Outcome::Replace(context)
        }
    }
}

/// Passes when there is an output.
#[eval]
async fn nonempty(subject: Subject) -> Evaluation {
    let mut evaluation =
        summarize(vec![finding("nonempty", !subject.output_text().is_empty(), "it is there")]);
    if subject.output == "much" {
        evaluation.score = 7.0;
    }
    evaluation
}

struct WordsProvider;

impl Provider for WordsProvider {
    const NAME: &'static str = "words";
    const DESCRIPTION: &'static str = "Says two words";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(Vec::new())
    }

    async fn complete(request: CompletionRequest, _: Context) -> Result<Completion> {
        let parts = vec![Part::Text("two words".into())];
        Ok(Completion { parts, summary: summary(request) })
    }
}

impl StreamingProvider for WordsProvider {
    fn check(request: &CompletionRequest) -> Result<()> {
        match request.model.as_str() {
            "words" => Ok(()),
            other => Err(Error::not_found(other).into()),
        }
    }

    async fn stream(
        request: CompletionRequest,
        _: Context,
        mut deltas: Deltas,
    ) -> Result<CompletionSummary> {
        for word in ["two", " words"] {
            deltas.write(Delta::Text(word.into())).await?;
        }
        Ok(summary(request))
    }
}

fn summary(request: CompletionRequest) -> CompletionSummary {
    CompletionSummary {
        model: request.model,
        stop_reason: StopReason::EndTurn,
        usage: TokenUsage { input: 1, output: 2, cached_input: 0, reasoning: 0 },
        extra: None,
    }
}

/// A host that grants everything there is.
fn generous() -> Host {
    Host::new()
        .config(json!({ "key": "value" }))
        .secret("key", "s3cret")
        .tool("slug", |arguments| format!("slug of {}", arguments["text"]))
        .model("m", |request: CompletionRequest| format!("{} said", request.model))
        .messaging(|_| Ok(()))
        .memory(|query, _| {
            let memory = |n| MemoryEntry { text: format!("{query} {n}"), score: 1.0, source: None };
            (0..3).map(memory).collect()
        })
}

#[test]
fn what_is_scripted_is_answered() {
    let check = |whom: &str, expected: &str| {
        let result = generous().call_tool::<ask_everybody>(json!({ "whom": whom }));
        assert_eq!(result.expect(whom).plain_text(), expected);
    };
    check("config", "value");
    check("all", r#"{"key":"value"}"#);
    check("secret", "s3cret");
    check("tool", r#"slug of "A b""#);
    check("tools", "slug");
    check("model", "m said");
    check("message", "sent");
    check("memory", "tea 0");
    check("caller", "call-1 None None None");
}

#[test]
fn what_is_not_scripted_is_not_granted() {
    let check = |whom: &str, method: &str| match Host::new()
        .call_tool::<ask_everybody>(json!({ "whom": whom }))
    {
        Err(Error { code: ErrorCode::Denied, message, .. }) => {
            assert!(message.contains(&format!("`Host::{method}`")), "{message}");
        }
        other => panic!("{whom}: {other:?}"),
    };
    check("secret", "secret");
    check("tool", "tool");
    check("model", "model");
    check("message", "messaging");
    check("memory", "memory");
    let host = Host::new();
    for (whom, expected) in [("config", ""), ("all", "{}"), ("tools", "")] {
        let result = host.call_tool::<ask_everybody>(json!({ "whom": whom })).unwrap();
        assert_eq!(result.plain_text(), expected);
    }
    let unset = Host::new().unset_secret("key");
    let result = unset.call_tool::<ask_everybody>(json!({ "whom": "secret" }));
    assert!(matches!(result, Err(Error { code: ErrorCode::NotFound, .. })), "{result:?}");
}

#[test]
fn a_host_shows_what_the_plugin_did() {
    let host = generous().agent("a").session("s").time_left(Duration::from_secs(2));
    host.run(ask_everybody("message".into(), &host.context())).unwrap();
    let [logged] = &host.logged()[..] else { panic!("{host:?}") };
    assert_eq!((logged.level, logged.message.as_str()), (Level::Info, "asking"));
    assert_eq!(logged.fields, [("whom".to_string(), "message".to_string())]);
    let [progress] = &host.progress()[..] else { panic!("{host:?}") };
    assert_eq!((progress.call_id.as_str(), progress.progress), ("call-1", 1.0));
    assert_eq!(host.messages(), [OutgoingMessage::to_channel("ops", "hi")]);
    let caller = host.run(ask_everybody("caller".into(), &host.context())).unwrap();
    assert_eq!(caller, r#"call-2 Some("a") Some("s") Some(2s)"#);
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_failures_are_shown_to_the_model() {
    let host = Host::new();
    let refused = host.call_tool::<ask_everybody>(json!({ "whom": 3 }));
    assert!(matches!(refused, Err(Error { code: ErrorCode::InvalidInput, .. })), "{refused:?}");
    let failed = host.call_tool::<ask_everybody>(json!({ "whom": "me" })).unwrap();
    assert!(failed.is_error);
    assert_eq!(failed.plain_text(), "nobody is called me");
}

#[test]
fn hooks_are_handled_at_their_points() {
    let host = Host::new();
    let handle = |context| host.handle::<sign>("message-sending", context).unwrap();
    assert_eq!(handle(json!({})), Outcome::Continue);
    assert_eq!(handle(json!({ "message": "" })), Outcome::Veto("an empty message".into()));
    let signed = json!({ "message": "hi - signed", "more": 1 });
    assert_eq!(handle(json!({ "message": "hi", "more": 1 })), Outcome::Replace(signed));
    let elsewhere = host.handle::<sign>("before-plan", json!({}));
    assert!(matches!(elsewhere, Err(Error { code: ErrorCode::NotFound, .. })), "{elsewhere:?}");
}

#[test]
fn strategies_score_from_zero_to_one() {
    let host = Host::new();
    let judge = |output| host.evaluate::<nonempty>(json!({ "output": output }), json!({}));
    assert_eq!(judge("x").unwrap().score, 1.0);
    assert_eq!(judge("").unwrap().score, 0.0);
    assert!(matches!(judge("much"), Err(Error { code: ErrorCode::Failed, .. })));
}

#[test]
fn providers_answer_whole_and_piece_by_piece() {
    let host = Host::new();
    let request = || CompletionRequest::new("words", "say two words");
    assert!(host.models::<WordsProvider>().unwrap().is_empty());
    assert_eq!(host.complete::<WordsProvider>(request()).unwrap().plain_text(), "two words");
    let streamed = host.stream::<WordsProvider>(request()).unwrap();
    assert_eq!(streamed.deltas, [Delta::Text("two".into()), Delta::Text(" words".into())]);
    assert_eq!(streamed.end.unwrap().usage.output, 2);
    let cut = host.stream_at_most::<WordsProvider>(request(), 1).unwrap();
    assert_eq!(cut.deltas.len(), 1);
    assert!(matches!(cut.end, Err(Error { code: ErrorCode::Cancelled, .. })));
    let unknown = host.stream::<WordsProvider>(CompletionRequest::new("other", "x"));
    assert!(matches!(unknown, Err(Error { code: ErrorCode::NotFound, .. })));
}

#[test]
fn state_is_that_of_one_instance() {
    let (one, two) = (Host::new(), Host::new());
    let count = |host: &Host| {
        let arguments = json!({ "until_cancelled": false });
        host.call_tool::<patient>(arguments).unwrap().plain_text()
    };
    assert_eq!([count(&one), count(&one), count(&two)], ["1", "2", "1"]);
    one.restart();
    assert_eq!(count(&one), "1");
}

#[test]
fn a_cancelled_call_that_looks_after_itself_answers() {
    let host = Host::new();
    let context = host.context();
    let answer = host.run(async {
        let cancelling = async { host.cancel(&context) };
        futures::join!(patient(true, &context), cancelling).0
    });
    assert_eq!(answer, "1");
    assert!(context.is_cancelled());
}

#[test]
#[should_panic(expected = "waits for ever")]
fn what_can_never_end_is_told() {
    Host::new().run(std::future::pending())
}

#[test]
fn waiting_for_another_thread_is_no_waiting_for_ever() {
    let (sender, receiver) = futures::channel::oneshot::channel();
    let thread = std::thread::spawn(move || sender.send(1));
    assert_eq!(Host::new().run(receiver), Ok(1));
    thread.join().unwrap().unwrap();
}

#[test]
fn hosts_of_two_threads_do_not_meet() {
    let answers = ["one", "two"].map(|word| {
        std::thread::spawn(move || {
            let host = Host::new().config(json!({ "key": word }));
            host.run(async { config::get::<String>("key") })
        })
    });
    let answers = answers.map(|thread| thread.join().unwrap().unwrap().unwrap());
    assert_eq!(answers, ["one", "two"]);
}

#[test]
fn code_outside_of_any_host_meets_one_that_grants_nothing() {
    assert_eq!(config::get::<String>("key"), Ok(None));
    let host = Host::new().config(json!({ "key": "value" }));
    host.run(async { log::info("inside") });
    log::info("outside");
    assert_eq!(host.logged().len(), 1);
}

#[test]
fn a_name_that_is_a_word_of_rusts_is_a_name() {
    assert_eq!(<r#type as tool::Tool>::NAME, "type");
    let schema = <r#type as tool::Tool>::definition().input_schema;
    assert!(schema.contains("\"in\""), "{schema}");
}

/// Keeps what it is told.
#[tool]
async fn keep(key: String, value: Value) -> Result<String> {
    state::set(&key, &value)?;
    let list = state::bucket(Scope::User).update("list", |list: Option<Vec<Value>>| {
        let mut list = list.unwrap_or_default();
        list.push(value.clone());
        list
    })?;
    Ok(format!("{} of {}", list.len(), state::increment("count", 2)?))
}

#[test]
fn what_a_plugin_keeps_survives_its_instance() {
    let host = Host::new().state(Scope::Session).state(Scope::User);
    let keep = |key: &str| host.call_tool::<keep>(json!({ "key": key, "value": { "n": 1 } }));
    assert_eq!(keep("a").unwrap().plain_text(), "1 of 2");
    host.restart();
    assert_eq!(keep("b").unwrap().plain_text(), "2 of 4");
    host.run(async {
        assert_eq!(state::keys().unwrap(), ["a", "b", "count"]);
        assert_eq!(state::get::<Value>("a").unwrap(), Some(json!({ "n": 1 })));
        assert_eq!(state::get::<Value>("c").unwrap(), None);
        assert!(state::get::<u8>("a").unwrap_err().message.contains("\"a\""));
        state::delete("a").unwrap();
        assert!(!state::Bucket::default().contains("a").unwrap());
        let refused = state::bucket(Scope::Project).get::<Value>("a").unwrap_err();
        assert_eq!(refused.code, ErrorCode::Denied);
        assert!(refused.message.contains("`state = [\"project\"]`"), "{}", refused.message);
    });
}

#[derive(Deserialize, JsonSchema)]
struct TripAnswer {
    city: String,
    nights: u8,
}

/// Books a trip.
#[tool]
async fn book() -> Result<String> {
    Ok(match user::ask::<TripAnswer>("Where to?").await? {
        Answer::Accepted(TripAnswer { city, nights }) => format!("{nights} nights in {city}"),
        Answer::Declined | Answer::Cancelled => "nothing".into(),
    })
}

#[test]
fn a_user_who_is_asked_answers_by_the_schema() {
    let host = Host::new().user(|message, schema| {
        assert_eq!(
            (message, &schema["properties"]["city"]["type"]),
            ("Where to?", &json!("string"))
        );
        Answer::Accepted(json!({ "city": "Ulm", "nights": 2 }))
    });
    assert_eq!(host.call_tool::<book>(json!({})).unwrap().plain_text(), "2 nights in Ulm");
    let host = Host::new().user(|_, _| Answer::Declined);
    assert_eq!(host.call_tool::<book>(json!({})).unwrap().plain_text(), "nothing");
    let host = Host::new().user(|_, _| Answer::Accepted(json!({ "city": 3 })));
    let wrong = host.call_tool::<book>(json!({})).unwrap_err();
    assert!(wrong.message.contains("is not what was asked"), "{wrong:?}");
    let refused = Host::new().call_tool::<book>(json!({})).unwrap_err();
    assert!(refused.message.contains("`user = [\"ask\"]`"), "{refused:?}");
    let host = Host::new().pages(|page| match page.url.as_str() {
        "https://a.example" => UrlAnswer::Accepted,
        _ => UrlAnswer::Cancelled,
    });
    let answer = host.run(user::ask_url("sign in", "https://a.example"));
    assert_eq!(answer.unwrap(), UrlAnswer::Accepted);
}
