//! Tenon, as who embeds `tenon-host` uses it.

use std::hint::black_box;
use std::path::Path;
use tenon_host::{Allocation, Call, Config, HostEnvironment, Platform};

use super::{COMPONENT, POOL};
use crate::{TEXT, arguments};

/// The tools of the plugins in [`entries`]: on one instance, on an instance for each call, and a script.
pub(super) const SHARED: &str = "shared__echo";
pub(super) const FRESH: &str = "fresh__echo";
pub(super) const SCRIPT: &str = "script__echo";

/// The configuration of all of these. The script is written to a folder.
pub(super) fn entries(folder: &Path) -> String {
    let script = folder.join("script.rhai");
    std::fs::write(&script, include_str!("../../echo.rhai")).expect("the folder is there");
    let components = format!("{}, {}", component("shared"), component("fresh"));
    format!("plugins.wasm = [{components}]\nplugins.scripts = [{script:?}]")
}

/// The configuration of the one that has an instance for each call.
pub(super) fn entry() -> String {
    format!("plugins.wasm = [{}]", component("fresh"))
}

fn component(mode: &str) -> String {
    format!("{{ path = {COMPONENT:?}, id = {mode:?}, instance = {mode:?} }}")
}

/// A platform with these plugins, which keeps what it compiles in a folder if there is one.
pub(super) async fn platform(entries: &str, cache: Option<&Path>) -> Platform {
    let config = Config::parse(entries, "/tenon.toml").expect("the configuration is read");
    let cache = cache.map(Path::to_path_buf);
    let host_environment = HostEnvironment { cache, ..HostEnvironment::default() };
    let builder = Platform::builder().host_environment(host_environment).config(config);
    let builder = builder.allocation(Allocation::Pool { instances: POOL });
    builder.build().await.expect("the platform is built")
}

pub(super) async fn echo(platform: &Platform, tool: &str) {
    let result = platform.call(Call::new(tool, arguments())).await.expect("an answer");
    assert_eq!(black_box(result).plain_text(), TEXT);
}
