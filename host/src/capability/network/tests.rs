//! Requests over connections that lead nowhere: nothing here leaves the process.

use serde_json::Map;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tenon_config::discover::{PluginKind, Remote};
use tenon_config::grant::{GrantSet, Grants, NETWORK, UrlGrant};
use tenon_config::limits::Limits;
use tenon_config::path_context::PathContext;
use tenon_config::secret::{KnownSecrets, Redactor, Secret, SecretValues};

use async_trait::async_trait;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::Instant;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};
use wasmtime_wasi_http::{Error, RequestOptions, WasiBody};

use super::authorization::ServerAuthorization;
use super::client::{Network, RefusalMessages, SendError};
use super::grants::NetworkGrants;
use super::{HostCapability, MAX_HEADER_BYTES, NetworkCapability, get};
use crate::capability::granted::{GrantedCapabilities, HostServices};
use crate::capability::host_capability::{CapabilityContext, PrepareContext};
use crate::capability::services::{
    AccessTokens, AuthChallenge, Connector, NetworkBackend, Resolver, Services, Stream,
};
use crate::load::remote_grants;
use crate::observe::{PluginLog, PluginNotifications};
use tenon_types as types;

/// What a server does with a connection, once it has heard a request.
#[derive(Clone)]
enum ServerBehavior {
    Says(String),
    /// Says this over and over.
    Repeats(&'static str, &'static str),
    /// Says this, and nothing more.
    Stops(&'static str),
    /// Proves who it is, and says [`OK`].
    Proves(Arc<ServerConfig>),
    /// There is none.
    Refuses,
}

/// A network of its own.
#[derive(Clone)]
struct FakeNetwork {
    /// What names lead to, one answer after the other; the last one stays.
    names: Arc<Mutex<VecDeque<Vec<IpAddr>>>>,
    resolved: Arc<Mutex<Vec<String>>>,
    connected: Arc<Mutex<Vec<SocketAddr>>>,
    heard: Arc<Mutex<Vec<u8>>>,
    servers: Arc<Mutex<VecDeque<ServerBehavior>>>,
}

#[async_trait]
impl Resolver for FakeNetwork {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        self.resolved.lock().unwrap().push(format!("{host}:{port}"));
        let mut names = self.names.lock().unwrap();
        let found = if names.len() > 1 { names.pop_front() } else { names.front().cloned() };
        // A port that nobody asked for.
        Ok(found.unwrap().into_iter().map(|address| SocketAddr::new(address, 1)).collect())
    }
}

#[async_trait]
impl Connector for FakeNetwork {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.connected.lock().unwrap().push(address);
        let mut servers = self.servers.lock().unwrap();
        let server = if servers.len() > 1 { servers.pop_front() } else { servers.front().cloned() };
        let server = server.unwrap();
        if let ServerBehavior::Refuses = server {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (ours, theirs) = duplex(64 << 10);
        tokio::spawn(serve(server, theirs, self.heard.clone()));
        Ok(Box::new(ours))
    }
}

async fn serve(server: ServerBehavior, stream: DuplexStream, heard: Arc<Mutex<Vec<u8>>>) {
    match server {
        ServerBehavior::Proves(config) => {
            let Ok(stream) = TlsAcceptor::from(config).accept(stream).await else { return };
            answer_with(ServerBehavior::Says(OK.into()), stream, heard).await;
        }
        server => answer_with(server, stream, heard).await,
    }
}

