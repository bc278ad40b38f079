//! Skills: instructions for agents that a plugin carries, in the format of
//! [Agent Skills](https://agentskills.io/specification).
//!
//! A skill is a folder below `skills` in the folder of a plugin, with a `SKILL.md` and whatever files that
//! refers to. An agent acts on them with its own means, outside of any sandbox. So all of these files have one
//! digest, which approvals and lock files compare, and a file is read only with the content that it had then.

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

use crate::files::{self, Digest};

/// The folder of a plugin's skills, below its own.
pub const FOLDER: &str = "skills";

/// The file with the instructions of a skill.
pub const FILE_NAME: &str = "SKILL.md";

/// How many skills a plugin may have.
const MAX_SKILLS: usize = 64;

/// How many files all skills of a plugin may have.
const MAX_FILES: usize = 256;

/// The largest file of a skill, in bytes.
pub const MAX_FILE_BYTES: u64 = 1 << 20;

/// How many bytes all files of a plugin's skills may have.
pub const MAX_BYTES: u64 = 8 << 20;

/// How many files and folders may be below `skills`.
const MAX_ENTRIES: usize = 1024;

/// The longest front matter, in bytes: the longest texts of it, and as much again.
const MAX_FRONT_MATTER_BYTES: usize = 16 << 10;

/// How many values, keys among them, front matter may have.
const MAX_NODES: usize = 1000;

/// How many names the path of a file below `skills` may have.
const MAX_DEPTH: usize = 8;

/// Names that some systems keep for devices, whatever the extension; there are also `com1`, `lpt1` and so on.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The longest path of a file below `skills`, in bytes.
const MAX_PATH_BYTES: usize = 255;

/// The longest name, in characters, as the specification has it.
const MAX_NAME: usize = 64;

/// The longest description, in characters, as the specification has it.
const MAX_DESCRIPTION: usize = 1024;

/// The longest text about what a skill needs, in characters, as the specification has it.
const MAX_COMPATIBILITY: usize = 500;

/// Why the skills of a plugin are not read.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// A file or folder cannot be read.
    #[error("{FOLDER}/{path}: it cannot be read")]
    Read {
        /// The path below `skills`.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{FOLDER}/{path}: {problem}")]
    Invalid {
        /// The path below `skills`.
        path: String,
        /// What is wrong.
        problem: String,
    },
    /// There is too much.
    #[error("its skills have more than {0}")]
    TooMuch(String),
    /// A file has changed since the plugin was found.
    #[error("{FOLDER}/{0} has changed since the plugin was loaded")]
    Changed(String),
}

/// The content of all files of a plugin's skills, by their paths below `skills`, with `/` between names.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PluginSkillFiles {
    files: BTreeMap<String, SkillFile>,
    bytes: u64,
}

/// A file, whose digest is taken once.
#[derive(Clone, PartialEq, Eq)]
struct SkillFile {
    content: Vec<u8>,
    digest: Digest,
}

impl fmt::Debug for PluginSkillFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.files.keys()).finish()
    }
}

/// The skills of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginSkills {
    folder: PathBuf,
    skills: Vec<Skill>,
    digest: Digest,
}

/// A skill, without the content of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Skill {
    /// Its name, which is that of its folder.
    pub name: String,
    /// What it does, and when an agent should use it.
    pub description: String,
    /// Its license, or the name of a file with it.
    pub license: Option<String>,
    /// What it needs where it is used.
    pub compatibility: Option<String>,
    files: BTreeMap<String, Digest>,
}

/// The front matter of a `SKILL.md`. What else is there is for agents.
#[derive(Deserialize)]
struct FrontMatter {
    name: String,
    description: String,
    license: Option<String>,
    compatibility: Option<String>,
}

