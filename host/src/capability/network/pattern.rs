//! What of the web a plugin is granted: patterns of URLs, each for some methods or for all.
//!
//! A pattern is a constructor string of the [URL Pattern Standard], with methods in front of it
//! where not all are granted: `GET,HEAD https://api.example.com/v1/*`. What it leaves out follows
//! the standard, too:
//!
//! * no port is the scheme's default port, and no other;
//! * no path is any path: `https://api.example.com` grants the same as `https://api.example.com/*`;
//! * a path is the whole path: `https://api.example.com/v1` grants `/v1` and nothing below it;
//! * no query is any query.
//!
//! What would grant more than it seems to is refused, although the standard has it. Regular
//! expressions are those of the crate `regex`, which takes linear time.
//!
//! [URL Pattern Standard]: https://urlpattern.spec.whatwg.org

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use std::fmt;
use std::net::Ipv6Addr;

use http::Method;
use regex::RegexBuilder;
use url::{Host, Url, quirks};
use urlpattern::matcher::InnerMatcher;
use urlpattern::parser::{Options, Part, PartModifier, PartType, parse_pattern_string};
use urlpattern::{UrlPattern, UrlPatternInit, UrlPatternMatchInput, UrlPatternOptions};

use crate::text::cut;

/// The longest grant, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 10;

/// The most memory that one regular expression of a grant takes, in bytes.
const MAX_EXPRESSION_BYTES: usize = 64 << 10;

/// The most regular expressions of a grant: each may be of a class of thousands of characters.
const MAX_EXPRESSIONS: usize = 8;

/// How often a path is decoded to find out what a server could make of it.
const MAX_DECODINGS: usize = 4;

/// How a grant begins, after its methods.
const SCHEMES: [&str; 3] = ["http://", "https://", "http{s}?://"];

/// One grant.
pub(crate) struct UrlGrant {
    text: Box<str>,
    /// The methods; none stands for all.
    methods: Vec<Method>,
    pattern: UrlPattern,
}

impl fmt::Debug for UrlGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UrlGrant({})", self.text)
    }
}

/// Why a text is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL pattern `{grant}`: {problem}")]
pub(crate) struct GrantError {
    grant: String,
    problem: String,
}

impl UrlGrant {
    /// Reads a grant. Its text comes from a manifest, or from who approves.
    pub(crate) fn parse(text: &str) -> Result<Self, GrantError> {
        read(text).map_err(|problem| GrantError::new(text, problem))
    }

    /// The grant as it was written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Whether a request may be sent.
    pub(crate) fn allows(&self, method: &Method, url: &Url) -> bool {
        let has_method = self.methods.is_empty() || self.methods.contains(method);
        has_method
            && url.username().is_empty()
            && url.password().is_none()
            && (self.has_any_path() || !hides_parent(url.path()))
            && self.pattern.test(UrlPatternMatchInput::Url(url.clone())).unwrap_or(false)
    }

    /// Whether the pattern spells this very host or address out, as [`Url::host_str`] gives it. One
    /// that a wildcard, a group or a regular expression stands for is not named.
    pub(crate) fn names_host(&self, host: &str) -> bool {
        let InnerMatcher::Literal { literal } = &self.pattern.hostname.matcher.inner else {
            return false;
        };
        literal == host
    }

    fn has_any_path(&self) -> bool {
        matches!(self.pattern.pathname(), "*" | "/*")
    }
}

impl GrantError {
    pub(super) fn new(text: &str, problem: String) -> Self {
        Self { grant: cut(text, MAX_PATTERN_BYTES).into(), problem }
    }
}

