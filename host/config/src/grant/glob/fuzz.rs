//! Globs against a model: a matcher that is written from their description, name by name and
//! character by character, with nothing of the crate that the host matches with.

use std::path::Path;

use super::{CoverageBelow, PathGrant, PathRights, components};
use crate::host_environment::HostEnvironment;
use crate::path_context::PathContext;

/// The longest text, in bytes. The model takes its time.
const LONG: usize = 200;

/// Text of four lines: a glob, a path, names beneath it, and another glob that may cover the first. They
/// begin in a folder that does not exist, so that what is on this disk makes no difference.
pub fn path_glob(text: &str) {
    let mut lines = text.lines();
    let mut next = || lines.next().unwrap_or_default();
    let (glob, path, deeper, wide) = (next(), next(), next(), next());
    let host_environment = HostEnvironment {
        environment: [("V".into(), "[v]*".into())].into(),
        home: Some("/no/such/home".into()),
        ..HostEnvironment::default()
    };
    let _ = PathGrant::parse(glob, &PathContext::new(&host_environment, Path::new("/no/such")));
    let written = format!("/no/such/{glob}");
    let parse =
        |text: &str| PathGrant::parse(text, &PathContext::new(&host_environment, Path::new("/")));
    let Ok(grant) = parse(&format!("read:{written}")) else { return };
    let again = parse(grant.text()).expect("what is approved is a grant");
    assert_eq!(again.text(), grant.text(), "what is approved means the same when it is read again");

    let path = format!("/no/such/{path}");
    let beneath = format!("{path}/{deeper}");
    let cover = |grant: &PathGrant, path: &str| {
        let places = components(path).fold(grant.start(), |places, name| grant.step(places, name));
        let rights = PathRights::of([(grant, places)].into_iter());
        assert!(!rights.write.any(), "{glob} is to be read, and lets {path} be written");
        rights.read
    };
    let (here, there) = (cover(&grant, &path), cover(&grant, &beneath));
    assert!(grant.covers(&grant, &[]), "{glob} covers itself");
    if let Ok(wide) = parse(&format!("read:/no/such/{wide}"))
        && wide.covers(&grant, &[])
    {
        for path in [&path, &beneath] {
            let is_covered = !cover(&grant, path).here || cover(&wide, path).here;
            assert!(is_covered, "{} does not cover {glob} of {path}", wide.text());
        }
    }
    for path in [&path, &beneath] {
        let (cover, again) = (cover(&grant, path), cover(&again, path));
        assert_eq!(again, cover, "{glob} as it is approved, of {path}");
        if let Some(model) = GlobModel::new(&written) {
            assert_eq!(cover.here, model.covers(path), "{glob} covers {path}");
            let below = cover.below > CoverageBelow::Nothing;
            assert_eq!(below, model.reaches(path), "{glob} covers what is beneath {path}");
        }
    }
    // The last name spelled out, as it is asked of what is protected.
    let last = names(&path).count() - 1;
    let spelled = components(&path).enumerate().fold(grant.start(), |places, (number, name)| {
        if number == last { grant.step_by_name(places, name) } else { grant.step(places, name) }
    });
    let spelled = PathRights::of([(&grant, spelled)].into_iter()).read;
    if let Some(model) = GlobModel::new(&written) {
        let expected = model.covers_by_name(&path, |number| number == last);
        assert_eq!(spelled.here, expected, "{glob} covers {path} by its name");
    }
    if names(deeper).next().is_some() {
        assert!(!there.any() || here.below > CoverageBelow::Nothing, "{glob} of {beneath}");
        assert!(here.below < CoverageBelow::All || there.tree(), "{glob} of {beneath}");
    }
}

/// A glob, as it is described.
#[derive(Debug, Clone)]
pub struct GlobModel(Vec<Vec<char>>);

impl GlobModel {
    /// Nothing for a glob that would take too long, or means something else than it says.
    pub fn new(glob: &str) -> Option<Self> {
        let wildcards = |segment: &str| segment.matches('*').count();
        let segments = || glob.split('/').filter(|name| !name.is_empty() && *name != ".");
        let any = segments().filter(|segment| *segment == "**").count();
        let is_short = glob.len() <= LONG && any <= 5 && segments().all(|s| wildcards(s) <= 6);
        // Segments that come out as `.` or as a variable are left to the host.
        let is_written_out = !["${", "\\."].iter().any(|other| glob.contains(other));
        (is_short && is_written_out)
            .then(|| Self(segments().map(|segment| segment.chars().collect()).collect()))
    }

    /// Whether it covers a path.
    pub fn covers(&self, path: &str) -> bool {
        self.covers_by_name(path, |_| false)
    }

    /// Whether it could cover something beneath a path.
    pub fn reaches(&self, path: &str) -> bool {
        self.reaches_by_name(path, |_| false)
    }

    /// Whether it covers a path, and spells out the names of these numbers.
    pub fn covers_by_name(&self, path: &str, by_name: impl Fn(usize) -> bool) -> bool {
        covers(&self.0, &numbered(path, by_name))
    }

    /// Whether it could cover something beneath a path, and spells out the names of these numbers.
    pub fn reaches_by_name(&self, path: &str, by_name: impl Fn(usize) -> bool) -> bool {
        reaches(&self.0, &numbered(path, by_name))
    }
}

const ANY: [char; 2] = ['*', '*'];

/// A name of a path, and whether it has to be spelled out.
type Name<'a> = (&'a str, bool);

fn numbered(path: &str, by_name: impl Fn(usize) -> bool) -> Vec<Name<'_>> {
    names(path).enumerate().map(|(number, name)| (name, by_name(number))).collect()
}

/// Whether a segment is a name, and no wildcard.
fn is_name(segment: &[char]) -> bool {
    match segment {
        [] => true,
        ['*', ..] => false,
        ['\\', _, rest @ ..] | [_, rest @ ..] => is_name(rest),
    }
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty())
}

fn covers(segments: &[Vec<char>], path: &[Name<'_>]) -> bool {
    match segments {
        [] => path.is_empty(),
        [any, rest @ ..] if **any == ANY => {
            let skipped = path.iter().take_while(|(_, by_name)| !by_name).count();
            (0..=skipped).any(|skipped| covers(rest, &path[skipped..]))
        }
        [segment, rest @ ..] => path.split_first().is_some_and(|((name, by_name), beneath)| {
            fits(segment, &name.chars().collect::<Vec<_>>())
                && (!by_name || is_name(segment))
                && covers(rest, beneath)
        }),
    }
}

fn reaches(segments: &[Vec<char>], path: &[Name<'_>]) -> bool {
    match (segments, path) {
        ([], _) => false,
        (_, []) => true,
        ([any, rest @ ..], _) if **any == ANY => {
            let skipped = path.iter().take_while(|(_, by_name)| !by_name).count();
            skipped == path.len() || (0..=skipped).any(|skipped| reaches(rest, &path[skipped..]))
        }
        ([segment, rest @ ..], [(name, by_name), beneath @ ..]) => {
            fits(segment, &name.chars().collect::<Vec<_>>())
                && (!by_name || is_name(segment))
                && reaches(rest, beneath)
        }
    }
}

/// Whether a segment fits a name.
fn fits(glob: &[char], name: &[char]) -> bool {
    match (glob, name) {
        ([], name) => name.is_empty(),
        (['*', rest @ ..], name) => (0..=name.len()).any(|taken| fits(rest, &name[taken..])),
        (['\\', c, rest @ ..] | [c, rest @ ..], [first, others @ ..]) => {
            c == first && fits(rest, others)
        }
        (_, []) => false,
    }
}
