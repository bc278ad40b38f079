//! How a user logs in: with a browser, which comes back with a code that is exchanged for tokens.

use hyper::header::WWW_AUTHENTICATE;
use rmcp::transport::auth::{
    AuthorizationManager, AuthorizationMetadata, AuthorizationMetadataSource, OAuthClientConfig,
    WWWAuthenticateParams,
};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tenon_config::loopback::is_loopback;
use tenon_config::secret::Secret;
use tokio::time::timeout;
use url::Url;

use super::error::LoginError;
use super::http::LoginHttp;
use super::redirect::{RedirectAnswer, RedirectListener, query_parameter};
use super::store::{Login, LoginClient, LoginStore};

/// How long a user may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// What clients are called that are registered.
const CLIENT_NAME: &str = "Tenon";

/// What a user says of a login.
#[derive(Default)]
pub(crate) struct LoginOptions {
    /// The scopes to ask for; without any, those that the server wants.
    pub(crate) scopes: Vec<String>,
    /// As whom the authorization server knows the user's Tenon.
    pub(crate) client_id: Option<String>,
    pub(crate) client_secret: Option<Secret>,
    /// The URL of a client ID metadata document.
    pub(crate) client_metadata: Option<String>,
    /// The port that the browser comes back to.
    pub(crate) port: Option<u16>,
}

/// Logs in to a server. `show` gets the URL of the page on which the user does it.
pub(crate) async fn log_in(
    server: &Url,
    store: &LoginStore,
    options: LoginOptions,
    show: impl FnOnce(&str),
) -> Result<Login, LoginError> {
    let challenge = challenge(server, store).await?;
    let http = Arc::new(LoginHttp::new(server));
    let manager = AuthorizationManager::new_with_oauth_http_client(server.as_str(), http);
    let mut manager = manager.await?;
    let resolved = manager.resolve_metadata_from_challenge(challenge.text.as_deref()).await?;
    if let (AuthorizationMetadataSource::LegacyEndpointFallback, Some(status)) =
        (resolved.source, challenge.unasked)
    {
        return Err(match status {
            // Servers of the newer era refuse what is of the older one.
            200..=299 | 400 => LoginError::NotAsked,
            status => LoginError::NotServed(status),
        });
    }
    let metadata = resolved.metadata;
    manager.set_metadata(metadata.clone());
    // One that cannot be understood is replaced.
    let former = store.read(server.as_str()).ok().flatten();
    let former = former.filter(|login| login.issuer == metadata.issuer);
    let scopes = scopes(&manager, &options, former.as_ref(), &challenge).await;
    let (listener, client) =
        client(&mut manager, &metadata, options, former.as_ref(), &scopes).await?;
    let scopes_shown: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let page = manager.get_authorization_url(&scopes_shown).await?;
    let is_safe = |url: &Url| url.scheme() == "https" || url.scheme() == "http" && is_loopback(url);
    let url = Url::parse(&page).ok().filter(is_safe).ok_or(LoginError::Page)?;
    let parameter = |name: &str| query_parameter(&url, name).unwrap_or_default();
    let (state, resource) = (parameter("state"), parameter("resource"));
    show(&page);
    let answer = timeout(LOGIN_TIMEOUT, listener.answer(&state)).await;
    let timed_out = |_| LoginError::TimedOut(humantime::format_duration(LOGIN_TIMEOUT));
    let (code, issuer) = match answer.map_err(timed_out)? {
        RedirectAnswer::Code { code, issuer } => (code, issuer),
        RedirectAnswer::Denied(problem) => return Err(LoginError::Denied(problem)),
    };
    let tokens = manager.exchange_code_for_token_with_issuer(&code, &state, issuer.as_deref());
    let tokens = tokens.await?;
    // All that was requested is granted where nothing else is said.
    let login = Login {
        issuer: metadata.issuer,
        token_endpoint: metadata.token_endpoint,
        client,
        resource,
        scopes,
        access_token: String::new(),
        refresh_token: None,
        expires: None,
    };
    let login = login.with_tokens(&tokens);
    store.write(server.as_str(), &login)?;
    store.forget_challenge(server.as_str());
    Ok(login)
}

/// What a server wants of who asks.
struct ServerChallenge {
    /// The value of `WWW-Authenticate`.
    text: Option<String>,
    /// The scopes that a token lacked.
    missing: Vec<String>,
    /// The status with which the server answered somebody unknown, where it did not refuse.
    unasked: Option<u16>,
}

/// Whether a challenge is for tokens as these are (RFC 6750).
pub(super) fn is_bearer(challenge: &str) -> bool {
    challenge.to_ascii_lowercase().starts_with("bearer")
}

