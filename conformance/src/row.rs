//! A row of the table.

use serde_json::{Value, json};

use crate::attempt::{Deed, Expect, Words};
use crate::expectation::{Access, Capability, Expectation};
use crate::plugins::Stage;

/// An expectation, and how it is tried.
pub(crate) struct Row {
    pub(crate) expectation: Expectation,
    pub(crate) stage: Stage,
    pub(crate) attempt: Attempt,
    /// What must be left of it in the world.
    pub(crate) traces: Traces,
    /// What must work afterwards.
    pub(crate) usable: Option<Deed>,
    /// Plugins that must be there besides those that are called here.
    pub(crate) others: Vec<&'static str>,
    /// Another plugin is called meanwhile. Such rows touch nothing that others look at, and several
    /// are tried at a time.
    pub(crate) meanwhile: bool,
    /// What this system must have.
    pub(crate) requires: Option<&'static str>,
}

/// How something is tried.
pub(crate) enum Attempt {
    /// By calls, one after the other.
    Calls(Vec<Deed>),
    /// By reading a file, in an edition of the guest's, that is swapped all the time.
    Race(&'static str, &'static str),
    /// By being loaded, which must fail with these words.
    Load(&'static str, String),
    /// By a call, of which nothing secret must be in the record of calls.
    Recorded(Deed, &'static str),
}

/// What is left in the world; nothing, where nothing is said.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Traces {
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
}

impl Row {
    pub(crate) fn new(
        capability: Capability,
        access: Access,
        tried: impl Into<String>,
        deed: Deed,
    ) -> Self {
        let expected = deed.expect.words();
        Self::trying(capability, access, tried, expected, Attempt::Calls(vec![deed]))
    }

    pub(crate) fn trying(
        capability: Capability,
        access: Access,
        tried: impl Into<String>,
        expected: impl Into<String>,
        attempt: Attempt,
    ) -> Self {
        let expectation = Expectation::new(capability, access, tried.into(), expected.into());
        Self {
            expectation,
            stage: Stage::Theirs,
            attempt,
            traces: Traces::default(),
            usable: None,
            others: Vec::new(),
            meanwhile: false,
            requires: None,
        }
    }

    pub(crate) fn on(self, stage: Stage) -> Self {
        Self { stage, ..self }
    }

    pub(crate) fn then(self, usable: Deed) -> Self {
        Self { usable: Some(usable), ..self }
    }

    pub(crate) fn leaves(self, traces: Traces) -> Self {
        Self { traces, ..self }
    }

    pub(crate) fn with(self, others: &[&'static str]) -> Self {
        Self { others: others.to_vec(), ..self }
    }

    /// The plugins that it is about.
    pub(crate) fn plugins(&self) -> Vec<&'static str> {
        let mut plugins = self.others.clone();
        match &self.attempt {
            Attempt::Calls(deeds) => plugins.extend(deeds.iter().map(|deed| deed.plugin)),
            Attempt::Race(..) => plugins.push("files"),
            Attempt::Load(plugin, _) => plugins.push(plugin),
            Attempt::Recorded(deed, _) => plugins.push(deed.plugin),
        }
        plugins.extend(self.usable.as_ref().map(|deed| deed.plugin));
        if self.meanwhile {
            plugins.push("bystander");
        }
        plugins
    }
}

/// A call that must be answered so.
pub(crate) fn answered(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    answer: &str,
) -> Deed {
    Deed::new(plugin, tool, arguments, Expect::answer(answer))
}

/// A call that must fail, with words about this capability.
pub(crate) fn refused(
    plugin: &'static str,
    tool: &'static str,
    arguments: Value,
    capability: &'static str,
) -> Deed {
    Deed::new(plugin, tool, arguments, Expect::Refused(None, Words::Request(capability)))
}

/// What any hostile guest that has an `echo` can still do.
pub(crate) fn echo(plugin: &'static str) -> Deed {
    answered(plugin, "echo", json!({ "text": "fine" }), "fine")
}

/// Texts, as traces have them.
pub(crate) fn lines(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| text.to_string()).collect()
}
