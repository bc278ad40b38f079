//! What of the web a plugin is granted: patterns of URLs, each for some methods or for all.
//!
//! A pattern is `SCHEME://HOST:PORT/PATH`, with methods in front of it where not all are granted:
//! `GET,HEAD https://api.example.com/v1/*`.
//!
//! * The scheme is `http` or `https`.
//! * The host is a name or an address; `*` is every host, and `*.example.com` every name that ends so,
//!   but not `example.com` itself.
//! * The port is a number, or `*` for every port. Without one it is the default port of the scheme.
//! * The path is the whole path, in which `*` stands for any text, slashes included. Without one it is
//!   any path: `https://api.example.com` grants the same as `https://api.example.com/*`.
//! * Every query is granted with its path.
//!
//! These are fewer forms than the [URL Pattern Standard] has: a person reads a grant before approving it,
//! and one grant can be compared exactly with another ([`UrlGrant::covers`]).
//!
//! [URL Pattern Standard]: https://urlpattern.spec.whatwg.org

use http::Method;
use tenon_types::text::{cut, fits};
use url::{Host, Url};

/// The longest grant, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 10;

/// How often a path is decoded to find out what a server could make of it.
const MAX_DECODINGS: usize = 4;

/// One grant.
#[derive(Debug)]
pub struct UrlGrant {
    text: Box<str>,
    /// The methods; none stands for all.
    methods: Vec<Method>,
    scheme: &'static str,
    host: HostPattern,
    /// The port; none stands for every port.
    port: Option<u16>,
    /// The path, in which `*` stands for any text.
    path: Box<str>,
}

/// Which hosts a grant is for. Names and addresses are written as [`Url::host_str`] gives them.
#[derive(Debug, PartialEq, Eq)]
enum HostPattern {
    Any,
    /// All names that end in this, which begins with a dot.
    Ending(Box<str>),
    Exact(Box<str>),
}

/// Why a text is no grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid URL pattern `{grant}`: {problem}")]
pub struct UrlGrantError {
    grant: String,
    problem: String,
}

impl UrlGrant {
    /// Reads a grant. Its text comes from a manifest, or from who approves.
    pub fn parse(text: &str) -> Result<Self, UrlGrantError> {
        read(text).map_err(|problem| UrlGrantError::new(text, problem))
    }

    /// The grant as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether a request may be sent.
    pub fn allows(&self, method: &Method, url: &Url) -> bool {
        (self.methods.is_empty() || self.methods.contains(method))
            && url.scheme() == self.scheme
            && url.username().is_empty()
            && url.password().is_none()
            && url.host_str().is_some_and(|host| self.host.matches(host))
            && (self.port.is_none() || self.port == url.port_or_known_default())
            && (self.has_any_path() || !hides_parent(url.path()))
            && fits(&self.path, url.path())
    }

    /// Whether a tunnel may lead to where a URL leads: what is requested through it is not seen. With TLS that is so for
    /// every program; without, all requests must be granted.
    pub fn allows_tunnel(&self, url: &Url) -> bool {
        let sees_nothing = self.scheme == "https";
        (sees_nothing || self.methods.is_empty() && self.has_any_path())
            && url.scheme() == self.scheme
            && url.username().is_empty()
            && url.password().is_none()
            && url.host_str().is_some_and(|host| self.host.matches(host))
            && (self.port.is_none() || self.port == url.port_or_known_default())
    }

    /// Whether every request that another grant allows is allowed by this one.
    pub fn covers(&self, other: &Self) -> bool {
        let has_methods = self.methods.is_empty()
            || !other.methods.is_empty()
                && other.methods.iter().all(|method| self.methods.contains(method));
        has_methods
            && self.scheme == other.scheme
            && self.host.covers(&other.host)
            && (self.port.is_none() || self.port == other.port)
            && fits(&self.path, &other.path)
    }

    /// Whether the pattern spells this very host or address out, as [`Url::host_str`] gives it. One
    /// that a wildcard stands for is not named.
    pub fn names_host(&self, host: &str) -> bool {
        matches!(&self.host, HostPattern::Exact(name) if **name == *host)
    }

    fn has_any_path(&self) -> bool {
        &*self.path == "/*"
    }
}

impl HostPattern {
    fn matches(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Ending(ending) => host.len() > ending.len() && host.ends_with(&**ending),
            Self::Exact(name) => **name == *host,
        }
    }

    fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (own, Self::Exact(name)) => own.matches(name),
            (Self::Ending(ending), Self::Ending(other)) => other.ends_with(&**ending),
            (Self::Ending(_) | Self::Exact(_), Self::Any) | (Self::Exact(_), Self::Ending(_)) => {
                false
            }
        }
    }
}

