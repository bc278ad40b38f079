//! Protected files: what decides what is started or executed, and what holds keys.
//!
//! A glob never covers one for writing, and never for reading where reading gives a secret away. It
//! is covered by a pattern that spells its name out: `write:/p/.git/hooks/**` names `.git`, and
//! `write:/p/**` does not. What is in a protected folder is protected with it, and who has named the
//! folder has named what is in it of the same group.
//!
//! The names are in [`table`]; the folders of `PATH`, the file with the user's servers and what this host
//! starts or loads are added, and what is in `~/.config` is so wherever the user has that.
//! Names are compared without case, as some folders have none on every system; but for names that
//! are common words in small letters, which are compared so where file systems usually have no case.
//! A file system that Windows knows too has two more names for a file: dots and spaces at the end of a
//! name count for nothing, and `GIT~1` is short for `.git`.

pub(super) mod table;

use memchr::memmem;
use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::glob::{Access, PathGrant, components, resolve};
use crate::files::absolute;
use crate::host_environment::HostEnvironment;

/// Names of files that mean the same.
#[derive(Debug, PartialEq, Eq)]
pub struct ProtectedRow {
    group: Group,
    reading: GlobReadability,
    case: Case,
    /// What the files are, in a few words.
    what: &'static str,
    /// Names one after another, at any place: `.config/autostart`. `~/` begins in the home folder, and
    /// `/` at the root; `*` begins a name that is known by its end, and `.*` is any hidden name.
    names: &'static [&'static str],
}

/// Who reads, or runs, protected files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    /// Tenon, and other programs that start MCP servers.
    Tenon,
    /// Agents: their settings and hooks.
    Agents,
    /// Agents: what they are told to do.
    Instructions,
    /// Editors.
    Editors,
    /// Shells and terminals.
    Shells,
    /// Git and other version control.
    Git,
    /// Package managers, build tools, debuggers and interpreters.
    Tools,
    /// Whoever starts a program by its name.
    Programs,
    /// Sessions, desktops and schedulers.
    Autostart,
    /// Whoever asks who the user is.
    Keys,
    /// Any program that keeps its settings in the home folder.
    Home,
    /// The system.
    System,
}

/// Whether a glob covers a protected file for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GlobReadability {
    Open,
    Secret,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Case {
    /// Compared without case everywhere.
    Folded,
    /// Compared without case on macOS only.
    Exact,
}

impl ProtectedRow {
    /// Whether a glob does not even cover it for reading.
    pub fn is_secret(&self) -> bool {
        self.reading == GlobReadability::Secret
    }

    /// What the files are, in a few words.
    pub fn what(&self) -> &'static str {
        self.what
    }

    /// What follows from being allowed this.
    fn consequence(&self, access: Access) -> &'static str {
        match (access, self.group) {
            (Access::Read, _) => "whoever reads them can pass for you",
            (_, Group::Tenon) => "whoever writes there decides what Tenon starts and allows",
            (_, Group::Instructions) => "whoever writes there tells agents what to do as you",
            (_, Group::Keys) => "whoever writes there decides who can pass for you",
            _ => "whoever writes there runs code as you",
        }
    }
}

/// Where in a path a row is found: from its first name to its last, as numbers of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowSpan {
    pub(crate) row: &'static ProtectedRow,
    first: usize,
    last: usize,
}

impl RowSpan {
    /// Whether a pattern has to spell out the name of this number.
    pub fn has(&self, name: usize) -> bool {
        (self.first..=self.last).contains(&name)
    }
}

/// How far the names of a path have come through the table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProtectionState {
    /// The nodes that are stood at, but for the first.
    nodes: u128,
    /// Whether it is protected.
    pub is_protected: bool,
    /// Whether it may not even be read under a glob.
    pub is_secret: bool,
}

impl ProtectionState {
    /// Whether what is beneath would be protected for the name that this has.
    pub fn is_partial(self) -> bool {
        self.nodes != 0
    }
}

/// Which paths are protected.
#[derive(Debug, Clone, Default)]
pub struct ProtectedPaths {
    anchors: Vec<FixedPath>,
}

/// A path that is known beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FixedPath {
    path: String,
    what: FixedPathKind,
}

