//! What went wrong on the way from a file to the registry, for people and for programs.

use serde::Serialize;
use std::fmt;

/// One thing that went wrong, and what to do about it. The other plugins are not affected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diagnostic {
    /// The plugin it is about, where one can be named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// The file it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Whether no guard is missing for it: it is about an entry for a server, which has tools and no hooks, or
    /// about a file that is no plugin. Who asks something of another plugin need not hear of it.
    #[serde(skip)]
    pub is_local: bool,
}

impl Diagnostic {
    /// A problem of a plugin.
    pub fn of(plugin: &str, problem: impl fmt::Display) -> Self {
        let plugin = Some(plugin.to_string());
        Self { plugin, ..Self::unplaced(problem.to_string()) }
    }

    /// A problem that says itself where it is.
    pub fn unplaced(problem: String) -> Self {
        Self { plugin: None, file: None, problem, remedy: None, is_local: false }
    }

    /// A problem of a file that is no plugin yet.
    pub fn in_file(file: impl fmt::Display, problem: impl fmt::Display) -> Self {
        let file = Some(file.to_string());
        Self { file, ..Self::unplaced(problem.to_string()) }
    }

    pub(crate) fn file(self, file: impl fmt::Display) -> Self {
        Self { file: Some(file.to_string()), ..self }
    }

    /// Adds what to do about it.
    pub fn remedy(self, remedy: impl fmt::Display) -> Self {
        Self { remedy: Some(remedy.to_string()), ..self }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(plugin) = &self.plugin {
            write!(f, "plugin \"{plugin}\": ")?;
        }
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        f.write_str(&self.problem)
    }
}

/// An error with all of its causes, in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
