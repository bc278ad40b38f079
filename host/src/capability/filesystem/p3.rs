//! `wasi:filesystem` 0.3.

use rustix::fs::FileType;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wasmtime::component::{
    Access, Accessor, Destination, FutureReader, Linker, Resource, StreamProducer, StreamReader,
    StreamResult, VecBuffer,
};
use wasmtime::{AsContextMut, StoreContextMut};
use wasmtime_wasi::filesystem::{Descriptor, WasiFilesystem, WasiFilesystemCtxView};
use wasmtime_wasi::p3::bindings::clocks::system_clock::Instant;
use wasmtime_wasi::p3::bindings::filesystem::preopens;
use wasmtime_wasi::p3::bindings::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode,
    Filesize, HostDescriptorWithStore, MetadataHashValue, NewTimestamp, OpenFlags, PathFlags,
};
use wasmtime_wasi::p3::filesystem::{FilesystemError, FilesystemResult};

use super::listing::{DirReader, Entry};
use super::ops::{BaseFolder, FileInfo, OpenMode, Time};
use super::view::{FilesView, HasFilesView, blocking};
use super::walk::FileError;
use crate::capability::HostState;

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    types::add_to_linker::<_, HasFilesView>(linker, HostState::files)?;
    preopens::add_to_linker::<_, HasFilesView>(linker, HostState::files)
}

type Store = Accessor<HostState, HasFilesView>;

/// What wasmtime-wasi sees of an instance.
fn wasi(state: &mut HostState) -> WasiFilesystemCtxView<'_> {
    let FilesView { table, folders, .. } = state.files();
    WasiFilesystemCtxView { ctx: &mut folders.wasi, table }
}

fn error(store: &Store, stop: FileError) -> FilesystemError {
    store.with(|mut store| ErrorCode::from(store.get().reason(stop))).into()
}

fn beneath(store: &Store, folder: &Resource<Descriptor>) -> FilesystemResult<BaseFolder> {
    let beneath = store.with(|mut store| store.get().beneath(folder));
    beneath.map_err(|stop| error(store, stop))
}

/// Does something beneath a folder, where it may block.
async fn act<T: Send + 'static>(
    store: &Store,
    folder: &Resource<Descriptor>,
    act: impl FnOnce(BaseFolder) -> Result<T, FileError> + Send + 'static,
) -> FilesystemResult<T> {
    let beneath = beneath(store, folder)?;
    let files = beneath.files.clone();
    blocking(&files, move || act(beneath)).await.map_err(|stop| error(store, stop))
}

impl preopens::Host for FilesView<'_> {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        self.roots()
    }
}

impl types::Host for FilesView<'_> {
    fn convert_error_code(&mut self, error: FilesystemError) -> wasmtime::Result<ErrorCode> {
        error.downcast()
    }
}

impl types::HostDescriptor for FilesView<'_> {
    fn drop(&mut self, file: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.forget(&file);
        types::HostDescriptor::drop(&mut self.wasi(), file)
    }
}

/// Functions that take an open file, and no path: wasmtime-wasi does them.
macro_rules! delegate {
    ($($function:ident($($name:ident: $argument:ty),*) -> $result:ty;)*) => {$(
        async fn $function(
            store: &Store,
            file: Resource<Descriptor>,
            $($name: $argument),*
        ) -> $result {
            let store = store.with_getter::<WasiFilesystem>(wasi);
            WasiFilesystem::$function(&store, file $(, $name)*).await
        }
    )*};
}

impl HostDescriptorWithStore<HostState> for HasFilesView {
    delegate! {
        advise(offset: Filesize, length: Filesize, advice: Advice) -> FilesystemResult<()>;
        sync_data() -> FilesystemResult<()>;
        sync() -> FilesystemResult<()>;
        get_flags() -> FilesystemResult<DescriptorFlags>;
        get_type() -> FilesystemResult<DescriptorType>;
        set_size(size: Filesize) -> FilesystemResult<()>;
        stat() -> FilesystemResult<DescriptorStat>;
        is_same_object(other: Resource<Descriptor>) -> wasmtime::Result<bool>;
    }

    fn read_via_stream(
        mut store: Access<'_, HostState, Self>,
        file: Resource<Descriptor>,
        offset: Filesize,
    ) -> wasmtime::Result<(StreamReader<u8>, FutureReader<Result<(), ErrorCode>>)> {
        let store = Access::<HostState, WasiFilesystem>::new(store.as_context_mut(), wasi);
        WasiFilesystem::read_via_stream(store, file, offset)
    }

    fn write_via_stream(
        mut store: Access<'_, HostState, Self>,
        file: Resource<Descriptor>,
        data: StreamReader<u8>,
        offset: Filesize,
    ) -> wasmtime::Result<FutureReader<Result<(), ErrorCode>>> {
        let store = Access::<HostState, WasiFilesystem>::new(store.as_context_mut(), wasi);
        WasiFilesystem::write_via_stream(store, file, data, offset)
    }

