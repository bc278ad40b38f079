//! What a plugin is made to do, what must come of it, and what came of it.

use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write;
use std::time::Duration;
use tenon_host::meta::{REFUSED, TRUNCATED};
use tenon_host::types::{Error, ErrorCode, ToolResult};
use tenon_host::{CallError, Failure, LimitExceeded, Limits};

/// A call of a hostile tool, and what must come of it.
#[derive(Clone)]
pub(crate) struct Action {
    pub(crate) plugin: &'static str,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
    pub(crate) expect: Expect,
    /// What must be in the log of it.
    pub(crate) logged: Option<ExpectedLog>,
}

/// What must be in the log of a call, and what must not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ExpectedLog {
    /// What lines have in them: without any, nobody would know that the log was read.
    pub(crate) present: &'static str,
    /// How many lines have it in them, at least and at most.
    pub(crate) least: usize,
    pub(crate) most: usize,
    /// How many more there may be for each second that the call takes.
    pub(crate) rate: usize,
    /// What no line has in it.
    pub(crate) absent: Option<&'static str>,
}

/// What must come of a call.
#[derive(Clone)]
pub(crate) enum Expect {
    /// This answer.
    Answer(String),
    /// An answer that begins so.
    Begins(&'static str),
    /// A refusal: this answer, or an error where the way there has errors of its own; and words for
    /// the operator.
    Refused(Option<&'static str>, RefusalText),
    /// An error that says one of these.
    Says(&'static [&'static str]),
    /// An answer in which the guest says one of these.
    Tells(&'static [&'static str]),
    /// An end by one of these, of a plugin with these limits.
    Stopped(&'static [StoppedBy], Box<Limits>),
    /// The beginning of this text, cut to so many bytes, of which the whole is kept.
    Cut(String, usize),
    /// This of a plugin with these limits, unless its host made one of them tighter.
    Fits(Box<Expect>, Box<Limits>),
    /// One of these, after so long at least, and so long at most.
    Within(Vec<Expect>, Duration, Duration),
}

/// The words of a refusal.
#[derive(Clone, Copy)]
pub(crate) enum RefusalText {
    /// They name the plugin, and the line that would request a value of this capability.
    Request(&'static str),
    /// They do so, or say that nothing would: this is never granted.
    RequestOrNever(&'static str),
    /// There are none: what was tried is not known to this host.
    None,
}

/// By what a plugin is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    Cpu,
    Wall,
    Memory,
    Table,
    Transfer,
    HostCalls,
    Depth,
    ValueSize,
    /// It broke off by itself.
    Trap,
    /// Its answer was not taken.
    Contract,
}

/// What came of a call.
pub(crate) enum CallOutcome {
    Answer(ToolResult),
    Error(CallError),
    Panicked(String),
    NoEnd(Duration),
}

/// The most of an answer that is shown, in bytes.
const SHOWN: usize = 300;

impl Action {
    pub(crate) fn new(
        plugin: &'static str,
        tool: &'static str,
        arguments: Value,
        expect: Expect,
    ) -> Self {
        Self { plugin, tool, arguments, expect, logged: None }
    }

    pub(crate) fn logged(self, what: ExpectedLog) -> Self {
        Self { logged: Some(what), ..self }
    }

    /// The same, done by another plugin.
    pub(crate) fn by(&self, plugin: &'static str, expect: Expect) -> Self {
        Self { plugin, expect, logged: None, ..self.clone() }
    }
}

impl Expect {
    pub(crate) fn answer(text: impl Into<String>) -> Self {
        Self::Answer(text.into())
    }

    /// The same, with places in the place of their names.
    pub(crate) fn filled(&self, fill: impl Fn(&str) -> String) -> Self {
        match self {
            Self::Answer(text) => Self::Answer(fill(text)),
            other => other.clone(),
        }
    }

    /// What is expected, in words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Answer(text) => format!("the answer {text:?}"),
            Self::Begins(text) => format!("an answer that begins with {text:?}"),
            Self::Refused(code, words) => {
                let mut said = match code {
                    Some(code) => format!("a refusal, {code}"),
                    None => "a refusal".to_string(),
                };
                let _ = match words {
                    RefusalText::Request(of) => {
                        write!(said, ", with the line that requests `{of}`")
                    }
                    RefusalText::RequestOrNever(of) => {
                        write!(said, ", with the line that requests `{of}`, or that none does")
                    }
                    RefusalText::None => Ok(()),
                };
                said
            }
            Self::Says(texts) => format!("an error that says {}", either(texts.iter())),
            Self::Tells(texts) => format!("an answer that says {}", either(texts.iter())),
            Self::Stopped(stops, _) => {
                format!("an end by {}", either(stops.iter().map(|stop| stop.words())))
            }
            Self::Cut(whole, most) => {
                format!("the first {most} of {} bytes, and where the whole is", whole.len())
            }
            Self::Fits(expect, _) => expect.words(),
            Self::Within(expects, least, most) => {
                let what = either(expects.iter().map(Self::words));
                format!("{what}, between {least:?} and {most:?} after it began")
            }
        }
    }

