//! Why a call into a plugin gave no answer.

use std::time::Duration;
use tenon_config::limits::LimitExceeded;
use tenon_types::Error;

/// Why a call into a plugin gave no answer, and whose fault it is.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The plugin worked and answered with an error of the contract.
    #[error("{0}")]
    Answered(Error),
    /// The plugin broke off: a WebAssembly trap, or an error in a script.
    #[error("it trapped: {0}")]
    Trapped(String),
    /// The plugin reached a limit and was stopped.
    #[error("it reached its {0}")]
    LimitExceeded(LimitExceeded),
    /// The plugin did not answer in time and was given up.
    #[error("it gave no answer within {0:?}")]
    Deadline(Duration),
    /// The instance that served the call beside others ended under it: by no fault of the call, or one of another call.
    #[error("its instance ended: {0}")]
    Lost(String),
    /// The plugin does not have what was asked of it.
    #[error("it does not provide {0}")]
    Unsupported(&'static str),
    /// The plugin's answer breaks the contract.
    #[error("its answer breaks the contract: {0}")]
    Contract(String),
    /// The host failed.
    #[error("the host failed: {0}")]
    Host(String),
}

/// How many refusals are told with a failure.
const MAX_CAUSES: usize = 3;

impl Failure {
    /// Adds what the plugin was refused and got to know as a mere code.
    pub(crate) fn explain(&mut self, refusals: &[String]) {
        let message = match self {
            Self::Answered(error) => &mut error.message,
            Self::Trapped(message) => message,
            _ => return,
        };
        // An interpreter that shows where it failed looks for its sources in many places.
        let (told, more) = refusals.split_at(refusals.len().min(MAX_CAUSES));
        for refusal in told {
            if !message.contains(refusal.as_str()) {
                message.push_str("; ");
                message.push_str(refusal);
            }
        }
        if !more.is_empty() {
            message.push_str("; and more, which the log has");
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Answered(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_explained_by_a_few_refusals() {
        let check = |refusals: &[&str], expected: &str| {
            let mut failure = Failure::Trapped("no \"a\"".into());
            let refusals: Vec<String> = refusals.iter().map(ToString::to_string).collect();
            failure.explain(&refusals);
            let Failure::Trapped(message) = failure else { panic!("{failure}") };
            assert_eq!(message, expected);
        };
        check(&[], "no \"a\"");
        // What it says already is not said again.
        check(&["no \"a\"", "no \"b\""], "no \"a\"; no \"b\"");
        check(&["1", "2", "3"], "no \"a\"; 1; 2; 3");
        check(&["1", "2", "3", "4"], "no \"a\"; 1; 2; 3; and more, which the log has");
    }
}
