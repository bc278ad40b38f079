//! Requests and grants, parsed: what is requested, what is approved of it, and whether a use is
//! among both.

mod capability_table;
mod file_grant_proposal;
mod file_rules;
mod glob;
mod import_check;
mod protected;
mod url_pattern;

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tenon_types::name::nearest;
use tenon_types::text::fits;

pub use capability_table::{CAPABILITIES, CapabilityRow, Eligibility};
pub use capability_table::{
    ENVIRONMENT, FILESYSTEM, MEMORY, MESSAGING, NETWORK, PROVIDERS, SECRETS, STATE, STATE_SCOPES,
    TOOLS, USER,
};
pub use file_grant_proposal::{PathKind, file_grants};
pub use file_rules::{FileRules, PathMatchState, ReachableFolder};
#[cfg(any(test, fuzzing, feature = "testing"))]
pub use glob::fuzz::{GlobModel, path_glob};
pub use glob::{GlobState, PathGrant, PathRights, components, resolve};
pub use import_check::{CapabilityStatus, NeedStatus};
pub use protected::table::HOME;
pub use protected::{
    ProtectedPaths, ProtectedRow, ProtectionState, RowSpan, counted, is_beneath, is_within,
};
pub use url_pattern::{UrlGrant, never_sent};

use crate::host_environment::HostEnvironment;
use crate::path_context::PathContext;

/// What the values of a capability are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Names, in which nothing stands for anything else.
    Names,
    /// Names, in which `*` stands for anything.
    Patterns,
    /// The same, for these names and no others.
    Among(&'static [&'static str]),
    /// `read:`, `write:` and `readwrite:` globs over paths.
    Paths,
    /// Patterns of URLs.
    Urls,
}

/// One value of a capability.
#[derive(Debug, Clone)]
pub enum Grant {
    /// A name, as it is.
    Name(String),
    /// A name in which `*` stands for anything.
    Pattern(String),
    /// Paths of files, with what may be done there.
    Path(PathGrant),
    /// URLs.
    Url(Arc<UrlGrant>),
}

/// The most values of one capability.
const MAX_VALUES: usize = 100;

/// The longest value, in bytes.
const MAX_VALUE_BYTES: usize = 4096;

/// A value that a capability does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{capability} = [{value:?}]`: {problem}")]
pub struct GrantError {
    capability: String,
    value: String,
    problem: String,
}

/// Values by the names of capabilities.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GrantSet(BTreeMap<String, Vec<Grant>>);

/// A warning about a value that names files which decide what programs run, or which contain keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct GrantWarning {
    /// The capability.
    pub capability: String,
    /// The value, as it would be approved.
    pub value: String,
    /// What the files are, and what access to them means.
    pub meaning: String,
}

impl Grant {
    fn parse(values: ValueKind, text: &str, context: &PathContext<'_>) -> Result<Self, String> {
        match values {
            ValueKind::Names if text.is_empty() || text.contains(['*', '=', '\0']) => {
                Err("it is not a name".into())
            }
            ValueKind::Patterns if text.is_empty() => Err("it is not a name".into()),
            ValueKind::Names => Ok(Self::Name(text.into())),
            ValueKind::Patterns => Ok(Self::Pattern(text.into())),
            ValueKind::Among(names) => check_name(text, names).map(|()| Self::Pattern(text.into())),
            ValueKind::Paths => {
                check_path(text)?;
                PathGrant::parse(text, context).map(Self::Path).map_err(|error| error.to_string())
            }
            ValueKind::Urls => {
                let grant = UrlGrant::parse(text).map_err(|error| error.to_string())?;
                Ok(Self::Url(Arc::new(grant)))
            }
        }
    }

    /// The value as it is approved.
    pub fn text(&self) -> &str {
        match self {
            Self::Name(text) | Self::Pattern(text) => text,
            Self::Path(grant) => grant.text(),
            Self::Url(grant) => grant.text(),
        }
    }

