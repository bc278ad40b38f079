//! Where a guest was when it failed, as lines of its source.

use rustc_demangle::demangle;
use wasmtime::{FrameInfo, WasmBacktrace};

/// Parts of the paths of code that no author of a plugin wrote: the standard library, and what a registry has.
const OF_OTHERS: [&str; 3] = ["/rustc/", "/.cargo/registry/", "/.cargo/git/"];

/// The most lines that are given.
const MAX_LINES: usize = 16;

/// The functions that a guest was in, the innermost first, with their places. Nothing where the engine traces no lines or
/// the component has none. A guest chooses these texts.
pub(super) fn lines(error: &wasmtime::Error) -> Vec<String> {
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return Vec::new() };
    let places: Vec<(bool, String)> = backtrace.frames().iter().flat_map(places).collect();
    let has_own = places.iter().any(|(is_own, _)| *is_own);
    let shown = places.into_iter().filter(|(is_own, _)| *is_own || !has_own);
    shown.map(|(_, line)| line).take(MAX_LINES).collect()
}

fn is_of_author(file: &str) -> bool {
    !OF_OTHERS.iter().any(|part| file.contains(part))
}

/// The places that a frame is at: in a function, and in those that were inlined into it, the innermost first. Each with
/// whether an author wrote it.
fn places(frame: &FrameInfo) -> impl Iterator<Item = (bool, String)> {
    let symbols = frame.symbols();
    symbols.iter().enumerate().filter_map(|(at, symbol)| {
        let (file, line) = (symbol.file()?, symbol.line()?);
        // Line tables know no more than the last part of a name. The function itself has a whole one.
        let whole = frame.func_name().filter(|_| at + 1 == symbols.len());
        let name = whole.or_else(|| symbol.name()).map(|name| format!("{:#}", demangle(name)));
        let name = name.unwrap_or_else(|| "an inlined function".into());
        Some((is_of_author(file), format!("{name} at {file}:{line}")))
    })
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