async fn answer_with(server: ServerBehavior, mut stream: impl Stream, heard: Arc<Mutex<Vec<u8>>>) {
    let mut read = [0; 4096];
    let Ok(length @ 1..) = stream.read(&mut read).await else { return };
    heard.lock().unwrap().extend_from_slice(&read[..length]);
    let done = match server {
        ServerBehavior::Says(text) => stream.write_all(text.as_bytes()).await,
        ServerBehavior::Repeats(first, again) => {
            let mut done = stream.write_all(first.as_bytes()).await;
            while done.is_ok() {
                done = stream.write_all(again.as_bytes()).await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            done
        }
        ServerBehavior::Stops(text) => {
            let _ = stream.write_all(text.as_bytes()).await;
            std::future::pending().await
        }
        ServerBehavior::Proves(_) | ServerBehavior::Refuses => Ok(()),
    };
    // The other side may have had enough.
    let _ = (done, stream.shutdown().await);
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";

impl FakeNetwork {
    fn new(names: &[&[&str]], server: ServerBehavior) -> Self {
        let addresses = |names: &&[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
        Self {
            names: Arc::new(Mutex::new(names.iter().map(addresses).collect())),
            resolved: Arc::default(),
            connected: Arc::default(),
            heard: Arc::default(),
            servers: Arc::new(Mutex::new([server].into())),
        }
    }

    fn network(&self, grants: &[&str], limits: Limits) -> Network {
        self.made_with(grants, limits, OnceLock::new())
    }

    fn network_with(&self, grants: &[&str], limits: Limits, tls: Arc<ClientConfig>) -> Network {
        self.made_with(grants, limits, OnceLock::from(TlsConnector::from(tls)))
    }

    fn made_with(&self, grants: &[&str], limits: Limits, tls: OnceLock<TlsConnector>) -> Network {
        let grants = grants.iter().map(|text| Arc::new(UrlGrant::parse(text).unwrap())).collect();
        self.granted(NetworkGrants::new(vec![grants]), limits, tls)
    }

    fn granted(
        &self,
        grants: NetworkGrants,
        limits: Limits,
        tls: OnceLock<TlsConnector>,
    ) -> Network {
        let backend = NetworkBackend {
            resolver: Arc::new(self.clone()),
            connector: Arc::new(self.clone()),
            tls: Arc::new(tls),
        };
        Network::new("p".into(), Arc::new(grants), backend, limits)
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }

    fn connected(&self) -> Vec<String> {
        self.connected.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

fn request(method: &str, url: &str, body: &'static str) -> Request<WasiBody> {
    let body = Full::new(Bytes::from_static(body.as_bytes())).map_err(Error::from);
    Request::builder().method(method).uri(url).body(body.boxed_unsync()).unwrap()
}

/// The status and the body of the response.
async fn answer(
    network: &Network,
    request: Request<WasiBody>,
    options: RequestOptions,
) -> Result<(u16, String), SendError> {
    let (response, driver) = network.send(request, options).await?;
    let driver = tokio::spawn(driver);
    let status = response.status().as_u16();
    let body = response.into_body().collect().await?.to_bytes();
    driver.await.unwrap();
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

async fn ask(network: &Network, url: &str) -> Result<(u16, String), SendError> {
    answer(network, request("GET", url, ""), RequestOptions::default()).await
}

async fn refusal(network: &Network, url: &str) -> String {
    refused(network, url).await.said
}

async fn refused(network: &Network, url: &str) -> RefusalMessages {
    match ask(network, url).await {
        Err(SendError::Refused(refusal)) => refusal,
        other => panic!("{url}: {other:?}"),
    }
}

/// What a request comes to that a server answers in some way.
async fn fails(server: ServerBehavior, limits: Limits, options: RequestOptions) -> Error {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], server);
    let network = net.network(&["http://a.com"], limits);
    match answer(&network, request("GET", "http://a.com/", ""), options).await {
        Err(SendError::Failed(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn what_is_granted_is_sent_as_it_was_checked() {
    let check = async |url: &str, line: &str, host: &str| {
        let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
        let network = net.network(&["http://*:*/*"], Limits::default());
        assert_eq!(ask(&network, url).await.unwrap(), (200, "hi".into()), "{url}");
        let heard = net.heard();
        let expected = format!("GET {line} HTTP/1.1\r\nhost: {host}\r\n");
        assert!(heard.starts_with(&expected), "{url}: {heard}");
    };
    check("http://a.com", "/", "a.com").await;
    check("http://A.com:80/x?y=z", "/x?y=z", "a.com").await;
    check("http://a.com:8080/%41%2f", "/%41%2f", "a.com:8080").await;
    check("http://a.com/a/../b/./%2e%2E/c", "/c", "a.com").await;
    check("http://a.com/{x}?{y}", "/%7Bx%7D?{y}", "a.com").await;
}

#[tokio::test]
async fn the_method_the_headers_and_the_body_arrive() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
    let network = net.network(&["POST http://a.com/*"], Limits::default());
    let mut posted = request("POST", "http://a.com/x", "the body");
    posted.headers_mut().insert("x-y", "z".parse().unwrap());
    // It is not up to the plugin.
    posted.headers_mut().insert("host", "evil.com".parse().unwrap());
    answer(&network, posted, RequestOptions::default()).await.unwrap();
    let heard = net.heard();
    assert!(heard.starts_with("POST /x HTTP/1.1\r\n"), "{heard}");
    assert!(heard.contains("x-y: z\r\n") && heard.ends_with("\r\n\r\nthe body"), "{heard}");
    assert!(heard.contains("host: a.com\r\n") && !heard.contains("evil"), "{heard}");
}

#[tokio::test]
async fn what_is_not_granted_is_refused_before_anybody_is_asked() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
    let network = net.network(&["GET http://a.com/v1/*"], Limits::default());
    let said = refusal(&network, "https://a.com:8443/v1/x?key=secret").await;
    assert_eq!(
        said,
        "plugin \"p\": GET https://a.com:8443/v1/x is not granted; its plugin.toml would request \
         it with `network = [\"https://a.com:8443/*\"]` under [capabilities]"
    );
    for url in ["http://b.com/v1/x", "http://a.com/v2", "http://a.com/v1/../v2"] {
        refusal(&network, url).await;
    }
    let posted = answer(&network, request("POST", "http://a.com/v1/x", ""), Default::default());
    assert!(matches!(posted.await, Err(SendError::Refused(_))));
    assert!(net.resolved.lock().unwrap().is_empty() && net.connected().is_empty());
}

#[tokio::test]
async fn a_method_that_a_header_names_must_be_granted_too() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
    let with = async |grants: &[&str], header: &'static str, value: &str| {
        let network = net.network(grants, Limits::default());
        let mut request = request("POST", "http://a.com/x", "");
        request.headers_mut().append(header, value.parse().unwrap());
        answer(&network, request, RequestOptions::default()).await
    };
    let posts = &["POST http://a.com/*"];
    for header in ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"] {
        for value in ["DELETE", " delete ", "POST, Delete"] {
            let header = header.to_lowercase().leak();
            let Err(SendError::Refused(refusal)) = with(posts, header, value).await else {
                panic!("{header}: {value} is refused");
            };
            let start = "plugin \"p\": DELETE http://a.com/x is not granted; its plugin.toml would";
            assert!(refusal.said.starts_with(start), "{}", refusal.said);
        }
    }
    assert!(net.connected().is_empty());
    let header = "x-http-method-override";
    for invalid in ["TRACE", "DEL ETE"] {
        let sent = with(&["http://a.com/*"], header, invalid).await;
        assert!(
            matches!(sent, Err(SendError::Failed(Error::HttpRequestMethodInvalid))),
            "{sent:?}"
        );
    }
    assert!(with(posts, header, "post").await.is_ok());
    assert!(with(&["POST,DELETE http://a.com/*"], header, "DELETE").await.is_ok());
    assert!(with(&["http://a.com/*"], header, "DELETE").await.is_ok());
}

#[tokio::test]
async fn a_request_that_is_none_is_not_sent() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
    let network = net.network(&["http://*/*"], Limits::default());
    let check = async |request: Request<WasiBody>| match answer(
        &network,
        request,
        RequestOptions::default(),
    )
    .await
    {
        Err(SendError::Failed(error)) => error,
        other => panic!("{other:?}"),
    };
    for method in ["CONNECT", "TRACE"] {
        let error = check(request(method, "http://a.com/", "")).await;
        assert!(matches!(error, Error::HttpRequestMethodInvalid), "{error}");
    }
    for url in ["http://me@a.com/", "http://me:secret@a.com/", "ftp://a.com/", "/x"] {
        let error = check(request("GET", url, "")).await;
        assert!(matches!(error, Error::HttpRequestUriInvalid), "{url}: {error}");
    }
    let error = check(request("GET", &format!("http://a.com/{}", "x".repeat(9000)), "")).await;
    assert!(matches!(error, Error::HttpRequestUriTooLong), "{error}");
    for header in ["upgrade", "connection", "transfer-encoding", "proxy-authorization"] {
        let mut request = request("GET", "http://a.com/", "");
        request.headers_mut().insert(header, "x".parse().unwrap());
        let error = check(request).await;
        assert!(matches!(error, Error::HttpRequestDenied), "{header}: {error}");
    }
    let mut request = request("GET", "http://a.com/", "");
    request.headers_mut().insert("x", "y".repeat(MAX_HEADER_BYTES + 1).parse().unwrap());
    let error = check(request).await;
    assert!(matches!(error, Error::HttpRequestHeaderSectionSize(_)), "{error}");
    assert!(net.connected().is_empty());
}

#[tokio::test]
async fn a_name_is_resolved_once_and_what_was_checked_is_connected_to() {
    let net = FakeNetwork::new(&[&["8.8.8.8"], &["10.0.0.5"]], ServerBehavior::Says(OK.into()));
    let network = net.network(&["http://a.com:8080/*"], Limits::default());
    ask(&network, "http://a.com:8080/").await.unwrap();
    assert_eq!(*net.resolved.lock().unwrap(), ["a.com:8080"]);
    assert_eq!(net.connected(), ["8.8.8.8:8080"]);
    // The second time the name leads elsewhere.
    let RefusalMessages { said, logged } = refused(&network, "http://a.com:8080/x").await;
    assert_eq!(
        said,
        "plugin \"p\": GET http://a.com:8080/x at an address that is not public is not granted; its \
         plugin.toml would request it with `network = [\"http://<its address>:8080/*\"]` under \
         [capabilities]"
    );
    assert_eq!(
        logged,
        "plugin \"p\": GET http://a.com:8080/x at the private address 10.0.0.5 is not granted; its \
         plugin.toml would request it with `network = [\"http://10.0.0.5:8080/*\"]` under \
         [capabilities]"
    );
    assert_eq!(net.resolved.lock().unwrap().len(), 2);
    assert_eq!(net.connected(), ["8.8.8.8:8080"]);
}

#[tokio::test]
async fn no_name_leads_to_an_address_that_is_not_public() {
    for address in [
        "127.0.0.1",
        "10.0.0.5",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "255.255.255.255",
        "::1",
        "fd00::1",
        "fe80::1",
        "::ffff:127.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::",
    ] {
        let net = FakeNetwork::new(&[&[address]], ServerBehavior::Says(OK.into()));
        let network = net.network(&["http://*:*/*", "http://a.com/*"], Limits::default());
        let RefusalMessages { said, logged } = refused(&network, "http://a.com/").await;
        assert!(said.contains("GET http://a.com/ at an address that is not public is"), "{said}");
        assert!(!said.contains(address), "{said}");
        assert!(logged.contains("GET http://a.com/ at the "), "{logged}");
        assert!(logged.contains(&format!(" address {address} is not granted")), "{logged}");
        // Nor does the address itself, unless it is spelled out.
        let url = match address.parse().unwrap() {
            IpAddr::V4(address) => format!("http://{address}/"),
            IpAddr::V6(address) => format!("http://[{address}]/"),
        };
        refusal(&network, &url).await;
        assert!(net.connected().is_empty(), "{address}");
        let network = net.network(&[&url], Limits::default());
        ask(&network, &url).await.unwrap();
        assert_eq!(net.connected().len(), 1);
    }
}

#[tokio::test]
async fn of_several_addresses_only_those_are_tried_that_may_be_reached() {
    let net = FakeNetwork::new(
        &[&["10.0.0.5", "8.8.8.8", "::1", "2606:4700::1"]],
        ServerBehavior::Refuses,
    );
    let network = net.network(&["http://a.com"], Limits::default());
    let failed = ask(&network, "http://a.com/").await;
    assert!(matches!(failed, Err(SendError::Failed(Error::ConnectionRefused))), "{failed:?}");
    assert_eq!(net.connected(), ["8.8.8.8:80", "[2606:4700::1]:80"]);
}

#[tokio::test]
async fn a_server_proves_the_name_that_was_asked_for() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says("no TLS".into()));
    let network = net.network(&["https://a.com"], Limits::default());
    let failed = ask(&network, "https://a.com/").await;
    assert!(matches!(failed, Err(SendError::Failed(Error::TlsProtocolError))), "{failed:?}");
    assert_eq!(net.connected(), ["8.8.8.8:443"]);
    let mut hello = Acceptor::default();
    hello.read_tls(&mut net.heard.lock().unwrap().as_slice()).unwrap();
    let hello = hello.accept().ok().flatten().expect("it says hello");
    assert_eq!(hello.client_hello().server_name(), Some("a.com"));
}

