//! Runs hostile plugins on a host as its embedder configured it, and reports what it stopped.
//!
//! An embedder of `tenon-host` decides a good deal: how instances get their memory, how much plugins
//! may use, who approves what they request, which way requests leave. This crate finds out whether
//! the host that comes of it still keeps plugins in: it goes through a table of expectations, one
//! for each thing that a plugin can be after ([`Capability`]) and each way to try it ([`ApiSurface`]),
//! and says of each whether it was met. What is granted must work, what is not must be refused with
//! words that say why, and whoever was refused or stopped must be usable afterwards, while others
//! never noticed. Each attempt has a control: the same is tried where it is granted and has to succeed
//! there, or where it is not and has to be refused, so that what is refused is refused for want of the
//! grant and not because it cannot be done at all.
//!
//! ```no_run
//! use tenon_host::{Allocation, Limits};
//!
//! # #[tokio::main]
//! # async fn main() {
//! let report = tenon_conformance::run(|builder| {
//!     // What the embedder does to every builder of its own.
//!     builder.allocation(Allocation::Pool { instances: 100 }).limits_at_most(Limits::default())
//! })
//! .await;
//! assert!(report.passed(), "{report}");
//! # }
//! ```
//!
//! The suite makes two hosts. It gives each of them plugins, files, surroundings and an approver, and
//! has the embedder's closure add to that. Then it puts services and a record of calls of its own
//! in, so that nobody gets a message of a test; and into the second host also an approver that
//! grants less than was requested, or more, secrets, and a network on which names lead to places
//! that must not be reached. A closure may replace what was there before, and has to answer for it:
//! an approver that grants nothing makes what should work fail, and the controls with it. [`Suite`]
//! tries a part of the table.
//!
//! Nothing is contacted but this machine, nothing is written but to a temporary folder, and both are
//! gone when the suite is. It takes a minute or two where compiled code is not optimized, and uses
//! a [multi-threaded runtime](tokio::runtime) best: a host on one thread works, and is slower.

mod action;
mod case;
mod fakes;
mod fixture;
mod host_under_test;
mod plugins;
mod race;
mod report;
mod rhai_scripts;
mod row;
mod run;
/// Which the tests of the repository use, too.
#[doc(hidden)]
pub mod server;
mod table;

use std::path::PathBuf;
use tenon_host::Builder;

pub use case::{ApiSurface, Capability, ConformanceCase};
pub use report::{Report, RowResult, Verdict};

/// Tries everything on hosts that this closure configures; it is called once for each of them.
pub async fn run(host: impl FnMut(Builder) -> Builder) -> Report {
    Suite::new().run(host).await
}

/// Which expectations are tried.
#[derive(Debug, Clone, Default)]
pub struct Suite {
    only: Vec<String>,
    without: Vec<String>,
    cache: Option<PathBuf>,
}

impl Suite {
    /// All of them.
    pub fn new() -> Self {
        Self::default()
    }

    /// Those alone whose name has this text in it, or one that was given before: `network`, or
    /// `filesystem/wasi-0.3/read`.
    pub fn only(mut self, text: impl Into<String>) -> Self {
        self.only.push(text.into());
        self
    }

    /// Leaves those out whose name has this text in it.
    pub fn without(mut self, text: impl Into<String>) -> Self {
        self.without.push(text.into());
        self
    }

    /// Keeps the guests as they were compiled in this folder, for the next time. Without it they are
    /// compiled for each run, which takes a few seconds.
    pub fn cache(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cache = Some(folder.into());
        self
    }

    /// What would be tried.
    pub fn expectations(&self) -> Vec<ConformanceCase> {
        self.rows().into_iter().map(|row| row.expectation).collect()
    }

    /// Tries it on hosts that this closure configures; it is called once for each of them.
    pub async fn run(&self, host: impl FnMut(Builder) -> Builder) -> Report {
        Report { outcomes: run::run(self.rows(), self.cache.as_deref(), host).await }
    }

