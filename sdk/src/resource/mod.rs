//! Resources: what stands behind [`#[resource]`](macro@crate::resource).
//!
//! ```
//! use tenon_sdk::resource::ListedResource;
//! use tenon_sdk::{Error, Result, plugin, resource};
//!
//! /// What there is to say of a town.
//! #[resource("towns://{name}{?year}", list = towns)]
//! async fn town(
//!     #[complete("Graz", "Vienna")] name: String,
//!     year: Option<u32>,
//! ) -> Result<String> {
//!     match name.as_str() {
//!         "Graz" | "Vienna" => Ok(format!("{name} in {}", year.unwrap_or(2025))),
//!         _ => Err(Error::not_found(format!("there is no town \"{name}\"")).into()),
//!     }
//! }
//!
//! async fn towns() -> Vec<ListedResource> {
//!     ["Graz", "Vienna"].map(|name| ListedResource::of([("name", name)])).into()
//! }
//!
//! /// How to read of towns.
//! #[resource("towns://help", mime_type = "text/markdown")]
//! async fn help() -> String {
//!     "Read `towns://Graz`.".to_string()
//! }
//!
//! plugin!(resources: [help, town], completions: [town]);
//! # fn main() {}
//! ```
//!
//! # News
//!
//! What changes by itself is listed under `subscriptions` as well, and says so with
//! [`notify::resource_updated`](crate::notify::resource_updated):
//!
//! ```
//! use tenon_sdk::{notify, plugin, resource, instance, tool};
//!
//! /// How often it was counted.
//! #[resource("counter:value")]
//! async fn value() -> String {
//!     instance::with(|value: &mut u64| value.to_string())
//! }
//!
//! /// Counts.
//! #[tool]
//! async fn count() {
//!     instance::with(|value: &mut u64| *value += 1);
//!     notify::resource_updated("counter:value");
//! }
//!
//! plugin!(tools: [count], resources: [value], subscriptions: [value]);
//! # fn main() {}
//! ```

mod contents;
mod listed;
mod subscription;
mod table;

pub use crate::bindings::base::tenon::plugin::types::ResourceLink;
use crate::{Arguments, Context, Error, Failure};
pub use contents::{IntoResourceContents, ResourceBody, ResourceContents};
pub use listed::{IntoListed, ListResources, ListedResource, listed};
pub use subscription::{is_subscribed, subscribe, subscribed, unsubscribe};
pub use table::{Entry, entry, list, list_templates, read};
pub use tenon_uri_template::UriTemplate;
#[doc(hidden)]
pub use tenon_uri_template::{Expression, Operator, Part, Variable};

/// A resource, or a family of them. The attribute implements it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no resource",
    label = "no `#[resource]`",
    note = "write `#[resource(\"…\")]` above its function, with its URI or a template of it"
)]
pub trait Resource: 'static {
    /// The URI, or the template of those that it has.
    const URI: &'static str;

    /// The same, parsed.
    const TEMPLATE: UriTemplate;

    /// What the host lists of it.
    const ABOUT: About;

    /// Whether it suggests values for a variable.
    const COMPLETES: bool = false;

    /// Whether [`Self::list`] lists anything.
    const LISTS: bool = false;

    /// Reads it. The arguments are what the variables stand for in the URI.
    fn read(
        uri: &str,
        arguments: Arguments,
        context: Context,
    ) -> impl Future<Output = Result<Vec<ResourceContents>, Failure>>;

    /// Lists what there is now of a family.
    fn list(_: &Context) -> impl Future<Output = Result<Vec<ListedResource>, Failure>> {
        async { Ok(Vec::new()) }
    }
}

/// What the host lists of a resource or a template.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name that programs use.
    pub name: &'static str,
    /// The name that people see, where it differs.
    pub title: Option<&'static str>,
    /// What is in it.
    pub description: &'static str,
    /// Its media type.
    pub mime_type: Option<&'static str>,
    /// Its size in bytes; of a template there is none.
    pub size: Option<u64>,
}

/// The URI of a resource, for these values of the variables of its template.
///
/// ```
/// use tenon_sdk::resource;
///
/// /// A note.
/// #[resource("notes://{name}")]
/// async fn note(name: String) -> String {
///     name
/// }
///
/// # fn main() {
/// let uri = resource::uri::<note>([("name", "to do")]);
/// assert_eq!(uri.unwrap(), "notes://to%20do");
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where the template has no such URI: a
/// variable is missing or empty, or there is none of a name.
pub fn uri<R: Resource>(
    values: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
) -> Result<String, Error> {
    let link = ListedResource::of(values).link(&R::TEMPLATE, &R::ABOUT);
    link.map(|link| link.uri).map_err(Error::invalid_input)
}
