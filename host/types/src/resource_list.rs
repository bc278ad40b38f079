//! Lists of resources.

use crate::ResourceLink;

/// A page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourcePage {
    /// The resources of this page.
    pub resources: Vec<ListedResource>,
    /// Where the next page begins; absent on the last one. Any text, an empty one too, is a
    /// cursor, and only its maker knows what it means.
    pub next: Option<String>,
}

/// A resource in a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedResource {
    /// What it is.
    pub link: ResourceLink,
    /// Members of the MCP form that this crate does not name, as one JSON object.
    pub extra: Option<String>,
}

/// A page of templates.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplatePage {
    /// The templates of this page.
    pub templates: Vec<ResourceTemplate>,
    /// Where the next page begins; absent on the last one.
    pub next: Option<String>,
}

/// A family of resources.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceTemplate {
    /// A URI template (RFC 6570).
    pub uri_template: String,
    /// The name that programs use.
    pub name: String,
    /// The name that people see, where it differs.
    pub title: Option<String>,
    /// What it is, for people and models.
    pub description: Option<String>,
    /// The media type (RFC 6838), where it is known.
    pub mime_type: Option<String>,
    /// Members of the MCP form that this crate does not name, as one JSON object.
    pub extra: Option<String>,
}