#[tokio::test]
async fn what_a_server_proves_is_looked_at() {
    let check = async |trusted: bool, name: &str| {
        let (roots, server) = proof();
        let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Proves(server));
        let roots = if trusted { roots } else { RootCertStore::empty() };
        let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        let network = net.network_with(&["https://*"], Limits::default(), Arc::new(client));
        let answer = ask(&network, &format!("https://{name}/x")).await;
        (answer, net.heard())
    };
    let (answer, heard) = check(true, "a.com").await;
    assert_eq!(answer.unwrap(), (200, "hi".into()));
    assert!(heard.starts_with("GET /x HTTP/1.1\r\nhost: a.com\r\n"), "{heard}");
    for (trusted, name) in [(true, "b.com"), (true, "8.8.8.8"), (false, "a.com")] {
        let (answer, heard) = check(trusted, name).await;
        let is_refused = matches!(answer, Err(SendError::Failed(Error::TlsCertificateError)));
        assert!(is_refused, "{name}: {answer:?}");
        assert_eq!(heard, "");
    }
}

/// A server that can prove to be `a.com`, and who vouches for it.
fn proof() -> (RootCertStore, Arc<ServerConfig>) {
    let proof = rcgen::generate_simple_self_signed(["a.com".into()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(proof.cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(proof.signing_key.serialize_der()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let server = server.with_single_cert(vec![proof.cert.der().clone()], key).unwrap();
    (roots, Arc::new(server))
}

#[tokio::test(start_paused = true)]
async fn a_response_has_an_end() {
    let small = Limits { download: 1000, wall: Duration::from_secs(30), ..Limits::default() };
    let defaults = RequestOptions::default();
    let is_too_big = |error: &Error| matches!(error, Error::HttpResponseBodySize(Some(1000)));
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    let announced = ServerBehavior::Says("HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n".into());
    let error = fails(announced, small.clone(), defaults).await;
    assert!(is_too_big(&error), "{error}");
    let endless = ServerBehavior::Repeats(chunked, "5\r\nagain\r\n");
    let error = fails(endless, small.clone(), defaults).await;
    assert!(is_too_big(&error), "{error}");

    let began = Instant::now();
    let error = fails(ServerBehavior::Stops(""), small.clone(), defaults).await;
    assert!(matches!(error, Error::HttpResponseTimeout), "{error}");
    assert_eq!(began.elapsed().as_secs(), 30);

    // Slow, but never silent.
    let slow = Limits { wall: Duration::from_secs(30), ..Limits::default() };
    let began = Instant::now();
    let error = fails(ServerBehavior::Repeats(chunked, "1\r\nx\r\n"), slow, defaults).await;
    assert!(matches!(error, Error::HttpResponseTimeout), "{error}");
    assert_eq!(began.elapsed().as_secs(), 30);

    let patient = Limits { wall: Duration::from_secs(3600), ..Limits::default() };
    let second = Some(Duration::from_secs(1));
    let year = Some(Duration::from_secs(365 * 24 * 3600));
    for (first_byte_timeout, expected) in [(second, 1), (None, 300), (year, 300)] {
        let began = Instant::now();
        let options = RequestOptions { first_byte_timeout, ..defaults };
        let error = fails(ServerBehavior::Stops(""), patient.clone(), options).await;
        assert!(matches!(error, Error::ConnectionReadTimeout), "{error}");
        assert_eq!(began.elapsed().as_secs(), expected);
    }
    for (between_bytes_timeout, expected) in [(second, 1), (None, 60), (year, 60)] {
        let began = Instant::now();
        let options = RequestOptions { between_bytes_timeout, ..defaults };
        let error = fails(ServerBehavior::Stops(chunked), patient.clone(), options).await;
        assert!(matches!(error, Error::ConnectionReadTimeout), "{error}");
        assert_eq!(began.elapsed().as_secs(), expected);
    }
}

#[tokio::test]
async fn a_few_responses_may_come_before_the_response() {
    let hints = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n".repeat(8);
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(format!("{hints}{OK}")));
    let network = net.network(&["http://a.com"], Limits::default());
    assert_eq!(ask(&network, "http://a.com/").await.unwrap(), (200, "hi".into()));
}

#[tokio::test]
async fn a_response_that_is_none_is_an_error() {
    let check = async |said: &str| {
        fails(ServerBehavior::Says(said.into()), Limits::default(), RequestOptions::default()).await
    };
    let error =
        check("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n");
    let error = error.await;
    assert!(matches!(error, Error::HttpUpgradeFailed), "{error}");
    let error = check("220 mail.example.com ESMTP\r\n").await;
    assert!(matches!(error, Error::HttpProtocolError), "{error}");
    let error = check("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi").await;
    assert!(matches!(error, Error::HttpResponseIncomplete), "{error}");
    let error = check("").await;
    assert!(matches!(error, Error::HttpResponseIncomplete), "{error}");
    let endless = ServerBehavior::Repeats("", "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n");
    let error = fails(endless, Limits::default(), RequestOptions::default()).await;
    assert!(matches!(error, Error::HttpProtocolError), "{error}");
    let error =
        check(&format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(MAX_HEADER_BYTES))).await;
    assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error}");
    let error = check(&format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(129))).await;
    assert!(matches!(error, Error::HttpResponseHeaderSectionSize(_)), "{error}");
}