/// What is at a path that is known beforehand.
#[derive(Debug, Clone, PartialEq, Eq)]
enum FixedPathKind {
    /// A protected file or folder.
    Row(&'static ProtectedRow),
    /// A folder in which names of the table begin: the nodes that it stands for.
    Folder(Vec<usize>),
}

impl FixedPathKind {
    /// What is protected there itself.
    fn row(&self) -> Option<&'static ProtectedRow> {
        match self {
            Self::Row(row) => Some(row),
            Self::Folder(_) => None,
        }
    }
}

impl ProtectedPaths {
    /// The protection for a user: with the home folder and the folders for settings and data, the folders of
    /// `PATH` and the file of servers, each as it was written and as it resolves.
    pub fn of(host_environment: &HostEnvironment) -> Self {
        let mut protection = Self::default();
        if let Some(home) = &host_environment.home {
            protection.add(home, FixedPathKind::Folder(vec![HOME]));
        }
        for (variable, folder) in
            [("XDG_CONFIG_HOME", ".config"), ("XDG_DATA_HOME", ".local/share")]
        {
            let path = host_environment.variable(variable).map(Path::new);
            if let Some(path) = path.filter(|path| path.is_absolute()) {
                protection.add(path, FixedPathKind::Folder(tree().nodes_of(folder)));
            }
        }
        if let Some(servers) = &host_environment.servers {
            protection.add(servers, FixedPathKind::Row(&table::SERVERS));
        }
        let is_above_home = |path: &Path| {
            host_environment.home.as_ref().is_some_and(|home| home.starts_with(path))
                || path.parent().is_none()
        };
        let path = host_environment.variable("PATH").unwrap_or_default();
        let folders = std::env::split_paths(path).filter(|path| path.is_absolute());
        for folder in folders.filter(|path| !is_above_home(path)) {
            protection.add(&folder, FixedPathKind::Row(&table::PATH));
        }
        protection
    }

