//! Resources: listing and reading what plugins have, always as somebody's explicit act.

use serde_json::json;

use super::pages::{Page, all_pages};
use super::{CallError, Caller, TRUNCATED, redact, served, span_of};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{ResourceBody, ResourceContents};
use crate::register::{Registered, Registry};
use crate::text::cut;
use crate::{shown, wire};

/// Lists the resources of a plugin, all pages of it.
pub(crate) async fn list(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<ListedResource>, CallError> {
    let loaded = with_resources(registry, plugin)?.loaded();
    let mut listed = all_pages("resources", move |cursor| async move {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_resources", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_resources(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await?;
        Ok(Page { items: page.resources, next: page.next })
    })
    .await
    .map_err(CallError::failed(loaded.id()))?;
    listed.iter_mut().for_each(|resource| redact::link(registry.redactor(), &mut resource.link));
    listed.iter_mut().for_each(shown::resource);
    Ok(listed)
}

/// Lists the resource templates of a plugin, all pages of it.
pub(crate) async fn templates(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<ResourceTemplate>, CallError> {
    let loaded = with_resources(registry, plugin)?.loaded();
    let mut listed = all_pages("resource templates", move |cursor| async move {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_templates", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_templates(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await?;
        Ok(Page { items: page.templates, next: page.next })
    })
    .await
    .map_err(CallError::failed(loaded.id()))?;
    listed.iter_mut().for_each(shown::template);
    Ok(listed)
}

/// Asks a plugin to tell when a resource changes, or not to tell any more.
pub(crate) async fn subscribe(
    registry: &Registry,
    plugin: &str,
    uri: &str,
    wanted: bool,
    caller: &Caller,
) -> Result<(), CallError> {
    let loaded = with_resources(registry, plugin)?.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let span = span_of!("subscribe", loaded.id(), caller, context, uri = uri);
    let answer = loaded.plugin().subscribe(uri, wanted, context);
    served(span, registry, caller, timeout, answer).await.map_err(CallError::failed(loaded.id()))
}

/// Reads a resource of a plugin, or the beginning of it.
pub(crate) async fn read(
    registry: &Registry,
    plugin: &str,
    uri: &str,
    most: Option<usize>,
    caller: &Caller,
) -> Result<Vec<ResourceContents>, CallError> {
    let plugin = with_resources(registry, plugin)?;
    let loaded = plugin.loaded();
    let (timeout, context) = caller.context(loaded.limits().wall);
    let span = span_of!("read_resource", loaded.id(), caller, context, uri = uri);
    let answer = loaded.plugin().read_resource(uri, context);
    let read = served(span, registry, caller, timeout, answer).await;
    let mut read = read.map_err(CallError::failed(loaded.id()))?;
    read.iter_mut().for_each(|part| redact::contents(registry.redactor(), part));
    if let Some(most) = most {
        // Only now: half a secret would not be known for one.
        cut_to(&mut read, most);
    }
    Ok(read)
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

/// A plugin that has resources.
fn with_resources<'a>(registry: &'a Registry, id: &str) -> Result<&'a Registered, CallError> {
    let all = registry.plugins().iter().filter(|plugin| plugin.has_resources());
    let ids = all.map(|plugin| &**plugin.loaded().id());
    let plugin = registry.plugin(id).filter(|plugin| plugin.has_resources());
    let plugin = plugin.ok_or_else(|| CallError::not_found("plugin with resources", id, ids))?;
    Ok(plugin)
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
