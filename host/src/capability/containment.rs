//! Whether one value of a capability is more than another, as far as their texts tell.
//!
//! No use is decided by this: what was requested and what was approved must both allow it. It is for
//! people, who are told what a grant comes to. So where two patterns cannot be compared, the answer
//! is that one may be within the other.

use http::Method;
use url::Url;

use super::filesystem::{PathGrant, Protection};
use super::grant::Grant;
use super::network::UrlGrant;
use crate::text::fits;

/// Whether all that a value allows may be allowed by one of these.
pub(super) fn may_be_within(wanted: &Grant, granted: &[Grant]) -> bool {
    let one = |text: &str| granted.iter().any(|granted| covers(granted, text));
    match (wanted, wanted.text().strip_prefix("readwrite:")) {
        (Grant::Path(_), Some(glob)) => {
            one(&format!("read:{glob}")) && one(&format!("write:{glob}"))
        }
        _ => one(wanted.text()),
    }
}

fn covers(granted: &Grant, wanted: &str) -> bool {
    match granted {
        Grant::Name(name) => name == wanted,
        // A `*` is taken by no other character than a `*`.
        Grant::Pattern(pattern) => fits(pattern, wanted),
        Grant::Path(grant) => covers_path(grant.text(), wanted),
        Grant::Url(grant) => covers_url(grant, wanted),
    }
}

fn covers_path(granted: &str, wanted: &str) -> bool {
    let split = |text| str::split_once(text, ':').unwrap_or_default();
    let ((access, granted), (wanted_access, wanted)) = (split(granted), split(wanted));
    if access != "readwrite" && access != wanted_access {
        return false;
    }
    let segments = |glob: &str| -> Vec<String> {
        glob.split('/').filter(|segment| !segment.is_empty()).map(Into::into).collect()
    };
    // A name that no glob covers is to be spelled out.
    let protected = PathGrant::parse_approved(&format!("{wanted_access}:{wanted}"));
    let protected = protected.map(|grant| Protection::default().protected_segments(&grant));
    let protected = protected.unwrap_or_default();
    let (granted, wanted) = (segments(granted), segments(wanted));
    // Whether the rest of the wanted glob, from each of its segments on, is covered by the rest of
    // the granted one, whose segments are looked at from the last to the first.
    let mut rest: Vec<bool> = (0..=wanted.len()).map(|from| from == wanted.len()).collect();
    for segment in granted.iter().rev() {
        let mut covered = vec![false; rest.len()];
        for from in (0..rest.len()).rev() {
            let next = wanted.get(from);
            let by_name = protected.get(from) == Some(&true);
            covered[from] = match segment == "**" {
                true => rest[from] || next.is_some() && !by_name && covered[from + 1],
                false if by_name => next == Some(segment) && rest[from + 1],
                false => next.is_some_and(|next| covers_segment(segment, next)) && rest[from + 1],
            };
        }
        rest = covered;
    }
    rest[0]
}

fn covers_segment(granted: &str, wanted: &str) -> bool {
    let is_simple = |text: &str| !text.contains(['?', '[', '{', '\\']);
    match wanted == "**" {
        true => false,
        false if is_simple(granted) && is_simple(wanted) => fits(granted, wanted),
        false => true,
    }
}

fn covers_url(granted: &UrlGrant, wanted: &str) -> bool {
    let (methods, pattern) = methods_of(granted.text());
    let (wanted_methods, wanted) = methods_of(wanted);
    if !methods.is_empty()
        && (wanted_methods.is_empty()
            || !wanted_methods.iter().all(|method| methods.contains(method)))
    {
        return false;
    }
    let is_simple = |text: &str| !text.contains(['{', '}', '(', '[', '\\', '+', '?', '#']);
    let (Some((scheme, rest)), Some((wanted_scheme, wanted_rest))) =
        (pattern.split_once("://"), wanted.split_once("://"))
    else {
        return true;
    };
    if !is_simple(rest) || !is_simple(wanted_rest) || wanted_scheme.contains('{') {
        return true;
    }
    if !wanted_rest.contains('*') && wanted_rest.contains('/') {
        // It is an address like any that is asked for.
        let method = methods.first().and_then(|method| Method::from_bytes(method.as_bytes()).ok());
        let url = Url::parse(wanted);
        return url.is_ok_and(|url| granted.allows(&method.unwrap_or_default(), &url));
    }
    let has_scheme = scheme.contains('{') || scheme.eq_ignore_ascii_case(wanted_scheme);
    let parts = |rest: &str| {
        let (authority, path) = rest.split_once('/').unwrap_or((rest, "*"));
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        (host.to_ascii_lowercase(), port.to_string(), path.to_string())
    };
    let ((host, port, path), (wanted_host, wanted_port, wanted_path)) =
        (parts(rest), parts(wanted_rest));
    let default = if wanted_scheme.eq_ignore_ascii_case("https") { "443" } else { "80" };
    let number = |port: &str| if port.is_empty() { default.to_string() } else { port.to_string() };
    has_scheme
        && fits(&host, &wanted_host)
        && fits(&number(&port), &number(&wanted_port))
        && fits(&path, &wanted_path)
}

/// The methods in front of a pattern, and the pattern.
fn methods_of(text: &str) -> (Vec<&str>, &str) {
    match text.trim().split_once(' ') {
        Some((methods, pattern)) => (methods.split(',').collect(), pattern.trim_start()),
        None => (Vec::new(), text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::GrantSet;

    #[test]
    fn what_is_more_than_another_is_found() {
        let check = |capability: &str, granted: &[&str], wanted: &str, expected: bool| {
            let mut set = GrantSet::default();
            granted.iter().for_each(|text| set.add_approved(capability, text).unwrap());
            assert_eq!(set.may_cover(capability, wanted), expected, "{granted:?} {wanted}");
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
        // These cannot be compared by their texts.
        files(&["read:/a/[xy]"], "read:/a/x", true);
        let urls = |granted: &[&str], wanted, expected| {
            check("network", granted, wanted, expected);
        };
        urls(&["https://x.example"], "https://x.example/v1/*", true);
        urls(&["https://x.example/*"], "https://x.example", true);
        urls(&["https://x.example/v1/*"], "https://x.example", false);
        urls(&["https://x.example/v1/*"], "https://x.example/v1/a", true);
        urls(&["https://x.example/v1/*"], "https://x.example/v2", false);
        urls(&["https://*.example/*"], "https://x.example/*", true);
        urls(&["https://x.example/*"], "https://*/*", false);
        urls(&["https://x.example/*"], "http://x.example/*", false);
        urls(&["http{s}?://x.example/*"], "http://x.example/*", true);
        urls(&["https://x.example/*"], "https://x.example:443/*", true);
        urls(&["https://x.example/*"], "https://x.example:8443/*", false);
        urls(&["GET https://x.example/*"], "https://x.example/*", false);
        urls(&["GET,HEAD https://x.example/*"], "GET https://x.example/a", true);
        urls(&["GET https://x.example/*"], "POST https://x.example/a", false);
        urls(&["https://x.example/*"], "GET https://x.example/*", true);
    }
}
