//! Systems on which no files are lent: a plugin that requests any is refused.

use std::collections::BTreeSet;
use std::path::PathBuf;
use wasmtime::component::Linker;

use crate::capability::HostState;
use crate::grant::{Grants, PathGrant, Protection};
use crate::host_environment::HostEnvironment;

/// Which files a plugin may use: none.
#[derive(Debug, Default)]
pub(crate) struct Files;

/// What an instance has of folders: none.
#[derive(Default)]
pub(crate) struct Folders;

impl Files {
    pub(crate) fn of(_: &Grants, _: &HostEnvironment, _: &BTreeSet<PathBuf>) -> Self {
        Self
    }

    pub(crate) fn new(_: Vec<Vec<PathGrant>>, _: Vec<String>, _: Protection) -> Self {
        Self
    }
}

/// What wasmtime-wasi links has no folder to begin with.
pub(crate) fn link(_: &mut Linker<HostState>) -> wasmtime::Result<()> {
    Ok(())
}
