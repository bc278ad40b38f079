//! Which files the arguments of a program may name, as scripts are named to interpreters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tenon_types::text::fits;

/// What runs when an interpreter, or what manages packages, is given a folder.
const ENTRY_FILES: [&str; 12] = [
    "__init__.py",
    "__main__.py",
    "package.json",
    "index.js",
    "index.mjs",
    "index.cjs",
    "index.ts",
    "main.go",
    "pyproject.toml",
    "deno.json",
    "Cargo.toml",
    "Makefile",
];

/// The ends of names of scripts and programs. A word in a command for a shell is taken for a file if it has one
/// of these, or may be executed: others may be what the server writes.
const CODE: [&str; 23] = [
    "bash", "bat", "cjs", "cmd", "exe", "go", "jar", "jl", "js", "lua", "mjs", "php", "pl", "ps1",
    "py", "r", "rb", "rhai", "sh", "ts", "tsx", "wasm", "zsh",
];

/// What Node.js and its like put behind a name that no file has.
const RESOLVED: [&str; 5] = ["js", "mjs", "cjs", "ts", "json"];

/// How a command for a shell names the folder that it runs in.
const OWN_FOLDER: [&str; 8] =
    ["\"$PWD\"", "\"${PWD}\"", "\"$(pwd)\"", "\"`pwd`\"", "$PWD", "${PWD}", "$(pwd)", "`pwd`"];

/// The most files of a folder that are compared with a pattern.
const MAX_MATCHED: usize = 1_000;

/// Programs that run a folder which is named to them, whatever stands before it. Versions may follow, as in
/// `python3.12`.
const INTERPRETERS: [&str; 10] =
    ["bun", "deno", "go", "lua", "node", "perl", "php", "pypy", "python", "ruby"];

/// What has a shell run a file, whatever the file is called.
const SHELLS: [&str; 10] =
    [".", "ash", "bash", "dash", "eval", "fish", "ksh", "sh", "source", "zsh"];

/// Programs that run what a package has: one that lies in the folder goes before one that is fetched.
const PACKAGE_RUNNERS: [&str; 5] = ["bunx", "npm", "npx", "pnpm", "yarn"];

/// Files of the folder in which a program runs, which say what it runs, by the names of programs.
const FOLDER_FILES: [(&[&str], &[&str]); 10] = [
    (&["bun", "npm", "pnpm", "yarn"], &["package.json"]),
    (
        &["bun", "bunx", "npm", "npx", "pnpm", "yarn"],
        &[".npmrc", ".pnpmfile.cjs", ".yarnrc", ".yarnrc.yml", "bunfig.toml"],
    ),
    (&["uv", "uvx"], &["uv.toml", "pyproject.toml", ".python-version"]),
    (&["pdm", "poetry", "hatch"], &["pyproject.toml"]),
    (&["gmake", "make"], &["GNUmakefile", "Makefile", "makefile"]),
    (&["just"], &[".justfile", "Justfile", "justfile"]),
    (&["git"], &[".git", ".git/config"]),
    (&["cargo"], &["Cargo.toml", "build.rs", ".cargo/config.toml", "rust-toolchain.toml"]),
    (&["deno"], &["deno.json", "deno.jsonc"]),
    (
        &["docker-compose", "docker", "podman"],
        &["compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"],
    ),
];

/// The most folders of one command in which names are looked up.
const MAX_FOLDERS: usize = 16;

