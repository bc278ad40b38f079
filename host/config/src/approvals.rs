//! The file in which a user's approvals are kept.
//!
//! An approval is of one plugin as it was: its code, its manifest and what it requested, each by
//! content. What has changed since is not approved.

#[cfg(any(test, fuzzing, feature = "testing"))]
pub mod fuzz;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use crate::approver::{ApprovalChange, ApprovalRequest, Approver, GrantDecision, ServerParameters};
use crate::files::{MAX_CONFIGURATION_BYTES, real_or_absolute};
use crate::json_file::{JsonFile, JsonFileError};

/// Approvals in a file, which only this user can write to.
#[derive(Debug, Clone)]
pub struct ApprovalFile {
    store: JsonFile,
}

/// Why approvals cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// The file cannot be read or written.
    #[error("the approvals in {} cannot be used", .0.display())]
    File(PathBuf, #[source] io::Error),
    /// Others than this user can write to the file, or to its folder.
    #[error(
        "refusing to read approvals that others could have written: {path} belongs to another user, or others can write to it; run `chmod go-w {path}`",
        path = .0.display()
    )]
    Unguarded(PathBuf),
    /// The file is not what this host writes.
    #[error("{} is not an approvals file; move it away to start over", .0.display())]
    Damaged(PathBuf, #[source] serde_json::Error),
}

/// What was approved of a plugin before, as it is now or as it was then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerApproval {
    /// What it requested then: values by the names of capabilities.
    pub requested: BTreeMap<String, Vec<String>>,
    /// What was granted.
    pub granted: BTreeMap<String, Vec<String>>,
}

impl FormerApproval {
    /// Whether less was granted than was requested.
    pub fn is_narrowed(&self) -> bool {
        missing(&self.requested, &self.granted).next().is_some()
    }

    /// What was granted that the plugin still requests.
    pub fn kept(&self, request: &ApprovalRequest) -> BTreeMap<String, Vec<String>> {
        request.within(&self.granted)
    }

    /// What it requests now that nobody was asked about then: capabilities and their values.
    pub fn added(&self, request: &ApprovalRequest) -> Vec<(String, String)> {
        missing(&request.capabilities, &self.requested).collect()
    }
}

/// The file, as it is written.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalFileJson {
    approvals: Vec<ApprovalEntry>,
}

/// One approval.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ApprovalEntry {
    plugin: String,
    /// What names it: plugins of other projects may have the same id.
    named_in: PathBuf,
    /// The SHA-256 of its code.
    component: Option<String>,
    /// The SHA-256 of its manifest.
    manifest: Option<String>,
    /// The digest of its skills, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    skills: Option<String>,
    /// How its server is started or reached, where that had to be approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    command: Option<ServerParameters>,
    requested: BTreeMap<String, Vec<String>>,
    granted: BTreeMap<String, Vec<String>>,
}

