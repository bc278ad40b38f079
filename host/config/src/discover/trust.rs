//! Which projects a user trusts, each as it was when its user looked at it.
//!
//! A project is a folder with a `tenon.toml`, plugins, or files with MCP servers. Whoever wrote it decides
//! which programs start and which code runs where a host is started in it, so nobody but its user can say
//! that it may be used. What was trusted is kept by the SHA-256 of every file that discovery reads of it,
//! and of the code that these files name. What discovery does about it is in
//! [`crate::discover::discover_trusted`].

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::discover::{
    Candidate, CodeSource, Discovery, PluginKind, ServerCommand, ServerLocation, SkipReason,
    SkippedEntry, Sources, discover_trusted,
};
pub use crate::entry::InputQuestion;
use crate::expand::input_variable;
use crate::files::{self, Digest, MAX_COMPONENT_BYTES, MAX_CONFIGURATION_BYTES, absolute, exact};
use crate::json_file::{JsonFile, JsonFileError};
use crate::manifest::FILE_NAME as MANIFEST;
use crate::pins::PinMode;
use crate::secret::{MASK, is_secret_name};
use crate::skills;

/// Files and folders that make a folder a project: whatever else discovery reads is named by these.
const MARKS: [&str; 5] =
    ["tenon.toml", "tenon.lock", ".mcp.json", ".vscode/mcp.json", ".tenon/plugins"];

/// How much of a value in a configuration is shown, in characters.
const MAX_SHOWN: usize = 200;

/// Whose word it is that the project may be used.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum TrustBasis {
    /// The host's, which names configurations and folders itself. Servers that a file beside them
    /// names need an approver's word all the same.
    #[default]
    Host,
    /// The user's, for all that is in the project now: nothing that it starts needs another approval.
    User,
    /// The user's as well, for the project as it was when the user looked at it; where there is no place
    /// to keep that, nothing is trusted.
    Recorded(Option<TrustFile>),
    /// Nobody's yet: the project is looked at and nothing of it is to be loaded.
    Review,
}

/// Whether there is anything in a folder that has to be trusted.
pub fn is_project(folder: &Path) -> bool {
    let is_there = |name: &str| match folder.join(name).symlink_metadata() {
        Ok(_) => true,
        // What cannot be looked at may be there.
        Err(error) => {
            !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
    };
    MARKS.into_iter().any(is_there)
}

/// A project that is there, and that the user does not trust as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UntrustedProject {
    /// Its folder.
    pub folder: PathBuf,
    /// Why it is not trusted.
    pub why: TrustProblem,
}

/// Why a project is not trusted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TrustProblem {
    /// The user has not said anything about it.
    Unknown,
    /// Files are not what they were when the user looked at it: their paths in the project.
    Changed(Vec<String>),
    /// Nobody can tell what the user has said.
    Unreadable(String),
}

impl fmt::Display for UntrustedProject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described("nothing of it is used"))
    }
}

impl UntrustedProject {
    /// What is wrong, told to somebody whose host runs what was trusted before.
    pub fn described_while_running(&self) -> String {
        self.described("what runs goes on as it was")
    }

    fn described(&self, consequence: &str) -> String {
        const MAX_NAMES_SHOWN: usize = 3;
        let folder = shown_path(&self.folder);
        match &self.why {
            TrustProblem::Unknown => {
                format!("the project in {folder} is not trusted, and {consequence}")
            }
            TrustProblem::Changed(files) => {
                let shown = files[..files.len().min(MAX_NAMES_SHOWN)].join(", ");
                let more = match files.len().saturating_sub(MAX_NAMES_SHOWN) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                format!(
                    "the project in {folder} has changed since it was trusted, and {consequence}: {shown}{more}"
                )
            }
            TrustProblem::Unreadable(problem) => format!(
                "cannot tell whether the project in {folder} is trusted, so {consequence}: {problem}"
            ),
        }
    }

