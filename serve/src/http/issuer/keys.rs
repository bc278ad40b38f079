//! The public keys of an issuer: where they are, and which of them may have signed a token.

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use jsonwebtoken::jwk::{Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Header};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::{Instant, timeout};

use super::super::protected_resource::AuthorizationError;
use super::{DocumentFetcher, IssuerSettings};
use crate::http::protected_resource::well_known;
use crate::lock;

/// How long keys are used without a look at whether they are still the issuer's.
const FRESH_TIME: Duration = Duration::from_secs(10 * 60);

/// How long keys are used while that is looked at. With older ones a request waits for it.
const USABLE_TIME: Duration = Duration::from_secs(60 * 60);

/// How long keys are used at most that cannot be fetched again.
const MAX_AGE: Duration = Duration::from_secs(24 * 60 * 60);

/// How long after a fetch there is no other, whatever clients send.
const BETWEEN_FETCHES: Duration = Duration::from_secs(30);

/// How long a fetch may take.
const FETCH_TIME: Duration = Duration::from_secs(10);

/// The most keys of an issuer.
const MAX_KEYS: usize = 100;

/// A key that signs tokens.
#[derive(Clone)]
struct IssuerKey {
    id: Option<String>,
    /// The one algorithm that it is for, where the issuer says that.
    algorithm: Option<Algorithm>,
    key: DecodingKey,
}

impl IssuerKey {
    /// Reads a key; `None` where it signs no tokens, or none that are taken.
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let is_of_use = |of: &PublicKeyUse| *of == PublicKeyUse::Signature;
        let verifies =
            |operations: &Vec<KeyOperations>| operations.contains(&KeyOperations::Verify);
        if !jwk.common.public_key_use.as_ref().is_none_or(is_of_use)
            || !jwk.common.key_operations.as_ref().is_none_or(verifies)
        {
            return None;
        }
        let algorithm = jwk.common.key_algorithm.map(Algorithm::try_from).transpose().ok()?;
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, algorithm, key })
    }

    /// Whether it may have signed a token with this header.
    fn fits(&self, header: &Header) -> bool {
        self.key.family().algorithms().contains(&header.alg)
            && self.algorithm.is_none_or(|algorithm| algorithm == header.alg)
            && (header.kid.is_none() || self.id.is_none() || header.kid == self.id)
    }
}

/// The keys that were fetched last.
#[derive(Clone)]
struct FetchedKeys {
    keys: Arc<[IssuerKey]>,
    at: Instant,
}

impl FetchedKeys {
    fn fitting(&self, header: &Header) -> Vec<DecodingKey> {
        self.keys.iter().filter(|key| key.fits(header)).map(|key| key.key.clone()).collect()
    }
}

/// The keys of an issuer, which are kept for a while.
pub(super) struct IssuerKeys {
    settings: IssuerSettings,
    fetcher: Arc<dyn DocumentFetcher>,
    known: Mutex<Option<FetchedKeys>>,
    fetching: Mutex<Fetching>,
}

/// A fetch that several may wait for.
type Fetch = Shared<BoxFuture<'static, ()>>;

/// What is fetched now, and when that was done last.
#[derive(Default)]
struct Fetching {
    now: Option<Fetch>,
    ended: Option<Instant>,
}

impl IssuerKeys {
    pub(super) fn new(settings: IssuerSettings, fetcher: Arc<dyn DocumentFetcher>) -> Arc<Self> {
        let (known, fetching) = (Mutex::default(), Mutex::default());
        Arc::new(Self { settings, fetcher, known, fetching })
    }

    /// The keys that may have signed a token with this header.
    pub(super) async fn fitting(
        self: &Arc<Self>,
        header: &Header,
    ) -> Result<Vec<DecodingKey>, AuthorizationError> {
        if let Some(keys) = self.known(header, FRESH_TIME) {
            return Ok(keys);
        }
        let fetch = self.fetch_again();
        if let Some(keys) = self.known(header, USABLE_TIME) {
            return Ok(keys);
        }
        if let Some(fetch) = fetch {
            fetch.await;
        }
        match self.known(header, MAX_AGE) {
            Some(keys) => Ok(keys),
            None if self.is_known(MAX_AGE) => {
                Err(AuthorizationError::Invalid("it was signed by no key of its issuer"))
            }
            None => Err(AuthorizationError::Unknown),
        }
    }

