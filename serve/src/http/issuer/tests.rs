//! Tokens of an issuer that is none: it signs with keys of this test, and its documents are in memory.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::*;
use crate::lock;

const ISSUER: &str = "https://id.example";
const AUDIENCE: &str = "https://tools.example/mcp";
const JWKS: &str = "https://id.example/keys";

/// A public key of 2,048 bits, and two tokens for the subject `ada` until the year 2100 that its private key has signed.
const RSA_MODULUS: &str = concat!(
    "rS0V_V3VORw7DMVrvKP0p47vOiwRoaiKxjQdslHl186QSN2AfUiruMQ7BAWp6UpRgaThw0DBVo6gb2gGquTS92zUiErCXBbiJ22p",
    "zfS0R5qda_kootGJKMNWAv9bu4A2NDXXG6_dULO4c4WP4YumCk4Mac2tQiN-By5puU1sWhw6WdTQyD9WjX-czMdtb0IMXwGJMG5t",
    "czYi1RH_uGOLBzhvVz6Rdp-kMp1ZLGTxl_mQS-3J39yGB-irDgR4Aqa1JO9FUmr8a_LdgmAPxgvDYTrxY39rR1GAjEWmjNtd4qBv",
    "SARqi3xCpaobeSKwjPmBF84p-ZiYfuAvLtcYbhQ7XQ",
);
const RS256_TOKEN: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL3Rvb2xzL",
    "mV4YW1wbGUvbWNwIiwic3ViIjoiYWRhIiwiZXhwIjo0MTAyNDQ0ODAwfQ.qUTyB2QBw8EFbF9QHRzwxCp86H5XWg69jzIV8gSRsD",
    "G2M3qmNNZ2B13l72q199EFo0jlHJnLhvhCvNyXG8UxV00tJ9j9SwFGudlBWTADF0mGLf--N9a2nHqSgXr_LOgqVdef15rFY8Rm12",
    "_09nor2JY72SXawjzrM37XVDCxQ9iPrc5eg9DXI1FOwwIov1TF8VrY_0D1nJg5e8SH5cznP5zhfLhC6BkWUvOM-2OLulIk2W4kAb",
    "hjPUvHh1YmibMS2nxpIRlB-s3z7nbcG7l3jo6D0ZK2kxxXY7VYCmZUqXE9YXJO_ljkdiziaMwdeTp7WVHrr2CGxRgQv5MISsaSYw",
);
const PS256_TOKEN: &str = concat!(
    "eyJhbGciOiJQUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUiLCJhdWQiOiJodHRwczovL3Rvb2xzL",
    "mV4YW1wbGUvbWNwIiwic3ViIjoiYWRhIiwiZXhwIjo0MTAyNDQ0ODAwfQ.d0P_c_dISDGh4OS-zrqdjL75b6edDGv_Hhl2u77IEd",
    "0p8l1Uhhp54N0S20gCaKimAyiZ6K9rnBSU-eVO4Cy4ajJb7PDu00R-Woi7C4AoGJsnVMYRa2yifY9BJo_YfuI6a-HiVcE8jmIPYB",
    "eNewXlWZBVIwQp2q1J2eqPnAvfZjz3MQCereszgl-h0v9lIMtHNF6weV-ItacC3aph4ECVr7pIy3AWNWclcK8QCdkv6kmq4T0_zN",
    "cm7izeT-b__0ZGgfGH949eOApHBwyre3uqw5Qb01USdq4WcHaBEhcQM8dXHj8PGUiW4s1MICmyOUp_h5A52cmr7F9B2lyvwa45kQ",
);

fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// A key that signs tokens.
enum SigningKey {
    Ed25519(Ed25519KeyPair),
    P256(EcdsaKeyPair),
}

