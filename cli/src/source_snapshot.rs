//! The source of a plugin: the files that its component is built from, and when they were written last.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folders that builds and package managers write.
const GENERATED: [&str; 7] =
    ["build", "coverage", "dist", "node_modules", "target", "venv", "__pycache__"];

/// Files that decide how a plugin is loaded, and not what it is built from. The version and the description of a manifest
/// are embedded, which is no reason to call a component outdated.
const SETTINGS: [&str; 2] = ["plugin.toml", "tenon.toml"];

/// Files that tools for the source read, and builds do not.
const TOOL_FILES: [&str; 6] = [
    "clippy.toml",
    "deny.toml",
    "rustfmt.toml",
    "eslint.config.js",
    "eslint.config.mjs",
    "prettier.config.js",
];

/// What a file at the top of a plugin's folder is called or ends with if components are built from it. What else lies
/// there may be anybody's: an author keeps answers and notes there.
const BUILD_FILES: [&str; 4] =
    ["package.json", "package-lock.json", "pnpm-lock.yaml", "tsconfig.json"];
const BUILD_FILE_ENDS: [&str; 15] = [
    ".rhai", ".rs", ".py", ".pyi", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx",
    ".toml", ".lock", ".wit",
];

/// Folders with tests, cases, examples and skills, which no component is built from.
const OTHER_FOLDERS: [&str; 6] = ["benches", "cases", "examples", "skills", "test", "tests"];

/// The most files that are looked at, and how deep they may lie.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 16;

/// How much younger than a component its source may be. A checkout writes both in any order.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The files of a plugin's source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceSnapshot {
    files: BTreeMap<PathBuf, FileStamp>,
    folders: BTreeSet<PathBuf>,
    /// The folder of the plugin, and those of the crates that it names.
    roots: BTreeSet<PathBuf>,
}

/// A file, as far as it shows that it has changed. Two changes may have the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileStamp {
    written: SystemTime,
    bytes: u64,
}

impl SourceSnapshot {
    /// Reads the source of the plugin in a folder: this folder, those of the crates that it names by their paths, and what
    /// Cargo noted when it built it. What cannot be read is not in it.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut tree = Self::default();
        let mut waiting = vec![folder.to_path_buf()];
        let mut inputs = Vec::new();
        while let Some(root) = waiting.pop() {
            if tree.roots.insert(root.clone()) {
                tree.add(&root, 0);
                let Some(manifest) = cargo_manifest(&root) else { continue };
                waiting.extend(crates_named_by(&root, &manifest));
                if root == folder {
                    inputs = cargo_inputs(folder, &manifest);
                }
            }
        }
        for input in inputs {
            if let Ok(metadata) = fs::metadata(&input) {
                tree.add_file(input, &metadata);
            }
        }
        tree
    }

    fn add(&mut self, folder: &Path, depth: usize) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        self.folders.insert(folder.to_path_buf());
        for entry in entries.flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            // A link is what it leads to, as for what builds.
            let (Ok(metadata), Some(name)) = (fs::metadata(&path), name.to_str()) else { continue };
            if metadata.is_dir() && depth < MAX_DEPTH && is_source_folder(name) {
                if self.files.len().max(self.folders.len()) < MAX_FILES {
                    self.add(&path, depth + 1);
                }
            } else if metadata.is_file() && is_source_file(name, depth == 0) {
                self.add_file(path, &metadata);
            }
        }
    }

    /// Whether a file is a test, or lies in a folder at the top of a plugin that none is built from.
    fn is_test(&self, path: &Path) -> bool {
        let below = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        let first = below.and_then(|below| below.components().next()).map(|name| name.as_os_str());
        let name = path.file_name().and_then(OsStr::to_str);
        let is_of_tests = |name: &OsStr| name == "__tests__";
        OTHER_FOLDERS.iter().any(|folder| first == Some(OsStr::new(folder)))
            || below.is_some_and(|below| below.iter().any(is_of_tests))
            || name.is_some_and(is_test_file)
    }

    fn add_file(&mut self, path: PathBuf, metadata: &Metadata) {
        if let Ok(written) = metadata.modified()
            && self.files.len() < MAX_FILES
        {
            self.files.insert(path, FileStamp { written, bytes: metadata.len() });
        }
    }

    /// The folders that it lies in.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &Path> {
        self.folders.iter().map(PathBuf::as_path)
    }

    /// Whether the component is not there, or older than its source.
    pub(crate) fn is_unbuilt(&self, component: &Path) -> bool {
        !component.exists() || self.newer_than(component).is_some()
    }

    /// A file that was written after the component, and is no test: the latest.
    pub(crate) fn newer_than(&self, component: &Path) -> Option<&Path> {
        let built = fs::metadata(component).and_then(|metadata| metadata.modified()).ok()?;
        let files = self.files.iter().filter(|(path, _)| !self.is_test(path));
        let (path, latest) = files.max_by_key(|(_, file)| file.written)?;
        (latest.written > built + TOLERANCE).then_some(path)
    }
}