impl PluginSkillFiles {
    /// Reads the files below `skills` in the folder of a plugin. There need not be any.
    ///
    /// # Errors
    ///
    /// Where one cannot be read, is a link or no regular file, or has a name that is not the same on every
    /// system, and where there are too many or they are too large.
    pub fn read(plugin_folder: &Path) -> Result<Self, SkillError> {
        let folder = plugin_folder.join(FOLDER);
        let mut found = Self::default();
        match folder.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Ok(about) if about.is_dir() => {}
            // A file of this name says nothing of skills.
            Ok(about) if about.is_file() => return Ok(found),
            Ok(_) => return Err(invalid("", NO_FILE)),
            Err(source) => return Err(SkillError::Read { path: String::new(), source }),
        }
        // What lies deeper has a path that is refused.
        let walk = WalkDir::new(&folder).min_depth(1).max_depth(MAX_DEPTH + 1).sort_by_file_name();
        for (count, entry) in walk.into_iter().enumerate() {
            if count >= MAX_ENTRIES {
                return Err(SkillError::TooMuch(format!("{MAX_ENTRIES} files and folders")));
            }
            let entry = entry.map_err(|error| {
                let path = error.path().map(|path| path_below(&folder, path)).unwrap_or_default();
                SkillError::Read { path, source: error.into() }
            })?;
            let path = path_below(&folder, entry.path());
            // What file managers leave beside the folders of skills is no part of any.
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_hidden && entry.depth() == 1 && entry.file_type().is_file() {
                continue;
            }
            if entry.file_name().to_str().is_none() {
                return Err(invalid(&path, "its name is not UTF-8"));
            }
            check_path(&path)?;
            if entry.file_type().is_dir() {
                continue;
            }
            if !entry.file_type().is_file() {
                return Err(invalid(&path, NO_FILE));
            }
            // Before anything is read of one too many.
            found.check_room(0)?;
            let content = files::read(entry.path(), MAX_FILE_BYTES);
            let content = content.map_err(|source| SkillError::Read { path: path.clone(), source });
            found.insert(path, content?)?;
        }
        Ok(found)
    }

    /// Adds a file.
    ///
    /// # Errors
    ///
    /// Where its path leads out of `skills` or is not the same on every system, or there is too much.
    pub fn insert(&mut self, path: String, content: Vec<u8>) -> Result<(), SkillError> {
        check_path(&path)?;
        if content.len() as u64 > MAX_FILE_BYTES {
            return Err(invalid(&path, &format!("it is larger than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        // Some systems do not tell them apart by case, and none has a file and a folder of one name.
        let lower = path.to_ascii_lowercase();
        let is_above = |one: &str, other: &str| {
            other.strip_prefix(one).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let is_same = |known: &&String| {
            let known = known.to_ascii_lowercase();
            is_above(&known, &lower) || is_above(&lower, &known)
        };
        if let Some(known) = self.files.keys().find(is_same) {
            return Err(invalid(&path, &format!("{known} has the same name")));
        }
        self.check_room(content.len() as u64)?;
        self.bytes += content.len() as u64;
        let digest = Digest::of(&content);
        self.files.insert(path, SkillFile { content, digest });
        Ok(())
    }

    /// Checks that one more file of this size fits in.
    fn check_room(&self, bytes: u64) -> Result<(), SkillError> {
        if self.files.len() >= MAX_FILES {
            return Err(SkillError::TooMuch(format!("{MAX_FILES} files")));
        }
        match self.bytes + bytes > MAX_BYTES {
            true => Err(SkillError::TooMuch(format!("{} MiB", MAX_BYTES >> 20))),
            false => Ok(()),
        }
    }

    /// The files, by their paths below `skills`.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.files.iter().map(|(path, file)| (path.as_str(), file.content.as_slice()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The digest of all files, of their paths and contents; nothing where there are none.
    pub fn digest(&self) -> Option<Digest> {
        // A path has no control character, so no two sets of files have the same text.
        let line = |(path, file): (&String, &SkillFile)| format!("{path}\0{}\n", file.digest);
        let lines: String = self.files.iter().map(line).collect();
        (!self.is_empty()).then(|| Digest::of(lines))
    }

    /// The skills that these files are; nothing where there are none.
    ///
    /// # Errors
    ///
    /// Where a file is not in the folder of a skill, or a `SKILL.md` is missing or not as the specification has
    /// it.
    pub fn skills(&self, plugin_folder: &Path) -> Result<Option<PluginSkills>, SkillError> {
        let Some(digest) = self.digest() else { return Ok(None) };
        let mut by_name: BTreeMap<&str, BTreeMap<String, Digest>> = BTreeMap::new();
        for (path, of) in &self.files {
            let (name, file) = path.split_once('/').ok_or_else(|| {
                let problem = format!("it is not in the folder of a skill, {FOLDER}/NAME/");
                invalid(path, &problem)
            })?;
            by_name.entry(name).or_default().insert(file.into(), of.digest);
        }
        if by_name.len() > MAX_SKILLS {
            return Err(SkillError::TooMuch(format!("{MAX_SKILLS} skills")));
        }
        let skill = |(name, files): (&str, BTreeMap<String, Digest>)| {
            let path = format!("{name}/{FILE_NAME}");
            let Some(SkillFile { content, .. }) = self.files.get(&path) else {
                return Err(invalid(name, &format!("it has no {FILE_NAME}")));
            };
            Skill::parse(name, content, files).map_err(|problem| invalid(&path, &problem))
        };
        let skills = by_name.into_iter().map(skill).collect::<Result<_, _>>()?;
        Ok(Some(PluginSkills { folder: plugin_folder.join(FOLDER), skills, digest }))
    }
}

const NO_FILE: &str = "it is a link, or neither a file nor a folder";

impl PluginSkills {
    /// The skills, by name.
    pub fn all(&self) -> &[Skill] {
        &self.skills
    }

    /// The skill of a name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.iter().find(|skill| skill.name == name)
    }

    /// The digest of all their files, of their paths and contents.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The folder of a skill.
    pub fn folder_of(&self, skill: &Skill) -> PathBuf {
        self.folder.join(&skill.name)
    }

    /// All their files.
    pub fn paths(&self) -> impl Iterator<Item = (PathBuf, Digest)> {
        self.skills.iter().flat_map(|skill| {
            let folder = self.folder_of(skill);
            skill.files.iter().map(move |(path, digest)| (folder.join(path), *digest))
        })
    }

    /// Reads a file of a skill; nothing where it has none of this path. It must be what it was when the plugin
    /// was found.
    ///
    /// # Errors
    ///
    /// Where it cannot be read, or has changed.
    pub fn read(&self, skill: &Skill, path: &str) -> Result<Option<Vec<u8>>, SkillError> {
        let Some(expected) = skill.files.get(path) else { return Ok(None) };
        let named = || format!("{}/{path}", skill.name);
        match files::read(&self.folder_of(skill).join(path), MAX_FILE_BYTES) {
            Ok(content) if Digest::of(&content) == *expected => Ok(Some(content)),
            Ok(_) => Err(SkillError::Changed(named())),
            Err(source) => Err(SkillError::Read { path: named(), source }),
        }
    }
}

impl Skill {
    /// The paths of its files in its folder, with `/` between names; `SKILL.md` is one of them.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    fn parse(name: &str, content: &[u8], files: BTreeMap<String, Digest>) -> Result<Self, String> {
        let text = std::str::from_utf8(content).map_err(|_| "it is not UTF-8 text")?;
        let front_matter = front_matter(text).ok_or(
            "it must begin with front matter: a line `---`, then `name` and `description`, then a line `---`",
        )?;
        let FrontMatter { name: own, description, license, compatibility } =
            read_front_matter(front_matter)?;
        if !is_name(&own) {
            return Err(format!(
                "invalid name {own:?}: names have 1 to {MAX_NAME} characters of a-z, 0-9 and single `-` between \
                 them"
            ));
        }
        if own != name {
            return Err(format!("its name is `{own}`, and its folder is called `{name}`"));
        }
        let description = description.trim().to_string();
        if description.is_empty() {
            return Err("its description is empty".into());
        }
        let is_within = |text: &str, most: usize| text.chars().nth(most).is_none();
        if !is_within(&description, MAX_DESCRIPTION) {
            return Err(format!("its description is longer than {MAX_DESCRIPTION} characters"));
        }
        if !compatibility.iter().all(|text| is_within(text, MAX_COMPATIBILITY)) {
            return Err(format!("its compatibility is longer than {MAX_COMPATIBILITY} characters"));
        }
        Ok(Self { name: own, description, license, compatibility, files })
    }
}

/// Reads front matter. It is read of plugins that nobody has approved, so it is short, and nothing in it stands for
/// something larger.
fn read_front_matter(text: &str) -> Result<FrontMatter, String> {
    if text.len() > MAX_FRONT_MATTER_BYTES {
        return Err(format!(
            "its front matter is longer than {} KiB",
            MAX_FRONT_MATTER_BYTES >> 10
        ));
    }
    let budget = serde_saphyr::budget! { max_anchors: 0, max_aliases: 0, max_nodes: MAX_NODES };
    let options = serde_saphyr::options! { budget: budget };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        // The first line is the one with `---`.
        let line = error.location().map_or(0, |location| location.line()) + 1;
        let text = error.without_snippet().to_string();
        let text = text.rsplit_once(" at line ").map_or(&*text, |(problem, _)| problem);
        // What to set in the library is nobody's business who writes a skill.
        let text = text.split(", set DuplicateKeyPolicy").next().unwrap_or(text);
        match text.contains("budget breached") {
            true => format!("line {line}: it has anchors, or more than {MAX_NODES} values"),
            false => format!("line {line}: {text}"),
        }
    })
}

