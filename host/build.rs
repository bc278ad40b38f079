//! Builds the bridge to MCP servers, which the crate embeds.
//!
//! The bridge is compiled for `wasm32-unknown-unknown` and made a component here, and not for
//! `wasm32-wasip2`: that way it imports the interfaces of its world and no WASI at all.

include!("../guests/building.rs");

fn main() -> Result<(), Box<dyn Error>> {
    for input in [
        "guests/building.rs",
        "guests/mcp-bridge",
        "guests/mcp-client",
        "guests/Cargo.toml",
        "guests/Cargo.lock",
        "wit",
    ] {
        watch(&root()?.join(input))?;
    }
    let module = build("wasm32-unknown-unknown", &["mcp-bridge".into()])?.join("mcp_bridge.wasm");
    let component = wit_component::ComponentEncoder::default()
        .module(&fs::read(&module)?)
        .and_then(|mut encoder| encoder.encode())
        .map_err(|error| format!("{} cannot be made a component: {error:#}", module.display()))?;
    let path = PathBuf::from(env::var("OUT_DIR")?).join("mcp_bridge.wasm");
    fs::write(&path, component)?;
    println!("cargo::rustc-env=TENON_MCP_BRIDGE={}", path.display());
    Ok(())
}
