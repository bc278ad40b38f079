//! `read:`, `write:` and `readwrite:` globs over whole paths, and what they say of a path.
//!
//! A path is what a name *resolves* to: absolute, without links, `.` and `..`. A glob is made of
//! segments, as a path is, and has two wildcards:
//!
//! * `**`, alone in its segment, stands for any number of segments, none included: `/data/**` is the
//!   folder `/data` and all that is in it;
//! * `*` stands for any text within one segment, also in names that begin with a dot.
//!
//! A `\` makes the character after it mean itself. The other wildcards of shells (`?`, `[a-z]`, `{a,b}`)
//! are refused: a person reads a grant before approving it, and one grant can be compared exactly with
//! another ([`PathGrant::covers`]).

#[cfg(any(test, fuzzing, feature = "testing"))]
pub(super) mod fuzz;

use std::collections::HashSet;
use std::fmt;
use std::path::{Path, PathBuf};
use tenon_types::text::fits_with;

use crate::expand;
use crate::path_context::PathContext;

/// The longest glob, in segments.
const MAX_SEGMENTS: usize = 100;

/// The most steps in which one glob is compared with another.
const MAX_COMPARED: usize = 10_000;

/// The longest glob, in bytes, and the longest segment.
const MAX_GLOB_BYTES: usize = 4096;
const MAX_SEGMENT_BYTES: usize = 255;

/// A glob, and what may be done with the files that it covers.
#[derive(Debug, Clone)]
pub struct PathGrant {
    access: Access,
    segments: Vec<Segment>,
    /// As it is approved: with its beginning resolved.
    text: String,
    /// The folder in which it begins, as it was written and as it resolves.
    base: (String, String),
}

/// What may be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    ReadWrite,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    /// `**`
    Any,
    Literal(String),
    /// A name with [`WILDCARD`] for each `*`.
    Wildcards(String),
}

/// Stands for a `*` in [`Segment::Wildcards`]: no name has it.
const WILDCARD: char = '/';

/// Why a text is no grant of files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathGrantError {
    #[error("it must begin with `read:`, `write:` or `readwrite:`")]
    Access,
    #[error(transparent)]
    Expand(#[from] expand::ExpandError),
    #[error("the path is empty")]
    Empty,
    #[error("its path contains `..`; write the path that it leads to")]
    Climbs,
    #[error("`**` must stand alone between two `/`")]
    StarStar,
    #[error(
        "it has more than {MAX_SEGMENTS} segments, or more than {MAX_GLOB_BYTES} bytes, or {MAX_SEGMENT_BYTES} in one"
    )]
    Long,
    #[error("what was approved does not begin with a slash")]
    Relative,
    #[error("its path is not UTF-8")]
    Utf8,
    #[error(
        "`{0}` is not a wildcard here; write one value for each name, or `\\{0}` for the character"
    )]
    Wildcard(char),
    #[error("it ends with a `\\`, which must stand before a character")]
    Escape,
}

impl PathGrant {
    /// Reads a grant. What comes before the first wildcard is resolved as far as it exists: links that
    /// are changed later do not change what was granted.
    pub fn parse(text: &str, context: &PathContext<'_>) -> Result<Self, PathGrantError> {
        let (access, glob) = text.split_once(':').ok_or(PathGrantError::Access)?;
        let access = Access::parse(access)?;
        let PathContext { host_environment, folder, data_folder } = *context;
        let glob = expand::glob(glob, host_environment, data_folder)?;
        let glob = match glob.starts_with('/') {
            true => glob,
            false => {
                let folder = std::fs::canonicalize(folder)
                    .or_else(|_| std::path::absolute(folder))
                    .map_err(|_| PathGrantError::Utf8)?;
                let folder = folder.to_str().ok_or(PathGrantError::Utf8)?;
                format!("{}/{glob}", expand::escaped(folder))
            }
        };
        Self::of(access, &glob, resolve)
    }

