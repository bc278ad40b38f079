//! The source of a plugin: the files that its component is built from, and when they were written last.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Folders that builds and package managers write.
const GENERATED: [&str; 4] = ["dist", "node_modules", "target", "__pycache__"];

/// Files that decide how a plugin is loaded, and not what it is built from. The version and the description of a manifest
/// are embedded, which is no reason to call a component outdated.
const SETTINGS: [&str; 2] = ["plugin.toml", "tenon.toml"];

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
}

/// A file, as far as it shows that it has changed. Two changes may have the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SourceFile {
    written: SystemTime,
    bytes: u64,
}

impl SourceTree {
    /// Reads the source of the plugin in a folder: this folder, and those of the crates that it names by their paths.
    /// What cannot be read is not in it.
    pub(crate) fn read(folder: &Path) -> Self {
        let mut tree = Self::default();
        let mut waiting = vec![folder.to_path_buf()];
        let mut seen = BTreeSet::new();
        while let Some(root) = waiting.pop() {
            if seen.insert(root.clone()) {
                tree.add(&root, 0);
                waiting.extend(crates_named_by(&root));
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
            } else if kind.is_file() && is_source_file(name) && self.files.len() < MAX_FILES {
                let file = entry.metadata().and_then(|metadata| {
                    Ok(SourceFile { written: metadata.modified()?, bytes: metadata.len() })
                });
                if let Ok(file) = file {
                    self.files.insert(path, file);
                }
            }
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

    /// A file that was written after the component: the latest.
    pub(crate) fn newer_than(&self, component: &Path) -> Option<&Path> {
        let built = fs::metadata(component).and_then(|metadata| metadata.modified()).ok()?;
        let (path, latest) = self.files.iter().max_by_key(|(_, file)| file.written)?;
        (latest.written > built + TOLERANCE).then_some(path)
    }
}

fn is_source_folder(name: &str) -> bool {
    !name.starts_with('.') && !GENERATED.contains(&name)
}

fn is_source_file(name: &str) -> bool {
    let is_other = [".log", ".md", ".wasm"].iter().any(|end| name.ends_with(end));
    !name.starts_with(['.', '#'])
        && !name.starts_with("LICENSE")
        && !is_other
        && !SETTINGS.contains(&name)
}

/// The folders of crates that the `Cargo.toml` of a folder has as dependencies by their paths.
fn crates_named_by(folder: &Path) -> Vec<PathBuf> {
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).ok();
    let manifest = manifest.and_then(|text| text.parse::<toml::Table>().ok());
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
