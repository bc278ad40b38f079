//! The walk through a folder for manifests.

use std::collections::{BTreeSet, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

use crate::config::DiscoverySettings;
use crate::diagnostic::Diagnostic;
use crate::manifest;

/// What there is below a root.
#[derive(Default)]
pub(super) struct PluginScan {
    /// The folders with a manifest, in the order of their paths.
    pub manifests: Vec<PathBuf>,
    /// Components and scripts, by their names, that no folder with a manifest holds.
    pub bare: Vec<PathBuf>,
    /// All folders that were looked into.
    pub folders: Vec<PathBuf>,
    /// Links right below the root that are not followed.
    pub links: Vec<PathBuf>,
    /// What could not be read, or leads out of the root; it was passed over.
    pub diagnostics: Vec<Diagnostic>,
}

/// The most files and folders that one discovery looks at: whoever names a folder may be a stranger.
const MAX_ENTRIES: usize = 100_000;

impl PluginScan {
    /// Walks through a folder. `entries` counts those of the whole discovery.
    pub(super) fn new(root: &Path, settings: &DiscoverySettings, entries: &mut usize) -> Self {
        let mut found = Self::default();
        match root.canonicalize() {
            Ok(real_root) => {
                found.walk(root, &real_root, settings, entries);
                let Self { manifests, bare, folders, .. } = &mut found;
                manifests.sort();
                bare.sort();
                folders.sort();
                let holding: HashSet<&Path> = manifests.iter().map(PathBuf::as_path).collect();
                bare.retain(|file| !file.ancestors().any(|folder| holding.contains(folder)));
            }
            Err(error) => {
                let problem = format!("the folder cannot be read: {error}");
                found.diagnostics.push(Diagnostic::in_file(root.display(), problem));
            }
        }
        found
    }

    /// Walks through the folder, and then through those that links lead to and that were not seen: where
    /// links lead to links, there are more paths than anybody can walk.
    fn walk(
        &mut self,
        root: &Path,
        real_root: &Path,
        settings: &DiscoverySettings,
        entries: &mut usize,
    ) {
        let mut seen = BTreeSet::new();
        let mut left = VecDeque::from([(root.to_path_buf(), 0)]);
        while let Some((folder, depth)) = left.pop_front() {
            // A manifest lies one deeper than its folder.
            let mut walk = WalkDir::new(&folder)
                .max_depth((settings.max_depth - depth).saturating_add(1))
                .sort_by_file_name()
                .into_iter();
            while let Some(entry) = walk.next() {
                let entry = match entry {
                    Ok(entry) => entry,
                    Err(error) => {
                        self.diagnostics.push(unreadable(root, &error));
                        continue;
                    }
                };
                *entries += 1;
                if *entries > MAX_ENTRIES {
                    self.diagnostics.push(too_many(root));
                    return;
                }
                let depth = depth + entry.depth();
                let is_linked = entry.depth() > 0 && entry.path_is_symlink();
                if is_linked && !settings.follow_links {
                    if depth == 1 {
                        self.links.push(entry.into_path());
                    }
                    continue;
                }
                let path = entry.path();
                if is_linked && let Err(problem) = stays(path, root, real_root) {
                    self.diagnostics.push(problem);
                    continue;
                }
                let (is_folder, is_file) = match entry.path_is_symlink() {
                    true => (path.is_dir(), path.is_file()),
                    false => (entry.file_type().is_dir(), entry.file_type().is_file()),
                };
                if is_folder && depth > 0 && is_ignored(&entry, &settings.ignore_dirs) {
                    walk.skip_current_dir();
                } else if is_folder && is_linked {
                    if depth <= settings.max_depth {
                        left.push_back((entry.into_path(), depth));
                    }
                } else if is_folder && depth <= settings.max_depth {
                    let mut is_seen = || path.canonicalize().is_ok_and(|real| !seen.insert(real));
                    if settings.follow_links && is_seen() {
                        walk.skip_current_dir();
                    } else {
                        self.folders.push(entry.into_path());
                    }
                } else if is_file && entry.file_name() == manifest::FILE_NAME {
                    self.manifests.extend(path.parent().map(Path::to_path_buf));
                } else if is_file && is_code(path) {
                    self.bare.push(entry.into_path());
                }
            }
        }
    }
}

/// Whether a file is a component or a script, by its name.
fn is_code(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "wasm" || kind == "rhai")
}

/// Checks that a link leads to something in the root.
fn stays(link: &Path, root: &Path, real_root: &Path) -> Result<(), Diagnostic> {
    match link.canonicalize() {
        Ok(real) if real.starts_with(real_root) => Ok(()),
        Ok(_) => {
            let problem = format!("the link leads out of {}", root.display());
            Err(Diagnostic::in_file(link.display(), problem)
                .remedy("name the folder that it leads to under `plugins.folders`"))
        }
        Err(error) => {
            let problem = format!("what the link leads to cannot be read: {error}");
            Err(Diagnostic::in_file(link.display(), problem))
        }
    }
}

fn is_ignored(entry: &DirEntry, ignored: &[String]) -> bool {
    ignored.iter().any(|name| entry.file_name() == name.as_str())
}

fn unreadable(root: &Path, error: &walkdir::Error) -> Diagnostic {
    let place = error.path().unwrap_or(root).display();
    let cause = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
    Diagnostic::in_file(place, format!("the folder cannot be read: {cause}"))
}

