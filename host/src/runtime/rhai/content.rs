//! Content that a script answers with besides text and values: images, sounds, and resources.
//!
//! ```rhai
//! tool(#{ name: "picture", description: "Draws" }, |a| [text("Here it is:"), image(base64_decode(a.png), "image/png")]);
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rhai::{Array, Blob, Dynamic, EvalAltResult, ImmutableString};
use serde_json::Value;
use tenon_types::{
    Content, ContentBlock, Media, ResourceBody, ResourceContents, ResourceLink, ToolResult,
    mcp_json,
};

/// A block of content, as a script has it.
#[derive(Clone)]
pub(super) struct ScriptContent(ContentBlock);

impl From<Content> for ScriptContent {
    fn from(body: Content) -> Self {
        Self(ContentBlock { body, extra: None })
    }
}

/// Puts what makes content into an engine.
pub(super) fn add(engine: &mut rhai::Engine) {
    let media = |data: Blob, mime_type: &str| Media { data, mime_type: mime_type.into() };
    engine
        .register_type_with_name::<ScriptContent>("Content")
        .register_fn("text", |text: &str| ScriptContent::from(Content::Text(text.into())))
        .register_fn("image", move |data: Blob, mime_type: &str| {
            ScriptContent::from(Content::Image(media(data, mime_type)))
        })
        .register_fn("audio", move |data: Blob, mime_type: &str| {
            ScriptContent::from(Content::Audio(media(data, mime_type)))
        })
        .register_fn("resource_link", |uri: &str, name: &str| {
            let (uri, name) = (uri.into(), name.into());
            let (title, description, mime_type, size) = (None, None, None, None);
            let link = ResourceLink { uri, name, title, description, mime_type, size };
            ScriptContent::from(Content::ResourceLink(link))
        })
        .register_fn("embedded", |uri: &str, text: &str, mime_type: &str| {
            embedded(uri, ResourceBody::Text(text.into()), mime_type)
        })
        .register_fn("embedded", |uri: &str, bytes: Blob, mime_type: &str| {
            embedded(uri, ResourceBody::Blob(bytes), mime_type)
        })
        .register_fn("base64_encode", |bytes: Blob| STANDARD.encode(bytes))
        .register_fn("base64_decode", |text: &str| {
            STANDARD.decode(text).map_err(|error| -> Box<EvalAltResult> {
                format!("the text is not base64: {error}").into()
            })
        });
}

fn embedded(uri: &str, body: ResourceBody, mime_type: &str) -> ScriptContent {
    let (uri, mime_type) = (uri.into(), Some(mime_type.into()));
    Content::Resource(ResourceContents { uri, mime_type, body, extra: None }).into()
}

/// The content that a value is: a block, or an array of blocks and texts with one block at least.
pub(super) fn blocks(value: &Dynamic) -> Option<Vec<ContentBlock>> {
    let block = |value: &Dynamic| {
        if let Some(text) = value.read_lock::<ImmutableString>() {
            return Some(ContentBlock { body: Content::Text(text.to_string()), extra: None });
        }
        value.read_lock::<ScriptContent>().map(|content| content.0.clone())
    };
    if value.is::<ScriptContent>() {
        return block(value).map(|block| vec![block]);
    }
    let array = value.read_lock::<Array>()?;
    match array.iter().any(Dynamic::is::<ScriptContent>) {
        true => array.iter().map(block).collect(),
        false => None,
    }
}

/// What a script gets of a result: structured content where there is some, the text of a single text, all blocks else.
pub(crate) fn value_of(result: &ToolResult) -> Value {
    if let Some(structured) = result.structured.as_deref() {
        return serde_json::from_str(structured).unwrap_or_default();
    }
    match &result.content[..] {
        [] => Value::Null,
        [ContentBlock { body: Content::Text(text), .. }] => text.as_str().into(),
        _ => mcp_json::tool_result(result)["content"].take(),
    }
}
