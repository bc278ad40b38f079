//! The allocator of the command: jemalloc. A request over HTTP passes through several threads, and one frees what another has
//! allocated. There glibc's allocator takes a lock for most pieces and gives less back to the system: 64 connections took 0.77
//! times as long as with a server written with `rmcp`, where three runs with jemalloc took 0.65 to 0.74, and 57 MiB were
//! resident with 500 tools, where jemalloc had 51.
//!
//! An embedder of `tenon-host` chooses its own allocator.

/// Allocates for everything in Rust. C code keeps the allocator of the system.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// What jemalloc reads when it starts; `_RJEM_MALLOC_CONF` of the environment takes precedence.
///
/// An arena for each processor instead of four keeps pieces of free memory together. Unused pages go back to the system
/// after a second instead of ten, those of pieces of more than a mebibyte at once: a result of megabytes is kept in several
/// forms, one after the other.
///
/// The symbol is jemalloc's [`malloc_conf`](https://jemalloc.net/jemalloc.3.html#tuning), with the prefix of
/// `tikv-jemalloc-sys`.
// SAFETY: nothing else defines this symbol. jemalloc reads it as a pointer to a C string, and the text ends in NUL.
#[unsafe(export_name = "_rjem_malloc_conf")]
#[used]
static CONFIGURATION: &[u8; 67] =
    b"percpu_arena:percpu,dirty_decay_ms:1000,oversize_threshold:1048576\0";
