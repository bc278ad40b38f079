//! The walk through a folder for manifests.

use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

use crate::config::DiscoverySettings;
use crate::diagnostic::Diagnostic;
use crate::manifest;

/// What there is below a root.
#[derive(Default)]
pub(super) struct Walk {
    /// The folders with a manifest, in the order of their paths.
    pub(super) manifests: Vec<PathBuf>,
    /// Components and scripts, by their names, that no folder with a manifest holds.
    pub(super) bare: Vec<PathBuf>,
    /// All folders that were looked into.
    pub(super) folders: Vec<PathBuf>,
    /// Links right below the root that are not followed.
    pub(super) links: Vec<PathBuf>,
    /// What could not be read, or leads out of the root; it was passed over.
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl Walk {
    pub(super) fn new(root: &Path, settings: &DiscoverySettings) -> Self {
        let mut found = Self::default();
        match root.canonicalize() {
            Ok(real_root) => {
                found.walk(root, &real_root, settings);
                let Self { manifests, bare, .. } = &mut found;
                bare.retain(|file| !manifests.iter().any(|folder| file.starts_with(folder)));
            }
            Err(error) => {
                let problem = format!("the folder cannot be read: {error}");
                found.diagnostics.push(Diagnostic::in_file(root.display(), problem));
            }
        }
        found
    }

    fn walk(&mut self, root: &Path, real_root: &Path, settings: &DiscoverySettings) {
        // A manifest lies one deeper than its folder.
        let mut walk = WalkDir::new(root)
            .max_depth(settings.max_depth.saturating_add(1))
            .follow_links(settings.follow_links)
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
            let is_folder = entry.file_type().is_dir();
            if settings.follow_links && leads_out(&entry, real_root) {
                let problem = format!("the link leads out of {}", root.display());
                self.diagnostics.push(
                    Diagnostic::in_file(entry.path().display(), problem)
                        .remedy("name the folder that it leads to under `plugins.folders`"),
                );
                if is_folder {
                    walk.skip_current_dir();
                }
            } else if entry.depth() == 1 && entry.file_type().is_symlink() {
                self.links.push(entry.into_path());
            } else if is_folder && is_ignored(&entry, &settings.ignore_dirs) {
                walk.skip_current_dir();
            } else if is_folder && entry.depth() <= settings.max_depth {
                self.folders.push(entry.into_path());
            } else if entry.file_type().is_file() && entry.file_name() == manifest::FILE_NAME {
                self.manifests.extend(entry.path().parent().map(Path::to_path_buf));
            } else if entry.file_type().is_file() && is_code(entry.path()) {
                self.bare.push(entry.into_path());
            }
        }
    }
}

/// Whether a file is a component or a script, by its name.
fn is_code(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "wasm" || kind == "rhai")
}

fn leads_out(entry: &DirEntry, real_root: &Path) -> bool {
    let stays = || entry.path().canonicalize().is_ok_and(|real| real.starts_with(real_root));
    entry.depth() > 0 && entry.path_is_symlink() && !stays()
}

fn is_ignored(entry: &DirEntry, ignored: &[String]) -> bool {
    entry.depth() > 0 && ignored.iter().any(|name| entry.file_name() == name.as_str())
}

fn unreadable(root: &Path, error: &walkdir::Error) -> Diagnostic {
    let place = error.path().unwrap_or(root).display().to_string();
    match error.loop_ancestor() {
        Some(ancestor) => {
            Diagnostic::in_file(place, format!("the link leads back to {}", ancestor.display()))
        }
        None => {
            let cause = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
            Diagnostic::in_file(place, format!("the folder cannot be read: {cause}"))
        }
    }
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
            let Walk { manifests, diagnostics, .. } = Walk::new(&root, settings);
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
        assert_eq!(folders, ["links/in", "real/a"]);
        assert_eq!(
            diagnostics,
            ["the link leads back to T/root/", "the link leads out of T/root/"]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_that_are_not_followed_are_named_where_plugins_are_looked_for() {
        let tree = Tree::new(&["a/deep"]);
        for (target, link) in [("a", "to-a"), ("nowhere", "to-nowhere"), ("deep", "a/to-deep")] {
            std::os::unix::fs::symlink(target, tree.path(link)).expect("a link is made");
        }
        let links = |settings: &DiscoverySettings| Walk::new(&tree.path(""), settings).links;
        let named = ["to-a", "to-nowhere"].map(|link| tree.path(link));
        assert_eq!(links(&DiscoverySettings::default()), named);
        assert!(links(&following()).is_empty());
    }
}