fn invalid(path: &str, problem: &str) -> SkillError {
    SkillError::Invalid { path: path.into(), problem: problem.into() }
}

/// Whether it is the name of a skill.
fn is_name(name: &str) -> bool {
    let is_of = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= MAX_NAME
        && name.split('-').all(|part| !part.is_empty() && part.bytes().all(is_of))
}

/// A path below a folder, with `/` between names.
fn path_below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let names: Vec<_> = below.iter().map(|name| name.to_string_lossy()).collect();
    names.join("/")
}

/// Checks the path of a file or folder: it stays below `skills`, means the same on every system and looks like
/// what it is.
fn check_path(path: &str) -> Result<(), SkillError> {
    let names = || path.split('/');
    // Other characters are written in several ways, look like these, or mean something to a shell or a system.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || " ._-+@,()[]{}#=".contains(c);
    let is_numbered = |stem: &str| {
        let number = ["com", "lpt"].iter().find_map(|device| stem.strip_prefix(device));
        number.is_some_and(|number| number.len() == 1)
    };
    let is_name = |name: &str| {
        let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
        !name.is_empty()
            && name.chars().all(is_plain)
            && !name.starts_with([' ', '-'])
            && !name.ends_with([' ', '.'])
            && !DEVICES.contains(&&*stem)
            && !is_numbered(&stem)
    };
    if names().count() > MAX_DEPTH || path.len() > MAX_PATH_BYTES {
        return Err(invalid(path, "it is too deep below its folder, or its path is too long"));
    }
    match names().all(is_name) {
        true => Ok(()),
        false => Err(invalid(path, "its name is not a name on every system")),
    }
}