    fn rows(&self) -> Vec<row::Row> {
        let has = |texts: &[String], name: &str| texts.iter().any(|text| name.contains(text));
        let mut rows = table::rows();
        rows.retain(|row| {
            let name = &row.expectation.name;
            (self.only.is_empty() || has(&self.only, name)) && !has(&self.without, name)
        });
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_expectation_has_a_name_of_its_own() {
        let names: Vec<_> = Suite::new().expectations().into_iter().map(|e| e.name).collect();
        let unique: BTreeSet<_> = names.iter().collect();
        let twice = names.iter().filter(|name| names.iter().filter(|n| n == name).count() > 1);
        assert_eq!(names.len(), unique.len(), "{:?}", twice.collect::<Vec<_>>());
    }

    #[test]
    fn every_row_is_about_plugins_that_there_are() {
        for row in table::rows() {
            let plugins = plugins::plugins(row.variant);
            for plugin in row.plugins() {
                let is_there = plugins.iter().any(|hostile| hostile.id == plugin);
                assert!(is_there, "{}: {plugin}", row.expectation.name);
            }
        }
    }

    /// Whether both are the same, but for an amount where it is about limits: a text that says how much,
    /// how deep calls are nested, or how long an answer the server is asked for.
    fn are_alike(one: &action::Action, other: &action::Action, of_limits: bool) -> bool {
        one.tool == other.tool && (of_limits || one.arguments == other.arguments)
    }

    #[test]
    fn each_row_is_tried_where_it_is_granted_and_where_it_is_not() {
        use row::{AttemptKind, Control};
        for row in table::rows() {
            let name = &row.expectation.name;
            let of_limits = row.expectation.capability == Capability::Limits;
            match (&row.attempt, &row.control) {
                (AttemptKind::Calls(tried), Control::Call(deed, _) | Control::Refused(deed)) => {
                    assert!(are_alike(&tried[0], deed, of_limits), "{name}");
                    let is_other = tried[0].plugin != deed.plugin;
                    assert!(is_other || of_limits, "{name} is tried by the same plugin twice");
                }
                (AttemptKind::Load(..), Control::Ready(_))
                | (AttemptKind::Race(_), Control::RaceReaches(_)) => {}
                (
                    AttemptKind::Load(..) | AttemptKind::Calls(_) | AttemptKind::Recorded(..),
                    Control::Never(deeds, _, why),
                ) => {
                    assert!(NEVER.contains(why), "{name}: {why}");
                    let is_load = matches!(row.attempt, AttemptKind::Load(..));
                    assert!(is_load || !deeds.is_empty(), "{name} shows nothing");
                }
                _ => panic!("{name} has another control than its kind of attempt needs"),
            }
        }
    }

    /// Why no grant covers something: whatever else is tried must succeed where it is granted.
    const NEVER: &[&str] = &[
        "a link says where it leads from where it is",
        "a name means where it leads at that time",
        "a path does not lead out of the folder that it begins in",
        "a script has no other code",
        "a script makes no code",
        "a secret is masked wherever it is seen",
        "connections are made for requests only",
        "it asks for something else than what is at a URL",
        "it is neither a file nor a folder",
        "it is no call that comes to an end",
        "it is the path of nothing",
        "no host has it",
        "no manifest requests it: a host's own bridge has it",
        "no redirect is followed for a component, which asks again itself",
        "such headers are the host's to say",
        "what was opened for reading is not there for writing",
        "where an absolute link leads is told nobody",
        "who asks is said by a header",
    ];

    #[test]
    fn a_part_can_be_chosen() {
        let names =
            |suite: Suite| suite.expectations().into_iter().map(|e| e.name).collect::<Vec<_>>();
        let chosen = names(Suite::new().only("network/").only("secrets/").without("rhai"));
        assert!(!chosen.is_empty());
        for name in chosen {
            let fits = name.starts_with("network/") || name.starts_with("secrets/");
            assert!(fits && !name.contains("rhai"), "{name}");
        }
    }
}
