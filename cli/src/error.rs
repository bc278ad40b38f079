//! What can go wrong, and the exit code that says so.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use tenon_call_approvals::CallApprovalError;
use tenon_config::approvals::ApprovalError;
use tenon_config::diagnostic::chain;
use tenon_config::lock::LockError;
use tenon_host::services::StoreError;
use tenon_host::types::text::visible;
use tenon_host::{BuildError, CallError, CallRefusal, ConfigError, Failure, WatchError};

use crate::builder_report::SourceProblem;
use crate::fetch_error::FetchError;
use crate::hint::as_typed;
use crate::login::LoginError;

/// The exit codes, as `--help` shows them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  the plugin returned an error or does not build, or doctor or check found a failure
  2  wrong usage, configuration or input
  3  refused
  4  the plugin trapped, or reached a limit or the timeout
  5  the host failed
130  interrupted";

/// How a command ends: its exit code. Of several, the greatest counts. [`EXIT_CODES`] says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[repr(u8)]
pub(crate) enum Exit {
    Success = 0,
    Failed = 1,
    Input = 2,
    Refused = 3,
    Trapped = 4,
    Host = 5,
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// What was passed on the command line is wrong.
    #[error("{0}")]
    Input(String),
    /// A file cannot be written.
    #[error("{} cannot be written", .0.display())]
    Write(PathBuf, #[source] std::io::Error),
    /// A file with an argument, named behind an `@`, cannot be read.
    #[error("{what}: {} cannot be read", .path.display())]
    ReadArgument {
        what: String,
        path: PathBuf,
        #[source]
        error: std::io::Error,
    },
    /// A file that was named cannot be read.
    #[error("{} cannot be read", .0.display())]
    Read(PathBuf, #[source] std::io::Error),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error(transparent)]
    Watch(#[from] WatchError),
    #[error(transparent)]
    Call(#[from] CallError),
    /// What a call would come to, by what its server had when it was last asked.
    #[error("{error}")]
    Known { error: Box<CallError>, plugin: String },
    /// There is no plugin of an id that somebody named.
    #[error("there is no plugin \"{id}\"")]
    NoPlugin {
        id: String,
        /// One that is there, of an id that is like it.
        nearest: Option<String>,
    },
    /// The plugin that something was asked of is not there.
    #[error("plugin \"{plugin}\" is not loaded: {detail}")]
    NotThere {
        plugin: String,
        detail: String,
        remedy: Option<String>,
        refused: bool,
        /// Why it did not register, if it came so far.
        failure: Option<Box<Failure>>,
    },
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// Somebody would have to approve it, and nobody is there to be asked.
    #[error("no terminal to ask for approval of {}", .plugins.join(", "))]
    Unasked {
        plugins: Vec<String>,
        /// The command that approves without asking.
        command: String,
    },
    /// Somebody would have to say yes, and nobody is there to be asked.
    #[error("no terminal to ask whether to {what}")]
    Unconfirmed {
        what: String,
        /// The command that does so without asking.
        command: String,
    },
    /// A source does not give what it should.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Lock(#[from] LockError),
    /// Nobody is logged in to a server, or out of it.
    #[error("server \"{server}\"")]
    Login {
        server: String,
        #[source]
        error: LoginError,
    },
    /// A run of a script is paused, or has failed.
    #[error("{message}")]
    Run { code: String, message: String, hint: Option<String>, exit: Exit },
    /// An approval of a call cannot be given.
    #[error(transparent)]
    CallApproval(#[from] CallApprovalError),
    /// What plugins keep cannot be read or changed.
    #[error(transparent)]
    State(#[from] StoreError),
    /// One of several plugins is not installed; the others may be.
    #[error("plugin \"{plugin}\" is not installed")]
    NotInstalled {
        plugin: String,
        #[source]
        error: Box<Error>,
    },
    /// It is not done, for a reason of safety.
    #[error("{problem}")]
    Refused { problem: String, hint: String },
    /// There is no such model, unless one of these has it, which are not approved.
    #[error("no approved plugin has the model \"{model}\"; not approved: {}", .plugins.join(", "))]
    Unserved { model: String, plugins: Vec<String> },
    /// Something that may be a guard is not there.
    #[error("{problem}")]
    Unguarded { problem: String, remedy: Option<String> },
    /// A tool that makes components is not installed.
    #[error("{tool} is not installed")]
    Missing { tool: String, install: String },
    /// The source of a plugin is not what it should be.
    #[error("the plugin does not build: {0}")]
    NotBuilt(String),
    /// What is wrong with the source of a plugin, by the builder of its language.
    #[error("{}", { .0 }.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Source(Vec<SourceProblem>),
    /// Tests of a plugin fail. The end of what they print.
    #[error("{0}")]
    Tests(String),
    /// What another command has failed with, which did the work of this one.
    #[error("{}", .0.message)]
    Relayed(RelayedError),
    /// Somebody interrupted it.
    #[error("interrupted")]
    Interrupted,
    /// Who reads the output has gone: it has what it wanted.
    #[error("standard output is closed")]
    Unread,
    #[error("{0}")]
    Host(String),
}

/// An error of another command, as it would say it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RelayedError {
    message: String,
    hint: Option<String>,
    exit: Exit,
    /// What programs read of it.
    json: Value,
}

impl RelayedError {
    pub(crate) fn of(error: &Error) -> Self {
        let (message, hint) = (chain(error), error.hint());
        Self { message, hint, exit: error.exit_code(), json: error.to_json() }
    }
}

impl Error {
    /// Says on standard error what went wrong.
    pub(crate) fn tell(&self) {
        let problem = |message: String, source: Option<String>, hint: Option<String>| {
            // Plugins have a say in these words. What they break into lines must not look like ours.
            let told = |text: &str| visible(text).replace('\n', "\n    | ");
            let mut text = format!("error: {}\n", told(&as_typed(&message)));
            text.extend(source.map(|source| format!("  {}\n", told(&source))));
            text.extend(hint.map(|hint| format!("  hint: {}\n", told(&as_typed(&hint)))));
            text
        };
        let text: String = match self {
            Self::Source(problems) => {
                let text = |found: &SourceProblem| {
                    let hint = found.hint().map(str::to_string);
                    problem(found.to_string(), found.shown_line(), hint)
                };
                problems.iter().map(text).collect()
            }
            _ => problem(chain(self), None, self.hint()),
        };
        // Where standard error is closed there is nobody to tell.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    pub(crate) fn to_json(&self) -> Value {
        if let Self::Relayed(error) = self {
            return error.json.clone();
        }
        let (message, hint) = (chain(self), self.hint());
        let hint = hint.as_deref().map(as_typed);
        let mut error = json!({ "code": self.code(), "message": as_typed(&message), "hint": hint });
        let failure = match self {
            Self::Call(CallError::Failed { failure, .. }) => Some(failure),
            Self::NotThere { failure, .. } => failure.as_deref(),
            _ => None,
        };
        if let Some(Failure::Answered(answer)) = failure {
            error["data"] = json!(answer.data);
        }
        if let Some(Failure::Answered(answer)) = failure
            && let Some(time) = answer.retry_after
        {
            error["retryAfterMillis"] = json!(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        }
        if let Self::Source(problems) = self {
            error["problems"] = json!(problems);
        }
        json!({ "error": error })
    }

    /// Returns a stable code for programs.
    fn code(&self) -> &'static str {
        match self {
            Self::Input(_)
            | Self::Read(..)
            | Self::ReadArgument { .. }
            | Self::Write(..)
            | Self::NoPlugin { .. } => "invalid-input",
            Self::Config(_) => "configuration",
            Self::Approval(_) => "approvals",
            Self::Lock(_) => "lock",
            Self::Run { code, .. } => code_of_run(code),
            Self::CallApproval(error) => code_of_call_approval(error),
            Self::State(_) => "state",
            Self::Login { .. } => "login",
            Self::NotInstalled { error, .. } => error.code(),
            Self::Fetch(error) if !error.is_refusal() => "source",
            Self::Unasked { .. } | Self::Unserved { .. } | Self::Unconfirmed { .. } => "refused",
            Self::Fetch(_) | Self::Refused { .. } => "refused",
            Self::Unguarded { .. } => "unguarded",
            Self::Missing { .. } => "not-installed",
            Self::NotBuilt(_) | Self::Source(_) => "not-built",
            Self::Tests(_) => "tests",
            Self::NotThere { refused: true, .. } => "refused",
            Self::NotThere { .. } => "not-loaded",
            Self::Interrupted => "interrupted",
            Self::Unread | Self::Build(_) | Self::Watch(_) | Self::Host(_) | Self::Relayed(_) => {
                "host"
            }
            Self::Call(error) => error.code(),
            Self::Known { error, .. } => error.code(),
        }
    }

    pub(crate) fn exit_code(&self) -> Exit {
        match self {
            Self::NotInstalled { error, .. } => error.exit_code(),
            Self::Input(_)
            | Self::Read(..)
            | Self::ReadArgument { .. }
            | Self::Write(..)
            | Self::NoPlugin { .. }
            | Self::Config(_)
            | Self::Missing { .. }
            | Self::Unguarded { .. }
            | Self::Lock(_) => Exit::Input,
            Self::NotBuilt(_) | Self::Source(_) | Self::Tests(_) => Exit::Failed,
            Self::Relayed(error) => error.exit,
            Self::Fetch(error) if !error.is_refusal() => Exit::Host,
            Self::Fetch(_)
            | Self::Refused { .. }
            | Self::Unconfirmed { .. }
            | Self::NotThere { refused: true, .. }
            | Self::Unasked { .. }
            | Self::Unserved { .. } => Exit::Refused,
            Self::Interrupted => Exit::Interrupted,
            Self::NotThere { failure: Some(failure), .. } => code_of(failure),
            Self::NotThere { .. } => Exit::Input,
            Self::Unread => Exit::Success,
            Self::Build(_)
            | Self::Watch(_)
            | Self::Host(_)
            | Self::Approval(_)
            | Self::State(_) => Exit::Host,
            Self::Run { exit, .. } => *exit,
            Self::CallApproval(error) => match error {
                CallApprovalError::Store(_)
                | CallApprovalError::NoRandomness
                | CallApprovalError::Damaged(_) => Exit::Host,
                _ => Exit::Input,
            },
            Self::Login { error, .. } => code_of_login(error),
            Self::Call(error) => code_of_call(error),
            Self::Known { error, .. } => code_of_call(error),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Unguarded { remedy, .. } => Some(format!(
                "{}; it may be a guard, and `on_failure = \"stop\"` under [hooks] stops everything until it loads",
                remedy.as_deref().unwrap_or("fix or remove it")
            )),
            Self::NoPlugin { nearest: Some(nearest), .. }
            | Self::Call(CallError::NotFound { nearest: Some(nearest), .. }) => {
                Some(format!("did you mean \"{nearest}\"?"))
            }
            Self::NoPlugin { .. } => Some("`tenon plugins` lists the plugins".into()),
            Self::ReadArgument { .. } => Some(
                "an argument that begins with `@` names a file, relative to the current folder"
                    .into(),
            ),
            Self::NotThere { remedy, .. } => remedy.clone(),
            // Each has its own.
            Self::Source(problems) => match &problems[..] {
                [problem] => problem.hint().map(Into::into),
                _ => None,
            },
            Self::Relayed(error) => error.hint.clone(),
            Self::NotInstalled { error, .. } => error.hint(),
            Self::Missing { install, .. } => Some(format!("install it with `{install}`")),
            Self::Unserved { plugins, .. } => {
                let plugins = plugins.join(" ");
                Some(format!("`tenon approve {plugins}` shows what they request, and asks"))
            }
            Self::Fetch(error) => error.hint().map(Into::into),
            Self::Refused { hint, .. } => Some(hint.clone()),
            Self::Unconfirmed { command, .. } => {
                Some(format!("run `{command}` to do so without asking"))
            }
            Self::Unasked { command, .. } => {
                Some(format!("run `{command}` to approve without asking"))
            }
            Self::Known { error, plugin } => Some(match &**error {
                CallError::NotFound { nearest: Some(nearest), .. } => {
                    format!(
                        "did you mean \"{nearest}\"? `tenon doctor {plugin}` asks the server again"
                    )
                }
                _ => format!("`tenon doctor {plugin}` asks the server again"),
            }),
            Self::Run { hint, .. } => hint.clone(),
            Self::CallApproval(CallApprovalError::NotFound(_)) => {
                Some("`tenon pending --all` lists the ids".into())
            }
            Self::Call(CallError::NotFound { what: "tool", .. }) => {
                Some("`tenon tools` lists the tools, `tenon doctor` shows problems".into())
            }
            Self::Call(CallError::NotFound { what: "strategy", .. }) => {
                Some("`tenon eval` lists the strategies".into())
            }
            Self::Call(CallError::NotFound { what: "model", .. }) => {
                Some("`tenon complete` lists the models".into())
            }
            Self::Call(CallError::NotFound { what: "prompt", .. }) => {
                Some("`tenon prompts list` lists the prompts".into())
            }
            Self::Call(CallError::NotFound { what: "resource template", .. }) => {
                Some("`tenon resources templates` lists the resource templates".into())
            }
            _ => None,
        }
    }
}

fn code_of_login(error: &LoginError) -> Exit {
    match error {
        LoginError::NotAsked => Exit::Input,
        LoginError::Page | LoginError::Denied(_) | LoginError::TimedOut(_) => Exit::Refused,
        LoginError::NotServed(_) | LoginError::Server(_) | LoginError::Protocol(_) => Exit::Failed,
        LoginError::Port(_)
        | LoginError::Store(_)
        | LoginError::NoFolder
        | LoginError::Damaged(_) => Exit::Host,
    }
}

/// The code of what ended a run.
fn code_of_run(code: &str) -> &'static str {
    const CODES: [&str; 9] = [
        "approval-required",
        "invalid-input",
        "invalid-script",
        "failed",
        "trapped",
        "limit",
        "invalid-result",
        "diverged",
        "state",
    ];
    CODES.into_iter().find(|known| *known == code).unwrap_or("host")
}

fn code_of_call_approval(error: &CallApprovalError) -> &'static str {
    match error {
        CallApprovalError::NotFound(_) => "not-found",
        CallApprovalError::Store(_) | CallApprovalError::Damaged(_) => "state",
        CallApprovalError::NoRandomness => "host",
        _ => "invalid-input",
    }
}

fn code_of_call(error: &CallError) -> Exit {
    match error {
        CallError::NotFound { .. } | CallError::InvalidInput { .. } => Exit::Input,
        CallError::NotApproved { refusal, .. }
            if matches!(**refusal, CallRefusal::Unkept { .. }) =>
        {
            Exit::Host
        }
        CallError::Vetoed { .. }
        | CallError::Disabled { .. }
        | CallError::Held { .. }
        | CallError::NotApproved { .. } => Exit::Refused,
        CallError::Failed { failure, .. } => code_of(failure),
        _ => Exit::Host,
    }
}

fn code_of(failure: &Failure) -> Exit {
    match failure {
        Failure::Answered(_) | Failure::Unsupported(_) | Failure::Contract(_) => Exit::Failed,
        Failure::Trapped(_)
        | Failure::LimitExceeded(_)
        | Failure::Deadline(_)
        | Failure::Lost(_) => Exit::Trapped,
        _ => Exit::Host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tenon_host::types::Error as Answer;

    #[test]
    fn help_has_a_line_for_each_exit_code() {
        let exits = [
            Exit::Success,
            Exit::Failed,
            Exit::Input,
            Exit::Refused,
            Exit::Trapped,
            Exit::Host,
            Exit::Interrupted,
        ];
        let lines = EXIT_CODES.lines().skip(1);
        let codes: Vec<&str> = lines.filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(codes, exits.map(|exit| (exit as u8).to_string()));
        assert!(exits.is_sorted());
    }

    #[test]
    fn who_is_to_come_back_is_told_when() {
        let unavailable = |retry_after| {
            let failure = Failure::Answered(Answer::unavailable("busy").retry_after(retry_after));
            Error::from(CallError::Failed { plugin: "p".into(), failure }).to_json()
        };
        assert_eq!(
            unavailable(Some(Duration::from_millis(1500)))["error"]["retryAfterMillis"],
            1500
        );
        assert_eq!(unavailable(None)["error"].get("retryAfterMillis"), None);
    }
}
