//! Cutting results that are too long to be passed on. The whole is kept, and the cut result says
//! where.

use serde_json::json;
use std::io;
use std::sync::Arc;
use tenon_types::mcp_json;
use tenon_types::text::cut;
use tenon_types::{Content, ContentBlock, ResourceBody, ResourceLink, ToolResult};

use crate::invoke::stored_results::ResultStore;

/// The member of a result's `_meta` that says that it was cut: `bytes`, how long the whole is, and
/// `uri`, where it is kept.
pub const TRUNCATED: &str = "tenon/truncated";

/// What a block counts besides what it says, in bytes.
pub(super) const BLOCK_OVERHEAD_BYTES: usize = 32;

/// The length of a result, in bytes.
pub(super) fn length(result: &ToolResult) -> usize {
    let others = [&result.structured, &result.extra];
    let others = others.into_iter().flatten().map(String::len);
    // The common case is one block, of which the text is all.
    let single = result.content.len() <= 1;
    let blocks = result.content.iter().map(length_of);
    let blocks = blocks.map(|length| if single { length } else { length + BLOCK_OVERHEAD_BYTES });
    blocks.sum::<usize>() + others.sum::<usize>()
}

/// The length of a block, in bytes.
pub(super) fn length_of(block: &ContentBlock) -> usize {
    let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    of(&block.extra)
        + match &block.body {
            Content::Text(text) | Content::Other(text) => text.len(),
            Content::Image(media) | Content::Audio(media) => {
                media.data.len() + media.mime_type.len()
            }
            Content::ResourceLink(link) => {
                let ResourceLink { uri, name, title, description, mime_type, size: _ } = link;
                uri.len() + name.len() + of(title) + of(description) + of(mime_type)
            }
            Content::Resource(contents) => {
                let body = match &contents.body {
                    ResourceBody::Text(text) => text.len(),
                    ResourceBody::Blob(bytes) => bytes.len(),
                };
                body + contents.uri.len() + of(&contents.mime_type) + of(&contents.extra)
            }
        }
}

/// Cuts a result that has more than `most` bytes, and keeps the whole. Gives its URI as well.
pub(super) async fn bound(
    result: ToolResult,
    most: usize,
    results: &Arc<ResultStore>,
) -> (ToolResult, Option<String>) {
    let length = length(&result);
    if length <= most {
        return (result, None);
    }
    let results = results.clone();
    let kept = tokio::task::spawn_blocking(move || {
        let uri = results.keep(&result);
        (result, uri)
    });
    match kept.await {
        Ok((result, uri)) => {
            let result = cut_to(result, most, length, &uri);
            (result, uri.ok())
        }
        Err(error) => (ToolResult::error(format!("the result was lost: {error}")), None),
    }
}

/// How much longer a cut result is than what was left of it: a word about the rest, and where it is.
const MAX_NOTICE_BYTES: usize = 1 << 10;

/// The same for a result that was cut before, and changed since. The whole stays where it is.
pub(super) fn bound_again(result: ToolResult, most: usize, kept: String) -> ToolResult {
    let length = length(&result);
    match length <= most + MAX_NOTICE_BYTES {
        true => result,
        false => cut_to(result, most, length, &Ok(kept)),
    }
}

/// The beginning of a result, with a word about the rest.
fn cut_to(
    result: ToolResult,
    most: usize,
    length: usize,
    whole: &io::Result<String>,
) -> ToolResult {
    let mut left = most;
    let mut content = Vec::new();
    for block in result.content {
        let length = length_of(&block) + BLOCK_OVERHEAD_BYTES;
        match block.body {
            body if length <= left => {
                left -= length;
                content.push(ContentBlock { body, extra: block.extra });
                continue;
            }
            Content::Text(text) => {
                let body = Content::Text(cut(&text, left).to_string());
                content.push(ContentBlock { body, extra: None });
            }
            _ => {}
        }
        left = 0;
        break;
    }
    let structured = result.structured.filter(|json| json.len() <= left);
    let (place, uri) = match whole {
        Ok(uri) => (format!("the whole is the resource {uri}"), Some(uri)),
        Err(error) => (format!("the rest is lost: {error}"), None),
    };
    let marker = format!("[cut: a part of {length} bytes; {place}]");
    content.push(ContentBlock { body: Content::Text(marker), extra: None });
    content.extend(uri.map(|uri| {
        let link = ResourceLink {
            uri: uri.clone(),
            name: "whole result".into(),
            title: None,
            description: None,
            mime_type: None,
            size: Some(length as u64),
        };
        ContentBlock { body: Content::ResourceLink(link), extra: None }
    }));
    left -= structured.as_ref().map_or(0, String::len);
    let extra = result.extra.filter(|extra| extra.len() <= left);
    let is_error = result.is_error;
    let mut result = ToolResult { content, structured, is_error, extra };
    mcp_json::insert_meta(&mut result, TRUNCATED, &json!({ "bytes": length, "uri": uri }));
    result
}

