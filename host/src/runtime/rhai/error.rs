//! What goes wrong in a script, with its place and the line of the script that it is in.

use rhai::{Dynamic, EvalAltResult, ParseError, Position};
use tenon_config::limits::{LimitExceeded, Limits};
use tenon_config::secret::Redactor;
use tenon_types::Error;
use tenon_types::text::beginning;

use super::engine::{MAX_ARRAY_ITEMS, MAX_MAP_ENTRIES, MAX_STRING_BYTES};
use super::hints::hint;
use super::running_call::{MAX_CAPTURED_VALUES, TerminationReason};
use crate::call::Failure;

/// Why a script is no plugin. The place is that of the script's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptLoadError(pub(super) String);

impl ScriptLoadError {
    /// The same without secrets.
    pub(crate) fn masked(&self, redactor: &Redactor) -> Self {
        Self(redactor.text(&self.0).into_owned())
    }
}

/// What is wrong with a script, and where.
#[derive(Debug)]
pub(super) struct ScriptProblem {
    pub(super) position: Position,
    pub(super) problem: String,
}

/// What a function that scripts call gives, or throws.
pub(super) type ScriptResult<T> = Result<T, Box<EvalAltResult>>;

/// An error that a script makes by what it asks for. Unlike what it throws, which is for its caller, it is shown with its
/// line.
pub(super) fn mistake(problem: impl Into<String>) -> Box<EvalAltResult> {
    // Of the engine's errors this is the one that shows a text alone.
    EvalAltResult::ErrorArithmetic(problem.into(), Position::NONE).into()
}

/// The longest line of a script that is shown, in bytes.
const MAX_SHOWN_LENGTH: usize = 200;

/// The text of a script, for what is said of it.
pub(super) struct ScriptSource {
    pub(super) file: String,
    pub(super) lines: String,
}

impl ScriptSource {
    /// The text of a file. Some editors begin one with a byte order mark, which is no part of it.
    pub(super) fn new(file: String, text: String) -> Self {
        let lines = text.strip_prefix('\u{feff}').map(str::to_string).unwrap_or(text);
        Self { file, lines }
    }

    /// A problem at a place: `file:line:column: problem`, and below it the line, and what to do.
    pub(super) fn at(&self, position: Position, problem: &str) -> String {
        let file = &self.file;
        let hint =
            |line: &str| hint(problem, line, &self.lines).map(|hint| format!("\n  hint: {hint}"));
        let Some(number) = position.line() else {
            return format!("{file}: {problem}{}", hint("").unwrap_or_default());
        };
        let column = position.position().map_or_else(String::new, |column| format!(":{column}"));
        let mut text = format!("{file}:{number}{column}: {problem}");
        if let Some(line) = self.lines.lines().nth(number - 1) {
            let line = line.trim();
            let end = line.floor_char_boundary(MAX_SHOWN_LENGTH);
            text.push_str(&format!("\n  {number} | {}", &line[..end]));
            text.extend(hint(line));
        }
        text
    }

    /// Why the script does not compile.
    pub(super) fn parse_error(&self, error: &ParseError) -> ScriptLoadError {
        ScriptLoadError(self.at(error.position(), &error.err_type().to_string()))
    }

    /// Why the script is no plugin.
    pub(super) fn load_problem(&self, problem: &ScriptProblem) -> ScriptLoadError {
        ScriptLoadError(self.at(problem.position, &problem.problem))
    }

    /// Why the script is no plugin, where no place can be named.
    pub(super) fn refusal(&self, problem: &str) -> ScriptLoadError {
        ScriptLoadError(self.at(Position::NONE, problem))
    }

    /// Why the top level of the script did not run to its end.
    pub(super) fn load_error(&self, error: &EvalAltResult, limits: &Limits) -> ScriptLoadError {
        match self.failure(error, limits) {
            Failure::LimitExceeded(limit) => {
                let problem = format!("it reached its {}", limit_text(error, limit));
                ScriptLoadError(self.at(root(error).position(), &problem))
            }
            _ => ScriptLoadError(self.explain(error)),
        }
    }

    /// An error with the place of the innermost call.
    pub(super) fn explain(&self, error: &EvalAltResult) -> String {
        let root = root(error);
        let mut bare = match root {
            EvalAltResult::ErrorRuntime(value, _) if value.is_array() || value.is_map() => {
                format!("Runtime error: {}", written(value))
            }
            root => root.to_string(),
        };
        // The message ends in its place, which goes in front.
        if let Some(end) = bare.rfind(" (line ") {
            bare.truncate(end);
        }
        self.at(root.position(), &bare)
    }

