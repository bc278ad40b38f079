//! Globs over the texts of arguments: paths, URLs and any others.
//!
//! A glob compares a text as it is spelled. How a text fits is unclear where programs may read it otherwise: a path may
//! climb, and a URL may lead to another host than it seems to.

use globset::{Error, GlobBuilder, GlobMatcher};
use serde::Deserialize;
use std::path::PathBuf;
use url::{Position, Url};

use super::check_length;
use crate::call_rule::Fit;

/// A glob over texts with `/` between their segments: `*`, `?` and `[…]` stand for text within a segment, `**` for any
/// number of segments, `{a,b}` for either.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct TextGlob {
    as_written: GlobMatcher,
    /// Where it is about the URLs of one origin: this, as a parser of URLs writes it.
    origin: Option<UrlOrigin>,
}

/// The origin that a glob begins with.
#[derive(Debug, Clone)]
struct UrlOrigin {
    text: String,
    /// The glob with this text in place of its own, where they differ.
    glob: Option<GlobMatcher>,
}

impl PartialEq for TextGlob {
    fn eq(&self, other: &Self) -> bool {
        self.as_written.glob() == other.as_written.glob()
    }
}

impl Eq for TextGlob {}

impl TryFrom<String> for TextGlob {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        check_length(&text)?;
        let compile = |text: &str| compile(text).map_err(|error| error.to_string());
        let as_written = compile(&text)?;
        let origin = origin_of(&text).map(|(origin, rest)| {
            let read = format!("{origin}{rest}");
            let glob = (read != text).then(|| compile(&read)).transpose()?;
            Ok::<_, String>(UrlOrigin { text: origin, glob })
        });
        Ok(Self { as_written, origin: origin.transpose()? })
    }
}

fn compile(glob: &str) -> Result<GlobMatcher, Error> {
    let glob = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build()?;
    Ok(glob.compile_matcher())
}

/// The origin that a glob spells out, as a parser of URLs writes it, and what follows.
fn origin_of(glob: &str) -> Option<(String, &str)> {
    let (scheme, after) = glob.split_once("://").filter(|_| is_url(glob))?;
    let authority = after.split('/').next().unwrap_or_default();
    let (origin, rest) = glob.split_at(scheme.len() + "://".len() + authority.len());
    let url = Url::parse(origin).ok().filter(|_| !authority.contains(&META[..]))?;
    Some((url[..Position::BeforePath].to_string(), rest))
}

/// What stands for other text in a glob, and what ends the host of a URL.
const META: [char; 8] = ['*', '?', '[', ']', '{', '}', '\\', '#'];

impl TextGlob {
    /// The glob as it was written.
    pub(super) fn as_str(&self) -> &str {
        self.as_written.glob().glob()
    }

    pub(super) fn fit(&self, text: &str) -> Fit {
        // Some programs stop at them, and others drop them.
        if text.contains(char::is_control) {
            return Fit::Unclear;
        }
        if is_url(text) {
            return UrlText::parse(text).map_or(Fit::Unclear, |url| self.fit_url(text, &url));
        }
        let segments: Vec<&str> = text.split(['/', '\\']).collect();
        match leads_elsewhere(&segments) {
            true => Fit::Unclear,
            false => Fit::of(self.as_written.is_match(text)),
        }
    }

    /// How a URL fits: unclear if it is not the same for the text as it is spelled and as it is read.
    fn fit_url(&self, text: &str, url: &UrlText<'_>) -> Fit {
        let UrlText { origin, without_user, rest, file } = url;
        let own = self.origin.as_ref();
        let glob = own.and_then(|own| own.glob.as_ref()).unwrap_or(&self.as_written);
        let read = format!("{origin}{rest}");
        let fits = glob.is_match(&read);
        if fits != self.as_written.is_match(text) {
            return Fit::Unclear;
        }
        // Programs read the file at a path for a glob of paths, too.
        if !fits && file.as_ref().is_some_and(|file| glob.is_match(file)) {
            return Fit::Unclear;
        }
        // Without a path, it is `/`.
        let same = match *rest {
            "" => Some(format!("{origin}/")),
            "/" => Some(origin.clone()),
            _ => None,
        };
        if !fits && same.is_some_and(|same| glob.is_match(same)) {
            return Fit::Unclear;
        }
        // A user before the host may be taken for the host, unless the glob has this user.
        if let Some(without_user) = without_user
            && own.is_none_or(|own| own.text != *origin)
            && (fits || glob.is_match(format!("{without_user}{rest}")))
        {
            return Fit::Unclear;
        }
        // What a wildcard takes for a part of the path may be in the query or the fragment.
        let mut end = read.len();
        for mark in ['#', '?'] {
            let Some(start) = read[..end].find(mark) else { continue };
            end = start;
            let part = &read[..end];
            if glob.is_match(part) != fits && !(fits && has_mark_after(glob, part)) {
                return Fit::Unclear;
            }
        }
        Fit::of(fits)
    }
}