impl ApprovalFile {
    /// Approvals in this file, which need not be there yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { store: JsonFile::new(path.into(), MAX_CONFIGURATION_BYTES) }
    }

    /// Where they are.
    pub fn path(&self) -> &Path {
        self.store.path()
    }

    /// What the user has said of a plugin as it is now.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or understood.
    pub fn verdict(&self, request: &ApprovalRequest) -> Result<GrantDecision, ApprovalError> {
        let content = self.read()?;
        let Some(approved) = content.approvals.iter().find(|approved| approved.is_of(request))
        else {
            return Ok(GrantDecision::Undecided);
        };
        let changes = approved.changes(request);
        Ok(match changes.is_empty() {
            true => GrantDecision::Granted(approved.granted.clone()),
            false => GrantDecision::Stale(changes),
        })
    }

    /// What was last approved of a plugin, though it may have changed since.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read or understood.
    pub fn former(
        &self,
        request: &ApprovalRequest,
    ) -> Result<Option<FormerApproval>, ApprovalError> {
        let mut approvals = self.read()?.approvals.into_iter();
        let approved = approvals.find(|approved| approved.is_of(request));
        Ok(approved
            .map(|ApprovalEntry { requested, granted, .. }| FormerApproval { requested, granted }))
    }

    /// Approves a plugin as it is now, and grants it this.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn grant(
        &self,
        request: &ApprovalRequest,
        granted: BTreeMap<String, Vec<String>>,
    ) -> Result<(), ApprovalError> {
        self.change(|content| {
            content.approvals.retain(|approved| !approved.is_of(request));
            content.approvals.push(ApprovalEntry {
                plugin: request.plugin.clone(),
                named_in: real_or_absolute(&request.named_in),
                component: request.component.clone(),
                manifest: request.manifest.clone(),
                skills: skills_of(request),
                command: request.command.clone(),
                requested: request.capabilities.clone(),
                granted,
            });
        })
    }

    /// Takes back what was approved of the plugins of an id that a configuration or manifest names
    /// (any, where none is given). Gives how many approvals there were.
    ///
    /// # Errors
    ///
    /// Where the file cannot be read, understood or written.
    pub fn revoke(&self, plugin: &str, named_in: Option<&Path>) -> Result<usize, ApprovalError> {
        let named_in = named_in.map(real_or_absolute);
        let mut revoked = 0;
        self.change(|content| {
            let before = content.approvals.len();
            content.approvals.retain(|approved| {
                let named = named_in.as_ref().is_none_or(|path| *path == approved.named_in);
                !(approved.plugin == plugin && named)
            });
            revoked = before - content.approvals.len();
        })?;
        Ok(revoked)
    }

    fn read(&self) -> Result<ApprovalFileJson, ApprovalError> {
        // Who can write to the file approves, and so does who can put another in its place.
        self.store.read().map_err(|error| self.error(error))
    }

    fn change(&self, change: impl FnOnce(&mut ApprovalFileJson)) -> Result<(), ApprovalError> {
        self.store.change(change).map_err(|error| self.error(error))
    }

    fn error(&self, error: JsonFileError) -> ApprovalError {
        let path = self.path().to_path_buf();
        match error {
            JsonFileError::Unguarded(path) => ApprovalError::Unguarded(path),
            JsonFileError::Io(error) => ApprovalError::File(path, error),
            JsonFileError::Damaged(error) => ApprovalError::Damaged(path, error),
        }
    }
}

#[async_trait]
impl Approver for ApprovalFile {
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        self.verdict(request).unwrap_or_else(|error| {
            tracing::warn!("{}", crate::diagnostic::chain(&error));
            GrantDecision::Undecided
        })
    }
}

impl ApprovalEntry {
    fn is_of(&self, request: &ApprovalRequest) -> bool {
        self.plugin == request.plugin && self.named_in == real_or_absolute(&request.named_in)
    }

    /// In what a plugin differs from this.
    fn changes(&self, request: &ApprovalRequest) -> Vec<ApprovalChange> {
        let mut changes = Vec::new();
        if self.component != request.component {
            changes.push(ApprovalChange::Component);
        }
        let added = missing(&request.capabilities, &self.requested);
        changes
            .extend(added.map(|(capability, value)| ApprovalChange::Added { capability, value }));
        let removed = missing(&self.requested, &request.capabilities);
        changes.extend(
            removed.map(|(capability, value)| ApprovalChange::Removed { capability, value }),
        );
        changes.extend(self.changes_of_command(request));
        if self.manifest != request.manifest {
            changes.push(ApprovalChange::Manifest);
        }
        if self.skills != skills_of(request) {
            changes.push(ApprovalChange::Skills);
        }
        changes
    }

    fn changes_of_command(&self, request: &ApprovalRequest) -> Vec<ApprovalChange> {
        if self.command == request.command {
            return Vec::new();
        }
        let lines = |command: &Option<ServerParameters>| {
            let lines = command.as_ref().map(ServerParameters::lines).unwrap_or_default();
            lines.into_iter().map(|(word, text)| format!("{word} {text}")).collect::<Vec<_>>()
        };
        let (mut removed, mut added) = (lines(&self.command), lines(&request.command));
        // The same line may be there twice.
        added.retain(|line| match removed.iter().position(|former| former == line) {
            Some(place) => {
                removed.remove(place);
                false
            }
            None => true,
        });
        let added = added.into_iter().map(ApprovalChange::CommandAdded);
        let removed = removed.into_iter().map(ApprovalChange::CommandRemoved);
        let mut changes: Vec<_> = added.chain(removed).collect();
        if changes.is_empty() {
            changes.push(ApprovalChange::Command);
        }
        changes
    }
}