    /// The names of files and folders that hold keys, wherever they are; some are paths of two names. Patterns are not among
    /// them, nor what is the system's.
    pub fn secret_names() -> impl Iterator<Item = &'static str> {
        let secret = table::TABLE.iter().filter(|row| row.is_secret());
        let names = secret.flat_map(|row| row.names).copied();
        names.filter(|name| !name.contains('*') && !name.starts_with('/'))
    }

    /// The same, with files that decide what this host starts, loads or tells.
    pub fn with(mut self, deciding: &BTreeSet<PathBuf>) -> Self {
        for path in deciding {
            self.add(&absolute(path), FixedPathKind::Row(&table::DECIDING));
        }
        self
    }

    fn add(&mut self, path: &Path, what: FixedPathKind) {
        let written = path.to_str().map(|path| path.trim_end_matches('/').to_string());
        let resolved = resolve(path).map(|path| path.trim_end_matches('/').to_string());
        for path in [written, resolved].into_iter().flatten() {
            let anchor = FixedPath { path, what: what.clone() };
            if !self.anchors.contains(&anchor) {
                self.anchors.push(anchor);
            }
        }
    }

    /// Where the root of all files stands.
    pub fn start(&self) -> ProtectionState {
        self.at_anchors(ProtectionState { nodes: 1 << ROOT, ..ProtectionState::default() }, "")
    }

    /// Where a path stands, whose last name this is, by where its folder stands.
    pub fn step(&self, from: ProtectionState, name: &str, path: &str) -> ProtectionState {
        let tree = tree();
        let folded = fold(name);
        let mut to = ProtectionState { nodes: 0, ..from };
        let mut left = from.nodes | 1;
        while left != 0 {
            let node = &tree.nodes[left.trailing_zeros() as usize];
            left &= left - 1;
            node.each(name, &folded, |row, next| {
                to.is_protected |= row.is_some();
                to.is_secret |= row.is_some_and(ProtectedRow::is_secret);
                to.nodes |= next.map_or(0, |next| 1 << next);
            });
        }
        self.at_anchors(to, path)
    }

    fn at_anchors(&self, mut standing: ProtectionState, path: &str) -> ProtectionState {
        for anchor in self.anchors.iter().filter(|anchor| is_same(&anchor.path, path)) {
            match &anchor.what {
                FixedPathKind::Folder(nodes) => {
                    nodes.iter().for_each(|node| standing.nodes |= 1 << node);
                }
                FixedPathKind::Row(row) => {
                    standing.is_protected = true;
                    standing.is_secret |= row.is_secret();
                }
            }
        }
        standing
    }

    /// The places beneath a path that are known beforehand, and what is protected there; nothing for
    /// a folder in which names begin.
    pub fn anchors_beneath<'a>(
        &'a self,
        path: &'a str,
    ) -> impl Iterator<Item = (&'a str, Option<&'static ProtectedRow>)> {
        let beneath = self.anchors.iter().filter(|anchor| is_beneath(&anchor.path, path));
        beneath.map(|anchor| (&*anchor.path, anchor.what.row()))
    }

    /// The rows that make a path protected, and where. With `partial` also those that would make
    /// something beneath it protected, for the name that it has.
    pub fn spans(&self, path: &str, partial: bool) -> Vec<RowSpan> {
        let names: Vec<Option<&str>> = components(path).map(Some).collect();
        let mut from: Vec<(usize, usize)> = (0..names.len()).map(|first| (first, 0)).collect();
        from.push((0, ROOT));
        let mut anchored = Vec::new();
        let mut here = String::new();
        for (number, name) in std::iter::once(None).chain(names.iter().copied()).enumerate() {
            here.extend(name.map(|name| format!("/{name}")));
            for anchor in self.anchors.iter().filter(|anchor| is_same(&anchor.path, &here)) {
                match (&anchor.what, number.checked_sub(1)) {
                    (FixedPathKind::Folder(nodes), _) => {
                        from.extend(nodes.iter().map(|node| (number, *node)));
                    }
                    (FixedPathKind::Row(row), Some(last)) => {
                        anchored.push(RowSpan { row, first: last, last });
                    }
                    (FixedPathKind::Row(_), None) => {}
                }
            }
        }
        spans(&names, &from, anchored, partial)
    }

    /// The rows that a pattern spells out, and where.
    fn named_by(&self, grant: &PathGrant) -> Vec<RowSpan> {
        let names = grant.names();
        let mut from: Vec<(usize, usize)> = (0..names.len()).map(|first| (first, 0)).collect();
        from.push((0, ROOT));
        let mut anchored = Vec::new();
        for anchor in &self.anchors {
            let (folder, name) = match anchor.what {
                FixedPathKind::Folder(_) => (&*anchor.path, None),
                FixedPathKind::Row(_) => match anchor.path.rsplit_once('/') {
                    Some((folder, name)) => (folder, Some(name)),
                    None => continue,
                },
            };
            let step = |places, name: &str| grant.step(places, name);
            let places = components(folder).fold(grant.start(), step);
            for number in grant.next_of(places) {
                match (&anchor.what, name) {
                    (FixedPathKind::Row(row), Some(name))
                        if names.get(number) == Some(&Some(name)) =>
                    {
                        anchored.push(RowSpan { row, first: number, last: number });
                    }
                    (FixedPathKind::Folder(nodes), _) => {
                        from.extend(nodes.iter().map(|node| (number, *node)));
                    }
                    _ => {}
                }
            }
        }
        spans(&names, &from, anchored, false)
    }

    /// Which of the segments of a pattern name something protected for what it grants.
    pub fn protected_segments(&self, grant: &PathGrant) -> Vec<bool> {
        let spans = counted(self.named_by(grant), grant.access() == Access::Read);
        let is_named = |number| spans.iter().any(|span| span.has(number));
        (0..grant.names().len()).map(is_named).collect()
    }

    /// What it means to grant this; nothing where it names nothing that is protected.
    pub fn meaning(&self, grant: &PathGrant) -> Option<String> {
        let spans = self.named_by(grant);
        let named = |access, secret| {
            let spans = counted(spans.clone(), secret);
            // What it is exactly says more than that it is in the home folder.
            let exact = spans.iter().rev().find(|span| span.row.group != Group::Home);
            Some(exact.or(spans.last())?.row).map(|row| (row.what, row.consequence(access)))
        };
        let reads = || named(Access::Read, true);
        let writes = || named(Access::Write, false);
        let (what, consequences) = match grant.access() {
            Access::Read => reads().map(|(what, reads)| (what, reads.to_string()))?,
            Access::Write => writes().map(|(what, writes)| (what, writes.to_string()))?,
            Access::ReadWrite => match (writes()?, reads()) {
                ((what, writes), None) => (what, writes.to_string()),
                ((what, writes), Some((_, reads))) => (what, format!("{writes}, and {reads}")),
            },
        };
        Some(format!("{what}: {consequences}"))
    }
}