/// Whether a glob itself has the `?` or `#` that a URL has after this part, as `\?`, `[?]` or a `?` that may be meant so.
fn has_mark_after(glob: &GlobMatcher, part: &str) -> bool {
    let text = glob.glob().glob();
    text.match_indices(['?', '#']).any(|(place, _)| {
        let before = compile(text[..place].trim_end_matches(['\\', '[']));
        before.is_ok_and(|before| before.is_match(part))
    })
}

/// Whether a path climbs, or has a `/` too many. It may begin and end with one, and have two after a scheme.
fn leads_elsewhere(segments: &[&str]) -> bool {
    let last = segments.len() - 1;
    segments.iter().enumerate().any(|(number, segment)| match *segment {
        "." | ".." => true,
        "" => number != 0 && number != last && !(number == 1 && segments[0].ends_with(':')),
        _ => false,
    })
}

/// The schemes after which parsers of URLs add what is missing of `//`.
const SPECIAL_SCHEMES: [&str; 6] = ["http", "https", "ws", "wss", "ftp", "file"];

/// Whether programs take a text for a URL with a host. One letter is a drive of Windows.
fn is_url(text: &str) -> bool {
    let Some((scheme, rest)) = text.trim_start().split_once(':') else { return false };
    let is_scheme = scheme.len() > 1
        && scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let is_special = || SPECIAL_SCHEMES.iter().any(|special| special.eq_ignore_ascii_case(scheme));
    is_scheme && (rest.starts_with("//") || is_special())
}

/// A URL, with its origin as the WHATWG standard has it read.
struct UrlText<'a> {
    /// The scheme, the user if there is one, the host and the port.
    origin: String,
    /// The same without the user, if there is one.
    without_user: Option<String>,
    /// The path, the query and the fragment, as they are spelled.
    rest: &'a str,
    /// The path of the file, where it is the URL of one.
    file: Option<PathBuf>,
}

impl<'a> UrlText<'a> {
    /// Reads a text; nothing where programs do not agree on what it means.
    fn parse(text: &'a str) -> Option<Self> {
        if text.contains('\\') || text.trim() != text {
            return None;
        }
        let mut url = Url::parse(text).ok()?;
        let (_, after) = text.split_once(':')?;
        let after = after.strip_prefix("//")?;
        let (authority, rest) = after.split_at(after.find(['/', '?', '#']).unwrap_or(after.len()));
        let path = rest.split(['?', '#']).next().unwrap_or_default();
        // `https:///a` has the host `a`, and `file://localhost/a` has none.
        let host = url.host_str().unwrap_or_default();
        let is_other_host = host.is_empty() != authority.is_empty() || host.ends_with('.');
        // In `https://a?.b/`, the query begins before `.b`.
        let is_cut_short = path.is_empty() && !rest.is_empty();
        // Servers drop the parameters of a segment.
        let segments: Vec<&str> =
            path.split('/').map(|segment| segment.split(';').next().unwrap_or_default()).collect();
        if is_other_host || is_cut_short || has_needless_escape(path) || leads_elsewhere(&segments)
        {
            return None;
        }
        let origin = url[..Position::BeforePath].to_string();
        let has_user = !url.username().is_empty() || url.password().is_some();
        let mut without_user = None;
        if has_user {
            url.set_username("").and(url.set_password(None)).ok()?;
            without_user = Some(url[..Position::BeforePath].to_string());
        }
        let file = (url.scheme() == "file").then(|| url.to_file_path().ok()).flatten();
        Some(Self { origin, without_user, rest, file })
    }
}