    /// A grant of what an absolute glob covers, whose literal beginning resolves in this way.
    fn of(
        access: Access,
        glob: &str,
        resolve: impl Fn(&Path) -> Option<String>,
    ) -> Result<Self, PathGrantError> {
        if glob.len() > MAX_GLOB_BYTES {
            return Err(PathGrantError::Long);
        }
        let mut written: Vec<Segment> =
            components(glob).map(Segment::parse).collect::<Result<_, _>>()?;
        // However they are written: `\.` is a dot.
        written.retain(|segment| segment.name() != Some("."));
        if written.is_empty() {
            return Err(PathGrantError::Empty);
        }
        if written.iter().any(|segment| segment.name() == Some("..")) {
            return Err(PathGrantError::Climbs);
        }
        let literals = written.iter().map_while(Segment::name).count();
        let path: PathBuf = std::iter::once("/".to_string())
            .chain(written.iter().map_while(Segment::name).map(str::to_string))
            .collect();
        let resolved = resolve(&path).ok_or(PathGrantError::Utf8)?;
        // The folder that a single file lies in is where it is looked for.
        let folder_of = |path: &str| match literals == written.len() {
            true => path.rsplit_once('/').map_or("", |(folder, _)| folder).to_string(),
            false => path.trim_end_matches('/').to_string(),
        };
        let path = path.to_str().ok_or(PathGrantError::Utf8)?;
        let base = (folder_of(path), folder_of(&resolved));
        let mut segments: Vec<Segment> =
            components(&resolved).map(|name| Segment::Literal(name.into())).collect();
        segments.extend(written.into_iter().skip(literals));
        if segments.len() > MAX_SEGMENTS {
            return Err(PathGrantError::Long);
        }
        let glob: String = segments.iter().map(|segment| format!("/{}", segment.glob())).collect();
        Ok(Self { access, segments, text: format!("{access}:{glob}"), base })
    }

    /// Reads a grant as it was approved: nothing in it is put for anything, and no link in it is
    /// followed, so that it means now what it meant then.
    pub fn parse_approved(text: &str) -> Result<Self, PathGrantError> {
        let (access, glob) = text.split_once(':').ok_or(PathGrantError::Access)?;
        if !glob.starts_with('/') {
            return Err(PathGrantError::Relative);
        }
        Self::of(Access::parse(access)?, glob, |path| path.to_str().map(str::to_string))
    }

    /// The grant as it is approved.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The folder in which it begins, as it was written and as it resolves.
    pub fn base(&self) -> (&str, &str) {
        (&self.base.0, &self.base.1)
    }

    /// The folder or the file that holds all that the glob covers, and whether it covers all that is in there. Links in it are
    /// resolved.
    pub fn holder(&self) -> (PathBuf, bool) {
        let names = self.segments.iter().map_while(Segment::name);
        let path = std::iter::once("/").chain(names).collect();
        let rest = &self.segments[self.segments.iter().map_while(Segment::name).count()..];
        (path, matches!(rest, [] | [Segment::Any]))
    }

    /// Where the glob stands at the root of all files.
    pub fn start(&self) -> GlobState {
        GlobState(self.closure(0))
    }

    /// What it grants.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Its segments, as far as they are names and no wildcards.
    pub fn names(&self) -> Vec<Option<&str>> {
        self.segments.iter().map(Segment::name).collect()
    }

    /// The segments that what comes next is held against, as numbers.
    pub fn next_of(&self, GlobState(places): GlobState) -> impl Iterator<Item = usize> {
        (0..self.segments.len()).filter(move |number| places & (1 << number) != 0)
    }

    /// Where the glob stands after one more name, which it has to spell out.
    pub fn step_by_name(&self, places: GlobState, name: &str) -> GlobState {
        self.advance(
            places,
            |segment| matches!(segment, Segment::Literal(literal) if literal == name),
        )
    }

    /// Where the glob stands after one more name.
    pub fn step(&self, places: GlobState, name: &str) -> GlobState {
        self.advance(places, |segment| match segment {
            Segment::Any => true,
            Segment::Literal(literal) => literal == name,
            Segment::Wildcards(pattern) => fits_with(WILDCARD, pattern, name),
        })
    }

    /// Where the glob stands after one more segment. `takes` says which of its own segments take that one.
    fn advance(&self, places: GlobState, takes: impl Fn(&Segment) -> bool) -> GlobState {
        let taking = self.next_of(places).filter(|i| takes(&self.segments[*i]));
        let after = |i: usize| match &self.segments[i] {
            Segment::Any => i,
            Segment::Literal(_) | Segment::Wildcards(_) => i + 1,
        };
        GlobState(taking.fold(0, |next, i| next | self.closure(after(i))))
    }