    /// What to do about it.
    pub fn remedy(&self) -> String {
        let folder = match self.folder == Path::new(".") {
            true => String::new(),
            false => format!(" {}", self.folder.display()),
        };
        match &self.why {
            TrustProblem::Unknown => format!("run `tenon trust{folder}` to review and trust it"),
            TrustProblem::Changed(_) => format!("run `tenon trust{folder}` to review the change"),
            TrustProblem::Unreadable(_) => {
                "mend the file, or move it away and trust projects anew".into()
            }
        }
    }
}

/// The absolute path of a folder, as people know it.
fn shown_path(folder: &Path) -> String {
    absolute(folder).display().to_string()
}

/// What of a project has to be what it was: digests of content, by paths that begin in the project where
/// they lead into it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectContent {
    /// Files whose text says what is started, and all else but code.
    files: BTreeMap<String, String>,
    /// Manifests of components and scripts, and files of skills.
    manifests: BTreeMap<String, String>,
    /// Files of the project that servers start, or are given by their arguments.
    programs: BTreeMap<String, String>,
    /// Components and scripts; their content is compared when they are loaded.
    code: BTreeMap<String, String>,
    /// How servers are started or reached, with the values that variables had. One that is started
    /// otherwise has to be approved by itself.
    starts: BTreeMap<String, String>,
}

impl ProjectContent {
    /// What was found of a project.
    pub fn of(discovery: &Discovery, folder: &Path) -> Self {
        let mut content = Self::default();
        let candidates = discovery.candidates.iter();
        let found = candidates.map(|found| (found.kind(), found.named_in()));
        let left_out = discovery.left_out.iter().map(|left| (left.kind, left.named_in.as_path()));
        let is_manifest = |path: &Path| path.file_name().is_some_and(|name| name == MANIFEST);
        let with_manifest: Vec<_> =
            found.chain(left_out).filter(|(_, path)| is_manifest(path)).collect();
        let is_code = |kind| matches!(kind, PluginKind::Wasm | PluginKind::Rhai);
        let of_code = with_manifest.iter().filter(|(kind, _)| is_code(*kind));
        let manifests: BTreeSet<&Path> = of_code.map(|(_, path)| *path).collect();
        let folders = with_manifest.iter().filter_map(|(_, path)| path.parent());
        let of_skills: BTreeSet<PathBuf> = folders.map(|path| path.join(skills::FOLDER)).collect();
        let is_of_skill = |path: &Path| path.ancestors().any(|above| of_skills.contains(above));
        for (path, digest) in &discovery.read {
            let files = match manifests.contains(path.as_path()) || is_of_skill(path) {
                true => &mut content.manifests,
                false => &mut content.files,
            };
            files.insert(Self::key(folder, path), digest.to_string());
        }
        for candidate in &discovery.candidates {
            if !candidate.origin().is_of_project() {
                continue;
            }
            // They are read once, where somebody else has to compare them later.
            let read = || TrustedProgram::of(candidate, folder).map(Arc::new);
            let programs = candidate.programs.clone().or_else(read);
            for (path, digest) in programs.iter().flat_map(|programs| &programs.files) {
                content.programs.insert(Self::key(folder, path), digest.to_string());
            }
            if let Some((name, digest)) = start(candidate, folder) {
                content.starts.insert(name, digest);
            }
        }
        content
    }

    /// The same, with the content of components and scripts. It reads them.
    fn with_code(mut self, discovery: &Discovery, folder: &Path) -> Self {
        for candidate in &discovery.candidates {
            if let Some(path) = code(candidate) {
                let digest =
                    files::read(path, MAX_COMPONENT_BYTES).map(Digest::of).unwrap_or(nothing());
                self.code.insert(Self::key(folder, path), digest.to_string());
            }
        }
        self
    }

