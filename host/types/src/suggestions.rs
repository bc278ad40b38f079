//! Values for the blanks of prompts and resource templates.

/// Where the blank is.
#[derive(Debug, Clone, PartialEq)]
pub enum CompletionReference {
    /// A prompt, by its name.
    Prompt(String),
    /// A resource template, by its text.
    ResourceTemplate(String),
}

/// A blank that is being filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Blank {
    /// Where the blank is.
    pub place: CompletionReference,
    /// The name of the argument.
    pub name: String,
    /// What the user has typed so far.
    pub value: String,
    /// The arguments that are filled in already.
    pub filled: Vec<(String, String)>,
}

/// What could be meant, the likeliest first.
#[derive(Debug, Clone, PartialEq)]
pub struct Suggestions {
    /// At most a hundred.
    pub values: Vec<String>,
    /// How many there are, where that is known.
    pub total: Option<u64>,
    /// Whether there are more than these.
    pub more: bool,
    /// Members of the MCP form of the whole answer that this crate does not name, as one JSON
    /// object; those beside the values are in its member `completion`.
    pub extra: Option<String>,
}