impl SigningKey {
    fn ed25519() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Ed25519(Ed25519KeyPair::from_pkcs8(document.as_ref()).unwrap())
    }

    fn p256() -> Self {
        let (random, algorithm) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self::P256(EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap())
    }

    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ed25519(_) => "EdDSA",
            Self::P256(_) => "ES256",
        }
    }

    fn public(&self) -> &[u8] {
        match self {
            Self::Ed25519(key) => key.public_key().as_ref(),
            Self::P256(key) => key.public_key().as_ref(),
        }
    }

    fn jwk(&self, id: &str) -> Value {
        let public = self.public();
        match self {
            Self::Ed25519(_) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": id, "x": base64(public) })
            }
            Self::P256(_) => {
                let (x, y) = public[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "kid": id, "x": base64(x), "y": base64(y) })
            }
        }
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = match self {
            Self::Ed25519(key) => base64(key.sign(message.as_bytes())),
            Self::P256(key) => base64(key.sign(&SystemRandom::new(), message.as_bytes()).unwrap()),
        };
        format!("{message}.{signature}")
    }
}

fn claims(more: Value) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut claims = json!({ "iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": now + 600 });
    for (name, value) in more.as_object().unwrap() {
        match value {
            Value::Null => claims.as_object_mut().unwrap().remove(name),
            value => claims.as_object_mut().unwrap().insert(name.clone(), value.clone()),
        };
    }
    claims
}

/// What an issuer publishes, and what was asked for.
#[derive(Debug, Default)]
struct Documents {
    published: Mutex<BTreeMap<String, Value>>,
    asked: Mutex<Vec<String>>,
    /// How long each takes.
    delay: Mutex<Duration>,
}

impl Documents {
    fn publish(&self, url: &str, document: Value) {
        lock(&self.published).insert(url.into(), document);
    }

    fn publish_keys(&self, keys: &[Value]) {
        self.publish(JWKS, json!({ "keys": keys }));
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.asked))
    }
}

#[async_trait]
impl DocumentFetcher for Documents {
    async fn fetch(&self, url: &str) -> Result<Vec<u8>, String> {
        lock(&self.asked).push(url.into());
        let delay = *lock(&self.delay);
        tokio::time::sleep(delay).await;
        let published = lock(&self.published).get(url).map(Value::to_string);
        published.map(String::into_bytes).ok_or_else(|| format!("{url}: not found"))
    }
}

fn issuer(change: impl FnOnce(&mut IssuerSettings)) -> (TokenIssuer, Arc<Documents>) {
    let documents = Arc::<Documents>::default();
    let mut settings = IssuerSettings::new(ISSUER, AUDIENCE);
    settings.jwks = Some(JWKS.into());
    change(&mut settings);
    (TokenIssuer::new(settings, documents.clone()), documents)
}

fn good<T>(checked: &Result<T, AuthorizationError>) -> Result<(), AuthorizationError> {
    checked.as_ref().map(|_| ()).map_err(|denied| *denied)
}

