//! What a plugin may do with a path: grants, the host's own folders, and what is protected, put together.
//!
//! Nothing here looks at a file. Paths are absolute, and without links: who walks them has seen to that.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Grants;
use super::glob::{GlobState, PathCoverage, PathGrant, PathRights, components, resolve};
use super::protected::table::HOME;
use super::protected::{
    ProtectedPaths, ProtectedRow, ProtectionState, RowSpan, counted, is_beneath, is_within,
};
use crate::expand::escaped;
use crate::host_environment::HostEnvironment;

/// What a plugin may do with each path.
#[derive(Debug, Default)]
pub struct FileRules {
    /// What was requested, and what was approved of it where that is not the same: both must allow.
    grants: Vec<Vec<PathGrant>>,
    /// The host's own folders: approvals, secrets and compiled code are not for plugins, whatever
    /// the globs cover.
    never: Vec<String>,
    /// The plugin's folder for data of its own, which lies in one of these.
    data_folder: Option<String>,
    /// What no glob covers.
    protection: ProtectedPaths,
}

/// A folder or a file that a program can reach, with all that is below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReachableFolder {
    /// Where it is.
    pub path: PathBuf,
    /// Whether it may be read.
    pub read: bool,
    /// Whether it may be changed.
    pub write: bool,
    /// Whether all of it was granted; otherwise only a part was.
    pub is_exact: bool,
}

/// Where a path stands in the rules: what is in a folder of which there may be a million names is one step away
/// from it.
#[derive(Debug, Clone)]
pub struct PathMatchState {
    /// Where each grant stands, in their order.
    places: Arc<[GlobState]>,
    protection: ProtectionState,
}

impl FileRules {
    /// The rules for a plugin with these grants: nothing in the host's own folders and in those with data of other
    /// plugins, and what decides what is started only where it is named.
    pub fn of(
        grants: &Grants,
        data_folder: Option<&Path>,
        host_environment: &HostEnvironment,
        deciding: &BTreeSet<PathBuf>,
    ) -> Self {
        let sets = grants.paths();
        let own = host_environment.own_folders().filter_map(resolve).collect();
        let protection = match sets.is_empty() {
            true => ProtectedPaths::default(),
            false => ProtectedPaths::of(host_environment).with(deciding),
        };
        let data_folder = data_folder.and_then(resolve);
        Self { data_folder, ..Self::new(sets, own, protection) }
    }

    /// What grants cover, but for folders that are never for plugins, and for what is protected and not named.
    pub fn new(
        grants: Vec<Vec<PathGrant>>,
        never: Vec<String>,
        protection: ProtectedPaths,
    ) -> Self {
        Self { grants, never, data_folder: None, protection }
    }

    /// Whether a grant begins in the plugin's folder for data of its own.
    pub fn uses_data_folder(&self) -> bool {
        self.bases().any(|(_, base)| self.is_own(base))
    }

    /// Whether a path lies in the plugin's folder for data of its own.
    pub fn is_own(&self, path: &str) -> bool {
        self.data_folder.as_ref().is_some_and(|folder| is_within(path, folder))
    }

