//! The walk through a folder for manifests.

use std::path::{Path, PathBuf};
use walkdir::{DirEntry, WalkDir};

use crate::config::DiscoverySettings;
use crate::diagnostic::Diagnostic;
use crate::manifest;

/// Finds the folders below a root that hold a manifest, in the order of their paths. What cannot be
/// read, or leads out of the root, is reported and passed over.
pub(super) fn manifests(
    root: &Path,
    settings: &DiscoverySettings,
    report: &mut impl FnMut(Diagnostic),
) -> Vec<PathBuf> {
    let real_root = match root.canonicalize() {
        Ok(real) => real,
        Err(error) => {
            report(Diagnostic::in_file(
                root.display(),
                format!("the folder cannot be read: {error}"),
            ));
            return Vec::new();
        }
    };
    // A manifest lies one deeper than its folder.
    let mut walk = WalkDir::new(root)
        .max_depth(settings.max_depth.saturating_add(1))
        .follow_links(settings.follow_links)
        .sort_by_file_name()
        .into_iter();
    let mut folders = Vec::new();
    while let Some(entry) = walk.next() {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                report(unreadable(root, &error));
                continue;
            }
        };
        if entry.depth() > 0 && entry.path_is_symlink() && settings.follow_links {
            let leaves =
                !entry.path().canonicalize().is_ok_and(|real| real.starts_with(&real_root));
            if leaves {
                let problem = format!("the link leads out of {}", root.display());
                report(
                    Diagnostic::in_file(entry.path().display(), problem)
                        .remedy("name the folder that it leads to under `plugins.folders`"),
                );
                if entry.file_type().is_dir() {
                    walk.skip_current_dir();
                }
                continue;
            }
        }
        if entry.file_type().is_dir() && is_ignored(&entry, &settings.ignore_dirs) {
            walk.skip_current_dir();
            continue;
        }
        if entry.file_type().is_file() && entry.file_name() == manifest::FILE_NAME {
            folders.extend(entry.path().parent().map(Path::to_path_buf));
        }
    }
    folders
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
            let mut diagnostics = Vec::new();
            let folders = manifests(&root, settings, &mut |diagnostic: Diagnostic| {
                diagnostics
                    .push(diagnostic.problem.replace(&*self.0.path().to_string_lossy(), "T"));
            });
            let relative = |folder: PathBuf| {
                folder.strip_prefix(&root).expect("it is below").display().to_string()
            };
            (folders.into_iter().map(relative).collect(), diagnostics)
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
}