/// Keeps the first items of several, as many as have so many bytes.
pub(super) fn keep_first<T>(items: &mut Vec<T>, most: usize, length: impl Fn(&T) -> usize) {
    let mut left = most;
    let fits = items.iter().take_while(|item| {
        let length = length(item) + BLOCK_OVERHEAD_BYTES;
        let fits = length <= left;
        left = left.saturating_sub(length);
        fits
    });
    let fits = fits.count();
    items.truncate(fits);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(texts: &[&str], structured: Option<&str>) -> ToolResult {
        let block =
            |text: &&str| ContentBlock { body: Content::Text(text.to_string()), extra: None };
        let structured = structured.map(Into::into);
        ToolResult {
            content: texts.iter().map(block).collect(),
            structured,
            ..ToolResult::text("")
        }
    }

    fn check(result: ToolResult, most: usize, expected: &[&str], structured: bool) {
        let length = length(&result);
        let cut = cut_to(result, most, length, &Ok("tenon://results/x".into()));
        let marker =
            format!("[cut: a part of {length} bytes; the whole is the resource tenon://results/x]");
        let texts = cut.plain_text();
        let mut lines: Vec<&str> = texts.lines().collect();
        assert_eq!(lines.pop(), Some(&*marker));
        assert_eq!(lines, expected);
        assert_eq!(cut.structured.is_some(), structured);
        assert!(matches!(&cut.content.last().unwrap().body, Content::ResourceLink(_)));
        let form = mcp_json::tool_result(&cut);
        assert_eq!(
            form["_meta"][TRUNCATED],
            json!({ "bytes": length, "uri": "tenon://results/x" })
        );
    }

    #[test]
    fn what_fits_stays() {
        check(result(&["one", "two", "three"], None), 72, &["one", "two", "th"], false);
        check(result(&["one", "é"], None), 36, &["one", ""], false);
        check(result(&["one"], Some("[1]")), 38, &["one"], true);
        check(result(&["one", "seventeen letters"], Some("[1]")), 35, &["one", ""], false);
    }

    #[test]
    fn many_small_blocks_are_as_long_as_they_are() {
        assert!(length(&result(&[""; 1000], None)) > 10_000);
    }

    #[test]
    fn what_was_cut_and_changed_is_cut_again_at_most() {
        let kept = || "tenon://results/kept".to_string();
        let short = bound_again(result(&["short"], None), 8, kept());
        assert_eq!(short.plain_text(), "short");
        let long = bound_again(result(&[&"x".repeat(5_000)], None), 8, kept());
        let expected =
            "xxxxxxxx\n[cut: a part of 5000 bytes; the whole is the resource tenon://results/kept]";
        assert_eq!(long.plain_text(), expected);
    }

    #[tokio::test]
    async fn what_is_short_enough_is_not_touched() {
        let results = Arc::new(ResultStore::new(None, Default::default()));
        let (bounded, uri) = bound(result(&["12345"], None), 5, &results).await;
        assert_eq!((bounded.plain_text().as_str(), uri), ("12345", None));
        let (bounded, uri) = bound(result(&["123456"], None), 5, &results).await;
        assert!(bounded.plain_text().starts_with("12345\n[cut: "));
        let whole = results.read(&uri.expect("it is kept")).unwrap();
        assert!(matches!(&whole[0].body, ResourceBody::Text(text) if text == "123456"));
    }
}
