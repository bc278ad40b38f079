//! Builds the components that the crate embeds: the bridges to MCP servers, the one to a child and the
//! one to a server elsewhere, and the checker of JSON Schemas.
//!
//! The bridges are compiled for `wasm32-unknown-unknown` and made a component here, and not for
//! `wasm32-wasip2`: that way they import the interfaces of their world and no WASI at all.

include!("building.rs");

/// The components, and the variables that tell the crate where they are.
const COMPONENTS: [(&str, &str); 3] = [
    ("TENON_MCP_BRIDGE", "mcp_bridge.wasm"),
    ("TENON_REMOTE_BRIDGE", "remote_bridge.wasm"),
    ("TENON_SCHEMA_CHECKER", "schema_checker.wasm"),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = match packaged()? {
        Some(folder) => folder,
        None => build_components()?,
    };
    for (variable, file) in COMPONENTS {
        println!("cargo::rustc-env={variable}={}", folder.join(file).display());
    }
    Ok(())
}

/// Builds the components. Returns the folder in which they are.
fn build_components() -> Result<PathBuf, Box<dyn Error>> {
    for input in [
        "guests/building.rs",
        "guests/mcp-bridge",
        "guests/mcp-client",
        "guests/remote-bridge",
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
    for package in ["mcp-bridge", "remote-bridge"] {
        let file = format!("{}.wasm", package.replace('-', "_"));
        let module = build("wasm32-unknown-unknown", &[package.into()])?.join(&file);
        let component = wit_component::ComponentEncoder::default()
            .module(&fs::read(&module)?)
            .and_then(|mut encoder| encoder.encode())
            .map_err(|error| {
                format!("{} cannot be made a component: {error:#}", module.display())
            })?;
        write_described(&component, packages.get(package), &out.join(file))?;
    }
    let checker = build("wasm32-wasip2", &["schema-checker".into()])?.join("schema_checker.wasm");
    let path = out.join("schema_checker.wasm");
    write_described(&fs::read(checker)?, packages.get("schema-checker"), &path)?;
    Ok(out)
}