    /// What is wrong with what came so long after the call, if anything is. The plugin has these
    /// limits, as its host says.
    pub(crate) fn judge(
        &self,
        plugin: &str,
        came: &CallOutcome,
        took: Duration,
        has: Option<&Limits>,
    ) -> Option<String> {
        let met = match (self, came) {
            (_, CallOutcome::Panicked(_) | CallOutcome::NoEnd(_)) => false,
            (Self::Within(expects, least, most), _) => {
                if !(*least..=*most).contains(&took) {
                    return Some(format!("{}, after {took:?}", came.words()));
                }
                expects.iter().any(|expect| expect.judge(plugin, came, took, has).is_none())
            }
            (Self::Answer(text), CallOutcome::Answer(result)) => {
                !result.is_error && result.plain_text() == *text
            }
            (Self::Begins(text), CallOutcome::Answer(result)) => {
                !result.is_error && result.plain_text().starts_with(text)
            }
            (Self::Refused(code, words), _) => {
                let is_refused = match (code, came) {
                    (Some(code), CallOutcome::Answer(result)) => {
                        !result.is_error && result.plain_text() == *code
                    }
                    (None, CallOutcome::Answer(result)) => result.is_error,
                    (None, CallOutcome::Error(CallError::Failed { failure, .. })) => {
                        matches!(failure, Failure::Answered(Error { code: ErrorCode::Denied, .. }))
                    }
                    _ => false,
                };
                is_refused && words.are_said(plugin, came)
            }
            (Self::Fits(expect, given), _) => {
                let is_tighter = match (came, has) {
                    (CallOutcome::Error(CallError::Failed { failure, .. }), Some(has)) => {
                        is_tighter(failure, given, has)
                    }
                    _ => false,
                };
                is_tighter || expect.judge(plugin, came, took, has).is_none()
            }
            (Self::Says(texts), _) => {
                let is_error = !matches!(came, CallOutcome::Answer(result) if !result.is_error);
                is_error && came.said().iter().any(|said| has_one(said, texts))
            }
            (Self::Tells(texts), CallOutcome::Answer(result)) => {
                !result.is_error && has_one(&result.plain_text(), texts)
            }
            (
                Self::Stopped(stops, given),
                CallOutcome::Error(CallError::Failed { failure, .. }),
            ) => {
                let has = has.unwrap_or(given);
                stops.iter().any(|stop| stop.is(failure, given, has))
                    || is_tighter(failure, given, has)
            }
            (Self::Cut(whole, most), CallOutcome::Answer(result)) => {
                let said = result.plain_text();
                let marker = format!("[cut: a part of {} bytes; the whole is ", whole.len());
                let rest = said.strip_prefix(&whole[..*most]).map(str::trim_start);
                !result.is_error
                    && rest.is_some_and(|rest| rest.starts_with(&marker) && rest.len() <= SHOWN)
                    && meta(result)[TRUNCATED]["bytes"] == whole.len()
            }
            _ => false,
        };
        (!met).then(|| came.words())
    }
}

impl RefusalText {
    fn are_said(self, plugin: &str, came: &CallOutcome) -> bool {
        let start = format!("plugin \"{plugin}\": ");
        let line = |of| format!("its plugin.toml would request it with `{of} = [");
        // No glob covers every file.
        let by_name = |of| format!("its plugin.toml would request it by name, with `{of} = [");
        // It was requested, and whoever approved granted less.
        let less = "is not granted; less was granted than its plugin.toml requests";
        let teaches = |said: &str, of| {
            let has_line = said.contains(&line(of)) || said.contains(&by_name(of));
            has_line && said.contains("is not granted") || said.contains(less)
        };
        came.said().iter().any(|said| match self {
            Self::Request(of) => said.contains(&start) && teaches(said, of),
            Self::RequestOrNever(of) => {
                let never = said.contains("is never granted");
                said.contains(&start) && (never || teaches(said, of))
            }
            Self::None => true,
        })
    }
}