fn read(text: &str) -> Result<UrlGrant, String> {
    if text.len() > MAX_PATTERN_BYTES {
        return Err(format!("it is longer than {MAX_PATTERN_BYTES} bytes"));
    }
    let (methods, pattern) = match text.trim().split_once(' ') {
        Some((methods, pattern)) => (read_methods(methods)?, pattern.trim_start()),
        None => (Vec::new(), text.trim()),
    };
    if pattern.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("it is `METHOD,METHOD pattern`, or the pattern alone".into());
    }
    let (scheme, rest) = pattern.split_at(pattern.find("://").map_or(0, |end| end + 3));
    let scheme = SCHEMES.into_iter().find(|known| scheme.eq_ignore_ascii_case(known));
    let scheme = scheme.ok_or("it begins with `http://`, `https://` or `http{s}?://`")?;
    check_text(rest)?;
    let pattern = with_address_escaped(scheme, rest)?;
    let init = UrlPatternInit::parse_constructor_string::<regex::Regex>(&pattern, None)
        .map_err(|error| error.to_string())?;
    if init.hash.is_some() {
        return Err("what follows a `#` is never sent".into());
    }
    check_host(init.hostname.as_deref().unwrap_or_default())?;
    check_port(init.port.as_deref().unwrap_or_default())?;
    // Whether it is escaped or in a group makes no difference.
    let path = init.pathname.as_deref().unwrap_or_default().replace(['\\', '{', '}'], "");
    if hides_parent(&path) {
        return Err("its path has a `..`".into());
    }
    let pattern = UrlPattern::parse(init, UrlPatternOptions::default());
    let pattern = pattern.map_err(|error| error.to_string())?;
    Ok(UrlGrant { text: text.into(), methods, pattern })
}

fn read_methods(text: &str) -> Result<Vec<Method>, String> {
    let method = |name: &str| {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return Err(format!(
                "{name:?} is not a method; write methods as in `GET,HEAD https://…`"
            ));
        }
        match Method::from_bytes(name.as_bytes()) {
            Ok(method) if !never_sent(&method) => Ok(method),
            _ => Err(format!("{name} cannot be granted")),
        }
    };
    text.split(',').map(method).collect()
}

/// Whether requests of this method are sent for no plugin: they make something else of the
/// connection, or show what was added to a request on its way.
pub(super) fn never_sent(method: &Method) -> bool {
    matches!(*method, Method::CONNECT | Method::TRACE)
}

/// Refuses what reads differently from what it means.
fn check_text(pattern: &str) -> Result<(), String> {
    let mut rest = pattern;
    let (mut after_wildcard, mut expressions) = (false, 0);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\\' => {
                let escaped = rest.chars().next().ok_or("a `\\` stands before nothing")?;
                rest = &rest[escaped.len_utf8()..];
            }
            '(' => {
                expressions += 1;
                if expressions > MAX_EXPRESSIONS {
                    return Err(format!("it has more than {MAX_EXPRESSIONS} regular expressions"));
                }
                rest = &rest[check_expression(rest)? + 1..];
            }
            // The standard reads `**` and `*?` as "any number of" and "optionally" anything.
            '*' | '?' | '+' if after_wildcard => {
                return Err(format!(
                    "`*{c}` is not needed: `*` stands for any text, slashes included, and a query \
                     after it begins with `\\?`"
                ));
            }
            _ => {}
        }
        after_wildcard = c == '*';
    }
    Ok(())
}

/// Checks the regular expression that a text begins with, and gives where its closing parenthesis
/// is. It must be one by itself: otherwise it could close the group that is put around it, and with
/// it leave the part of the URL that it stands in.
fn check_expression(text: &str) -> Result<usize, String> {
    let mut escaped = false;
    let end = text.find(|c| {
        let found = !escaped && matches!(c, '(' | ')');
        escaped = c == '\\' && !escaped;
        found
    });
    let Some(end) = end else { return Err("a `(` is not closed".into()) };
    if text[end..].starts_with('(') {
        return Err("a regular expression in a grant has no groups".into());
    }
    let expression = &text[..end];
    if expression.is_empty() || expression.starts_with('?') || !expression.is_ascii() {
        return Err(format!("`({expression})` is not a regular expression that a pattern allows"));
    }
    match RegexBuilder::new(expression).size_limit(MAX_EXPRESSION_BYTES).build() {
        Ok(_) => Ok(end),
        Err(error) => Err(format!("`({expression})`: {error}")),
    }
}

/// A pattern whose host may be an IPv6 address, which the standard would have escaped: it takes the
/// `:abc` in `[::abc]` for a group.
fn with_address_escaped(scheme: &str, rest: &str) -> Result<String, String> {
    let end = outside_groups(rest, '/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    if authority.contains('@') {
        return Err("user names and passwords are no part of a grant".into());
    }
    let brackets = |text| outside_expressions(text).any(|(_, c)| matches!(c, '[' | ']'));
    if !brackets(authority) {
        return Ok(format!("{scheme}{authority}{path}"));
    }
    let address = authority.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let address = address.and_then(|(address, port)| {
        let address: Ipv6Addr = address.parse().ok()?;
        let is_port = port.is_empty() || port.starts_with(':');
        (is_port && !brackets(port)).then_some((address, port))
    });
    let Some((address, port)) = address else {
        return Err("an IPv6 address is written out, as in `http://[::1]/`".into());
    };
    let address = Host::<&str>::Ipv6(address).to_string().replace(':', "\\:");
    Ok(format!("{scheme}{address}{port}{path}"))
}

