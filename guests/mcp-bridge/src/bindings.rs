//! The world of the bridge, generated.

#![allow(unreachable_pub, clippy::all)]

#[cfg(not(feature = "http"))]
wit_bindgen::generate!({
    path: "../../wit/plugin",
    world: "mcp-bridge",
    generate_all,
    additional_derives: [Clone, PartialEq],
});

#[cfg(feature = "http")]
wit_bindgen::generate!({
    path: "../../wit/plugin",
    world: "mcp-server",
    generate_all,
    additional_derives: [Clone, PartialEq],
});