#[tokio::test]
async fn what_a_plugin_sends_is_bounded() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Stops(""));
    let limits = Limits { transfer: 5, ..Limits::default() };
    let network = net.network(&["http://a.com"], limits);
    let posted = request("POST", "http://a.com/", "123456");
    let failed = answer(&network, posted, RequestOptions::default()).await;
    assert!(matches!(failed, Err(SendError::Failed(Error::HttpRequestBodySize(Some(5))))));
    assert!(net.connected().is_empty());
    // One whose length nobody knows before.
    let (sender, body) = http_body_util::channel::Channel::<Bytes, Error>::new(4);
    let posted = request("POST", "http://a.com/", "").map(|_| body.boxed_unsync());
    let mut sender = sender;
    let sending =
        tokio::spawn(
            async move { while sender.send_data(Bytes::from_static(b"123")).await.is_ok() {} },
        );
    let failed = answer(&network, posted, RequestOptions::default()).await;
    assert!(
        matches!(failed, Err(SendError::Failed(Error::HttpRequestBodySize(Some(5))))),
        "{failed:?}"
    );
    sending.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn connections_are_bounded_and_become_free_again() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
    let network = net.network(&["http://a.com"], Limits::default());
    let mut open = Vec::new();
    for _ in 0..64 {
        let asked = network.send(request("GET", "http://a.com/", ""), RequestOptions::default());
        open.push(asked.await.unwrap());
    }
    let failed = ask(&network, "http://a.com/").await;
    assert!(matches!(failed, Err(SendError::Failed(Error::ConnectionTimeout))), "{failed:?}");
    assert_eq!(net.connected().len(), 64);
    drop(open);
    ask(&network, "http://a.com/").await.unwrap();
}

