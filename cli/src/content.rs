//! What plugins answer, for people: text as it is, and a word about what is not text.

use tenon_host::types::text::one_line;
use tenon_host::types::{Content, ContentBlock, ResourceBody, ToolResult};

use crate::error::Error;
use crate::output;

/// Prints the text of a result, and what else there is as a word about it. A result whose content says
/// nothing may say it to programs alone.
pub(crate) fn print(result: &ToolResult) -> Result<(), Error> {
    let is_empty =
        |block: &ContentBlock| matches!(&block.body, Content::Text(text) if text.is_empty());
    match &result.structured {
        Some(structured) if result.content.iter().all(is_empty) => output::json_text(structured),
        _ => result.content.iter().try_for_each(block),
    }
}

/// The same for one block of it.
pub(crate) fn block(block: &ContentBlock) -> Result<(), Error> {
    match &block.body {
        Content::Text(text) => output::text(text),
        Content::Image(media) => output::text(&format!(
            "[image: {}, {} bytes]",
            one_line(&media.mime_type),
            media.data.len()
        )),
        Content::Audio(media) => output::text(&format!(
            "[audio: {}, {} bytes]",
            one_line(&media.mime_type),
            media.data.len()
        )),
        Content::ResourceLink(link) => {
            output::text(&format!("[resource: {}, {}]", one_line(&link.name), one_line(&link.uri)))
        }
        Content::Resource(contents) => match &contents.body {
            ResourceBody::Text(text) => output::text(text),
            ResourceBody::Blob(bytes) => output::text(&format!(
                "[resource: {}, {} bytes]",
                one_line(&contents.uri),
                bytes.len()
            )),
        },
        Content::Other(json) => output::text(json),
    }
}
