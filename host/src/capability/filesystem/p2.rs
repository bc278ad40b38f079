//! `wasi:filesystem` 0.2.

use rustix::fs::FileType;
use std::vec;
use wasmtime::component::{Linker, Resource};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystemCtxView};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry,
    DirectoryEntryStream, ErrorCode, Filesize, MetadataHashValue, NewTimestamp, OpenFlags,
    PathFlags,
};
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, FsError, FsResult};

use super::listing::{DirReader, Entry};
use super::ops::{BaseFolder, FileInfo, OpenMode, Time};
use super::view::{FilesView, HasFilesView, blocking};
use super::walk::FileError;
use crate::capability::HostState;

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasFilesView>(linker, HostState::files)?;
    preopens::add_to_linker::<_, HasFilesView>(linker, HostState::files)
}

impl FilesView<'_> {
    fn error(&self, stop: FileError) -> FsError {
        ErrorCode::from(self.reason(stop)).into()
    }

    /// Does something beneath a folder, where it may block.
    async fn act<T: Send + 'static>(
        &mut self,
        folder: &Resource<Descriptor>,
        act: impl FnOnce(BaseFolder) -> Result<T, FileError> + Send + 'static,
    ) -> FsResult<T> {
        let done = match self.beneath(folder) {
            Ok(beneath) => {
                let files = beneath.files.clone();
                blocking(&files, move || act(beneath)).await
            }
            Err(stop) => Err(stop),
        };
        done.map_err(|stop| self.error(stop))
    }

    /// The same, with two folders.
    async fn act_on_two(
        &mut self,
        folder: &Resource<Descriptor>,
        other: &Resource<Descriptor>,
        act: impl FnOnce(BaseFolder, BaseFolder) -> Result<(), FileError> + Send + 'static,
    ) -> FsResult<()> {
        let other = self.beneath(other).map_err(|stop| self.error(stop))?;
        self.act(folder, move |beneath| act(beneath, other)).await
    }
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.roots()
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }

    fn filesystem_error_code(
        &mut self,
        error: Resource<wasmtime::Error>,
    ) -> wasmtime::Result<Option<ErrorCode>> {
        self.wasi().filesystem_error_code(error)
    }
}

/// Functions that take an open file, and no path: wasmtime-wasi does them.
macro_rules! delegate {
    ($($function:ident($($name:ident: $argument:ty),*) -> $result:ty;)*) => {$(
        async fn $function(
            &mut self,
            file: Resource<Descriptor>,
            $($name: $argument),*
        ) -> $result {
            WasiFilesystemCtxView::$function(&mut self.wasi(), file $(, $name)*).await
        }
    )*};
}