fn is_test_file(name: &str) -> bool {
    let is_of_python = || name.starts_with("test_") || name.ends_with("_test.py");
    name == "conftest.py"
        || name.ends_with(".py") && is_of_python()
        || [".test.", ".spec."].iter().any(|part| name.contains(part))
}

fn is_source_folder(name: &str) -> bool {
    !name.starts_with('.') && !name.ends_with(".egg-info") && !GENERATED.contains(&name)
}

fn is_source_file(name: &str, is_at_the_top: bool) -> bool {
    let ends_with_any = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let is_build_file = || {
        let is_list = name.starts_with("requirements") && name.ends_with(".txt");
        is_list || BUILD_FILES.contains(&name) || ends_with_any(&BUILD_FILE_ENDS)
    };
    !name.starts_with(['.', '#'])
        && !name.starts_with("LICENSE")
        && !ends_with_any(&[".log", ".md", ".pyc", ".wasm", "~"])
        && !SETTINGS.contains(&name)
        && !TOOL_FILES.contains(&name)
        && (!is_at_the_top || is_build_file())
}

/// The files that Cargo noted as inputs of the last build of a crate, those that it includes among them. The format is
/// that of [dep-info files](https://doc.rust-lang.org/cargo/reference/build-cache.html#dep-info-files).
fn cargo_inputs(folder: &Path, manifest: &toml::Table) -> Vec<PathBuf> {
    let name = manifest.get("package").and_then(|package| package.get("name")?.as_str());
    let Some(name) = name.map(|name| name.replace('-', "_")) else { return Vec::new() };
    // As Cargo names it.
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
    let chosen = std::env::var_os("CARGO_TARGET_DIR").map(|target| folder.join(target));
    // A member of a workspace is built in the workspace's folder.
    let targets = chosen.into_iter().chain(folder.ancestors().map(|root| root.join("target")));
    let notes = targets.flat_map(|target| {
        let built = target.join("wasm32-wasip2");
        ["release", "debug"].map(|profile| built.join(profile).join(format!("{name}.d")))
    });
    let texts = notes.filter_map(|notes| fs::read_to_string(notes).ok());
    // Crates of one name may share a target folder: another's inputs are none of this one.
    let is_own = |inputs: &Vec<PathBuf>| inputs.iter().any(|input| input.starts_with(&folder));
    texts.map(|text| dep_info_inputs(&text)).filter(is_own).flatten().collect()
}

/// The inputs that a dep-info file lists: `OUTPUT: INPUT …`, with a backslash before spaces in paths.
fn dep_info_inputs(text: &str) -> Vec<PathBuf> {
    let Some((_, inputs)) = text.lines().next().and_then(|line| line.split_once(": ")) else {
        return Vec::new();
    };
    let inputs = inputs.replace("\\ ", "\0");
    inputs.split_whitespace().map(|input| PathBuf::from(input.replace('\0', " "))).collect()
}

fn cargo_manifest(folder: &Path) -> Option<toml::Table> {
    fs::read_to_string(folder.join("Cargo.toml")).ok()?.parse().ok()
}

