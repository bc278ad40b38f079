//! The world `mcp-bridge`, generated.

#![allow(unreachable_pub, clippy::all)]

wit_bindgen::generate!({
    path: "../../wit",
    world: "mcp-bridge",
    generate_all,
    additional_derives: [Clone, PartialEq],
});
