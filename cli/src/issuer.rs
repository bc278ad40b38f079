//! The issuer whose JSON Web Tokens `tenon serve --http` takes, as the configuration says.

use async_trait::async_trait;
use hyper::header::HeaderMap;
use std::fmt;
use std::sync::Arc;
use tenon_config::config::IssuerSettings;
use tenon_serve::{DocumentFetcher, TokenIssuer};
use url::Url;

use crate::web::Web;

/// The longest document of an issuer, in bytes.
const MAX_DOCUMENT_BYTES: u64 = 1 << 20;

/// Fetches an issuer's documents over TLS, or from this machine.
struct WebFetcher(Web<'static>);

impl fmt::Debug for WebFetcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebFetcher")
    }
}

#[async_trait]
impl DocumentFetcher for WebFetcher {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        let url = Url::parse(url).map_err(|error| format!("{url}: {error}"))?;
        let read = async {
            let answer = self.0.get(&url, HeaderMap::new()).await?;
            self.0.read(answer, MAX_DOCUMENT_BYTES).await
        };
        read.await.map_err(|error| tenon_config::diagnostic::chain(&error))
    }
}

/// The issuer with these settings.
pub(crate) fn token_issuer(settings: &IssuerSettings) -> TokenIssuer {
    let mut issuer = tenon_serve::IssuerSettings::new(&settings.url, &settings.audience);
    issuer.jwks.clone_from(&settings.jwks);
    issuer.scopes.clone_from(&settings.scopes);
    issuer.profile.clone_from(&settings.profile);
    issuer.profile_claim.clone_from(&settings.profile_claim);
    TokenIssuer::new(issuer, Arc::new(WebFetcher(Web::silent())))
}