    fn append_via_stream(
        mut store: Access<'_, HostState, Self>,
        file: Resource<Descriptor>,
        data: StreamReader<u8>,
    ) -> wasmtime::Result<FutureReader<Result<(), ErrorCode>>> {
        let store = Access::<HostState, WasiFilesystem>::new(store.as_context_mut(), wasi);
        WasiFilesystem::append_via_stream(store, file, data)
    }

    async fn set_times(
        store: &Store,
        file: Resource<Descriptor>,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        if store.with(|mut store| store.get().beneath(&file).is_err()) {
            let store = store.with_getter::<WasiFilesystem>(wasi);
            return WasiFilesystem::set_times(&store, file, accessed, modified).await;
        }
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        act(store, &file, move |folder| folder.set_own_times(accessed, modified)).await
    }

    fn read_directory(
        mut store: Access<'_, HostState, Self>,
        folder: Resource<Descriptor>,
    ) -> wasmtime::Result<(StreamReader<DirectoryEntry>, FutureReader<Result<(), ErrorCode>>)> {
        let view = store.get();
        let opening = view.beneath(&folder).and_then(|at| Ok((at, view.folders.listings.leave()?)));
        let (said, says) = oneshot::channel();
        // The first part is read at once: that there is none is told without being asked for.
        let first = tokio::spawn(async move {
            let opened = match opening {
                Ok((beneath, leave)) => DirReader::open(beneath, leave).await,
                Err(stop) => Err(stop),
            };
            FolderStream::part(opened, said).await
        });
        // A guest that does not want the rest has it dropped, and nothing is wrong with that.
        let end = async move { wasmtime::error::Ok(says.await.unwrap_or(Ok(()))) };
        let listed = FolderStream { next: NextEntries::ListingPart(first) };
        Ok((StreamReader::new(&mut store, listed)?, FutureReader::new(&mut store, end)?))
    }

    async fn create_directory_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        act(store, &folder, move |folder| folder.create_folder(&path)).await
    }

    async fn stat_at(
        store: &Store,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FilesystemResult<DescriptorStat> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let seen = act(store, &folder, move |folder| folder.see(&path, follow)).await?;
        Ok(described(&seen))
    }

    async fn set_times_at(
        store: &Store,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        accessed: NewTimestamp,
        modified: NewTimestamp,
    ) -> FilesystemResult<()> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let (accessed, modified) = (time(accessed)?, time(modified)?);
        act(store, &folder, move |folder| folder.set_times(&path, follow, accessed, modified)).await
    }

    async fn link_at(
        store: &Store,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        other: Resource<Descriptor>,
        new: String,
    ) -> FilesystemResult<()> {
        if flags.contains(PathFlags::SYMLINK_FOLLOW) {
            return Err(ErrorCode::Invalid.into());
        }
        let to = beneath(store, &other)?;
        act(store, &folder, move |from| from.link(&path, &to, &new)).await
    }

    async fn open_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        open: OpenFlags,
        flags: DescriptorFlags,
    ) -> FilesystemResult<Resource<Descriptor>> {
        let how = opening!(path_flags, open, flags);
        // Others may be opened at the same time.
        let leave = store.with(|mut store| store.get().leave_to_open());
        let leave = leave.map_err(|stop| error(store, stop))?;
        let open = move |folder: BaseFolder| folder.open(&path, how).map(|opened| (opened, leave));
        let (opened, _leave) = act(store, &folder, open).await?;
        store.with(|mut store| store.get().push(opened)).map_err(FilesystemError::trap)
    }

    async fn readlink_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<String> {
        act(store, &folder, move |folder| folder.read_link(&path)).await
    }

    async fn remove_directory_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        act(store, &folder, move |folder| folder.remove_folder(&path)).await
    }

    async fn rename_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path: String,
        other: Resource<Descriptor>,
        new: String,
    ) -> FilesystemResult<()> {
        let to = beneath(store, &other)?;
        act(store, &folder, move |from| from.rename(&path, &to, &new)).await
    }

    async fn symlink_at(
        store: &Store,
        folder: Resource<Descriptor>,
        target: String,
        path: String,
    ) -> FilesystemResult<()> {
        act(store, &folder, move |folder| folder.make_link(&target, &path)).await
    }

    async fn unlink_file_at(
        store: &Store,
        folder: Resource<Descriptor>,
        path: String,
    ) -> FilesystemResult<()> {
        act(store, &folder, move |folder| folder.remove_file(&path)).await
    }

    async fn metadata_hash(
        store: &Store,
        file: Resource<Descriptor>,
    ) -> FilesystemResult<MetadataHashValue> {
        let identity = store.with(|mut store| store.get().identity_of(&file));
        let identity = identity.map_err(FilesystemError::trap)?.await;
        let (upper, lower) = identity.map_err(|stop| error(store, stop))?;
        Ok(MetadataHashValue { lower, upper })
    }

    async fn metadata_hash_at(
        store: &Store,
        folder: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FilesystemResult<MetadataHashValue> {
        let follow = flags.contains(PathFlags::SYMLINK_FOLLOW);
        let key = store.with(|mut store| store.get().folders.identities.clone());
        let identity = act(store, &folder, move |folder| folder.identity(&path, follow, &key));
        let (upper, lower) = identity.await?;
        Ok(MetadataHashValue { lower, upper })
    }
}

