//! URL patterns against what the text of a pattern lets anybody conclude.

use std::net::IpAddr;
use std::sync::Arc;
use tenon_config::grant::UrlGrant;

use http::Method;
use url::{Host, Url};

use super::NetworkGrants;

/// Text of three lines: a grant, `METHOD URL`, and another grant that may cover the first. What is allowed
/// has what the grant spells out; what is spelled out from beginning to end allows itself.
pub(crate) fn url_pattern(text: &str) {
    let mut lines = text.split('\n');
    let mut next = || lines.next().unwrap_or_default();
    let (granted, asked, wide) = (next(), next(), next());
    let (method, url) = asked.split_once(' ').unwrap_or(("GET", asked));
    let Ok(grant) = UrlGrant::parse(granted) else { return };
    assert_eq!(grant.text(), granted);
    let spelled = ReferenceGrant::of(granted);
    allows_itself(&grant, &spelled);
    assert!(grant.covers(&grant), "{granted} covers itself");

    let Ok(method) = Method::from_bytes(method.as_bytes()) else { return };
    let Ok(url) = Url::parse(url) else { return };
    let grant = Arc::new(grant);
    let network = NetworkGrants::new(vec![vec![grant.clone()]]);
    let host_services = |address: &str| {
        let address: IpAddr = address.parse().expect("it is an address");
        network.may_reach(&method, &url, address).is_ok()
    };
    let host = url.host_str().unwrap_or_default();
    if grant.names_host(host) {
        assert!(
            !matches!(spelled.host, LiteralPart::Around(..)),
            "{granted} does not spell {host} out"
        );
        assert!(spelled.host.fits(host), "{granted} does not name {host}");
    }
    if !network.allow(&method, &url) {
        return;
    }
    let allows = format!("{granted} allows {method} {url}");
    if let Ok(wide) = UrlGrant::parse(wide)
        && wide.covers(&grant)
    {
        assert!(wide.allows(&method, &url), "{} covers it, and {allows}", wide.text());
    }
    assert!(spelled.methods.is_empty() || spelled.methods.contains(&method.as_str()), "{allows}");
    assert!(spelled.schemes.contains(&url.scheme()), "{allows}");
    assert!(url.username().is_empty() && url.password().is_none(), "{allows}");
    assert!(spelled.host.fits(host), "{allows}");
    if let Some(port) = spelled.port {
        assert_eq!(url.port(), port.filter(|port| Some(*port) != default_port(&url)), "{allows}");
    }
    assert!(spelled.path.fits(url.path()), "{allows}");
    assert!(spelled.is_any_path || !climbs(url.path()), "{allows}, which climbs");
    // Where a name leads is up to whoever owns it.
    if matches!(spelled.host, LiteralPart::Around(..)) {
        for address in ["127.0.0.1", "10.0.0.5", "169.254.169.254", "::1", "fd00::1"] {
            assert!(!host_services(address), "{allows} at {address}");
        }
    }
    if let Some(Host::Domain(_)) = url.host() {
        assert!(!host_services("169.254.169.254"), "{allows} at the metadata of a cloud");
    }
}

fn default_port(url: &Url) -> Option<u16> {
    match url.scheme() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

/// What of a grant is spelled out. It is read without the host's parser, as a person would: where a text
/// could be more than itself, nothing is concluded.
struct ReferenceGrant<'a> {
    methods: Vec<&'a str>,
    schemes: &'a [&'a str],
    host: LiteralPart,
    /// The port, or none for that of the scheme.
    port: Option<Option<u16>>,
    path: LiteralPart,
    is_any_path: bool,
}

/// What is spelled out of a part of a URL.
enum LiteralPart {
    Nothing,
    /// What it begins and ends with.
    Around(String, String),
    Whole(String),
}

impl LiteralPart {
    /// Reads a part in which `*` stands for any text.
    fn of(text: &str, is_plain: impl Fn(char) -> bool) -> Self {
        if text.chars().all(&is_plain) {
            return Self::Whole(text.into());
        }
        let begins: String = text.chars().take_while(|c| is_plain(*c)).collect();
        let ends = text.rsplit_once('*').map_or("", |(_, ends)| ends);
        let ends = if ends.chars().all(is_plain) { ends } else { "" };
        Self::Around(begins, ends.into())
    }

