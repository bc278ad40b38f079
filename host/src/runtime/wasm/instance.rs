//! An instance with its store, and what its failures mean.

use std::io;
use std::sync::Arc;
use tenon_config::limits::{LimitExceeded, Limits};
use tenon_types::LogLevel;
use wasmtime::component::InstancePre;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

use super::abi::{Exports, NotExported};
use super::{CallJob, GuestHandle, Indices, Job, backtrace};
use crate::call::Failure;
use crate::capability::host_state::ResourceUsageRecorder;
use crate::capability::{HostState, InstanceConfig};

/// How often an instance is tried once more for which the system had no time. The first instance of a component makes
/// an image of its memory and seals it, which Linux refuses with `EBUSY` while it moves one of the pages.
const MAX_BUSY_RETRIES: usize = 5;

/// An instance that can be called.
pub(super) struct WasmInstance {
    pub(super) store: Store<HostState>,
    pub(super) exports: Box<dyn Exports>,
}

impl WasmInstance {
    /// Instantiates a component in a store of its own. Gives nothing where the pool has no room.
    pub(super) async fn new(
        pre: &InstancePre<HostState>,
        indices: &Indices,
        setting: &Arc<InstanceConfig>,
    ) -> Result<Option<Self>, Failure> {
        let mut left = MAX_BUSY_RETRIES;
        loop {
            let mut store = HostState::store(pre.engine(), setting);
            let usage_counter = store.data().usage_counter();
            match usage_counter.count(pre.instantiate_async(&mut store)).await {
                Ok(instance) => {
                    return Ok(Some(Self { exports: indices.clone().of(instance), store }));
                }
                Err(error) if error.is::<PoolConcurrencyLimitError>() => return Ok(None),
                Err(error) if left > 0 && is_busy(&error) => left -= 1,
                Err(error) => return Err(failure(&error, store.data())),
            }
        }
    }

    /// Runs one job. The instance does not survive it.
    pub(super) async fn run<R, J: Job<R>>(self, job: CallJob<J>) -> Result<R, Failure> {
        let Self { mut store, exports } = self;
        let usage_counter = store.data().usage_counter();
        let _noting = ResourceUsageRecorder::all(usage_counter.clone());
        let running = store
            .run_concurrent(async |accessor| job.run(GuestHandle::new(accessor, exports)).await);
        let result = usage_counter.count(running).await.flatten();
        result.map_err(|error| failure(&error, store.data()))
    }
}

/// Whether the system had no time for what it was asked, and may have it a moment later.
fn is_busy(error: &wasmtime::Error) -> bool {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    cause.is_some_and(|cause| cause.kind() == io::ErrorKind::ResourceBusy)
}

/// The failure of what a pool has no room for.
pub(super) fn pool_is_full() -> Failure {
    Failure::Host("the pool of instances is used up".into())
}

/// What went wrong in an instance: a limit that it reached, or a trap of its own.
pub(super) fn failure(error: &wasmtime::Error, state: &HostState) -> Failure {
    if let Some(NotExported(interface)) = error.downcast_ref::<NotExported>() {
        return Failure::Unsupported(interface.contribution());
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return pool_is_full();
    }
    log_backtrace(error, state);
    let limits: &Limits = &state.setting.limits;
    match error.downcast_ref::<Trap>() {
        Some(Trap::StackOverflow) => return Failure::LimitExceeded(LimitExceeded::Depth),
        Some(Trap::OutOfFuel | Trap::Interrupt) => {
            return Failure::LimitExceeded(LimitExceeded::Cpu(limits.cpu));
        }
        _ => {}
    }
    if let Some(limit) = state.meter.reached {
        // A guest that is refused memory traps on its own account a moment later.
        return Failure::LimitExceeded(limit);
    }
    let root = error.root_cause().to_string();
    // wasmtime keeps the type of this error to itself.
    if root.contains("fuel allocated for hostcalls has been exhausted") {
        return Failure::LimitExceeded(LimitExceeded::Transfer(limits.transfer));
    }
    match state.console.tail() {
        last_words if last_words.is_empty() => Failure::Trapped(root),
        last_words => Failure::Trapped(format!("{root}; last output: {last_words}")),
    }
}

/// Writes to the plugin's log where it failed.
fn log_backtrace(error: &wasmtime::Error, state: &HostState) {
    let log = &state.setting.context.log;
    for (depth, line) in backtrace::lines(error).iter().enumerate() {
        let line =
            if depth == 0 { format!("failed in {line}") } else { format!("  called by {line}") };
        log.write(LogLevel::Error, &line, &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_system_is_busy_with_is_tried_again() {
        let busy = || io::Error::from(io::ErrorKind::ResourceBusy);
        assert!(is_busy(&wasmtime::Error::new(busy())));
        assert!(is_busy(&wasmtime::Error::new(busy()).context("an image of a memory is made")));
        assert!(!is_busy(&wasmtime::Error::new(io::Error::from(io::ErrorKind::OutOfMemory))));
        assert!(!is_busy(&wasmtime::Error::new(Trap::UnreachableCodeReached)));
    }
}