    /// Whether one of these allows all that it allows.
    fn is_covered(&self, granted: &[Self]) -> bool {
        let one_of = |covers: &dyn Fn(&Self) -> bool| granted.iter().any(covers);
        match self {
            Self::Name(name) | Self::Pattern(name) => one_of(&|granted| granted.allows(name)),
            Self::Url(wanted) => {
                one_of(&|granted| matches!(granted, Self::Url(grant) if grant.covers(wanted)))
            }
            // What is read and what is written may be allowed by two.
            Self::Path(wanted) => wanted.by_access().all(|wanted| {
                // A name that no glob covers is to be spelled out.
                let by_name = ProtectedPaths::default().protected_segments(&wanted);
                one_of(&|granted| {
                    matches!(granted, Self::Path(grant) if grant.covers(&wanted, &by_name))
                })
            }),
        }
    }

    /// Whether it allows something that goes by its name.
    fn allows(&self, name: &str) -> bool {
        match self {
            Self::Name(own) => own == name,
            Self::Pattern(pattern) => fits(pattern, name),
            Self::Path(_) | Self::Url(_) => false,
        }
    }
}

/// Checks that a name is one of those that there are, or a pattern that one of them fits.
fn check_name(text: &str, names: &[&str]) -> Result<(), String> {
    if names.iter().any(|name| fits(name, text) || fits(text, name)) {
        return Ok(());
    }
    let plain = names.iter().copied().filter(|name| !name.contains('*'));
    Err(match nearest(text, plain.clone()) {
        Some(meant) => format!("unknown name; did you mean `{meant}`?"),
        None => {
            let known = plain.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            format!("unknown name; known are {known}")
        }
    })
}

/// Checks that a path does not begin with what a shell would put something for, and we would not:
/// it would be a path in the folder of the manifest.
fn check_path(text: &str) -> Result<(), String> {
    let Some((access, path)) = text.split_once(':') else { return Ok(()) };
    let name_of = |rest: &str| {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        rest[..end.unwrap_or(rest.len())].to_string()
    };
    if path.is_empty() {
        return Err(format!("no path after `{access}:`"));
    }
    if let Some(rest) = path.strip_prefix('$')
        && rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
    {
        let name = name_of(rest);
        return Err(format!("a variable is written `${{{name}}}`, not `${name}`"));
    }
    if let Some(user) =
        path.strip_prefix('~').filter(|rest| !rest.is_empty() && !rest.starts_with('/'))
    {
        let user = user.split('/').next().unwrap_or_default();
        return Err(format!("`~{user}` is not supported; `~/` is your home folder"));
    }
    Ok(())
}

impl PartialEq for Grant {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl GrantSet {
    /// Reads a value, and adds it. The context says what paths in it mean.
    pub fn add(
        &mut self,
        capability: &str,
        text: &str,
        context: &PathContext<'_>,
    ) -> Result<(), GrantError> {
        // Of what no host has, admission tells.
        let values =
            match CapabilityRow::named(capability).map(|capability| capability.availability) {
                Some(Eligibility::OnRequest { values, .. }) => values,
                _ => ValueKind::Patterns,
            };
        let of = self.0.entry(capability.to_string()).or_default();
        let parsed = match of.len() < MAX_VALUES {
            true if text.len() > MAX_VALUE_BYTES => {
                Err(format!("it is longer than {MAX_VALUE_BYTES} bytes"))
            }
            true => Grant::parse(values, text, context),
            false => Err(format!("there are {MAX_VALUES} before it, which are the most")),
        };
        let grant = parsed.map_err(|problem| {
            let value = tenon_types::text::cut(text, 200).to_string();
            GrantError { capability: capability.to_string(), value, problem }
        })?;
        of.push(grant);
        Ok(())
    }

    /// Adds a value that was approved: it means what it meant then.
    pub fn add_approved(&mut self, capability: &str, text: &str) -> Result<(), GrantError> {
        if capability != FILESYSTEM {
            return self.add(capability, text, &PathContext::in_folder(Path::new("/")));
        }
        let grant = PathGrant::parse_approved(text).map_err(|error| GrantError {
            capability: capability.to_string(),
            value: text.to_string(),
            problem: error.to_string(),
        })?;
        self.0.entry(capability.to_string()).or_default().push(Grant::Path(grant));
        Ok(())
    }