impl types::HostDescriptor for FilesView<'_> {
    delegate! {
        advise(offset: Filesize, length: Filesize, advice: Advice) -> FsResult<()>;
        sync_data() -> FsResult<()>;
        sync() -> FsResult<()>;
        get_flags() -> FsResult<DescriptorFlags>;
        get_type() -> FsResult<DescriptorType>;
        set_size(size: Filesize) -> FsResult<()>;
        read(length: Filesize, offset: Filesize) -> FsResult<(Vec<u8>, bool)>;
        write(buffer: Vec<u8>, offset: Filesize) -> FsResult<Filesize>;
        stat() -> FsResult<DescriptorStat>;
        is_same_object(other: Resource<Descriptor>) -> wasmtime::Result<bool>;
    }

    fn read_via_stream(
        &mut self,
        file: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynInputStream>> {
        self.wasi().read_via_stream(file, offset)
    }

    fn write_via_stream(
        &mut self,
        file: Resource<Descriptor>,
        offset: Filesize,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.wasi().write_via_stream(file, offset)
    }

    fn append_via_stream(
        &mut self,
        file: Resource<Descriptor>,
    ) -> FsResult<Resource<DynOutputStream>> {
        self.wasi().append_via_stream(file)
    }

    async fn set_times(
        &mut self,
        file: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        if self.beneath(&file).is_err() {
            return self.wasi().set_times(file, accessed, modified).await;
        }
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        self.act(&file, move |folder| folder.set_own_times(accessed, modified)).await
    }

    async fn read_directory(
        &mut self,
        folder: Resource<Descriptor>,
    ) -> FsResult<Resource<DirectoryEntryStream>> {
        let beneath = self.beneath(&folder).map_err(|stop| self.error(stop))?;
        let leave = self.folders.listings.leave().map_err(|stop| self.error(stop))?;
        let opened = DirReader::open(beneath, leave).await.map_err(|stop| self.error(stop))?;
        let reading = FolderIterator { entries: Vec::new().into_iter(), listing: Some(opened) };
        // To the guest it is what wasmtime-wasi calls it, and none of what wasmtime-wasi does.
        Ok(Resource::new_own(self.table.push(reading)?.rep()))
    }

    async fn create_directory_at(
        &mut self,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.act(&folder, move |folder| folder.create_folder(&path)).await
    }

    async fn stat_at(
        &mut self,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<DescriptorStat> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let seen = self.act(&folder, move |folder| folder.see(&path, follow)).await?;
        Ok(described(&seen))
    }

    async fn set_times_at(
        &mut self,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FsResult<()> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        self.act(&folder, move |folder| folder.set_times(&path, follow, accessed, modified)).await
    }

    async fn link_at(
        &mut self,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        other: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        self.act_on_two(&folder, &other, move |from, to| from.link(&path, &to, &new)).await
    }

    async fn open_at(
        &mut self,
        folder: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let how = opening!(path_flags, open, flags);
        let leave = self.leave_to_open().map_err(|stop| self.error(stop))?;
        let open = move |folder: BaseFolder| folder.open(&path, how).map(|opened| (opened, leave));
        let (opened, _leave) = self.act(&folder, open).await?;
        self.push(opened).map_err(FsError::trap)
    }

    async fn readlink_at(
        &mut self,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FsResult<String> {
        self.act(&folder, move |folder| folder.read_link(&path)).await
    }

    async fn remove_directory_at(
        &mut self,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FsResult<()> {
        self.act(&folder, move |folder| folder.remove_folder(&path)).await
    }

    async fn rename_at(
        &mut self,
        folder: Resource<Descriptor>,
        path: String,
        other: Resource<Descriptor>,
        new: String,
    ) -> FsResult<()> {
        self.act_on_two(&folder, &other, move |from, to| from.rename(&path, &to, &new)).await
    }

    async fn symlink_at(
        &mut self,
        folder: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FsResult<()> {
        self.act(&folder, move |folder| folder.make_link(&target, &path)).await
    }

    async fn unlink_file_at(&mut self, folder: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.act(&folder, move |folder| folder.remove_file(&path)).await
    }

    async fn metadata_hash(&mut self, file: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        let identity = self.identity_of(&file).map_err(FsError::trap)?.await;
        let (upper, lower) = identity.map_err(|stop| self.error(stop))?;
        Ok(MetadataHashValue { lower, upper })
    }

    async fn metadata_hash_at(
        &mut self,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let key = self.folders.identities.clone();
        let identity = self.act(&folder, move |folder| folder.identity(&path, follow, &key));
        let (upper, lower) = identity.await?;
        Ok(MetadataHashValue { lower, upper })
    }

    fn drop(&mut self, file: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.forget(&file);
        types::HostDescriptor::drop(&mut self.wasi(), file)
    }
}

impl types::HostDirectoryEntryStream for FilesView<'_> {
    async fn read_directory_entry(
        &mut self,
        listing: Resource<DirectoryEntryStream>,
    ) -> FsResult<Option<DirectoryEntry>> {
        let handle: Resource<FolderIterator> = Resource::new_borrow(listing.rep());
        let reading = self.table.get_mut(&handle)?;
        if reading.entries.len() == 0
            && let Some(listing) = reading.listing.take_if(|listing| !listing.has_ended())
        {
            let (entries, rest) = listing.next().await.map_err(|stop| self.error(stop))?;
            let entries = entries.into_iter();
            *self.table.get_mut(&handle)? = FolderIterator { entries, listing: Some(rest) };
        }
        let entry = self.table.get_mut(&handle)?.entries.next();
        Ok(entry.map(|(name, file_type)| DirectoryEntry {
            type_: descriptor_type!(file_type, DescriptorType::Unknown),
            name,
        }))
    }

    fn drop(&mut self, listing: Resource<DirectoryEntryStream>) -> wasmtime::Result<()> {
        self.table.delete(Resource::<FolderIterator>::new_own(listing.rep()))?;
        Ok(())
    }
}

/// A listing, and what of it the guest has not asked for yet.
struct FolderIterator {
    entries: vec::IntoIter<Entry>,
    listing: Option<DirReader>,
}

fn described(seen: &FileInfo) -> DescriptorStat {
    let at = |(seconds, nanoseconds): (i64, u32)| {
        Some(Datetime { seconds: u64::try_from(seconds).ok()?, nanoseconds })
    };
    DescriptorStat {
        type_: descriptor_type!(seen.file_type, DescriptorType::Unknown),
        link_count: seen.links,
        size: seen.size,
        data_access_timestamp: at(seen.accessed),
        data_modification_timestamp: at(seen.modified),
        status_change_timestamp: at(seen.changed),
    }
}

fn time(time: NewTimestamp) -> FsResult<Time> {
    Ok(match time {
        NewTimestamp::NoChange => Time::Keep,
        NewTimestamp::Now => Time::Now,
        NewTimestamp::Timestamp(Datetime { seconds, nanoseconds }) => {
            let seconds = i64::try_from(seconds).map_err(|_| ErrorCode::Overflow)?;
            Time::at(seconds, nanoseconds).ok_or(ErrorCode::Invalid)?
        }
    })
}
