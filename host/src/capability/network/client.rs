//! Sends the requests of one plugin, and is the only way out.
//!
//! A request is checked, then its host is resolved once, then each address is checked, and one of
//! those that passed is connected to. Everything that is sent, and the name that a server has to
//! prove, comes from the URL that was checked.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;
use tenon_config::grant::{NETWORK, never_sent};
use tenon_config::limits::{Limits, MAX_DURATION};

use bytes::Bytes;
use futures::future::{Either, select};
use http::header::{HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::client::conn::http1;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::rustls::pki_types::ServerName;
use url::{Host, Position, Url};
use wasmtime_wasi_http::io::TokioIo;
use wasmtime_wasi_http::{DEFAULT_FORBIDDEN_HEADERS, Error, RequestOptions, WasiBody};

use super::MAX_HEADER_BYTES;
use super::authorization::ServerAuthorization;
use super::body::{LimitedBody, ResponseBody};
use super::error;
use super::grants::{NetworkGrants, everything_at, wanted};
use crate::capability::granted::{RequestedIn, not_granted};
use crate::capability::services::{HostCallInterceptor, NetworkBackend, Stream};

/// The longest URL, in bytes.
const MAX_URL_BYTES: usize = 8 << 10;

/// The most headers of a response.
const MAX_HEADERS: usize = 128;

/// The most responses that come before the one that counts, such as `103 Early Hints`. A server may
/// send any number of them, each with as many headers as any response has.
const MAX_INTERIM_RESPONSES: u32 = 8;

/// Headers by which a server is asked to take a request for one of another method.
const OVERRIDES: [&str; 3] = ["x-http-method-override", "x-http-method", "x-method-override"];

/// The most connections of a plugin at a time.
const MAX_CONNECTIONS: usize = 64;

/// The most addresses of a host that are tried.
const MAX_ADDRESSES: usize = 4;

/// The most time for a connection, from the name of the host to the proof of the server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most time until a response begins. Models think for long.
const FIRST_BYTE_TIMEOUT: Duration = Duration::from_secs(300);

/// The most time between two parts of a response.
const BETWEEN_BYTES_TIMEOUT: Duration = Duration::from_secs(60);

/// The network as one plugin can reach it.
pub(crate) struct Network {
    plugin: Arc<str>,
    grants: Arc<NetworkGrants>,
    backend: NetworkBackend,
    limits: Limits,
    connections: Arc<Semaphore>,
    /// To the server of a bridge, if its requests get tokens.
    authorization: Option<ServerAuthorization>,
    reached: Option<OnReach>,
    requested_in: RequestedIn,
    /// Who stands between the plugin and the servers, if somebody does.
    interceptor: Option<Arc<dyn HostCallInterceptor>>,
}

/// Is told of the grant that a request needs, and whether there is one.
pub(crate) type OnReach = Box<dyn Fn(&str, bool) + Send + Sync>;

/// Why there is no response.
#[derive(Debug)]
pub(super) enum SendError {
    /// It is not granted; the words say what is.
    Refused(RefusalMessages),
    Failed(Error),
}

/// The words of a refusal.
#[derive(Debug)]
pub(super) struct RefusalMessages {
    /// For who asked.
    pub(super) said: String,
    /// For the operator: it may name an address, which is nothing for a plugin. Names lead into
    /// networks that it is to learn nothing of.
    pub(super) logged: String,
}

impl From<Error> for SendError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// What keeps a connection going while a body is read. It ends by itself, in time.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is asked of whom: what was checked of a request.
pub(super) struct CheckedRequest {
    /// The method of the request, and those that a header asks the server to take it for.
    methods: Vec<Method>,
    url: Url,
}

/// A request in words. Leaves out the query, which may be secret.
pub(super) fn in_words(method: &Method, url: &Url) -> String {
    format!("{method} {}", &url[..Position::AfterPath])
}

/// How long a request waits for what: as its sender wants, within what the host allows.
#[derive(Clone, Copy)]
pub(super) struct Timeouts {
    connect: Duration,
    first_byte: Duration,
    between_bytes: Duration,
    deadline: Instant,
}

impl Timeouts {
    fn new(options: RequestOptions, limits: &Limits) -> Self {
        let within =
            |wanted: Option<Duration>, most: Duration| wanted.map_or(most, |w| w.min(most));
        Self {
            connect: within(options.connect_timeout, CONNECT_TIMEOUT),
            first_byte: within(options.first_byte_timeout, FIRST_BYTE_TIMEOUT),
            between_bytes: within(options.between_bytes_timeout, BETWEEN_BYTES_TIMEOUT),
            deadline: Instant::now() + limits.wall.min(MAX_DURATION),
        }
    }
}

impl Network {
    /// Whose it is.
    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }

    pub(crate) fn new(
        plugin: Arc<str>,
        grants: Arc<NetworkGrants>,
        backend: NetworkBackend,
        limits: Limits,
    ) -> Self {
        let connections = Arc::new(Semaphore::new(MAX_CONNECTIONS));
        let (authorization, reached) = (None, None);
        let requested_in = RequestedIn::Manifest;
        let interceptor = None;
        Self {
            plugin,
            grants,
            backend,
            limits,
            connections,
            authorization,
            reached,
            requested_in,
            interceptor,
        }
    }

    /// The same with the authorization to one server.
    pub(crate) fn authorized(self, authorization: Option<ServerAuthorization>) -> Self {
        Self { authorization, ..self }
    }

    /// The same, with somebody who stands in between.
    pub(super) fn intercepted_by(self, interceptor: Option<Arc<dyn HostCallInterceptor>>) -> Self {
        Self { interceptor, ..self }
    }

    /// The same, of a plugin that says there what it requests.
    pub(crate) fn requested_in(self, requested_in: RequestedIn) -> Self {
        Self { requested_in, ..self }
    }

    /// The same, telling of what is reached and refused.
    pub(crate) fn telling(self, reached: Option<OnReach>) -> Self {
        Self { reached, ..self }
    }

    /// Tells of a request that is granted.
    fn tell_granted(&self, url: &Url) {
        if let Some(reached) = &self.reached {
            reached(&everything_at(url), true);
        }
    }

    /// Sends a request. Redirects are not followed: each is another request.
    pub(super) async fn send(
        &self,
        request: Request<WasiBody>,
        options: RequestOptions,
    ) -> Result<(Response<WasiBody>, Driver), SendError> {
        check_request(&request)?;
        let target = CheckedRequest { methods: methods_of(&request)?, url: url_of(request.uri())? };
        let CheckedRequest { methods, url } = &target;
        if let Some(method) = methods.iter().find(|method| !self.grants.allow(method, url)) {
            let said = self.refuse(&in_words(method, url), &everything_at(url));
            return Err(SendError::Refused(RefusalMessages { logged: said.clone(), said }));
        }
        self.tell_granted(url);
        let timeouts = Timeouts::new(options, &self.limits);
        let deadline = timeouts.deadline;
        let authorization = self.authorization.as_ref();
        let authorization = authorization.filter(|of| of.covers(url, request.headers()));
        let sending = match (authorization, &self.interceptor) {
            (Some(authorization), _) => {
                Either::Left(Either::Left(authorization.send(self, request, &target, timeouts)))
            }
            (None, Some(interceptor)) => {
                let sending = self.intercepted(interceptor, request, &target, timeouts);
                Either::Left(Either::Right(Box::pin(sending)))
            }
            (None, None) => Either::Right(self.answer(request, &target, timeouts)),
        };
        timeout_at(deadline, sending)
            .await
            .unwrap_or(Err(SendError::Failed(Error::HttpResponseTimeout)))
    }

    /// Reads a whole body, within the limit.
    pub(super) async fn collect(&self, body: WasiBody) -> Result<Bytes, SendError> {
        let body = LimitedBody::new(body, self.limits.transfer as u64)?;
        Ok(body.collect().await?.to_bytes())
    }

    /// Sends a request that was checked.
    pub(super) async fn answer(
        &self,
        request: Request<WasiBody>,
        target: &CheckedRequest,
        timeouts: Timeouts,
    ) -> Result<(Response<WasiBody>, Driver), SendError> {
        let mut request = LimitedBody::of(request, &target.url, self.limits.transfer as u64)?;
        let connecting = self.connect(target, timeouts.connect);
        let (stream, place) = connected_within(timeouts.connect, connecting).await?;
        let (mut sender, connection) = http1::Builder::new()
            .max_headers(MAX_HEADERS)
            .max_buf_size(MAX_HEADER_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(error::of_hyper)?;
        let interim = Arc::new(Semaphore::new(0));
        let counted = interim.clone();
        hyper::ext::on_informational(&mut request, move |_| counted.add_permits(1));
        let too_many = pin!(interim.acquire_many(MAX_INTERIM_RESPONSES + 1));
        // While there is no response yet, nothing else keeps the connection going.
        let sending = pin!(sender.send_request(request));
        let waiting = select(sending, Box::pin(connection));
        let waiting = timeout(timeouts.first_byte, select(waiting, too_many));
        let waited = match waiting.await {
            Err(_) => return Err(Error::ConnectionReadTimeout.into()),
            Ok(Either::Right(_)) => return Err(Error::HttpProtocolError.into()),
            Ok(Either::Left((waited, _))) => waited,
        };
        let (response, connection) = match waited {
            Either::Left((response, connection)) => (response, Some(connection)),
            // The response may have come with the end, however that was.
            Either::Right((ended, sending)) => {
                (sending.await.map_err(|error| ended.err().unwrap_or(error)), None)
            }
        };
        let response = response.map_err(error::of_hyper)?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Error::HttpUpgradeFailed.into());
        }
        let most = self.limits.download as u64;
        if response.body().size_hint().lower() > most {
            return Err(Error::HttpResponseBodySize(Some(most)).into());
        }
        let Timeouts { between_bytes, deadline, .. } = timeouts;
        let response = response
            .map(|body| ResponseBody::new(body, most, between_bytes, deadline).boxed_unsync());
        let driver = async move {
            let _place = place;
            if let Some(connection) = connection {
                // Who reads the body learns how it ended.
                let _ = timeout_at(deadline, connection).await;
            }
        };
        Ok((response, Box::pin(driver)))
    }

    /// A connection to a host and a port, as `CONNECT` of HTTP names them, on which TLS is spoken by who asks for it.
    pub(super) async fn tunnel(
        &self,
        authority: &str,
    ) -> Result<(Box<dyn Stream>, OwnedSemaphorePermit), SendError> {
        let url = [format!("https://{authority}/"), format!("http://{authority}/")];
        let urls = url.iter().map(|url| Url::parse(url).map_err(|_| Error::HttpRequestUriInvalid));
        let urls: Vec<Url> = urls.collect::<Result<_, _>>()?;
        let Some(url) = urls.iter().find(|url| self.grants.allow_tunnel(url)) else {
            let said = self.refuse(&format!("a tunnel to {authority}"), &everything_at(&urls[0]));
            return Err(SendError::Refused(RefusalMessages { logged: said.clone(), said }));
        };
        self.tell_granted(url);
        let target = CheckedRequest { methods: vec![Method::CONNECT], url: url.clone() };
        let connecting = self.connect_in_the_clear(&target, CONNECT_TIMEOUT);
        connected_within(CONNECT_TIMEOUT, connecting).await
    }

    /// A connection to where a request may go.
    async fn connect(
        &self,
        target: &CheckedRequest,
        timeouts: Duration,
    ) -> Result<(Box<dyn Stream>, OwnedSemaphorePermit), SendError> {
        let (stream, place) = self.connect_in_the_clear(target, timeouts).await?;
        let url = &target.url;
        if url.scheme() != "https" || self.backend.connector.is_secure() {
            return Ok((stream, place));
        }
        let name = match url.host().ok_or(Error::HttpRequestUriInvalid)? {
            Host::Domain(name) => ServerName::try_from(name.to_string()),
            Host::Ipv4(address) => Ok(ServerName::from(IpAddr::from(address))),
            Host::Ipv6(address) => Ok(ServerName::from(IpAddr::from(address))),
        };
        let name = name.map_err(|_| Error::TlsCertificateError)?;
        let stream = self.backend.tls().connect(name, stream).await.map_err(error::of_tls)?;
        Ok((Box::new(stream), place))
    }

    /// The same without TLS.
    async fn connect_in_the_clear(
        &self,
        target: &CheckedRequest,
        timeouts: Duration,
    ) -> Result<(Box<dyn Stream>, OwnedSemaphorePermit), SendError> {
        let place = self.connections.clone().acquire_owned().await;
        let place = place.map_err(|_| Error::ConnectionLimitReached)?;
        let url = &target.url;
        let host = url.host().ok_or(Error::HttpRequestUriInvalid)?;
        let port = url.port_or_known_default().ok_or(Error::HttpRequestUriInvalid)?;
        let addresses = match &host {
            Host::Ipv4(address) => vec![SocketAddr::new((*address).into(), port)],
            Host::Ipv6(address) => vec![SocketAddr::new((*address).into(), port)],
            Host::Domain(name) => {
                let found = self.backend.resolver.resolve(name, port).await;
                found.map_err(|_| Error::DnsError { rcode: None, info_code: None })?
            }
        };
        let addresses = self.check_addresses(target, port, addresses)?;
        let stream = self.connect_to_any(&addresses, timeouts).await.map_err(error::of_connect)?;
        Ok((stream, place))
    }

    /// Those addresses that a request may be taken to, with its own port.
    fn check_addresses(
        &self,
        target: &CheckedRequest,
        port: u16,
        addresses: Vec<SocketAddr>,
    ) -> Result<Vec<SocketAddr>, SendError> {
        let mut refused = None;
        let mut checked = Vec::new();
        for mut address in addresses.into_iter().take(MAX_ADDRESSES) {
            address.set_port(port);
            let reach = |method| {
                let reached = self.grants.may_reach(method, &target.url, address.ip());
                reached.map_err(|kind| (address.ip(), kind, method))
            };
            match target.methods.iter().try_for_each(reach) {
                Ok(()) => checked.push(address),
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        match refused {
            _ if !checked.is_empty() => Ok(checked),
            Some((address, kind, method)) => {
                let (url, wanted) = (&target.url, wanted(&target.url, address));
                let target = in_words(method, url);
                let tried = format!("{target} at the {kind} address {address}");
                let logged = self.refuse(&tried, &wanted);
                let said = match url.domain() {
                    Some(_) => {
                        let tried = format!("{target} at an address that is not public");
                        let port = &url[Position::AfterHost..Position::BeforePath];
                        let placed = || format!("{}://<its address>{port}/*", url.scheme());
                        let names_it = wanted != everything_at(url);
                        self.refuse(&tried, &if names_it { placed() } else { wanted })
                    }
                    // The plugin has named it.
                    None => logged.clone(),
                };
                Err(SendError::Refused(RefusalMessages { said, logged }))
            }
            None => Err(Error::DestinationNotFound.into()),
        }
    }

    async fn connect_to_any(
        &self,
        addresses: &[SocketAddr],
        timeouts: Duration,
    ) -> io::Result<Box<dyn Stream>> {
        let each = timeouts / u32::try_from(addresses.len()).unwrap_or(u32::MAX).max(1);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            match timeout(each, self.backend.connector.connect(*address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }

    fn refuse(&self, tried: &str, value: &str) -> String {
        if let Some(reached) = &self.reached {
            reached(value, false);
        }
        not_granted(&self.plugin, tried, self.requested_in, NETWORK, value)
    }
}

/// Waits no longer than this for a connection.
async fn connected_within<T>(
    most: Duration,
    connecting: impl Future<Output = Result<T, SendError>>,
) -> Result<T, SendError> {
    timeout(most, connecting).await.unwrap_or(Err(SendError::Failed(Error::ConnectionTimeout)))
}

/// The URL of a request, as the standard reads it. What is checked and what is sent are made of it,
/// so that no other reading of the request matters.
fn url_of(uri: &Uri) -> Result<Url, Error> {
    let text = uri.to_string();
    if text.len() > MAX_URL_BYTES {
        return Err(Error::HttpRequestUriTooLong);
    }
    let url = Url::parse(&text).map_err(|_| Error::HttpRequestUriInvalid)?;
    let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
    match is_web && url.username().is_empty() && url.password().is_none() {
        true => Ok(url),
        false => Err(Error::HttpRequestUriInvalid),
    }
}

/// The methods that a server may take a request for.
fn methods_of(request: &Request<WasiBody>) -> Result<Vec<Method>, Error> {
    let mut methods = vec![request.method().clone()];
    let headers = OVERRIDES.iter().flat_map(|name| request.headers().get_all(*name));
    for named in headers.flat_map(|value| value.as_bytes().split(|byte| *byte == b',')) {
        let named = named.trim_ascii().to_ascii_uppercase();
        if !named.is_empty() {
            // What is no method to us may still be one to somebody.
            let method = Method::from_bytes(&named).map_err(|_| Error::HttpRequestMethodInvalid)?;
            methods.push(method);
        }
    }
    match methods.iter().any(never_sent) {
        true => Err(Error::HttpRequestMethodInvalid),
        false => Ok(methods),
    }
}

/// Refuses what is sent for nobody.
fn check_request(request: &Request<WasiBody>) -> Result<(), Error> {
    let headers = request.headers();
    let is_forbidden = |name| name != HOST && DEFAULT_FORBIDDEN_HEADERS.contains(name);
    if headers.keys().any(is_forbidden) {
        return Err(Error::HttpRequestDenied);
    }
    let size: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    match size > MAX_HEADER_BYTES {
        true => Err(Error::HttpRequestHeaderSectionSize(u32::try_from(MAX_HEADER_BYTES).ok())),
        false => Ok(()),
    }
}

impl LimitedBody {
    /// A request as it goes over the wire: its path, its query and its host are those of the URL
    /// that was checked, byte for byte.
    fn of(request: Request<WasiBody>, url: &Url, most: u64) -> Result<Request<Self>, Error> {
        let (parts, body) = request.into_parts();
        let target = &url[Position::BeforePath..Position::AfterQuery];
        let uri: Uri = target.parse().map_err(|_| Error::HttpRequestUriInvalid)?;
        if uri.path_and_query().is_none_or(|parsed| parsed.as_str() != target) {
            return Err(Error::HttpRequestUriInvalid);
        }
        let host = HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort]);
        let mut headers: HeaderMap = parts.headers;
        headers.insert(HOST, host.map_err(|_| Error::HttpRequestUriInvalid)?);
        let mut request = Request::new(Self::new(body, most)?);
        *request.method_mut() = parts.method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        Ok(request)
    }
}