    /// Whether this grant allows all that another one does, with every path that it covers. Segments of the
    /// other one for which `by_name` is true must be spelled out here.
    ///
    /// The answer is exact, except that two long globs with many `**` may be too entangled to be
    /// compared; the answer is no then.
    pub fn covers(&self, other: &Self, by_name: &[bool]) -> bool {
        if !self.access.includes(other.access) {
            return false;
        }
        // Where this one can stand after the other one's segments up to a number. A `**` of the other one
        // stands for any names: the worst are those that nothing but a wildcard takes.
        let mut to_compare = vec![(0, self.start())];
        let mut compared = HashSet::new();
        for _ in 0..MAX_COMPARED {
            let Some((number, places)) = to_compare.pop() else { return true };
            if places.0 == 0 {
                return false;
            }
            if !compared.insert((number, places.0)) {
                continue;
            }
            let by_name = by_name.get(number) == Some(&true);
            match other.segments.get(number) {
                None if places.0 & (1 << self.segments.len()) == 0 => return false,
                None => {}
                Some(Segment::Any) => {
                    let unknown = Segment::Wildcards(WILDCARD.into());
                    to_compare.push((number + 1, places));
                    to_compare
                        .push((number, self.advance(places, |segment| segment.covers(&unknown))));
                }
                Some(wanted) if by_name => {
                    to_compare
                        .push((number + 1, self.advance(places, |segment| segment == wanted)));
                }
                Some(wanted) => {
                    to_compare
                        .push((number + 1, self.advance(places, |segment| segment.covers(wanted))));
                }
            }
        }
        false
    }

    /// The same glob once for reading and once for writing, as far as it grants these.
    pub fn by_access(&self) -> impl Iterator<Item = Self> {
        let accesses = [Access::Read, Access::Write];
        let granted = accesses.into_iter().filter(|access| self.access.includes(*access));
        granted.map(|access| Self { access, ..self.clone() })
    }

    /// What the glob says of a path that it stands so after.
    fn cover(&self, GlobState(places): GlobState) -> PathCoverage {
        let end = self.segments.len();
        let open = self.segments.iter().rev().take_while(|s| matches!(s, Segment::Any)).count();
        let before = |place: usize| (1 << place) - 1;
        PathCoverage {
            here: places & (1 << end) != 0,
            below: match places & before(end) {
                0 => CoverageBelow::Nothing,
                places if places & !before(end - open) != 0 => CoverageBelow::All,
                _ => CoverageBelow::Some,
            },
        }
    }

    /// The places that are reached without a name from this one: `**` may stand for nothing.
    fn closure(&self, place: usize) -> u128 {
        let skipped =
            self.segments[place..].iter().take_while(|s| matches!(s, Segment::Any)).count();
        (place..=place + skipped).fold(0, |places, i| places | 1 << i)
    }
}

impl Access {
    fn parse(text: &str) -> Result<Self, PathGrantError> {
        match text {
            "read" => Ok(Self::Read),
            "write" => Ok(Self::Write),
            "readwrite" => Ok(Self::ReadWrite),
            _ => Err(PathGrantError::Access),
        }
    }

    /// Whether reading is allowed, and whether writing is.
    pub fn parts(self) -> (bool, bool) {
        (self != Self::Write, self != Self::Read)
    }

    /// Whether what the other one allows is allowed.
    fn includes(self, other: Self) -> bool {
        self == Self::ReadWrite || self == other
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::ReadWrite => "readwrite",
        })
    }
}

