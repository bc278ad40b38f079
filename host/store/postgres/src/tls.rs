//! Which servers are believed over TLS, and what is said of one that is not.

use std::error::Error;
use std::io;
use std::iter::successors;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_postgres_rustls::MakeRustlsConnect;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore};

/// Why there is no connection over TLS.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TlsError {
    #[error("the authorities in {} cannot be read", .0.display())]
    Unreadable(PathBuf, #[source] Box<dyn Error + Send + Sync>),
    #[error("there is no certificate of an authority in {}", .0.display())]
    Empty(PathBuf),
    #[error(
        "the certificate of the server does not prove that it is the host of the address; \
             name the file with the authority that signed it, or the host as the certificate does"
    )]
    Untrusted(#[source] postgres::Error),
    #[error("TLS cannot be set up")]
    Unusable(#[source] rustls::Error),
}

/// What connects over TLS 1.2 and 1.3. It trusts the authorities in a PEM file; without one, those of Mozilla's root program.
///
/// # Errors
///
/// Where they cannot be read.
pub(crate) fn connector(authorities: Option<&Path>) -> Result<MakeRustlsConnect, TlsError> {
    let roots = match authorities {
        Some(path) => read(path)?,
        None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() },
    };
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    // A server that begins with TLS, as `sslnegotiation=direct` wants it, expects its protocol to be named.
    config.alpn_protocols = vec![b"postgresql".to_vec()];
    Ok(MakeRustlsConnect::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, TlsError> {
    let unreadable = |error| TlsError::Unreadable(path.to_path_buf(), error);
    let mut roots = RootCertStore::empty();
    for certificate in
        CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.into()))?
    {
        let certificate = certificate.map_err(|error| unreadable(error.into()))?;
        roots.add(certificate).map_err(|error| unreadable(error.into()))?;
    }
    match roots.is_empty() {
        true => Err(TlsError::Empty(path.to_path_buf())),
        false => Ok(roots),
    }
}

/// Says of an error whether the server was not believed.
pub(crate) fn explain(error: postgres::Error) -> Box<dyn Error + Send + Sync> {
    match successors(error.source(), |&error| error.source()).any(is_untrusted) {
        true => TlsError::Untrusted(error).into(),
        false => error.into(),
    }
}

fn is_untrusted(error: &(dyn Error + 'static)) -> bool {
    // What an error of std is made of is not its source.
    let inner = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let error = inner.and_then(|error| error.downcast_ref::<rustls::Error>());
    matches!(error, Some(rustls::Error::InvalidCertificate(_)))
}