    /// The name of a file in the project.
    pub fn key(folder: &Path, path: &Path) -> String {
        let (folder, path) = (absolute(folder), absolute(path));
        let real = || Some((folder.canonicalize().ok()?, path.canonicalize().ok()?));
        let key = match path.strip_prefix(&folder) {
            Ok(below) => below.to_path_buf(),
            Err(_) => match real() {
                Some((folder, path)) => match path.strip_prefix(&folder) {
                    Ok(below) => below.to_path_buf(),
                    Err(_) => path,
                },
                None => path,
            },
        };
        exact(&key)
    }
}

/// What stands for content that cannot be read: that of an empty file.
fn nothing() -> Digest {
    Digest::of("")
}

/// The component or script of a plugin that the project brings.
fn code(candidate: &Candidate) -> Option<&Path> {
    match candidate.kind() {
        _ if !candidate.origin().is_of_project() => None,
        PluginKind::Wasm | PluginKind::Rhai => candidate.component().or(candidate.script()),
        PluginKind::Mcp | PluginKind::Builtin => None,
    }
}

/// How a server is started or reached: its name in the project, and a digest of all that.
fn start(candidate: &Candidate, folder: &Path) -> Option<(String, String)> {
    let command = candidate.command.as_ref()?;
    let named_in = ProjectContent::key(folder, candidate.named_in());
    Some((format!("{} in {named_in}", candidate.id()), command.digest.clone()))
}

/// The files in the project that a server starts, and what they have to be: its program, and those that
/// its arguments name, as scripts are named to interpreters. What these load in turn is not followed.
/// Of a link that leads out of the project it counts where it leads: what is there is its user's.
fn programs(program: &ServerCommand, root: &Path) -> BTreeMap<PathBuf, Digest> {
    let folder = program.folder.clone().unwrap_or_else(|| root.into());
    let file = |named: PathBuf| {
        let real = named.canonicalize().ok().filter(|real| real.is_file())?;
        if real.starts_with(root) {
            let digest = content_of(&real);
            return Some((real, digest));
        }
        let is_link = is_below(&named, root) || is_below(&named, &folder);
        is_link.then(|| (named, Digest::of(exact(&real))))
    };
    program.files().into_iter().filter_map(file).collect()
}

/// What a server is started with, where it is a child.
fn started(candidate: &Candidate) -> Option<&ServerCommand> {
    match &candidate.source {
        CodeSource::Mcp(server) => match &server.place {
            ServerLocation::Child(program) => Some(program),
            ServerLocation::Remote(_) => None,
        },
        CodeSource::Wasm { .. } | CodeSource::Rhai { .. } => None,
    }
}

/// What a server of a project was started with when the project was looked at. It starts when it is called,
/// and again when it has ended: long after that.
#[derive(Debug)]
pub struct TrustedProgram {
    program: ServerCommand,
    root: PathBuf,
    files: BTreeMap<PathBuf, Digest>,
}

impl TrustedProgram {
    /// What the server of a candidate is started with, where it is a child. It reads the files.
    pub fn of(candidate: &Candidate, folder: &Path) -> Option<Self> {
        let program = started(candidate)?.clone();
        let root = folder.canonicalize().unwrap_or_else(|_| folder.into());
        let files = programs(&program, &root);
        Some(Self { program, root, files })
    }

    /// A file that is not what it was, if there is one. It reads them all.
    pub fn changed(&self) -> Option<PathBuf> {
        let now = programs(&self.program, &self.root);
        let mut all = self.files.keys().chain(now.keys());
        all.find(|path| self.files.get(*path) != now.get(*path)).cloned()
    }

    /// The files, and what they have to be.
    pub fn files(&self) -> &BTreeMap<PathBuf, Digest> {
        &self.files
    }
}

/// The content of a program. Of one that is too long to be read each time, what changes with it.
fn content_of(path: &Path) -> Digest {
    if let Ok(content) = files::read(path, MAX_COMPONENT_BYTES) {
        return Digest::of(content);
    }
    // One that cannot be looked at cannot be compared with what it is later.
    path.metadata().map_or(nothing(), |about| Digest::of(files::state_of(&about)))
}

