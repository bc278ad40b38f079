//! `read:`, `write:` and `readwrite:` globs over whole paths, and what they say of a path.
//!
//! A path is what a name *resolves* to: absolute, without links, `.` and `..`. A glob is made of
//! segments, as a path is: `**` alone stands for any number of them, this one included, so that
//! `/data/**` is the folder and all that is in it; within a segment `*`, `?`, `[a-z]` and `{a,b}`
//! mean what they mean to a shell, but that `*` takes hidden names as well. `?` and brackets stand for
//! one character, however many bytes it has.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use globset::GlobBuilder;
use regex::{Regex, RegexBuilder};
use std::fmt;
use std::path::{Path, PathBuf};

use crate::expand;
use crate::host_environment::HostEnvironment;

/// The longest glob, in segments.
const MAX_SEGMENTS: usize = 100;

/// The most memory that the regular expression of one segment takes, in bytes.
const MAX_EXPRESSION_BYTES: usize = 256 << 10;

/// The longest glob, in bytes, and the longest segment.
const MAX_GLOB_BYTES: usize = 4096;
const MAX_SEGMENT_BYTES: usize = 255;

/// A glob, and what may be done with the files that it covers.
#[derive(Debug, Clone)]
pub(crate) struct PathGrant {
    access: Access,
    segments: Vec<Segment>,
    /// As it is approved: with its beginning resolved.
    text: String,
    /// The folder in which it begins, as it was written and as it resolves.
    base: (String, String),
}

/// What may be done with files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
    ReadWrite,
}

#[derive(Debug, Clone)]
enum Segment {
    /// `**`
    Any,
    Literal(String),
    Glob {
        text: String,
        matcher: Regex,
    },
}

/// Why a text is no grant of files.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathGrantError {
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
    #[error("{0}")]
    Glob(String),
}

