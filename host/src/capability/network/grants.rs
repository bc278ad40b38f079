//! What one plugin was granted of the web, and which addresses that leads to.
//!
//! A grant is read by a person, who sees names. Where a name leads is up to whoever owns it, and may
//! change at any time. So an address that is not public is reached only by a request that a grant
//! has this address in, or whose host is spelled out and is a name that nobody on the Internet can
//! own.

#[cfg(any(test, fuzzing))]
pub(super) mod fuzz;

use std::net::IpAddr;
use std::sync::Arc;
use tenon_config::grant::{Grants, UrlGrant};
use tenon_config::ip_address::{AddressKind, is_own_name};

use http::Method;
use url::Url;

/// What a plugin was granted: what it requested, and what was approved of it where that is not the
/// same. All must allow a request.
#[derive(Debug)]
pub(crate) struct NetworkGrants(Vec<Vec<Arc<UrlGrant>>>);

impl NetworkGrants {
    pub(crate) fn new(sets: Vec<Vec<Arc<UrlGrant>>>) -> Self {
        Self(sets)
    }

    /// Every public host.
    pub(crate) fn everything() -> Self {
        let grants = ["http://*:*/*", "https://*:*/*"];
        let grants = grants.iter().filter_map(|grant| UrlGrant::parse(grant).ok()).map(Arc::new);
        Self::new(vec![grants.collect()])
    }

    /// What was granted, if anything was.
    pub(crate) fn of(grants: &Grants) -> Option<Self> {
        let sets = grants.urls();
        (!sets.is_empty()).then(|| Self::new(sets))
    }

    /// Whether a request may be sent, as far as its URL tells.
    pub(crate) fn allow(&self, method: &Method, url: &Url) -> bool {
        self.0.iter().all(|grants| grants.iter().any(|grant| grant.allows(method, url)))
    }

    /// Whether a tunnel may lead to where a URL leads, on which anything may be requested there.
    pub(super) fn allow_tunnel(&self, url: &Url) -> bool {
        self.0.iter().all(|grants| grants.iter().any(|grant| grant.allows_tunnel(url)))
    }

    /// Whether a request that is allowed may be taken to an address that its host has. A `CONNECT` stands for a tunnel.
    pub(super) fn may_reach(
        &self,
        method: &Method,
        url: &Url,
        address: IpAddr,
    ) -> Result<(), AddressKind> {
        let kind = AddressKind::of(address);
        let allows = |grant: &UrlGrant, url: &Url| match *method == Method::CONNECT {
            true => grant.allows_tunnel(url),
            false => grant.allows(method, url),
        };
        let is_named = |url: &Url| {
            let host = url.host_str().unwrap_or_default();
            let names = |grant: &Arc<UrlGrant>| grant.names_host(host) && allows(grant, url);
            self.0.iter().all(|grants| grants.iter().any(names))
        };
        if kind == AddressKind::Public
            || is_named(&at(url, address))
            || is_own_name(url, kind) && is_named(url)
        {
            return Ok(());
        }
        Err(kind)
    }
}

/// The grant that would let a request reach an address.
pub(super) fn wanted(url: &Url, address: IpAddr) -> String {
    match is_own_name(url, AddressKind::of(address)) {
        true => everything_at(url),
        false => everything_at(&at(url, address)),
    }
}

/// The grant of all that is where a URL leads.
pub(super) fn everything_at(url: &Url) -> String {
    format!("{}/*", url.origin().ascii_serialization())
}