    /// Values that were approved, without those that are none.
    pub fn approved(texts: &BTreeMap<String, Vec<String>>) -> Self {
        let mut set = Self::default();
        for (capability, text) in
            texts.iter().flat_map(|(name, of)| of.iter().map(move |text| (name, text)))
        {
            // Nobody is granted what is no value.
            let _ = set.add_approved(capability, text);
        }
        set
    }

    /// Notes a capability, of which there may be no value.
    pub fn note(&mut self, capability: &str) {
        self.0.entry(capability.to_string()).or_default();
    }

    /// How many values there are, of all capabilities together.
    pub fn len(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.capabilities().next().is_none()
    }

    /// The values as texts, as they are approved.
    pub fn texts(&self) -> BTreeMap<String, Vec<String>> {
        let texts = |grants: &Vec<Grant>| grants.iter().map(|g| g.text().to_string()).collect();
        let there = self.0.iter().filter(|(_, grants)| !grants.is_empty());
        there.map(|(capability, grants)| (capability.clone(), texts(grants))).collect()
    }

    /// What those of the values mean that name protected files, such as those that decide what programs run
    /// ([`crate::discover::Discovery::deciding`]). Globs never cover them: only a value that names one has a warning.
    pub fn warnings(
        &self,
        host_environment: &HostEnvironment,
        deciding: &BTreeSet<PathBuf>,
    ) -> Vec<GrantWarning> {
        let capability = FILESYSTEM;
        let paths: Vec<&PathGrant> = { self.of(capability).iter() }
            .filter_map(|grant| match grant {
                Grant::Path(path) => Some(path),
                _ => None,
            })
            .collect();
        if paths.is_empty() {
            return Vec::new();
        }
        let protection = ProtectedPaths::of(host_environment).with(deciding);
        let data = host_environment.data.as_deref().and_then(resolve);
        // The rules leave nothing there but the plugin's own folder.
        let is_data =
            |path: &PathGrant| data.as_ref().is_some_and(|data| is_beneath(path.base().1, data));
        let paths = paths.iter().filter(|path| !is_data(path));
        let warning = |path: &&PathGrant| {
            let (capability, value) = (capability.to_string(), path.text().to_string());
            Some(GrantWarning { capability, value, meaning: protection.meaning(path)? })
        };
        paths.copied().filter_map(|path| warning(&path)).collect()
    }

    /// What those of the values mean of which a server that is confined by folders reaches more.
    pub fn wider_for_servers(&self) -> Vec<GrantWarning> {
        let warnings = self.of(FILESYSTEM).iter().filter_map(|grant| {
            let Grant::Path(path) = grant else { return None };
            let (holder, is_exact) = path.holder();
            let meaning = || {
                format!(
                    "it reaches all of {}, as servers are confined by folders",
                    holder.display()
                )
            };
            let (capability, value) = (FILESYSTEM.to_string(), path.text().to_string());
            (!is_exact).then(|| GrantWarning { capability, value, meaning: meaning() })
        });
        warnings.collect()
    }

    /// The values of a capability, as texts.
    pub fn values(&self, capability: &str) -> impl Iterator<Item = &str> {
        self.of(capability).iter().map(Grant::text)
    }

    /// The names of the capabilities that there are values of.
    pub fn capabilities(&self) -> impl Iterator<Item = &str> {
        self.names().filter(|name| !self.of(name).is_empty())
    }

    /// The names of all capabilities that were noted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    fn of(&self, capability: &str) -> &[Grant] {
        self.0.get(capability).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether all that a value, as it is approved, allows is allowed by one of these.
    ///
    /// No use is decided by this: what was requested and what was approved must both allow it. People are
    /// told by it what a grant comes to.
    pub fn covers(&self, capability: &str, text: &str) -> bool {
        let mut wanted = Self::default();
        let added = wanted.add_approved(capability, text);
        let granted = self.of(capability);
        added.is_ok() && wanted.of(capability).iter().all(|wanted| wanted.is_covered(granted))
    }