/// The files that a command may name which runs in a folder. Not all of them are there.
pub(super) fn named_files(program: &str, arguments: &[String], folder: &Path) -> BTreeSet<PathBuf> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let folders = folders_of(&words, folder);
    let mut files = BTreeSet::new();
    // It is an argument itself that is a file whatever it is called. In a command for a shell it may be data.
    for name in words.iter().flat_map(|word| names_in(word)).filter(|name| !name.is_empty()) {
        files.extend(folders.iter().map(|folder| folder.join(name)));
    }
    add_programs(&mut files, program, &words, &folders);
    add_folder_files(&mut files, program, &words, &folders);
    for command in arguments.iter().filter(|argument| argument.contains(is_of_command)) {
        let command = without_own_folder(command);
        let words: Vec<&str> = command.split(ends_word).filter(|word| !word.is_empty()).collect();
        let folders = folders_in_shell(&words, folder);
        // Code, and a shell that is told to, may run any file that it names.
        let runs_any =
            is_interpreter(program) || words.iter().any(|word| SHELLS.contains(&name_of(word)));
        let places = words.iter().flat_map(|word| folders.iter().map(move |at| at.join(word)));
        files.extend(
            places.filter(|path| {
                is_code(path) || is_executable(path) || (runs_any && path.is_file())
            }),
        );
        for (at, word) in words.iter().enumerate() {
            add_folder_files(&mut files, word, &words[at + 1..], &folders);
        }
        add_programs(&mut files, "", &words, &folders);
        for folder in &folders {
            files.extend(words.iter().flat_map(|word| matching(folder, word)));
            // As in `python3 -c 'from server import main'`.
            let modules = words.iter().filter_map(|word| module(word));
            let modules = modules.map(|module| folder.join(format!("{module}.py")));
            files.extend(modules.filter(|path| path.is_file()));
        }
    }
    files
}

/// Adds what runs where a folder or a module is named.
fn add_programs(
    files: &mut BTreeSet<PathBuf>,
    program: &str,
    words: &[&str],
    folders: &BTreeSet<PathBuf>,
) {
    let first = words.iter().position(|word| !word.starts_with('-') && *word != "run");
    // As in `timeout 60 python3 ./app`.
    let interpreter = words.iter().position(|word| is_interpreter(word)).map(|at| at + 1);
    let from = if is_interpreter(program) { Some(0) } else { interpreter };
    let behind = from.map_or(&[][..], |from| &words[from..]);
    let joined = words.iter().filter_map(|word| joined_value(word));
    // It is a file whatever it is called, and what stands behind it is for it.
    let is_file = |word: &&&str| folders.iter().any(|folder| folder.join(word).is_file());
    if let Some(script) = behind.iter().find(is_file) {
        files.extend(folders.iter().map(|folder| folder.join(script)));
    }
    let runs = first.map(|at| words[at]).into_iter().chain(behind.iter().copied());
    for run in runs.chain(option_values(words)).chain(joined) {
        let module = module(run);
        for folder in folders {
            files.extend(module.iter().map(|module| folder.join(format!("{module}.py"))));
            // Packages that a module is in run before it.
            let packages = module.iter().flat_map(|module| Path::new(module).ancestors().skip(1));
            let packages = packages.filter(|package| !package.as_os_str().is_empty());
            files.extend(packages.map(|package| folder.join(package).join("__init__.py")));
            files.extend(RESOLVED.map(|end| folder.join(format!("{run}.{end}"))));
            let run = module.iter().map(String::as_str).chain([run]).map(|run| folder.join(run));
            let run = run.filter(|path| path.is_dir());
            files.extend(run.flat_map(|run| ENTRY_FILES.map(|file| run.join(file))));
        }
    }
}

/// Adds what a program reads in the folders that it may run in, if it is known for that.
fn add_folder_files(
    files: &mut BTreeSet<PathBuf>,
    program: &str,
    words: &[&str],
    folders: &BTreeSet<PathBuf>,
) {
    let program = name_of(program);
    let read = FOLDER_FILES.iter().filter(|(programs, _)| programs.contains(&program));
    let read = read.flat_map(|(_, files)| files.iter().map(ToString::to_string));
    let packages = words.iter().filter(|word| !word.starts_with('-'));
    let packages = packages.filter(|_| PACKAGE_RUNNERS.contains(&program));
    let read: Vec<String> = read.chain(packages.flat_map(|word| files_of_package(word))).collect();
    files.extend(folders.iter().flat_map(|folder| read.iter().map(|file| folder.join(file))));
}