#[tokio::test]
async fn a_token_is_good_for_whom_when_and_by_whom_it_says() {
    let (issuer, documents) = issuer(|_| {});
    let (ed, ec, stranger) = (SigningKey::ed25519(), SigningKey::p256(), SigningKey::ed25519());
    documents.publish_keys(&[ed.jwk("ed"), ec.jwk("ec")]);
    let header = |key: &SigningKey, id: &str| json!({ "alg": key.algorithm(), "kid": id });
    let check = async |what: &str, token: String, expected: Result<(), &'static str>| {
        let checked = issuer.check(&token).await;
        assert_eq!(good(&checked), expected.map_err(AuthorizationError::Invalid), "{what}");
    };
    let sign = |more: Value| ed.sign(&header(&ed, "ed"), &claims(more));
    check("as it should be", sign(json!({})), Ok(())).await;
    check("of a curve", ec.sign(&header(&ec, "ec"), &claims(json!({}))), Ok(())).await;
    let nameless = json!({ "alg": "EdDSA" });
    check("without the id of a key", ed.sign(&nameless, &claims(json!({}))), Ok(())).await;
    check("one of several audiences", sign(json!({ "aud": ["x", AUDIENCE] })), Ok(())).await;
    let other = "it is for another audience";
    check("another audience", sign(json!({ "aud": "https://other.example/mcp" })), Err(other))
        .await;
    check("a longer audience", sign(json!({ "aud": format!("{AUDIENCE}/p") })), Err(other)).await;
    let other = "it is of another issuer";
    check("another issuer", sign(json!({ "iss": "https://other.example" })), Err(other)).await;
    check("two issuers", sign(json!({ "iss": [ISSUER, "x"] })), Err("it has several issuers"))
        .await;
    check("expired", sign(json!({ "exp": 1 })), Err("it has expired")).await;
    check("not yet", sign(json!({ "nbf": 4_102_444_800_u64 })), Err("it is not good yet")).await;
    for claim in ["exp", "iss", "aud", "sub"] {
        let lacks = Err("it lacks one of exp, iss, aud and sub");
        check(claim, sign(json!({ claim: null })), lacks).await;
    }
    check("no time", sign(json!({ "exp": "soon" })), Err("it lacks one of exp, iss, aud and sub"))
        .await;
    let unsigned = "it was signed by no key of its issuer";
    check("a stranger's", stranger.sign(&header(&ed, "ed"), &claims(json!({}))), Err(unsigned))
        .await;
    check("another key's id", ed.sign(&header(&ed, "ec"), &claims(json!({}))), Err(unsigned)).await;
    let whole = sign(json!({}));
    let (head, signature) = whole.rsplit_once('.').unwrap();
    let (first, _) = head.split_once('.').unwrap();
    let forged = base64(claims(json!({ "sub": "eve" })).to_string());
    check("other claims", format!("{first}.{forged}.{signature}"), Err(unsigned)).await;
    check("no signature", format!("{head}."), Err(unsigned)).await;
    // What everybody knows is no secret.
    let secret = json!({ "alg": "HS256", "kid": "ed" });
    let message =
        format!("{}.{}", base64(secret.to_string()), base64(claims(json!({})).to_string()));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, ed.public());
    let signature = base64(ring::hmac::sign(&key, message.as_bytes()));
    let no_public_key = Err("it is not signed with a public key");
    check("signed with the public key", format!("{message}.{signature}"), no_public_key).await;
    let none = base64(json!({ "alg": "none" }).to_string());
    let no_token = Err("it is no JSON Web Token");
    check("not signed", format!("{none}.{}.", base64(claims(json!({})).to_string())), no_token)
        .await;
    for text in ["a.b.c", "..", "a.b", ""] {
        check(text, text.into(), no_token).await;
    }
    check("nobody's", sign(json!({ "sub": "" })), Err("its subject is empty")).await;
    for (kind, expected) in [
        ("at+jwt", Ok(())),
        ("application/at+JWT", Ok(())),
        ("JWT", Ok(())),
        ("logout+jwt", Err("it is no access token")),
    ] {
        let header = json!({ "alg": "EdDSA", "kid": "ed", "typ": kind });
        check(kind, ed.sign(&header, &claims(json!({}))), expected).await;
    }
    let critical = json!({ "alg": "EdDSA", "kid": "ed", "crit": ["b64"], "b64": false });
    let problem = Err("its header has critical parameters");
    check("critical", ed.sign(&critical, &claims(json!({}))), problem).await;
}