fn words(error: types::Error) -> String {
    match error.code {
        types::ErrorCode::Denied | types::ErrorCode::Failed | types::ErrorCode::InvalidInput => {
            error.message
        }
        _ => panic!("{error}"),
    }
}

async fn fetch(
    net: &FakeNetwork,
    grants: &[&str],
    url: &str,
) -> Result<super::GetResponse, String> {
    let network = net.network(grants, Limits::default());
    let granted = GrantedCapabilities::new("p".into(), Grants::default(), Arc::default());
    get(&granted, Some(&network), url, 20).await.map_err(words)
}

#[tokio::test]
async fn a_script_follows_redirects_as_far_as_they_are_granted() {
    let redirect = |to: &str| {
        ServerBehavior::Says(format!(
            "HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n"
        ))
    };
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Refuses);
    let serve = |servers: Vec<ServerBehavior>| *net.servers.lock().unwrap() = servers.into();
    let granted = ["http://a.com", "http://b.com/x"];

    let ok = "HTTP/1.1 200 OK\r\nA: 1\r\nA: 2\r\ncontent-length: 3\r\n\r\nh\u{e9}";
    serve(vec![redirect("/y"), redirect("http://b.com/x#z"), ServerBehavior::Says(ok.into())]);
    let fetched = fetch(&net, &granted, "http://a.com/").await.unwrap();
    assert_eq!((fetched.status, fetched.body.as_str()), (200, "h\u{e9}"));
    assert_eq!(fetched.headers["a"], "1, 2");
    assert!(net.heard().contains("GET /y HTTP"), "{}", net.heard());
    assert!(net.heard().contains("user-agent: tenon/"), "{}", net.heard());

    for to in ["http://b.com/y", "http://c.com/", "https://a.com/", "http://10.0.0.1/"] {
        serve(vec![redirect(to), ServerBehavior::Says(ok.into())]);
        let said = fetch(&net, &granted, "http://a.com/").await.err().unwrap();
        assert!(said.contains(&format!("GET {to} is not granted")), "{said}");
    }
    serve(vec![redirect("/again")]);
    let connected = net.connected().len();
    let said = fetch(&net, &granted, "http://a.com/").await.err().unwrap();
    assert!(said.contains("more than 5 redirects"), "{said}");
    assert_eq!(net.connected().len() - connected, 6);
}

