//! What reading a resource gives.

use serde::Serialize;

pub use crate::bindings::base::tenon::plugin::types::{ResourceBody, ResourceContents};
use crate::{Failure, Json};

impl ResourceContents {
    /// Text, with the URI of this part.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(uri.into(), None, ResourceBody::Text(text.into()))
    }

    /// Bytes, with the URI of this part.
    pub fn blob(uri: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self::new(uri.into(), None, ResourceBody::Blob(bytes))
    }

    /// The same, of a media type such as `text/markdown`.
    #[must_use]
    pub fn with_mime_type(self, mime_type: impl Into<String>) -> Self {
        Self { mime_type: Some(mime_type.into()), ..self }
    }

    fn new(uri: String, mime_type: Option<&str>, body: ResourceBody) -> Self {
        Self { uri, mime_type: mime_type.map(str::to_string), body, extra: None }
    }
}

/// What a resource's function may return. The macro asks for it.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is nothing that a resource can contain",
    label = "not the contents of a resource",
    note = "return `String`, `Vec<u8>`, `Json<…>` for anything that serializes, `ResourceContents` or \
            `Vec<ResourceContents>`, alone or in a `Result`"
)]
pub trait IntoResourceContents {
    /// The media type of the contents, unless the attribute says another.
    const MIME_TYPE: Option<&'static str> = None;

    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> crate::Result<Vec<ResourceContents>>;
}

impl IntoResourceContents for String {
    const MIME_TYPE: Option<&'static str> = Some("text/plain");

    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> crate::Result<Vec<ResourceContents>> {
        Ok(vec![ResourceContents::new(uri.to_string(), mime_type, ResourceBody::Text(self))])
    }
}

impl IntoResourceContents for Vec<u8> {
    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> crate::Result<Vec<ResourceContents>> {
        Ok(vec![ResourceContents::new(uri.to_string(), mime_type, ResourceBody::Blob(self))])
    }
}

impl<T: Serialize> IntoResourceContents for Json<T> {
    const MIME_TYPE: Option<&'static str> = Some("application/json");

    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> crate::Result<Vec<ResourceContents>> {
        serde_json::to_string(&self.0)?.into_contents(uri, mime_type)
    }
}

impl IntoResourceContents for ResourceContents {
    fn into_contents(self, _: &str, _: Option<&str>) -> crate::Result<Vec<Self>> {
        Ok(vec![self])
    }
}

impl IntoResourceContents for Vec<ResourceContents> {
    fn into_contents(self, _: &str, _: Option<&str>) -> crate::Result<Self> {
        Ok(self)
    }
}

impl<T: IntoResourceContents, E: Into<Failure>> IntoResourceContents for Result<T, E> {
    const MIME_TYPE: Option<&'static str> = T::MIME_TYPE;

    fn into_contents(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> crate::Result<Vec<ResourceContents>> {
        self.map_err(Into::into)?.into_contents(uri, mime_type)
    }
}