    /// What an error of the engine means.
    pub(super) fn failure(&self, error: &EvalAltResult, limits: &Limits) -> Failure {
        match root(error) {
            EvalAltResult::ErrorTooManyOperations(_) => {
                Failure::LimitExceeded(LimitExceeded::Cpu(limits.cpu))
            }
            EvalAltResult::ErrorStackOverflow(_) => Failure::LimitExceeded(LimitExceeded::Depth),
            EvalAltResult::ErrorDataTooLarge(..) => {
                Failure::LimitExceeded(LimitExceeded::ValueSize)
            }
            EvalAltResult::ErrorTerminated(why, _) => {
                match why.clone().try_cast::<TerminationReason>() {
                    Some(TerminationReason::OutOfTime) => {
                        Failure::LimitExceeded(LimitExceeded::Cpu(limits.cpu))
                    }
                    Some(TerminationReason::TooManyHostCalls(most)) => {
                        Failure::LimitExceeded(LimitExceeded::HostCalls(most))
                    }
                    Some(TerminationReason::TooManyCaptures | TerminationReason::ValueTooLarge) => {
                        Failure::LimitExceeded(LimitExceeded::ValueSize)
                    }
                    Some(TerminationReason::TooMuchMemory(most)) => {
                        Failure::LimitExceeded(LimitExceeded::Memory(most))
                    }
                    Some(TerminationReason::NeedsThread) => {
                        Failure::Host("a script ended with its slice".into())
                    }
                    Some(TerminationReason::GivenUp) | None => {
                        Failure::Lost("its caller gave up".into())
                    }
                }
            }
            _ => match thrown(error) {
                Some(message) => Failure::Answered(Error::failed(message)),
                None => Failure::Trapped(self.explain(error)),
            },
        }
    }
}

/// A limit that an error of the engine is about, with the bound that was reached where the limit does not name it.
pub(super) fn limit_text(error: &EvalAltResult, limit: LimitExceeded) -> String {
    match size_bound(error) {
        Some(bound) if limit == LimitExceeded::ValueSize => format!("{limit}: {bound}"),
        _ => limit.to_string(),
    }
}

/// How large what is too large may be.
fn size_bound(error: &EvalAltResult) -> Option<String> {
    let what = match root(error) {
        EvalAltResult::ErrorDataTooLarge(what, _) => what,
        EvalAltResult::ErrorTerminated(why, _) => {
            let why = why.clone().try_cast::<TerminationReason>();
            return match why? {
                TerminationReason::TooManyCaptures => {
                    Some(format!("captured variables are used at most {MAX_CAPTURED_VALUES} times"))
                }
                TerminationReason::ValueTooLarge => {
                    let mib = MAX_STRING_BYTES >> 20;
                    Some(format!("a value that is made a text has at most {mib} MiB"))
                }
                _ => None,
            };
        }
        _ => return None,
    };
    let nested = "those of nested ones included";
    let mib = MAX_STRING_BYTES >> 20;
    let text = format!("a text has at most {mib} MiB, and so have all texts of a value together");
    let array = format!("an array or a blob has at most {MAX_ARRAY_ITEMS} items, {nested}");
    let map = format!("a map has at most {MAX_MAP_ENTRIES} members, {nested}");
    // The engine names it in its message alone.
    Some(match what.as_str() {
        "Length of string" => text,
        "Size of array/BLOB" | "Size of BLOB" => array,
        "Size of object map" => map,
        _ => [text, array, map].join("; "),
    })
}

/// The error in which a chain of calls began.
pub(super) fn root(error: &EvalAltResult) -> &EvalAltResult {
    match error {
        EvalAltResult::ErrorInFunctionCall(_, _, inner, _)
        | EvalAltResult::ErrorInModule(_, inner, _) => root(inner),
        _ => error,
    }
}

/// The message of a `throw`.
pub(super) fn thrown(error: &EvalAltResult) -> Option<String> {
    match root(error) {
        EvalAltResult::ErrorRuntime(value, _) if value.is_unit() => {
            Some("it has thrown `()`".into())
        }
        EvalAltResult::ErrorRuntime(value, _) => Some(written(value)),
        _ => None,
    }
}

/// What a value is written as, as far as a string may be long: what functions share is written as often
/// as it is reached.
pub(super) fn written(value: &Dynamic) -> String {
    beginning(value, MAX_STRING_BYTES)
}
