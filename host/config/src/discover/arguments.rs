//! Which files the arguments of a program may name, as scripts are named to interpreters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What runs when an interpreter, or what manages packages, is given a folder.
const ENTRY_FILES: [&str; 10] = [
    "__init__.py",
    "__main__.py",
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "pyproject.toml",
    "deno.json",
    "Makefile",
];

/// The ends of names of scripts and programs. A word in a command for a shell is taken for a file if it has one
/// of these: others may be what the server writes.
const CODE: [&str; 22] = [
    "bash", "bat", "cjs", "cmd", "exe", "jar", "jl", "js", "lua", "mjs", "php", "pl", "ps1", "py",
    "r", "rb", "rhai", "sh", "ts", "tsx", "wasm", "zsh",
];

/// The files that a program's arguments may name which runs in a folder. Not all of them are there.
pub(super) fn named_files(arguments: &[String], folder: &Path) -> BTreeSet<PathBuf> {
    let values = option_values(arguments);
    // As in `uv --directory ./server run main.py`.
    let below = values.iter().map(|value| folder.join(value)).filter(|path| path.is_dir());
    let folders: BTreeSet<PathBuf> = below.chain([folder.to_path_buf()]).collect();
    let names = arguments.iter().flat_map(|argument| names_in(argument));
    let names: BTreeSet<&str> = names.filter(|name| !name.is_empty()).collect();
    let of_name = |name: &&str| folders.iter().map(|folder| folder.join(name)).collect::<Vec<_>>();
    let mut files: BTreeSet<PathBuf> = names.iter().flat_map(of_name).collect();
    let first = arguments.iter().find(|argument| !argument.starts_with('-') && *argument != "run");
    for run in values.into_iter().chain(first.map(String::as_str)) {
        let module = is_module(run).then(|| run.replace('.', "/"));
        for folder in &folders {
            files.extend(module.iter().map(|module| folder.join(format!("{module}.py"))));
            let run = module.iter().map(String::as_str).chain([run]).map(|run| folder.join(run));
            let run = run.filter(|path| path.is_dir());
            files.extend(run.flat_map(|run| ENTRY_FILES.map(|file| run.join(file))));
        }
    }
    files
}

/// Whether it may be a module, as in `python -m package.module`.
fn is_module(name: &str) -> bool {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    name.split('.').all(is_name)
}

/// The arguments that may be values of the options before them.
fn option_values(arguments: &[String]) -> Vec<&str> {
    let pairs = arguments.windows(2).filter(|pair| pair[0].starts_with('-'));
    let apart = pairs.map(|pair| pair[1].as_str()).filter(|value| !value.starts_with('-'));
    let joined = arguments.iter().filter(|argument| argument.starts_with("--"));
    let joined = joined.filter_map(|argument| Some(argument.split_once('=')?.1));
    apart.chain(joined).filter(|value| !value.is_empty()).collect()
}

/// What an argument may name.
fn names_in(argument: &str) -> impl Iterator<Item = &str> {
    // As in `--require=./hook.js` and `-r./hook.js`.
    let value = argument.split_once('=').map(|(_, value)| value);
    let is_short = argument.starts_with('-') && !argument.starts_with("--");
    let joined = argument.char_indices().nth(2).filter(|_| is_short).map(|(at, _)| &argument[at..]);
    // As in `sh -c 'exec node ./server.js'`, and in code.
    let words = argument.split(|c: char| c.is_whitespace() || "\"'`;&|()<>{}[],=$".contains(c));
    let is_code = |word: &&str| {
        Path::new(word).extension().is_some_and(|of| CODE.iter().any(|code| of == *code))
    };
    let words = words.filter(is_code);
    let all = [Some(argument), value, joined].into_iter().flatten().chain(words);
    all.map(|name| {
        // As in `@arguments` and `file:./hook.js`.
        let name = name.strip_prefix("file://").unwrap_or(name);
        name.strip_prefix("file:").or(name.strip_prefix('@')).unwrap_or(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_that_arguments_name_are_found() {
        let folder = tempfile::tempdir().expect("there is room for a folder");
        let files = [
            "a.js",
            "b/a.js",
            "b/__main__.py",
            "b/c/__init__.py",
            "b/d.py",
            "c d.js",
            "data/index.js",
            "package.json",
        ];
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is made");
            fs::write(path, "").expect("it is written");
        }
        let check = |arguments: &[&str], expected: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let named = named_files(&arguments, folder.path());
            let named = named.iter().filter(|path| path.is_file());
            let named = named.map(|path| path.strip_prefix(folder.path()).expect("it is below"));
            let named: Vec<String> = named.map(|path| path.display().to_string()).collect();
            assert_eq!(named, expected, "{arguments:?}");
        };
        check(&["a.js"], &["a.js"]);
        check(&["--x", "--require=./a.js", "b/a.js"], &["a.js", "b/a.js"]);
        check(&["-r./a.js"], &["a.js"]);
        check(&["-r", "./a.js"], &["a.js"]);
        check(&["@a.js", "file:b/a.js"], &["a.js", "b/a.js"]);
        check(&["c d.js"], &["c d.js"]);
        check(&["-c", "exec node './a.js' 2>&1|python b/d.py;"], &["a.js", "b/d.py"]);
        check(&["-c", "x=b/d.py; python $x"], &["b/d.py"]);
        check(&["-c", "cat package.json > data"], &[]);
        check(&["b"], &["b/__main__.py"]);
        check(&["-u", "b"], &["b/__main__.py"]);
        check(&["run", "b"], &["b/__main__.py"]);
        check(&["-m", "b"], &["b/__main__.py"]);
        check(&["-m", "b.d"], &["b/d.py"]);
        check(&["-m", "b.c"], &["b/c/__init__.py"]);
        check(&["."], &["package.json"]);
        check(&["--directory", "b", "run", "d.py"], &["b/__main__.py", "b/d.py"]);
        check(&["--directory=b", "run", "a.js"], &["a.js", "b/__main__.py", "b/a.js"]);
        // Folders that are given to a server are no programs.
        check(&["-y", "@scope/server-files", ".", "./data"], &[]);
        check(&["--", "-é", "\u{e9}", "-", ""], &[]);
    }
}