impl Segment {
    fn parse(text: &str) -> Result<Self, PathGrantError> {
        if text.len() > MAX_SEGMENT_BYTES {
            return Err(PathGrantError::Long);
        }
        if text == "**" {
            return Ok(Self::Any);
        }
        if text.contains("**") {
            return Err(PathGrantError::StarStar);
        }
        let (mut name, mut has_wildcards) = (String::with_capacity(text.len()), false);
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            match c {
                '*' => {
                    name.push(WILDCARD);
                    has_wildcards = true;
                }
                '\\' => name.push(rest.next().ok_or(PathGrantError::Escape)?),
                c if expand::GLOB_CHARACTERS.contains(&c) => {
                    return Err(PathGrantError::Wildcard(c));
                }
                c => name.push(c),
            }
        }
        Ok(if has_wildcards { Self::Wildcards(name) } else { Self::Literal(name) })
    }

    /// Whether every name that another segment stands for is one that this one stands for.
    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (Self::Literal(name), other) => matches!(other, Self::Literal(own) if own == name),
            (Self::Wildcards(pattern), Self::Literal(text) | Self::Wildcards(text)) => {
                fits_with(WILDCARD, pattern, text)
            }
        }
    }

    /// The name that it spells out, if it does.
    fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(name) => Some(name),
            Self::Any | Self::Wildcards(_) => None,
        }
    }

    /// The segment as it stands in a glob.
    fn glob(&self) -> String {
        match self {
            Self::Any => "**".into(),
            Self::Literal(literal) => expand::escaped(literal),
            Self::Wildcards(pattern) => {
                pattern.split(WILDCARD).map(expand::escaped).collect::<Vec<_>>().join("*")
            }
        }
    }
}

/// What a path resolves to, as far as it exists.
pub fn resolve(path: &Path) -> Option<String> {
    let existing = path.ancestors().find_map(|ancestor| {
        let real = std::fs::canonicalize(ancestor).ok()?;
        Some((real, path.strip_prefix(ancestor).ok()?))
    });
    let (real, rest) = existing.unwrap_or((PathBuf::from("/"), path.strip_prefix("/").ok()?));
    // Joined with nothing, a path would end in a slash.
    let resolved = if rest.as_os_str().is_empty() { real } else { real.join(rest) };
    Some(resolved.to_str()?.to_string())
}

/// The names in an absolute path.
pub fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// Where a glob stands after the names of a path. Bit `i` is for: what comes next is held against
/// segment `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GlobState(u128);

/// What globs say of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathCoverage {
    /// Whether they cover it.
    pub here: bool,
    /// What they cover of what could be beneath it.
    pub below: CoverageBelow,
}

/// What globs cover beneath a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum CoverageBelow {
    #[default]
    Nothing,
    Some,
    All,
}

impl PathCoverage {
    fn or(self, other: Self) -> Self {
        Self { here: self.here || other.here, below: self.below.max(other.below) }
    }

    fn and(self, other: Self) -> Self {
        Self { here: self.here && other.here, below: self.below.min(other.below) }
    }

    /// Whether they cover it, or anything beneath it.
    pub fn any(self) -> bool {
        self.here || self.below > CoverageBelow::Nothing
    }

