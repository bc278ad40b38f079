#![doc = include_str!("../README.md")]

use std::path::PathBuf;

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

/// The world `tool` as wasmtime generates it, for whoever calls a component without Tenon.
#[allow(missing_docs, unused_qualifications, clippy::all, rustdoc::all)]
pub mod bare {
    wasmtime::component::bindgen!({
        path: "../wit/plugin",
        world: "tenon:plugin/tool",
        imports: { default: trappable },
        exports: { default: async | store },
    });

    pub use exports::tenon::plugin::tool_handler::{Guest, GuestIndices};
    pub use tenon::plugin::types::{CallContext, Content, ToolResult};

    /// The text of an answer that is one text.
    pub fn text_of(mut result: ToolResult) -> String {
        match result.content.remove(0).body {
            Content::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }
}
