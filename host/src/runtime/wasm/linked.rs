//! Components that are linked, from which instances are made.
//!
//! A pool has room for so many instances. Those for which there is none are made with a second engine, which takes memory
//! from the system. It is set up when it is needed first, and gets a copy of the compiled code.

use std::sync::Arc;
use tokio::sync::OnceCell;
use wasmtime::component::{Component, InstancePre};

use super::abi::{ExportError, Indices, find_exports};
use super::engine::OverflowEngine;
use super::instance::{WasmInstance, pool_is_full};
use crate::call::Failure;
use crate::capability::{HostState, InstanceConfig, LinkSet};

/// A component that was compiled and linked. Clones share it.
#[derive(Clone)]
pub(crate) struct LinkedComponent {
    pre: InstancePre<HostState>,
    pub(super) indices: Indices,
    overflow: Option<Arc<Overflow>>,
}

/// What instances are made of for which the pool has no room.
struct Overflow {
    engine: Arc<OverflowEngine>,
    links: LinkSet,
    component: OnceCell<LinkedComponent>,
}

impl LinkedComponent {
    /// Finds out what a component exports. What the pool has no room for, the spare engine has, if there is one.
    pub(super) fn new(
        pre: InstancePre<HostState>,
        links: LinkSet,
        spare: Option<&Arc<OverflowEngine>>,
    ) -> Result<Self, ExportError> {
        let indices = find_exports(&pre)?;
        let overflow = spare.map(|engine| {
            Arc::new(Overflow { engine: engine.clone(), links, component: OnceCell::new() })
        });
        Ok(Self { pre, indices, overflow })
    }

    /// Makes an instance in a store of its own.
    pub(super) async fn instantiate(
        &self,
        setting: &Arc<InstanceConfig>,
    ) -> Result<WasmInstance, Failure> {
        if let Some(instance) = WasmInstance::new(&self.pre, &self.indices, setting).await? {
            return Ok(instance);
        }
        let overflow = self.overflow.as_ref().ok_or_else(pool_is_full)?;
        // It is needed seldom, and every call would have place for it.
        Box::pin(async {
            let Self { pre, indices, .. } = overflow.component(self.pre.component()).await?;
            WasmInstance::new(pre, indices, setting).await?.ok_or_else(pool_is_full)
        })
        .await
    }
}

impl Overflow {
    /// The component as the spare engine has it.
    async fn component(self: &Arc<Self>, pooled: &Component) -> Result<&LinkedComponent, Failure> {
        let copy = || async {
            let (overflow, pooled) = (self.clone(), pooled.clone());
            // Setting up an engine and copying code block.
            let copied = tokio::task::spawn_blocking(move || {
                overflow.engine.copy_of(&pooled, overflow.links.clone())
            });
            let copied = copied.await.map_err(|error| error.to_string()).flatten();
            copied.map_err(|problem| {
                Failure::Host(format!("an instance beyond the pool could not be made: {problem}"))
            })
        };
        self.component.get_or_try_init(copy).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Caller;
    use crate::capability::{Asyncness, ComponentRole};
    use crate::runtime::wasm::{Allocation, EngineOptions, WasmPlugin, WasmRuntime};
    use crate::runtime::{Plugin, schema};
    use serde_json::json;
    use tenon_config::config::InstanceMode;
    use tenon_config::files::Digest;
    use tenon_config::grant::Grants;
    use tenon_config::limits::Limits;

    /// The checker of schemas, and what its instances are made with.
    fn checker(allocation: Allocation, sizes: &[u32]) -> (LinkedComponent, Arc<InstanceConfig>) {
        let options = EngineOptions::from(allocation);
        let runtime = WasmRuntime::with_pools(options, sizes, None).expect("the engine is set up");
        let wasm = schema::CHECKER;
        let component = runtime.compile(wasm, &Digest::of(wasm)).expect("it is a component");
        let links = LinkSet::of(ComponentRole::Plugin(&Grants::default()), Asyncness::Async);
        let linked = runtime.link(&component, links).expect("it is linked");
        (linked, Arc::new(InstanceConfig::without_grants("checker", Limits::default())))
    }

    #[tokio::test]
    async fn instances_beyond_an_automatic_pool_are_made_on_demand() {
        let (linked, setting) = checker(Allocation::Automatic, &[1]);
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(linked.instantiate(&setting).await.expect("there is room"));
        }
        let setting = InstanceConfig::without_grants("checker", Limits::default());
        let plugin = WasmPlugin::new(linked, setting, InstanceMode::Fresh);
        let arguments = json!({
            "schema": "{\"type\": \"string\"}", "value": "1", "backtracks": 100, "pattern": 1_000, "description": 100,
        });
        let wall = Limits::default().wall;
        let (_, context) = Caller::default().context_of("1".into(), None, wall);
        let result = plugin.call_tool("check", arguments.into(), context).await;
        let structured = result.expect("an answer").structured.unwrap_or_default();
        assert!(structured.contains("string"), "{structured}");
    }

    #[tokio::test]
    async fn a_pool_of_a_given_size_has_no_more() {
        let (linked, setting) = checker(Allocation::Pool { instances: 16 }, &[]);
        let mut held = Vec::new();
        let problem = loop {
            match linked.instantiate(&setting).await {
                Ok(instance) => held.push(instance),
                Err(problem) => break problem,
            }
        };
        assert!((1..=16).contains(&held.len()));
        assert_eq!(problem.to_string(), pool_is_full().to_string());
        held.pop();
        assert!(linked.instantiate(&setting).await.is_ok());
    }

    #[test]
    fn without_address_space_an_automatic_pool_is_none() {
        let set_up = |sizes: &[u32]| {
            let options = EngineOptions::from(Allocation::Automatic);
            WasmRuntime::with_pools(options, sizes, None).expect("the engine is set up").allocation
        };
        // More than a processor can address.
        const TOO_MANY: u32 = 1 << 18;
        assert_eq!(set_up(&[TOO_MANY, 16]), Allocation::Automatic);
        assert_eq!(set_up(&[TOO_MANY]), Allocation::OnDemand);
    }
}
