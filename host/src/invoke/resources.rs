//! Resources: listing and reading what plugins have, always as somebody's explicit act.

use serde_json::json;

use super::pages::{Page, all_pages};
use super::{Budget, CallError, Question, TRUNCATED, redact};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{CallContext, ResourceBody, ResourceContents};
use crate::register::Registered;
use crate::runtime::{Failure, Plugin};
use crate::text::cut;
use crate::{shown, wire};

/// Lists the resources of a plugin.
pub(crate) async fn list(question: Question<'_>) -> Result<Vec<ListedResource>, CallError> {
    let found = with_resources(&question);
    let list = question.ask("list_resources", json!({}), found, all);
    let mut listed = list.await?;
    let redactor = question.registry.redactor();
    listed.iter_mut().for_each(|resource| redact::resource(redactor, resource));
    listed.iter_mut().for_each(shown::resource);
    Ok(listed)
}

/// Lists the resource templates of a plugin.
pub(crate) async fn templates(question: Question<'_>) -> Result<Vec<ResourceTemplate>, CallError> {
    let found = with_resources(&question);
    let list = question.ask("list_resource_templates", json!({}), found, all_templates);
    let mut listed = list.await?;
    let redactor = question.registry.redactor();
    listed.iter_mut().for_each(|template| redact::template(redactor, template));
    Ok(listed)
}

/// Asks a plugin to tell when a resource changes, or not to tell any more.
pub(crate) async fn subscribe(
    question: Question<'_>,
    uri: &str,
    wanted: bool,
) -> Result<(), CallError> {
    let what = if wanted { "subscribe_resource" } else { "unsubscribe_resource" };
    let found = with_resources(&question);
    let subscribe = question.ask(what, json!({ "uri": uri }), found, |plugin, context| {
        plugin.subscribe(uri, wanted, context)
    });
    subscribe.await
}

/// Reads a resource of a plugin, or the beginning of it.
pub(crate) async fn read(
    question: Question<'_>,
    uri: &str,
    budget: Budget,
) -> Result<Vec<ResourceContents>, CallError> {
    let mut arguments = json!(budget);
    arguments["uri"] = uri.into();
    let found = with_resources(&question);
    let read = question.ask("read_resource", arguments, found, |plugin, context| {
        plugin.read_resource(uri, context)
    });
    let mut read = read.await?;
    let redactor = question.registry.redactor();
    for part in &mut read {
        wire::drop_ours(&mut part.extra);
        redact::contents(redactor, part);
    }
    if let Some(most) = budget.most() {
        // Only now: half a secret would not be known for one.
        cut_to(&mut read, most);
    }
    Ok(read)
}

/// All pages of a plugin's list of resources.
pub(super) async fn all(
    plugin: &dyn Plugin,
    context: CallContext,
) -> Result<Vec<ListedResource>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_resources(cursor, context.clone());
        async { page.await.map(|page| Page { items: page.resources, next: page.next }) }
    };
    all_pages("resources", wire::listed_resource, pages).await
}

/// The same of its list of templates.
pub(super) async fn all_templates(
    plugin: &dyn Plugin,
    context: CallContext,
) -> Result<Vec<ResourceTemplate>, Failure> {
    let pages = move |cursor| {
        let page = plugin.list_templates(cursor, context.clone());
        async { page.await.map(|page| Page { items: page.templates, next: page.next }) }
    };
    let mut listed = all_pages("resource templates", wire::resource_template, pages).await?;
    listed.iter_mut().for_each(shown::template);
    Ok(listed)
}

/// Cuts what was read to so many bytes. What is left out is marked where it was, in words and in
/// the `_meta` of the part: [`TRUNCATED`], with how long the part was.
pub(crate) fn cut_to(read: &mut Vec<ResourceContents>, most: usize) {
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
        let marker = match &part.body {
            ResourceBody::Text(text) => {
                let start = cut(text, left);
                format!("{start}\n[cut: the first {} of {length} bytes]", start.len())
            }
            // A piece of it would be of no use.
            ResourceBody::Blob(_) => format!("[left out: {length} bytes]"),
        };
        part.body = ResourceBody::Text(marker);
        wire::insert_meta_of(&mut part.extra, TRUNCATED, &json!({ "bytes": length }));
        left = 0;
    }
}

/// The plugin that is asked, if it has resources.
fn with_resources<'a>(question: &Question<'a>) -> Result<&'a Registered, CallError> {
    question.of_one_that(Registered::has_resources, "resources", "plugin with resources")
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
            cut_to(&mut read, most);
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
