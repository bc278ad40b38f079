//! The cases of a plugin: calls of it and what is expected, in TOML files beside it, which `tenon test` runs in any language.
//!
//! The module `file` reads them, `run` runs each in a host of its own, and `check` compares what came of it.

mod check;
mod file;
mod run;

pub(crate) use file::CaseFile;
pub(crate) use run::{CaseResult, PluginUnderTest, run_all};
