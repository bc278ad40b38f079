//! Prompts.

use crate::ContentBlock;

/// A page of a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptPage {
    /// The prompts of this page.
    pub prompts: Vec<PromptDefinition>,
    /// Where the next page begins, as in [`ResourcePage`](crate::ResourcePage).
    pub next: Option<String>,
}

/// A prompt in a listing.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptDefinition {
    /// Unique in the plugin.
    pub name: String,
    /// The name that people see, where it differs.
    pub title: Option<String>,
    /// What it is, for people and models.
    pub description: Option<String>,
    /// The arguments that it takes.
    pub arguments: Vec<PromptArgument>,
    /// Members of the MCP form that this crate does not name, as one JSON object.
    pub extra: Option<String>,
}

/// An argument of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptArgument {
    /// The name that programs use.
    pub name: String,
    /// The name that people see, where it differs.
    pub title: Option<String>,
    /// What it is, for people and models.
    pub description: Option<String>,
    /// Whether the prompt needs it.
    pub required: bool,
    /// Members of the MCP form that this crate does not name, as one JSON object.
    pub extra: Option<String>,
}

/// A prompt, filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// What it is, for people and models.
    pub description: Option<String>,
    /// The messages, oldest first.
    pub messages: Vec<PromptMessage>,
    /// Members of the MCP form that this crate does not name, above all `_meta`, as one JSON
    /// object.
    pub extra: Option<String>,
}

/// One of its messages.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptMessage {
    /// Who speaks.
    pub role: PromptRole,
    /// What is said.
    pub content: ContentBlock,
    /// Members of the message that this crate does not name, as one JSON object. Those of its
    /// content are the block's own.
    pub extra: Option<String>,
}

/// Who speaks in a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptRole {
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
}
