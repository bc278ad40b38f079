//! The prompts.

use tenon_sdk::prompt::Message;
use tenon_sdk::{Content, ResourceContents, prompt};

use crate::sample_media::PNG;

/// A simple prompt without arguments
#[prompt(title = "Simple Test Prompt")]
pub(crate) async fn test_simple_prompt() -> String {
    "This is a simple prompt for testing.".to_string()
}

/// A prompt with required arguments
#[prompt(title = "Prompt With Arguments")]
pub(crate) async fn test_prompt_with_arguments(
    /// First test argument
    #[complete("paris", "park", "party", "test", "testing")]
    arg1: String,
    /// Second test argument
    arg2: String,
) -> String {
    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
}

/// A prompt that includes an embedded resource
#[prompt(title = "Prompt With Embedded Resource")]
pub(crate) async fn test_prompt_with_embedded_resource(
    /// URI of the resource to embed
    #[argument(name = "resourceUri")]
    resource_uri: String,
) -> Vec<Message> {
    let text = "Embedded resource content for testing.";
    let contents = ResourceContents::text(resource_uri, text).with_mime_type("text/plain");
    vec![
        Message::user(Content::resource(contents)),
        Message::user("Please process the embedded resource above."),
    ]
}

/// A prompt that includes image content
#[prompt(title = "Prompt With Image")]
pub(crate) async fn test_prompt_with_image() -> Vec<Message> {
    vec![
        Message::user(Content::image(PNG.to_vec(), "image/png")),
        Message::user("Please analyze the image above."),
    ]
}