    /// The fetch that goes on, or a new one if it is time for one. It has a task of its own: a client that goes away does
    /// not end what others wait for.
    fn fetch_again(self: &Arc<Self>) -> Option<Fetch> {
        let mut fetching = lock(&self.fetching);
        // One that has panicked is over, and says so nowhere else.
        let now = fetching.now.as_ref().filter(|fetch| fetch.peek().is_none());
        if let Some(fetch) = now {
            return Some(fetch.clone());
        }
        if fetching.ended.is_some_and(|at| at.elapsed() < BETWEEN_FETCHES) {
            return None;
        }
        let keys = self.clone();
        let task = tokio::spawn(async move { keys.fetch_and_keep().await });
        let fetch = async { drop(task.await) }.boxed().shared();
        fetching.now = Some(fetch.clone());
        Some(fetch)
    }

    async fn fetch_and_keep(&self) {
        let fetched = timeout(FETCH_TIME, self.fetch()).await;
        match fetched.unwrap_or_else(|_| Err("no answer in time".into())) {
            Ok(keys) => *lock(&self.known) = Some(FetchedKeys { keys, at: Instant::now() }),
            Err(problem) => {
                let issuer = &self.settings.issuer;
                tracing::warn!("the keys of the issuer {issuer} cannot be fetched: {problem}");
            }
        }
        *lock(&self.fetching) = Fetching { now: None, ended: Some(Instant::now()) };
    }

    /// Keys that were fetched no longer ago, where one of them fits.
    fn known(&self, header: &Header, age: Duration) -> Option<Vec<DecodingKey>> {
        let known = lock(&self.known).clone().filter(|known| known.at.elapsed() < age)?;
        Some(known.fitting(header)).filter(|keys| !keys.is_empty())
    }

    fn is_known(&self, age: Duration) -> bool {
        lock(&self.known).as_ref().is_some_and(|known| known.at.elapsed() < age)
    }

    async fn fetch(&self) -> Result<Arc<[IssuerKey]>, String> {
        #[derive(Deserialize)]
        struct KeySet {
            keys: Vec<Value>,
        }
        let url = match &self.settings.jwks {
            Some(url) => url.clone(),
            None => self.discover().await?,
        };
        let set: KeySet = self.document(&url).await?;
        let keys: Vec<_> =
            set.keys.into_iter().filter_map(IssuerKey::read).take(MAX_KEYS).collect();
        match keys.is_empty() {
            true => Err(format!("{url} has no key that signs tokens")),
            false => Ok(keys.into()),
        }
    }

    /// Asks the issuer where its keys are: in its metadata after RFC 8414, or after OpenID Connect Discovery.
    async fn discover(&self) -> Result<String, String> {
        #[derive(Deserialize)]
        struct Metadata {
            issuer: String,
            jwks_uri: String,
        }
        let mut problem = String::new();
        for url in metadata_urls(&self.settings.issuer) {
            match self.document::<Metadata>(&url).await {
                Ok(metadata) if metadata.issuer == self.settings.issuer => {
                    return Ok(metadata.jwks_uri);
                }
                Ok(metadata) => problem = format!("{url} is of the issuer {:?}", metadata.issuer),
                Err(error) => problem = error,
            }
        }
        Err(problem)
    }

    async fn document<T: for<'de> Deserialize<'de>>(&self, url: &str) -> Result<T, String> {
        let bytes = self.fetcher.fetch(url).await?;
        serde_json::from_slice(&bytes).map_err(|error| format!("{url}: {error}"))
    }
}

/// Where an issuer may have its metadata: where RFC 8414 puts it, and OpenID Connect Discovery.
fn metadata_urls(issuer: &str) -> [String; 2] {
    let openid = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    [well_known(issuer, "oauth-authorization-server"), openid]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_is_looked_for_where_both_specifications_put_it() {
        let check = |issuer: &str, expected: [&str; 2]| {
            assert_eq!(metadata_urls(issuer), expected, "{issuer}");
        };
        check(
            "https://a.example",
            [
                "https://a.example/.well-known/oauth-authorization-server",
                "https://a.example/.well-known/openid-configuration",
            ],
        );
        check(
            "https://a.example/realms/x/",
            [
                "https://a.example/.well-known/oauth-authorization-server/realms/x",
                "https://a.example/realms/x/.well-known/openid-configuration",
            ],
        );
    }
}
