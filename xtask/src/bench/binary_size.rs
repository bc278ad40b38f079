//! `cargo xtask bench size`: where the bytes of the command are.

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use rustc_demangle::demangle;
use std::collections::BTreeMap;
use std::fs;

use crate::{cargo, root};

/// How many crates are shown. Those that follow are added up.
const MAX_CRATES: usize = 25;

/// Builds the command with its symbols, and prints what is in it.
pub(super) fn run(is_for_page: bool) -> Result<()> {
    let build = ["rustc", "--release", "--package", "tenon-cli", "--bin", "tenon", "--"];
    crate::run(cargo(".", &build).args(["-C", "strip=none"]))?;
    let path = root().join("target/release/tenon");
    let bytes = fs::read(&path).with_context(|| path.display().to_string())?;
    let file = object::File::parse(&*bytes)?;
    let sections = file.sections().filter(|section| section.address() != 0);
    let sections =
        sections.map(|section| (section.name().unwrap_or("?").to_string(), section.size()));
    let mut crates = BTreeMap::new();
    let code = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    for symbol in code {
        let name = format!("{:#}", demangle(symbol.name().unwrap_or_default()));
        *crates.entry(crate_of(&name).to_string()).or_default() += symbol.size();
    }
    table("section of the command", sections.collect(), is_for_page);
    table("crate, by its functions", crates.into_iter().collect(), is_for_page);
    Ok(())
}

/// The crate that a function is of: of a trait's method, the one of the type.
fn crate_of(name: &str) -> &str {
    let path = name.trim_start_matches(['<', '&', '*', '(', '[']);
    let path = ["mut ", "const ", "dyn "]
        .into_iter()
        .fold(path, |path, word| path.trim_start_matches(word));
    match path.split_once("::") {
        Some((first, _))
            if first.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') =>
        {
            first
        }
        _ => "without a crate",
    }
}

/// Prints what takes how much, the largest first.
fn table(what: &str, mut sizes: Vec<(String, u64)>, is_for_page: bool) {
    sizes.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    let rest: u64 = sizes.iter().skip(MAX_CRATES).map(|(_, size)| size).sum();
    sizes.truncate(MAX_CRATES);
    if rest > 0 {
        sizes.push(("all others".into(), rest));
    }
    let all: u64 = sizes.iter().map(|(_, size)| size).sum();
    sizes.push(("together".into(), all));
    match is_for_page {
        true => println!("\n| {what} | MB |\n|---|---:|"),
        false => println!("\n{what}"),
    }
    for (name, size) in sizes {
        let megabytes = size as f64 / 1e6;
        match is_for_page {
            true => println!("| `{name}` | {megabytes:.2} |"),
            false => println!("  {name:<40} {megabytes:>8.2} MB"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_of_the_crate_that_its_name_begins_with() {
        let check = |name: &str, expected: &str| assert_eq!(crate_of(name), expected, "{name}");
        check("tokio::runtime::park::park", "tokio");
        check("<wasmtime::Store<T> as core::fmt::Debug>::fmt", "wasmtime");
        check("<&mut serde_json::Value as core::ops::Drop>::drop", "serde_json");
        check("memcpy", "without a crate");
    }
}
