//! JSON Web Tokens of an issuer that the operator trusts: an authorization server, after
//! <https://modelcontextprotocol.io/specification/2025-11-25/basic/authorization>. What signs them is in `signature.rs`,
//! which keys are the issuer's in `keys.rs`.
//!
//! A token never leaves the server: no plugin and no MCP server gets it.

mod keys;
mod signature;
#[cfg(test)]
mod tests;

use async_trait::async_trait;
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Header, Validation, decode, decode_header};
use serde_json::{Map, Value};
use std::fmt;
use std::sync::Arc;

use super::protected_resource::AuthorizationError;
use super::token::{Access, TokenGrant};
use crate::seal::sha256_hex;
use keys::IssuerKeys;

/// Whose JSON Web Tokens are good, and for what.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct IssuerSettings {
    /// The issuer, as its tokens name it in `iss`: a URL.
    pub issuer: String,
    /// The name of this server, as tokens for it name it in `aud`: its public URL, which clients send to the issuer as
    /// `resource` ([RFC 8707](https://www.rfc-editor.org/rfc/rfc8707)).
    pub audience: String,
    /// Where the issuer's keys are. Without it, the issuer's metadata says so.
    pub jwks: Option<String>,
    /// The scopes that a token needs, each of them.
    pub scopes: Vec<String>,
    /// The only profile that its tokens are good for.
    pub profile: Option<String>,
    /// The claim that names the only profile that a token is good for. A token without it is good for none.
    pub profile_claim: Option<String>,
}

impl IssuerSettings {
    /// Tokens of this issuer for this audience are good for all.
    pub fn new(issuer: &str, audience: &str) -> Self {
        Self {
            issuer: issuer.into(),
            audience: audience.into(),
            jwks: None,
            scopes: Vec::new(),
            profile: None,
            profile_claim: None,
        }
    }
}

/// Fetches what an issuer publishes: its metadata, and its keys.
#[async_trait]
pub trait DocumentFetcher: fmt::Debug + Send + Sync + 'static {
    /// The bytes of a document, which is bounded in length.
    ///
    /// # Errors
    ///
    /// What went wrong, for the log.
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String>;
}

/// An issuer whose tokens are taken.
pub struct TokenIssuer {
    settings: IssuerSettings,
    keys: Arc<IssuerKeys>,
}

impl fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TokenIssuer").field(&self.settings.issuer).finish()
    }
}

impl TokenIssuer {
    /// An issuer whose documents are fetched when they are needed first.
    pub fn new(settings: IssuerSettings, fetcher: Arc<dyn DocumentFetcher>) -> Self {
        signature::install();
        Self { keys: IssuerKeys::new(settings.clone(), fetcher), settings }
    }

    pub(super) fn settings(&self) -> &IssuerSettings {
        &self.settings
    }

    /// Who sends a token, and what it is good for.
    pub(super) async fn check(&self, token: &str) -> Result<Access, AuthorizationError> {
        let header = decode_header(token)
            .map_err(|_| AuthorizationError::Invalid("it is no JSON Web Token"))?;
        if !signature::ALGORITHMS.contains(&header.alg) {
            return Err(AuthorizationError::Invalid("it is not signed with a public key"));
        }
        if !header.typ.as_deref().is_none_or(is_access_token) {
            return Err(AuthorizationError::Invalid("it is no access token"));
        }
        // What has to be understood is not: https://www.rfc-editor.org/rfc/rfc7515#section-4.1.11
        if header.crit.is_some() {
            return Err(AuthorizationError::Invalid("its header has critical parameters"));
        }
        let keys = self.keys.fitting(&header).await?;
        let claims = self.claims(token, &header, &keys)?;
        let subject = claims.get("sub").and_then(Value::as_str).unwrap_or_default();
        if subject.is_empty() {
            return Err(AuthorizationError::Invalid("its subject is empty"));
        }
        if !self.settings.scopes.iter().all(|scope| has_scope(&claims, scope)) {
            return Err(AuthorizationError::InsufficientScope);
        }
        Ok(Access {
            principal: self.principal(subject),
            grant: TokenGrant {
                principal: Some(format!("subject:{subject}")),
                profile: self.profile(&claims)?,
                tools: None,
            },
        })
    }

    /// What a token says, if one of these keys has signed it and it is for this server and for now.
    fn claims(
        &self,
        token: &str,
        header: &Header,
        keys: &[jsonwebtoken::DecodingKey],
    ) -> Result<Map<String, Value>, AuthorizationError> {
        let mut validation = Validation::new(header.alg);
        validation.set_issuer(&[&self.settings.issuer]);
        validation.set_audience(&[&self.settings.audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.validate_nbf = true;
        let mut problem = "it was signed by no key of its issuer";
        for key in keys {
            match decode::<Map<String, Value>>(token, key, &validation) {
                // The library takes one of several issuers as well, which no token has.
                Ok(token) if token.claims.get("iss").is_some_and(Value::is_string) => {
                    return Ok(token.claims);
                }
                Ok(_) => problem = "it has several issuers",
                Err(error) => match error.kind() {
                    ErrorKind::InvalidSignature => continue,
                    ErrorKind::ExpiredSignature => problem = "it has expired",
                    ErrorKind::ImmatureSignature => problem = "it is not good yet",
                    ErrorKind::InvalidIssuer => problem = "it is of another issuer",
                    ErrorKind::InvalidAudience => problem = "it is for another audience",
                    ErrorKind::MissingRequiredClaim(_) => {
                        problem = "it lacks one of exp, iss, aud and sub"
                    }
                    _ => problem = "it cannot be understood",
                },
            }
            break;
        }
        Err(AuthorizationError::Invalid(problem))
    }

    /// Names a subject of the issuer, whatever token it sends.
    fn principal(&self, subject: &str) -> Arc<str> {
        sha256_hex(&[self.settings.issuer.as_bytes(), subject.as_bytes()]).into()
    }

    fn profile(&self, claims: &Map<String, Value>) -> Result<Option<String>, AuthorizationError> {
        match &self.settings.profile_claim {
            None => Ok(self.settings.profile.clone()),
            Some(claim) => match claims.get(claim).and_then(Value::as_str) {
                Some(profile) => Ok(Some(profile.to_string())),
                None => Err(AuthorizationError::Invalid("it names no profile")),
            },
        }
    }
}

/// Whether a token is of a type that access tokens have (<https://www.rfc-editor.org/rfc/rfc9068#section-2.1>), or says
/// only that it is a token.
fn is_access_token(kind: &str) -> bool {
    let kind = kind.to_ascii_lowercase();
    matches!(kind.trim_start_matches("application/"), "jwt" | "at+jwt")
}

/// Whether a token has a scope: among the words of `scope` (<https://www.rfc-editor.org/rfc/rfc9068#section-2.2.3>), or of
/// `scp`, which some issuers write, as one text or as several.
fn has_scope(claims: &Map<String, Value>, scope: &str) -> bool {
    let is_among = |text: &str| text.split_ascii_whitespace().any(|word| word == scope);
    ["scope", "scp"].iter().filter_map(|claim| claims.get(*claim)).any(|value| match value {
        Value::String(text) => is_among(text),
        Value::Array(words) => words.iter().any(|word| word == scope),
        _ => false,
    })
}
