//! A small HTTP client: what installs plugins and logs in to servers asks for little, and what it gets it checks.
//!
//! It speaks HTTP/1.1, over TLS, or in plain text with this machine. All that it reads is bounded,
//! and so are redirects and waiting.

use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderValue, LOCATION, USER_AGENT};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenon_config::ip_address::{AddressKind, is_own_name};
use tenon_config::loopback::is_loopback;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, Error as TlsError, RootCertStore};
use url::{Host, Position, Url};

use crate::Common;
use crate::fetch_error::FetchError;
use crate::progress::DownloadProgress;

/// The most redirects of one request.
const MAX_REDIRECTS: usize = 5;

/// The most headers of a response, and the most bytes of them.
const MAX_HEADERS: usize = 128;
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The most time for a connection, until a response begins, and between two parts of one.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(60);
const BETWEEN_BYTES_TIMEOUT: Duration = Duration::from_secs(30);

/// The variable that names a file of authorities, in PEM, whose servers are believed as well.
const AUTHORITIES: &str = "SSL_CERT_FILE";

/// The client.
pub(crate) struct Web<'a> {
    /// The arguments that say whether progress is shown; nothing where none is.
    common: Option<&'a Common>,
    /// Whether plain text is spoken with others, too.
    insecure: bool,
    /// A URL that a user has named, whose kind of addresses may be connected to beside public ones; without one, all are.
    near: Option<Url>,
    tls: OnceLock<TlsConnector>,
}

/// A response, of which the body has not been read.
pub(crate) struct Response {
    /// What answered, after redirects.
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    connection: JoinHandle<()>,
}

impl Drop for Response {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

/// A URL as people are told it: without its user and its query, which may be secret.
pub(crate) fn shown(url: &Url) -> String {
    let end = &url[Position::BeforeHost..Position::AfterPath];
    format!("{}{end}", &url[..Position::BeforeUsername])
}

/// Whether a URL has a user or a password in it.
pub(crate) fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

fn failed(url: &Url, problem: impl ToString) -> FetchError {
    FetchError::Failed { url: shown(url), problem: problem.to_string() }
}

impl<'a> Web<'a> {
    pub(crate) fn new(common: &'a Common, insecure: bool) -> Self {
        Self { common: Some(common), insecure, near: None, tls: OnceLock::new() }
    }

    /// A client that shows nothing.
    pub(crate) fn silent() -> Self {
        Self { common: None, insecure: false, near: None, tls: OnceLock::new() }
    }

    /// A client that shows nothing, for URLs which a server may choose. It reaches public addresses, and those of the
    /// kind that the server's own URL names: a server on the Internet sends nobody into a private network.
    pub(crate) fn near(server: &Url) -> Self {
        Self { near: Some(server.clone()), ..Self::silent() }
    }

    /// Whether an address may be connected to.
    fn may_reach(&self, address: IpAddr) -> Result<(), AddressKind> {
        let kind = AddressKind::of(address);
        let names = |server: &Url| match server.host() {
            Some(Host::Ipv4(own)) => AddressKind::of(own.into()) == kind,
            Some(Host::Ipv6(own)) => AddressKind::of(own.into()) == kind,
            Some(Host::Domain(_)) => is_own_name(server, kind),
            None => false,
        };
        let allows = kind == AddressKind::Public || self.near.as_ref().is_none_or(names);
        if allows { Ok(()) } else { Err(kind) }
    }

    /// The scheme in which a registry is spoken with.
    pub(crate) fn scheme(&self, registry: &str) -> &'static str {
        let url = Url::parse(&format!("http://{registry}/"));
        match self.insecure || url.as_ref().is_ok_and(is_loopback) {
            true => "http",
            false => "https",
        }
    }

    /// Whether a URL may be asked for.
    pub(crate) fn check(&self, url: &Url) -> Result<(), FetchError> {
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        if !is_web || has_user(url) {
            return Err(failed(url, "it is not an http or https URL, or contains a user name"));
        }
        match url.scheme() == "https" || self.insecure || is_loopback(url) {
            true => Ok(()),
            false => Err(FetchError::Plain(shown(url))),
        }
    }

