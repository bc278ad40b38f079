//! What clients learn of who gives them tokens: the metadata of this server as a protected resource
//! (<https://www.rfc-editor.org/rfc/rfc9728>), and what a refusal says of it
//! (<https://www.rfc-editor.org/rfc/rfc6750#section-3>).

use hyper::header::{HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::answer::{AnswerBody, Refused, json, text};
use super::issuer::IssuerSettings;

/// What stands in the well-known paths of the metadata.
const WELL_KNOWN: &str = "oauth-protected-resource";

/// Whether a path is one of the metadata of this server: of all of it, of where MCP is served, or of where a proxy has
/// it.
pub(super) fn is_metadata(path: &str, issuer: Option<&IssuerSettings>) -> bool {
    let rest = path.strip_prefix("/.well-known/").and_then(|path| path.strip_prefix(WELL_KNOWN));
    rest.is_some_and(|rest| {
        matches!(rest, "" | "/mcp")
            || rest.starts_with("/mcp/p/")
            || issuer.is_some_and(|issuer| well_known(&issuer.audience, WELL_KNOWN).ends_with(path))
    })
}

/// The URL of what is well known of a resource: that part stands before its path
/// (<https://www.rfc-editor.org/rfc/rfc8414#section-3.1>).
pub(super) fn well_known(resource: &str, name: &str) -> String {
    let resource = resource.trim_end_matches('/');
    let host = resource.find("://").map_or(0, |scheme| scheme + 3);
    let path = resource[host..].find('/').map_or(resource.len(), |slash| host + slash);
    let (origin, path) = resource.split_at(path);
    format!("{origin}/.well-known/{name}{path}")
}

/// The metadata.
pub(super) fn metadata(issuer: &IssuerSettings) -> Response<AnswerBody> {
    let mut metadata = json!({
        "resource": issuer.audience,
        "authorization_servers": [issuer.issuer],
        "bearer_methods_supported": ["header"],
        "resource_name": "Tenon",
    });
    if !issuer.scopes.is_empty() {
        metadata["scopes_supported"] = json!(issuer.scopes);
    }
    json(StatusCode::OK, metadata.to_string())
}

/// Why a request is refused that says in `Authorization` who sends it, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthorizationError {
    /// There is no token.
    Missing,
    /// There are several, or what there is is none.
    Malformed,
    /// The token is not good.
    Invalid(&'static str),
    /// The token is good for less than what is asked for.
    InsufficientScope,
    /// Whether the token is good cannot be found out now.
    Unknown,
}

impl AuthorizationError {
    /// The response, which tells a client where it gets a token that is good.
    pub(super) fn refuse(self, issuer: Option<&IssuerSettings>) -> Refused {
        let (status, error, problem) = match self {
            Self::Missing => {
                let problem = "a token is required: Authorization: Bearer …".to_string();
                (StatusCode::UNAUTHORIZED, None, problem)
            }
            Self::Malformed => {
                let problem =
                    "there is one token in a request: Authorization: Bearer …".to_string();
                (StatusCode::BAD_REQUEST, Some("invalid_request"), problem)
            }
            Self::Invalid(why) => {
                let problem = format!("the token is not good: {why}");
                (StatusCode::UNAUTHORIZED, Some("invalid_token"), problem)
            }
            Self::InsufficientScope => {
                let scopes = issuer.map(|issuer| issuer.scopes.join(" ")).unwrap_or_default();
                let problem = format!("the token has not all of the scopes: {scopes}");
                (StatusCode::FORBIDDEN, Some("insufficient_scope"), problem)
            }
            Self::Unknown => {
                let problem = "the keys of the token's issuer cannot be had now\n";
                let mut response = text(StatusCode::SERVICE_UNAVAILABLE, problem);
                response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("30"));
                return response.into();
            }
        };
        let mut response = text(status, format!("{problem}\n"));
        if let Ok(challenge) = HeaderValue::from_str(&challenge(error, issuer)) {
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        response.into()
    }
}

fn challenge(error: Option<&str>, issuer: Option<&IssuerSettings>) -> String {
    let mut parameters = Vec::new();
    if let Some(error) = error {
        parameters.push(format!("error=\"{error}\""));
    }
    if let Some(issuer) = issuer {
        parameters
            .push(format!("resource_metadata=\"{}\"", well_known(&issuer.audience, WELL_KNOWN)));
        if !issuer.scopes.is_empty() {
            parameters.push(format!("scope=\"{}\"", issuer.scopes.join(" ")));
        }
    }
    format!("Bearer {}", parameters.join(", ")).trim_end().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_where_tokens_are_got() {
        let mut issuer = IssuerSettings::new("https://id.example", "https://tools.example/mcp");
        let check = |error: AuthorizationError, issuer: Option<&IssuerSettings>, expected: &str| {
            let refused = error.refuse(issuer);
            let challenge = refused.headers().get(WWW_AUTHENTICATE);
            let challenge = challenge.map_or("", |challenge| challenge.to_str().unwrap());
            assert_eq!(format!("{} {challenge}", refused.status().as_u16()), expected, "{error:?}");
        };
        use AuthorizationError::*;
        check(Missing, None, "401 Bearer");
        check(Invalid("it has expired"), None, "401 Bearer error=\"invalid_token\"");
        check(Malformed, None, "400 Bearer error=\"invalid_request\"");
        let metadata =
            "resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource/mcp\"";
        check(Missing, Some(&issuer), &format!("401 Bearer {metadata}"));
        issuer.scopes = vec!["a".into(), "b".into()];
        check(
            InsufficientScope,
            Some(&issuer),
            &format!("403 Bearer error=\"insufficient_scope\", {metadata}, scope=\"a b\""),
        );
        check(Unknown, Some(&issuer), "503 ");
    }

    #[test]
    fn the_metadata_is_at_the_paths_of_what_it_is_about() {
        let issuer = IssuerSettings::new("https://id.example", "https://a.example/tools/mcp");
        for (path, expected) in [
            ("/.well-known/oauth-protected-resource", true),
            ("/.well-known/oauth-protected-resource/mcp", true),
            ("/.well-known/oauth-protected-resource/mcp/p/files", true),
            ("/.well-known/oauth-protected-resource/tools/mcp", true),
            ("/.well-known/oauth-protected-resource/tools", false),
            ("/.well-known/oauth-protected-resource/metrics", false),
            ("/.well-known/oauth-protected-resources", false),
            ("/mcp", false),
        ] {
            assert_eq!(is_metadata(path, Some(&issuer)), expected, "{path}");
        }
        assert!(!is_metadata("/.well-known/oauth-protected-resource/tools/mcp", None));
    }
}
