//! Resources as a host lists and reads them.

use super::Host;
pub use crate::bindings::resources::exports::tenon::plugin::resources::ResourceTemplate;
use crate::resource::{self, Entry, Resource, ResourceContents, ResourceLink};
use crate::{Error, Result};

impl Host {
    /// What is listed of a resource: itself, or what its template says there is now. Of many, all pages.
    ///
    /// # Errors
    ///
    /// Those of the function that lists.
    pub fn list_resources<R: Resource>(&self) -> Result<Vec<ResourceLink>, Error> {
        let (mut all, mut cursor) = (Vec::new(), None);
        loop {
            let page = self.run(resource::list(entries::<R>(), cursor, self.context()))?;
            all.extend(page.resources.into_iter().map(|listed| listed.link));
            cursor = page.next;
            if cursor.is_none() {
                return Ok(all);
            }
        }
    }

    /// How a resource is listed that is a template; `None` for one that has no variables.
    pub fn template<R: Resource>(&self) -> Option<ResourceTemplate> {
        let page = resource::list_templates(entries::<R>(), None);
        page.ok().and_then(|page| page.templates.into_iter().next())
    }

    /// Reads a resource.
    ///
    /// # Errors
    ///
    /// Those of the resource, and [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) for a URI that is
    /// not its own.
    pub fn read_resource<R: Resource>(&self, uri: &str) -> Result<Vec<ResourceContents>, Error> {
        self.run(resource::read(entries::<R>(), uri, self.context()))
    }

    /// Subscribes to a resource, as a host does for somebody who wants its news.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) for a URI that is not its own.
    pub fn subscribe<R: Resource>(&self, uri: &str) -> Result<(), Error> {
        self.run(async { resource::subscribe(entries::<R>(), uri.to_string()) })
    }

    /// Ends a subscription.
    pub fn unsubscribe(&self, uri: &str) {
        self.run(async { resource::unsubscribe(uri) });
    }
}

/// A table of one resource.
fn entries<R: Resource>() -> &'static [Entry] {
    const { &[resource::entry::<R>()] }
}
