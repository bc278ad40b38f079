//! Who may reach the server: by the names under which it is reached, and by a token.
//!
//! A web page that a user opens can send requests to this machine. `Host` and `PluginOrigin` say that it does: a page cannot
//! choose them, and a name that was rebound to this address is none of the server's.

use hyper::StatusCode;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, ORIGIN};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::HttpSettings;
use super::answer::{Refused, text};
use super::issuer::{IssuerSettings, TokenIssuer};
use super::protected_resource::AuthorizationError;
use super::token::{Access, HttpTokenDigest, TokenStore};
use crate::seal::sha256_hex;

/// Checks who sends a request.
pub(super) struct Guard {
    port: u16,
    hosts: Vec<String>,
    tokens: Option<Arc<dyn TokenStore>>,
    issuer: Option<Arc<TokenIssuer>>,
}

impl Guard {
    pub(super) fn new(settings: &HttpSettings, address: SocketAddr) -> Self {
        let mut hosts = settings.hosts.clone();
        // Under the address that it listens on it may be reached by that as well.
        if !address.ip().is_unspecified() {
            hosts.push(SocketAddr::new(address.ip(), address.port()).to_string());
        }
        Self {
            port: address.port(),
            hosts,
            tokens: settings.tokens.clone(),
            issuer: settings.issuer.clone(),
        }
    }

    /// Refuses a request for another host, or from a foreign page.
    pub(super) fn check_names(&self, headers: &HeaderMap) -> Result<(), Refused> {
        let refused = |what: &str| Refused::from(text(StatusCode::FORBIDDEN, format!("{what}\n")));
        let mut hosts = headers.get_all(HOST).iter();
        let host = hosts.next().and_then(|host| host.to_str().ok());
        if hosts.next().is_some() || !host.is_some_and(|host| self.is_ours(host)) {
            return Err(refused(
                "the request is for another host; if that is a name of this server, `tenon serve --host NAME` takes it",
            ));
        }
        for origin in headers.get_all(ORIGIN) {
            let host = origin.to_str().ok().and_then(host_of);
            if !host.is_some_and(|host| self.is_ours(host)) {
                return Err(refused("the request comes from a page of another origin"));
            }
        }
        Ok(())
    }

    /// The issuer whose tokens are taken.
    pub(super) fn issuer(&self) -> Option<&IssuerSettings> {
        self.issuer.as_ref().map(|issuer| issuer.settings())
    }

    /// Refuses a request of nobody who may. Gives who sends it; nothing where nobody is asked for a token.
    pub(super) async fn check_token(&self, headers: &HeaderMap) -> Result<Option<Access>, Refused> {
        if self.tokens.is_none() && self.issuer.is_none() {
            return Ok(None);
        }
        let access = match read_bearer(headers) {
            Ok(token) => self.access(token).await,
            Err(error) => Err(error),
        };
        access.map(Some).map_err(|error| error.refuse(self.issuer()))
    }

    async fn access(&self, text: &str) -> Result<Access, AuthorizationError> {
        let token = HttpTokenDigest::new(text);
        if let Some(tokens) = &self.tokens
            && let Some(grant) = tokens.grant(&token).await
        {
            // Another token of the same name is another client.
            return Ok(Access { principal: token.sha256().into(), grant });
        }
        let unknown = AuthorizationError::Invalid("it is unknown, or has ended");
        let issuer = self.issuer.as_ref().filter(|_| text.contains('.')).ok_or(unknown)?;
        issuer.check(text).await
    }

    /// Whether a name is one of this server's: a loopback name with its port or without, or one that was configured.
    fn is_ours(&self, host: &str) -> bool {
        let named = |known: &String| {
            known.eq_ignore_ascii_case(host)
                || host
                    .strip_suffix(&format!(":{}", self.port))
                    .is_some_and(|host| known.eq_ignore_ascii_case(host))
        };
        if self.hosts.iter().any(named) {
            return true;
        }
        let (name, port) = split_port(host);
        let is_port = port.is_none_or(|port| port.parse() == Ok(self.port));
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
        is_port && (name.eq_ignore_ascii_case("localhost") || is_loopback)
    }
}