/// The text between the first line, which is `---`, and the next such line.
fn front_matter(text: &str) -> Option<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut length = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some(&rest[..length]);
        }
        length += line.len();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const GOOD: &str = "---\nname: review\ndescription: Reviews code.\n---\n\nRead it twice.\n";

    /// A plugin's folder with these files below `skills`.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(FOLDER).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn read(folder: &Path) -> Result<Option<PluginSkills>, String> {
        let skills = PluginSkillFiles::read(folder).and_then(|files| files.skills(folder));
        skills.map_err(|error| crate::diagnostic::chain(&error))
    }

    /// What is wrong with a plugin that has one skill, `review`, with this `SKILL.md`.
    fn check(text: &str, expected: &str) {
        let folder = folder(&[("review/SKILL.md", text)]);
        assert_eq!(read(folder.path()).unwrap_err(), expected, "{text}");
    }

    #[test]
    fn a_skill_is_read_with_its_files() {
        let folder = folder(&[
            ("review/SKILL.md", GOOD),
            ("review/scripts/count.sh", "wc -l"),
            (
                "a-2/SKILL.md",
                "\u{feff}---\r\nname: a-2\r\ndescription: >\r\n  One\r\n  two.\r\nlicense: MIT\r\ncompatibility: git\r\nmetadata:\r\n  x: {y: 1}\r\n---",
            ),
        ]);
        let skills = read(folder.path()).unwrap().unwrap();
        let [two, review] = skills.all() else { panic!("{skills:?}") };
        assert_eq!((&*two.name, &*two.description), ("a-2", "One two."));
        assert_eq!(
            (two.license.as_deref(), two.compatibility.as_deref()),
            (Some("MIT"), Some("git"))
        );
        assert_eq!(review.description, "Reviews code.");
        assert_eq!(skills.get("review").unwrap().description, "Reviews code.");
        assert!(skills.get("count").is_none());
        assert_eq!(review.files().collect::<Vec<_>>(), ["SKILL.md", "scripts/count.sh"]);
        let read = |path: &str| skills.read(review, path).unwrap();
        assert_eq!(read("SKILL.md").as_deref(), Some(GOOD.as_bytes()));
        assert_eq!(read("scripts/count.sh").as_deref(), Some(&b"wc -l"[..]));
        assert_eq!(read("../a-2/SKILL.md"), None);
        assert_eq!(skills.folder_of(review), folder.path().join("skills/review"));
        assert_eq!(skills.paths().count(), 3);
    }

    #[test]
    fn without_skills_there_are_none() {
        assert_eq!(read(folder(&[]).path()), Ok(None));
        let empty = folder(&[]);
        fs::create_dir_all(empty.path().join("skills/review")).unwrap();
        assert_eq!(read(empty.path()), Ok(None));
        let file = folder(&[]);
        fs::write(file.path().join("skills"), "").unwrap();
        assert_eq!(read(file.path()), Ok(None));
        // What cannot be looked at may be there.
        assert_eq!(
            read(&file.path().join("skills")).unwrap_err(),
            "skills/: it cannot be read: Not a directory (os error 20)"
        );
    }

    #[test]
    fn hidden_files_beside_skills_are_no_part_of_them() {
        let folder = folder(&[("review/SKILL.md", GOOD), ("review/.keep", "")]);
        let before = read(folder.path()).unwrap().unwrap();
        assert_eq!(before.all()[0].files().collect::<Vec<_>>(), [".keep", "SKILL.md"]);
        fs::write(folder.path().join("skills/.DS_Store"), "x").unwrap();
        assert_eq!(read(folder.path()).unwrap().unwrap(), before);
        fs::create_dir(folder.path().join("skills/.git")).unwrap();
        fs::write(folder.path().join("skills/.git/HEAD"), "x").unwrap();
        assert_eq!(read(folder.path()).unwrap_err(), "skills/.git: it has no SKILL.md");
    }

    #[test]
    fn each_file_counts_for_the_digest_and_for_what_is_read() {
        let folder = folder(&[("review/SKILL.md", GOOD), ("review/a", "1"), ("review/b", "2")]);
        let skills = || read(folder.path()).unwrap().unwrap();
        let before = skills();
        assert_eq!(before, skills());
        let write = |path: &str, text: &str| {
            fs::write(folder.path().join("skills/review").join(path), text).unwrap();
        };
        write("a", "3");
        assert_ne!(before.digest(), skills().digest());
        let error = before.read(&before.all()[0], "a").unwrap_err();
        assert_eq!(error.to_string(), "skills/review/a has changed since the plugin was loaded");
        write("a", "2");
        write("b", "1");
        assert_ne!(before.digest(), skills().digest());
        write("a", "1");
        write("b", "2");
        assert_eq!(before.digest(), skills().digest());
        write("c", "");
        assert_ne!(before.digest(), skills().digest());
        fs::remove_file(folder.path().join("skills/review/b")).unwrap();
        let error = before.read(&before.all()[0], "b").unwrap_err();
        assert_eq!(error.to_string(), "skills/review/b: it cannot be read");
    }

    #[test]
    fn what_is_wrong_is_said() {
        const WANTED: &str = "skills/review/SKILL.md: it must begin with front matter: a line `---`, then `name` and \
             `description`, then a line `---`";
        check("", WANTED);
        check("# Review", WANTED);
        check("---\nname: review\ndescription: x\n", WANTED);
        let check = |text: &str, problem: &str| {
            check(&format!("---\n{text}\n---\n"), &format!("skills/review/SKILL.md: {problem}"));
        };
        check("name: review", "line 2: missing field `description`");
        check(
            "name: review\ndescription: a: b",
            "line 3: mapping values are not allowed in this context",
        );
        check("name: [a]\ndescription: b", "line 2: expected string scalar");
        check("name: a\nname: b\ndescription: c", "line 3: duplicate mapping key: name");
        let limit = "it has anchors, or more than 1000 values";
        check("x: &x 1\nname: review\ndescription: c", &format!("line 2: {limit}"));
        let many = format!("name: review\ndescription: c\nx: [{}1]", "1,".repeat(1000));
        check(&many, &format!("line 4: {limit}"));
        let long = format!("name: review\ndescription: c\nx: {}", "x".repeat(16 << 10));
        check(&long, "its front matter is longer than 16 KiB");
        check("name: review\ndescription: ' '", "its description is empty");
        check(
            "name: other\ndescription: x",
            "its name is `other`, and its folder is called `review`",
        );
        let long = "x".repeat(1025);
        check(
            &format!("name: review\ndescription: {long}"),
            "its description is longer than 1024 characters",
        );
        check(
            &format!("name: review\ndescription: x\ncompatibility: {}", &long[..501]),
            "its compatibility is longer than 500 characters",
        );
        for name in ["Review", "a--b", "-a", "a-", "a_b", "", &long[..65]] {
            check(
                &format!("name: '{name}'\ndescription: x"),
                &format!(
                    "invalid name {name:?}: names have 1 to 64 characters of a-z, 0-9 and single `-` between them"
                ),
            );
        }
    }

    #[test]
    fn limits_are_reached_and_not_passed() {
        let within = format!(
            "---\nname: review\ndescription: {}\ncompatibility: {}\n---\n",
            "ä".repeat(1024),
            "ä".repeat(500)
        );
        assert!(read(folder(&[("review/SKILL.md", &within)]).path()).is_ok());
        let begin = "name: review\ndescription: c\nx: ";
        let long = "x".repeat(MAX_FRONT_MATTER_BYTES - begin.len() - 1);
        let longest = format!("---\n{begin}{long}\n---\n");
        assert!(read(folder(&[("review/SKILL.md", &longest)]).path()).is_ok());
        let insert = |files: &mut PluginSkillFiles, path: String, bytes: u64| {
            files
                .insert(path, vec![0; usize::try_from(bytes).unwrap()])
                .map_err(|error| error.to_string())
        };
        let mut files = PluginSkillFiles::default();
        for number in 0..8 {
            insert(&mut files, format!("a/{number}"), MAX_FILE_BYTES).unwrap();
        }
        let too_much = Err("its skills have more than 8 MiB".to_string());
        assert_eq!(insert(&mut files, "a/8".into(), 1), too_much);
        assert_eq!(insert(&mut files, "a/8".into(), 0), Ok(()));
        let too_large = Err("skills/a/9: it is larger than 1 MiB".to_string());
        assert_eq!(insert(&mut files, "a/9".into(), MAX_FILE_BYTES + 1), too_large);
        // The content is too long to be shown.
        let shown = format!("{files:?}");
        assert!(shown.contains("\"a/8\"") && shown.len() < 200, "{shown}");
        let mut files = PluginSkillFiles::default();
        for number in 0..256 {
            insert(&mut files, format!("a/{number}"), 0).unwrap();
        }
        let too_many = Err("its skills have more than 256 files".to_string());
        assert_eq!(insert(&mut files, "a/x".into(), 0), too_many);
        let of_skills = |number: usize| {
            let mut files = PluginSkillFiles::default();
            for number in 0..number {
                let text = format!("---\nname: s{number}\ndescription: x\n---\n");
                files.insert(format!("s{number}/SKILL.md"), text.into()).unwrap();
            }
            files.skills(Path::new("")).map_err(|error| error.to_string())
        };
        assert_eq!(of_skills(64).unwrap().unwrap().all().len(), 64);
        assert_eq!(of_skills(65), Err("its skills have more than 64 skills".into()));
        let many = folder(&[("review/SKILL.md", GOOD)]);
        for number in 0..MAX_ENTRIES - 2 {
            fs::create_dir(many.path().join(format!("skills/review/{number}"))).unwrap();
        }
        assert!(read(many.path()).is_ok());
        fs::create_dir(many.path().join("skills/review/x")).unwrap();
        assert_eq!(
            read(many.path()),
            Err("its skills have more than 1024 files and folders".into())
        );
    }

    #[test]
    fn every_file_is_in_the_folder_of_a_skill() {
        let stray = folder(&[("review/SKILL.md", GOOD), ("README.md", "")]);
        let error = read(stray.path()).unwrap_err();
        assert_eq!(error, "skills/README.md: it is not in the folder of a skill, skills/NAME/");
        let lacking = folder(&[("review/SKILL.md", GOOD), ("other/notes.md", "")]);
        assert_eq!(read(lacking.path()).unwrap_err(), "skills/other: it has no SKILL.md");
        let lower = folder(&[("review/skill.md", GOOD)]);
        assert_eq!(read(lower.path()).unwrap_err(), "skills/review: it has no SKILL.md");
    }

    #[test]
    fn a_path_is_the_same_on_every_system() {
        let check = |path: &str, expected: &str| {
            let mut files = PluginSkillFiles::default();
            files.insert("a/SKILL.md".into(), Vec::new()).unwrap();
            let error = files.insert(path.into(), Vec::new()).map_err(|error| error.to_string());
            assert_eq!(error.err().unwrap_or_default(), expected, "{path}");
        };
        let no_name = |path: &str| format!("skills/{path}: its name is not a name on every system");
        for path in ["", "/etc/passwd", "a/../../x", "a//b", "a/.", "a\\b", "a/c:d", "a/\n", "a/b/"]
        {
            check(path, &no_name(path));
        }
        for name in
            ["con", "Con.txt", "nul", "COM1", "lpt9.md", "x.", "x ", " x", "-rf", "~", "A~1"]
        {
            check(&format!("a/{name}"), &no_name(&format!("a/{name}")));
        }
        for name in
            ["\u{e9}", "e\u{301}", "\u{212a}elvin", "a\u{202e}b", "a\u{200d}b", "$(x)", "a;b"]
        {
            check(&format!("a/{name}"), &no_name(&format!("a/{name}")));
        }
        check("a/com", "");
        check("a/console.md", "");
        check("a/skill.md/x", "skills/a/skill.md/x: a/SKILL.md has the same name");
        check("a", "skills/a: a/SKILL.md has the same name");
        check("a/.hidden", "");
        check("a/[a] b-1_(2).md", "");
        check("a/skill.md", "skills/a/skill.md: a/SKILL.md has the same name");
        let deep =
            "skills/1/2/3/4/5/6/7/8/9: it is too deep below its folder, or its path is too long";
        check("1/2/3/4/5/6/7/8", "");
        check("1/2/3/4/5/6/7/8/9", deep);
        check(&format!("a/{}", "x".repeat(253)), "");
        let long = format!("a/{}", "x".repeat(254));
        check(
            &long,
            &format!("skills/{long}: it is too deep below its folder, or its path is too long"),
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_refused_wherever_it_stands() {
        use std::os::unix::fs::symlink;
        const LINK: &str = "it is a link, or neither a file nor a folder";
        let linked = folder(&[("review/SKILL.md", GOOD)]);
        symlink("/etc/passwd", linked.path().join("skills/review/passwd")).unwrap();
        assert_eq!(read(linked.path()).unwrap_err(), format!("skills/review/passwd: {LINK}"));
        let to_folder = folder(&[]);
        symlink(linked.path().join("skills"), to_folder.path().join("skills")).unwrap();
        assert_eq!(read(to_folder.path()).unwrap_err(), format!("skills/: {LINK}"));
        let deep = folder(&[("review/SKILL.md", GOOD), ("review/1/2/3/4/5/6/7/8/9", "")]);
        assert!(read(deep.path()).unwrap_err().contains("too deep"));
    }
}