fn too_many(root: &Path) -> Diagnostic {
    let problem =
        format!("there are more than {MAX_ENTRIES} files and folders; not all were looked at");
    Diagnostic::in_file(root.display(), problem)
        .remedy("name folders that have plugins only, or a smaller `max_depth` under [discovery]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Files below a folder of its own, and what a walk finds there: folders, and diagnostics.
    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(manifests: &[&str]) -> Self {
            let tree = Self(tempfile::tempdir().expect("there is room for a folder"));
            for folder in manifests {
                fs::create_dir_all(tree.path(folder)).expect("a folder is made");
                fs::write(tree.path(folder).join("plugin.toml"), "").expect("a file is written");
            }
            tree
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join("root").join(name)
        }

        fn walk(&self, settings: &DiscoverySettings) -> (Vec<String>, Vec<String>) {
            let root = self.path("");
            let PluginScan { manifests, diagnostics, .. } =
                PluginScan::new(&root, settings, &mut 0);
            let shown = |diagnostic: Diagnostic| {
                diagnostic.problem.replace(&*self.0.path().to_string_lossy(), "T")
            };
            let relative = |folder: PathBuf| {
                folder.strip_prefix(&root).expect("it is below").display().to_string()
            };
            (
                manifests.into_iter().map(relative).collect(),
                diagnostics.into_iter().map(shown).collect(),
            )
        }
    }

    fn following() -> DiscoverySettings {
        DiscoverySettings { follow_links: true, ..DiscoverySettings::default() }
    }

    #[test]
    fn folders_are_found_to_a_depth_but_not_in_those_that_are_ignored() {
        let tree = Tree::new(&["b", "a/x", "1/2/3/4", "1/2/3/4/5", "node_modules/n", "c/.git/g"]);
        let (folders, diagnostics) = tree.walk(&DiscoverySettings::default());
        assert_eq!(folders, ["1/2/3/4", "a/x", "b"]);
        assert!(diagnostics.is_empty());
    }

    #[test]
    fn the_root_itself_may_be_a_plugin() {
        assert_eq!(Tree::new(&[""]).walk(&DiscoverySettings::default()).0, [""]);
    }

    #[test]
    fn a_root_that_is_not_there_is_reported() {
        let (folders, diagnostics) = Tree::new(&[]).walk(&DiscoverySettings::default());
        assert!(folders.is_empty());
        assert!(diagnostics[0].starts_with("the folder cannot be read: No such file"));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_on_request_and_not_out_of_the_root() {
        use std::os::unix::fs::symlink;
        let tree = Tree::new(&["real/a", "../outside"]);
        fs::create_dir_all(tree.path("links")).unwrap();
        symlink(tree.path("real/a"), tree.path("links/in")).unwrap();
        symlink(tree.path("../outside"), tree.path("links/out")).unwrap();
        symlink(tree.path(""), tree.path("links/loop")).unwrap();
        assert_eq!(tree.walk(&DiscoverySettings::default()), (vec!["real/a".into()], vec![]));
        let (folders, diagnostics) = tree.walk(&following());
        assert_eq!(folders, ["real/a"]);
        assert_eq!(diagnostics, ["the link leads out of T/root/"]);
        // What is deeper than the walk goes is found where a link leads to it.
        let shallow = DiscoverySettings { max_depth: 1, ..following() };
        symlink(tree.path("real/a"), tree.path("near")).unwrap();
        assert_eq!(tree.walk(&shallow).0, ["near"]);
    }

    /// Each folder has two links to the next: as many paths lead to the last as 2 to the power of 40.
    #[cfg(unix)]
    #[test]
    fn links_to_links_are_followed_once() {
        let names: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
        let tree = Tree::new(&names.iter().map(String::as_str).collect::<Vec<_>>());
        for pair in names.windows(2) {
            for link in ["a", "b"] {
                let next = format!("../{}", pair[1]);
                std::os::unix::fs::symlink(next, tree.path(&pair[0]).join(link)).unwrap();
            }
        }
        let deep = DiscoverySettings { max_depth: 1000, ..following() };
        assert_eq!(tree.walk(&deep), (names, vec![]));
    }

    #[test]
    fn a_walk_ends_though_there_is_more() {
        let tree = Tree::new(&["a"]);
        let left = |left: usize| {
            let mut entries = MAX_ENTRIES - left;
            PluginScan::new(&tree.path(""), &DiscoverySettings::default(), &mut entries)
        };
        let PluginScan { manifests, diagnostics, .. } = left(3);
        assert_eq!((manifests.len(), diagnostics.len()), (1, 0));
        let diagnostics = left(2).diagnostics;
        assert!(diagnostics[0].problem.contains("more than 100000 files"), "{diagnostics:?}");
    }

    #[cfg(unix)]
    #[test]
    fn links_that_are_not_followed_are_named_where_plugins_are_looked_for() {
        let tree = Tree::new(&["a/deep"]);
        for (target, link) in [("a", "to-a"), ("nowhere", "to-nowhere"), ("deep", "a/to-deep")] {
            std::os::unix::fs::symlink(target, tree.path(link)).expect("a link is made");
        }
        let links =
            |settings: &DiscoverySettings| PluginScan::new(&tree.path(""), settings, &mut 0).links;
        let named = ["to-a", "to-nowhere"].map(|link| tree.path(link));
        assert_eq!(links(&DiscoverySettings::default()), named);
        assert!(links(&following()).is_empty());
    }
}