impl PathGrant {
    /// Reads a grant. `~` and variables are those of the surroundings, relative paths begin in the
    /// folder, and what comes before the first wildcard is resolved as far as it exists: links that
    /// are changed later do not change what was granted.
    pub(crate) fn parse(
        text: &str,
        host_environment: &HostEnvironment,
        folder: &Path,
    ) -> Result<Self, PathGrantError> {
        let (access, glob) = text.split_once(':').ok_or(PathGrantError::Access)?;
        let access = Access::parse(access)?;
        let glob = expand::glob(glob, host_environment)?;
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
        // However they are written: `[.]` and `\.` are a dot.
        let is = |segment: &Segment, name| matches!(segment, Segment::Literal(own) if own == name);
        written.retain(|segment| !is(segment, "."));
        if written.is_empty() {
            return Err(PathGrantError::Empty);
        }
        if written.iter().any(|segment| is(segment, "..")) {
            return Err(PathGrantError::Climbs);
        }
        let literal = |segment: &Segment| matches!(segment, Segment::Literal(_));
        let literals = written.iter().take_while(|segment| literal(segment)).count();
        let path: PathBuf = std::iter::once("/".to_string())
            .chain(written[..literals].iter().map(Segment::to_string))
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
    pub(crate) fn parse_approved(text: &str) -> Result<Self, PathGrantError> {
        let (access, glob) = text.split_once(':').ok_or(PathGrantError::Access)?;
        if !glob.starts_with('/') {
            return Err(PathGrantError::Relative);
        }
        Self::of(Access::parse(access)?, glob, |path| path.to_str().map(str::to_string))
    }

    /// The grant as it is approved.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The folder in which it begins, as it was written and as it resolves.
    pub(super) fn base(&self) -> (&str, &str) {
        (&self.base.0, &self.base.1)
    }

    /// Where the glob stands at the root of all files.
    pub(super) fn start(&self) -> Places {
        Places(self.closure(0))
    }

    /// What it grants.
    pub(super) fn access(&self) -> Access {
        self.access
    }

    /// Its segments, as far as they are names and no wildcards.
    pub(super) fn names(&self) -> Vec<Option<&str>> {
        let names = self.segments.iter().map(|segment| match segment {
            Segment::Literal(literal) => Some(literal.as_str()),
            Segment::Any | Segment::Glob { .. } => None,
        });
        names.collect()
    }

    /// The segments that what comes next is held against, as numbers.
    pub(super) fn next_of(&self, Places(places): Places) -> impl Iterator<Item = usize> {
        (0..self.segments.len()).filter(move |number| places & (1 << number) != 0)
    }

    /// Where the glob stands after one more name, which it has to spell out.
    pub(super) fn step_by_name(&self, Places(places): Places, name: &str) -> Places {
        let is_name =
            |i: usize| matches!(&self.segments[i], Segment::Literal(literal) if literal == name);
        let named = self.next_of(Places(places)).filter(|i| is_name(*i));
        Places(named.fold(0, |next, i| next | self.closure(i + 1)))
    }

    /// Where the glob stands after one more name.
    pub(super) fn step(&self, Places(places): Places, name: &str) -> Places {
        let mut left = places & ((1 << self.segments.len()) - 1);
        let mut next = 0;
        while left != 0 {
            let i = left.trailing_zeros() as usize;
            left &= left - 1;
            next |= match &self.segments[i] {
                Segment::Any => self.closure(i),
                Segment::Literal(literal) if literal == name => self.closure(i + 1),
                Segment::Glob { matcher, .. } if matcher.is_match(name) => self.closure(i + 1),
                Segment::Literal(_) | Segment::Glob { .. } => 0,
            };
        }
        Places(next)
    }

    /// What the glob says of a path that it stands so after.
    fn cover(&self, Places(places): Places) -> Cover {
        let end = self.segments.len();
        let open = self.segments.iter().rev().take_while(|s| matches!(s, Segment::Any)).count();
        let before = |place: usize| (1 << place) - 1;
        Cover {
            here: places & (1 << end) != 0,
            below: match places & before(end) {
                0 => Below::Nothing,
                places if places & !before(end - open) != 0 => Below::All,
                _ => Below::Some,
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
        if !text.contains(['*', '?', '[', ']', '{', '}', '\\']) {
            return Ok(Self::Literal(text.into()));
        }
        let glob = GlobBuilder::new(text).backslash_escape(true).build();
        glob.map_err(|error| PathGrantError::Glob(error.to_string()))?;
        // What only escapes is not a wildcard.
        if let Some(literal) = unescaped(text) {
            return Ok(Self::Literal(literal));
        }
        let mut expression = RegexBuilder::new(&expression(text));
        let matcher =
            expression.dot_matches_new_line(true).size_limit(MAX_EXPRESSION_BYTES).build();
        let matcher = matcher.map_err(|error| PathGrantError::Glob(error.to_string()))?;
        Ok(Self::Glob { text: text.into(), matcher })
    }

    /// The segment as it stands in a glob.
    fn glob(&self) -> String {
        match self {
            Self::Any => "**".into(),
            Self::Literal(literal) => expand::escaped(literal),
            Self::Glob { text, .. } => text.clone(),
        }
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("**"),
            Self::Literal(literal) => f.write_str(literal),
            Self::Glob { text, .. } => f.write_str(text),
        }
    }
}

/// The regular expression that fits what a segment does. The one that `globset` makes is about bytes:
/// to it, `[é]` is either of two bytes, and `??` a single letter.
fn expression(segment: &str) -> String {
    let mut expression = String::from("^(?:");
    let mut depth = 0;
    let mut rest = segment.chars().peekable();
    let literal = |c: char| regex::escape(c.encode_utf8(&mut [0; 4]));
    while let Some(c) = rest.next() {
        match c {
            '*' => expression.push_str(".*"),
            '?' => expression.push('.'),
            '\\' => expression.extend(rest.next().map(literal)),
            '[' => {
                expression.push('[');
                expression.extend(rest.next_if(|c| matches!(c, '!' | '^')).map(|_| '^'));
                // In the first place, a `]` ends nothing.
                let mut from = rest.next();
                while let Some(c) = from {
                    expression.push_str(&literal(c));
                    let mut ahead = rest.clone();
                    if ahead.next() == Some('-') && ahead.peek().is_some_and(|to| *to != ']') {
                        expression.push('-');
                        expression.extend(ahead.next().map(literal));
                        rest = ahead;
                    }
                    from = rest.next().filter(|c| *c != ']');
                }
                expression.push(']');
            }
            '{' => {
                depth += 1;
                expression.push_str("(?:");
            }
            ',' if depth > 0 => expression.push('|'),
            '}' => {
                depth -= 1;
                expression.push(')');
            }
            c => expression.push_str(&literal(c)),
        }
    }
    expression + ")$"
}

/// The text that a segment without wildcards stands for: `[*]` and `\*` are an asterisk.
fn unescaped(segment: &str) -> Option<String> {
    let mut literal = String::with_capacity(segment.len());
    let mut rest = segment.chars();
    while let Some(c) = rest.next() {
        match c {
            '\\' => literal.push(rest.next()?),
            '[' => {
                let inner = rest.next().filter(|c| !matches!(c, '!' | '^'))?;
                literal.push(inner);
                rest.next().filter(|c| *c == ']')?;
            }
            '*' | '?' | '{' | '}' => return None,
            c => literal.push(c),
        }
    }
    Some(literal)
}

/// What a path resolves to, as far as it exists.
pub(crate) fn resolve(path: &Path) -> Option<String> {
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
pub(super) fn components(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

/// Where a glob stands after the names of a path. Bit `i` is for: what comes next is held against
/// segment `i`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Places(u128);

/// What globs say of a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Cover {
    /// Whether they cover it.
    pub(super) here: bool,
    /// What they cover of what could be beneath it.
    pub(super) below: Below,
}

/// What globs cover beneath a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Below {
    #[default]
    Nothing,
    Some,
    All,
}

impl Cover {
    fn or(self, other: Self) -> Self {
        Self { here: self.here || other.here, below: self.below.max(other.below) }
    }

    fn and(self, other: Self) -> Self {
        Self { here: self.here && other.here, below: self.below.min(other.below) }
    }

    /// Whether they cover it, or anything beneath it.
    pub(super) fn any(self) -> bool {
        self.here || self.below > Below::Nothing
    }

    /// Whether they cover it and all that could be beneath it.
    pub(super) fn tree(self) -> bool {
        self.here && self.below == Below::All
    }
}

/// What may be done with a path.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) read: Cover,
    pub(super) write: Cover,
}

impl Rights {
    /// What these grants allow that stand so. What all of them cover together as a tree is not put
    /// together.
    pub(super) fn of<'a>(grants: impl Iterator<Item = (&'a PathGrant, Places)>) -> Self {
        grants.fold(Self::default(), |rights, (grant, places)| {
            let cover = grant.cover(places);
            let when = |holds: bool| if holds { cover } else { Cover::default() };
            Self {
                read: rights.read.or(when(grant.access != Access::Write)),
                write: rights.write.or(when(grant.access != Access::Read)),
            }
        })
    }

    /// What both allow.
    pub(super) fn and(self, other: Self) -> Self {
        Self { read: self.read.and(other.read), write: self.write.and(other.write) }
    }

    /// The same, where something beneath is not covered.
    pub(super) fn without_some_beneath(mut self) -> Self {
        for cover in [&mut self.read, &mut self.write] {
            cover.below = cover.below.min(Below::Some);
        }
        self
    }

    /// Whether anything at all is allowed, here or beneath.
    pub(super) fn any(self) -> bool {
        self.read.any() || self.write.any()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cover(grant: &PathGrant, path: &str) -> Cover {
        grant.cover(components(path).fold(grant.start(), |places, name| grant.step(places, name)))
    }

    fn grant(text: &str) -> Result<PathGrant, PathGrantError> {
        let environment = [("V".into(), "/no/such/[v]".into())].into();
        let home = Some("/no/such/home".into());
        let host_environment = HostEnvironment { environment, home, ..HostEnvironment::default() };
        PathGrant::parse(text, &host_environment, Path::new("/no/such/plugin"))
    }

    #[test]
    fn what_a_glob_covers() {
        let check = |glob: &str, path: &str, here: bool, below: Below| {
            let cover = cover(&grant(&format!("read:{glob}")).expect("it is a glob"), path);
            assert_eq!(cover, Cover { here, below }, "{glob} {path}");
        };
        use Below::{All, Nothing, Some};
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
        check("/a/{x,y}/[0-9]?", "/a/y/42", true, Nothing);
        check("/a/{x,y}/[0-9]?", "/a/z/42", false, Nothing);
        check("/a/?", "/a/é", true, Nothing);
        check("/a/??", "/a/é", false, Nothing);
        check("/a/[à-ü]", "/a/é", true, Nothing);
        check("/a/[!x]", "/a/é", true, Nothing);
        check("/a/[é][ö]", "/a/ö", false, Nothing);
        check("/a/[]a^-]x", "/a/]x", true, Nothing);
        check("/a/[!]a-]x", "/a/-x", false, Nothing);
        check("/a/[a-c-e]x", "/a/dx", false, Nothing);
        check("/a/[[.]*", "/a/[x", true, Nothing);
        check("/a/x{,.t}", "/a/x", true, Nothing);
        check("/a/{x,{y,z}*}", "/a/zz", true, Nothing);
        check("/a/\\{x,y*", "/a/{x,yz", true, Nothing);
        check("/a/{x,y}?,z", "/a/yy,z", true, Nothing);
        check("/a/{x,y}?,z", "/a/z", false, Nothing);
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
        assert!(!Cover { here: false, ..all }.tree());
        assert!(!Cover { below: Below::Some, ..all }.tree());
        let some = Cover { below: Below::Some, ..all };
        let rights = Rights { read: all, write: Cover::default() };
        let expected = Rights { read: some, write: Cover::default() };
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
        check("read:/.//[.]", PathGrantError::Empty);
        check("read:/a/../b", PathGrantError::Climbs);
        check("read:/a/[.][.]/b", PathGrantError::Climbs);
        check("read:/a/.\\./b", PathGrantError::Climbs);
        check("read:/a/x**", PathGrantError::StarStar);
        check(&format!("read:{}", "/a".repeat(MAX_SEGMENTS + 1)), PathGrantError::Long);
        check(&format!("read:/{}", "?".repeat(1_000_000)), PathGrantError::Long);
        check(&format!("read:/{}", "?".repeat(MAX_SEGMENT_BYTES + 1)), PathGrantError::Long);
        assert!(matches!(grant("read:/a/{b"), Err(PathGrantError::Glob(_))));
        assert!(matches!(grant("read:${NOPE}/x"), Err(PathGrantError::Expand(_))));
    }

    #[test]
    fn a_grant_means_the_same_when_it_is_read_again() {
        let check = |text: &str, expected: &str| {
            assert_eq!(grant(text).unwrap().text(), expected);
            assert_eq!(grant(expected).unwrap().text(), expected);
        };
        check("read:/no/such/./[.]/\\./x", "read:/no/such/x");
        check("read:/no/such/*[*]", "read:/no/such/*[*]");
        check("read:/no/such/[*]/x", "read:/no/such/[*]/x");
        check("read:/no/such/\\*/{x,y}", "read:/no/such/[*]/{x,y}");
        check("read:/no/such/[\\]*/x", "read:/no/such/[\\]*/x");
        check("read:/no/such/\\\\x", "read:/no/such/[\\]x");
        check("read:/no/such/[\\]x", "read:/no/such/[\\]x");
    }

    #[test]
    fn a_grant_is_shown_with_its_beginning_resolved_and_means_the_same_when_it_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().canonicalize().unwrap();
        std::fs::create_dir(real.join("b[1]")).unwrap();
        std::os::unix::fs::symlink("b[1]", real.join("link")).unwrap();
        let grant = grant(&format!("readwrite:{}/link/new/*.md", real.display())).unwrap();
        let expected = format!("readwrite:{}/b[[]1[]]/new/*.md", real.display());
        assert_eq!(grant.text(), expected);
        let real = real.display();
        assert_eq!(grant.base(), (&*format!("{real}/link/new"), &*format!("{real}/b[1]/new")));
        let again =
            PathGrant::parse(&expected, &HostEnvironment::default(), Path::new("/")).unwrap();
        assert_eq!(again.text(), expected);
        assert!(cover(&again, &format!("{real}/b[1]/new/x.md")).here);
    }

    /// The same question, asked of a regular-expression engine.
    fn model(glob: &str, path: &str) -> bool {
        let whole = GlobBuilder::new(glob).literal_separator(true).build().unwrap();
        let matcher = whole.compile_matcher();
        // There `/a/**` is not `/a` itself.
        matcher.is_match(path) || {
            let mut rest = glob;
            std::iter::from_fn(|| {
                rest = rest.strip_suffix("/**")?;
                Some(rest)
            })
            .any(|shorter| {
                let glob = GlobBuilder::new(shorter).literal_separator(true).build().unwrap();
                glob.compile_matcher().is_match(path)
            })
        }
    }

    proptest! {
        #[test]
        fn globs_cover_what_the_model_says(
            glob in "(/(a|b|\\*|\\*\\*|[ab]\\*|\\?)){1,6}",
            path in "(/(a|b|ab|ba)){1,6}",
        ) {
            let cover = cover(&grant(&format!("read:{glob}")).unwrap(), &path);
            prop_assert_eq!(cover.here, model(&glob, &path), "{} {}", glob, path);
        }

        #[test]
        fn what_is_beneath_agrees_with_what_is_covered_there(
            glob in "(/(a|b|\\*|\\*\\*|[ab]\\*)){1,5}",
            path in "(/(a|b|ab)){1,4}",
            deeper in "(/(a|b|ab)){1,3}",
        ) {
            let grant = grant(&format!("read:{glob}")).unwrap();
            let (here, beneath) = (cover(&grant, &path), cover(&grant, &format!("{path}{deeper}")));
            prop_assert!(!beneath.here || here.below > Below::Nothing);
            prop_assert!(here.below < Below::All || beneath.tree());
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,40}") {
            let _ = grant(&text);
            let _ = grant(&format!("read:{text}"));
        }
    }
}
