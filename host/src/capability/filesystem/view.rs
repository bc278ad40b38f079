//! What the interfaces of both editions see of an instance.

use rustix::fs::fstat;
use rustix::io::Errno;
use std::collections::HashMap;
use std::hash::RandomState;
use std::io;
use std::sync::Arc;
use tenon_config::grant::FILESYSTEM;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::{FsPerms, OpenMode, ResourceTable, ResourceTableError};

use super::listing::ListingSemaphore;
use super::opened::{OpenFiles, OpenPermit};
use super::ops::{self, BaseFolder, OpenedEntry};
use super::walk::{DeniedAccess, FileError, FileGrants, Folder};
use super::{p2, p3};
use crate::capability::{HostState, RefusalReporter};

/// Puts the interfaces into a linker that has those of wasmtime-wasi already.
pub(crate) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    p2::link(linker)?;
    p3::link(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Marks the interfaces that are implemented on [`FilesView`].
pub(crate) struct HasFilesView;

impl HasData for HasFilesView {
    type Data<'a> = FilesView<'a>;
}

/// What an instance has of folders.
#[derive(Default)]
pub(crate) struct FilesystemState {
    pub(super) wasi: WasiFilesystemCtx,
    /// Where open folders really are, by their handles in the table.
    pub(super) open: HashMap<u32, Folder>,
    /// Leave to read listings.
    pub(super) listings: ListingSemaphore,
    /// What files are told apart by.
    pub(super) identities: RandomState,
    /// What of the system's descriptors it has.
    opened: OpenFiles,
    /// The folders that the guest is given to begin with, once it has asked.
    roots: Option<Vec<(String, Folder, Dir)>>,
}

/// What the interfaces see of an instance.
pub(crate) struct FilesView<'a> {
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) folders: &'a mut FilesystemState,
    pub(crate) files: &'a Arc<FileGrants>,
    pub(crate) refuse: RefusalReporter,
}

impl FilesView<'_> {
    /// The same, as wasmtime-wasi sees it.
    pub(super) fn wasi(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.folders.wasi, table: self.table }
    }

    /// Leave to open one more file or folder.
    pub(super) fn leave_to_open(&mut self) -> Result<OpenPermit, FileError> {
        self.folders.opened.leave()
    }

    /// A folder, as a place to resolve paths in.
    pub(super) fn beneath(&self, folder: &Resource<Descriptor>) -> Result<BaseFolder, FileError> {
        let folder = self.folders.open.get(&folder.rep()).cloned();
        let folder = folder.ok_or(FileError::Os(Errno::NOTDIR))?;
        Ok(BaseFolder { files: self.files.clone(), folder })
    }

    /// Hands an open file or folder to the guest.
    pub(super) fn push(&mut self, opened: OpenedEntry) -> wasmtime::Result<Resource<Descriptor>> {
        match opened {
            OpenedEntry::Folder(folder) => {
                let dir = self.dir(&folder)?;
                // The walk's own handle is not needed any more.
                let folder = folder.reopened(dir.dir.clone());
                self.folders.opened.count(&dir.dir);
                let resource = self.table.push(Descriptor::Dir(dir))?;
                self.folders.open.insert(resource.rep(), folder);
                Ok(resource)
            }
            OpenedEntry::File { file, read, write } => {
                let perms = if write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
                let mut mode = OpenMode::empty();
                mode.set(OpenMode::READ, read);
                mode.set(OpenMode::WRITE, write);
                let file = File::new(file, perms, mode, false);
                self.folders.opened.count(&file.file);
                Ok(self.table.push(Descriptor::File(file))?)
            }
        }
    }

    /// The folders that the guest is given to begin with. However often it asks, they are open once.
    pub(super) fn roots(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        if self.folders.roots.is_none() {
            let opened = self.files.open_roots().into_iter().map(|(name, folder)| {
                let dir = self.dir(&folder)?;
                Ok((name, folder, dir))
            });
            self.folders.roots = Some(opened.collect::<io::Result<_>>()?);
        }
        let mut given = Vec::new();
        for (name, folder, dir) in self.folders.roots.iter().flatten() {
            let resource = self.table.push(Descriptor::Dir(dir.clone()))?;
            self.folders.open.insert(resource.rep(), folder.clone());
            given.push((resource, name.clone()));
        }
        Ok(given)
    }

    /// A folder as wasmtime-wasi has it.
    fn dir(&self, folder: &Folder) -> io::Result<Dir> {
        let may_write = self.files.rights_of(folder).write.any();
        let perms = if may_write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
        let mode = if may_write { OpenMode::all() } else { OpenMode::READ };
        Ok(Dir::new(folder.handle.try_clone()?, perms, mode, false))
    }

    /// Finds out what tells an open file or folder from all others.
    pub(super) fn identity_of(
        &self,
        descriptor: &Resource<Descriptor>,
    ) -> Result<impl Future<Output = Result<(u64, u64), FileError>> + use<>, ResourceTableError>
    {
        let handle = match self.table.get(descriptor)? {
            Descriptor::File(file) => file.file.clone(),
            Descriptor::Dir(folder) => folder.dir.clone(),
        };
        let (files, key) = (self.files.clone(), self.folders.identities.clone());
        let work = move || Ok(ops::identity(&fstat(&*handle)?, &key));
        Ok(async move { blocking(&files, work).await })
    }

    /// Lets go of an open file or folder.
    pub(super) fn forget(&mut self, descriptor: &Resource<Descriptor>) {
        self.folders.open.remove(&descriptor.rep());
    }

    /// What the system says of something that was not done. A refusal is put into words on the way.
    pub(super) fn reason(&self, stop: FileError) -> io::Error {
        match stop {
            FileError::Os(errno) => errno.into(),
            FileError::Denied(attempt) => {
                let DeniedAccess { doing, path, needs, looks_only, writes: _, protected } =
                    &attempt;
                let tried = format!("{doing} {path}");
                let needs = &self.files.rules().as_requested(needs);
                match (protected, looks_only) {
                    (Some(row), false) => {
                        self.refuse.protected(&tried, FILESYSTEM, needs, row.what())
                    }
                    (_, true) => self.refuse.looked(&tried, FILESYSTEM, needs),
                    (None, false) => self.refuse.not_granted(&tried, FILESYSTEM, needs),
                }
                Errno::PERM.into()
            }
            FileError::Never(what) => {
                self.refuse.never(what);
                Errno::PERM.into()
            }
        }
    }
}

/// Does what blocks where it may block, when it is the plugin's turn.
pub(super) async fn blocking<T: Send + 'static>(
    files: &FileGrants,
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let place = files.place().await?;
    let working = tokio::task::spawn_blocking(move || {
        let _place = place;
        work()
    });
    // A runtime that is shut down does no more work.
    working.await.unwrap_or(Err(FileError::Os(Errno::IO)))
}
