//! Where a guest was when it failed, as lines of its source.

use rustc_demangle::demangle;
use wasmtime::{FrameSymbol, WasmBacktrace};

/// Parts of the paths of code that no author of a plugin wrote: the standard library, and what a registry has.
const OF_OTHERS: [&str; 3] = ["/rustc/", "/.cargo/registry/", "/.cargo/git/"];

/// The most lines that are given.
const MAX_LINES: usize = 16;

/// The functions that a guest was in, the innermost first, with their places. Nothing where the engine traces no lines or
/// the component has none. A guest chooses these texts.
pub(super) fn lines(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let symbols = backtrace.frames().iter().flat_map(|frame| frame.symbols());
    let places: Vec<(bool, String)> =
        symbols.filter_map(|symbol| Some((is_of_author(symbol.file()?), line(symbol)?))).collect();
    let has_own = places.iter().any(|(is_own, _)| *is_own);
    let shown = places.into_iter().filter(|(is_own, _)| *is_own || !has_own);
    shown.map(|(_, line)| line).take(MAX_LINES).collect()
}

fn is_of_author(file: &str) -> bool {
    !OF_OTHERS.iter().any(|part| file.contains(part))
}

fn line(symbol: &FrameSymbol) -> Option<String> {
    let (file, line) = (symbol.file()?, symbol.line()?);
    let name = symbol.name().map_or_else(|| "?".into(), |name| format!("{:#}", demangle(name)));
    Some(format!("{name} at {file}:{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_author_wrote_is_told_from_libraries() {
        let check = |file: &str, expected: bool| assert_eq!(is_of_author(file), expected, "{file}");
        check("/home/ada/hello/src/lib.rs", true);
        check("src/lib.rs", true);
        check("/rustc/59807616e1fa/library/core/src/panicking.rs", false);
        check("/home/ada/.cargo/registry/src/index/wit-bindgen-0.51.0/src/lib.rs", false);
    }

    #[test]
    fn an_error_without_a_backtrace_has_no_lines() {
        assert!(lines(&wasmtime::Error::msg("no")).is_empty());
    }
}
