//! WASI 0.2 and 0.3: clocks and random numbers work, the standard streams go to the log, and there
//! is no network. Files and environment are there as far as they were granted.
//!
//! Every component gets them because the standard libraries of guest languages import them whether
//! they are used or not.

use wasmtime::component::Linker;

use crate::runtime::wasm::HostState;

/// The packages that are linked.
pub(super) const IMPORTS: &[&str] =
    &["wasi:io", "wasi:clocks", "wasi:random", "wasi:cli", "wasi:filesystem", "wasi:sockets"];

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi::p3::add_to_linker(linker)?;
    super::filesystem::link(linker)
}
