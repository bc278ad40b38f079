//! WASI 0.2 and 0.3: clocks and random numbers work, the standard streams go to the log, and there
//! is no network. Files and environment are there as far as they were granted.
//!
//! Every component gets them because the standard libraries of guest languages import them whether
//! they are used or not.

use wasmtime::component::Linker;
use wasmtime_wasi::clocks::{WasiClocks, WasiClocksView};
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};

use crate::capability::HostState;

/// Links what is not there yet: clocks are.
pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    wasmtime_wasi::p2::add_to_linker_async(linker)?;
    wasmtime_wasi::p3::add_to_linker(linker)?;
    linker.allow_shadowing(false);
    super::filesystem::link(linker)
}

pub(super) fn link_clocks(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    wall_clock::add_to_linker::<_, WasiClocks>(linker, HostState::clocks)?;
    monotonic_clock::add_to_linker::<_, WasiClocks>(linker, HostState::clocks)?;
    wasmtime_wasi::p3::clocks::add_to_linker(linker)
}