/// A project as it was trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ProjectTrust {
    content: ProjectContent,
    /// Whether components and scripts, with their manifests, and programs may be others than they were.
    code_may_change: bool,
    /// What its user was shown.
    shown: BTreeSet<String>,
    /// What its user said to the `inputs` of its files, by their ids.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<String, String>,
}

impl ProjectTrust {
    /// What its user said to the `inputs` of its files.
    pub fn answers(&self) -> &BTreeMap<String, String> {
        &self.answers
    }

    /// Whether a file is what it was; nothing is the content of one that is not there.
    pub fn has(&self, folder: &Path, path: &Path, digest: Option<Digest>) -> bool {
        let known = self.content.files.get(&ProjectContent::key(folder, path));
        known.cloned() == digest.map(|digest| digest.to_string())
    }

    /// The files that are not what they were, or were not there. Components and scripts are compared
    /// when they are loaded.
    pub fn changed(&self, now: &ProjectContent) -> Vec<String> {
        let mut changed = differing(&self.content.files, &now.files);
        if !self.code_may_change {
            let manifests = differing_because(&changed, &self.content.manifests, &now.manifests);
            changed.extend(manifests);
            let programs = differing_because(&changed, &self.content.programs, &now.programs);
            changed.extend(programs);
        }
        changed.into_iter().collect()
    }

    /// Whether a server is started or reached as its user was shown.
    pub fn has_start(&self, folder: &Path, candidate: &Candidate) -> bool {
        let Some((name, digest)) = start(candidate, folder) else { return false };
        self.content.starts.get(&name) == Some(&digest)
    }

    /// Whether components and scripts, and what servers are started with, may be anything.
    pub fn lets_code_change(&self) -> bool {
        self.code_may_change
    }

    /// What the code of a plugin has to be; nothing where it may be anything.
    pub fn code_of(&self, folder: &Path, candidate: &Candidate) -> Option<Digest> {
        let path = code(candidate).filter(|_| !self.code_may_change)?;
        let known = self.content.code.get(&ProjectContent::key(folder, path));
        // What was not there then is not trusted, whatever it is.
        Some(known.and_then(|digest| Digest::from_hex(digest)).unwrap_or(nothing()))
    }
}

/// Has what a command has not touched be what it had to be before, or nothing.
fn keep_untouched(
    after: &mut BTreeMap<String, String>,
    before: &BTreeMap<String, String>,
    former: &BTreeMap<String, String>,
) {
    after.retain(|name, digest| {
        if before.get(name) != Some(digest) {
            return true;
        }
        let known = former.get(name);
        known.is_some_and(|known| {
            digest.clone_from(known);
            true
        })
    });
}

/// The names under which two have different values, or one has none.
fn differing(
    these: &BTreeMap<String, String>,
    those: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let names = these.keys().chain(those.keys());
    names.filter(|name| these.get(*name) != those.get(*name)).cloned().collect()
}

/// The same of what other files name. Where one of these has changed, that something is named no more, or anew,
/// is no change of its own.
fn differing_because(
    changed: &BTreeSet<String>,
    these: &BTreeMap<String, String>,
    those: &BTreeMap<String, String>,
) -> BTreeSet<String> {
    let mut differing = differing(these, those);
    if !changed.is_empty() {
        differing.retain(|name| these.contains_key(name) && those.contains_key(name));
    }
    differing
}

/// The projects that a user trusts, in a file that only this user can write to.
#[derive(Debug, Clone, PartialEq)]
pub struct TrustFile {
    store: JsonFile,
}

/// Why it is not known which projects are trusted, or one cannot be.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// The file cannot be read or written.
    #[error("the trust file {} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// Others than this user can write to the file, or to its folder.
    #[error(
        "refusing to read trust that others could have written: {path} belongs to another user, or others can write to it; run `chmod go-w {path}`",
        path = .0.display()
    )]
    Unguarded(PathBuf),
    /// The file is not what this host writes.
    #[error("{} is not a file of trusted projects; move it away to start over", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
    /// The project's folder cannot be found.
    #[error("{} cannot be found", .0.display())]
    NoFolder(PathBuf, #[source] io::Error),
    /// Something of it changed while its user looked at it.
    #[error("{} has changed meanwhile; look at it again", .0.display())]
    Changed(PathBuf),
}

