//! An instance with its store, and what its failures mean.

use std::sync::Arc;
use tenon_config::limits::{LimitExceeded, Limits};
use wasmtime::component::InstancePre;
use wasmtime::{PoolConcurrencyLimitError, Store, Trap};

use super::abi::{Exports, NotExported};
use super::{AttributedJob, GuestHandle, Indices, Job};
use crate::call::Failure;
use crate::capability::state::UsageRecorder;
use crate::capability::{HostState, InstanceConfig};

/// An instance that can be called.
pub(super) struct WasmInstance {
    pub(super) store: Store<HostState>,
    pub(super) exports: Box<dyn Exports>,
}

impl WasmInstance {
    /// Instantiates a component in a store of its own.
    pub(super) async fn new(
        pre: &InstancePre<HostState>,
        indices: &Indices,
        setting: &Arc<InstanceConfig>,
    ) -> Result<Self, Failure> {
        let mut store = HostState::store(pre.engine(), setting);
        let usage_counter = store.data().usage_counter();
        match usage_counter.count(pre.instantiate_async(&mut store)).await {
            Ok(instance) => Ok(Self { exports: indices.clone().of(instance), store }),
            Err(error) => Err(failure(&error, store.data())),
        }
    }

    /// Runs one job. The instance does not survive it.
    pub(super) async fn run<R, J: Job<R>>(self, job: AttributedJob<J>) -> Result<R, Failure> {
        let Self { mut store, exports } = self;
        let usage_counter = store.data().usage_counter();
        let _noting = UsageRecorder::all(usage_counter.clone());
        let running = store
            .run_concurrent(async |accessor| job.run(GuestHandle::new(accessor, exports)).await);
        let result = usage_counter.count(running).await.flatten();
        result.map_err(|error| failure(&error, store.data()))
    }
}

/// What went wrong in an instance: a limit that it reached, or a trap of its own.
pub(super) fn failure(error: &wasmtime::Error, state: &HostState) -> Failure {
    if let Some(NotExported(interface)) = error.downcast_ref::<NotExported>() {
        return Failure::Unsupported(interface.contribution());
    }
    if let Some(full) = error.downcast_ref::<PoolConcurrencyLimitError>() {
        return Failure::Host(format!("the pool of instances is used up: {full}"));
    }
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
