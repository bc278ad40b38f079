//! A row of the table.

use serde_json::{Value, json};
use std::fmt::Write;

use crate::action::{Action, Expect, RefusalText};
use crate::case::{ApiSurface, Capability, ConformanceCase};
use crate::plugins::ServicesSource;

/// An expectation, and how it is tried.
pub(crate) struct Row {
    pub(crate) expectation: ConformanceCase,
    pub(crate) variant: ServicesSource,
    pub(crate) attempt: AttemptKind,
    /// What shows that the attempt could have come out otherwise.
    pub(crate) control: Control,
    /// What must be left of it in the world.
    pub(crate) traces: AttemptEffects,
    /// What must work afterwards.
    pub(crate) usable: Option<Action>,
    /// Plugins that must be there besides those that are called here.
    pub(crate) others: Vec<&'static str>,
    /// Another plugin is called meanwhile. Such rows touch nothing that others look at, and several
    /// are tried at a time.
    pub(crate) meanwhile: bool,
    /// What this system must have.
    pub(crate) requires: Option<&'static str>,
}

/// How something is tried.
pub(crate) enum AttemptKind {
    /// By calls, one after the other.
    Calls(Vec<Action>),
    /// By doing something, in an edition of the guest's, with a file that is swapped all the time.
    Race(Race),
    /// By being loaded, which must fail with these words.
    Load(&'static str, String),
    /// By a call, of which nothing secret must be in the record of calls, and this must be.
    Recorded(Action, &'static str, &'static str),
}

/// Something that is done again and again with a file that is swapped meanwhile.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Race {
    pub(crate) edition: &'static str,
    pub(crate) deed: &'static str,
}

