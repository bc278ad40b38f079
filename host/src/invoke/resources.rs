//! Resources: listing and reading what plugins have, always as somebody's explicit act.

use std::collections::HashSet;

use super::{CallError, Caller, redact, served, span_of};
use crate::bindings::resources::ListedResource;
use crate::bindings::types::ResourceContents;
use crate::register::{Registered, Registry};
use crate::runtime::Failure;

/// The most pages of a listing.
const PAGES: usize = 1_000;

/// The most resources of one plugin.
const MOST: usize = 10_000;

/// Lists the resources of a plugin, all pages of it.
pub(crate) async fn list(
    registry: &Registry,
    plugin: &str,
    caller: &Caller,
) -> Result<Vec<ListedResource>, CallError> {
    let plugin = with_resources(registry, plugin)?;
    let loaded = plugin.loaded();
    let mut listed = Vec::new();
    let mut seen = HashSet::new();
    let mut cursor = None;
    for _ in 0..PAGES {
        let (timeout, context) = caller.context(loaded.limits().wall);
        let span = span_of!("list_resources", loaded.id(), caller, context, cursor = cursor);
        let answer = loaded.plugin().list_resources(cursor, context);
        let page = served(span, registry, caller, timeout, answer).await;
        let page = page.map_err(CallError::failed(loaded.id()))?;
        listed.extend(page.resources.into_iter().map(|mut resource| {
            redact::link(registry.redactor(), &mut resource.link);
            resource
        }));
        match page.next {
            None => return Ok(listed),
            Some(next) if seen.insert(next.clone()) && listed.len() < MOST => cursor = Some(next),
            Some(_) => break,
        }
    }
    let problem = "its list of resources has no end";
    Err(CallError::failed(loaded.id())(Failure::Contract(problem.into())))
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
