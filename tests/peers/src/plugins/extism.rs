//! Extism, as its README uses it: a `Plugin` that is kept, or one for each call of what was compiled once.

use extism::{CompiledPlugin, Plugin, PluginBuilder};
use extism_wasmtime::{Config, InstanceAllocationStrategy, PoolingAllocationConfig};
use std::hint::black_box;
use std::path::{Path, PathBuf};

use super::MODULE;
use crate::{TEXT, arguments};

fn builder() -> PluginBuilder<'static> {
    PluginBuilder::new(std::fs::read(MODULE).expect("the guest was built"))
}

/// The plugin, compiled, with a pool of so many instances if one is wanted.
pub(super) fn compiled(pool: Option<u32>) -> CompiledPlugin {
    let builder = builder().with_cache_disabled();
    let builder = match pool {
        Some(instances) => builder.with_wasmtime_config(pooling(instances)),
        None => builder,
    };
    builder.compile().expect("the plugin compiles")
}

/// A pool as that of the other sides.
fn pooling(instances: u32) -> Config {
    // Each plugin is an instance of its own module, and one of Extism's.
    let instances = instances * 2;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_core_instances(instances)
        .total_memories(instances)
        .total_tables(instances)
        .max_unused_warm_slots(instances)
        .max_memory_size(256 << 20)
        .linear_memory_keep_resident(2 << 20)
        .table_keep_resident(64 << 10);
    let mut config = Config::new();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// A new instance.
pub(super) fn plugin(compiled: &CompiledPlugin) -> Plugin {
    Plugin::new_from_compiled(compiled).expect("it is set up")
}

/// Writes the configuration of a cache in a folder, and returns where it is.
pub(super) fn cache(folder: &Path) -> PathBuf {
    let file = folder.join("extism.toml");
    let text = format!("[cache]\ndirectory = {:?}", folder.join("extism"));
    std::fs::write(&file, text).expect("the folder is there");
    file
}

/// The plugin from its bytes, with a cache if there is one.
pub(super) fn start(cache: Option<&Path>) -> Plugin {
    let builder = match cache {
        Some(config) => builder().with_cache_config(config),
        None => builder().with_cache_disabled(),
    };
    builder.build().expect("it is set up")
}

pub(super) fn echo(plugin: &mut Plugin) {
    let answer: String = plugin.call("echo", arguments().to_string()).expect("an answer");
    assert_eq!(black_box(answer), TEXT);
}