/// Asks a server what it wants, where it has not said so already when it refused a request.
async fn challenge(server: &Url, store: &LoginStore) -> Result<ServerChallenge, LoginError> {
    if let Some(text) = store.challenge(server.as_str()) {
        let of = WWWAuthenticateParams::parse(&text, server);
        let missing = match of.is_insufficient_scope() {
            true => of.scope.unwrap_or_default().split_whitespace().map(str::to_string).collect(),
            false => Vec::new(),
        };
        return Ok(ServerChallenge { text: Some(text), missing, unasked: None });
    }
    let http = LoginHttp::new(server);
    let client = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "tenon", "version": env!("CARGO_PKG_VERSION") },
    });
    let mut unasked = None;
    // Some let everybody shake hands.
    for (method, parameters) in [("initialize", client), ("tools/list", json!({}))] {
        let answer = http.probe(server, method, &parameters).await.map_err(LoginError::Server)?;
        let status = answer.status().as_u16();
        if status != 401 {
            unasked = unasked.or(Some(status));
            continue;
        }
        let values = answer.headers().get_all(WWW_AUTHENTICATE).iter();
        let mut texts = values.filter_map(|value| value.to_str().ok());
        let text = texts.find(|text| is_bearer(text)).map(str::to_string);
        return Ok(ServerChallenge { text, missing: Vec::new(), unasked: None });
    }
    Ok(ServerChallenge { text: None, missing: Vec::new(), unasked })
}

/// The scopes to ask for: those that the user wants; or those there are and those that were missing; or those that the
/// server names.
async fn scopes(
    manager: &AuthorizationManager,
    options: &LoginOptions,
    former: Option<&Login>,
    challenge: &ServerChallenge,
) -> Vec<String> {
    if !options.scopes.is_empty() {
        return options.scopes.clone();
    }
    let selected = manager.select_initial_scopes(&[]).await;
    match former.filter(|_| !challenge.missing.is_empty()) {
        Some(former) => {
            let mut known = BTreeSet::new();
            let all = former.scopes.iter().chain(&challenge.missing).chain(&selected);
            all.filter(|scope| known.insert(*scope)).cloned().collect()
        }
        None => selected,
    }
}

/// As whom the authorization server is spoken to, and where the browser comes back to: as the client that the user has
/// named, by a metadata document, as the one that was registered before, or as one that is registered now.
async fn client(
    manager: &mut AuthorizationManager,
    metadata: &AuthorizationMetadata,
    options: LoginOptions,
    former: Option<&Login>,
    scopes: &[String],
) -> Result<(RedirectListener, LoginClient), LoginError> {
    let LoginOptions { client_id, client_secret, client_metadata, port, scopes: _ } = options;
    let flag = |name: &str| metadata.additional_fields.get(name).and_then(|value| value.as_bool());
    let takes_document = flag("client_id_metadata_document_supported").unwrap_or(false);
    let registered = former.map(|login| &login.client).filter(|client| client.is_registered);
    let registered = registered.filter(|client| port.is_none_or(|port| port == client.port));
    let listener = match (registered, port) {
        // Somebody else may have it meanwhile.
        (Some(client), None) => match RedirectListener::bind(Some(client.port)).await {
            Ok(listener) => Ok(listener),
            Err(_) => RedirectListener::bind(None).await,
        },
        (_, port) => RedirectListener::bind(port).await,
    };
    let listener = listener.map_err(LoginError::Port)?;
    let registered = registered.filter(|client| client.port == listener.port);
    let named = client_id.map(|id| (id, client_secret.map(|secret| secret.reveal().to_string())));
    let named = named.or_else(|| Some((client_metadata.filter(|_| takes_document)?, None)));
    let is_registered = named.is_none();
    let known = named.or_else(|| Some((registered?.id.clone(), registered?.secret.clone())));
    let config = match known {
        Some((id, secret)) => {
            let config = OAuthClientConfig::new(id, listener.url());
            let config = config.with_scopes(scopes.to_vec());
            match secret {
                Some(secret) => config.with_client_secret(secret),
                None => config,
            }
        }
        None => {
            let wanted: Vec<&str> = scopes.iter().map(String::as_str).collect();
            let redirect = listener.url();
            let registering = manager.register_client(CLIENT_NAME, &redirect, &wanted);
            registering.await?
        }
    };
    let client = LoginClient {
        id: config.client_id.clone(),
        secret: config.client_secret.clone(),
        secret_in_body: wants_secret_in_body(metadata),
        is_registered,
        port: listener.port,
    };
    manager.configure_client(config)?;
    Ok((listener, client))
}

/// Whether an authorization server takes the secret of a client in the body of requests only (RFC 8414, section 2).
fn wants_secret_in_body(metadata: &AuthorizationMetadata) -> bool {
    let methods = metadata.additional_fields.get("token_endpoint_auth_methods_supported");
    let methods = methods.and_then(|methods| methods.as_array());
    let takes = |name: &str| methods.is_some_and(|all| all.iter().any(|method| method == name));
    takes("client_secret_post") && !takes("client_secret_basic")
}
