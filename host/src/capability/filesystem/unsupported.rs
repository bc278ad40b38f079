//! Systems on which no files are lent: a plugin that requests any is refused.

use tenon_config::grant::FileRules;
use wasmtime::component::Linker;

use crate::capability::HostState;

/// Which files a plugin may use: none.
#[derive(Debug, Default)]
pub(crate) struct FileGrants;

/// What an instance has of folders: none.
#[derive(Default)]
pub(crate) struct FilesystemState;

impl FileGrants {
    pub(crate) fn new(_: FileRules) -> Self {
        Self
    }
}

/// What wasmtime-wasi links has no folder to begin with.
pub(crate) fn link(_: &mut Linker<HostState>) -> wasmtime::Result<()> {
    Ok(())
}
