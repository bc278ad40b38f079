//! Sends requests just as it is told to, and tells what became of them: one tool for each edition
//! of WASI. Nothing here is checked; that is up to the host.

use std::net::{Ipv4Addr, SocketAddrV4};

use tenon_sdk::{Result, plugin, tool};

plugin!(tools: [fetch2, fetch3, sockets2, sockets3]);

/// A request as its parts are written.
struct RequestParts<'a> {
    method: &'a str,
    scheme: &'a str,
    authority: &'a str,
    path: &'a str,
    headers: Vec<(String, Vec<u8>)>,
    body: Option<&'a str>,
}

impl<'a> RequestParts<'a> {
    fn new(
        method: &'a str,
        url: &'a str,
        headers: Option<Vec<String>>,
        body: Option<&'a str>,
    ) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let header = |line: String| {
            let (name, value) = line.split_once(": ")?;
            Some((name.to_string(), value.as_bytes().to_vec()))
        };
        let headers = headers.unwrap_or_default().into_iter().filter_map(header).collect();
        Self { method, scheme, authority, path, headers, body }
    }
}

/// What became of a request: `200 body`, `error: …`, or `200 and then …` where the body failed.
fn outcome(status: u16, body: &[u8], error: Option<String>) -> String {
    match error {
        None => format!("{status} {}", String::from_utf8_lossy(body)),
        Some(error) => format!("{status} and then {error} after {} bytes", body.len()),
    }
}

/// Sends a request through WASI 0.2.
#[tool]
pub async fn fetch2(
    method: String,
    /// Its scheme, authority and path are taken as they are.
    url: String,
    /// Lines such as `a: b`.
    headers: Option<Vec<String>>,
    body: Option<String>,
) -> Result<String> {
    let sent = edition2::send(RequestParts::new(&method, &url, headers, body.as_deref()));
    Ok(sent.unwrap_or_else(|error| format!("error: {error}")))
}

/// Sends a request through WASI 0.3.
#[tool]
pub async fn fetch3(
    method: String,
    /// Its scheme, authority and path are taken as they are.
    url: String,
    /// Lines such as `a: b`.
    headers: Option<Vec<String>>,
    body: Option<String>,
) -> Result<String> {
    let sent = edition3::send(RequestParts::new(&method, &url, headers, body.as_deref())).await;
    Ok(sent.unwrap_or_else(|error| format!("error: {error}")))
}

/// Uses sockets through WASI 0.2: `connect`, `listen`, `bind`, `send` or `look-up`. Answers the error, and the
/// operation that it is of.
#[tool]
pub async fn sockets2(
    what: String,
    /// The address, or the name that is looked up.
    address: String,
) -> Result<String> {
    Ok(edition2::sockets(&what, &address).map_or_else(|error| error, String::from))
}

/// Uses sockets through WASI 0.3, where `listen` and `send` bind nothing before. Answers as the other
/// does.
#[tool]
pub async fn sockets3(
    what: String,
    /// The address, or the name that is looked up.
    address: String,
) -> Result<String> {
    let done = edition3::sockets(&what, &address).await;
    Ok(done.map_or_else(|error| error, String::from))
}

/// An error of an operation, by its name alone.
fn refused(name: &str, operation: &str) -> String {
    format!("error: {} by {operation}", name.trim_start_matches("ErrorCode::"))
}

/// The address as it is written, or that of nowhere.
fn parsed(address: &str) -> SocketAddrV4 {
    address.parse().unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))
}

/// Says what a request of an edition is for. Their types have the same names, and nothing else in
/// common.
macro_rules! address {
    ($request:expr, $parts:expr) => {{
        let method = match $parts.method {
            "GET" => Method::Get,
            "POST" => Method::Post,
            other => Method::Other(other.into()),
        };
        let scheme = match $parts.scheme {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => Scheme::Other(other.into()),
        };
        $request.set_method(&method).map_err(|()| "no such method")?;
        $request.set_scheme(Some(&scheme)).map_err(|()| "no such scheme")?;
        $request.set_authority(Some($parts.authority)).map_err(|()| "no such authority")?;
        $request.set_path_with_query(Some($parts.path)).map_err(|()| "no such path")?;
    }};
}