/// The characters that are in no regular expression, and where they are.
fn outside_expressions(text: &str) -> impl Iterator<Item = (usize, char)> {
    let (mut inside, mut escaped) = (false, false);
    text.char_indices().filter(move |(_, c)| {
        let was_inside = inside;
        match c {
            _ if escaped => {}
            '(' => inside = true,
            ')' => inside = false,
            _ => {}
        }
        escaped = *c == '\\' && !escaped;
        !was_inside && !inside
    })
}

/// Where a character is for the first time that is in no group.
fn outside_groups(text: &str, wanted: char) -> Option<usize> {
    let mut depth = 0_usize;
    let mut outside = outside_expressions(text);
    outside.find_map(|(at, c)| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        (depth == 0 && c == wanted).then_some(at)
    })
}

/// Checks the host of a pattern: that its text is what it is matched with, and that a wildcard ends
/// where a label does. `https://*example.com` would be `evilexample.com`, too, and
/// `https://example.com:port` would be `example.community`.
fn check_host(host: &str) -> Result<(), String> {
    if host.is_empty() {
        return Err("it has no host; `https://*/*` is every one".into());
    }
    if host.starts_with('[') {
        // An address that was read before.
        return Ok(());
    }
    let parts = parse_pattern_string(host, &Options::hostname(), |text| Ok(text.to_string()));
    let parts = parts.map_err(|error| error.to_string())?;
    let texts = parts.iter().flat_map(|part| match part.kind {
        PartType::FixedText => [part.value.as_str(), ""],
        _ => [part.prefix.as_str(), part.suffix.as_str()],
    });
    for text in texts.filter(|text| !text.is_empty()) {
        check_host_text(text)?;
    }
    for (index, part) in parts.iter().enumerate() {
        let before = index.checked_sub(1).and_then(|before| parts.get(before));
        if !ends_at_label(part, before, parts.get(index + 1)) {
            return Err(format!(
                "in `{host}` a wildcard stands for a part of a name; it stands for whole ones, as \
                 in `*.example.com`, and a port is a number or `*`"
            ));
        }
    }
    Ok(())
}

/// Checks that a text of a host is not changed when it is made a host: `192.168.` is an address by
/// itself, and `0x7f.1` is another way to write one.
fn check_host_text(text: &str) -> Result<(), String> {
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._".contains(c);
    if !text.chars().all(is_plain) {
        return Err(format!("{text:?} is not a host or a part of one"));
    }
    let mut url = Url::parse("http://host.test").map_err(|error| error.to_string())?;
    let is_host = quirks::set_hostname(&mut url, text).is_ok();
    let becomes = quirks::hostname(&url);
    if !is_host || text.is_ascii() && becomes != text.to_ascii_lowercase() {
        return Err(format!(
            "the host `{text}` is not understood; an address is written out, as in `192.168.1.5`"
        ));
    }
    Ok(())
}

/// Whether a part of a host stands for whole labels, as far as it is not spelled out.
fn ends_at_label(part: &Part, before: Option<&Part>, after: Option<&Part>) -> bool {
    let begins = match before {
        _ if part.kind != PartType::SegmentWildcard => true,
        _ if !part.prefix.is_empty() => part.prefix.ends_with('.'),
        None => true,
        Some(before) => before.kind == PartType::FixedText && before.value.ends_with('.'),
    };
    let ends = match after {
        _ if part.kind == PartType::FixedText => true,
        _ if !part.suffix.is_empty() => part.suffix.starts_with('.'),
        None => true,
        Some(after) => {
            after.kind == PartType::FixedText
                && after.modifier == PartModifier::None
                && after.value.starts_with('.')
        }
    };
    begins && ends
}

/// Checks that what a port has besides wildcards are digits: `80a` would be 80.
fn check_port(port: &str) -> Result<(), String> {
    let digits = outside_expressions(port).all(|(_, c)| c.is_ascii_digit() || "*{}?+".contains(c));
    match digits {
        true => Ok(()),
        false => Err(format!("the port `{port}` is neither a number nor `*`")),
    }
}

