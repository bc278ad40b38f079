//! What an evaluation finds.

/// What an evaluation found.
#[derive(Debug, Clone, PartialEq)]
pub struct Evaluation {
    /// From 0 (worst) to 1 (best); the host refuses any other number.
    pub score: f64,
    /// The short form.
    pub verdict: Verdict,
    /// One for each criterion that the strategy looked at.
    pub findings: Vec<Finding>,
    /// What else the strategy reports, as one JSON object.
    pub extra: Option<String>,
}

/// The short form of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The subject is good enough.
    Pass,
    /// The subject is not good enough.
    Fail,
    /// The subject does not let the strategy decide.
    Inconclusive,
}

/// What one criterion found.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// What was looked at.
    pub criterion: String,
    /// The short form.
    pub verdict: Verdict,
    /// From 0 to 1, for criteria that have degrees.
    pub score: Option<f64>,
    /// Why, for people.
    pub reason: String,
}
