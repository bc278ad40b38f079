//! What a tool answers, and prompts say.

use schemars::JsonSchema;
use serde::Serialize;

use crate::Failure;
pub use crate::bindings::base::tenon::plugin::types::ToolResult;
use crate::bindings::base::tenon::plugin::types::{
    self, ContentBlock, ResourceContents, ResourceLink,
};

/// One piece of an answer or of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Content(ContentBlock);

impl Content {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::plain(types::Content::Text(text.into()))
    }

    /// An image of a media type such as `image/png`.
    pub fn image(data: Vec<u8>, mime_type: impl Into<String>) -> Self {
        Self::plain(types::Content::Image(types::Media { data, mime_type: mime_type.into() }))
    }

    /// A sound of a media type such as `audio/wav`.
    pub fn audio(data: Vec<u8>, mime_type: impl Into<String>) -> Self {
        Self::plain(types::Content::Audio(types::Media { data, mime_type: mime_type.into() }))
    }

    /// A resource, carried along.
    pub fn resource(contents: ResourceContents) -> Self {
        Self::plain(types::Content::Resource(contents))
    }

    /// A pointer to a resource.
    pub fn resource_link(link: ResourceLink) -> Self {
        Self::plain(types::Content::ResourceLink(link))
    }

    fn plain(body: types::Content) -> Self {
        Self(ContentBlock { body, extra: None })
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<Content> for ContentBlock {
    fn from(content: Content) -> Self {
        content.0
    }
}

impl ToolResult {
    /// The texts of the answer, joined by line breaks.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match &block.body {
            types::Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

/// A typed answer: structured content whose schema is `T`'s, and the same as JSON text for readers
/// that know only text.
#[derive(Debug, Clone, PartialEq)]
pub struct Json<T>(pub T);

/// What a tool's function may return. The macro asks for it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a tool can answer",
    label = "not an answer of a tool",
    note = "answer `String`, `Json<…>` for anything that serializes, `Content`, `Vec<Content>`, \
            `ToolResult` or `()`, alone or in a `Result`"
)]
pub trait IntoToolResult {
    fn output_schema() -> Option<String> {
        None
    }

    fn into_tool_result(self) -> crate::Result<ToolResult>;
}

fn answer(content: Vec<ContentBlock>) -> ToolResult {
    ToolResult { content, structured: None, is_error: false, extra: None }
}

impl IntoToolResult for ToolResult {
    fn into_tool_result(self) -> crate::Result<ToolResult> {
        Ok(self)
    }
}

impl IntoToolResult for String {
    fn into_tool_result(self) -> crate::Result<ToolResult> {
        Ok(answer(vec![Content::text(self).into()]))
    }
}

impl IntoToolResult for () {
    fn into_tool_result(self) -> crate::Result<ToolResult> {
        Ok(answer(Vec::new()))
    }
}

impl IntoToolResult for Content {
    fn into_tool_result(self) -> crate::Result<ToolResult> {
        Ok(answer(vec![self.into()]))
    }
}

impl IntoToolResult for Vec<Content> {
    fn into_tool_result(self) -> crate::Result<ToolResult> {
        Ok(answer(self.into_iter().map(Into::into).collect()))
    }
}

impl<T: Serialize + JsonSchema> IntoToolResult for Json<T> {
    fn output_schema() -> Option<String> {
        Some(crate::__private::schema::<T>())
    }

    fn into_tool_result(self) -> crate::Result<ToolResult> {
        let text = serde_json::to_string(&self.0)?;
        let mut result = answer(vec![Content::text(text.clone()).into()]);
        result.structured = Some(text);
        Ok(result)
    }
}

impl<T: IntoToolResult, E: Into<Failure>> IntoToolResult for Result<T, E> {
    fn output_schema() -> Option<String> {
        T::output_schema()
    }

    fn into_tool_result(self) -> crate::Result<ToolResult> {
        self.map_err(Into::into)?.into_tool_result()
    }
}

/// What the model reads of a failure that it may be able to mend.
pub(crate) fn error_result(message: String) -> ToolResult {
    ToolResult { is_error: true, ..answer(vec![Content::text(message).into()]) }
}