/// What is run of a package of Node.js that lies in the folder, as in `npx -y @scope/name@latest`.
fn files_of_package(package: &str) -> [String; 2] {
    let end = package.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let package = &package[..end.unwrap_or(package.len())];
    let name = package.rsplit('/').next().unwrap_or(package);
    [format!("node_modules/.bin/{name}"), format!("node_modules/{package}/package.json")]
}

/// A command for a shell in which paths that begin in its own folder are relative.
fn without_own_folder(command: &str) -> String {
    OWN_FOLDER.iter().fold(command.to_string(), |command, own| command.replace(own, "."))
}

/// The scripts that a pattern in a command for a shell stands for, as in `python3 ma*.py`.
fn matching(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let pattern = Path::new(pattern);
    let name = pattern.file_name().and_then(|name| name.to_str());
    // A `?` is one character; that it could be more finds no fewer.
    let name = name.map(|name| name.replace('?', "*"));
    let Some(name) = name.filter(|name| name.contains('*')) else { return Vec::new() };
    let folder = pattern.parent().map_or(folder.to_path_buf(), |below| folder.join(below));
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let found = entries.take(MAX_MATCHED).filter_map(|entry| Some(entry.ok()?.path()));
    let is_meant = |path: &PathBuf| {
        let found = path.file_name().and_then(|found| found.to_str());
        found.is_some_and(|found| fits(&name, found)) && (is_code(path) || is_executable(path))
    };
    found.filter(is_meant).collect()
}

/// The folders in which the names among arguments are looked up: as in `uv --directory ./server run main.py`.
fn folders_of(words: &[&str], folder: &Path) -> BTreeSet<PathBuf> {
    let below = option_values(words).into_iter().map(|value| folder.join(value));
    below.filter(|path| path.is_dir()).chain([folder.to_path_buf()]).collect()
}

/// The same in a command for a shell, which may enter folders one after the other: as in `cd server && exec
/// python3 main.py`.
fn folders_in_shell(words: &[&str], folder: &Path) -> BTreeSet<PathBuf> {
    let mut folders = BTreeSet::from([folder.to_path_buf()]);
    for word in words {
        let below: Vec<PathBuf> =
            folders.iter().map(|at| at.join(word)).filter(|path| path.is_dir()).collect();
        folders.extend(below.into_iter().take(MAX_FOLDERS.saturating_sub(folders.len())));
    }
    folders
}

/// The name of a program that a word may be the path of.
fn name_of(word: &str) -> &str {
    Path::new(word).file_name().and_then(|name| name.to_str()).unwrap_or(word)
}

fn is_interpreter(word: &str) -> bool {
    let name = name_of(word).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name)
}

pub(super) fn is_code(path: &Path) -> bool {
    path.extension().is_some_and(|of| CODE.iter().any(|code| of == *code))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file() && path.extension().is_none()
}

/// Whether a text with this is a command for a shell, or code.
fn is_of_command(c: char) -> bool {
    c.is_whitespace() || "`;&|()<>{}$".contains(c)
}

/// Whether a command for a shell, or code, has a word end here.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || "\"'`;&|()<>{}[],=$".contains(c)
}

/// The path of what may be a module, as in `python -m package.module`.
fn module(name: &str) -> Option<String> {
    let is_name = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-')
    };
    name.split('.').all(is_name).then(|| name.replace('.', "/"))
}

/// The words that may be values of the options before them.
fn option_values<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let pairs = words.windows(2).filter(|pair| pair[0].starts_with('-'));
    let apart = pairs.map(|pair| pair[1]).filter(|value| !value.starts_with('-'));
    let joined = words.iter().filter(|word| word.starts_with("--"));
    let joined = joined.filter_map(|word| Some(word.split_once('=')?.1));
    apart.chain(joined).filter(|value| !value.is_empty()).collect()
}

