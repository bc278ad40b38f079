//! `[issuer]`: whose JSON Web Tokens clients of `tenon serve --http` may send.

use serde::Deserialize;
use url::Url;

use crate::loopback::is_loopback;

/// `[issuer]`, as it is written.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IssuerTable {
    url: Option<String>,
    audience: Option<String>,
    jwks: Option<String>,
    scopes: Vec<String>,
    profile: Option<String>,
    profile_claim: Option<String>,
}

/// `[issuer]`: an authorization server, and what its tokens are good for.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "IssuerTable")]
pub struct IssuerSettings {
    /// The issuer, as its tokens name it in `iss`.
    pub url: String,
    /// This server, as tokens for it name it in `aud`: its public URL.
    pub audience: String,
    /// Where the issuer's keys are. The issuer's metadata says so where it is not said.
    pub jwks: Option<String>,
    /// The scopes that a token needs, each of them.
    pub scopes: Vec<String>,
    /// The profile that clients with its tokens are offered.
    pub profile: Option<String>,
    /// The claim that names the profile of a token.
    pub profile_claim: Option<String>,
}

impl TryFrom<IssuerTable> for IssuerSettings {
    type Error = String;

    fn try_from(table: IssuerTable) -> Result<Self, String> {
        let IssuerTable { url, audience, jwks, scopes, profile, profile_claim } = table;
        let url = url.ok_or("`url` is missing: the issuer, as its tokens name it")?;
        let missing = "`audience` is missing: the public URL of this server, as tokens name it";
        let audience = audience.ok_or(missing)?;
        check_url("url", &url)?;
        check_url("audience", &audience)?;
        for (key, text) in [("url", &url), ("audience", &audience)] {
            if text.contains('?') {
                return Err(format!("`{key}` has a query"));
            }
        }
        if let Some(jwks) = &jwks {
            check_url("jwks", jwks)?;
        }
        if let Some(scope) = scopes.iter().find(|scope| !is_scope(scope)) {
            return Err(format!("{scope:?} is no scope: it is a word of ASCII without quotes"));
        }
        if profile.is_some() && profile_claim.is_some() {
            return Err("`profile` and `profile_claim` exclude each other".into());
        }
        Ok(Self { url, audience, jwks, scopes, profile, profile_claim })
    }
}

/// Whether a text is a scope after <https://www.rfc-editor.org/rfc/rfc6749#section-3.3>.
fn is_scope(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\'))
}

/// What a token is checked against comes over TLS, or from this machine.
fn check_url(key: &str, text: &str) -> Result<(), String> {
    let url = Url::parse(text).map_err(|error| format!("`{key}` is no URL: {error}"))?;
    let has_more =
        !url.username().is_empty() || url.password().is_some() || url.fragment().is_some();
    // It stands in headers and is compared as it is written.
    let is_plain = url.as_str().strip_suffix('/').unwrap_or(url.as_str())
        == text.strip_suffix('/').unwrap_or(text);
    match (url.scheme(), is_loopback(&url)) {
        _ if !is_plain => Err(format!("`{key}` is to be written as `{url}`")),
        _ if has_more => Err(format!("`{key}` has a user or a fragment")),
        ("https", _) | ("http", true) => Ok(()),
        _ => Err(format!("`{key}` is no `https` URL, which it has to be except on loopback")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_issuer_is_named_with_its_audience_and_reached_over_tls() {
        let check = |lines: &str, expected: Result<(), &str>| {
            let read = toml::from_str::<IssuerSettings>(lines).map(|_| ());
            match (read, expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(words)) if error.to_string().contains(words) => {}
                (read, _) => panic!("{lines}: {read:?}"),
            }
        };
        let with = |more: &str| {
            format!(
                "url = \"https://id.example\"\naudience = \"https://tools.example/mcp\"\n{more}"
            )
        };
        check(&with(""), Ok(()));
        check(&with("jwks = \"http://127.0.0.1:1/keys\"\nscopes = [\"a:b\"]"), Ok(()));
        check(&with("jwks = \"http://id.example/keys\""), Err("`jwks` is no `https` URL"));
        check(&with("jwks = \"https://me@id.example/keys\""), Err("`jwks` has a user"));
        let written = "`jwks` is to be written as";
        for text in [
            "https://a.example/x\"y",
            "https://a.example/\r\n",
            " https://a.example",
            "https://a.example\\b",
        ] {
            check(&with(&format!("jwks = {text:?}")), Err(written));
        }
        check(
            "url = \"https://a.example/?b\"\naudience = \"https://a.example\"",
            Err("has a query"),
        );
        check(&with("scopes = [\"a b\"]"), Err("\"a b\" is no scope"));
        check(&with("profile = \"a\"\nprofile_claim = \"b\""), Err("exclude each other"));
        check(&with("secret = \"a\""), Err("unknown field `secret`"));
        check("url = \"https://id.example\"", Err("`audience` is missing"));
        check("audience = \"https://tools.example\"", Err("`url` is missing"));
        check("url = \"id\"\naudience = \"https://tools.example\"", Err("`url` is no URL"));
    }
}
