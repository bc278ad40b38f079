//! Builds the guests, and writes down where each is.
//!
//! The names come out as private constants: a guest that no test mentions is dead code, which the
//! tests deny.

include!("../guests/building.rs");

use std::fmt::Write as _;

fn main() -> Result<(), Box<dyn Error>> {
    for input in ["guests", "sdk", "wit"] {
        watch(&root()?.join(input))?;
    }
    let names = plugins()?;
    // The smallest one is built by itself, as its author would: together with others it had all the
    // features that they ask of the crates that they share.
    let (alone, together): (Vec<_>, _) = names.iter().cloned().partition(|name| name == "hello");
    build("wasm32-wasip2", &together)?;
    let folder = build("wasm32-wasip2", &alone)?;
    let mut constants = String::new();
    for name in names {
        let name = name.replace('-', "_");
        let path = folder.join(format!("{name}.wasm"));
        writeln!(constants, "pub(crate) const {}: &str = {path:?};", name.to_uppercase())?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guests.rs"), constants)?;
    Ok(())
}
