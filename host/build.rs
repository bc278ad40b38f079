//! Builds the components that the crate embeds: the bridges to MCP servers, the one to a child and the
//! one to a server elsewhere, and the checker of JSON Schemas.
//!
//! The bridges are compiled for `wasm32-unknown-unknown` and made a component here, and not for
//! `wasm32-wasip2`: that way they import the interfaces of their world and no WASI at all.

include!("../guests/building.rs");

fn main() -> Result<(), Box<dyn Error>> {
    for input in [
        "guests/building.rs",
        "guests/mcp-bridge",
        "guests/mcp-client",
        "guests/remote-bridge",
        "guests/http-client",
        "guests/schema-checker",
        "sdk",
        "guests/Cargo.toml",
        "guests/Cargo.lock",
        "wit",
    ] {
        watch(&root()?.join(input))?;
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let packages = packages()?;
    let names = [("TENON_MCP_BRIDGE", "mcp-bridge"), ("TENON_REMOTE_BRIDGE", "remote-bridge")];
    for (variable, package) in names {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let module = build("wasm32-unknown-unknown", &[package.into()])?.join(&file);
        let component = wit_component::ComponentEncoder::default()
            .module(&fs::read(&module)?)
            .and_then(|mut encoder| encoder.encode())
            .map_err(|error| {
                format!("{} cannot be made a component: {error:#}", module.display())
            })?;
        let path = out.join(file);
        write_described(&component, packages.get(package), &path)?;
        println!("cargo::rustc-env={variable}={}", path.display());
    }
    let checker = build("wasm32-wasip2", &["schema-checker".into()])?.join("schema_checker.wasm");
    let path = out.join("schema_checker.wasm");
    write_described(&fs::read(checker)?, packages.get("schema-checker"), &path)?;
    println!("cargo::rustc-env=TENON_SCHEMA_CHECKER={}", path.display());
    Ok(())
}
