//! What tools, resources and prompts say.

/// One piece of what a tool, a resource or a prompt says: a content block of the Model Context
/// Protocol.
#[derive(Debug, Clone, PartialEq)]
pub struct ContentBlock {
    /// The content.
    pub body: Content,
    /// Members of the block that this crate does not name, as one JSON object: `annotations`
    /// and `_meta` of MCP, and what later revisions add. They travel unchanged.
    pub extra: Option<String>,
}

/// The content of a block.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Plain text for the model or the user.
    Text(String),
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A resource that the reader may fetch.
    ResourceLink(ResourceLink),
    /// A resource, carried along.
    Resource(ResourceContents),
    /// A block of a type that this crate does not name, as the whole JSON object with its
    /// `type` member. The host passes it on unread.
    Other(String),
}

/// Binary content with its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Media {
    /// The bytes themselves, not base64.
    pub data: Vec<u8>,
    /// Their media type (RFC 6838), such as `image/png`.
    pub mime_type: String,
}

/// A pointer to a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceLink {
    /// The resource's URI (RFC 3986).
    pub uri: String,
    /// The name that programs use.
    pub name: String,
    /// The name that people see, where it differs.
    pub title: Option<String>,
    /// What it is, for people and models.
    pub description: Option<String>,
    /// The media type (RFC 6838), where it is known.
    pub mime_type: Option<String>,
    /// The size in bytes, before any encoding.
    pub size: Option<u64>,
}

/// What was read from a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceContents {
    /// The URI of this part; one read may return several.
    pub uri: String,
    /// The media type (RFC 6838), where it is known.
    pub mime_type: Option<String>,
    /// The contents.
    pub body: ResourceBody,
    /// Members of the JSON form that this crate does not name; see [`ContentBlock::extra`].
    pub extra: Option<String>,
}

/// The contents proper.
#[derive(Debug, Clone, PartialEq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// The bytes themselves, not base64.
    Blob(Vec<u8>),
}
