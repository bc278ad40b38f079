//! Which servers are believed over TLS: those that a public authority vouches for, and those of the
//! authorities that the caller adds.

use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::{ClientConfig, Error, RootCertStore};

/// What connects over TLS 1.2 and 1.3, for HTTP/1.1. Beside the authorities of Mozilla's root program
/// it trusts `others`, which are certificates in DER.
///
/// # Errors
///
/// Where one of the others is no certificate of an authority.
pub fn connector(others: Vec<CertificateDer<'static>>) -> Result<TlsConnector, Error> {
    let mut roots = public_roots();
    for certificate in others {
        roots.add(certificate)?;
    }
    Ok(trusting(roots))
}

/// The same, for the public authorities alone.
pub(crate) fn public_connector() -> TlsConnector {
    trusting(public_roots())
}

fn public_roots() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() }
}

fn trusting(roots: RootCertStore) -> TlsConnector {
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}
