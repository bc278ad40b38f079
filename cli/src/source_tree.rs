//! The source of a plugin: the files that its component is built from, and when they were written last.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folders that builds and package managers write.
const GENERATED: [&str; 4] = ["dist", "node_modules", "target", "__pycache__"];

/// Files that decide how a plugin is loaded, and not what it is built from. The version and the description of a manifest
/// are embedded, which is no reason to call a component outdated.
const SETTINGS: [&str; 2] = ["plugin.toml", "tenon.toml"];

/// What a file at the top of a plugin's folder is called or ends with if components are built from it. What else lies
/// there may be anybody's: an author keeps answers and notes there.
const BUILD_FILES: [&str; 3] = ["package.json", "package-lock.json", "tsconfig.json"];
const BUILD_FILE_ENDS: [&str; 15] = [
    ".rhai", ".rs", ".py", ".pyi", ".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx",
    ".toml", ".lock", ".wit",
];

/// Folders with tests and cases, which no component is built from.
const TEST_FOLDERS: [&str; 3] = ["cases", "test", "tests"];

/// The most files that are looked at, and how deep they may lie.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 16;

/// How much younger than a component its source may be. A checkout writes both in any order.
const TOLERANCE: Duration = Duration::from_secs(2);

/// The files of a plugin's source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SourceTree {
    files: BTreeMap<PathBuf, SourceFile>,
    folders: BTreeSet<PathBuf>,
    /// The folder of the plugin, and those of the crates that it names.
    roots: BTreeSet<PathBuf>,
}

/// A file, as far as it shows that it has changed. Two changes may have the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourceFile {
    written: SystemTime,
    bytes: u64,
}

impl SourceTree {
    /// Reads the source of the plugin in a folder: this folder, those of the crates that it names by their paths, and what
    /// Cargo noted when it built it. What cannot be read is not in it.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut tree = Self::default();
        let mut waiting = vec![folder.to_path_buf()];
        while let Some(root) = waiting.pop() {
            if tree.roots.insert(root.clone()) {
                tree.add(&root, 0);
                waiting.extend(crates_named_by(&root));
            }
        }
        for input in cargo_inputs(folder) {
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
            let (Ok(kind), Some(name)) = (entry.file_type(), name.to_str()) else { continue };
            if kind.is_dir() && depth < MAX_DEPTH && is_source_folder(name) {
                self.add(&path, depth + 1);
            } else if kind.is_file()
                && is_source_file(name, depth == 0)
                && let Ok(metadata) = entry.metadata()
            {
                self.add_file(path, &metadata);
            }
        }
    }

    /// Whether a file is one that `tenon dev` runs as a test, or lies in a folder of tests at the top of a plugin.
    fn is_test(&self, path: &Path) -> bool {
        let below = self.roots.iter().find_map(|root| path.strip_prefix(root).ok());
        let first = below.and_then(|below| below.components().next()).map(|name| name.as_os_str());
        let name = path.file_name().and_then(OsStr::to_str);
        TEST_FOLDERS.iter().any(|folder| first == Some(OsStr::new(folder)))
            || name.is_some_and(is_test_file)
    }

    fn add_file(&mut self, path: PathBuf, metadata: &Metadata) {
        if let Ok(written) = metadata.modified()
            && self.files.len() < MAX_FILES
        {
            self.files.insert(path, SourceFile { written, bytes: metadata.len() });
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
    name.starts_with("test") && name.ends_with(".py") || name.contains(".test.")
}

fn is_source_folder(name: &str) -> bool {
    !name.starts_with('.') && !GENERATED.contains(&name)
}

fn is_source_file(name: &str, is_at_the_top: bool) -> bool {
    let ends_with_any = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let is_build_file = || {
        let is_list = name.starts_with("requirements") && name.ends_with(".txt");
        is_list || BUILD_FILES.contains(&name) || ends_with_any(&BUILD_FILE_ENDS)
    };
    !name.starts_with(['.', '#'])
        && !name.starts_with("LICENSE")
        && !ends_with_any(&[".log", ".md", ".wasm"])
        && !SETTINGS.contains(&name)
        && (!is_at_the_top || is_build_file())
}

/// The files that Cargo noted as inputs of the last build of a crate, those that it includes among them. The format is
/// that of [dep-info files](https://doc.rust-lang.org/cargo/reference/build-cache.html#dep-info-files).
fn cargo_inputs(folder: &Path) -> Vec<PathBuf> {
    let Some(name) = cargo_manifest(folder).and_then(|manifest| {
        Some(manifest.get("package")?.get("name")?.as_str()?.replace('-', "_"))
    }) else {
        return Vec::new();
    };
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

/// The folders of crates that the `Cargo.toml` of a folder has as dependencies by their paths.
fn crates_named_by(folder: &Path) -> Vec<PathBuf> {
    let manifest = cargo_manifest(folder);
    let dependencies =
        manifest.as_ref().and_then(|manifest| manifest.get("dependencies")?.as_table());
    let paths = dependencies.into_iter().flatten();
    let paths = paths.filter_map(|(_, dependency)| dependency.get("path")?.as_str());
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
            let tree = SourceTree::read(folder.path());
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
        let tree = SourceTree::read(folder.path());
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
            let tree = SourceTree::read(&plugin);
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
        let tree = SourceTree::read(&plugin);
        let newer = tree.newer_than(&plugin.join("hello.wasm")).unwrap();
        assert!(newer.ends_with("shared/src/lib.rs"), "{}", newer.display());
        assert!(tree.folders().any(|folder| folder.ends_with("shared/src")));
    }
}