/// The folders of crates that the `Cargo.toml` of a folder has as dependencies by their paths, also for its build script and
/// for one target.
fn crates_named_by(folder: &Path, manifest: &toml::Table) -> Vec<PathBuf> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let targets = targets.into_iter().flat_map(|targets| targets.values());
    let tables = targets.filter_map(toml::Value::as_table).chain([manifest]);
    let kinds = ["dependencies", "build-dependencies"];
    let lists = tables.flat_map(|table| kinds.map(|kind| table.get(kind)?.as_table()));
    let dependencies = lists.flatten().flatten();
    let paths = dependencies.filter_map(|(_, dependency)| dependency.get("path")?.as_str());
    paths.filter_map(|path| folder.join(path).canonicalize().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(folder: &Path, file: &str, seconds: u64) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "").unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        fs::File::open(&path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_component_is_outdated_where_a_source_file_is_newer() {
        let check = |file: &str, expected: bool| {
            let folder = tempfile::tempdir().unwrap();
            let component = folder.path().join("hello.wasm");
            write(folder.path(), "hello.wasm", 1_000);
            write(folder.path(), "src/lib.rs", 900);
            write(folder.path(), file, 2_000);
            let tree = SourceSnapshot::read(folder.path());
            let newer = tree.newer_than(&component).map(Path::to_path_buf);
            assert_eq!(newer, expected.then(|| folder.path().join(file)), "{file}");
        };
        check("src/lib.rs", true);
        check("Cargo.toml", true);
        check("data/words.txt", true);
        check("lib.py", true);
        check("requirements.txt", true);
        check("greeter.rhai", true);
        check("answers.json", false);
        check("test_app.py", false);
        check("app_test.py", false);
        check("conftest.py", false);
        check("testing_tools.py", true);
        check("pnpm-lock.yaml", true);
        check("src/lib.rs~", false);
        check("src/app.pyc", false);
        check("src/greet.spec.ts", false);
        check("src/__tests__/greet.ts", false);
        check("__tests__/greet.ts", false);
        check("examples/one.rs", false);
        check("skills/greet/SKILL.md", false);
        check("skills/greet/words.txt", false);
        check("rustfmt.toml", false);
        check("eslint.config.js", false);
        check("venv/lib/x.py", false);
        check("hello.egg-info/x.py", false);
        check("build/lib/x.py", false);
        check("tests/it.rs", false);
        check("cases/greet.toml", false);
        check("src/greet.test.js", false);
        check("src/tests.rs", true);
        check("notes.txt", false);
        check("README.md", false);
        check("dev.log", false);
        check("plugin.toml", false);
        check("target/release/x.rs", false);
        check("node_modules/x/index.js", false);
        check(".venv/lib/x.py", false);
        check(".hidden", false);
        check("other.wasm", false);
    }

    #[test]
    fn a_checkout_makes_nothing_outdated() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "hello.wasm", 1_000);
        write(folder.path(), "src/lib.rs", 1_002);
        let tree = SourceSnapshot::read(folder.path());
        assert_eq!(tree.newer_than(&folder.path().join("hello.wasm")), None);
        assert_eq!(tree.newer_than(&folder.path().join("none.wasm")), None);
    }

    #[test]
    fn what_a_crate_includes_is_source_wherever_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = folder.path().join("plugin");
        write(&plugin, "hello.wasm", 1_000);
        write(&plugin, "src/lib.rs", 900);
        write(&plugin, "my words.md", 2_000);
        write(&plugin, "Cargo.toml", 900);
        fs::write(plugin.join("Cargo.toml"), "[package]\nname = \"my-hello\"\n").unwrap();
        let written = SystemTime::UNIX_EPOCH + Duration::from_secs(900);
        let manifest = fs::File::options().write(true).open(plugin.join("Cargo.toml")).unwrap();
        manifest.set_modified(written).unwrap();
        let newer = || {
            let tree = SourceSnapshot::read(&plugin);
            tree.newer_than(&plugin.join("hello.wasm")).map(Path::to_path_buf)
        };
        assert_eq!(newer(), None);
        let words = plugin.join("my words.md");
        let noted = words.to_str().unwrap().replace(' ', "\\ ");
        // In the folder of its workspace.
        let notes = folder.path().join("target/wasm32-wasip2/release/my_hello.d");
        fs::create_dir_all(notes.parent().unwrap()).unwrap();
        fs::write(&notes, format!("/x/my_hello.wasm: /gone.rs {noted}\n")).unwrap();
        assert_eq!(newer(), Some(words));
        // Of a crate of this name elsewhere.
        fs::write(&notes, "/x/my_hello.wasm: /x/src/lib.rs /x/words\n").unwrap();
        assert_eq!(newer(), None);
    }

    #[test]
    fn crates_that_are_named_by_their_paths_are_source_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let plugin = folder.path().join("plugin");
        write(&plugin, "src/lib.rs", 900);
        write(&folder.path().join("shared"), "src/lib.rs", 3_000);
        write(&plugin, "hello.wasm", 1_000);
        let dependencies = "[dependencies]\nshared = { path = \"../shared\" }\nserde = \"1\"\n";
        fs::write(plugin.join("Cargo.toml"), dependencies).unwrap();
        fs::File::open(plugin.join("Cargo.toml"))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        let tree = SourceSnapshot::read(&plugin);
        let newer = tree.newer_than(&plugin.join("hello.wasm")).unwrap();
        assert!(newer.ends_with("shared/src/lib.rs"), "{}", newer.display());
        assert!(tree.folders().any(|folder| folder.ends_with("shared/src")));
    }
}
