//! Builds the guests that the crate embeds: hostile ones, and one that imports all that it may.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

include!("building.rs");

/// Those that it embeds.
const HOSTILE: [&str; 5] = ["caller", "escape", "escape-http", "everything-rust", "misbehave"];

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    match packaged()? {
        Some(folder) => {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                fs::copy(entry.path(), out.join(entry.file_name()))?;
            }
            Ok(())
        }
        None => build_components(&out),
    }
}

/// Builds the components into a folder.
fn build_components(out: &Path) -> Result<(), Box<dyn Error>> {
    for input in ["guests", "sdk", "wit"] {
        watch(&root()?.join(input))?;
    }
    // All that there are, as the tests build them: with others beside them, dependencies could have
    // other features and would be built again.
    let folder = build("wasm32-wasip2", &plugins()?)?;
    let packages = packages()?;
    for name in HOSTILE {
        let file = format!("{}.wasm", name.replace('-', "_"));
        write_described(&fs::read(folder.join(&file))?, packages.get(name), &out.join(&file))?;
    }
    let written = Path::new("hoard_table.wat");
    watch(written)?;
    fs::write(out.join("hoard_table.wasm"), component(written)?)?;
    Ok(())
}

/// Makes a component of the world `tool` of a module that is written by hand.
fn component(module: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut contract = Resolve::default();
    let (package, _) = contract.push_dir(root()?.join("wit/plugin"))?;
    let world = contract.select_world(&[package], Some("tool"))?;
    let mut module = wat::parse_file(module)?;
    embed_component_metadata(&mut module, &contract, world, StringEncoding::UTF8)?;
    Ok(ComponentEncoder::default().module(&module)?.encode()?)
}
