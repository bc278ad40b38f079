//! How the exports of resources are served: by a table of what the plugin has. Functions over tables are
//! there once, whatever a plugin has, which keeps its component small.

use std::pin::Pin;

use super::{About, ListedResource, Resource, ResourceContents, ResourceLink, UriTemplate, listed};
use crate::bindings::resources::exports::tenon::plugin::resources as wit;
use crate::error::unknown;
use crate::paging::{owned, page};
use crate::{Arguments, Context, Error, Failure, log};

type Reading<'a> = Pin<Box<dyn Future<Output = Result<Vec<ResourceContents>, Failure>> + 'a>>;
type Listing<'a> = Pin<Box<dyn Future<Output = Result<Vec<wit::ListedResource>, Failure>> + 'a>>;

/// A resource, or a family of them.
#[doc(hidden)]
pub struct Entry {
    template: &'static UriTemplate,
    about: &'static About,
    read: for<'a> fn(&'a str, Arguments, Context) -> Reading<'a>,
    list: Option<for<'a> fn(&'a Context) -> Listing<'a>>,
}

/// The entry of a resource.
#[doc(hidden)]
pub const fn entry<R: Resource>() -> Entry {
    Entry {
        template: const { &R::TEMPLATE },
        about: const { &R::ABOUT },
        read: |uri, arguments, context| Box::pin(R::read(uri, arguments, context)),
        list: if R::LISTS { Some(|context| Box::pin(list_of::<R>(context))) } else { None },
    }
}

/// Lists a page of the resources, and of what there is now of each family.
#[doc(hidden)]
pub async fn list(
    entries: &[Entry],
    cursor: Option<String>,
    context: Context,
) -> Result<wit::ResourcePage, Error> {
    let mut all = Vec::new();
    for Entry { template, about, list, .. } in entries {
        if template.is_fixed() {
            all.push(fixed(template, about));
        } else if let Some(list) = list {
            all.extend(context.serve(list(&context)).await?);
        }
    }
    let (range, next) = page("resources", all.len(), cursor.as_deref())?;
    all.truncate(range.end);
    Ok(wit::ResourcePage { resources: all.split_off(range.start), next })
}

fn fixed(template: &UriTemplate, about: &About) -> wit::ListedResource {
    listed::entry(ResourceLink {
        uri: template.text().to_string(),
        name: about.name.to_string(),
        title: owned(about.title),
        description: owned(Some(about.description)),
        mime_type: owned(about.mime_type),
        size: about.size,
    })
}

/// Lists what there is now of a family. Components in which no family lists anything are without it.
async fn list_of<R: Resource>(context: &Context) -> Result<Vec<wit::ListedResource>, Failure> {
    Ok(linked(&R::TEMPLATE, &R::ABOUT, R::list(context).await?))
}

/// Keeps what is of this template. What is not would be listed and not read: the log says so.
fn linked(
    template: &UriTemplate,
    about: &About,
    resources: Vec<ListedResource>,
) -> Vec<wit::ListedResource> {
    let link = |resource: ListedResource| match resource.link(template, about) {
        Ok(link) => Some(listed::entry(link)),
        Err(problem) => {
            log::warn(format!("a resource is not listed: {problem}"));
            None
        }
    };
    resources.into_iter().filter_map(link).collect()
}

/// Lists a page of those that are templates.
#[doc(hidden)]
pub fn list_templates(
    entries: &[Entry],
    cursor: Option<String>,
) -> Result<wit::TemplatePage, Error> {
    let templates: Vec<_> = entries.iter().filter(|entry| !entry.template.is_fixed()).collect();
    let (range, next) = page("templates", templates.len(), cursor.as_deref())?;
    let templates = templates[range].iter().map(|entry| wit::ResourceTemplate {
        uri_template: entry.template.text().to_string(),
        name: entry.about.name.to_string(),
        title: owned(entry.about.title),
        description: owned(Some(entry.about.description)),
        mime_type: owned(entry.about.mime_type),
        extra: None,
    });
    Ok(wit::TemplatePage { templates: templates.collect(), next })
}

