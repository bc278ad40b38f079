//! Language models through the registry, in one piece and in many.

use futures::StreamExt;
use std::time::Duration;
use tenon_host::types::{
    CompletionRequest, Delta, Error, ErrorCode, ModelTool, Part, StopReason, ToolChoice,
};
use tenon_host::{CallError, Caller, Failure};

use crate::guests;
use crate::support::{RunningPlatform, platform};

async fn providers(mode: &str) -> RunningPlatform {
    platform(&format!(
        "plugins.wasm = [{{ path = {:?}, id = \"echo\", instance = {mode:?} }}, {{ path = {:?}, instance = {mode:?} }}]",
        guests::ECHO_PROVIDER,
        guests::MISBEHAVE
    ))
    .await
}

fn request(model: &str, prompt: &str) -> CompletionRequest {
    let look =
        ModelTool { name: "look".into(), description: "Looks".into(), input_schema: "{}".into() };
    CompletionRequest { tools: vec![look], ..CompletionRequest::new(model, prompt) }
}

#[tokio::test]
async fn models_are_listed_with_their_plugins() {
    let platform = providers("fresh").await;
    let models = platform.models().await;
    let names: Vec<_> =
        models.iter().map(|model| (&*model.plugin, model.info.id.as_str())).collect();
    assert_eq!(names, [("echo", "echo"), ("echo", "echo-reverse")]);
}

#[tokio::test]
async fn an_answer_comes_in_one_piece() {
    let platform = providers("fresh").await;
    for model in ["echo-reverse", "echo/echo-reverse"] {
        let completion =
            platform.complete(request(model, "a b c"), &Caller::default()).await.unwrap();
        assert!(matches!(&completion.parts[..], [Part::Text(text)] if text == "c b a"));
        assert_eq!(completion.summary.usage.output, 3);
    }
    let mut asks_for_tool = request("echo", "x");
    asks_for_tool.tool_choice = ToolChoice::Required;
    let completion = platform.complete(asks_for_tool, &Caller::default()).await.unwrap();
    assert!(
        matches!(&completion.parts[..], [Part::ToolCall(call)] if call.name == "look" && call.arguments == r#"{"text":"x"}"#)
    );
    assert!(matches!(completion.summary.stop_reason, StopReason::ToolUse));
}

#[tokio::test]
async fn an_answer_in_pieces_names_who_gives_it() {
    let platform = providers("fresh").await;
    for model in ["echo-reverse", "echo/echo-reverse"] {
        let answer = platform.stream(request(model, "x"), &Caller::default()).await.unwrap();
        assert_eq!(answer.plugin().map(|plugin| &**plugin), Some("echo"));
    }
}

#[tokio::test]
async fn an_answer_comes_piece_by_piece_on_instances_of_both_kinds() {
    for mode in ["fresh", "shared"] {
        let platform = providers(mode).await;
        let mut limited = request("echo", &"word ".repeat(100));
        limited.sampling.max_tokens = Some(40);
        let mut answer = platform.stream(limited, &Caller::default()).await.unwrap();
        let mut text = String::new();
        while let Some(delta) = answer.next().await {
            let Delta::Text(piece) = delta else { panic!("{delta:?}") };
            text.push_str(&piece);
        }
        assert_eq!(text.split(' ').count(), 40);
        let summary = answer.finish().await.unwrap();
        assert!(matches!(summary.stop_reason, StopReason::MaxTokens));
    }
}

#[tokio::test]
async fn a_bad_request_fails_before_anything_is_written() {
    let platform = providers("fresh").await;
    let mut empty = request("echo", "x");
    empty.messages.clear();
    let result = platform.stream(empty, &Caller::default()).await;
    assert!(matches!(
        result.map(drop),
        Err(CallError::Failed {
            failure: Failure::Answered(Error { code: ErrorCode::InvalidInput, .. }),
            ..
        })
    ));
    let result = platform.complete(request("no-such", "x"), &Caller::default()).await;
    assert!(matches!(result, Err(CallError::NotFound { what: "model", .. })));
}

#[tokio::test]
async fn every_way_in_which_a_stream_goes_wrong_has_an_end() {
    for mode in ["fresh", "shared"] {
        let platform = providers(mode).await;
        let caller = Caller { timeout: Some(Duration::from_millis(500)), ..Caller::default() };
        let open = async |way: &str| {
            platform
                .stream(request(&format!("misbehave/{way}"), "x"), &caller)
                .await
                .expect("it begins")
        };
        let error = open("error").await.finish().await.unwrap_err();
        let failed = Error::failed("in the middle");
        assert!(matches!(&error, Failure::Answered(error) if *error == failed), "{error}");
        let error = open("trap").await.finish().await.unwrap_err();
        assert!(matches!(&error, Failure::Trapped(why) if why.contains("in a stream")), "{error}");
        let error = open("silent").await.finish().await.unwrap_err();
        assert!(matches!(error, Failure::Deadline(_)), "{error}");
        assert!(open("cut").await.finish().await.is_err());
        // A reader that goes away makes an endless writer stop.
        let pieces = open("endless").await.take(1000).count().await;
        assert_eq!(pieces, 1000);
        let summary =
            platform.complete(request("echo/echo", "still here"), &Caller::default()).await;
        assert!(summary.is_ok());
    }
}
