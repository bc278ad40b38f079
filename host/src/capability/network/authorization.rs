//! The user's authorization to an MCP server elsewhere: the host puts an access token into requests to that server. The
//! bridge, which sends them, never sees it.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use tenon_config::loopback::is_loopback;
use tenon_config::secret::{KnownSecrets, Secret, SecretValues};
use url::Url;
use wasmtime_wasi_http::WasiBody;

use super::client::{CheckedRequest, Driver, Network, SendError, Timeouts};
use crate::capability::services::{AccessTokens, AuthChallenge};

/// The most challenges of a response that are looked at, and the most bytes of each.
const MAX_CHALLENGES: usize = 8;
const MAX_CHALLENGE_BYTES: usize = 4 << 10;

/// The authorization to one server.
pub(crate) struct ServerAuthorization {
    server: Url,
    tokens: Arc<dyn AccessTokens>,
    /// Whatever is told later, no token is in it.
    secrets: Arc<KnownSecrets>,
}

impl ServerAuthorization {
    pub(crate) fn new(
        server: Url,
        tokens: Arc<dyn AccessTokens>,
        secrets: Arc<KnownSecrets>,
    ) -> Self {
        Self { server, tokens, secrets }
    }

    /// Whether a request gets a token: one to the server's own origin, over TLS or on this machine, that has none.
    pub(super) fn covers(&self, url: &Url, headers: &HeaderMap) -> bool {
        url.origin() == self.server.origin()
            && (url.scheme() == "https" || is_loopback(url))
            && !headers.contains_key(AUTHORIZATION)
    }

    /// Sends a request with a token, and once more where there is another one after a refusal.
    pub(super) async fn send(
        &self,
        network: &Network,
        request: Request<WasiBody>,
        target: &CheckedRequest,
        timeouts: Timeouts,
    ) -> Result<(Response<WasiBody>, Driver), SendError> {
        let (parts, body) = request.into_parts();
        // It may have to be sent twice.
        let body = network.collect(body).await?;
        let token = self.tokens.token(self.server.as_str()).await;
        let request = self.request(&parts, &body, token.as_ref());
        let (response, driver) = network.answer(request, target, timeouts).await?;
        let challenges = challenges(&response);
        if !is_refused(response.status(), &challenges) {
            return Ok((response, driver));
        }
        let refusal = AuthChallenge { token: token.as_ref(), challenges: &challenges };
        match self.tokens.renewed(self.server.as_str(), &refusal).await {
            Some(token) => {
                // The connection ends with what keeps it going.
                drop((response, driver));
                network.answer(self.request(&parts, &body, Some(&token)), target, timeouts).await
            }
            None => Ok((response, driver)),
        }
    }

    fn request(&self, parts: &Parts, body: &Bytes, token: Option<&Secret>) -> Request<WasiBody> {
        let body = Full::new(body.clone()).map_err(|never: Infallible| match never {});
        let mut request = Request::from_parts(parts.clone(), body.boxed_unsync());
        let value = token.map(|token| HeaderValue::try_from(format!("Bearer {}", token.reveal())));
        if let (Some(token), Some(Ok(mut value))) = (token, value) {
            let mut secrets = SecretValues::default();
            secrets.add_value(token.reveal());
            self.secrets.know(&secrets);
            value.set_sensitive(true);
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        request
    }
}

/// What a response asks for.
fn challenges(response: &Response<WasiBody>) -> Vec<String> {
    let values = response.headers().get_all(WWW_AUTHENTICATE).iter();
    let texts = values.filter_map(|value| value.to_str().ok());
    let texts = texts.filter(|text| text.len() <= MAX_CHALLENGE_BYTES).take(MAX_CHALLENGES);
    texts.map(str::to_string).collect()
}

/// Whether a token was missing, or not good enough.
fn is_refused(status: StatusCode, challenges: &[String]) -> bool {
    let wants_more = |challenge: &String| challenge.contains("insufficient_scope");
    status == StatusCode::UNAUTHORIZED
        || status == StatusCode::FORBIDDEN && challenges.iter().any(wants_more)
}