/// Reads a resource.
#[doc(hidden)]
pub async fn read(
    entries: &[Entry],
    uri: &str,
    context: Context,
) -> Result<Vec<ResourceContents>, Error> {
    let (entry, arguments) = find(entries, uri).ok_or_else(|| no_resource(uri))?;
    context.serve((entry.read)(uri, arguments, context.clone())).await
}

/// That there is no resource of a URI, which is also in `data`, as MCP says it.
fn no_resource(uri: &str) -> Error {
    unknown("resource", uri).with_data(&serde_json::json!({ "uri": uri }))
}

/// Finds the entry of a URI, and what its variables stand for. A URI without variables goes before a
/// template that matches it too.
pub(super) fn find<'a>(entries: &'a [Entry], uri: &str) -> Option<(&'a Entry, Arguments)> {
    let matched = |is_fixed: bool| {
        let mut entries = entries.iter().filter(|entry| entry.template.is_fixed() == is_fixed);
        entries.find_map(|entry| Some((entry, entry.template.matches(uri)?.into())))
    };
    matched(true).or_else(|| matched(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorCode;
    use crate::testing::Host;

    /// A number.
    #[crate::resource("numbers:{number}", list = numbers)]
    async fn number(number: u32) -> String {
        format!("the number {number}")
    }

    async fn numbers() -> Vec<ListedResource> {
        (0..150).map(|number| ListedResource::of([("number", number.to_string())])).collect()
    }

    /// The best one.
    #[crate::resource("numbers:7")]
    async fn seven() -> String {
        "seven".to_string()
    }

    /// Lists nothing.
    #[crate::resource("words:{word}")]
    async fn word(word: String) -> String {
        word
    }

    const ALL: &[Entry] = &[entry::<number>(), entry::<seven>(), entry::<word>()];

    #[test]
    fn pages_go_through_all_resources() {
        let host = Host::new();
        let page = |cursor: Option<String>| {
            let page = host.run(list(ALL, cursor, host.context())).unwrap();
            let uris = page.resources.into_iter().map(|resource| resource.link.uri);
            (uris.collect::<Vec<_>>(), page.next)
        };
        let (first, next) = page(None);
        assert_eq!((first.len(), first[99].as_str()), (100, "numbers:99"));
        let (second, next) = page(Some(next.unwrap()));
        assert_eq!((second.len(), next), (51, None));
        assert_eq!([&second[49], &second[50]], ["numbers:149", "numbers:7"]);
        let foreign = host.run(list(ALL, Some("templates-100".into()), host.context()));
        assert_eq!(foreign.unwrap_err().code, ErrorCode::InvalidInput);
    }

    #[test]
    fn templates_are_listed_by_themselves() {
        let page = list_templates(ALL, None).unwrap();
        let templates: Vec<_> = page.templates.iter().map(|t| t.uri_template.as_str()).collect();
        assert_eq!(templates, ["numbers:{number}", "words:{word}"]);
        assert_eq!(page.next, None);
    }

    #[test]
    fn what_is_fixed_goes_before_what_varies() {
        let host = Host::new();
        let check = |uri: &str, expected: Result<&str, ErrorCode>| {
            let read = host.run(read(ALL, uri, host.context()));
            let read = read.map_err(|error| error.code);
            let expected = expected
                .map(|text| vec![ResourceContents::text(uri, text).with_mime_type("text/plain")]);
            assert_eq!(read, expected, "{uri}");
        };
        check("numbers:7", Ok("seven"));
        check("numbers:8", Ok("the number 8"));
        check("words:8", Ok("8"));
        check("numbers:x", Err(ErrorCode::InvalidInput));
        check("numbers:7/8", Err(ErrorCode::NotFound));
        check("", Err(ErrorCode::NotFound));
    }
}