/// Whether a server that decodes a path, or leaves out the parameters of its segments, could find a
/// `..` in it that the URL itself does not have.
fn hides_parent(path: &str) -> bool {
    let mut path = path.as_bytes().to_vec();
    for _ in 0..MAX_DECODINGS {
        let mut segments = path.split(|byte| matches!(byte, b'/' | b'\\'));
        if segments.any(|segment| segment == b".." || segment.starts_with(b"..;")) {
            return true;
        }
        if !path.contains(&b'%') {
            break;
        }
        path = decoded(&path);
    }
    false
}

/// Decodes what is percent-encoded, once.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let mut decoded = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(&byte) = path.get(at) {
        match (byte, digit(path.get(at + 1)), digit(path.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                decoded.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn grant(text: &str) -> UrlGrant {
        UrlGrant::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_grant_allows_what_its_text_says_and_no_more() {
        let check = |text: &str, url: &str, expected: bool| {
            let url = Url::parse(url).unwrap();
            assert_eq!(grant(text).allows(&Method::GET, &url), expected, "{text} of {url}");
        };
        for anything in ["https://api.example.com", "https://api.example.com/*"] {
            check(anything, "https://api.example.com", true);
            check(anything, "https://api.example.com/a/b?c=d", true);
            check(anything, "https://api.example.com:443/a", true);
            check(anything, "https://API.Example.COM/a", true);
            check(anything, "https://api.example.com./a", false);
            check(anything, "https://api.example.com:8443/a", false);
            check(anything, "http://api.example.com/a", false);
            check(anything, "http://api.example.com:443/a", false);
            check(anything, "ftp://api.example.com/a", false);
            check(anything, "https://example.com/a", false);
            check(anything, "https://x.api.example.com/a", false);
            check(anything, "https://api.example.community/a", false);
            check(anything, "https://me@api.example.com/a", false);
            check(anything, "https://:pass@api.example.com/a", false);
            check(anything, "https://api.example.com@evil.com/a", false);
            check(anything, "https://evil.com/https://api.example.com/a", false);
            check(anything, "https://evil.com#https://api.example.com/a", false);
        }
        check("https://a.b/", "https://a.b", true);
        check("https://a.b/", "https://a.b/?q", true);
        check("https://a.b/", "https://a.b/x", false);
        check("https://a.b/v1", "https://a.b/v1?q=1", true);
        check("https://a.b/v1", "https://a.b/v1/", false);
        check("https://a.b/v1", "https://a.b/V1", false);
        check("https://a.b/v1?q=1", "https://a.b/v1?q=1", true);
        check("https://a.b/v1?q=1", "https://a.b/v1?q=1&r", false);
        check("https://a.b/v1/*\\?q=*", "https://a.b/v1/x?q=1", true);
        check("https://a.b/v1/*\\?q=*", "https://a.b/v1/x", false);
        check("https://a.b/v1/:id", "https://a.b/v1/x", true);
        check("https://a.b/v1/:id", "https://a.b/v1/x/y", false);
        check("https://a.b/v(\\d+)/*", "https://a.b/v12/x", true);
        check("https://a.b/v(\\d+)/*", "https://a.b/vx/x", false);
        check("http{s}?://a.b/*", "http://a.b/x", true);
        check("http{s}?://a.b/*", "https://a.b/x", true);
        check("HTTPS://A.b:443/*", "https://a.b/x", true);
        check("http://a.b:8080/*", "http://a.b:8080/x", true);
        check("http://a.b:*/*", "http://a.b:8080/x", true);
        check("http://a.b:*/*", "http://a.b/x", true);
        check("http://a.b:(8080|8081)/*", "http://a.b:8081/x", true);
        check("http://a.b:(8080|8081)/*", "http://a.b:8082/x", false);
        check("https://*.b.c/*", "https://a.b.c/", true);
        check("https://*.b.c/*", "https://x.a.b.c/", true);
        check("https://*.b.c/*", "https://b.c/", false);
        check("https://*.b.c/*", "https://xb.c/", false);
        check("https://:x.b.c/*", "https://a.b.c/", true);
        check("https://:x.b.c/*", "https://y.a.b.c/", false);
        check("https://{*.}?b.c/*", "https://b.c/", true);
        check("https://api-*.b.c/*", "https://api-1.b.c/", true);
        check("https://b\u{fc}cher.example/*", "https://xn--bcher-kva.example/", true);
        check("https://b\u{fc}cher.example/*", "https://B%C3%9CCHER.example/", true);
        check("http://127.0.0.1/*", "http://0x7f.1/", true);
        check("http://127.0.0.1/*", "http://2130706433/", true);
        check("http://127.0.0.1/*", "http://017700000001/", true);
        check("http://[::1]:8080/*", "http://[0:0::0:1]:8080/", true);
        check("http://[::FFFF:127.0.0.1]/*", "http://[::ffff:7f00:1]/", true);
        check("http://[::1]/*", "http://[::2]/", false);
        check("http://[2001:db8::abc]/*", "http://[2001:db8::abc]/", true);
        check("http://[2001:db8::abc]/*", "http://[2001:db8::abd]/", false);
        check("https://*/*", "https://anything.example/x", true);
        // What is in a group or a regular expression is no border of a part.
        check("http://a.b:(80|[89]0)/*", "http://a.b:90/x", true);
        check("http://a.b:(8|80|[89]0)/*", "http://a.b:90/x", true);
        check("http://a.b:(81|\\)[89])/*", "http://a.b:81/x", true);
        check("http://a.b:(81)/@x", "http://a.b:81/@x", true);
        check("https://{www.}?a.b/@x", "https://a.b/@x", true);
        check("https://a.b/(x\\)y)", "https://a.b/x)y", true);
        check("https://a.:x.c/*", "https://a.b.c/", true);
    }

    #[test]
    fn a_path_is_not_left() {
        let check = |url: &str, expected: bool| {
            let url = Url::parse(url).unwrap();
            let below = grant("https://a.b/v1/*").allows(&Method::GET, &url);
            assert_eq!(below, expected, "{url}");
            assert!(grant("https://a.b").allows(&Method::GET, &url), "{url}");
        };
        check("https://a.b/v1/x/../y", true);
        check("https://a.b/v1/x..y/...", true);
        check("https://a.b/v1/100%25", true);
        check("https://a.b/v1/../v2", false);
        check("https://a.b/v1/%2e%2E/v2", false);
        check("https://a.b/v1/.%2e/v2", false);
        check("https://a.b/v1\\..\\v2", false);
        check("https://a.b/v1/%2e%2e%2fv2", false);
        check("https://a.b/v1/..%2fv2", false);
        check("https://a.b/v1/..%5cv2", false);
        check("https://a.b/v1/%252e%252e%252fv2", false);
        check("https://a.b/v1/..;/v2", false);
        check("https://a.b/v1/%2e%2e;x=y/v2", false);
    }

    #[test]
    fn methods_are_granted_as_they_are_listed() {
        let url = Url::parse("https://a.b/").unwrap();
        let check = |text: &str, method: &str, expected: bool| {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(grant(text).allows(&method, &url), expected, "{text} of {method}");
        };
        check("https://a.b", "DELETE", true);
        check("GET https://a.b", "GET", true);
        check("GET https://a.b", "get", false);
        check("GET https://a.b", "POST", false);
        check("GET,POST  https://a.b", "POST", true);
        check("PURGE https://a.b", "PURGE", true);
    }

    #[test]
    fn only_a_host_that_is_spelled_out_is_named() {
        let check = |text: &str, host: &str, expected: bool| {
            assert_eq!(grant(text).names_host(host), expected, "{text} and {host}");
        };
        check("http://localhost:8080/*", "localhost", true);
        check("http://LOCALHOST/*", "localhost", true);
        check("http://127.0.0.1:*/*", "127.0.0.1", true);
        check("http://[::1]/*", "[::1]", true);
        check("http://[0:0:0:0:0:0:0:1]/*", "[::1]", true);
        check("http://192.168.1.5/*", "192.168.1.5", true);
        check("http://192.168.1.5/*", "192.168.1.6", false);
        check("http://*/*", "localhost", false);
        check("http://*.lan/", "nas.lan", false);
        check("http://:host/", "localhost", false);
        check("http://(localhost)/", "localhost", false);
        check("http://{www.}?localhost/", "localhost", false);
        check("http://nas.lan/", "nas.lan", true);
    }

    #[test]
    fn what_is_no_grant_is_refused_with_a_reason() {
        let check = |text: &str, expected: &str| {
            let error = UrlGrant::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        let schemes = "begins with `http://`";
        check("", schemes);
        check("*", schemes);
        check("api.example.com", schemes);
        check("/path", schemes);
        check("*://a.b/*", schemes);
        check("ftp://a.b/*", schemes);
        check("file:///etc/passwd", schemes);
        check("ws://a.b/*", schemes);
        check("http*://a.b/*", schemes);
        check("(http|ftp)://a.b/*", schemes);
        check("https://me@a.b/*", "user names");
        check("https://me:secret@a.b/*", "user names");
        check("https://a.b/*#x", "never sent");
        check("https://", "no host");
        check("https:///x", "no host");
        check("get https://a.b", "is not a method");
        check("GET, POST https://a.b", "is not a method");
        check("CONNECT https://a.b", "cannot be granted");
        check("GET,TRACE https://a.b", "cannot be granted");
        check("https://a.b/x y", "is not a method");
        check("GET https://a.b/x y", "METHOD,METHOD pattern");
        check("https://a.b/\tx", "METHOD,METHOD pattern");
        check("https://a.b/**", "is not needed");
        check("https://a.b/*?x=1", "begins with `\\?`");
        check("https://a.b/\\", "stands before nothing");
        check("https://a.b:port/*", "a port is a number");
        check("https://*b.c/*", "whole ones");
        check("https://{:x}b.c/*", "whole ones");
        check("https://{a:x}.b.c/*", "whole ones");
        check("https://:x{.b}?c.d/*", "whole ones");
        check("https://{me/@}a.b/*", "user names");
        check("https://(.*)b.c/*", "whole ones");
        check("https://a.b:80a/*", "neither a number nor");
        check("https://192.168.*/*", "written out");
        check("https://10.*/*", "written out");
        check("https://*.1/*", "written out");
        check("http://0x7f.1/*", "written out");
        check("http://2130706433/*", "written out");
        check("https://a%2eb/*", "is not a host");
        check("https://a\\:b/*", "neither a number nor");
        check("http://[::1/*", "written out");
        check("http://]/*", "written out");
        check("http://[::1]*/*", "written out");
        check("http://[::1]e:80/*", "written out");
        check("http://[::1]{:80}?/*", "written out");
        check("http://{[}]/*", "written out");
        check("http://([)]/*", "([)");
        check("http://[*]/*", "written out");
        check("https://a.b/v1/../*", "`..`");
        check("https://a.b/v1/{..}/*", "`..`");
        check("https://a.b/v1/\\.\\./*", "`..`");
        check("https://a.b/v1/%2e%2e/*", "`..`");
        check("https://a.b/(a", "is not closed");
        check("https://a.b/(a(?:b))", "has no groups");
        check("https://a.b/(?a)", "is not a regular expression");
        check("https://a.b/([)x(])", "([)");
        check("https://a.b/(a{9999}{9999})", "(a{9999}{9999})");
        check(&format!("https://a.b/{}", "x".repeat(MAX_PATTERN_BYTES)), "longer than");
        check(&format!("https://a.b/{}", "(x)".repeat(MAX_EXPRESSIONS + 1)), "more than 8");
    }

    #[test]
    fn a_grant_may_be_as_long_as_it_may_be() {
        let longest =
            format!("https://a.b/{}", "x".repeat(MAX_PATTERN_BYTES - "https://a.b/".len()));
        assert!(UrlGrant::parse(&longest).is_ok());
        assert!(UrlGrant::parse(&format!("https://a.b/{}", "(x)".repeat(MAX_EXPRESSIONS))).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r"(http|https|http\{s\}\?)://[a-z0-9:*?+.(){}\[\]\\/@#%\u{e9}\u{ad}\u{200d}\u{0}\u{3002}-]{0,24}") {
            let _ = UrlGrant::parse(&text);
        }

        #[test]
        fn a_host_that_is_spelled_out_is_the_only_one(
            granted in r"[a-z][a-z0-9]{0,3}(\.[a-z]{1,3}){0,2}",
            asked in r"[a-z0-9.@:%]{1,12}",
        ) {
            let Ok(url) = Url::parse(&format!("https://{asked}/")) else { return Ok(()) };
            let allowed = grant(&format!("https://{granted}/*")).allows(&Method::GET, &url);
            let same = url.host_str() == Some(granted.as_str());
            prop_assert!(!allowed || same, "{granted} allows {url}");
        }

        #[test]
        fn a_path_that_is_spelled_out_begins_every_one(path in r"[a-z./%25eEfF;\\]{0,16}") {
            let url = Url::parse(&format!("https://a.b/{path}")).unwrap();
            let allowed = grant("https://a.b/v1/*").allows(&Method::GET, &url);
            prop_assert!(!allowed || url.path().starts_with("/v1/"), "{url}");
        }
    }
}