/// The digest of a plugin's skills, in hexadecimal.
fn skills_of(request: &ApprovalRequest) -> Option<String> {
    request.skills.as_ref().map(|skills| skills.digest().to_string())
}

/// The values that one has and another has not.
fn missing<'a>(
    these: &'a BTreeMap<String, Vec<String>>,
    those: &'a BTreeMap<String, Vec<String>>,
) -> impl Iterator<Item = (String, String)> + 'a {
    let all = these.iter().flat_map(|(name, values)| values.iter().map(move |value| (name, value)));
    let known = |name: &str, value: &String| those.get(name).is_some_and(|of| of.contains(value));
    all.filter(move |(name, value)| !known(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discover::{PluginKind, PluginOrigin};
    use crate::skills::PluginSkillFiles;
    use std::sync::Arc;

    fn request(component: &str, files: &[&str]) -> ApprovalRequest {
        let files = files.iter().map(ToString::to_string).collect();
        ApprovalRequest {
            plugin: "p".into(),
            kind: PluginKind::Wasm,
            origin: PluginOrigin::Config,
            source: "p.wasm".into(),
            named_in: "/no/such/plugin.toml".into(),
            capabilities: [("filesystem".to_string(), files)].into(),
            warnings: Vec::new(),
            command: None,
            arguments: Vec::new(),
            component: Some(component.into()),
            manifest: Some("m".into()),
            skills: None,
            confinement: None,
        }
    }

    #[test]
    fn what_has_changed_of_a_command_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let file = ApprovalFile::new(folder.path().join("approvals.json"));
        let request = |arguments: &[&str], digest: &str| ApprovalRequest {
            command: Some(ServerParameters {
                program: Some("p".into()),
                arguments: arguments.iter().map(ToString::to_string).collect(),
                digest: digest.into(),
                ..ServerParameters::default()
            }),
            ..request("1", &[])
        };
        let first = request(&["a", "a"], "1");
        file.grant(&first, BTreeMap::new()).unwrap();
        let check = |request: ApprovalRequest, expected: &[&str]| match file.verdict(&request) {
            Ok(GrantDecision::Stale(changes)) => {
                let changes: Vec<_> = changes.iter().map(ToString::to_string).collect();
                assert_eq!(changes, expected);
            }
            verdict => panic!("{verdict:?}"),
        };
        assert!(matches!(file.verdict(&first), Ok(GrantDecision::Granted(_))));
        check(
            request(&["a", "b"], "2"),
            &["its server has more: argument b", "its server has no more: argument a"],
        );
        check(
            request(&["a", "a"], "2"),
            &["how its server is started or reached has changed in an order, or in what is not \
               shown: a secret, a value in a file of variables, the writing of its entry"],
        );
    }

    #[test]
    fn an_approval_is_of_the_skills_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let file = ApprovalFile::new(folder.path().join("approvals.json"));
        let with = |text: &str| {
            let mut files = PluginSkillFiles::default();
            let text = format!("---\nname: a\ndescription: b\n---\n{text}");
            files.insert("a/SKILL.md".into(), text.into()).unwrap();
            let skills = files.skills(Path::new("")).unwrap().map(Arc::new);
            ApprovalRequest { skills, ..request("1", &[]) }
        };
        let check = |request: ApprovalRequest, expected: GrantDecision| {
            assert_eq!(file.verdict(&request).unwrap(), expected);
        };
        file.grant(&with("1"), BTreeMap::new()).unwrap();
        check(with("1"), GrantDecision::Granted(BTreeMap::new()));
        check(with("2"), GrantDecision::Stale(vec![ApprovalChange::Skills]));
        check(request("1", &[]), GrantDecision::Stale(vec![ApprovalChange::Skills]));
        file.grant(&request("1", &[]), BTreeMap::new()).unwrap();
        check(with("1"), GrantDecision::Stale(vec![ApprovalChange::Skills]));
        // Without skills, nothing is said of them.
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("skills"), "{text}");
    }

    #[test]
    fn an_approval_is_of_a_plugin_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = ApprovalFile::new(folder.path().join("deep/approvals.json"));
        let first = request("1", &["read:/a", "read:/b"]);
        let check = |request: &ApprovalRequest, expected: GrantDecision| {
            assert_eq!(file.verdict(request).unwrap(), expected);
        };
        check(&first, GrantDecision::Undecided);
        let granted: BTreeMap<_, _> =
            [("filesystem".to_string(), vec!["read:/a".to_string()])].into();
        file.grant(&first, granted.clone()).unwrap();
        check(&first, GrantDecision::Granted(granted));
        check(&request("2", &["read:/a", "read:/b"]), {
            GrantDecision::Stale(vec![ApprovalChange::Component])
        });
        let value = |value: &str| ("filesystem".to_string(), value.to_string());
        let (capability, added) = value("write:/c");
        let added = ApprovalChange::Added { capability, value: added };
        let (capability, removed) = value("read:/b");
        let removed = ApprovalChange::Removed { capability, value: removed };
        check(&request("1", &["read:/a", "write:/c"]), GrantDecision::Stale(vec![added, removed]));
        let other = ApprovalRequest { named_in: "/no/such/other.toml".into(), ..first.clone() };
        check(&other, GrantDecision::Undecided);
        assert_eq!(file.revoke("p", Some(Path::new("/no/such/other.toml"))).unwrap(), 0);
        assert_eq!(file.revoke("p", None).unwrap(), 1);
        check(&first, GrantDecision::Undecided);
    }

    #[test]
    fn what_was_narrowed_is_remembered() {
        let folder = tempfile::tempdir().unwrap();
        let file = ApprovalFile::new(folder.path().join("approvals.json"));
        let files = |files: &[&str]| request("1", files).capabilities;
        let first = request("1", &["read:/a/**", "read:/b"]);
        assert_eq!(file.former(&first).unwrap(), None);
        file.grant(&first, first.capabilities.clone()).unwrap();
        assert!(!file.former(&first).unwrap().unwrap().is_narrowed());
        file.grant(&first, files(&["read:/a/b", "read:/a/c/**"])).unwrap();
        let second = request("2", &["read:/a/*", "read:/b", "read:/d"]);
        let former = file.former(&second).unwrap().unwrap();
        assert!(former.is_narrowed());
        assert_eq!(former.kept(&second), files(&["read:/a/b"]));
        let added = ["read:/a/*", "read:/d"].map(|v| ("filesystem".to_string(), v.to_string()));
        assert_eq!(former.added(&second), added);
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.json");
        let file = ApprovalFile::new(&path);
        let request = request("1", &["read:/a"]);
        file.grant(&request, request.capabilities.clone()).unwrap();
        let granted = GrantDecision::Granted(request.capabilities.clone());
        for (path, private) in [(&*path, 0o600), (folder.path(), 0o700)] {
            for others in [0o020, 0o002] {
                let set = |mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
                set(private | others).unwrap();
                let error = file.verdict(&request).unwrap_err();
                let said = format!("`chmod go-w {}`", path.display());
                assert!(error.to_string().ends_with(&said), "{error}");
                set(private).unwrap();
                assert_eq!(file.verdict(&request).unwrap(), granted);
            }
        }
    }

    #[test]
    fn a_damaged_file_is_neither_believed_nor_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("approvals.json");
        std::fs::write(&path, "{\"approvals\": [{}]}").unwrap();
        let file = ApprovalFile::new(&path);
        let request = request("1", &["read:/a"]);
        assert!(matches!(file.verdict(&request), Err(ApprovalError::Damaged(..))));
        assert!(file.grant(&request, BTreeMap::new()).is_err());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"approvals\": [{}]}");
    }
}