    /// What of these values, as they are approved, is not more than this.
    pub fn within(&self, values: &BTreeMap<String, Vec<String>>) -> BTreeMap<String, Vec<String>> {
        let mut values = values.clone();
        values.retain(|capability, texts| {
            texts.retain(|text| self.covers(capability, text));
            !texts.is_empty()
        });
        values
    }

    fn allow(&self, capability: &str, name: &str) -> bool {
        self.of(capability).iter().any(|grant| grant.allows(name))
    }
}

/// What a plugin was granted: what it requested and what was approved, of which both must allow a
/// use.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Grants {
    requested: GrantSet,
    approved: GrantSet,
}

impl Grants {
    /// What was requested, where that was approved as well.
    pub fn new(requested: GrantSet, approved: GrantSet) -> Self {
        Self { requested, approved }
    }

    /// Whether nothing was approved of what was requested.
    pub fn is_empty(&self) -> bool {
        !self.approved.names().any(|name| self.has(name))
    }

    /// What was approved of what was requested, by the names of capabilities.
    pub fn texts(&self) -> BTreeMap<String, Vec<String>> {
        self.requested.within(&self.approved.texts())
    }

    /// Whether anything of a capability was requested, though it may not have been approved.
    pub fn requests(&self, capability: &str) -> bool {
        !self.requested.of(capability).is_empty()
    }

    /// Whether a use, which goes by this value, was requested, though it may not have been approved.
    pub fn was_requested(&self, capability: &str, value: &str) -> bool {
        self.requested.covers(capability, value)
    }

    /// Whether anything of a capability was granted.
    pub fn has(&self, capability: &str) -> bool {
        !self.requested.of(capability).is_empty() && !self.approved.of(capability).is_empty()
    }

    /// Whether what goes by this name was granted of a capability.
    pub fn allow(&self, capability: &str, name: &str) -> bool {
        self.approved.allow(capability, name) && self.requested.allow(capability, name)
    }

    /// The names that were granted of a capability whose values are names.
    pub fn names<'a>(&'a self, capability: &'a str) -> impl Iterator<Item = &'a str> {
        let approved = self.approved.of(capability).iter().map(Grant::text);
        approved.filter(move |name| self.requested.allow(capability, name))
    }

    /// The globs that were granted, in sets of which each must allow a use. Nothing where nothing was granted.
    pub fn paths(&self) -> Vec<Vec<PathGrant>> {
        self.sets(FILESYSTEM, |grant| match grant {
            Grant::Path(path) => Some(path.clone()),
            _ => None,
        })
    }

    /// The URL patterns that were granted, in such sets.
    pub fn urls(&self) -> Vec<Vec<Arc<UrlGrant>>> {
        self.sets(NETWORK, |grant| match grant {
            Grant::Url(url) => Some(url.clone()),
            _ => None,
        })
    }