impl StoppedBy {
    fn words(self) -> &'static str {
        match self {
            Self::Cpu => "its CPU limit",
            Self::Wall => "its deadline",
            Self::Memory => "its memory limit",
            Self::Table => "its limit of table elements",
            Self::Transfer => "its limit of bytes that it hands to the host",
            Self::HostCalls => "its limit of calls of the host",
            Self::Depth => "its limit of call depth",
            Self::ValueSize => "its limit of the size of values",
            Self::Trap => "a trap of its own",
            Self::Contract => "the host, which does not take its answer",
        }
    }

    /// Whether a failure is this one, by the limit that the plugin has, which is no wider than was
    /// given.
    fn is(self, failure: &Failure, given: &Limits, has: &Limits) -> bool {
        match (self, failure) {
            (Self::Cpu, Failure::LimitExceeded(LimitExceeded::Cpu(at))) => {
                *at == has.cpu && has.cpu <= given.cpu
            }
            (Self::Wall, Failure::Deadline(at)) => *at == has.wall && has.wall <= given.wall,
            (Self::Memory, Failure::LimitExceeded(LimitExceeded::Memory(at))) => {
                *at == has.memory && has.memory <= given.memory
            }
            (Self::Table, Failure::LimitExceeded(LimitExceeded::Table(at))) => {
                *at == has.table_elements && has.table_elements <= given.table_elements
            }
            (Self::Transfer, Failure::LimitExceeded(LimitExceeded::Transfer(at))) => {
                *at == has.transfer && has.transfer <= given.transfer
            }
            (Self::HostCalls, Failure::LimitExceeded(LimitExceeded::HostCalls(at))) => {
                *at == has.host_calls && has.host_calls <= given.host_calls
            }
            (Self::Depth, Failure::LimitExceeded(LimitExceeded::Depth))
            | (Self::ValueSize, Failure::LimitExceeded(LimitExceeded::ValueSize))
            | (Self::Trap, Failure::Trapped(_))
            | (Self::Contract, Failure::Contract(_)) => true,
            _ => false,
        }
    }
}

/// Whether a plugin was stopped by a limit that its host made tighter than the plugin asked for:
/// what it would have met without, it does not come to.
fn is_tighter(failure: &Failure, given: &Limits, has: &Limits) -> bool {
    match failure {
        Failure::LimitExceeded(LimitExceeded::Cpu(at)) => *at == has.cpu && has.cpu < given.cpu,
        Failure::LimitExceeded(LimitExceeded::Memory(at)) => {
            *at == has.memory && has.memory < given.memory
        }
        Failure::LimitExceeded(LimitExceeded::Table(at)) => {
            *at == has.table_elements && has.table_elements < given.table_elements
        }
        Failure::LimitExceeded(LimitExceeded::Transfer(at)) => {
            *at == has.transfer && has.transfer < given.transfer
        }
        Failure::LimitExceeded(LimitExceeded::HostCalls(at)) => {
            *at == has.host_calls && has.host_calls < given.host_calls
        }
        Failure::Deadline(at) => *at == has.wall && has.wall < given.wall,
        _ => false,
    }
}

fn has_one(said: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| said.contains(text))
}

impl CallOutcome {
    /// All texts in which something of it is said.
    fn said(&self) -> Vec<String> {
        match self {
            Self::Answer(result) => {
                let mut said = vec![result.plain_text()];
                said.extend(refusals(result));
                said
            }
            Self::Error(error) => vec![error.to_string()],
            Self::Panicked(_) | Self::NoEnd(_) => Vec::new(),
        }
    }

    /// The answer; nothing where there is none.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Answer(result) => result.plain_text(),
            _ => String::new(),
        }
    }

    /// Where the whole of an answer is that was cut.
    pub(crate) fn whole(&self) -> Option<String> {
        let Self::Answer(result) = self else { return None };
        meta(result)[TRUNCATED]["uri"].as_str().map(str::to_string)
    }

    /// What came, for people.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Answer(result) => {
                let kind = if result.is_error { "the error" } else { "the answer" };
                let mut words = format!("{kind} {:?}", cut(&result.plain_text()));
                for refusal in refusals(result) {
                    let _ = write!(words, ", and to the operator {:?}", cut(&refusal));
                }
                words
            }
            Self::Error(error) => format!("{}: {}", error.code(), cut(&error.to_string())),
            Self::Panicked(words) => format!("the host panicked: {}", cut(words)),
            Self::NoEnd(after) => format!("no end within {after:?}; it was given up"),
        }
    }
}

/// What the host says of a result.
fn meta(result: &ToolResult) -> Value {
    let extra = result.extra.as_deref().and_then(|extra| serde_json::from_str::<Value>(extra).ok());
    extra.map(|mut extra| extra["_meta"].take()).unwrap_or_default()
}

/// What a result says that its plugin was refused.
fn refusals(result: &ToolResult) -> Vec<String> {
    let meta = meta(result);
    let words = meta[REFUSED].as_array().into_iter().flatten().filter_map(|words| words.as_str());
    words.map(str::to_string).collect()
}

/// A text as far as it is shown.
fn cut(text: &str) -> Cow<'_, str> {
    match text.len() {
        length if length > SHOWN => {
            format!("{}… ({length} bytes)", &text[..text.floor_char_boundary(SHOWN)]).into()
        }
        _ => text.into(),
    }
}

fn either(texts: impl Iterator<Item = impl ToString>) -> String {
    texts.map(|text| text.to_string()).collect::<Vec<_>>().join(", or ")
}
