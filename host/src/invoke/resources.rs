//! Resources: listing and reading what plugins have, always as somebody's explicit act.

use super::pages::{Page, all_pages};
use super::{CallError, Caller, redact, served, span_of};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::ResourceContents;
use crate::register::{Registered, Registry};

/// Lists the resources of a plugin, all pages of it.
pub(crate) async fn list(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<ListedResource>, CallError> {
    let loaded = with_resources(registry, plugin)?.loaded();
    let mut listed = all_pages(loaded.id(), "resources", async |cursor| {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_resources", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_resources(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await;
        let page = page.map_err(CallError::failed(loaded.id()))?;
        Ok(Page { items: page.resources, next: page.next })
    })
    .await?;
    listed.iter_mut().for_each(|resource| redact::link(registry.redactor(), &mut resource.link));
    Ok(listed)
}

/// Lists the resource templates of a plugin, all pages of it.
pub(crate) async fn templates(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<ResourceTemplate>, CallError> {
    let loaded = with_resources(registry, plugin)?.loaded();
    all_pages(loaded.id(), "resource templates", async |cursor| {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_templates", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_templates(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await;
        let page = page.map_err(CallError::failed(loaded.id()))?;
        Ok(Page { items: page.templates, next: page.next })
    })
    .await
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

/// Reads a resource of a plugin.
pub(crate) async fn read(
    registry: &Registry,
    plugin: &str,
    uri: &str,
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
    Ok(read)
}

/// A plugin that has resources.
fn with_resources<'a>(registry: &'a Registry, id: &str) -> Result<&'a Registered, CallError> {
    let all = registry.plugins().iter().filter(|plugin| plugin.has_resources());
    let ids = all.map(|plugin| &**plugin.loaded().id());
    let plugin = registry.plugin(id).filter(|plugin| plugin.has_resources());
    let plugin = plugin.ok_or_else(|| CallError::not_found("plugin with resources", id, ids))?;
    Ok(plugin)
}
