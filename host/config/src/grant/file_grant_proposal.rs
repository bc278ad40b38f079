//! Grants of `filesystem` that would allow what was recorded of a server: few, and narrow.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use crate::expand::escaped;

/// How many folders in one folder are taken together.
const MIN_SIBLINGS: usize = 3;

/// The least number of folders above what a grant covers as a whole: nobody grants `/home/ada` or `/etc`.
const MIN_DEPTH: usize = 3;

/// What is done with files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct FileUse {
    read: bool,
    write: bool,
}

impl FileUse {
    fn and(self, other: Self) -> Self {
        Self { read: self.read || other.read, write: self.write || other.write }
    }

    fn covers(self, other: Self) -> bool {
        self.and(other) == self
    }
}

/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// A file, or nothing yet.
    File,
    /// A folder.
    Folder,
    /// A file or folder that holds keys: no glob covers it, and no folder that it lies in.
    Secret,
    /// The host's own, which no plugin reaches.
    Own,
}

/// Returns values of `filesystem` that allow reading and changing these paths, which are absolute. Files get the folder
/// that they lie in; what is in hidden folders gets the one above those, as `.git` belongs to its repository. Files of a
/// user's home folder, of folders near the root, and those with keys are named one by one. The home folder itself and what
/// is above it are left out.
pub fn file_grants(
    reads: &BTreeSet<PathBuf>,
    writes: &BTreeSet<PathBuf>,
    home: Option<&Path>,
    kind: impl Fn(&Path) -> PathKind,
) -> Vec<String> {
    let (mut folders, mut files) = (BTreeMap::new(), BTreeMap::new());
    let read = reads.iter().map(|path| (path, FileUse { read: true, write: false }));
    let written = writes.iter().map(|path| (path, FileUse { read: false, write: true }));
    let above_home = |path: &Path| home.is_some_and(|home| home.starts_with(path));
    for (path, uses) in
        read.chain(written).filter(|(path, _)| !above_home(path) && !path.starts_with("/dev"))
    {
        let folder = match kind(path) {
            PathKind::Own => continue,
            PathKind::Secret => None,
            PathKind::Folder => folder_for(path, uses, home),
            PathKind::File => path.parent().and_then(|folder| folder_for(folder, uses, home)),
        };
        let (all, key) = match folder {
            Some(folder) => (&mut folders, folder),
            None => (&mut files, path.as_path()),
        };
        let known = all.entry(key.to_path_buf()).or_insert(FileUse::default());
        *known = known.and(uses);
    }
    join_siblings(&mut folders, home);
    let is_covered = |path: &Path, uses: FileUse, itself: bool| {
        let above = path.ancestors().skip(usize::from(itself));
        above.filter_map(|folder| folders.get(folder)).any(|of: &FileUse| of.covers(uses))
    };
    let named = folders.iter().filter(|(path, uses)| !is_covered(path, **uses, true));
    let is_secret = |path: &Path| kind(path) == PathKind::Secret;
    let files =
        files.iter().filter(|(path, uses)| is_secret(path) || !is_covered(path, **uses, false));
    let named = named.map(|(path, uses)| value(path, *uses, home, "/**"));
    named.chain(files.map(|(path, uses)| value(path, *uses, home, ""))).collect()
}

/// The names of a path below the home folder; all of them where it is not in there.
fn own_part<'a>(path: &'a Path, home: Option<&Path>) -> &'a Path {
    home.and_then(|home| path.strip_prefix(home).ok()).unwrap_or(path)
}

/// The folder that is granted for one in which something is used, if any is.
fn folder_for<'a>(folder: &'a Path, uses: FileUse, home: Option<&Path>) -> Option<&'a Path> {
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    let visible = |folder: &&Path| !own_part(folder, home).components().any(is_hidden);
    let visible = folder.ancestors().find(visible);
    if let Some(folder) = visible.filter(|folder| is_grantable(folder, home)) {
        return Some(folder);
    }
    // A folder of settings of one program, and not those of all.
    const MIN_SETTINGS_DEPTH: usize = 2;
    let own = home.and_then(|home| folder.strip_prefix(home).ok());
    let is_of_program = own.is_some_and(|own| own.components().count() >= MIN_SETTINGS_DEPTH);
    (uses.write && is_of_program).then_some(folder)
}

/// Whether a whole folder may be proposed.
fn is_grantable(folder: &Path, home: Option<&Path>) -> bool {
    let above_home = home.is_some_and(|home| home.starts_with(folder));
    let is_in_home = home.is_some_and(|home| folder.starts_with(home));
    !above_home && (is_in_home || folder.components().count() >= MIN_DEPTH)
}

