//! Builds the hostile guests, which the crate embeds.

include!("../guests/building.rs");

/// Those that it embeds.
const HOSTILE: [&str; 4] = ["caller", "escape", "escape-http", "misbehave"];

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["guests", "sdk", "wit"] {
        watch(&root()?.join(input))?;
    }
    // All that there are, as the tests build them: with others beside them, dependencies could have
    // other features and would be built again.
    let folder = build("wasm32-wasip2", &plugins()?)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    for name in HOSTILE {
        let file = format!("{}.wasm", name.replace('-', "_"));
        fs::copy(folder.join(&file), out.join(&file))?;
    }
    Ok(())
}
