//! `filesystem`: files, through the guest's own standard library, in WASI 0.2 and 0.3 alike. Values
//! are `read:`, `write:` and `readwrite:` globs; see [`tenon_config::grant`].
//!
//! The `wasi:filesystem` interfaces are implemented here for every component: what takes a path is
//! done by [`ops`], what takes an open file is left to wasmtime-wasi. Each is given the root of all
//! files to begin with, so that what it may not have is refused in words that teach.
//!
//! Reading, and looking at a file, needs `read`; whatever changes something needs `write`. What a
//! link or a new name would make reachable under other rights is refused, and so is what is neither
//! a file nor a folder. A listing shows what may be read, and the folders on the way to what is
//! granted.
//!
//! Files that decide what is started, and files with keys, are covered by no glob: see
//! [`tenon_config::grant`].

#[macro_use]
#[cfg(unix)]
mod macros;
#[cfg(unix)]
mod listing;
#[cfg(unix)]
mod opened;
#[cfg(unix)]
mod ops;
#[cfg(unix)]
mod p2;
#[cfg(unix)]
mod p3;
#[cfg(not(unix))]
mod unsupported;
#[cfg(unix)]
mod view;
#[cfg(unix)]
mod walk;

#[cfg(any(test, fuzzing))]
pub(crate) use ops::fuzz::path_walk;
#[cfg(not(unix))]
pub(crate) use unsupported::{FileGrants, FilesystemState, link};
#[cfg(unix)]
pub(crate) use view::{FilesView, FilesystemState, link};
#[cfg(unix)]
pub(crate) use walk::FileGrants;
