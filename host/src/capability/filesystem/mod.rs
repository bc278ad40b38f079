//! `filesystem`: files, through the guest's own standard library, in WASI 0.2 and 0.3 alike. Values
//! are `read:`, `write:` and `readwrite:` globs; see [`pattern`].
//!
//! The `wasi:filesystem` interfaces are implemented here for every component: what takes a path is
//! done by [`ops`], what takes an open file is left to wasmtime-wasi. Each is given the root of all
//! files to begin with, so that what it may not have is refused in words that teach.
//!
//! Reading, and looking at a file, needs `read`; whatever changes something needs `write`. What a
//! link or a new name would make reachable under other rights is refused, and so is what is neither
//! a file nor a folder. A listing shows what may be read, and the folders on the way to what is
//! granted.

/// The types of both editions have the same names, and nothing else in common.
macro_rules! opening {
    ($path_flags:expr, $open:expr, $flags:expr) => {{
        let synchronized = DescriptorFlags::FILE_INTEGRITY_SYNC
            | DescriptorFlags::DATA_INTEGRITY_SYNC
            | DescriptorFlags::REQUESTED_WRITE_SYNC;
        if $flags.intersects(synchronized) {
            return Err(ErrorCode::Unsupported.into());
        }
        let how = Opening {
            read: $flags.contains(DescriptorFlags::READ),
            write: $flags.contains(DescriptorFlags::WRITE),
            create: $open.contains(OpenFlags::CREATE),
            exclusive: $open.contains(OpenFlags::EXCLUSIVE),
            truncate: $open.contains(OpenFlags::TRUNCATE),
            folder: $open.contains(OpenFlags::DIRECTORY),
            follow: $path_flags.contains(PathFlags::SYMLINK_FOLLOW),
        };
        if !how.is_sound() {
            return Err(ErrorCode::Invalid.into());
        }
        how
    }};
}

/// What a type of file is called in an edition, which has a word of its own for the last.
macro_rules! descriptor_type {
    ($file_type:expr, $unknown:expr) => {
        match $file_type {
            FileType::RegularFile => DescriptorType::RegularFile,
            FileType::Directory => DescriptorType::Directory,
            FileType::Symlink => DescriptorType::SymbolicLink,
            FileType::Fifo => DescriptorType::Fifo,
            FileType::Socket => DescriptorType::Socket,
            FileType::CharacterDevice => DescriptorType::CharacterDevice,
            FileType::BlockDevice => DescriptorType::BlockDevice,
            FileType::Unknown => $unknown,
        }
    };
}

mod ops;
mod p2;
mod p3;
pub(crate) mod pattern;
mod walk;

use rustix::fs::fstat;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, Dir, File, WasiFilesystemCtx, WasiFilesystemCtxView};
use wasmtime_wasi::{FsPerms, OpenMode, ResourceTable, ResourceTableError};

pub(crate) use pattern::PathGrant;
pub(crate) use walk::Files;
#[cfg(any(test, fuzzing))]
pub(crate) use {ops::fuzz::path_walk, pattern::fuzz::path_glob};

use crate::runtime::wasm::{HostState, Refuse};
use ops::{Beneath, Opened};
use walk::{Folder, Stop};

/// The name in manifests.
pub(super) const NAME: &str = "filesystem";

/// Puts the interfaces into a linker that has those of wasmtime-wasi already.
pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    p2::link(linker)?;
    p3::link(linker)?;
    linker.allow_shadowing(false);
    Ok(())
}

/// Marks the interfaces that are implemented on [`FilesView`].
pub(crate) struct FileSystem;

impl HasData for FileSystem {
    type Data<'a> = FilesView<'a>;
}

/// What an instance has of folders.
#[derive(Default)]
pub(crate) struct Folders {
    wasi: WasiFilesystemCtx,
    /// Where open folders really are, by their handles in the table.
    open: HashMap<u32, Folder>,
    /// The folders of listings that are being read, by their handles.
    listings: HashMap<u32, Folder>,
}

/// What the interfaces see of an instance.
pub(crate) struct FilesView<'a> {
    pub(crate) table: &'a mut ResourceTable,
    pub(crate) folders: &'a mut Folders,
    pub(crate) files: &'a Arc<Files>,
    pub(crate) refuse: Refuse,
}

impl FilesView<'_> {
    /// The same, as wasmtime-wasi sees it.
    fn wasi(&mut self) -> WasiFilesystemCtxView<'_> {
        WasiFilesystemCtxView { ctx: &mut self.folders.wasi, table: self.table }
    }

    /// A folder, as a place to resolve paths in.
    fn beneath(&self, folder: &Resource<Descriptor>) -> Result<Beneath, Stop> {
        let folder = self.folders.open.get(&folder.rep()).cloned();
        let folder = folder.ok_or(Stop::Os(Errno::NOTDIR))?;
        Ok(Beneath { files: self.files.clone(), folder })
    }

    /// Hands an open file or folder to the guest.
    fn push(&mut self, opened: Opened) -> wasmtime::Result<Resource<Descriptor>> {
        match opened {
            Opened::Folder(folder) => {
                let may_write = self.files.rights(&folder.path).write.any();
                let perms = if may_write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
                let mode = if may_write { OpenMode::all() } else { OpenMode::READ };
                let handle = folder.handle.try_clone()?;
                let dir = Dir::new(handle, perms, mode, false);
                let resource = self.table.push(Descriptor::Dir(dir))?;
                self.folders.open.insert(resource.rep(), folder);
                Ok(resource)
            }
            Opened::File { file, read, write } => {
                let perms = if write { FsPerms::ReadWrite } else { FsPerms::ReadOnly };
                let mut mode = OpenMode::empty();
                mode.set(OpenMode::READ, read);
                mode.set(OpenMode::WRITE, write);
                Ok(self.table.push(Descriptor::File(File::new(file, perms, mode, false)))?)
            }
        }
    }

    /// The folders that the guest is given to begin with.
    fn roots(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let roots = self.files.open_roots().into_iter();
        roots.map(|(name, folder)| Ok((self.push(Opened::Folder(folder))?, name))).collect()
    }

    /// Finds out what tells an open file or folder from all others.
    fn identity_of(
        &self,
        descriptor: &Resource<Descriptor>,
    ) -> Result<impl Future<Output = Result<(u64, u64), Stop>> + use<>, ResourceTableError> {
        let handle = match self.table.get(descriptor)? {
            Descriptor::File(file) => file.file.clone(),
            Descriptor::Dir(folder) => folder.dir.clone(),
        };
        Ok(blocking(move || Ok(ops::identity(&fstat(&*handle)?))))
    }

    /// Lets go of an open file or folder.
    fn forget(&mut self, descriptor: &Resource<Descriptor>) {
        self.folders.open.remove(&descriptor.rep());
    }

    /// What the system says of something that was not done. A refusal is put into words on the way.
    fn reason(&self, stop: Stop) -> io::Error {
        match stop {
            Stop::Os(errno) => errno.into(),
            Stop::Denied(attempt) => {
                let tried = format!("{} {}", attempt.doing, attempt.path);
                self.refuse.not_granted(&tried, NAME, &attempt.needs);
                Errno::PERM.into()
            }
            Stop::Never(what) => {
                self.refuse.never(what);
                Errno::PERM.into()
            }
        }
    }
}

/// Does what blocks where it may block.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Stop> + Send + 'static,
) -> Result<T, Stop> {
    // A runtime that is shut down does no more work.
    tokio::task::spawn_blocking(work).await.unwrap_or(Err(Stop::Os(Errno::IO)))
}