#[tokio::test]
async fn what_a_script_fetches_is_bounded_text() {
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Refuses);
    let check = async |body: &str, expected: Result<&str, &str>| {
        let length = body.len();
        let said = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}");
        *net.servers.lock().unwrap() = [ServerBehavior::Says(said)].into();
        match (fetch(&net, &["http://a.com"], "http://a.com/").await, expected) {
            (Ok(fetched), Ok(expected)) => assert_eq!(fetched.body, expected),
            (Err(said), Err(expected)) => assert!(said.contains(expected), "{said}"),
            (fetched, _) => panic!("{:?}", fetched.map(|fetched| fetched.body)),
        }
    };
    check("12345678901234567890", Ok("12345678901234567890")).await;
    check("123456789012345678901", Err("longer than 20 bytes")).await;
    let said = fetch(&net, &["http://a.com"], "mailto:a@b.c").await.err().unwrap();
    assert!(said.contains("is not an http or https URL"), "{said}");
    let granted = GrantedCapabilities::new("p".into(), Grants::default(), Arc::default());
    let said = get(&granted, None, "http://a.com/x?secret", 20).await.err().map(words).unwrap();
    assert!(said.contains("plugin \"p\": GET http://a.com/x is not granted"), "{said}");
}

#[tokio::test]
async fn the_bridge_to_a_server_elsewhere_reaches_its_origin_and_nothing_else() {
    let remote = Remote {
        url: "http://mcp.example.com:8080/mcp?key=1".parse().unwrap(),
        headers: Default::default(),
        transport: Default::default(),
    };
    let grants = remote_grants(&remote).expect("it has an origin");
    let attempt = async |method: &str, url: &str| {
        let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Says(OK.into()));
        let granted = NetworkGrants::of(&grants).expect("it is granted");
        let network = net.granted(granted, Limits::default(), OnceLock::new());
        let sent = answer(&network, request(method, url, ""), RequestOptions::default()).await;
        (sent, net.connected(), net.resolved.lock().unwrap().clone())
    };
    for (method, url) in [
        ("POST", "http://mcp.example.com:8080/mcp"),
        ("GET", "http://mcp.example.com:8080/messages?of=1"),
        ("DELETE", "http://mcp.example.com:8080/"),
    ] {
        let (sent, connected, _) = attempt(method, url).await;
        assert!(matches!(sent, Ok((200, _))), "{url}: {sent:?}");
        assert_eq!(connected, ["8.8.8.8:8080"], "{url}");
    }
    for url in [
        "http://mcp.example.com/mcp",
        "http://mcp.example.com:8081/mcp",
        "https://mcp.example.com:8080/mcp",
        "http://example.com:8080/mcp",
        "http://a.mcp.example.com:8080/mcp",
        "http://other.example.com:8080/mcp",
        "http://mcp.example.com.other.net:8080/mcp",
        "http://8.8.8.8:8080/mcp",
        "http://127.0.0.1:8080/mcp",
        "http://localhost:8080/mcp",
    ] {
        let (sent, connected, resolved) = attempt("POST", url).await;
        assert!(matches!(sent, Err(SendError::Refused(_))), "{url}: {sent:?}");
        assert_eq!((connected, resolved), (Vec::new(), Vec::new()), "{url}");
    }
}