#[tokio::test]
async fn tokens_of_rsa_keys_are_good_as_well() {
    let (issuer, documents) = issuer(|_| {});
    let rsa = json!({ "kty": "RSA", "kid": "r", "n": RSA_MODULUS, "e": "AQAB" });
    let of_use = |key: &str| {
        let mut rsa = rsa.clone();
        rsa["use"] = key.into();
        rsa
    };
    documents.publish_keys(&[of_use("sig")]);
    for token in [RS256_TOKEN, PS256_TOKEN] {
        assert_eq!(good(&issuer.check(token).await), Ok(()));
        let changed = token.replacen("eyJ", "eyI", 1);
        assert!(issuer.check(&changed).await.is_err());
    }
    // A key is good for what its issuer says.
    let (issuer, documents) = self::issuer(|_| {});
    let mut of_algorithm = rsa.clone();
    of_algorithm["alg"] = "PS256".into();
    let mut of_operation = rsa.clone();
    of_operation["key_ops"] = json!(["encrypt"]);
    let unusable = std::iter::repeat_n(of_use("enc"), 200);
    let keys: Vec<Value> = unusable.chain([of_operation, of_algorithm]).collect();
    documents.publish_keys(&keys);
    assert_eq!(good(&issuer.check(PS256_TOKEN).await), Ok(()));
    let unsigned = AuthorizationError::Invalid("it was signed by no key of its issuer");
    assert_eq!(good(&issuer.check(RS256_TOKEN).await), Err(unsigned));
}

#[tokio::test]
async fn a_client_is_its_subject_and_has_the_profile_of_its_token() {
    let (issuer, documents) = issuer(|settings| {
        settings.scopes = vec!["tools".into(), "call".into()];
        settings.profile_claim = Some("tenon".into());
    });
    let key = SigningKey::ed25519();
    documents.publish_keys(&[key.jwk("k")]);
    let check = async |more: Value| {
        issuer.check(&key.sign(&json!({ "alg": "EdDSA", "kid": "k" }), &claims(more))).await
    };
    let ada = check(json!({ "scope": "call tools", "tenon": "a" })).await.unwrap();
    assert_eq!(
        ada.grant,
        TokenGrant {
            principal: Some("subject:ada".into()),
            profile: Some("a".into()),
            tools: None
        }
    );
    let again = check(json!({ "scp": ["tools", "call"], "tenon": "b", "jti": "2" })).await.unwrap();
    assert_eq!(again.principal, ada.principal);
    assert_eq!(again.grant.profile.as_deref(), Some("b"));
    let eve = check(json!({ "scope": "call tools", "tenon": "a", "sub": "eve" })).await.unwrap();
    assert_ne!(eve.principal, ada.principal);
    assert_eq!(format!("{issuer:?}"), format!("TokenIssuer({ISSUER:?})"));
    for less in [
        json!({}),
        json!({ "scope": "tools" }),
        json!({ "scope": "toolscall tools" }),
        json!({ "scp": ["tools", "other"] }),
    ] {
        assert_eq!(good(&check(less).await), Err(AuthorizationError::InsufficientScope));
    }
    let no_profile = Err(AuthorizationError::Invalid("it names no profile"));
    assert_eq!(good(&check(json!({ "scope": "call tools" })).await), no_profile);
}