/// Splits `host:port`, where the host may be an address in brackets.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// The host of an origin over HTTP; nothing for others, such as `null`.
fn host_of(origin: &str) -> Option<&str> {
    let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"))?;
    (!rest.contains(['/', '@'])).then_some(rest)
}

/// The token of a request.
fn read_bearer(headers: &HeaderMap) -> Result<&str, AuthorizationError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let first = given.next().ok_or(AuthorizationError::Missing)?;
    if given.next().is_some() {
        return Err(AuthorizationError::Malformed);
    }
    let token = first.to_str().ok().and_then(|text| {
        let (scheme, token) = text.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    });
    token.filter(|token| !token.is_empty()).ok_or(AuthorizationError::Missing)
}

/// Names a client that nobody asks for a token by what it sends in its place. It tells clients apart, and says nothing of
/// who they are.
pub(super) fn unchecked_principal(headers: &HeaderMap) -> Arc<str> {
    match headers.get(AUTHORIZATION) {
        None => "".into(),
        Some(value) => sha256_hex(&[value.as_bytes()]).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn check(guard: &Guard, headers: &[(&str, &str)], expected: u16) {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            let name: hyper::header::HeaderName = name.parse().unwrap();
            map.append(name, value.parse().unwrap());
        }
        let of_token = || guard.check_token(&map).now_or_never().expect("nothing is fetched");
        let checked = guard.check_names(&map).and_then(|()| of_token());
        let status = checked.map_or_else(|refused| refused.status().as_u16(), |_| 200);
        assert_eq!(status, expected, "{headers:?}");
    }

    #[test]
    fn only_names_of_this_server_are_reached() {
        let settings =
            HttpSettings { hosts: vec!["tenon.example".into()], ..HttpSettings::default() };
        let guard = Guard::new(&settings, "127.0.0.1:7331".parse().unwrap());
        for host in [
            "127.0.0.1:7331",
            "localhost:7331",
            "LOCALHOST",
            "[::1]:7331",
            "::1",
            "127.0.0.1",
            "tenon.example",
            "tenon.example:7331",
        ] {
            check(&guard, &[("host", host)], 200);
            check(&guard, &[("host", host), ("origin", &format!("http://{host}"))], 200);
        }
        for host in [
            "evil.example",
            "localhost:80",
            "127.0.0.1.evil.example:7331",
            "localhost.evil.example",
            "10.0.0.1:7331",
            "",
            "localhost:7331:1",
            "user@localhost",
        ] {
            check(&guard, &[("host", host)], 403);
        }
        check(&guard, &[], 403);
        check(&guard, &[("host", "localhost"), ("host", "localhost")], 403);
        for origin in [
            "http://evil.example",
            "null",
            "file://",
            "http://localhost@evil.example",
            "http://localhost:80",
        ] {
            check(&guard, &[("host", "localhost:7331"), ("origin", origin)], 403);
        }
    }

    #[test]
    fn a_token_is_asked_for_and_compared() {
        let settings = HttpSettings {
            tokens: Some(Arc::new(HttpTokenDigest::new("secret"))),
            ..HttpSettings::default()
        };
        let guard = Guard::new(&settings, "127.0.0.1:7331".parse().unwrap());
        let host = ("host", "localhost");
        check(&guard, &[host, ("authorization", "Bearer secret")], 200);
        check(&guard, &[host, ("authorization", "bearer  secret")], 200);
        for wrong in ["Bearer secrets", "Bearer", "Basic secret", "secret", "Bearer SECRET"] {
            check(&guard, &[host, ("authorization", wrong)], 401);
        }
        check(&guard, &[host], 401);
        let twice = [host, ("authorization", "Bearer secret"), ("authorization", "Bearer x")];
        check(&guard, &twice, 400);
        assert_eq!(format!("{:?}", settings.tokens), "Some(HttpTokenDigest)");
    }
}