/// The file, as it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFileJson {
    /// By the real paths of folders.
    projects: BTreeMap<String, ProjectTrust>,
}

/// A project that is trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustedProject {
    /// Its folder.
    pub folder: PathBuf,
    /// Whether its components, scripts and programs may change.
    pub code_may_change: bool,
}

impl TrustFile {
    /// The projects that this file has, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { store: JsonFile::new(path.into(), MAX_CONFIGURATION_BYTES) }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// What a user would say yes to: all that a project has, and in what it differs from what was
    /// trusted before. The sources are those of a command in the project.
    ///
    /// # Errors
    ///
    /// Where the file or the project's folder cannot be read.
    pub fn review(&self, sources: &Sources) -> Result<ProjectReview, TrustError> {
        let mut sources = Sources { trust: TrustBasis::Review, ..sources.clone() };
        let folder = sources.workspace.clone().unwrap_or_else(|| ".".into());
        let before = self.get(&folder)?;
        let former = before.iter().flat_map(ProjectTrust::answers);
        for (id, answer) in former {
            sources.answers.entry(id.clone()).or_insert_with(|| answer.clone());
        }
        let (discovery, errors) = discover_trusted(&mut sources);
        sources.answers.retain(|id, answer| {
            let mut questions = discovery.questions.iter();
            questions.any(|question| question.id == *id && question.takes(answer))
        });
        let content = ProjectContent::of(&discovery, &folder).with_code(&discovery, &folder);
        let mut items = items(&discovery, &folder)?;
        let problems = errors.iter().map(|error| crate::diagnostic::chain(error));
        let diagnostics = discovery.diagnostics.iter().filter(|problem| {
            problem.file.as_ref().is_none_or(|file| is_below(Path::new(file), &folder))
        });
        let problems = problems.chain(diagnostics.map(ToString::to_string));
        items.extend(problems.map(|text| ReviewItem {
            kind: ProjectEffect::Problem,
            text,
            ..Default::default()
        }));
        let mut removed = Vec::new();
        let mut changed = Vec::new();
        if let Some(before) = &before {
            let now: BTreeSet<String> = items.iter().flat_map(ReviewItem::lines).collect();
            for item in &mut items {
                item.is_new = !before.shown.contains(&item.line(&item.text));
                let new = |detail: &&String| !before.shown.contains(&item.line(detail));
                item.new_details = item.details.iter().filter(new).cloned().collect();
            }
            removed = before.shown.difference(&now).cloned().collect();
            changed = before.changed(&content);
            if !before.code_may_change {
                let named = changed.iter().cloned().collect();
                changed.extend(differing_because(&named, &before.content.code, &content.code));
            }
            changed.extend(differing(&before.content.starts, &content.starts));
        }
        let has_value = |question: &InputQuestion| {
            let variable = sources.host_environment.variable(&input_variable(&question.id));
            let said = variable.filter(|value| !value.is_empty());
            let said = said.or(sources.answers.get(&question.id).map(String::as_str));
            said.is_some_and(|value| question.takes(value))
        };
        let questions = discovery.questions.iter();
        // What is picked is asked for in any case, with the default among the rest.
        let is_asked =
            |question: &InputQuestion| question.default.is_none() || !question.options.is_empty();
        let open = questions.filter(|question| is_asked(question) && !has_value(question));
        let mut questions: Vec<InputQuestion> = Vec::new();
        for question in open {
            if !questions.contains(question) {
                questions.push(question.clone());
            }
        }
        Ok(ProjectReview {
            questions,
            answers: sources.answers,
            code_may_change: before.as_ref().map(|before| before.code_may_change),
            folder,
            is_project: false,
            items,
            removed,
            changed,
            content,
        }
        .settled())
    }