/// The same request, to the address itself.
fn at(url: &Url, address: IpAddr) -> Url {
    let mut url = url.clone();
    // It has a host, so that it can have another one.
    let _ = url.set_ip_host(address);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_not_public_is_reached_only_where_it_is_named() {
        let check =
            |granted: &[&str], url: &str, address: &str, expected: Result<(), AddressKind>| {
                let grants = granted.iter().map(|text| Arc::new(UrlGrant::parse(text).unwrap()));
                let grants = NetworkGrants::new(vec![grants.collect()]);
                let url = Url::parse(url).unwrap();
                assert!(grants.allow(&Method::GET, &url), "{url}");
                let reached = grants.may_reach(&Method::GET, &url, address.parse().unwrap());
                assert_eq!(reached, expected, "{granted:?}: {url} at {address}");
            };
        let private = Err(AddressKind::Private);
        check(&["https://*/*"], "https://a.com/", "8.8.8.8", Ok(()));
        check(&["https://*/*"], "https://a.com/", "10.0.0.5", private);
        check(&["https://*/*"], "https://10.0.0.5/", "10.0.0.5", private);
        check(&["https://10.0.0.5/*"], "https://10.0.0.5/", "10.0.0.5", Ok(()));
        check(&["http://169.254.169.254"], "http://169.254.169.254/", "169.254.169.254", Ok(()));
        // Whoever owns the name says where it leads.
        check(&["https://a.com/*"], "https://a.com/", "10.0.0.5", private);
        check(&["https://a.com/*", "https://10.0.0.5/*"], "https://a.com/", "10.0.0.5", Ok(()));
        check(&["https://a.com/*", "https://10.0.0.5/x"], "https://a.com/", "10.0.0.5", private);
        check(&["https://a.com/*", "https://10.0.0.5:1/*"], "https://a.com/", "10.0.0.5", private);
        check(&["https://a.com/*", "POST https://10.0.0.5"], "https://a.com/", "10.0.0.5", private);

        // Nobody owns these.
        check(&["http://nas.lan/*"], "http://nas.lan/", "192.168.0.9", Ok(()));
        check(&["http://a.example/*"], "http://a.example/", "10.0.0.5", Ok(()));
        check(&["http://nas/*"], "http://nas/", "fd00::1", Ok(()));
        check(&["http://a.home.arpa/*"], "http://a.home.arpa/", "10.0.0.5", Ok(()));
        check(&["http://a.arpa/*"], "http://a.arpa/", "10.0.0.5", private);
        check(&["http://*.lan/*"], "http://nas.lan/", "192.168.0.9", private);
        check(
            &["http://nas.lan/*"],
            "http://nas.lan/",
            "169.254.169.254",
            Err(AddressKind::LinkLocal),
        );
        check(&["http://localhost/*"], "http://localhost/", "127.0.0.1", Ok(()));
        check(&["http://a.localhost/*"], "http://a.localhost/", "::1", Ok(()));
        check(&["http://localhost/*"], "http://localhost/", "10.0.0.5", private);
        check(&["http://*/*"], "http://localhost/", "127.0.0.1", Err(AddressKind::Loopback));
        check(&["http://notlocalhost/*"], "http://notlocalhost/", "127.0.0.1", Ok(()));
    }

    #[test]
    fn a_tunnel_reaches_what_is_named_as_a_request_does() {
        let check =
            |granted: &[&str], url: &str, address: &str, expected: Result<(), AddressKind>| {
                let grants = granted.iter().map(|text| Arc::new(UrlGrant::parse(text).unwrap()));
                let grants = NetworkGrants::new(vec![grants.collect()]);
                let url = Url::parse(url).unwrap();
                let reached = grants.may_reach(&Method::CONNECT, &url, address.parse().unwrap());
                assert_eq!(reached, expected, "{granted:?}: {url} at {address}");
            };
        check(&["https://a.com/x"], "https://a.com/", "8.8.8.8", Ok(()));
        check(&["https://a.com/x"], "https://a.com/", "10.0.0.5", Err(AddressKind::Private));
        check(&["https://a.com/x", "https://10.0.0.5/y"], "https://a.com/", "10.0.0.5", Ok(()));
        let grants = |texts: &[&str]| -> Vec<Arc<UrlGrant>> {
            texts.iter().map(|text| Arc::new(UrlGrant::parse(text).unwrap())).collect()
        };
        let url = Url::parse("https://a.com/").unwrap();
        let both = NetworkGrants::new(vec![grants(&["https://*"]), grants(&["https://a.com/x"])]);
        assert!(both.allow_tunnel(&url));
        let one = NetworkGrants::new(vec![grants(&["https://*"]), grants(&["https://b.com"])]);
        assert!(!one.allow_tunnel(&url));
    }

    #[test]
    fn the_grant_that_is_wanted_names_what_has_to_be_named() {
        let check = |url: &str, address: &str, expected: &str| {
            assert_eq!(wanted(&Url::parse(url).unwrap(), address.parse().unwrap()), expected);
            UrlGrant::parse(expected).unwrap();
        };
        check("https://a.com/x?y", "10.0.0.5", "https://10.0.0.5/*");
        check("http://a.com:8080/", "::1", "http://[::1]:8080/*");
        check("http://localhost:8080/", "127.0.0.1", "http://localhost:8080/*");
        check("http://localhost:8080/", "10.0.0.5", "http://10.0.0.5:8080/*");
        check("http://nas.lan/", "10.0.0.5", "http://nas.lan/*");
    }
}
