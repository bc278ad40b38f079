//! The requests of a login. Where they go, servers say: they reach no other network than the server's own.

use hyper::Method;
use oauth2::{AsyncHttpClient, HttpRequest, HttpResponse};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use serde_json::{Value, json};
use std::pin::Pin;
use std::time::Duration;
use tokio::time::timeout;
use url::Url;

use crate::fetch_error::FetchError;
use crate::web::Web;

/// The longest response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;

/// How long a response may take, from the connection to its end.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);

/// What sends them. No redirect is followed: `rmcp` follows those of metadata itself, within one origin.
pub(super) struct LoginHttp(Web<'static>);

impl LoginHttp {
    /// Requests for the login to this server.
    pub(super) fn new(server: &Url) -> Self {
        Self(Web::near(server))
    }

    /// Sends a request, and reads the whole response.
    pub(super) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, FetchError> {
        let url = request.uri().to_string();
        let late = |_| FetchError::Failed { url, problem: "no whole answer in time".into() };
        timeout(RESPONSE_TIMEOUT, self.exchange(request)).await.map_err(late)?
    }

    async fn exchange(&self, request: HttpRequest) -> Result<HttpResponse, FetchError> {
        let (parts, body) = request.into_parts();
        let failed = |problem: String| FetchError::Failed { url: parts.uri.to_string(), problem };
        let url = Url::parse(&parts.uri.to_string()).map_err(|error| failed(error.to_string()))?;
        let answer = self.0.send(parts.method, &url, parts.headers, body.into()).await?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.read(MAX_RESPONSE_BYTES, None).await?;
        let mut response = HttpResponse::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Sends a request of the Model Context Protocol, to see whether it is refused.
    pub(super) async fn probe(
        &self,
        server: &Url,
        method: &str,
        parameters: &Value,
    ) -> Result<HttpResponse, FetchError> {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": parameters });
        let mut request = HttpRequest::new(message.to_string().into_bytes());
        *request.method_mut() = Method::POST;
        let uri = server.as_str().parse();
        *request.uri_mut() = uri.map_err(|error: hyper::http::uri::InvalidUri| {
            FetchError::Failed { url: server.to_string(), problem: error.to_string() }
        })?;
        let headers = [
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        for (name, value) in headers {
            request.headers_mut().insert(name, hyper::header::HeaderValue::from_static(value));
        }
        self.send(request).await
    }
}

impl OAuthHttpClient for LoginHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move { self.send(request.request).await.map_err(Into::into) })
    }
}

impl<'c> AsyncHttpClient<'c> for LoginHttp {
    type Error = FetchError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, FetchError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