    /// Asks for something, and follows where it has gone to. Who has credentials for one server gives
    /// them to no other.
    pub(crate) async fn get(
        &self,
        url: &Url,
        mut headers: HeaderMap,
    ) -> Result<Response, FetchError> {
        let mut url = url.clone();
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.send(Method::GET, &url, headers.clone(), Bytes::new()).await?;
            if !answer.status.is_redirection() || answer.status == StatusCode::NOT_MODIFIED {
                return Ok(answer);
            }
            let next = answer.headers.get(LOCATION).and_then(|location| location.to_str().ok());
            let next = next.and_then(|location| url.join(location).ok());
            let next = next.ok_or_else(|| failed(&url, "it leads to nowhere"))?;
            if url.scheme() == "https" && next.scheme() != "https" {
                return Err(failed(&url, format!("it leads to {}, in plain text", shown(&next))));
            }
            if next.origin() != url.origin() {
                headers.remove(AUTHORIZATION);
            }
            url = next;
        }
        Err(failed(&url, format!("it leads on more than {MAX_REDIRECTS} times")))
    }

    /// Sends one request.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, FetchError> {
        self.check(url)?;
        let of = |error: hyper::Error| failed(url, tenon_config::diagnostic::chain(&error));
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        let target = &url[Position::BeforePath..Position::AfterQuery];
        *request.uri_mut() = target.parse().map_err(|error| failed(url, error))?;
        *request.headers_mut() = headers;
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        request.headers_mut().insert(HOST, host.map_err(|error| failed(url, error))?);
        let agent = concat!("tenon/", env!("CARGO_PKG_VERSION"));
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(agent));
        let stream = timeout(CONNECT_TIMEOUT, self.connect(url)).await;
        let stream = stream.map_err(|_| failed(url, "no connection in time"))??;
        let (mut sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(of)?;
        // It ends with the response, and who reads that learns how.
        let connection = tokio::spawn(async move {
            let _ = connection.await;
        });
        let sent = timeout(FIRST_BYTE_TIMEOUT, sender.send_request(request)).await;
        let response = match sent {
            Ok(response) => response.map_err(of),
            Err(_) => Err(failed(url, "no answer in time")),
        };
        let response = response.inspect_err(|_| connection.abort())?;
        let (head, body) = response.into_parts();
        Ok(Response {
            url: url.clone(),
            status: head.status,
            headers: head.headers,
            body,
            connection,
        })
    }

    async fn connect(&self, url: &Url) -> Result<Box<dyn Stream>, FetchError> {
        let of = |error: std::io::Error| failed(url, error);
        let host = url.host().ok_or_else(|| failed(url, "it has no host"))?;
        let port = url.port_or_known_default().ok_or_else(|| failed(url, "it has no port"))?;
        let (addresses, name): (Vec<SocketAddr>, _) = match host {
            Host::Ipv4(address) => {
                (vec![(address, port).into()], ServerName::from(IpAddr::from(address)))
            }
            Host::Ipv6(address) => {
                (vec![(address, port).into()], ServerName::from(IpAddr::from(address)))
            }
            Host::Domain(name) => {
                let found = lookup_host((name, port)).await.map_err(of)?;
                let server = ServerName::try_from(name.to_string());
                (found.collect(), server.map_err(|error| failed(url, error))?)
            }
        };
        let is_plain = url.scheme() != "https";
        let mut last = failed(url, "its host has no address");
        for address in addresses {
            if let Err(kind) = self.may_reach(address.ip()) {
                last = failed(
                    url,
                    format!("its address {} is {kind}, and no server may lead there", address.ip()),
                );
                continue;
            }
            // The name of this machine has to lead to it.
            if is_plain && !self.insecure && !address.ip().is_loopback() {
                last = FetchError::Plain(shown(url));
                continue;
            }
            match TcpStream::connect(address).await {
                Ok(stream) if is_plain => return Ok(Box::new(stream)),
                Ok(stream) => {
                    let stream = self.tls()?.connect(name, stream).await.map_err(of)?;
                    return Ok(Box::new(stream));
                }
                Err(error) => last = of(error),
            }
        }
        Err(last)
    }

    /// Beside the public authorities those are trusted that the operator names, in the way that other
    /// programs know.
    fn tls(&self) -> Result<&TlsConnector, FetchError> {
        if let Some(tls) = self.tls.get() {
            return Ok(tls);
        }
        let named = std::env::var_os(AUTHORITIES).filter(|path| !path.is_empty());
        let named = named.map(PathBuf::from);
        let of = |problem: String| {
            let path = named.clone().unwrap_or_default();
            FetchError::Authorities { variable: AUTHORITIES, path, problem }
        };
        let others = match &named {
            Some(path) => read_certificates(path).map_err(of)?,
            None => Vec::new(),
        };
        let tls = connector(others).map_err(|error| of(tenon_config::diagnostic::chain(&error)))?;
        Ok(self.tls.get_or_init(|| tls))
    }

    /// Reads a response that has what was asked for.
    pub(crate) async fn read(&self, answer: Response, most: u64) -> Result<Vec<u8>, FetchError> {
        match answer.status {
            StatusCode::OK => answer.read(most, self.common).await,
            status => Err(FetchError::Status { url: shown(&answer.url), status }),
        }
    }
}