#[tokio::test(start_paused = true)]
async fn keys_are_kept_and_fetched_again_when_that_may_help() {
    let (issuer, documents) = issuer(|_| {});
    let (first, second) = (SigningKey::ed25519(), SigningKey::ed25519());
    let sign = |key: &SigningKey, id: &str| {
        // Until long after the times of this test.
        let claims = claims(json!({ "exp": 4_102_444_800_u64 }));
        key.sign(&json!({ "alg": "EdDSA", "kid": id }), &claims)
    };
    let (of_first, of_second) = (sign(&first, "1"), sign(&second, "2"));
    let advance = |seconds| tokio::time::advance(Duration::from_secs(seconds));
    // Nothing is known, and nothing is asked for more often for that.
    for _ in 0..3 {
        assert_eq!(good(&issuer.check(&of_first).await), Err(AuthorizationError::Unknown));
    }
    assert_eq!(documents.asked(), [JWKS]);
    documents.publish_keys(&[first.jwk("1")]);
    advance(31).await;
    assert_eq!(good(&issuer.check(&of_first).await), Ok(()));
    assert_eq!(good(&issuer.check(&of_first).await), Ok(()));
    assert_eq!(documents.asked(), [JWKS]);
    // Another key is asked for once in a while, whatever clients send.
    let unsigned = AuthorizationError::Invalid("it was signed by no key of its issuer");
    documents.publish_keys(&[first.jwk("1"), second.jwk("2")]);
    for id in ["3", "4", "2"] {
        assert_eq!(good(&issuer.check(&sign(&second, id)).await), Err(unsigned));
    }
    assert!(documents.asked().is_empty());
    advance(31).await;
    assert_eq!(good(&issuer.check(&of_second).await), Ok(()));
    assert_eq!(documents.asked(), [JWKS]);
    // A key that its issuer has taken back is good no longer, once that is known.
    documents.publish_keys(&[second.jwk("2")]);
    advance(11 * 60).await;
    assert_eq!(good(&issuer.check(&of_first).await), Ok(()));
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(good(&issuer.check(&of_first).await), Err(unsigned));
    documents.publish_keys(&[]);
    advance(61 * 60).await;
    assert_eq!(good(&issuer.check(&of_second).await), Ok(()));
    documents.publish_keys(&[first.jwk("1")]);
    advance(31).await;
    assert_eq!(good(&issuer.check(&of_second).await), Err(unsigned));
    documents.publish_keys(&[second.jwk("2")]);
    advance(31).await;
    assert_eq!(good(&issuer.check(&of_second).await), Ok(()));
    // An issuer that cannot be reached for a while keeps nobody out, and in for a day at most.
    documents.publish(JWKS, json!("out of order"));
    advance(12 * 60 * 60).await;
    assert_eq!(good(&issuer.check(&of_second).await), Ok(()));
    advance(13 * 60 * 60).await;
    assert_eq!(good(&issuer.check(&of_second).await), Err(AuthorizationError::Unknown));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_ends_no_fetch_and_a_slow_issuer_keeps_nobody_waiting() {
    let (issuer, documents) = issuer(|_| {});
    let key = SigningKey::ed25519();
    let claims = claims(json!({ "exp": 4_102_444_800_u64 }));
    let token = key.sign(&json!({ "alg": "EdDSA", "kid": "1" }), &claims);
    documents.publish_keys(&[key.jwk("1")]);
    *lock(&documents.delay) = Duration::from_secs(5);
    let forged = key.sign(&json!({ "alg": "EdDSA", "kid": "x" }), &claims);
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, issuer.check(&forged)).await.is_err());
    // Who comes meanwhile waits for the same fetch.
    assert_eq!(good(&issuer.check(&token).await), Ok(()));
    assert_eq!(documents.asked(), [JWKS]);
    tokio::time::advance(Duration::from_secs(11 * 60)).await;
    let checked = tokio::time::timeout(second, issuer.check(&token)).await;
    assert_eq!(good(&checked.expect("it waits for nothing")), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn an_issuer_says_in_its_metadata_where_its_keys_are() {
    let (issuer, documents) = issuer(|settings| settings.jwks = None);
    let key = SigningKey::ed25519();
    let token = key.sign(&json!({ "alg": "EdDSA" }), &claims(json!({ "exp": 4_102_444_800_u64 })));
    documents.publish_keys(&[key.jwk("k")]);
    let oauth = "https://id.example/.well-known/oauth-authorization-server";
    let openid = "https://id.example/.well-known/openid-configuration";
    // What is of another issuer names no keys of this one.
    documents.publish(oauth, json!({ "issuer": "https://other.example", "jwks_uri": JWKS }));
    assert_eq!(good(&issuer.check(&token).await), Err(AuthorizationError::Unknown));
    assert_eq!(documents.asked(), [oauth, openid]);
    documents.publish(openid, json!({ "issuer": ISSUER, "jwks_uri": JWKS }));
    tokio::time::advance(Duration::from_secs(31)).await;
    assert_eq!(good(&issuer.check(&token).await), Ok(()));
    assert_eq!(documents.asked(), [oauth, openid, JWKS]);
}
