//! Values for arguments of prompts and resource templates, as a user types.

/// What has the argument.
#[derive(Debug, Clone, PartialEq)]
pub enum CompletionReference {
    /// A prompt, by its name.
    Prompt(String),
    /// A resource template, by its text.
    ResourceTemplate(String),
}

/// An argument that is being typed.
#[derive(Debug, Clone, PartialEq)]
pub struct ArgumentCompletion {
    /// What has the argument.
    pub reference: CompletionReference,
    /// The name of the argument.
    pub name: String,
    /// What the user has typed so far.
    pub value: String,
    /// The arguments that have their values already.
    pub others: Vec<(String, String)>,
}

impl ArgumentCompletion {
    /// Asks for values of an argument of which this is typed, while the others have no values.
    pub fn new(
        reference: CompletionReference,
        name: impl Into<String>,
        value: impl Into<String>,
    ) -> Self {
        Self { reference, name: name.into(), value: value.into(), others: Vec::new() }
    }
}

/// What could be meant, the likeliest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestions {
    /// At most a hundred.
    pub values: Vec<String>,
    /// How many there are, where that is known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub has_more: bool,
    /// Members of the MCP form of the whole answer that this crate does not name, as one JSON
    /// object; those beside the values are in its member `completion`.
    pub extra: Option<String>,
}