mod edition2 {
    use super::{RequestParts, outcome, parsed, refused};
    use wasip2::http::outgoing_handler::handle;
    use wasip2::http::types::{
        Fields, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme, http_error_code,
    };
    use wasip2::io::streams::StreamError;
    use wasip2::sockets::instance_network::instance_network;
    use wasip2::sockets::ip_name_lookup::resolve_addresses;
    use wasip2::sockets::network::{
        ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress,
    };
    use wasip2::sockets::tcp_create_socket::create_tcp_socket;
    use wasip2::sockets::udp::OutgoingDatagram;
    use wasip2::sockets::udp_create_socket::create_udp_socket;

    pub(crate) fn sockets(what: &str, address: &str) -> Result<&'static str, String> {
        let by = |operation: &'static str| move |error: ErrorCode| refused(error.name(), operation);
        let network = instance_network();
        let ip = |address: &str| {
            let (port, [a, b, c, d]) = (parsed(address).port(), parsed(address).ip().octets());
            IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (a, b, c, d) })
        };
        let (local, remote) = (ip("127.0.0.1:0"), ip(address));
        let tcp = || create_tcp_socket(IpAddressFamily::Ipv4).map_err(by("create"));
        let udp = || create_udp_socket(IpAddressFamily::Ipv4).map_err(by("create"));
        match what {
            "connect" => {
                let socket = tcp()?;
                socket.start_connect(&network, remote).map_err(by("connect"))?;
                socket.subscribe().block();
                socket.finish_connect().map_err(by("connect"))?;
                Ok("connected")
            }
            "listen" => {
                let socket = tcp()?;
                socket.start_bind(&network, remote).map_err(by("bind"))?;
                socket.subscribe().block();
                socket.finish_bind().map_err(by("bind"))?;
                socket.start_listen().map_err(by("listen"))?;
                socket.subscribe().block();
                socket.finish_listen().map_err(by("listen"))?;
                Ok("listening")
            }
            "bind" | "send" => {
                let socket = udp()?;
                let own = if what == "bind" { remote } else { local };
                socket.start_bind(&network, own).map_err(by("bind"))?;
                socket.subscribe().block();
                socket.finish_bind().map_err(by("bind"))?;
                if what == "bind" {
                    return Ok("bound");
                }
                let (_incoming, outgoing) = socket.stream(None).map_err(by("stream"))?;
                outgoing.subscribe().block();
                outgoing.check_send().map_err(by("send"))?;
                let data = b"anybody there?".to_vec();
                let datagram = OutgoingDatagram { data, remote_address: Some(remote) };
                outgoing.send(&[datagram]).map_err(by("send"))?;
                Ok("sent")
            }
            "look-up" => {
                resolve_addresses(&network, address).map_err(by("look-up"))?;
                Ok("found")
            }
            other => Err(format!("error: there is no {other}")),
        }
    }

    pub(crate) fn send(parts: RequestParts<'_>) -> Result<String, String> {
        let headers = Fields::from_list(&parts.headers).map_err(|error| format!("{error:?}"))?;
        let request = OutgoingRequest::new(headers);
        address!(request, parts);
        let body = request.body().map_err(|()| "no body")?;
        let answer = handle(request, None).map_err(|error| format!("{error:?}"))?;
        if let Some(text) = parts.body {
            let stream = body.write().map_err(|()| "no stream")?;
            for chunk in text.as_bytes().chunks(4096) {
                if stream.blocking_write_and_flush(chunk).is_err() {
                    break;
                }
            }
        }
        // Where it fails, so does the answer.
        let _ = OutgoingBody::finish(body, None);
        answer.subscribe().block();
        let answer = answer.get().ok_or("there is no answer")?.map_err(|()| "it was taken")?;
        read(answer.map_err(|error| format!("{error:?}"))?)
    }

    fn read(answer: IncomingResponse) -> Result<String, String> {
        let status = answer.status();
        let body = answer.consume().map_err(|()| "there is no body")?;
        let stream = body.stream().map_err(|()| "there is no stream")?;
        let mut read = Vec::new();
        let error = loop {
            match stream.blocking_read(1 << 20) {
                Ok(chunk) => read.extend(chunk),
                Err(StreamError::Closed) => break None,
                Err(StreamError::LastOperationFailed(error)) => {
                    // wasmtime 48 knows the code and does not find it.
                    let code = http_error_code(&error).map(|code| format!("{code:?}"));
                    break Some(code.unwrap_or_else(|| error.to_debug_string()));
                }
            }
        };
        Ok(outcome(status, &read, error))
    }
}