impl Response {
    /// Reads the body, of so many bytes at most. With arguments to go by, it shows on a terminal how
    /// far it has come.
    pub(crate) async fn read(
        mut self,
        most: u64,
        common: Option<&Common>,
    ) -> Result<Vec<u8>, FetchError> {
        let url = self.url.clone();
        let too_large = || FetchError::TooLarge { what: shown(&url), most };
        let total = self.body.size_hint().exact();
        if total.is_some_and(|total| total > most) {
            return Err(too_large());
        }
        let name = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
        let mut shown = common.and_then(|common| DownloadProgress::new(common, name, total));
        let mut bytes = Vec::new();
        while let Some(frame) = match timeout(BETWEEN_BYTES_TIMEOUT, self.body.frame()).await {
            Ok(frame) => frame,
            Err(_) => return Err(failed(&url, "it stopped in the middle")),
        } {
            let frame =
                frame.map_err(|error| failed(&url, tenon_config::diagnostic::chain(&error)))?;
            let Ok(data) = frame.into_data() else { continue };
            if (bytes.len() + data.len()) as u64 > most {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
            if let Some(shown) = &mut shown {
                shown.at(bytes.len() as u64);
            }
        }
        Ok(bytes)
    }
}

/// What connects over TLS 1.2 and 1.3, for HTTP/1.1. Beside the authorities of Mozilla's root program it trusts
/// `others`.
fn connector(others: Vec<CertificateDer<'static>>) -> Result<TlsConnector, TlsError> {
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.into() };
    for certificate in others {
        roots.add(certificate)?;
    }
    let mut config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The certificates of a file in PEM; one without any is not what was meant.
fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> =
        certificates.map_err(|error| tenon_config::diagnostic::chain(&error))?;
    match certificates.is_empty() {
        true => Err("it contains no certificate".into()),
        false => Ok(certificates),
    }
}

/// What requests go through.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_leads_to_public_addresses_and_to_those_of_its_own_kind() {
        let check = |server: &str, address: &str, expected: Result<(), AddressKind>| {
            let web = Web::near(&Url::parse(server).unwrap());
            assert_eq!(web.may_reach(address.parse().unwrap()), expected, "{server}: {address}");
        };
        let (loopback, private) = (Err(AddressKind::Loopback), Err(AddressKind::Private));
        check("https://mcp.example.com/", "8.8.8.8", Ok(()));
        check("https://mcp.example.com/", "127.0.0.1", loopback);
        check("https://mcp.example.com/", "10.0.0.5", private);
        check("https://mcp.example.com/", "169.254.169.254", Err(AddressKind::LinkLocal));
        check("https://8.8.4.4/", "::1", loopback);
        check("http://127.0.0.1:8080/", "8.8.8.8", Ok(()));
        check("http://127.0.0.1:8080/", "127.0.0.2", Ok(()));
        check("http://localhost:8080/", "::1", Ok(()));
        check("http://localhost:8080/", "10.0.0.5", private);
        check("https://10.0.0.1/", "192.168.0.1", Ok(()));
        check("https://mcp.lan/", "10.0.0.5", Ok(()));
        check("https://mcp.lan/", "169.254.169.254", Err(AddressKind::LinkLocal));
        assert_eq!(Web::silent().may_reach([10, 0, 0, 5].into()), Ok(()));
    }
}