    /// Trusts a project as it was looked at.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn trust(&self, review: &ProjectReview, code_may_change: bool) -> Result<(), TrustError> {
        let folder = exact(&real(&review.folder)?);
        let trusted = ProjectTrust {
            content: review.content.clone(),
            code_may_change,
            shown: review.items.iter().flat_map(ReviewItem::lines).collect(),
            answers: review.answers.clone(),
        };
        self.change(|content| drop(content.projects.insert(folder, trusted)))
    }

    /// Trusts what a command of the user's has made of a project. Code that the command has not touched has to
    /// be what it had to be before.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn renew(&self, before: &ProjectReview, after: &ProjectReview) -> Result<(), TrustError> {
        let folder = exact(&real(&after.folder)?);
        let former = self.get(&after.folder)?;
        if !after.is_project {
            return self.change(|content| drop(content.projects.remove(&folder)));
        }
        let mut after = after.clone();
        if let Some(former) = &former {
            let (former, before) = (&former.content, &before.content);
            keep_untouched(&mut after.content.code, &before.code, &former.code);
            keep_untouched(&mut after.content.starts, &before.starts, &former.starts);
        }
        self.trust(&after, former.is_some_and(|former| former.code_may_change))
    }

    /// Takes the trust in a project back. Says whether there was any.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn revoke(&self, folder: &Path) -> Result<bool, TrustError> {
        // It may be gone.
        let key = exact(&files::real_or_absolute(folder));
        let mut revoked = false;
        self.change(|content| revoked = content.projects.remove(&key).is_some())?;
        Ok(revoked)
    }

    /// The projects that are trusted, in the order of their paths.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or understood.
    pub fn list(&self) -> Result<Vec<TrustedProject>, TrustError> {
        let projects = self.read()?.projects.into_iter();
        let listed = projects.map(|(folder, trusted)| TrustedProject {
            folder: folder.into(),
            code_may_change: trusted.code_may_change,
        });
        Ok(listed.collect())
    }

    /// Whether the code in a folder may be built and run, whatever it is: the folder, or one that it is
    /// in, is trusted with code that changes.
    ///
    /// # Errors
    ///
    /// Where the file or the folder cannot be read.
    pub fn lets_code_change(&self, folder: &Path) -> Result<bool, TrustError> {
        let folder = real(folder)?;
        let projects = self.read()?.projects;
        let trusted = folder.ancestors().filter_map(|folder| projects.get(&exact(folder)));
        Ok(trusted.into_iter().any(|trusted| trusted.code_may_change))
    }

    /// What is trusted of a project.
    pub fn get(&self, folder: &Path) -> Result<Option<ProjectTrust>, TrustError> {
        let folder = exact(&real(folder)?);
        Ok(self.read()?.projects.remove(&folder))
    }

    fn read(&self) -> Result<TrustFileJson, TrustError> {
        self.store.read().map_err(|error| self.error(error))
    }

    fn change(&self, change: impl FnOnce(&mut TrustFileJson)) -> Result<(), TrustError> {
        self.store.change(change).map_err(|error| self.error(error))
    }

    fn error(&self, error: JsonFileError) -> TrustError {
        let path = self.path().to_path_buf();
        match error {
            JsonFileError::Unguarded(path) => TrustError::Unguarded(path),
            JsonFileError::Io(error) => TrustError::File(path, error),
            JsonFileError::Damaged(error) => TrustError::Damaged(path, error),
        }
    }
}

fn real(folder: &Path) -> Result<PathBuf, TrustError> {
    folder.canonicalize().map_err(|error| TrustError::NoFolder(folder.into(), error))
}