/// What shows that an attempt could have come out otherwise: that it is refused for want of a grant, and
/// not because it cannot be done at all; that it succeeds because of a grant, and not with everybody.
#[derive(Clone)]
pub(crate) enum Control {
    /// The same call by a plugin that may, which succeeds and leaves this.
    Call(Action, AttemptEffects),
    /// The row is about what is granted: the same call by a plugin that may not is refused.
    Refused(Action),
    /// What is left out is there where it is granted.
    Ready(&'static str),
    /// The same race, in which a plugin that may reaches both of what is swapped.
    RaceReaches(&'static str),
    /// No grant covers it, for this reason. The calls show that it is asked for as it should be.
    Never(Vec<Action>, AttemptEffects, &'static str),
}

/// What is left in the world; nothing, where nothing is said.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct AttemptEffects {
    /// Changes of files.
    pub(crate) files: Vec<String>,
    /// What the server heard that may be asked.
    pub(crate) server: Vec<String>,
    /// What the server heard that may not be asked.
    pub(crate) other: Vec<String>,
    /// Connections that were to be made.
    pub(crate) connected: Vec<String>,
    /// What was asked of the services.
    pub(crate) services: Vec<String>,
    /// What the witness was called with.
    pub(crate) called: Vec<String>,
    /// How many connections to the two servers were made by which no request came.
    pub(crate) silent: usize,
}

impl Row {
    pub(crate) fn new(
        capability: Capability,
        access: ApiSurface,
        tried: impl Into<String>,
        deed: Action,
        control: Control,
    ) -> Self {
        let expected = deed.expect.words();
        let attempt = AttemptKind::Calls(vec![deed]);
        Self::trying(capability, access, tried, expected, attempt, control)
    }

    pub(crate) fn trying(
        capability: Capability,
        access: ApiSurface,
        tried: impl Into<String>,
        expected: impl Into<String>,
        attempt: AttemptKind,
        control: Control,
    ) -> Self {
        let (tried, expected) = (tried.into(), expected.into());
        let expectation =
            ConformanceCase::new(capability, access, tried, expected, control.words());
        Self {
            expectation,
            variant: ServicesSource::Theirs,
            attempt,
            control,
            traces: AttemptEffects::default(),
            usable: None,
            others: Vec::new(),
            meanwhile: false,
            requires: None,
        }
    }

    pub(crate) fn on(self, variant: ServicesSource) -> Self {
        Self { variant, ..self }
    }

    pub(crate) fn then(self, usable: Action) -> Self {
        Self { usable: Some(usable), ..self }
    }

    pub(crate) fn leaves(self, traces: AttemptEffects) -> Self {
        Self { traces, ..self }
    }

    pub(crate) fn with(self, others: &[&'static str]) -> Self {
        Self { others: others.to_vec(), ..self }
    }

    /// The plugins that it is about.
    pub(crate) fn plugins(&self) -> Vec<&'static str> {
        let mut plugins = self.others.clone();
        match &self.attempt {
            AttemptKind::Calls(deeds) => plugins.extend(deeds.iter().map(|deed| deed.plugin)),
            AttemptKind::Race(_) => plugins.push("files"),
            AttemptKind::Load(plugin, _) => plugins.push(plugin),
            AttemptKind::Recorded(deed, ..) => plugins.push(deed.plugin),
        }
        plugins.extend(self.control.plugins());
        plugins.extend(self.usable.as_ref().map(|deed| deed.plugin));
        if self.meanwhile {
            plugins.push("bystander");
        }
        plugins
    }
}

impl Control {
    /// The same call by another plugin, which is answered so and leaves nothing.
    pub(crate) fn call(deed: &Action, plugin: &'static str, answer: impl Into<String>) -> Self {
        Self::Call(deed.by(plugin, Expect::answer(answer)), AttemptEffects::default())
    }

    /// The same, leaving this.
    pub(crate) fn leaving(self, traces: AttemptEffects) -> Self {
        match self {
            Self::Call(deed, _) => Self::Call(deed, traces),
            Self::Never(deeds, _, why) => Self::Never(deeds, traces, why),
            other => other,
        }
    }

    /// No grant covers it, for this reason; the call shows that it is asked for as it should be.
    pub(crate) fn never(deed: Action, why: &'static str) -> Self {
        Self::Never(vec![deed], AttemptEffects::default(), why)
    }

    /// The calls that it consists of, and what they leave.
    pub(crate) fn calls(&self) -> (&[Action], AttemptEffects) {
        match self {
            Self::Call(deed, traces) => (std::slice::from_ref(deed), traces.clone()),
            Self::Refused(deed) => (std::slice::from_ref(deed), AttemptEffects::default()),
            Self::Never(deeds, traces, _) => (deeds, traces.clone()),
            Self::Ready(_) | Self::RaceReaches(_) => (&[], AttemptEffects::default()),
        }
    }

    fn plugins(&self) -> Vec<&'static str> {
        match self {
            Self::Ready(plugin) | Self::RaceReaches(plugin) => vec![plugin],
            Self::Call(..) | Self::Refused(_) | Self::Never(..) => {
                self.calls().0.iter().map(|deed| deed.plugin).collect()
            }
        }
    }

    /// Where what it shows is the case, as a report begins to say what is not so.
    pub(crate) fn place(&self) -> &'static str {
        match self {
            Self::Call(..) | Self::Ready(_) | Self::RaceReaches(_) => "where it is granted",
            Self::Refused(_) => "where it is not granted",
            Self::Never(..) => "of what is granted beside it",
        }
    }

    /// What it shows, in words.
    fn words(&self) -> String {
        let place = self.place();
        match self {
            Self::Call(deed, _) | Self::Refused(deed) => {
                format!("{place}: {}", deed.expect.words())
            }
            Self::Ready(_) => format!("{place}: it is there"),
            Self::RaceReaches(_) => format!("{place}: both of what is swapped are reached"),
            Self::Never(deeds, _, why) => {
                let mut words = format!("it is never granted: {why}");
                for deed in deeds {
                    let _ = write!(words, "; {place}: {}", deed.expect.words());
                }
                words
            }
        }
    }
}

/// A call that must be answered so.
pub(crate) fn answered(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    answer: &str,
) -> Action {
    Action::new(plugin, tool, arguments, Expect::answer(answer))
}

/// A call that must fail, with words about this capability.
pub(crate) fn refused(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    capability: &'static str,
) -> Action {
    Action::new(plugin, tool, arguments, Expect::Refused(None, RefusalText::Request(capability)))
}

/// What any hostile guest that has an `echo` can still do.
pub(crate) fn echo(plugin: &'static str) -> Action {
    answered(plugin, "echo", json!({ "text": "fine" }), "fine")
}

/// Texts, as traces have them.
pub(crate) fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}