/// What the bridge to a server elsewhere has of the network is that server alone, whatever its guest asks for:
/// it is checked for each request, as for any plugin.
#[tokio::test]
async fn a_bridge_reaches_its_server_and_nothing_else() {
    let net = FakeNetwork::new(&[&["93.184.215.14"]], ServerBehavior::Says(OK.into()));
    let services = Services {
        network: NetworkBackend {
            resolver: Arc::new(net.clone()),
            connector: Arc::new(net.clone()),
            tls: Arc::default(),
        },
        ..Services::default()
    };
    let mut origin = GrantSet::default();
    let here = std::path::Path::new("/");
    origin.add(NETWORK, "http://a.com/*", &PathContext::in_folder(here)).unwrap();
    let grants = Grants::new(origin.clone(), origin);
    let host_services = Arc::new(HostServices::new(services));
    let granted = GrantedCapabilities::new("p".into(), grants.clone(), host_services);
    let log = PluginLog::new("p".into(), Redactor::new(&SecretValues::default()), 1);
    let context = CapabilityContext {
        id: "p".into(),
        kind: PluginKind::Mcp,
        log: Arc::new(log),
        granted: Arc::new(granted),
    };
    let network = NetworkCapability::prepare(&PrepareContext {
        context: &context,
        grants: &grants,
        limits: &Limits::default(),
        settings: &Map::new(),
        secrets: &Arc::default(),
        news: &PluginNotifications::default(),
        child: None,
        server: None,
        remote: None,
    });
    let network = network.expect("something of it is granted");
    for elsewhere in
        ["http://b.com/", "http://a.com:81/", "https://a.com/", "http://93.184.215.14/"]
    {
        assert!(refusal(&network, elsewhere).await.contains("is not granted"), "{elsewhere}");
    }
    assert!(net.connected().is_empty());
    assert_eq!(ask(&network, "http://a.com/x").await.unwrap(), (200, "hi".into()));
    assert_eq!(net.connected(), ["93.184.215.14:80"]);
}

/// Tokens that a user has of a server, and what was asked of them.
struct FakeTokens {
    tokens: Mutex<VecDeque<&'static str>>,
    refused: Mutex<Vec<(Option<String>, Vec<String>)>>,
}

#[async_trait]
impl AccessTokens for FakeTokens {
    async fn token(&self, server: &str) -> Option<Secret> {
        assert_eq!(server, "https://a.com/mcp");
        self.tokens.lock().unwrap().pop_front().map(Secret::new)
    }

    async fn renewed(&self, _: &str, refusal: &AuthChallenge<'_>) -> Option<Secret> {
        let token = refusal.token.map(|token| token.reveal().to_string());
        self.refused.lock().unwrap().push((token, refusal.challenges.to_vec()));
        self.tokens.lock().unwrap().pop_front().map(Secret::new)
    }
}

/// What a server heard of a request to it that the bridge sent, and what came of the request.
struct ObservedRequest {
    heard: String,
    status: u16,
    refused: Vec<(Option<String>, Vec<String>)>,
}