/// Whether a path has an escape such as `%2e` for what it need not escape, or cannot have otherwise: servers that
/// undo it find another path.
fn has_needless_escape(path: &str) -> bool {
    path.split('%').skip(1).any(|rest| {
        let byte = rest.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(|byte| {
            byte.is_ascii_alphanumeric() || byte.is_ascii_control() || b"-._~/\\".contains(&byte)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(glob: &str, text: &str, expected: Fit) {
        let compiled = TextGlob::try_from(glob.to_string()).expect("it is a glob");
        assert_eq!(compiled.fit(text), expected, "{glob} {text:?}");
    }

    #[test]
    fn an_ordinary_url_fits_and_one_that_hides_its_path_is_unclear() {
        let public = "https://api.example/public/**";
        for rest in [
            "a",
            "a/",
            "a/b.c",
            "a%20b",
            "a b",
            "ä",
            "a?b=c",
            "a#b",
            "a?b=/c/../d//e",
            "a?b=%2F%2e%2e",
            "a?u=https://x/",
            "a..b",
            "..a",
            "...",
            "%ff",
            "%",
            "a?b=c#d?e",
            "a:b@c",
            "~a",
        ] {
            check(public, &format!("https://api.example/public/{rest}"), Fit::Yes);
        }
        for rest in [
            "%2e%2e/x", "%2E./x", ".%2e/x", "%2e/x", "a%2fb", "a%2Fb", "a%5cb", "..?x", ".?x",
            "..#x", "..", "../x", "..;/x", "a\\..\\b", "a//b", "a\tb", ".\t./x", "a\nb", "a\rb",
            "a\0b", "%73ecret", "a%00b", "a\u{7f}",
        ] {
            check(public, &format!("https://api.example/public/{rest}"), Fit::Unclear);
            // Such a URL may lead anywhere.
            check(
                "https://other.example/**",
                &format!("https://api.example/public/{rest}"),
                Fit::Unclear,
            );
        }
        check(public, "https://api.example/private/a", Fit::No);
        check(public, "https://evil.com/public/a", Fit::No);
        check(public, "http://api.example/public/a", Fit::No);
        check(public, "https://api.example:8443/public/a", Fit::No);
        check("https://api.example:8443/**", "https://api.example:8443/a?b", Fit::Yes);
        check("http://127.0.0.1:80*/**", "http://127.0.0.1:8080/a", Fit::Yes);
    }

    #[test]
    fn a_url_that_is_spelled_otherwise_than_it_is_read_is_unclear() {
        let public = "https://api.example/public/**";
        for text in [
            "HTTPS://api.example/public/a",
            "https://API.example/public/a",
            "https://api.example:443/public/a",
            "https://user@api.example/public/a",
            "https://api.example./public/a",
            "https:/api.example/public/a",
            "https:api.example/public/a",
            "https:///api.example/public/a",
            "https:\\\\api.example/public/a",
            " https://api.example/public/a",
            "https://%61pi.example/public/a",
            "https://api。example/public/a",
        ] {
            check(public, text, Fit::Unclear);
        }
        check("http://127.0.0.1/**", "http://0x7f.1/a", Fit::Unclear);
        // The path of a host alone is `/`.
        check("https://a/**", "https://a", Fit::Unclear);
        check("https://a/**", "https://a/", Fit::Yes);
        check("https://a", "https://a", Fit::Yes);
        check("https://a", "https://a/", Fit::Unclear);
        check("https://*.b", "https://a.b", Fit::Yes);
        check("https://a/b/**", "https://a", Fit::No);
        check(public, "https://user@evil.com/public/a", Fit::No);
        check(public, "https://EVIL.com/public/a", Fit::No);
        check("https://EXAMPLE.com:443/**", "https://EXAMPLE.com:443/a", Fit::Yes);
        check("https://EXAMPLE.com:443/**", "https://example.com/a", Fit::Unclear);
        check("https://bücher.example/**", "https://bücher.example/a", Fit::Yes);
        check("ssh://git@git.example/**", "ssh://git@git.example/a.git", Fit::Yes);
        check("ssh://git@git.example/**", "ssh://git@evil.com/a.git", Fit::No);
        check("**/.ssh/**", "ssh://git@git.example/a.git", Fit::No);
    }

    #[test]
    fn a_wildcard_in_a_host_sees_the_host_that_programs_see() {
        let hosts = "https://*.example.com/**";
        check(hosts, "https://a.example.com/x?y#z", Fit::Yes);
        check(hosts, "https://evil.com/x", Fit::No);
        for text in [
            "https://evil.com?.example.com/x",
            "https://evil.com#.example.com/x",
            "https://evil.com\\.example.com/x",
            "https://evil.com\\@.example.com/x",
            "https://user@evil.example.com/x",
            "https://user:pass@a.example.com/x",
            "https://evil.com:80.example.com/x",
            "https://evil.com%2F.example.com/x",
            "https://evil.com／.example.com/x",
            "https://a b.example.com/x",
            "https://evil.com\t.example.com/x",
            "https://.example.com./x",
        ] {
            check(hosts, text, Fit::Unclear);
        }
        check("https://**", "https://evil.com?x", Fit::Unclear);
    }

    #[test]
    fn a_wildcard_reaches_no_further_than_the_path() {
        check("https://a/*.json", "https://a/b.json", Fit::Yes);
        check("https://a/*.json", "https://a/b?c.json", Fit::Unclear);
        check("https://a/*.json", "https://a/b#c.json", Fit::Unclear);
        check("https://a/*.json", "https://a/b.json?c=.json", Fit::Yes);
        check("https://a/**/public/*", "https://a/private?/public/x", Fit::Unclear);
        check("https://a/secret", "https://a/secret?b", Fit::Unclear);
        check("https://a/secret", "https://a/secret#b", Fit::Unclear);
        check("https://a/*.json?q=*", "https://a/b.json?q=c", Fit::Yes);
        check("https://a/*.json?q=*", "https://a/secret?.json?q=c", Fit::Unclear);
        check("https://a/b#*", "https://a/b#c", Fit::Yes);
        for glob in ["https://a/*\\?q=*", "https://a/b[?]q=*", "https://a/b?q=*", "https://a/b?*"] {
            check(glob, "https://a/b?q=c", Fit::Yes);
        }
        check("https://a/b{?,x}q=*", "https://a/b?q=c", Fit::Unclear);
        check("https://a/b[!x]q=*", "https://a/b?q=c", Fit::Unclear);
        check("https://a/b?q=c", "https://a/b?q=d", Fit::No);
        check("https://a/b?q=c", "https://a/b?q=c#d", Fit::Unclear);
    }

    #[test]
    fn an_authority_may_be_empty_where_none_is_read() {
        check("file:///tmp/**", "file:///tmp/a", Fit::Yes);
        check("file:///tmp/**", "file:///etc/passwd", Fit::No);
        // A glob of paths may mean the file as well.
        for text in ["file:///etc/a", "file:///etc/a%20b", "FILE:///etc/a", "file:///etc/a?b"] {
            check("/etc/a*", text, Fit::Unclear);
            check("/tmp/**", text, Fit::No);
        }
        check("/etc/a b", "file:///etc/a%20b", Fit::Unclear);
        check("/etc/**", "https://a/etc/passwd", Fit::No);
        check("sqlite:///tmp/**", "sqlite:///tmp/a", Fit::Yes);
        for text in [
            "file:/tmp/a",
            "file://localhost/tmp/a",
            "file:////tmp/a",
            "file:///tmp/../etc/passwd",
            "file:///tmp/%2e%2e/a",
            "file:tmp/a",
        ] {
            check("file:///tmp/**", text, Fit::Unclear);
        }
    }

    #[test]
    fn a_text_without_a_scheme_is_no_url() {
        check("C:/work/**", "C:/work/a b", Fit::Yes);
        check("Re: *", "Re: a?b#c", Fit::Yes);
        check("jdbc:x://a/**", "jdbc:x://a/b", Fit::Yes);
    }
}