/// The spans that have to be named: for reading, those of secrets. What lies in a folder of the same
/// group, which has to be named itself, need not be.
pub fn counted(mut spans: Vec<RowSpan>, secret: bool) -> Vec<RowSpan> {
    spans.retain(|span| !secret || span.row.is_secret());
    let is_within = |span: &RowSpan, outer: &RowSpan| {
        outer.row.group == span.row.group && outer.first <= span.first && outer.last < span.last
    };
    let all = spans.clone();
    spans.retain(|span| !all.iter().any(|outer| is_within(span, outer)));
    spans
}

/// Follows names through the table, from where they begin: the number of a name, and of a node. A
/// name that is not there is a wildcard, which names nothing.
fn spans(
    names: &[Option<&str>],
    from: &[(usize, usize)],
    mut found: Vec<RowSpan>,
    partial: bool,
) -> Vec<RowSpan> {
    let tree = tree();
    for (first, node) in from {
        let mut nodes = vec![*node];
        for (number, name) in names.iter().enumerate().skip(*first) {
            let Some(name) = name else {
                nodes.clear();
                break;
            };
            let folded = fold(name);
            for node in std::mem::take(&mut nodes) {
                tree.nodes[node].each(name, &folded, |row, next| {
                    let first = *first;
                    found.extend(row.map(|row| RowSpan { row, first, last: number }));
                    nodes.extend(next);
                });
            }
        }
        let names_some = names.len() > *first;
        if let Some(last) = names.len().checked_sub(1).filter(|_| partial && names_some) {
            let rows = nodes.iter().map(|node| tree.nodes[*node].within);
            found.extend(rows.flatten().map(|row| RowSpan { row, first: *first, last }));
        }
    }
    found.sort_by_key(|span| span.last);
    found
}

/// The table as it is gone through, name by name.
struct NameTrie {
    nodes: Vec<TrieNode>,
}

/// The nodes that paths begin at: at any place, at the root, and in the home folder.
const ROOT: usize = 1;
const HOME: usize = 2;

#[derive(Default)]
struct TrieNode {
    /// What follows, by folded names.
    names: HashMap<String, TrieEdge>,
    /// What follows for names that end so.
    ends: Vec<(&'static str, &'static ProtectedRow)>,
    /// What any hidden name is.
    hidden: Option<&'static ProtectedRow>,
    /// One of the rows that are reached from here.
    within: Option<&'static ProtectedRow>,
}

#[derive(Default)]
struct TrieEdge {
    /// What ends here, and its name where that is compared with its case.
    rows: Vec<(&'static ProtectedRow, Option<&'static str>)>,
    node: Option<usize>,
}

impl TrieNode {
    /// Gives what follows for a name: a row that ends there, and a node to go on from.
    fn each(
        &self,
        name: &str,
        folded: &str,
        mut give: impl FnMut(Option<&'static ProtectedRow>, Option<usize>),
    ) {
        if let Some(TrieEdge { rows, node }) = self.names.get(folded) {
            let name = trimmed(name);
            let is_meant = |exact: &Option<&str>| exact.is_none_or(|exact| exact == name);
            rows.iter().filter(|(_, exact)| is_meant(exact)).for_each(|(row, _)| {
                give(Some(row), None);
            });
            give(None, *node);
        }
        let is_longer = |end: &str| folded.len() > end.len() && folded.ends_with(end);
        for (_, row) in self.ends.iter().filter(|(end, _)| is_longer(end)) {
            give(Some(row), None);
        }
        let short = ShortName::of(folded);
        if let Some(short) = &short {
            for (_, TrieEdge { rows, node }) in self.names.iter().filter(|(n, _)| short.is_of(n)) {
                rows.iter().for_each(|(row, _)| give(Some(row), None));
                give(None, *node);
            }
            for (_, row) in self.ends.iter().filter(|(end, _)| short.ends(end)) {
                give(Some(row), None);
            }
        }
        if let Some(row) = self.hidden.filter(|_| folded.starts_with('.') || short.is_some()) {
            give(Some(row), None);
        }
    }
}

fn tree() -> &'static NameTrie {
    static TREE: OnceLock<NameTrie> = OnceLock::new();
    TREE.get_or_init(|| NameTrie::of(table::TABLE))
}

