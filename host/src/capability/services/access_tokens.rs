//! Access tokens of the user for MCP servers elsewhere.

use async_trait::async_trait;
use tenon_config::secret::Secret;

/// Gives access tokens for MCP servers elsewhere, for those whose entries have no `Authorization` header. A token goes into
/// requests to the origin of the server's URL, over TLS or on this machine, and nowhere else: plugins and the bridge to the
/// server never see it.
#[async_trait]
pub trait AccessTokens: Send + Sync + 'static {
    /// Returns the token for requests to the server with this URL, or `None` if its user is not logged in there. Called for
    /// each request. The default returns `None`.
    async fn token(&self, server: &str) -> Option<Secret> {
        let _ = server;
        None
    }

    /// Returns a token with which a refused request is sent once more, or `None` if there is no other. The default returns
    /// `None`.
    async fn renewed(&self, server: &str, refusal: &AuthChallenge<'_>) -> Option<Secret> {
        let _ = (server, refusal);
        None
    }
}

/// A server has refused a request: with the status 401, or with 403 because the token is not good for this.
#[derive(Debug)]
#[non_exhaustive]
pub struct AuthChallenge<'a> {
    /// The token that the request had.
    pub token: Option<&'a Secret>,
    /// The values of `WWW-Authenticate` in the response: what the server asks for, after RFC 6750 and RFC 9728.
    pub challenges: &'a [String],
}
