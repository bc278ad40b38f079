//! The cryptography of `jsonwebtoken`, by `ring`: the crate that TLS and digests come from here as well. Only signatures
//! of public keys are checked: a secret that is shared with the issuer could be used to issue tokens, too.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

/// The algorithms that are taken: all of <https://www.rfc-editor.org/rfc/rfc7518#section-3.1> with public keys that
/// `ring` has, and EdDSA.
pub(super) const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
    verifier_factory: |algorithm, key| Ok(Box::new(RingVerifier::new(*algorithm, key)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Has `jsonwebtoken` use `ring`, unless the program has chosen something else.
pub(super) fn install() {
    let _ = PROVIDER.install_default();
}

/// How a signature is checked.
enum Check {
    /// With a modulus and an exponent.
    Rsa(&'static RsaParameters),
    /// With a point of a curve.
    Curve(&'static dyn VerificationAlgorithm),
}

struct RingVerifier {
    algorithm: Algorithm,
    check: Check,
    key: DecodingKey,
}

impl RingVerifier {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self, Error> {
        let check = match algorithm {
            Algorithm::RS256 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Algorithm::RS384 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Algorithm::RS512 => Check::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Algorithm::PS256 => Check::Rsa(&RSA_PSS_2048_8192_SHA256),
            Algorithm::PS384 => Check::Rsa(&RSA_PSS_2048_8192_SHA384),
            Algorithm::PS512 => Check::Rsa(&RSA_PSS_2048_8192_SHA512),
            Algorithm::ES256 => Check::Curve(&ECDSA_P256_SHA256_FIXED),
            Algorithm::ES384 => Check::Curve(&ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDSA => Check::Curve(&ED25519),
            _ => return Err(ErrorKind::UnsupportedAlgorithm.into()),
        };
        match key.family().algorithms().contains(&algorithm) {
            true => Ok(Self { algorithm, check, key: key.clone() }),
            false => Err(ErrorKind::InvalidKeyFormat.into()),
        }
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let is_good = match (&self.check, self.key.kind()) {
            (Check::Rsa(parameters), DecodingKeyKind::RsaModulusExponent { n, e }) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            (Check::Curve(algorithm), DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(*algorithm, point).verify(message, signature)
            }
            _ => return Err(SignatureError::new()),
        };
        is_good.map_err(|_| SignatureError::new())
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