impl NameTrie {
    fn of(table: &'static [ProtectedRow]) -> Self {
        let mut tree = Self { nodes: (0..=HOME).map(|_| TrieNode::default()).collect() };
        for (row, pattern) in table.iter().flat_map(|row| row.names.iter().map(move |n| (row, *n)))
        {
            let (mut at, rest) = match (pattern.strip_prefix("~/"), pattern.strip_prefix('/')) {
                (Some(rest), _) => (HOME, rest),
                (_, Some(rest)) => (ROOT, rest),
                _ => (0, pattern),
            };
            let (folders, name) = rest.rsplit_once('/').unwrap_or(("", rest));
            for folder in components(folders) {
                tree.nodes[at].within.get_or_insert(row);
                let new = tree.nodes.len();
                let follows = tree.nodes[at].names.entry(fold(folder).into_owned()).or_default();
                at = *follows.node.get_or_insert(new);
                if at == new {
                    tree.nodes.push(TrieNode::default());
                }
            }
            let node = &mut tree.nodes[at];
            node.within.get_or_insert(row);
            let has_case = row.case == Case::Exact && !cfg!(target_os = "macos");
            match name.strip_prefix('*') {
                Some(end) => node.ends.push((end, row)),
                None if name == ".*" => node.hidden = Some(row),
                None => {
                    let follows = node.names.entry(fold(name).into_owned()).or_default();
                    follows.rows.push((row, has_case.then_some(name)));
                }
            }
        }
        assert!(tree.nodes.len() <= 128, "a standing has a bit for each node");
        tree
    }

    /// The nodes that a folder in the home folder stands for, apart from any other.
    fn nodes_of(&self, folder: &str) -> Vec<usize> {
        let follow = |from: usize| {
            components(folder).try_fold(from, |node, name| self.nodes[node].names.get(name)?.node)
        };
        [0, HOME].into_iter().filter_map(follow).collect()
    }
}

/// A name as names are compared: without case, and without characters that a file system may pass
/// over. What differs by more is another name wherever one of the table stands, which are all ASCII.
fn fold(name: &str) -> Cow<'_, str> {
    let name = trimmed(name);
    if name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    if name.is_ascii() {
        return Cow::Owned(name.to_ascii_lowercase());
    }
    let is_ignored = |c: &char| {
        matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
    };
    let kept = name.chars().filter(|c| !is_ignored(c));
    // Some letters are others only in capitals: `ſ` is a kind of `s`.
    kept.flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect::<String>().into()
}

/// A name without the dots and spaces at its end, which some file systems pass over.
fn trimmed(name: &str) -> &str {
    match name.trim_end_matches(['.', ' ']) {
        "" => name,
        trimmed => trimmed,
    }
}

/// A name of eight characters and three, which some file systems have for a longer one as well:
/// `TENON~1.TOM` for `tenon.toml`.
struct ShortName<'a> {
    start: &'a str,
    end: &'a str,
}

impl<'a> ShortName<'a> {
    /// A folded name that has the form.
    fn of(folded: &'a str) -> Option<Self> {
        let (start, rest) = folded.split_once('~')?;
        let (number, end) = rest.split_once('.').unwrap_or((rest, ""));
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let fits = !start.is_empty() && folded.len() <= 12 && end.len() <= 3 && is_number;
        fits.then_some(Self { start, end })
    }

    /// Whether it may be short for a name. Of many that begin with the same six letters, the later
    /// ones keep two of them, and have four digits of a checksum.
    fn is_of(&self, name: &str) -> bool {
        let name = name.trim_start_matches('.');
        let (start, end) = name.rsplit_once('.').unwrap_or((name, ""));
        let starts = start.starts_with(self.start)
            || match self.start.split_at_checked(2) {
                Some((two, sum)) => {
                    start.starts_with(two)
                        && sum.len() == 4
                        && sum.bytes().all(|byte| byte.is_ascii_hexdigit())
                }
                None => false,
            };
        starts && end.get(..3).unwrap_or(end) == self.end
    }

    /// Whether it may be short for a name with this end.
    fn ends(&self, end: &str) -> bool {
        let end = end.trim_start_matches('.');
        end.get(..3).unwrap_or(end) == self.end
    }
}

/// Whether the names of a path need no folding but for their case.
fn is_plain(path: &str) -> bool {
    // All paths that a plugin uses are held against all files that are protected.
    let has = |part: &str| memmem::find(path.as_bytes(), part.as_bytes()).is_some();
    path.is_ascii() && !path.ends_with(['.', ' ']) && !has("./") && !has(" /")
}