    /// A grant as a manifest would request it: by `${data}` in the plugin's folder for data of its own.
    pub fn as_requested(&self, grant: &str) -> String {
        let Some((access, glob)) = grant.split_once(':') else { return grant.to_string() };
        let folder = self.data_folder.as_deref().map(escaped).unwrap_or_default();
        match glob.strip_prefix(&folder) {
            Some(rest) if !folder.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
                format!("{access}:${{data}}{rest}")
            }
            _ => grant.to_string(),
        }
    }

    /// What a program can reach that is confined by folders and files, each with all that is below it: what holds all that
    /// the grants cover.
    pub fn reachable(&self) -> Vec<ReachableFolder> {
        let is_in = |grants: &Vec<PathGrant>, grant: &PathGrant| {
            grants.iter().any(|other| other.covers(grant, &[]))
        };
        // What one of them has, the others must have too.
        let in_all = self.grants.iter().flatten();
        let in_all = in_all.filter(|grant| self.grants.iter().all(|set| is_in(set, grant)));
        let reachable = in_all.map(|grant| {
            let (path, is_exact) = grant.holder();
            let (read, write) = grant.access().parts();
            ReachableFolder { path, read, write, is_exact }
        });
        reachable.collect()
    }

    /// What no program may see that is confined in this way: the host's own folders and those with data of other plugins, and
    /// what holds keys in the user's home folder and directly in a folder that is reachable, unless it is granted by its name.
    pub fn hidden(&self, home: Option<&Path>) -> Vec<PathBuf> {
        let reachable = self.reachable();
        let folders = reachable.iter().map(|folder| folder.path.as_path()).chain(home);
        let secret = folders
            .flat_map(|folder| ProtectedPaths::secret_names().map(move |name| folder.join(name)));
        let is_named = |path: &Path| reachable.iter().any(|folder| folder.path.starts_with(path));
        let own = self.data_folder.as_deref().map(Path::new);
        let never = self.never.iter().map(PathBuf::from);
        let never = never.filter(|folder| own.is_none_or(|own| !own.starts_with(folder)));
        never.chain(secret.filter(|path| !is_named(path))).collect()
    }

    /// What a program can read that is confined in this way, and must not change, though what it lies in may be changed: a
    /// glob covers no file that holds keys, and one that names it may cover it for reading only.
    pub fn unchangeable(&self) -> Vec<PathBuf> {
        let reachable = self.reachable();
        let is_in = |path: &Path| {
            reachable.iter().any(|other| other.write && path.starts_with(&other.path))
        };
        let may_be_written = |path: &Path| {
            path.to_str().is_none_or(|path| self.rights(path).write != PathCoverage::default())
        };
        let read = reachable.iter().filter(|of| !of.write && is_in(&of.path));
        read.filter(|of| !may_be_written(&of.path)).map(|of| of.path.clone()).collect()
    }

    /// A folder that a program may change which is confined in this way, and what of the host's own, or of these paths,
    /// lies in it. Whoever may move what is above a file decides what that is.
    pub fn endangered<'a>(
        &self,
        others: impl Iterator<Item = &'a Path>,
    ) -> Option<(PathBuf, PathBuf)> {
        let others = others.filter_map(resolve).map(PathBuf::from);
        let own: Vec<PathBuf> = self.never.iter().map(PathBuf::from).chain(others).collect();
        let changed = self.reachable().into_iter().filter(|folder| folder.write);
        changed.map(|folder| folder.path).find_map(|folder| {
            let own = own.iter().find(|own| own.starts_with(&folder))?;
            Some((folder, own.clone()))
        })
    }

    /// The folders that grants begin in: as they are written, and where they are.
    pub fn bases(&self) -> impl Iterator<Item = (&str, &str)> {
        self.grants.iter().flatten().map(PathGrant::base)
    }

    /// What may be done with a path.
    pub fn rights(&self, path: &str) -> PathRights {
        self.rights_at(&self.position(path), path)
    }

    /// What may be done with the path that stands so.
    pub fn rights_at(&self, position: &PathMatchState, path: &str) -> PathRights {
        let rights = self.rights_by(position.places.iter().copied());
        self.restrict(rights, position.protection, path)
    }

    /// What may be done with a name in a folder that stands so; `path` is that of the name.
    pub fn rights_in(&self, folder: &PathMatchState, name: &str, path: &str) -> PathRights {
        let protection = self.protection_in(folder, name, path);
        let rights = self.rights_by(self.step_places(&folder.places, name));
        self.restrict(rights, protection, path)
    }

    /// Where a path stands.
    pub fn position(&self, path: &str) -> PathMatchState {
        let start = PathMatchState {
            places: self.grants.iter().flatten().map(PathGrant::start).collect(),
            protection: self.protection.start(),
        };
        let mut here = String::with_capacity(path.len());
        components(path).fold(start, |position, name| {
            here.push('/');
            here.push_str(name);
            self.step(&position, name, &here)
        })
    }

    /// Where a name stands in a folder that stands so; `path` is that of the name.
    pub fn step(&self, folder: &PathMatchState, name: &str, path: &str) -> PathMatchState {
        PathMatchState {
            places: self.step_places(&folder.places, name).collect(),
            protection: self.protection_in(folder, name, path),
        }
    }

    /// Where a name in a folder stands in what is protected; `path` is that of the name.
    pub fn protection_in(
        &self,
        folder: &PathMatchState,
        name: &str,
        path: &str,
    ) -> ProtectionState {
        self.protection_beneath(folder.protection, name, path)
    }

    /// Where a name beneath such a path stands in what is protected.
    pub fn protection_beneath(
        &self,
        above: ProtectionState,
        name: &str,
        path: &str,
    ) -> ProtectionState {
        self.protection.step(above, name, path)
    }

    /// What makes a path protected, if nothing else keeps the plugin from it: what was requested
    /// covers it, and does not name it.
    pub fn protects(&self, path: &str, writes: bool) -> Option<&'static ProtectedRow> {
        // What was requested is the last of the sets.
        let requested = self.grants.last()?;
        let spans = counted(self.protection.spans(path, false), !writes);
        let row = spans.last()?.row;
        let covers = |spans: &[RowSpan]| {
            let places = requested.iter().map(|grant| (grant, by_name(grant, path, spans)));
            let rights = PathRights::of(places);
            if writes { rights.write.here } else { rights.read.here }
        };
        (covers(&[]) && !covers(&spans)).then_some(row)
    }

    /// Whether a folder or a link may come to a path, or go from there, as far as concerns what is
    /// protected for that path's name: `autostart` in `.config` is, and so `.config` is not to become
    /// another folder under a glob. The path is that of a name in a folder that stands so.
    ///
    /// # Errors
    ///
    /// What is protected.
    pub fn may_take(
        &self,
        folder: &PathMatchState,
        name: &str,
        path: &str,
    ) -> Result<(), &'static ProtectedRow> {
        if self.protection_in(folder, name, path).is_partial() {
            let spans = self.protection.spans(path, true);
            let is_named = self.rights_by_name(path, &spans).write.here;
            match spans.last() {
                Some(span) if !is_named => return Err(span.row),
                Some(_) => {}
                None => return Err(&HOME),
            }
        }
        match self
            .protection
            .anchors_beneath(path)
            .find(|(anchor, row)| row.is_none() || !self.rights(anchor).write.tree())
        {
            Some((_, row)) => Err(row.unwrap_or(&HOME)),
            None => Ok(()),
        }
    }

    /// What the grants allow that stand so.
    fn rights_by(&self, mut places: impl Iterator<Item = GlobState>) -> PathRights {
        let each = |grants: &Vec<PathGrant>| PathRights::of(grants.iter().zip(places.by_ref()));
        let mut sets = self.grants.iter().map(each);
        let first = sets.next().unwrap_or_default();
        sets.fold(first, PathRights::and)
    }

    /// What is left of what the grants allow of a path.
    fn restrict(
        &self,
        mut rights: PathRights,
        protection: ProtectionState,
        path: &str,
    ) -> PathRights {
        if protection.is_protected && rights.any() {
            let spans = self.protection.spans(path, false);
            rights.write = self.rights_by_name(path, &counted(spans.clone(), false)).write;
            if protection.is_secret {
                rights.read = self.rights_by_name(path, &counted(spans, true)).read;
            }
        }
        if !self.is_own(path) && self.never.iter().any(|folder| is_within(path, folder)) {
            return PathRights::default();
        }
        match self.never.iter().any(|folder| is_beneath(folder, path)) {
            true => rights.without_some_beneath(),
            false => rights,
        }
    }

    /// What is allowed by grants that spell these names of a path out.
    fn rights_by_name(&self, path: &str, spans: &[RowSpan]) -> PathRights {
        self.rights_by(self.grants.iter().flatten().map(|grant| by_name(grant, path, spans)))
    }

    fn step_places(&self, places: &[GlobState], name: &str) -> impl Iterator<Item = GlobState> {
        let grants = self.grants.iter().flatten().zip(places);
        grants.map(move |(grant, places)| grant.step(*places, name))
    }
}