/// A project, for its user to look at.
#[derive(Debug, Clone)]
pub struct ProjectReview {
    /// Its folder.
    pub folder: PathBuf,
    /// Whether there is anything to be trusted.
    pub is_project: bool,
    /// Whether components, scripts and programs may change; nothing where it is not trusted.
    pub code_may_change: Option<bool>,
    /// What it would do, in the order of its kinds.
    pub items: Vec<ReviewItem>,
    /// What it did when it was trusted, and does not do any more.
    pub removed: Vec<String>,
    /// The files that are not what they were when it was trusted.
    pub changed: Vec<String>,
    /// What its files ask for and nobody has said: what has no default, and what is picked from a list. Who asks puts
    /// the answers into [`Sources::answers`] and reviews again: what starts may be another thing then.
    pub questions: Vec<InputQuestion>,
    answers: BTreeMap<String, String>,
    content: ProjectContent,
}

/// One thing that a project would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewItem {
    /// What kind of thing.
    pub kind: ProjectEffect,
    /// The plugin that it is about, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plugin: Option<String>,
    /// What it is. Whoever wrote the project has a say in it.
    pub text: String,
    /// Further lines: of a server its arguments, variables and so on, each with a word before it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<String>,
    /// Those of these lines that were not there when the project was trusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub new_details: Vec<String>,
    /// Whether it was not there when the project was trusted.
    pub is_new: bool,
}

/// The kinds of things that a project does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectEffect {
    /// It starts a program.
    #[default]
    Starts,
    /// It turns to a server elsewhere.
    Reaches,
    /// It loads a component or a script.
    Loads,
    /// A plugin of it requests a capability; that has to be approved, too.
    Requests,
    /// A plugin of it is given what its user set for a plugin of that id.
    Receives,
    /// It brings a plugin of its own in place of one that the user has elsewhere.
    Replaces,
    /// It leaves out a plugin that the user has elsewhere.
    Disables,
    /// It sets something in the host's configuration.
    Sets,
    /// Something of it is wrong, and is left out.
    Problem,
}

impl ProjectEffect {
    /// Returns the kind as `tenon trust` prints it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starts => "starts",
            Self::Reaches => "reaches",
            Self::Loads => "loads",
            Self::Requests => "requests",
            Self::Receives => "receives",
            Self::Replaces => "replaces",
            Self::Disables => "disables",
            Self::Sets => "sets",
            Self::Problem => "problem",
        }
    }
}

impl ReviewItem {
    /// All of it, in texts by which it is found again.
    fn lines(&self) -> impl Iterator<Item = String> {
        [&self.text].into_iter().chain(&self.details).map(|text| self.line(text))
    }

    fn line(&self, text: &str) -> String {
        let plugin = self.plugin.as_ref().map(|plugin| format!("{plugin}: ")).unwrap_or_default();
        format!("{:<9} {plugin}{text}", self.kind.as_str())
    }
}

impl ProjectReview {
    fn settled(mut self) -> Self {
        self.is_project = is_project(&self.folder);
        self.items.sort_by_key(|item| item.kind);
        self
    }

    /// Whether it is trusted as it is.
    pub fn is_trusted(&self) -> bool {
        self.code_may_change.is_some() && self.changed.is_empty()
    }
}

fn is_below(file: &Path, folder: &Path) -> bool {
    absolute(file).starts_with(absolute(folder))
}