async fn send_authorized(
    url: &str,
    headers: &[(&'static str, &str)],
    tokens: &[&'static str],
    answers: &[&str],
) -> ObservedRequest {
    let tokens = Arc::new(FakeTokens {
        tokens: Mutex::new(tokens.iter().copied().collect()),
        refused: Mutex::default(),
    });
    let secrets = Arc::<KnownSecrets>::default();
    let server = "https://a.com/mcp".parse().unwrap();
    let authorization = ServerAuthorization::new(server, tokens.clone(), secrets.clone());
    let net = FakeNetwork::new(&[&["8.8.8.8"]], ServerBehavior::Refuses);
    let servers = answers.iter().map(|answer| ServerBehavior::Says(answer.to_string()));
    *net.servers.lock().unwrap() = servers.collect();
    let grants = ["http://*:*/*", "https://*:*/*"];
    let grants = grants.iter().map(|text| Arc::new(UrlGrant::parse(text).unwrap())).collect();
    let grants = NetworkGrants::new(vec![grants]);
    let backend = NetworkBackend {
        resolver: Arc::new(net.clone()),
        connector: Arc::new(SecureNet(net.clone())),
        tls: Arc::default(),
    };
    let network = Network::new("p".into(), Arc::new(grants), backend, Limits::default());
    let network = network.authorized(Some(authorization));
    let mut request = request("POST", url, "the body");
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (status, _) = answer(&network, request, RequestOptions::default()).await.unwrap();
    let heard = net.heard();
    // Whatever a server echoes.
    let sent = heard.contains("hush-token");
    let masks = secrets.redactor().is_some_and(|redactor| redactor.holds("is hush-token-1"));
    assert_eq!(masks, sent, "a token that was sent is known to be a secret");
    let refused = tokens.refused.lock().unwrap().clone();
    ObservedRequest { heard, status, refused }
}

/// A network whose connections are secure by themselves.
struct SecureNet(FakeNetwork);

#[async_trait]
impl Connector for SecureNet {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.0.connect(address).await
    }

    fn is_secure(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn a_token_goes_to_the_servers_own_origin_and_nowhere_else() {
    let check = async |url: &str, headers: &[(&'static str, &str)], is_sent: bool| {
        let sent = send_authorized(url, headers, &["hush-token-1"], &[OK]).await;
        let has_token = sent.heard.contains("authorization: Bearer hush-token-1\r\n");
        assert_eq!((sent.status, has_token), (200, is_sent), "{url}: {}", sent.heard);
        assert!(sent.heard.ends_with("the body"), "{}", sent.heard);
    };
    check("https://a.com/mcp", &[], true).await;
    check("https://a.com:443/other?x", &[], true).await;
    check("https://a.com:8443/mcp", &[], false).await;
    check("http://a.com/mcp", &[], false).await;
    check("http://a.com:443/mcp", &[], false).await;
    check("https://b.com/mcp", &[], false).await;
    check("https://sub.a.com/mcp", &[], false).await;
    check("https://a.com/mcp", &[("authorization", "Basic x")], false).await;
}

#[tokio::test]
async fn a_refused_request_is_sent_once_more_with_another_token() {
    const NO: &str = "HTTP/1.1 401 X\r\nwww-authenticate: Bearer a=b\r\ncontent-length: 0\r\n\r\n";
    const MORE: &str = "HTTP/1.1 403 X\r\nwww-authenticate: Bearer error=\"insufficient_scope\"\r\ncontent-length: 0\r\n\r\n";
    const NEVER: &str = "HTTP/1.1 403 X\r\ncontent-length: 0\r\n\r\n";
    let check = async |tokens: &[&'static str], answers: &[&str], status: u16, sent: &[&str]| {
        let request = send_authorized("https://a.com/mcp", &[], tokens, answers).await;
        let lines = request.heard.lines();
        let got: Vec<_> =
            lines.filter_map(|line| line.strip_prefix("authorization: Bearer ")).collect();
        assert_eq!((request.status, &got[..]), (status, sent), "{tokens:?}");
        assert_eq!(request.heard.matches("the body").count(), answers.len(), "{}", request.heard);
        request.refused
    };
    let (one, two) = ("hush-token-1", "hush-token-2");
    let refused = check(&[one, two], &[NO, OK], 200, &[one, two]).await;
    assert_eq!(refused, [(Some(one.to_string()), vec!["Bearer a=b".to_string()])]);
    check(&[one, two], &[MORE, OK], 200, &[one, two]).await;
    // Not a third time.
    let refused = check(&[one, two, "hush-token-3"], &[NO, NO], 401, &[one, two]).await;
    assert_eq!(refused.len(), 1);
    check(&[one], &[NO], 401, &[one]).await;
    check(&[one], &[MORE], 403, &[one]).await;
    let refused = check(&[one, two], &[NEVER], 403, &[one]).await;
    assert_eq!(refused, []);
    let refused = check(&[], &[NO], 401, &[]).await;
    assert_eq!(refused, [(None, vec!["Bearer a=b".to_string()])]);
}
