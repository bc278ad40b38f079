//! How much a line in the log matters.

/// How much it matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// What only who searches for a mistake wants.
    Trace,
    /// What helps who writes the plugin.
    Debug,
    /// What went as it should.
    Info,
    /// What may need attention.
    Warn,
    /// What went wrong.
    Error,
}
