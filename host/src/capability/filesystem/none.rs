//! Systems on which no files are lent: a plugin that requests any is refused.

use wasmtime::component::Linker;

use super::{PathGrant, Protection};
use crate::runtime::wasm::HostState;

/// Which files a plugin may use: none.
#[derive(Debug, Default)]
pub(crate) struct Files;

/// What an instance has of folders: none.
#[derive(Default)]
pub(crate) struct Folders;

pub(crate) const LENT: Option<crate::capability::Link> = None;

impl Files {
    pub(crate) fn new(_: Vec<Vec<PathGrant>>, _: Vec<String>, _: Protection) -> Self {
        Self
    }
}

/// What wasmtime-wasi links has no folder to begin with.
pub(crate) fn link(_: &mut Linker<HostState>) -> wasmtime::Result<()> {
    Ok(())
}