mod edition3 {
    use super::{RequestParts, outcome, parsed, refused};
    use std::future::{Future, poll_fn};
    use std::pin::pin;
    use std::task::Poll;
    use wasip3::http::client;
    use wasip3::http::types::{Fields, Method, Request, Response, Scheme};
    use wasip3::sockets::ip_name_lookup::resolve_addresses;
    use wasip3::sockets::types::{
        ErrorCode, IpAddressFamily, IpSocketAddress, Ipv4SocketAddress, TcpSocket, UdpSocket,
    };
    use wasip3::wit_bindgen::StreamResult;
    use wasip3::{wit_future, wit_stream};

    pub(crate) async fn sockets(what: &str, address: &str) -> Result<&'static str, String> {
        let by = |operation: &'static str| {
            move |error: ErrorCode| refused(&format!("{error:?}"), operation)
        };
        let (port, [a, b, c, d]) = (parsed(address).port(), parsed(address).ip().octets());
        let remote = IpSocketAddress::Ipv4(Ipv4SocketAddress { port, address: (a, b, c, d) });
        let tcp = || TcpSocket::create(IpAddressFamily::Ipv4).map_err(by("create"));
        let udp = || UdpSocket::create(IpAddressFamily::Ipv4).map_err(by("create"));
        match what {
            "connect" => {
                tcp()?.connect(remote).await.map_err(by("connect"))?;
                Ok("connected")
            }
            "listen" => {
                tcp()?.listen().map_err(by("listen"))?;
                Ok("listening")
            }
            "bind" => {
                udp()?.bind(remote).map_err(by("bind"))?;
                Ok("bound")
            }
            "send" => {
                let data = b"anybody there?".to_vec();
                udp()?.send(data, Some(remote)).await.map_err(by("send"))?;
                Ok("sent")
            }
            "look-up" => {
                let found = resolve_addresses(address.to_string()).await;
                found.map_err(|error| refused(&format!("{error:?}"), "look-up"))?;
                Ok("found")
            }
            other => Err(format!("error: there is no {other}")),
        }
    }

    pub(crate) async fn send(parts: RequestParts<'_>) -> Result<String, String> {
        let headers = Fields::from_list(&parts.headers).map_err(|error| format!("{error:?}"))?;
        let (_, trailers) = wit_future::new(|| Ok(None));
        let (mut writer, contents) = wit_stream::new();
        let (request, _) = Request::new(headers, Some(contents), trailers, None);
        address!(request, parts);
        let writing = async {
            if let Some(body) = parts.body {
                writer.write_all(body.as_bytes().to_vec()).await;
            }
            drop(writer);
        };
        let answer = while_doing(client::send(request), writing).await;
        read(answer.map_err(|error| format!("{error:?}"))?).await
    }

    async fn read(answer: Response) -> Result<String, String> {
        let status = answer.get_status_code();
        let (_, done) = wit_future::new(|| Ok(()));
        let (mut stream, trailers) = Response::consume_body(answer, done);
        let mut read = Vec::new();
        loop {
            let (result, chunk) = stream.read(Vec::with_capacity(64 << 10)).await;
            read.extend(chunk);
            if !matches!(result, StreamResult::Complete(_)) {
                break;
            }
        }
        drop(stream);
        Ok(outcome(status, &read, trailers.await.err().map(|error| format!("{error:?}"))))
    }

    /// Waits for one thing while another one is done.
    async fn while_doing<T>(what: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
        let (mut what, mut other) = (pin!(what), pin!(other));
        let mut going_on = true;
        poll_fn(|context| {
            if going_on && other.as_mut().poll(context).is_ready() {
                going_on = false;
            }
            match what.as_mut().poll(context) {
                Poll::Ready(done) => Poll::Ready(done),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}
