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
    let folder = build("wasm32-wasip2", &names)?;
    let mut constants = String::new();
    for name in names {
        let name = name.replace('-', "_");
        let path = folder.join(format!("{name}.wasm"));
        writeln!(constants, "pub(crate) const {}: &str = {path:?};", name.to_uppercase())?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guests.rs"), constants)?;
    Ok(())
}