/// What a project would do.
fn items(discovery: &Discovery, folder: &Path) -> Result<Vec<ReviewItem>, TrustError> {
    let mut items = Vec::new();
    let own = discovery.candidates.iter().filter(|found| found.origin().is_of_project());
    for candidate in own {
        let plugin = Some(candidate.id().to_string());
        let mut item = ReviewItem { plugin: plugin.clone(), ..ReviewItem::default() };
        match code(candidate) {
            Some(path) => {
                item.kind = ProjectEffect::Loads;
                item.text = ProjectContent::key(folder, path);
            }
            None => {
                let lines = candidate.command.iter().flat_map(|command| command.lines());
                let mut lines = lines.map(|(word, text)| (word, format!("{word} {text}")));
                let first = lines.next();
                item.kind = match first {
                    Some(("url", _)) => ProjectEffect::Reaches,
                    _ => ProjectEffect::Starts,
                };
                item.text =
                    first.map(|(word, text)| text[word.len() + 1..].into()).unwrap_or_default();
                item.details = lines.map(|(_, text)| text).collect();
            }
        }
        items.push(item);
        for (capability, values) in candidate.requested() {
            let text = format!("{capability} {}", values.join(", "));
            let (kind, plugin) = (ProjectEffect::Requests, plugin.clone());
            items.push(ReviewItem { kind, plugin, text, ..ReviewItem::default() });
        }
        let given = &candidate.users_settings.given;
        if !given.is_empty() {
            let keys: Vec<&str> = given.iter().map(String::as_str).collect();
            let text = format!("what you set for it: {}", keys.join(", "));
            let (kind, plugin) = (ProjectEffect::Receives, plugin.clone());
            items.push(ReviewItem { kind, plugin, text, ..ReviewItem::default() });
        }
        // What its entry says of that is not among what it starts.
        if let Some(mode) = candidate.rules.pins.filter(|mode| *mode < PinMode::Hold) {
            let text = format!("pins = {}", json!(mode));
            let kind = ProjectEffect::Sets;
            items.push(ReviewItem { kind, plugin, text, ..ReviewItem::default() });
        }
    }
    items.extend(discovery.left_out.iter().filter_map(|left_out| of_user(left_out, folder)));
    items.extend(settings(discovery, folder)?);
    Ok(items)
}

/// What a project does to a plugin that is its user's, where it is left out for the project's sake.
fn of_user(left_out: &SkippedEntry, folder: &Path) -> Option<ReviewItem> {
    let kind = match &left_out.reason {
        _ if left_out.origin.is_of_project() => return None,
        SkipReason::Shadowed { by, .. } if by.is_of_project() => ProjectEffect::Replaces,
        SkipReason::Disabled { by } | SkipReason::NotAllowed { by } if is_below(by, folder) => {
            ProjectEffect::Disables
        }
        _ => return None,
    };
    let whose = format!("your plugin that {} names", left_out.named_in.display());
    let plugin = Some(left_out.id.clone());
    Some(ReviewItem { kind, plugin, text: whose, ..ReviewItem::default() })
}

/// What the project's configuration sets beside the plugins that it names.
fn settings(discovery: &Discovery, folder: &Path) -> Result<Vec<ReviewItem>, TrustError> {
    let path = folder.join("tenon.toml");
    let Some(digest) = discovery.read.get(&path) else { return Ok(Vec::new()) };
    let text = files::read_text(&path, MAX_CONFIGURATION_BYTES)
        .map_err(|error| TrustError::NoFolder(path.clone(), error))?;
    if Digest::of(&text) != *digest {
        return Err(TrustError::Changed(path));
    }
    // One that is none is a problem that was told.
    let Ok(table) = crate::toml_parse::parse::<Value>(&text) else { return Ok(Vec::new()) };
    let mut lines = Vec::new();
    flatten("", &table, &mut lines);
    // Those are plugins, which are shown as such.
    let named = ["wasm", "scripts", "mcp"].map(|key| format!("plugins.{key} "));
    let lines = lines.into_iter().filter(|line| !named.iter().any(|key| line.starts_with(key)));
    Ok(lines
        .map(|text| ReviewItem { kind: ProjectEffect::Sets, text, ..ReviewItem::default() })
        .collect())
}

/// A line for each key of a table, and of the tables in it.
fn flatten(prefix: &str, value: &Value, lines: &mut Vec<String>) {
    let Value::Object(members) = value else { return };
    for (key, value) in members {
        let is_bare = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let key = if is_bare { key.clone() } else { format!("{key:?}") };
        let path = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            Value::Object(members) if !members.is_empty() => flatten(&path, value, lines),
            _ if is_secret_name(&key) => lines.push(format!("{path} = {MASK}")),
            _ => {
                let text = value.to_string();
                let short: String = text.chars().take(MAX_SHOWN).collect();
                let more = if short.len() < text.len() { " …" } else { "" };
                lines.push(format!("{path} = {short}{more}"));
            }
        }
    }
}