/// A path of folded names.
fn folded_path(path: &str) -> String {
    path.split('/').map(fold).collect::<Vec<_>>().join("/")
}

/// Whether two paths are the same, on some system.
fn is_same(path: &str, other: &str) -> bool {
    path.eq_ignore_ascii_case(other)
        || !(is_plain(path) && is_plain(other)) && folded_path(path) == folded_path(other)
}

/// Whether a path is in a folder, at any depth, on some system.
pub fn is_beneath(path: &str, folder: &str) -> bool {
    let is_in = |path: &str, folder: &str| match path.as_bytes().split_at_checked(folder.len()) {
        Some((start, [b'/', ..])) => start.eq_ignore_ascii_case(folder.as_bytes()),
        _ => false,
    };
    is_in(path, folder)
        || !(is_plain(path) && is_plain(folder)) && is_in(&folded_path(path), &folded_path(folder))
}

/// Whether a path is a folder, or in it, on some system.
pub fn is_within(path: &str, folder: &str) -> bool {
    is_same(path, folder) || is_beneath(path, folder)
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::glob::PathRights;
    use super::*;
    use crate::grant::FileRules;
    use crate::path_context::PathContext;
    use std::fs;
    use std::path::PathBuf;

    const BASE: &str = "/no/such/base";
    const USER: &str = "/no/such/home";

    fn host_environment() -> HostEnvironment {
        HostEnvironment {
            environment: [("PATH".into(), "/no/such/base/tools:bin:/no/such:/".into())].into(),
            home: Some(USER.into()),
            servers: Some("/no/such/elsewhere/programs.json".into()),
            ..HostEnvironment::default()
        }
    }

    fn grant(text: &str) -> PathGrant {
        PathGrant::parse(text, &PathContext::new(&host_environment(), Path::new(BASE)))
            .expect("it is a grant")
    }

    fn files(grants: &[&str]) -> FileRules {
        let grants = grants.iter().map(|text| grant(text)).collect();
        FileRules::new(vec![grants], Vec::new(), ProtectedPaths::of(&host_environment()))
    }

    /// A path that a name of the table is about, and the folder that a glob over it would name.
    fn example(name: &str) -> (String, &'static str) {
        let (base, name) = match (name.strip_prefix("~/"), name.strip_prefix('/')) {
            (Some(name), _) => (USER, name),
            (_, Some(name)) => ("", name),
            _ => (BASE, name),
        };
        (format!("{base}/{}", name.replace(".*", ".any").replace('*', "any")), base)
    }

    /// All names of the table, and paths that are known beforehand.
    fn all() -> Vec<(&'static ProtectedRow, String, &'static str)> {
        let names = table::TABLE.iter().flat_map(|row| row.names.iter().map(move |n| (row, *n)));
        let mut all: Vec<_> = names.map(|(row, name)| (row, example(name))).collect();
        all.push((&table::PATH, (format!("{BASE}/tools"), BASE)));
        all.push((&table::SERVERS, ("/no/such/elsewhere/programs.json".into(), "/no/such")));
        all.into_iter().map(|(row, (path, base))| (row, path, base)).collect()
    }

    #[test]
    fn a_glob_covers_nothing_of_the_table_and_what_names_it_does() {
        // A grant that names a link is one of where it leads: `/bin` is one on many systems.
        let is_link = |path: &str| fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
        for (row, path, base) in all().into_iter().filter(|(_, path, _)| !is_link(path)) {
            let check = |glob: &str, path: &str, expected: (bool, bool)| {
                let PathRights { read, write } =
                    files(&[&format!("readwrite:{glob}")]).rights(path);
                assert_eq!((read.here, write.here), expected, "{glob} of {path}");
            };
            let by_glob = (!row.is_secret(), false);
            let (_, name) = path.rsplit_once('/').unwrap();
            let inner = format!("{path}/inner");
            check(&format!("{base}/**"), &path, by_glob);
            check(&format!("{base}/**"), &inner, by_glob);
            // Each of the names is to be spelled out, but within a folder of the same group.
            let rest = path.strip_prefix(base).unwrap().trim_start_matches('/');
            let begin = if row.names.is_empty() { name } else { rest.split('/').next().unwrap() };
            for glob in [format!("{}*", &begin[..begin.len() - 1]), format!("{begin}*")] {
                let glob = path.replacen(&format!("/{begin}"), &format!("/{glob}"), 1);
                check(&glob, &path, by_glob);
            }
            check(&path, &path, (true, true));
            check(&format!("{path}/**"), &inner, (true, true));
            // What stands beside it is as free as ever.
            check(&format!("{BASE}/**"), &format!("{BASE}/src/main.rs"), (true, true));
            // In other letters it may be the same file.
            if row.case == Case::Folded && !path.starts_with(USER) {
                check(&format!("{base}/**"), &path.replace(name, &name.to_uppercase()), by_glob);
            }
            let meaning =
                |text: &str| ProtectedPaths::of(&host_environment()).meaning(&grant(text));
            let said = meaning(&format!("write:{path}/**")).unwrap_or_default();
            assert!(said.contains(": whoever writes there "), "{path}: {said}");
            let read = meaning(&format!("read:{path}"));
            assert_eq!(read.is_some(), row.is_secret(), "{path}: {read:?}");
            assert_eq!(meaning(&format!("readwrite:{base}/**")), None);
        }
    }

    #[test]
    fn what_names_a_file_and_what_does_not() {
        let check = |glob: &str, path: &str, expected: bool| {
            let rights = files(&[&format!("write:{glob}")]).rights(path);
            assert_eq!(rights.write.here, expected, "{glob} of {path}");
        };
        // All of the names that make it protected are spelled out, and what is around them need not be.
        check("/a/**/.git/**", "/a/b/c/.git/hooks/x", true);
        check("/a/*/.git/h*/x", "/a/b/.git/hooks/x", true);
        check("/a/.gi\\t/**", "/a/.git/x", true);
        check("/a/.gi*/**", "/a/.git/x", false);
        check("/a/.config/**", "/a/.config/x", true);
        check("/a/.config/**", "/a/.config/autostart/x", false);
        check("/a/.config/auto*/**", "/a/.config/autostart/x", false);
        check("/a/*/autostart/**", "/a/.config/autostart/x", false);
        check("/a/.config/autostart/*", "/a/.config/autostart/x", true);
        // Within what is named, the same group need not be named again, and another has to be.
        check("/a/.tenon/**", "/a/.tenon/plugins/x/plugin.toml", true);
        check("/a/.tenon/**", "/a/.tenon/plugins/x/.git/config", false);
        check("/a/.tenon/**/.git/**", "/a/.tenon/plugins/x/.git/config", true);
        // By other names that may lead there.
        check("/a/**", "/a/.GIT/config", false);
        check("/a/**", "/a/.g\u{200c}it/config", false);
        check("/a/**", "/a/.ba\u{17f}hrc", false);
        check("/a/**", "/a/mi\u{17f}e.toml", false);
        check("/a/.git/**", "/a/.GIT/config", false);
        check("/a/**", "/a/.git./config", false);
        check("/a/**", "/a/.git. ./config", false);
        check("/a/**", "/a/tenon.toml.", false);
        check("/a/**", "/a/tenon.toml ", false);
        check("/a/**", "/a/AGENTS.md.", false);
        check("/a/**", "/a/GIT~1/config", false);
        check("/a/**", "/a/git~12/hooks/x", false);
        check("/a/**", "/a/TENON~1.TOM", false);
        check("/a/**", "/a/te3f9a~1.tom", false);
        check("/a/**", "/a/MCP~1.JSO", false);
        check("/a/**", "/a/CONFIG~1/autost~1/x", false);
        check("/a/**", "/a/MYWORK~1.COD", false);
        check("~/**", "/no/such/home/WHAT~1/ever", false);
        check("/no/such/**", "/no/such/home./.what", false);
        check("/no/such/**", "/no/such/base./tools/x", false);
        // And by names that do not.
        check("/a/**", "/a/.gitignore", true);
        check("/a/**", "/a/readme~1.txt", true);
        check("/a/**", "/a/x~/y~1~", true);
        check("/a/**", "/a/...", true);
        check("/a/**", "/a/git/hooks/x", true);
        check("/a/**", "/a/autostart/x", true);
        check("/a/**", "/a/docs/.github/workflows/ci.yml", true);
        check("/a/**", "/a/.gi\u{442}/config", true);
        #[cfg(not(target_os = "macos"))]
        check("/a/**", "/a/agents.md", true);
        // In the home folder, all that is hidden.
        check("~/**", "/no/such/home/.what/ever", false);
        check("~/.what/**", "/no/such/home/.what/ever", true);
        check("/a/**", "/a/.what/ever", true);
        check("/**", "/no/such/HOME/.what", false);
        // Folders of `PATH`, but for those that everything is in.
        check("/no/such/base/**", "/no/such/base/Tools/x", false);
        check("/no/such/**", "/no/such/x", true);
    }

    #[test]
    fn what_is_granted_is_explained() {
        let check = |text: &str, expected: &str| {
            let meaning = ProtectedPaths::of(&host_environment()).meaning(&grant(text));
            assert_eq!(meaning.unwrap_or_default(), expected, "{text}");
        };
        let git = "settings and hooks of git, which name programs that it runs: whoever writes \
                   there runs code as you";
        check("write:/p/.git/hooks/**", git);
        check("readwrite:/p/**/.git/config", git);
        check("write:/no/**/.GIT/config", git);
        check("read:/p/.git/config", "");
        check("write:/p/**", "");
        check("read:~/.ssh/*", "keys, passwords and tokens: whoever reads them can pass for you");
        check(
            "readwrite:~/.ssh/known_hosts",
            "keys, passwords and tokens: whoever writes there decides who can pass for you, and \
             whoever reads them can pass for you",
        );
        check(
            "write:~/.some/thing",
            "settings and state of programs, in the home folder: whoever writes there runs code as \
             you",
        );
        check(
            "write:/no/such/*/.some/thing",
            "settings and state of programs, in the home folder: whoever writes there runs code as \
             you",
        );
        check(
            "write:/p/CLAUDE.md",
            "instructions that agents follow: whoever writes there tells agents what to do as you",
        );
        check(
            "write:/p/tenon.toml",
            "the plugins and servers of a project: whoever writes there decides what Tenon starts \
             and allows",
        );
    }

    #[test]
    fn the_table_is_sound() {
        let names: Vec<&str> = table::TABLE.iter().flat_map(|row| row.names).copied().collect();
        for (number, name) in names.iter().enumerate() {
            assert!(!names[..number].contains(name), "{name} is there twice");
            let rest = name.trim_start_matches("~/").trim_start_matches('/');
            let rest = if rest == ".*" { "x" } else { rest.strip_prefix('*').unwrap_or(rest) };
            assert!(!rest.contains('*') && rest.is_ascii() && !rest.ends_with('/'), "{name}");
        }
    }

    /// The names of files in the sources of what reads configuration.
    fn names_in(path: &Path, names: &mut Vec<(PathBuf, String)>) {
        if path.is_dir() {
            let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
            return entries.for_each(|path| names_in(&path, names));
        }
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        for literal in lines.flat_map(|line| line.split('"').skip(1).step_by(2)) {
            let name = literal.rsplit('/').next().unwrap_or(literal);
            let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            let has_end = [".toml", ".json", ".jsonc", ".lock"].iter().any(|e| name.ends_with(e));
            let is_folder = literal.starts_with('.') && literal.len() > 1;
            if name.chars().all(is_name) && (has_end && name.len() > 5 || is_folder) {
                names.push((path.into(), literal.into()));
            }
        }
    }

    #[test]
    fn whatever_discovery_reads_is_in_the_table() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut names = Vec::new();
        for path in
            ["discover", "entry", "manifest.rs", "lock.rs", "config.rs", "../../src/platform"]
        {
            names_in(&source.join(path), &mut names);
        }
        // What a server's arguments may name is not read by the host.
        names.retain(|(path, _)| !path.ends_with("discover/arguments.rs"));
        // The user's own are in folders that are never for plugins, or known beforehand.
        let of_user = ["config.toml"];
        for known in ["plugin.toml", "tenon.lock", ".mcp.json", ".tenon/plugins", "tenon.toml"] {
            assert!(names.iter().any(|(_, name)| name == known), "{known} is not found: {names:?}");
        }
        for (file, name) in names.iter().filter(|(_, name)| !of_user.contains(&name.as_str())) {
            let rights = files(&["write:/p/**"]).rights(&format!("/p/{name}"));
            assert!(!rights.write.here, "{name} in {} is not protected", file.display());
        }
    }
}
