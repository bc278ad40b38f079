//! Access tokens of logins, renewed when their time is over.

use async_trait::async_trait;
use oauth2::basic::{BasicClient, BasicErrorResponseType};
use oauth2::{AuthType, ClientId, ClientSecret, RefreshToken, RequestTokenError, TokenUrl};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_config::diagnostic::chain;
use tenon_config::secret::Secret;
use tenon_host::services::{AccessTokens, AuthChallenge};
use tokio::task::spawn_blocking;
use url::Url;

use super::error::LoginError;
use super::flow::is_bearer;
use super::http::LoginHttp;
use super::store::{Login, LoginStore};

/// The tokens of all servers that the user is logged in to.
pub(crate) struct LoginTokenCache {
    store: LoginStore,
    /// Logins that were read, by the URLs of their servers. A keychain is asked once.
    known: Mutex<BTreeMap<String, Arc<Login>>>,
}

/// Why a token is not renewed.
#[derive(Debug, thiserror::Error)]
enum RenewError {
    #[error("the login has ended")]
    Over,
    #[error("the login cannot be renewed: {0}")]
    Failed(String),
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl LoginTokenCache {
    pub(crate) fn new(store: LoginStore) -> Self {
        Self { store, known: Mutex::default() }
    }

    fn known(&self, server: &str) -> Option<Arc<Login>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(server).cloned()
    }

    fn know(&self, server: &str, login: Option<&Arc<Login>>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match login {
            Some(login) => known.insert(server.into(), login.clone()),
            None => known.remove(server),
        };
    }

    /// Reads the login to a server. A keychain may ask its user to unlock it.
    async fn read(&self, server: &str) -> Result<Option<Arc<Login>>, LoginError> {
        let (store, url) = (self.store.clone(), server.to_string());
        let read = spawn_blocking(move || store.read(&url)).await;
        let login = read.unwrap_or(Ok(None))?.map(Arc::new);
        self.know(server, login.as_ref());
        Ok(login)
    }

    /// The login to a server with a token that is good, as far as anybody knows; renewed where `refused` is the token
    /// that there is.
    async fn login(
        &self,
        server: &str,
        refused: Option<&str>,
    ) -> Result<Option<Arc<Login>>, RenewError> {
        let is_good = |login: &Arc<Login>| {
            login.is_fresh() && refused.is_none_or(|refused| refused != login.access_token)
        };
        if !self.store.has(server) {
            self.know(server, None);
            return Ok(None);
        }
        if let Some(login) = self.known(server).filter(is_good) {
            return Ok(Some(login));
        }
        // Another process may have renewed it. Of several at a time one does, and a token that renews may be good once.
        let (store, url) = (self.store.clone(), server.to_string());
        let lock = spawn_blocking(move || store.lock(&url)).await;
        let failed = |problem: String| RenewError::Failed(problem);
        let lock = lock.map_err(|error| failed(error.to_string()))?;
        let _lock = lock.map_err(|error| failed(error.to_string()))?;
        match self.read(server).await? {
            None => Ok(None),
            Some(login) if is_good(&login) => Ok(Some(login)),
            Some(login) => self.renew(server, &login).await.map(Some),
        }
    }

    /// Renews a token, and keeps it.
    async fn renew(&self, server: &str, login: &Login) -> Result<Arc<Login>, RenewError> {
        let refresh = login.refresh_token.clone().ok_or(RenewError::Over)?;
        let failed = |error: url::ParseError| RenewError::Failed(error.to_string());
        let http = LoginHttp::new(&Url::parse(server).map_err(failed)?);
        let client = BasicClient::new(ClientId::new(login.client.id.clone()));
        let endpoint = TokenUrl::new(login.token_endpoint.clone()).map_err(failed)?;
        let mut client = client.set_token_uri(endpoint);
        if let Some(secret) = &login.client.secret {
            client = client.set_client_secret(ClientSecret::new(secret.clone()));
        }
        if login.client.secret_in_body {
            client = client.set_auth_type(AuthType::RequestBody);
        }
        let refresh = RefreshToken::new(refresh);
        let request = client.exchange_refresh_token(&refresh);
        let request = request.add_extra_param("resource", &login.resource);
        let tokens = request.request_async(&http).await.map_err(|error| match &error {
            RequestTokenError::ServerResponse(answer)
                if *answer.error() == BasicErrorResponseType::InvalidGrant =>
            {
                RenewError::Over
            }
            RequestTokenError::ServerResponse(answer) => RenewError::Failed(answer.to_string()),
            error => RenewError::Failed(chain(error)),
        })?;
        let renewed = login.clone().with_tokens(&tokens);
        let (store, url, kept) = (self.store.clone(), server.to_string(), renewed.clone());
        let written = spawn_blocking(move || store.write(&url, &kept)).await;
        written.map_err(|error| RenewError::Failed(error.to_string()))??;
        let renewed = Arc::new(renewed);
        self.know(server, Some(&renewed));
        Ok(renewed)
    }

    async fn token_but(&self, server: &str, refused: Option<&str>) -> Option<Secret> {
        match self.login(server, refused).await {
            Ok(login) => login.map(|login| Secret::new(&login.access_token)),
            // The server says it better.
            Err(RenewError::Over) => None,
            Err(error) => {
                tracing::warn!("the login to {server} is of no use: {}", chain(&error));
                None
            }
        }
    }
}

#[async_trait]
impl AccessTokens for LoginTokenCache {
    async fn token(&self, server: &str) -> Option<Secret> {
        self.token_but(server, None).await
    }

    async fn renewed(&self, server: &str, refusal: &AuthChallenge<'_>) -> Option<Secret> {
        let refused = refusal.token.map(Secret::reveal);
        let wants_more =
            refusal.challenges.iter().find(|challenge| challenge.contains("insufficient_scope"));
        let token = match wants_more {
            // A user has to grant that. It may have happened meanwhile.
            Some(_) => {
                let login = self.read(server).await.ok().flatten();
                login.map(|login| Secret::new(&login.access_token))
            }
            None => self.token_but(server, refused).await,
        };
        // Not the same once more.
        let token = token.filter(|token| refused != Some(token.reveal()));
        let bearer = || refusal.challenges.iter().find(|challenge| is_bearer(challenge));
        let challenge = wants_more.or_else(bearer);
        if let (None, Some(challenge)) = (&token, challenge) {
            self.store.note_challenge(server, challenge);
        }
        token
    }
}
