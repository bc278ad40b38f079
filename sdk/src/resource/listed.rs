//! What a template says of the resources that there are now.

use super::{About, UriTemplate};
use crate::bindings::base::tenon::plugin::types::ResourceLink;
use crate::bindings::resources::exports::tenon::plugin::resources as wit;
use crate::{Context, Failure};

/// A resource of a template that is there now.
///
/// ```
/// use tenon_sdk::resource::ListedResource;
///
/// let shopping = ListedResource::of([("name", "shopping")]).title("What to buy");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ListedResource {
    target: UriOrVariables,
    name: Option<String>,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    size: Option<u64>,
}

#[derive(Debug, Clone, PartialEq)]
enum UriOrVariables {
    Uri(String),
    Values(Vec<(String, String)>),
}

impl ListedResource {
    /// The resource for which the variables of the template have these values. A variable that is a
    /// list is there several times.
    pub fn of<N: Into<String>, V: Into<String>>(values: impl IntoIterator<Item = (N, V)>) -> Self {
        let values = values.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self::new(UriOrVariables::Values(values.collect()))
    }

    /// The resource with this URI, which must be one of the template.
    pub fn at(uri: impl Into<String>) -> Self {
        Self::new(UriOrVariables::Uri(uri.into()))
    }

    /// Names it. Without this its name is what its variables stand for.
    #[must_use]
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// The name that people see.
    #[must_use]
    pub fn title(self, title: impl Into<String>) -> Self {
        Self { title: Some(title.into()), ..self }
    }

    /// What is in it.
    #[must_use]
    pub fn description(self, description: impl Into<String>) -> Self {
        Self { description: Some(description.into()), ..self }
    }

    /// Its media type, where it is not that of the template.
    #[must_use]
    pub fn mime_type(self, mime_type: impl Into<String>) -> Self {
        Self { mime_type: Some(mime_type.into()), ..self }
    }

    /// Its size in bytes.
    #[must_use]
    pub fn size(self, size: u64) -> Self {
        Self { size: Some(size), ..self }
    }

    fn new(target: UriOrVariables) -> Self {
        Self { target, name: None, title: None, description: None, mime_type: None, size: None }
    }

    /// As it is listed; `Err` with what is wrong where its template does not match it.
    pub(super) fn link(
        self,
        template: &UriTemplate,
        about: &About,
    ) -> Result<ResourceLink, String> {
        let uri = match self.target {
            UriOrVariables::Uri(uri) => uri,
            UriOrVariables::Values(values) => template.expand(&values).ok_or_else(|| {
                format!("{} has no variable for each of these values", template.text())
            })?,
        };
        let arguments = template
            .matches(&uri)
            .ok_or_else(|| format!("{} does not match {uri}", template.text()))?;
        let name = self.name.unwrap_or_else(|| {
            arguments.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join("/")
        });
        Ok(ResourceLink {
            uri,
            name,
            title: self.title,
            description: self.description,
            mime_type: self.mime_type.or_else(|| about.mime_type.map(str::to_string)),
            size: self.size,
        })
    }
}

pub(super) fn entry(link: ResourceLink) -> wit::ListedResource {
    wit::ListedResource { link, extra: None }
}

/// What a function may return that lists resources.
#[doc(hidden)]
pub trait IntoListed {
    fn into_listed(self) -> crate::Result<Vec<ListedResource>>;
}

impl IntoListed for Vec<ListedResource> {
    fn into_listed(self) -> crate::Result<Self> {
        Ok(self)
    }
}

impl<E: Into<Failure>> IntoListed for Result<Vec<ListedResource>, E> {
    fn into_listed(self) -> crate::Result<Vec<ListedResource>> {
        self.map_err(Into::into)
    }
}

/// A function that lists resources. `F` is what it takes and returns.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "this lists no resources",
    label = "not a function for `list`",
    note = "write `async fn list() -> Vec<ListedResource>`; it may take `&Context`, and return its list \
            in a `Result`"
)]
pub trait ListResources<F> {
    fn listed(&self, context: &Context)
    -> impl Future<Output = crate::Result<Vec<ListedResource>>>;
}

impl<F, R> ListResources<fn() -> R> for F
where
    F: AsyncFn() -> R,
    R: IntoListed,
{
    async fn listed(&self, _: &Context) -> crate::Result<Vec<ListedResource>> {
        self().await.into_listed()
    }
}

impl<F, R> ListResources<fn(&Context) -> R> for F
where
    F: AsyncFn(&Context) -> R,
    R: IntoListed,
{
    async fn listed(&self, context: &Context) -> crate::Result<Vec<ListedResource>> {
        self(context).await.into_listed()
    }
}

/// Has a function list resources.
#[doc(hidden)]
pub async fn listed<F>(
    function: &impl ListResources<F>,
    context: &Context,
) -> Result<Vec<ListedResource>, Failure> {
    function.listed(context).await
}
