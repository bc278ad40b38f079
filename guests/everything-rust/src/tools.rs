//! The tools.

use schemars::JsonSchema;
use serde::Deserialize;
use tenon_sdk::inference::{self, CompletionRequest};
use tenon_sdk::user::{self, Answer};
use tenon_sdk::{Content, Context, Failure, ResourceContents, Result, log, notify, state, tool};

use crate::resources::{self, WATCHED};
use crate::sample_media::{PNG, WAV};

/// Tests simple text content response
#[tool(read_only)]
pub(crate) async fn test_simple_text() -> String {
    "This is a simple text response for testing.".to_string()
}

/// Tests image content response
#[tool(read_only)]
pub(crate) async fn test_image_content() -> Content {
    Content::image(PNG.to_vec(), "image/png")
}

/// Tests audio content response
#[tool(read_only)]
pub(crate) async fn test_audio_content() -> Content {
    Content::audio(WAV.to_vec(), "audio/wav")
}

/// Tests embedded resource content response
#[tool(read_only)]
pub(crate) async fn test_embedded_resource() -> Content {
    let text = "This is an embedded resource content.";
    let contents = ResourceContents::text("test://embedded-resource", text);
    Content::resource(contents.with_mime_type("text/plain"))
}

/// Tests response with multiple content types (text, image, resource)
#[tool(read_only)]
pub(crate) async fn test_multiple_content_types() -> Vec<Content> {
    let json = r#"{"test":"data","value":123}"#;
    let contents = ResourceContents::text("test://mixed-content-resource", json);
    vec![
        Content::text("Multiple content types test:"),
        Content::image(PNG.to_vec(), "image/png"),
        Content::resource(contents.with_mime_type("application/json")),
    ]
}

/// Tests tool that emits log messages during execution
#[tool(read_only)]
pub(crate) async fn test_tool_with_logging() -> String {
    log::info("Tool execution started");
    pause().await;
    log::info("Tool processing data");
    pause().await;
    log::info("Tool execution completed");
    "Tool with logging executed successfully".to_string()
}

/// Tests tool that reports progress notifications
#[tool(read_only)]
pub(crate) async fn test_tool_with_progress(context: &Context) -> String {
    for step in [0, 50, 100] {
        if step > 0 {
            pause().await;
        }
        let message = format!("Completed step {step} of 100");
        context.progress(f64::from(step), Some(100.0), Some(&message));
    }
    "Tool with progress executed successfully".to_string()
}

/// Tests error response handling
#[tool(read_only)]
pub(crate) async fn test_error_handling() -> Result<()> {
    Err(Failure::message("This tool intentionally returns an error for testing"))
}

/// Diagnostic logging validator tool
#[tool(read_only)]
pub(crate) async fn test_logging_tool() -> String {
    log::info("Diagnostic trace logging activated");
    "Logging evaluated".to_string()
}

/// Changes the watched resource, and says so to whoever subscribed to it
#[tool]
pub(crate) async fn test_update_watched_resource() -> String {
    resources::update();
    notify::resource_updated(WATCHED);
    "Resource updated".to_string()
}

/// Says that the list of tools has changed
#[tool]
pub(crate) async fn test_trigger_tool_change() -> String {
    notify::contributions_changed();
    "Tools changed".to_string()
}

/// Tests server-initiated sampling (LLM completion request)
#[tool]
pub(crate) async fn test_sampling(
    /// The prompt to send to the LLM
    prompt: String,
) -> Result<String> {
    let mut request = CompletionRequest::new("default", prompt);
    request.sampling.max_tokens = Some(100);
    let answer = inference::complete(request).await?;
    Ok(format!("LLM response: {}", answer.plain_text()))
}

/// Who the user says they are.
#[derive(Deserialize, JsonSchema)]
struct User {
    /// User's response
    username: String,
    /// User's email address
    email: Option<String>,
}

/// Tests server-initiated elicitation (user input request)
#[tool]
pub(crate) async fn test_elicitation(
    /// The message to show the user
    message: String,
) -> Result<String> {
    Ok(match user::ask::<User>(&message).await? {
        Answer::Accepted(User { username, email }) => {
            format!("User response: accept, {username}, {}", email.unwrap_or_default())
        }
        Answer::Declined => "User response: decline".to_string(),
        Answer::Cancelled => "User response: cancel".to_string(),
    })
}

/// Remembers a word, and says how many it remembers
#[tool]
pub(crate) async fn test_remember(word: String) -> Result<String> {
    let words = state::update("words", |words: Option<Vec<String>>| {
        let mut words = words.unwrap_or_default();
        words.push(word.clone());
        words
    })?;
    Ok(words.len().to_string())
}

/// Waits until nobody wants an answer any more
#[tool]
pub(crate) async fn test_wait(context: &Context) -> String {
    context.cancelled().await;
    "It was cancelled".to_string()
}

/// Waits 50 ms, in which other calls of the instance go on.
async fn pause() {
    tenon_sdk::sleep(std::time::Duration::from_millis(50)).await;
}