/// What is in a folder, part by part: the next is read when the guest asks for more.
struct FolderStream {
    next: NextEntries,
}

/// What comes next of a listing.
enum NextEntries {
    /// A part that is being read.
    ListingPart(JoinHandle<ListingPart>),
    /// What nobody has asked for yet.
    Rest(Rest),
    Nothing,
}

/// Entries, and what is behind them, if anything is.
type ListingPart = (Vec<Entry>, Option<Rest>);

/// What is left of a listing, and where it is told how that ended.
type Rest = (DirReader, oneshot::Sender<Result<(), ErrorCode>>);

impl FolderStream {
    /// Reads the next part.
    async fn part(
        listing: Result<DirReader, FileError>,
        said: oneshot::Sender<Result<(), ErrorCode>>,
    ) -> ListingPart {
        let read = match listing {
            Ok(listing) => listing.next().await,
            Err(stop) => Err(stop),
        };
        let (entries, end) = match read {
            Ok((entries, rest)) if !rest.has_ended() => return (entries, Some((rest, said))),
            Ok((entries, _)) => (entries, Ok(())),
            Err(FileError::Os(errno)) => (Vec::new(), Err(std::io::Error::from(errno).into())),
            Err(FileError::Denied(_) | FileError::Never(_)) => {
                (Vec::new(), Err(ErrorCode::NotPermitted))
            }
        };
        let _ = said.send(end);
        (entries, None)
    }
}

impl Drop for FolderStream {
    fn drop(&mut self) {
        if let NextEntries::ListingPart(task) = &self.next {
            task.abort();
        }
    }
}

impl StreamProducer<HostState> for FolderStream {
    type Item = DirectoryEntry;
    type Buffer = VecBuffer<DirectoryEntry>;

    fn poll_produce<'a>(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        mut store: StoreContextMut<'a, HostState>,
        mut destination: Destination<'a, Self::Item, Self::Buffer>,
        finish: bool,
    ) -> Poll<wasmtime::Result<StreamResult>> {
        // Who only asks whether there is something is not to lose it.
        if destination.remaining(&mut store) == Some(0) {
            return Poll::Ready(Ok(StreamResult::Completed));
        }
        let mut task = match mem::replace(&mut self.next, NextEntries::Nothing) {
            NextEntries::ListingPart(task) => task,
            NextEntries::Rest((listing, said)) => tokio::spawn(Self::part(Ok(listing), said)),
            NextEntries::Nothing => return Poll::Ready(Ok(StreamResult::Dropped)),
        };
        let Poll::Ready(part) = Pin::new(&mut task).poll(context) else {
            self.next = NextEntries::ListingPart(task);
            return match finish {
                true => Poll::Ready(Ok(StreamResult::Cancelled)),
                false => Poll::Pending,
            };
        };
        let (entries, rest) = part.unwrap_or_default();
        if entries.is_empty() {
            return Poll::Ready(Ok(StreamResult::Dropped));
        }
        if let Some(rest) = rest {
            self.next = NextEntries::Rest(rest);
        }
        let entries = entries.into_iter().map(|(name, file_type)| DirectoryEntry {
            type_: descriptor_type!(file_type, DescriptorType::Other(None)),
            name,
        });
        destination.set_buffer(entries.collect::<Vec<_>>().into());
        Poll::Ready(Ok(StreamResult::Completed))
    }
}

fn described(seen: &FileInfo) -> DescriptorStat {
    let at = |(seconds, nanoseconds): (i64, u32)| Some(Instant { seconds, nanoseconds });
    DescriptorStat {
        type_: descriptor_type!(seen.file_type, DescriptorType::Other(None)),
        link_count: seen.links,
        size: seen.size,
        data_access_timestamp: at(seen.accessed),
        data_modification_timestamp: at(seen.modified),
        status_change_timestamp: at(seen.changed),
    }
}

fn time(time: NewTimestamp) -> FilesystemResult<Time> {
    Ok(match time {
        NewTimestamp::NoChange => Time::Keep,
        NewTimestamp::Now => Time::Now,
        NewTimestamp::Timestamp(Instant { seconds, nanoseconds }) => {
            Time::at(seconds, nanoseconds).ok_or(ErrorCode::Invalid)?
        }
    })
}