impl UrlGrantError {
    pub fn new(text: &str, problem: String) -> Self {
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
    let (scheme, rest) = pattern.split_once("://").unwrap_or_default();
    let (scheme, default_port) = match scheme.to_ascii_lowercase().as_str() {
        "http" => ("http", 80),
        "https" => ("https", 443),
        _ => return Err("it begins with `http://` or `https://`".into()),
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len()));
    if authority.contains('@') {
        return Err("user names and passwords are no part of a grant".into());
    }
    let (host, port) = split_port(authority)?;
    Ok(UrlGrant {
        text: text.into(),
        methods,
        scheme,
        host: read_host(host)?,
        port: match port {
            None => Some(default_port),
            Some("*") => None,
            Some(port) => Some(read_port(port)?),
        },
        path: read_path(path)?,
    })
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
pub fn never_sent(method: &Method) -> bool {
    matches!(*method, Method::CONNECT | Method::TRACE)
}

/// The host of `HOST` or `HOST:PORT`, and the port. An address of IPv6 stands in brackets.
fn split_port(authority: &str) -> Result<(&str, Option<&str>), String> {
    let (address, rest) = authority.split_at(authority.find(']').unwrap_or(0));
    match rest.split_once(':') {
        Some((name, port)) => Ok((&authority[..address.len() + name.len()], Some(port))),
        None => Ok((authority, None)),
    }
}

fn read_port(port: &str) -> Result<u16, String> {
    let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_number { port.parse().ok() } else { None };
    number.ok_or_else(|| format!("the port `{port}` is neither a number nor `*`"))
}

/// Reads a host. What a browser would make another host of is refused, so that a person sees the host that
/// is granted: `0x7f.1` is an address, and `example%2ecom` a name.
fn read_host(host: &str) -> Result<HostPattern, String> {
    let name = match host {
        "" => return Err("it has no host; `https://*/*` is every one".into()),
        "*" => return Ok(HostPattern::Any),
        host => host.strip_prefix("*.").unwrap_or(host),
    };
    if name.contains('*') {
        return Err(format!(
            "in `{host}` a wildcard stands for a part of a name; it stands for every host, or for what is \
             in front of a name, as in `*.example.com`"
        ));
    }
    let not_understood = || {
        format!(
            "the host `{name}` is not understood; an address is written out, as in `192.168.1.5`"
        )
    };
    let address = name.starts_with('[');
    let is_plain = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._".contains(c);
    if !address && !name.chars().all(is_plain) {
        return Err(not_understood());
    }
    let parsed = Host::parse(name).map_err(|_| not_understood())?;
    let becomes = parsed.to_string();
    // Of an address of IPv6, all ways to write it are read.
    if name.is_ascii() && !address && becomes != name.to_ascii_lowercase() {
        return Err(not_understood());
    }
    match host.starts_with("*.") {
        true if matches!(parsed, Host::Domain(_)) => {
            Ok(HostPattern::Ending(format!(".{becomes}").into()))
        }
        true => Err(not_understood()),
        false => Ok(HostPattern::Exact(becomes.into())),
    }
}

/// Reads a path, as it stands in the URL of a request.
fn read_path(path: &str) -> Result<Box<str>, String> {
    if path.is_empty() {
        return Ok("/*".into());
    }
    if path.contains("**") {
        return Err("`**` is not needed: `*` stands for any text, slashes included".into());
    }
    if let Some(c) = path.chars().find(|c| ['?', '#', '{', '}', '\\'].contains(c)) {
        return Err(match c {
            '?' => "a query is no part of a grant: every query is granted with its path".into(),
            '#' => "what follows a `#` is never sent".into(),
            c => format!("`{c}` has no meaning in a pattern; the one wildcard is `*`"),
        });
    }
    if hides_parent(path) {
        return Err("its path has a `..`".into());
    }
    let url = Url::parse(&format!("http://host.test{path}")).map_err(|error| error.to_string())?;
    Ok(url.path().into())
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
    fn a_tunnel_leads_where_nothing_is_seen_in_any_case_or_all_is_granted() {
        let check = |text: &str, url: &str, expected: bool| {
            let url = Url::parse(url).unwrap();
            assert_eq!(grant(text).allows_tunnel(&url), expected, "{text} to {url}");
        };
        check("https://a.com/x", "https://a.com/", true);
        check("GET https://a.com/x", "https://a.com/", true);
        check("https://a.com:8443", "https://a.com:8443/", true);
        check("https://*:*/x", "https://a.com:8443/", true);
        check("http://a.com", "http://a.com/", true);
        check("http://a.com/x", "http://a.com/", false);
        check("GET http://a.com", "http://a.com/", false);
        check("https://a.com", "http://a.com/", false);
        check("http://a.com", "https://a.com/", false);
        check("https://a.com", "https://a.com:8443/", false);
        check("https://a.com", "https://b.com/", false);
        check("https://a.com", "https://me@a.com/", false);
        check("https://a.com", "https://:pass@a.com/", false);
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
        check("https://a.b/v1/*/x", "https://a.b/v1/a/b/x?y", true);
        check("https://a.b/v1/*/x", "https://a.b/v1/a/b/y", false);
        check("https://a.b/:id/(x)+", "https://a.b/:id/(x)+", true);
        check("https://a.b/\u{e9}/*", "https://a.b/%C3%A9/x", true);
        check("HTTPS://A.b:443/*", "https://a.b/x", true);
        check("http://a.b:8080/*", "http://a.b:8080/x", true);
        check("http://a.b:*/*", "http://a.b:8080/x", true);
        check("http://a.b:*/*", "http://a.b/x", true);
        check("https://*.b.c/*", "https://a.b.c/", true);
        check("https://*.b.c/*", "https://x.a.b.c/", true);
        check("https://*.b.c/*", "https://b.c/", false);
        check("https://*.b.c/*", "https://xb.c/", false);
        check("https://*.b.c/*", "https://.b.c/", false);
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
        check("https://a.b/@x", "https://a.b/@x", true);
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
        check("http{s}?://a.b/*", schemes);
        check("https://a.b/**", "is not needed");
        check("https://a.b/*?x=1", "every query is granted");
        check("https://a.b/x\\", "has no meaning");
        check("https://a.b\\x", "has no meaning");
        check("https://a.b/{x}", "has no meaning");
        check("https://a.b:port/*", "neither a number nor");
        check("https://a.b:/*", "neither a number nor");
        check("https://a.b:65536/*", "neither a number nor");
        check("https://a.b:+80/*", "neither a number nor");
        check("https://a.b:80a/*", "neither a number nor");
        check("https://*b.c/*", "a part of a name");
        check("https://a.*.c/*", "a part of a name");
        check("https://api-*.b.c/*", "a part of a name");
        check("https://*.*/*", "a part of a name");
        check("https://{me/@}a.b/*", "written out");
        check("https://(.*)/*", "a part of a name");
        check("https://*./*", "written out");
        check("https://192.168.*/*", "a part of a name");
        check("https://*.1/*", "written out");
        check("https://*.[::1]/*", "written out");
        check("http://0x7f.1/*", "written out");
        check("http://2130706433/*", "written out");
        check("https://a%2eb/*", "written out");
        check("http://[::1/*", "written out");
        check("http://]/*", "written out");
        check("http://[::1]*/*", "a part of a name");
        check("http://[::1]e:80/*", "written out");
        check("http://[*]/*", "a part of a name");
        check("https://a.b/v1/../*", "`..`");
        check("https://a.b/v1/%2e%2e/*", "`..`");
        check(&format!("https://a.b/{}", "x".repeat(MAX_PATTERN_BYTES)), "longer than");
    }

    #[test]
    fn a_grant_may_be_as_long_as_it_may_be() {
        let longest =
            format!("https://a.b/{}", "x".repeat(MAX_PATTERN_BYTES - "https://a.b/".len()));
        assert!(UrlGrant::parse(&longest).is_ok());
    }

    #[test]
    fn one_grant_is_compared_with_another() {
        let check = |wide: &str, narrow: &str, expected: bool| {
            assert_eq!(grant(wide).covers(&grant(narrow)), expected, "{wide} {narrow}");
        };
        check("https://x.example", "https://x.example/v1/*", true);
        check("https://x.example/*", "https://x.example", true);
        check("https://x.example/v1/*", "https://x.example", false);
        check("https://x.example/v1/*", "https://x.example/v1/a", true);
        check("https://x.example/v1/*", "https://x.example/v1/*/a", true);
        check("https://x.example/v1/*/a", "https://x.example/v1/*", false);
        check("https://x.example/v1/*", "https://x.example/v2", false);
        check("https://*.example/*", "https://x.example/*", true);
        check("https://*.example/*", "https://*.x.example/*", true);
        check("https://*.x.example/*", "https://*.example/*", false);
        check("https://*.example/*", "https://*.counterexample/*", false);
        check("https://*/*", "https://[::1]/*", true);
        check("https://x.example/*", "https://*/*", false);
        check("https://x.example/*", "https://*.x.example/*", false);
        check("https://x.example/*", "http://x.example/*", false);
        check("https://x.example/*", "https://X.example:443/*", true);
        check("https://x.example/*", "https://x.example:8443/*", false);
        check("https://x.example:*/*", "https://x.example:8443/*", true);
        check("https://x.example/*", "https://x.example:*/*", false);
        check("GET https://x.example/*", "https://x.example/*", false);
        check("GET,HEAD https://x.example/*", "GET https://x.example/a", true);
        check("GET https://x.example/*", "POST https://x.example/a", false);
        check("https://x.example/*", "GET https://x.example/*", true);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in r"(http|https)://[a-z0-9:*?+.(){}\[\]\\/@#%\u{e9}\u{ad}\u{200d}\u{0}\u{3002}-]{0,24}") {
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
