//! Resources: listing and reading what plugins have, always as somebody's explicit act.

use serde_json::json;
use tenon_types::mcp_json;
use tenon_types::text::cut;
use tenon_types::{
    CallContext, ListedResource, McpOperation, ResourceBody, ResourceContents, ResourceLink,
    ResourceTemplate,
};

use super::mcp_operations::{OperationContext, OperationResult};
use super::pages::{Page, all_pages};
use super::{ReadLimit, TRUNCATED, another_answer};
use crate::call::mask::{Masked, UnmaskToken};
use crate::call::{CallError, Failure};
use crate::runtime::PluginHandle;

/// Lists the resources of a plugin.
pub(crate) async fn list(
    question: OperationContext<'_>,
) -> Result<Masked<Vec<ListedResource>>, CallError> {
    let listed = question.ask(McpOperation::ListResources, json!({})).await?;
    let listed = listed.map(|answer| match answer {
        OperationResult::Resources(listed) => Ok(listed),
        _ => Err(another_answer(question.plugin)),
    });
    listed.transpose()
}

/// Lists the resource templates of a plugin.
pub(crate) async fn templates(
    question: OperationContext<'_>,
) -> Result<Masked<Vec<ResourceTemplate>>, CallError> {
    let listed = question.ask(McpOperation::ListTemplates, json!({})).await?;
    let listed = listed.map(|answer| match answer {
        OperationResult::Templates(listed) => Ok(listed),
        _ => Err(another_answer(question.plugin)),
    });
    listed.transpose()
}

/// Asks a plugin to tell when a resource changes, or not to tell any more.
pub(crate) async fn subscribe(
    question: OperationContext<'_>,
    uri: &str,
    wanted: bool,
) -> Result<(), CallError> {
    let operation = if wanted { McpOperation::Subscribe } else { McpOperation::Unsubscribe };
    question.ask(operation, json!({ "uri": uri })).await.map(drop)
}

/// Reads a resource of a plugin, or the beginning of it.
pub(crate) async fn read(
    question: OperationContext<'_>,
    uri: &str,
    budget: ReadLimit,
) -> Result<Masked<Vec<ResourceContents>>, CallError> {
    let mut arguments = json!(budget);
    arguments["uri"] = uri.into();
    let read = question.ask(McpOperation::ReadResource, arguments).await?;
    let read = read.map(|answer| match answer {
        OperationResult::Contents(read) => Ok(read),
        _ => Err(another_answer(question.plugin)),
    });
    read.transpose()
}

/// All pages of a plugin's list of resources.
pub(super) async fn all(
    plugin: PluginHandle<'_>,
    context: CallContext,
    opening: UnmaskToken,
) -> Result<Vec<ListedResource>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_resources(cursor, context.clone());
        async move {
            let page = page.await.open(opening)?;
            Ok(Page { items: page.resources, next: page.next })
        }
    };
    all_pages("resources", mcp_json::listed_resource, pages).await
}

/// The same of its list of templates.
pub(super) async fn all_templates(
    plugin: PluginHandle<'_>,
    context: CallContext,
    opening: UnmaskToken,
) -> Result<Vec<ResourceTemplate>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_templates(cursor, context.clone());
        async move {
            let page = page.await.open(opening)?;
            Ok(Page { items: page.templates, next: page.next })
        }
    };
    all_pages("resource templates", mcp_json::resource_template, pages).await
}

fn of(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// The length of a resource in a listing, in bytes.
pub(super) fn length_of(resource: &ListedResource) -> usize {
    let ResourceLink { uri, name, title, description, mime_type, size: _ } = &resource.link;
    let texts = of(title) + of(description) + of(mime_type) + of(&resource.extra);
    uri.len() + name.len() + texts
}

/// The same of a template.
pub(super) fn length_of_template(template: &ResourceTemplate) -> usize {
    let ResourceTemplate { uri_template, name, title, description, mime_type, extra } = template;
    uri_template.len() + name.len() + of(title) + of(description) + of(mime_type) + of(extra)
}

/// The same of what was read.
pub(super) fn length_of_contents(contents: &ResourceContents) -> usize {
    let body = match &contents.body {
        ResourceBody::Text(text) => text.len(),
        ResourceBody::Blob(bytes) => bytes.len(),
    };
    body + contents.uri.len() + of(&contents.mime_type) + of(&contents.extra)
}

/// Cuts what was read to so many bytes. What is left out is marked where it was, in words and in
/// the `_meta` of the part: [`TRUNCATED`], with how long the part was and, where the whole is kept, its
/// URI.
pub(crate) fn cut_to(read: &mut Vec<ResourceContents>, most: usize, whole: Option<&str>) {
    let mut left = most;
    for part in read {
        let length = match &part.body {
            ResourceBody::Text(text) => text.len(),
            ResourceBody::Blob(bytes) => bytes.len(),
        };
        if length <= left {
            left -= length;
            continue;
        }
        let place = whole.map(|uri| format!("; the whole is the resource {uri}"));
        let place = place.unwrap_or_default();
        let marker = match &part.body {
            ResourceBody::Text(text) => {
                let start = cut(text, left);
                format!("{start}\n[cut: the first {} of {length} bytes{place}]", start.len())
            }
            // A piece of it would be of no use.
            ResourceBody::Blob(_) => format!("[left out: {length} bytes{place}]"),
        };
        part.body = ResourceBody::Text(marker);
        let mut about = json!({ "bytes": length });
        if let Some(uri) = whole {
            about["uri"] = uri.into();
        }
        mcp_json::insert_meta_of(&mut part.extra, TRUNCATED, &about);
        left = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_is_cut_and_says_so() {
        let part =
            |body| ResourceContents { uri: "x:y".into(), mime_type: None, body, extra: None };
        let text = |text: &str| part(ResourceBody::Text(text.into()));
        let check = |most: usize, expected: &[&str]| {
            let blob = part(ResourceBody::Blob(vec![1, 2, 3]));
            let mut read = vec![text("123"), blob, text("aé")];
            cut_to(&mut read, most, None);
            let texts = read.iter().map(|part| match &part.body {
                ResourceBody::Text(text) => text.as_str(),
                ResourceBody::Blob(_) => "blob",
            });
            assert_eq!(texts.collect::<Vec<_>>(), expected, "{most}");
            let marked = |part: &ResourceContents| part.extra.is_some();
            let words = |part: &ResourceContents| match &part.body {
                ResourceBody::Text(text) => text.contains('['),
                ResourceBody::Blob(_) => false,
            };
            assert!(read.iter().all(|part| marked(part) == words(part)), "{most}");
        };
        check(9, &["123", "blob", "aé"]);
        check(8, &["123", "blob", "a\n[cut: the first 1 of 3 bytes]"]);
        check(5, &["123", "[left out: 3 bytes]", "\n[cut: the first 0 of 3 bytes]"]);
        check(
            1,
            &[
                "1\n[cut: the first 1 of 3 bytes]",
                "[left out: 3 bytes]",
                "\n[cut: the first 0 of 3 bytes]",
            ],
        );
    }
}
