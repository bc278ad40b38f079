//! Which folder a command is for: that of the project, or that of a plugin which somebody writes.

use std::path::{Path, PathBuf};
use tenon_config::manifest::FILE_NAME as MANIFEST;

use crate::Common;

/// The files that make a folder a project, as far as folders above the current one are looked at.
const PROJECT_MARKS: [&str; 3] = ["tenon.toml", "tenon.lock", ".tenon/plugins"];

/// The project of the current folder: this folder, or the nearest above it that is one. The user's home folder and those
/// above it are none for the folders in it.
pub(crate) fn nearest_project() -> PathBuf {
    let found = current().and_then(|current| nearest(&current, home().as_deref(), &PROJECT_MARKS));
    found.unwrap_or_else(|| ".".into())
}

/// The folder of what somebody writes: the one that was named; or the current one, or the nearest above it within the
/// project, that has a plugin; or the project.
pub(crate) fn of_author(common: &Common, named: Option<&Path>) -> PathBuf {
    if let Some(folder) = named.or(common.named_project.as_deref()) {
        return folder.to_path_buf();
    }
    let depth = common.project.components().filter(|part| part.as_os_str() == "..").count();
    let folders = (0..=depth).map(above);
    { folders }
        .into_iter()
        .find(|folder| folder.join(MANIFEST).is_file())
        .or_else(|| {
            // A plugin may lie in no project.
            let is_project = PROJECT_MARKS.iter().any(|mark| common.project.join(mark).exists());
            current()
                .filter(|_| !is_project)
                .and_then(|current| nearest(&current, home().as_deref(), &[MANIFEST]))
        })
        .unwrap_or_else(|| common.project.clone())
}

fn current() -> Option<PathBuf> {
    std::env::current_dir().ok()
}

fn home() -> Option<PathBuf> {
    std::env::home_dir().filter(|home| home.is_absolute())
}

/// The nearest folder with one of these files, from the current one.
fn nearest(current: &Path, home: Option<&Path>, marks: &[&str]) -> Option<PathBuf> {
    let is_marked = |folder: &Path| marks.iter().any(|mark| folder.join(mark).exists());
    let is_home = |folder: &Path| home.is_some_and(|home| home.starts_with(folder));
    let mut folders = current.ancestors().enumerate();
    let found = folders.find(|(depth, folder)| {
        // Somebody who is there has gone there.
        is_marked(folder) && (*depth == 0 || !is_home(folder))
    });
    found.map(|(depth, _)| above(depth))
}

/// The folder so many above the current one.
fn above(depth: usize) -> PathBuf {
    match depth {
        0 => ".".into(),
        depth => vec![".."; depth].iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn the_nearest_folder_with_the_file_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("home/work/plugins/hello/src")).unwrap();
        for path in ["tenon.toml", "home/tenon.toml", "home/work/tenon.toml"] {
            fs::write(root.join(path), "").unwrap();
        }
        let check = |current: &str, expected: Option<&str>| {
            let home = root.join("home");
            let found = nearest(&root.join(current), Some(&home), &["tenon.toml"]);
            assert_eq!(found.as_deref(), expected.map(Path::new), "{current}");
        };
        check("home/work", Some("."));
        check("home/work/plugins", Some(".."));
        check("home/work/plugins/hello/src", Some("../../.."));
        check("home", Some("."));
        fs::remove_file(root.join("home/work/tenon.toml")).unwrap();
        check("home/work/plugins", None);
        check("", Some("."));
    }
}
