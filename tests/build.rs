//! Builds the guests, and writes down where each is.
//!
//! The names come out as private constants: a guest that no test mentions is dead code, which the
//! tests deny. Those that look at all of them go by a list.

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
    let packages = packages()?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let (mut constants, mut all) = (String::new(), Vec::new());
    for package in names {
        let name = package.replace('-', "_");
        let (built, path) = (folder.join(format!("{name}.wasm")), out.join(format!("{name}.wasm")));
        write_described(&fs::read(built)?, packages.get(&package), &path)?;
        writeln!(constants, "pub(crate) const {}: &str = {path:?};", name.to_uppercase())?;
        all.push((package, path));
    }
    writeln!(constants, "pub(crate) const ALL: &[(&str, &str)] = &{all:?};")?;
    fs::write(out.join("guests.rs"), constants)?;
    Ok(())
}