/// The value of a short option that stands in the same word: as in `-r./hook.js` and `-mserver`.
fn joined_value(word: &str) -> Option<&str> {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    word.char_indices().nth(2).filter(|_| is_short).map(|(at, _)| &word[at..])
}

/// What an argument may name.
fn names_in(argument: &str) -> impl Iterator<Item = &str> {
    // As in `--require=./hook.js`.
    let value = argument.split_once('=').map(|(_, value)| value);
    // As in `node -e 'import("./a.js")'`.
    let words = argument.split(ends_word).filter(|word| is_code(Path::new(word)));
    let all = [Some(argument), value, joined_value(argument)].into_iter().flatten().chain(words);
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
            "tool",
            "start",
            "e/main.go",
            "b/a.js",
            "b/__main__.py",
            "b/c/__init__.py",
            "b/d.py",
            "c d.js",
            "data/index.js",
            "node_modules/.bin/x",
            "package.json",
        ];
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("it is made");
            fs::write(path, "").expect("it is written");
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join("tool");
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is its own");
        }
        let check = |arguments: &[&str], expected: &[&str]| {
            let (program, arguments) = match arguments {
                ["python3", arguments @ ..] => ("/usr/bin/python3", arguments),
                arguments => ("sh", arguments),
            };
            let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
            let named = named_files(program, &arguments, folder.path());
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
        check(&["-c", "exec ./tool"], &["tool"]);
        for command in [
            "sh ./start",
            "exec bash start",
            "source start && sleep 1",
            "sh<start",
            "cat start|sh",
            "sh st?rt start",
        ] {
            check(&["-c", command], &["start"]);
        }
        check(&["-c", ". ./start"], &["package.json", "start"]);
        check(&["-c", "$PWD/a.js"], &["a.js"]);
        check(&["python3", "-c", "__import__(\"b.d\")"], &["b/d.py"]);
        check(&["python3", "-c", "exec(open('start').read())"], &["start"]);
        check(&["-c", "npm start"], &["package.json"]);
        check(&["-c", "npx x"], &["node_modules/.bin/x"]);
        check(&["-c", "cd b && exec python3 d.py"], &["b/d.py"]);
        check(&["-c", "cd b; cd c; cat x"], &[]);
        check(&["-c", "exec python3 b"], &["b/__main__.py"]);
        check(&["-c", "exec python3 -m b.d"], &["b/d.py"]);
        check(&["-c", "exec python3 -mb.d"], &["b/d.py"]);
        check(&["python3", "-mb.d"], &["b/d.py"]);
        check(&["python3", "-W", "ignore", "./b"], &["b/__main__.py"]);
        check(&["60", "python3.12", "./b"], &["b/__main__.py"]);
        check(&["run", "./e"], &["e/main.go"]);
        for own in ["$PWD", "\"$PWD\"", "${PWD}", "$(pwd)", "`pwd`"] {
            check(&["-c", &format!("exec python3 {own}/b/d.py")], &["b/d.py"]);
        }
        check(&["-c", "exec python3 \"$PWD/b/d.py\""], &["b/d.py"]);
        check(&["-c", "exec python3 ./start"], &["start"]);
        check(&["-c", "exec python3 ./start package.json"], &["start"]);
        check(&["-c", "exec python3 b/*.py"], &["b/__main__.py", "b/d.py"]);
        check(&["-c", "from b.d import main"], &["b/d.py"]);
        check(&["./a"], &["a.js"]);
        check(&["-r", "./a", "-e", ""], &["a.js"]);
        check(&["-m", "b.c.x"], &["b/c/__init__.py"]);
        // Folders that are given to a server are no programs.
        check(&["-y", "@scope/server-files", ".", "./data"], &[]);
        check(&["--", "-é", "\u{e9}", "-", ""], &[]);
    }
}