/// Where a glob stands after a path of which it has to spell these names out.
fn by_name(grant: &PathGrant, path: &str, spans: &[RowSpan]) -> GlobState {
    components(path).enumerate().fold(grant.start(), |places, (number, name)| {
        match spans.iter().any(|span| span.has(number)) {
            true => grant.step_by_name(places, name),
            false => grant.step(places, name),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grant::GrantSet;
    use crate::path_context::PathContext;

    #[test]
    fn what_was_granted_is_there_but_for_the_hosts_own_folders_and_what_decides() {
        let mut set = GrantSet::default();
        set.add_approved("filesystem", "readwrite:/no/such/**").unwrap();
        let host_environment =
            HostEnvironment { state: Some("/no/such/state".into()), ..HostEnvironment::default() };
        let deciding = BTreeSet::from(["/no/such/decides".into()]);
        let grants = Grants::new(set.clone(), set);
        let rules = FileRules::of(&grants, None, &host_environment, &deciding);
        let may_write = |path: &str| rules.rights(path).write.here;
        assert!(may_write("/no/such/x"));
        assert!(!may_write("/no/such/state/x") && !may_write("/no/such/decides"));
        let nothing = FileRules::of(&Grants::default(), None, &host_environment, &deciding);
        assert!(!nothing.rights("/no/such/x").any());
    }

    #[test]
    fn of_the_data_of_plugins_each_reaches_its_own() {
        let host_environment =
            HostEnvironment { data: Some("/no/such/data".into()), ..HostEnvironment::default() };
        let of = |grant: &str, own: Option<&str>| {
            let mut set = GrantSet::default();
            set.add_approved("filesystem", grant).unwrap();
            let grants = Grants::new(set.clone(), set);
            FileRules::of(&grants, own.map(Path::new), &host_environment, &BTreeSet::new())
        };
        let check = |grant: &str, own: Option<&str>, reached: [bool; 3]| {
            let rules = of(grant, own);
            let paths = ["plugins/notes/x", "plugins/notes", "plugins/other/x"];
            let rights = paths.map(|path| rules.rights(&format!("/no/such/data/{path}")).any());
            assert_eq!(rights, reached, "{grant} of {own:?}");
            assert!(!rules.rights("/no/such/data/plugins").any(), "{grant} of {own:?}");
        };
        let notes = Some("/no/such/data/plugins/notes");
        check("readwrite:/no/such/data/plugins/notes/**", notes, [true, true, false]);
        check("readwrite:/no/such/**", notes, [true, true, false]);
        check("readwrite:/no/such/**", None, [false, false, false]);
        check("readwrite:/no/such/data/plugins/other/**", notes, [false, false, false]);
        assert!(of("readwrite:/no/such/data/plugins/notes/x/*", notes).uses_data_folder());
        let rules = of("readwrite:/no/such/data/plugins/notes/x/*", notes);
        for (grant, expected) in [
            ("read:/no/such/data/plugins/notes/y", "read:${data}/y"),
            ("write:/no/such/data/plugins/notes", "write:${data}"),
            ("read:/no/such/data/plugins/notes-2/y", "read:/no/such/data/plugins/notes-2/y"),
        ] {
            assert_eq!(rules.as_requested(grant), expected);
        }
        assert!(!of("readwrite:/no/such/other/**", notes).uses_data_folder());
    }

    #[test]
    fn a_confined_program_reaches_folders_and_what_is_hidden_in_them_is_not_there() {
        let of = |requested: &[&str], approved: &[&str], own: Option<&str>| {
            let [requested, approved] = [requested, approved].map(|texts| {
                let mut set = GrantSet::default();
                texts.iter().for_each(|text| set.add_approved("filesystem", text).unwrap());
                set
            });
            let host_environment = HostEnvironment {
                home: Some("/no/such/home".into()),
                data: Some("/no/such/data".into()),
                state: Some("/no/such/state".into()),
                ..HostEnvironment::default()
            };
            let grants = Grants::new(requested, approved);
            FileRules::of(&grants, own.map(Path::new), &host_environment, &BTreeSet::new())
        };
        let folder = |path: &str, read, write, is_exact| {
            [ReachableFolder { path: path.into(), read, write, is_exact }]
        };
        let all = ["readwrite:/no/such/**"];
        assert_eq!(of(&all, &all, None).reachable(), folder("/no/such", true, true, true));
        let part = ["read:/no/such/a/*.md"];
        assert_eq!(of(&all, &part, None).reachable(), folder("/no/such/a", true, false, false));
        // What was not requested is not granted, whatever was approved.
        assert_eq!(of(&part, &all, None).reachable(), folder("/no/such/a", true, false, false));
        let other = ["read:/no/such/b/**"];
        assert_eq!(of(&part, &other, None).reachable(), []);
        assert_eq!(of(&[], &[], None).reachable(), []);

        let home = Some(Path::new("/no/such/home"));
        let hidden = |rules: FileRules| {
            let hidden = rules.hidden(home);
            let has = |path: &str| hidden.contains(&PathBuf::from(path));
            [
                "/no/such/state",
                "/no/such/data",
                "/no/such/home/.ssh",
                "/no/such/.env",
                "/no/such/tenon.toml",
            ]
            .map(has)
        };
        assert_eq!(hidden(of(&all, &all, None)), [true, true, true, true, false]);
        let keys = ["read:/no/such/home/.ssh/known_hosts"];
        assert_eq!(hidden(of(&keys, &keys, None)), [true, true, false, false, false]);
        // A plugin's own data lies among that of the others.
        let data = ["readwrite:/no/such/data/plugins/notes/**"];
        let notes = Some("/no/such/data/plugins/notes");
        assert_eq!(hidden(of(&data, &data, notes)), [true, false, true, false, false]);
    }

    fn rules(texts: &[&str], deciding: &[&str]) -> FileRules {
        let parse = |text: &&str| {
            PathGrant::parse(text, &PathContext::in_folder(Path::new("/no/such"))).unwrap()
        };
        let deciding = deciding.iter().map(PathBuf::from).collect();
        let grants = vec![texts.iter().map(parse).collect()];
        FileRules::new(grants, Vec::new(), ProtectedPaths::default().with(&deciding))
    }

    #[test]
    fn what_is_protected_is_what_a_glob_covers_and_does_not_name() {
        let rules = rules(&["readwrite:**", "readwrite:d/tenon.toml"], &[]);
        let here = rules.position("/no/such");
        let is_protected =
            |name: &str| rules.protection_in(&here, name, &format!("/no/such/{name}")).is_protected;
        assert!(is_protected("tenon.toml"));
        assert!(!is_protected("a"));
        let check = |path: &str, expected: bool| {
            assert_eq!(rules.protects(path, true).is_some(), expected, "{path}");
        };
        check("/no/such/tenon.toml", true);
        check("/no/such/d/tenon.toml", false);
        check("/no/such/a", false);
        check("/no/tenon.toml", false);
    }

    #[test]
    fn a_confined_program_may_not_change_what_its_grants_name_for_reading() {
        let check = |texts: &[&str], expected: &[&str]| {
            let expected: Vec<PathBuf> = expected.iter().map(PathBuf::from).collect();
            assert_eq!(rules(texts, &[]).unchangeable(), expected, "{texts:?}");
        };
        check(&["readwrite:**", "read:.env"], &["/no/such/.env"]);
        check(&["readwrite:**", "readwrite:.env"], &[]);
        // The glob lets it be written, as any other file.
        check(&["readwrite:**", "read:a"], &[]);
        // Nothing that it lies in may be changed: the grants alone keep it.
        check(&["readwrite:d/**", "read:.env"], &[]);
        check(&["read:**", "read:.env"], &[]);
    }

    #[test]
    fn a_confined_program_endangers_what_lies_below_a_folder_that_it_may_change() {
        let check = |grant: &str, other: &str, expected: Option<&str>| {
            let rules = rules(&[grant], &[]);
            let found = rules.endangered([Path::new(other)].into_iter());
            let expected = expected.map(|folder| (PathBuf::from(folder), PathBuf::from(other)));
            assert_eq!(found, expected, "{grant} and {other}");
        };
        check("readwrite:d/**", "/no/such/d/servers", Some("/no/such/d"));
        check("readwrite:d/**", "/no/such/servers", None);
        check("read:d/**", "/no/such/d/servers", None);
        let own = vec!["/no/such/state".to_string()];
        let all = PathGrant::parse("write:/no/**", &PathContext::in_folder(Path::new("/no")));
        let rules = FileRules::new(vec![vec![all.unwrap()]], own, ProtectedPaths::default());
        let expected = ("/no".into(), "/no/such/state".into());
        assert_eq!(rules.endangered(std::iter::empty()), Some(expected));
    }

    #[test]
    fn a_folder_stays_where_it_is_if_what_decides_something_is_in_it() {
        let check = |texts: &[&str], name: &str, is_free: bool| {
            let rules = rules(texts, &["/no/such/d/servers"]);
            let here = rules.position("/no/such");
            let may = rules.may_take(&here, name, &format!("/no/such/{name}"));
            assert_eq!(may.is_ok(), is_free, "{name} with {texts:?}");
        };
        check(&["readwrite:**"], "d", false);
        check(&["readwrite:**"], "e", true);
        check(&["readwrite:**", "readwrite:d/servers/**"], "d", true);
    }
}