    /// What was approved of a capability, and what was requested of it where that is not the same:
    /// all must allow a use. Nothing where nothing was granted.
    fn sets<T>(&self, capability: &str, of: impl Fn(&Grant) -> Option<T>) -> Vec<Vec<T>> {
        let (requested, approved) = (self.requested.of(capability), self.approved.of(capability));
        match self.has(capability) {
            false => Vec::new(),
            true if requested == approved => vec![approved.iter().filter_map(of).collect()],
            true => [approved, requested].map(|set| set.iter().filter_map(&of).collect()).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(pairs: &[(&str, &[&str])]) -> GrantSet {
        let mut set = GrantSet::default();
        for (name, value) in pairs.iter().flat_map(|(name, of)| of.iter().map(move |v| (name, v))) {
            set.add(name, value, &PathContext::in_folder(Path::new("/"))).expect("it is a value");
        }
        set
    }

    #[test]
    fn only_what_was_requested_and_approved_is_granted() {
        let requested = set(&[
            ("tools", &["a__*", "b__x", "d__*"]),
            ("messaging", &["ops"]),
            ("environment", &["LANG", "TZ"]),
        ]);
        let approved = set(&[
            ("tools", &["*__a*", "d__x*"]),
            ("providers", &["*"]),
            ("environment", &["LANG", "HOME"]),
        ]);
        let grants = Grants::new(requested, approved);
        let check = |capability, value, expected| {
            assert_eq!(grants.allow(capability, value), expected, "{capability} {value}");
        };
        check("tools", "a__anything", true);
        check("tools", "b__x", false);
        check("tools", "d__xy", true);
        check("tools", "d__y", false);
        check("tools", "c__a", false);
        check("messaging", "ops", false);
        check("providers", "x", false);
        assert!(grants.has("tools") && !grants.has("providers") && !grants.has("messaging"));
        assert_eq!(grants.names("environment").collect::<Vec<_>>(), ["LANG"]);
    }

    #[test]
    fn a_value_that_cannot_be_is_named() {
        let check = |capability: &str, value: &str, expected: &str| {
            let mut set = GrantSet::default();
            let error = set.add(capability, value, &PathContext::in_folder(Path::new("/")));
            assert_eq!(error.unwrap_err().to_string(), expected);
        };
        check(
            "filesystem",
            "reed:/x",
            "`filesystem = [\"reed:/x\"]`: it must begin with `read:`, `write:` or `readwrite:`",
        );
        check("environment", "*", "`environment = [\"*\"]`: it is not a name");
        check("tools", "", "`tools = [\"\"]`: it is not a name");
        check("memory", "serch", "`memory = [\"serch\"]`: unknown name; did you mean `search`?");
        check("memory", "x", "`memory = [\"x\"]`: unknown name; known are `search`");
        check("filesystem", "read:", "`filesystem = [\"read:\"]`: no path after `read:`");
        check(
            "filesystem",
            "read:$HOME/x",
            "`filesystem = [\"read:$HOME/x\"]`: a variable is written `${HOME}`, not `$HOME`",
        );
        check(
            "filesystem",
            "write:~bob/x",
            "`filesystem = [\"write:~bob/x\"]`: `~bob` is not supported; `~/` is your home folder",
        );
    }

    #[test]
    fn channels_are_requested_by_their_names_or_patterns_of_them() {
        for value in ["ops", "team-*", "*"] {
            set(&[("messaging", &[value])]);
        }
        ["search", "*"].iter().for_each(|value| drop(set(&[("memory", &[value])])));
    }

    #[test]
    fn paths_that_a_shell_would_read_otherwise_are_refused_and_others_are_not() {
        let check = |value: &str, expected: Option<&str>| {
            let problem = check_path(value).err();
            assert_eq!(problem.as_deref(), expected, "{value}");
        };
        check("read:~", None);
        check("read:~/x", None);
        check("read:$1", None);
        check("read:${HOME}/x", None);
        check("no access", None);
        check("read:$_a9-b", Some("a variable is written `${_a9}`, not `$_a9`"));
        check("read:~a/b", Some("`~a` is not supported; `~/` is your home folder"));
    }

    #[test]
    fn values_have_a_number_and_a_length() {
        let mut set = GrantSet::default();
        let mut add = |text: &str| {
            let added = set.add("tools", text, &PathContext::in_folder(Path::new("/")));
            added.map_err(|error| error.problem)
        };
        assert_eq!(add(&"x".repeat(MAX_VALUE_BYTES)), Ok(()));
        assert_eq!(
            add(&"x".repeat(MAX_VALUE_BYTES + 1)),
            Err("it is longer than 4096 bytes".into())
        );
        (1..MAX_VALUES).for_each(|_| add("x").unwrap());
        assert_eq!(add("x"), Err("there are 100 before it, which are the most".into()));
        assert_eq!(set.len(), MAX_VALUES);
    }

    #[test]
    fn what_is_only_noted_has_no_values() {
        let mut noted = GrantSet::default();
        assert!(noted.is_empty());
        noted.note("tools");
        assert_eq!((noted.is_empty(), noted.len(), noted.texts()), (true, 0, BTreeMap::new()));
        assert_eq!(noted.names().collect::<Vec<_>>(), ["tools"]);
        let set = set(&[("tools", &["a", "b"]), ("environment", &["LANG"])]);
        assert_eq!((set.is_empty(), set.len()), (false, 3));
        assert_eq!(set.capabilities().collect::<Vec<_>>(), ["environment", "tools"]);
        assert_eq!(set.values("tools").collect::<Vec<_>>(), ["a", "b"]);
        assert_ne!(set.of("tools")[0], set.of("tools")[1]);
        assert_eq!(set.of("tools")[0], set.of("tools")[0].clone());
    }

    #[test]
    fn what_was_approved_counts_where_it_was_requested() {
        let texts = |pairs: &[(&str, &[&str])]| -> BTreeMap<String, Vec<String>> {
            let of = |of: &[&str]| of.iter().map(ToString::to_string).collect();
            pairs.iter().map(|(name, values)| (name.to_string(), of(values))).collect()
        };
        let requested = set(&[
            ("tools", &["a__*"]),
            ("filesystem", &["read:/a/**"]),
            ("network", &["https://a.com/*"]),
        ]);
        let approved = GrantSet::approved(&texts(&[
            ("tools", &["a__x", "b"]),
            ("filesystem", &["read:/a/b", "reed:/a/b", "write:/a/b"]),
            ("environment", &["LANG"]),
        ]));
        let valid = texts(&[
            ("tools", &["a__x", "b"]),
            ("filesystem", &["read:/a/b", "write:/a/b"]),
            ("environment", &["LANG"]),
        ]);
        assert_eq!(approved.texts(), valid);
        let grants = Grants::new(requested.clone(), approved);
        let granted = texts(&[("tools", &["a__x"]), ("filesystem", &["read:/a/b"])]);
        assert_eq!(grants.texts(), granted);
        assert_eq!(["network", "environment"].map(|name| grants.requests(name)), [true, false]);
        for (value, expected) in [("read:/a/x", true), ("read:/b", false), ("reed:/a/x", false)] {
            assert_eq!(grants.was_requested("filesystem", value), expected, "{value}");
        }
        assert!(!grants.is_empty() && grants.urls().is_empty());
        let sets = |grants: &Grants| grants.sets("tools", |grant| Some(grant.text().to_string()));
        assert_eq!(sets(&grants), [vec!["a__x".to_string(), "b".into()], vec!["a__*".into()]]);
        // The same on both sides counts once.
        let all = Grants::new(requested.clone(), requested.clone());
        assert_eq!(sets(&all), [["a__*".to_string()]]);
        assert!(format!("{:?}", all.urls()).contains("a.com"));
        assert!(format!("{:?}", grants.paths()).contains("/a/b"));
        let nothing = Grants::new(requested, GrantSet::default());
        assert!(nothing.is_empty() && nothing.urls().is_empty());
        assert_eq!(sets(&nothing), Vec::<Vec<String>>::new());
    }

    #[test]
    fn whoever_approves_is_told_what_a_server_reaches_besides() {
        let set = set(&[
            ("filesystem", &["read:/no/such/*.md", "read:/no/such/other/**"]),
            ("network", &["https://a.com/*"]),
        ]);
        let [GrantWarning { capability, value, meaning }] = &set.wider_for_servers()[..] else {
            panic!("{:?}", set.wider_for_servers())
        };
        assert_eq!((capability.as_str(), value.as_str()), ("filesystem", "read:/no/such/*.md"));
        assert_eq!(meaning, "it reaches all of /no/such, as servers are confined by folders");
    }

    #[test]
    fn whoever_approves_is_warned_of_what_is_protected() {
        let home = tempfile::tempdir().unwrap();
        let host_environment =
            HostEnvironment { home: Some(home.path().into()), ..HostEnvironment::default() };
        let mut set = GrantSet::default();
        for value in ["read:~/.ssh/id_rsa", "read:~/notes"] {
            set.add("filesystem", value, &PathContext::new(&host_environment, Path::new("/")))
                .unwrap();
        }
        let warnings = set.warnings(&host_environment, &BTreeSet::new());
        let approved = GrantSet::approved(&set.texts());
        assert_eq!(approved.warnings(&host_environment, &BTreeSet::new()), warnings);
        let [GrantWarning { capability, value, .. }] = &warnings[..] else {
            panic!("{warnings:?}")
        };
        assert_eq!(capability, "filesystem");
        assert!(value.ends_with("/.ssh/id_rsa"), "{value}");
    }

    #[test]
    fn a_plugins_own_data_is_no_reason_to_warn() {
        let warnings = |value: &str| {
            let mut set = GrantSet::default();
            set.add_approved("filesystem", value).unwrap();
            let host_environment = HostEnvironment {
                home: Some("/no/such/home".into()),
                data: Some("/no/such/home/.ssh/tenon".into()),
                ..HostEnvironment::default()
            };
            set.warnings(&host_environment, &BTreeSet::new()).len()
        };
        assert_eq!(warnings("readwrite:/no/such/home/.ssh/tenon/plugins/notes/**"), 0);
        assert_eq!(warnings("readwrite:/no/such/home/.ssh/tenon/**"), 1);
        assert_eq!(warnings("readwrite:/no/such/home/.ssh/other/**"), 1);
    }

    #[test]
    fn what_is_more_than_another_is_found() {
        let check = |capability: &str, granted: &[&str], wanted: &str, expected: bool| {
            let mut set = GrantSet::default();
            granted.iter().for_each(|text| set.add_approved(capability, text).unwrap());
            assert_eq!(set.covers(capability, wanted), expected, "{granted:?} {wanted}");
        };
        check("environment", &["LANG"], "LANG", true);
        check("environment", &["LANG"], "TZ", false);
        check("secrets", &[], "x", false);
        check("tools", &["a__*", "b"], "a__b*", true);
        check("tools", &["a__*", "b"], "*", false);
        let files = |granted: &[&str], wanted, expected| {
            check("filesystem", granted, wanted, expected);
        };
        files(&["read:/a/*"], "read:/a/b", true);
        files(&["read:/a/*"], "read:/a/b/c", false);
        files(&["read:/a/*"], "read:/a/**", false);
        files(&["read:/a/*"], "write:/a/b", false);
        files(&["readwrite:/a/**"], "read:/a", true);
        files(&["readwrite:/a/**"], "write:/a/b/**", true);
        files(&["readwrite:/a/**"], "write:/b/**", false);
        files(&["read:/a/**", "write:/a/b"], "readwrite:/a/b", true);
        files(&["read:/a/**", "write:/a/b"], "readwrite:/a/c", false);
        files(&["read:/**/*.md"], "read:/x/y/z*.md", true);
        files(&["read:/**/*.md"], "read:/x/y/z", false);
        files(&["read:/a/**/b/**"], "read:/a/x/b", true);
        files(&["read:/a/**/b/**"], "read:/a/x", false);
        // No glob covers these for writing, or those with keys for reading.
        files(&["write:/a/**"], "write:/a/.git/hooks/**", false);
        files(&["write:/a/**/.git/**"], "write:/a/.git/hooks/**", true);
        files(&["write:/a/.g*/**"], "write:/a/.git/hooks/**", false);
        files(&["readwrite:/a/**"], "read:/a/.git/hooks/**", true);
        files(&["readwrite:/a/**"], "read:/a/.ssh/**", false);
        files(&["readwrite:/a/.ssh/**"], "read:/a/.ssh/**", true);
        check("network", &["https://x.example"], "https://x.example/v1/*", true);
        check("network", &["https://x.example/v1"], "https://x.example", false);
    }
}