    fn fits(&self, text: &str) -> bool {
        match self {
            Self::Nothing => true,
            Self::Around(begins, ends) => text.starts_with(begins) && text.ends_with(ends),
            Self::Whole(whole) => text == whole,
        }
    }
}

impl<'a> ReferenceGrant<'a> {
    fn of(granted: &'a str) -> Self {
        let (methods, pattern) = match granted.trim().split_once(' ') {
            Some((methods, pattern)) => (methods.split(',').collect(), pattern.trim()),
            None => (Vec::new(), granted.trim()),
        };
        let (scheme, rest) = pattern.split_once("://").expect("a grant has a scheme");
        let schemes: &[&str] = match scheme.to_ascii_lowercase().as_str() {
            "http" => &["http"],
            "https" => &["https"],
            other => panic!("{other} is granted"),
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        let end_of_host = match authority.find(']') {
            Some(end) => end + 1,
            None => authority.find(':').unwrap_or(authority.len()),
        };
        let (host, port) = authority.split_at(end_of_host);
        let is_host = |c: char| !c.is_ascii() || c.is_ascii_alphanumeric() || "-._*".contains(c);
        let is_simple = authority.starts_with('[') || host.chars().all(is_host);
        let is_simple = is_simple && !host.is_empty();
        let any_port = port == ":*";
        let port = match port.strip_prefix(':') {
            None => Some(None),
            Some(port) if is_number(port) => port.parse().ok().map(Some),
            Some(_) => None,
        };
        if !is_simple || port.is_none() && !any_port {
            let (host, path) = (LiteralPart::Nothing, LiteralPart::Nothing);
            return Self { methods, schemes, host, port: None, path, is_any_path: true };
        }
        let host = match host.contains('*') {
            true if host.is_ascii() => LiteralPart::of(&host.to_ascii_lowercase(), |c| c != '*'),
            true => LiteralPart::Around(String::new(), String::new()),
            false => {
                let url = Url::parse(&format!("http://{host}/")).expect("it is a host");
                LiteralPart::Whole(url.host_str().expect("it has one").into())
            }
        };
        let is_any_path = matches!(path, "" | "/*");
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/".contains(c);
        let path = match LiteralPart::of(path, is_plain) {
            _ if is_any_path || path.contains("/.") => LiteralPart::Nothing,
            part => part,
        };
        Self { methods, schemes, host, port, path, is_any_path }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks that a grant without anything in it that stands for something else allows the URL that it
/// is.
fn allows_itself(grant: &UrlGrant, spelled: &ReferenceGrant<'_>) {
    let (LiteralPart::Whole(_), LiteralPart::Whole(_), Some(_)) =
        (&spelled.host, &spelled.path, spelled.port)
    else {
        return;
    };
    let url = grant.text().trim().rsplit(' ').next().unwrap_or_default();
    let url = Url::parse(url).expect("it is a URL");
    let method = spelled.methods.first().unwrap_or(&"PATCH");
    let method = Method::from_bytes(method.as_bytes()).expect("it is a method");
    assert!(grant.allows(&method, &url), "{} does not allow itself", grant.text());
}

/// Whether a path climbs for somebody who decodes it as often as there is something to decode.
fn climbs(path: &str) -> bool {
    let mut path = path.to_string();
    for _ in 0..3 {
        let is_parent = |segment: &str| segment == ".." || segment.starts_with("..;");
        if path.split(['/', '\\']).any(is_parent) {
            return true;
        }
        for (encoded, character) in [("2e", "."), ("2f", "/"), ("5c", "\\"), ("3b", ";")] {
            path = path.replace(&format!("%{encoded}"), character);
            path = path.replace(&format!("%{}", encoded.to_ascii_uppercase()), character);
        }
        path = path.replace("%2E", ".").replace("%25", "%");
    }
    false
}