    /// Whether they cover it and all that could be beneath it.
    pub fn tree(self) -> bool {
        self.here && self.below == CoverageBelow::All
    }
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PathRights {
    /// What may be read.
    pub read: PathCoverage,
    /// What may be written.
    pub write: PathCoverage,
}

impl PathRights {
    /// What these grants allow that stand so. What all of them cover together as a tree is not put
    /// together.
    pub fn of<'a>(grants: impl Iterator<Item = (&'a PathGrant, GlobState)>) -> Self {
        grants.fold(Self::default(), |rights, (grant, places)| {
            let cover = grant.cover(places);
            let when = |holds: bool| if holds { cover } else { PathCoverage::default() };
            Self {
                read: rights.read.or(when(grant.access != Access::Write)),
                write: rights.write.or(when(grant.access != Access::Read)),
            }
        })
    }

    /// What both allow.
    pub fn and(self, other: Self) -> Self {
        Self { read: self.read.and(other.read), write: self.write.and(other.write) }
    }

    /// The same, where something beneath is not covered.
    pub fn without_some_beneath(mut self) -> Self {
        for cover in [&mut self.read, &mut self.write] {
            cover.below = cover.below.min(CoverageBelow::Some);
        }
        self
    }

    /// Whether anything at all is allowed, here or beneath.
    pub fn any(self) -> bool {
        self.read.any() || self.write.any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_environment::HostEnvironment;
    use proptest::prelude::*;

    fn cover(grant: &PathGrant, path: &str) -> PathCoverage {
        grant.cover(components(path).fold(grant.start(), |places, name| grant.step(places, name)))
    }

    fn grant(text: &str) -> Result<PathGrant, PathGrantError> {
        let environment = [("V".into(), "/no/such/[v]".into())].into();
        let home = Some("/no/such/home".into());
        let host_environment = HostEnvironment { environment, home, ..HostEnvironment::default() };
        PathGrant::parse(text, &PathContext::new(&host_environment, Path::new("/no/such/plugin")))
    }

    #[test]
    fn a_folder_holds_what_a_glob_covers() {
        let check = |glob: &str, holder: &str, is_exact: bool| {
            let found = grant(&format!("read:{glob}")).expect("it is a glob").holder();
            assert_eq!(found, (holder.into(), is_exact), "{glob}");
        };
        check("/no/such/a", "/no/such/a", true);
        check("/no/such/**", "/no/such", true);
        check("/no/such/*", "/no/such", false);
        check("/no/such/*.md", "/no/such", false);
        check("/no/such/**/a", "/no/such", false);
        check("/no/such/*/a/**", "/no/such", false);
        check("/**", "/", true);
        for (access, parts) in
            [("read", (true, false)), ("write", (false, true)), ("readwrite", (true, true))]
        {
            let grant = grant(&format!("{access}:/no/such/a")).expect("it is a glob");
            assert_eq!(grant.access().parts(), parts, "{access}");
        }
    }

    #[test]
    fn what_a_glob_covers() {
        let check = |glob: &str, path: &str, here: bool, below: CoverageBelow| {
            let cover = cover(&grant(&format!("read:{glob}")).expect("it is a glob"), path);
            assert_eq!(cover, PathCoverage { here, below }, "{glob} {path}");
        };
        use CoverageBelow::{All, Nothing, Some};
        check("/a/b", "/a/b", true, Nothing);
        check("/a/b", "/a", false, Some);
        check("/a/b", "/", false, Some);
        check("/a/b", "/a/c", false, Nothing);
        check("/a/b", "/a/b/c", false, Nothing);
        check("/a/b", "/a/B", false, Nothing);
        check("/a/**", "/a", true, All);
        check("/a/**", "/a/b/c", true, All);
        check("/a/**", "/ab", false, Nothing);
        check("/a/*", "/a", false, Some);
        check("/a/*", "/a/b", true, Nothing);
        check("/a/*", "/a/.hidden", true, Nothing);
        check("/a/*", "/a/b/c", false, Nothing);
        check("/a/**/*.md", "/a", false, Some);
        check("/a/**/*.md", "/a/x.md", true, Some);
        check("/a/**/*.md", "/a/b/c/x.md", true, Some);
        check("/a/**/*.md", "/a/b/c/x.txt", false, Some);
        check("/a/*é*", "/a/xéy", true, Nothing);
        check("/a/*x", "/a/x", true, Nothing);
        check("/a/x*x", "/a/x", false, Nothing);
        check("/a/x*y*z", "/a/xzyz", true, Nothing);
        check("/a/\\*", "/a/*", true, Nothing);
        check("/a/\\*", "/a/x", false, Nothing);
        check("/a/\\[*\\]", "/a/[x]", true, Nothing);
        check("/a/\\{x,y\\}", "/a/{x,y}", true, Nothing);
        check("/a/*", "/a/two\nlines", true, Nothing);
        check("/a/*/c/**", "/a/b/c/d", true, All);
        check("/a/*/c/**", "/a/b", false, Some);
        check("/**", "/etc/passwd", true, All);
        check("/a/**/b/**/c", "/a/x/b/c", true, Some);
        check("~/n/*", "/no/such/home/n/x", true, Nothing);
        check("${V}/*", "/no/such/[v]/x", true, Nothing);
        check("${V}/*", "/no/such/v/x", false, Nothing);
        check("data/*", "/no/such/plugin/data/x", true, Nothing);
        check("./data//x", "/no/such/plugin/data/x", true, Nothing);
    }

    #[test]
    fn a_tree_is_all_of_what_is_here_and_beneath() {
        let all = cover(&grant("read:/a/**").unwrap(), "/a");
        assert!(all.tree());
        assert!(!PathCoverage { here: false, ..all }.tree());
        assert!(!PathCoverage { below: CoverageBelow::Some, ..all }.tree());
        let some = PathCoverage { below: CoverageBelow::Some, ..all };
        let rights = PathRights { read: all, write: PathCoverage::default() };
        let expected = PathRights { read: some, write: PathCoverage::default() };
        assert_eq!(rights.without_some_beneath(), expected);
    }

    #[test]
    fn a_glob_has_an_end_in_names_and_in_bytes() {
        let check = |glob: &str, expected: bool| {
            let is_long = matches!(grant(&format!("read:{glob}")), Err(PathGrantError::Long));
            assert_eq!(is_long, expected, "{} bytes", glob.len());
        };
        check(&"/a".repeat(MAX_SEGMENTS), false);
        check(&"/a".repeat(MAX_SEGMENTS + 1), true);
        let name = format!("/{}", "x".repeat(MAX_SEGMENT_BYTES));
        let longest = name.repeat(MAX_GLOB_BYTES / name.len());
        assert_eq!(longest.len(), MAX_GLOB_BYTES);
        check(&longest, false);
        check(&format!("{longest}/"), true);
    }

    #[test]
    fn what_is_no_grant() {
        let check = |text: &str, expected: PathGrantError| {
            assert_eq!(grant(text).err(), Some(expected), "{text}");
        };
        check("/a", PathGrantError::Access);
        check("reed:/a", PathGrantError::Access);
        check("read:/", PathGrantError::Empty);
        check("read:/.//\\.", PathGrantError::Empty);
        check("read:/a/../b", PathGrantError::Climbs);
        check("read:/a/.\\./b", PathGrantError::Climbs);
        check("read:/a/x**", PathGrantError::StarStar);
        check(&format!("read:{}", "/a".repeat(MAX_SEGMENTS + 1)), PathGrantError::Long);
        check(&format!("read:/{}", "*".repeat(1_000_000)), PathGrantError::Long);
        check(&format!("read:/{}", "x".repeat(MAX_SEGMENT_BYTES + 1)), PathGrantError::Long);
        check("read:/a/{b,c}", PathGrantError::Wildcard('{'));
        check("read:/a/b}", PathGrantError::Wildcard('}'));
        check("read:/a/[bc]", PathGrantError::Wildcard('['));
        check("read:/a/b]", PathGrantError::Wildcard(']'));
        check("read:/a/b?", PathGrantError::Wildcard('?'));
        check("read:/a/b\\", PathGrantError::Escape);
        assert!(matches!(grant("read:${NOPE}/x"), Err(PathGrantError::Expand(_))));
    }

    #[test]
    fn a_grant_means_the_same_when_it_is_read_again() {
        let check = |text: &str, expected: &str| {
            assert_eq!(grant(text).unwrap().text(), expected);
            assert_eq!(grant(expected).unwrap().text(), expected);
        };
        check("read:/no/such/././\\./x", "read:/no/such/x");
        check("read:/no/such/*\\*", "read:/no/such/*\\*");
        check("read:/no/such/\\*/x", "read:/no/such/\\*/x");
        check("read:/no/such/\\x\\*/*\\y", "read:/no/such/x\\*/*y");
        check("read:/no/such/\\\\x", "read:/no/such/\\\\x");
    }

    #[test]
    fn a_grant_is_shown_with_its_beginning_resolved_and_means_the_same_when_it_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("b[1]")).unwrap();
        std::os::unix::fs::symlink("b[1]", real.join("link")).unwrap();
        let grant = grant(&format!("readwrite:{}/link/new/*.md", real.display())).unwrap();
        let expected = format!("readwrite:{}/b\\[1\\]/new/*.md", real.display());
        assert_eq!(grant.text(), expected);
        let real = real.display();
        assert_eq!(grant.base(), (&*format!("{real}/link/new"), &*format!("{real}/b[1]/new")));
        let again = PathGrant::parse(&expected, &PathContext::in_folder(Path::new("/"))).unwrap();
        assert_eq!(again.text(), expected);
        assert!(cover(&again, &format!("{real}/b[1]/new/x.md")).here);
    }

    /// Whether a glob covers a path, by the definition.
    fn model(glob: &[&str], path: &[&str]) -> bool {
        match (glob, path) {
            ([], path) => path.is_empty(),
            (["**", rest @ ..], path) => {
                (0..=path.len()).any(|skipped| model(rest, &path[skipped..]))
            }
            ([segment, rest @ ..], [name, below @ ..]) => {
                tenon_types::text::fits(segment, name) && model(rest, below)
            }
            (_, []) => false,
        }
    }

    fn segments(text: &str) -> Vec<&str> {
        components(text).collect()
    }

    #[test]
    fn one_glob_is_compared_with_another() {
        let check = |wide: &str, narrow: &str, expected: bool| {
            let [wide, narrow] = [wide, narrow].map(|glob| grant(&format!("read:{glob}")).unwrap());
            assert_eq!(wide.covers(&narrow, &[]), expected, "{} {}", wide.text(), narrow.text());
        };
        check("/a/*", "/a/b", true);
        check("/a/b", "/a/*", false);
        check("/a/*", "/a/**", false);
        check("/a/**", "/a", true);
        check("/a/**", "/a/*/b", true);
        check("/a/*b*", "/a/x*b", true);
        check("/a/*b*", "/a/x*", false);
        check("/a/*", "/a/\\*", true);
        check("/a/\\*", "/a/*", false);
        // A `**` may stand for nothing, which a `*` does not.
        check("/a/*/**", "/a/**", false);
        check("/a/*/**", "/a/**/*", true);
        check("/a/**/*", "/a/*/**", true);
        check("/a/**/b", "/a/**/*/b", true);
        check("/a/**/*/b", "/a/**/b", false);
        check("/a/**/b/**", "/a/**/c/b", true);
        check("/a/**/b/**", "/a/**/c", false);
        check("/a/**/**", "/a/b", true);
        check("/a/**/b/*/*/**", "/a/**/b/**/b/*/*", true);
    }

    #[test]
    fn globs_that_are_too_entangled_are_not_compared() {
        let any = "/*".repeat(20);
        let [wide, narrow] =
            [format!("read:/x/**/a{any}/**"), format!("read:/x{}{any}", "/**/a".repeat(35))];
        let began = std::time::Instant::now();
        assert!(!grant(&wide).unwrap().covers(&grant(&narrow).unwrap(), &[]));
        assert!(began.elapsed() < std::time::Duration::from_secs(20));
    }

    proptest! {
        #[test]
        fn globs_cover_what_the_model_says(
            glob in "(/(a|b|\\*|\\*\\*|[ab]\\*|\\*[ab])){1,6}",
            path in "(/(a|b|ab|ba)){1,6}",
        ) {
            let cover = cover(&grant(&format!("read:{glob}")).unwrap(), &path);
            prop_assert_eq!(cover.here, model(&segments(&glob), &segments(&path)), "{} {}", glob, path);
        }

        #[test]
        fn what_is_beneath_agrees_with_what_is_covered_there(
            glob in "(/(a|b|\\*|\\*\\*|[ab]\\*)){1,5}",
            path in "(/(a|b|ab)){1,4}",
            deeper in "(/(a|b|ab)){1,3}",
        ) {
            let grant = grant(&format!("read:{glob}")).unwrap();
            let (here, beneath) = (cover(&grant, &path), cover(&grant, &format!("{path}{deeper}")));
            prop_assert!(!beneath.here || here.below > CoverageBelow::Nothing);
            prop_assert!(here.below < CoverageBelow::All || beneath.tree());
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}") {
            let _ = grant(&text);
            let _ = grant(&format!("read:{text}"));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// What is said to be covered is; and where it is not, there is a path that shows it.
        #[test]
        fn a_glob_covers_another_if_it_covers_all_of_its_paths(
            wide in "(/(a|b|\\*|\\*\\*|a\\*|\\*a)){1,4}",
            narrow in "(/(a|b|\\*|\\*\\*|a\\*|\\*a)){1,4}",
        ) {
            let parse = |glob: &str| grant(&format!("read:{glob}")).unwrap();
            let names = ["a", "b", "ax", "xa", "axa", "x"];
            let is_witness = |path: &Vec<&str>| {
                model(&segments(&narrow), path) && !model(&segments(&wide), path)
            };
            let mut paths = vec![Vec::new()];
            let mut witness = None;
            while paths[0].len() < 6 {
                witness = paths.iter().find(|path| is_witness(path)).cloned();
                if witness.is_some() {
                    break;
                }
                let longer = |path: &Vec<&'static str>| {
                    names.map(|name| [path.as_slice(), &[name]].concat())
                };
                paths = paths.iter().flat_map(longer).collect();
            }
            let covers = parse(&wide).covers(&parse(&narrow), &[]);
            prop_assert_eq!(covers, witness.is_none(), "{} {} {:?}", wide, narrow, witness);
        }
    }
}