/// Puts a folder in the place of several in it that are used alike.
fn join_siblings(folders: &mut BTreeMap<PathBuf, FileUse>, home: Option<&Path>) {
    let mut siblings = BTreeMap::<(PathBuf, FileUse), usize>::new();
    for (folder, uses) in folders.iter() {
        if let Some(parent) = folder.parent().filter(|parent| is_grantable(parent, home)) {
            *siblings.entry((parent.to_path_buf(), *uses)).or_default() += 1;
        }
    }
    let many = siblings.into_iter().filter(|(_, count)| *count >= MIN_SIBLINGS);
    for ((parent, uses), _) in many {
        let known = folders.entry(parent).or_default();
        *known = known.and(uses);
    }
}

fn value(path: &Path, uses: FileUse, home: Option<&Path>, end: &str) -> String {
    let rights = match uses {
        FileUse { read: true, write: true } => "readwrite",
        FileUse { write: true, .. } => "write",
        FileUse { .. } => "read",
    };
    let own = home.and_then(|home| path.strip_prefix(home).ok());
    let shown = match own {
        Some(own) => format!("~/{}", escaped(&own.display().to_string())),
        None => escaped(&path.display().to_string()),
    };
    format!("{rights}:{shown}{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_are_few_and_narrow() {
        let home = Path::new("/home/ada");
        let check = |reads: &[&str], writes: &[&str], expected: &[&str]| {
            let paths = |texts: &[&str]| texts.iter().map(PathBuf::from).collect::<BTreeSet<_>>();
            let kind = |path: &Path| match path {
                _ if path.starts_with("/home/ada/.config/tenon") => PathKind::Own,
                _ if path.ends_with(".env") || path.starts_with("/home/ada/.ssh") => {
                    PathKind::Secret
                }
                // What has no dot in its name is a folder here.
                _ if path.extension().is_none() => PathKind::Folder,
                _ => PathKind::File,
            };
            let grants = file_grants(&paths(reads), &paths(writes), Some(home), kind);
            assert_eq!(grants, expected, "{reads:?} {writes:?}");
        };
        check(&[], &[], &[]);
        check(&["/home/ada/notes/a.md"], &[], &["read:~/notes/**"]);
        check(&["/home/ada/notes", "/home/ada/notes/a.md"], &[], &["read:~/notes/**"]);
        check(&["/home/ada/notes/sub/a.md", "/home/ada/notes/b.md"], &[], &["read:~/notes/**"]);
        check(&[], &["/home/ada/notes/a.md"], &["write:~/notes/**"]);
        check(&["/home/ada/n/a.md"], &["/home/ada/n/b.md"], &["readwrite:~/n/**"]);
        // To write in one is not to write in all.
        check(
            &["/home/ada/n/a.md"],
            &["/home/ada/n/out/b.md"],
            &["read:~/n/**", "write:~/n/out/**"],
        );
        check(
            &["/home/ada/n/out/a.md"],
            &["/home/ada/n/b.md"],
            &["write:~/n/**", "read:~/n/out/**"],
        );
        check(
            &["/home/ada/p/a/x.md", "/home/ada/p/b/x.md", "/home/ada/p/c/x.md"],
            &[],
            &["read:~/p/**"],
        );
        check(
            &["/home/ada/p/a/x.md", "/home/ada/p/b/x.md"],
            &[],
            &["read:~/p/a/**", "read:~/p/b/**"],
        );
        // Folders in the home folder are not the home folder.
        check(
            &["/home/ada/a/x.md", "/home/ada/b/x.md", "/home/ada/c/x.md"],
            &[],
            &["read:~/a/**", "read:~/b/**", "read:~/c/**"],
        );
        check(&["/home/ada/a.md"], &[], &["read:~/a.md"]);
        // All that the user has, for a look at its names.
        check(&["/home/ada", "/home", "/"], &[], &[]);
        check(&["/home/ada/.ssh/id.pub"], &[], &["read:~/.ssh/id.pub"]);
        check(
            &["/home/ada/notes/a.md", "/home/ada/notes/.env"],
            &[],
            &["read:~/notes/**", "read:~/notes/.env"],
        );
        // A repository is one, with what is hidden in it, whatever its files are called for a moment.
        check(
            &["/home/ada/repo/.git/index.x", "/home/ada/repo/src"],
            &["/home/ada/repo/.git/objects/5f/tmp_obj.x", "/home/ada/repo/.git/index.lock"],
            &["readwrite:~/repo/**"],
        );
        // Of hidden folders of the home folder, only what one program writes.
        check(&["/home/ada/.config/app/x.toml"], &[], &["read:~/.config/app/x.toml"]);
        check(&[], &["/home/ada/.config/app/x.toml"], &["write:~/.config/app/**"]);
        check(&[], &["/home/ada/.profile.sh"], &["write:~/.profile.sh"]);
        check(&["/home/ada/.config/tenon/config.toml"], &[], &[]);
        check(&["/etc/hosts.conf"], &[], &["read:/etc/hosts.conf"]);
        check(&["/etc/app/x.conf"], &[], &["read:/etc/app/**"]);
        check(&["/home/x.md", "/x.md"], &[], &["read:/home/x.md", "read:/x.md"]);
        check(&["/srv/data/a*b/x.md"], &[], &[r"read:/srv/data/a\*b/**"]);
    }
}
