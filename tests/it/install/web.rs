//! A server of a test: it has pages, as of a web site or a registry, and keeps what it is asked.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tenon_config::files::Digest;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

/// What is at a path.
#[derive(Clone, Default)]
pub(super) struct Page {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

pub(super) type Pages = Arc<Mutex<HashMap<String, Page>>>;

/// Methods and paths, and who says to be who.
pub(super) type RequestLog = Arc<Mutex<Vec<(String, Option<String>)>>>;

/// A server that ends with this: it has pages, and keeps what it is asked.
pub(super) struct Web {
    pub(super) address: SocketAddr,
    pub(super) pages: Pages,
    pub(super) heard: RequestLog,
    task: JoinHandle<()>,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Web {
    pub(super) async fn start() -> Self {
        Self::start_over(None).await
    }

    /// Over TLS where it has something to prove itself with.
    pub(super) async fn start_over(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let pages: Pages = Arc::default();
        let heard: RequestLog = Arc::default();
        let (there, hears) = (pages.clone(), heard.clone());
        let task = tokio::spawn(async move {
            // They end with the server.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (pages, heard, tls) = (there.clone(), hears.clone(), tls.clone());
                connections.spawn(async move {
                    match tls {
                        None => serve(stream, pages, heard).await,
                        Some(tls) => {
                            // Who does not believe it goes away.
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, pages, heard).await;
                            }
                        }
                    }
                });
            }
        });
        Self { address, pages, heard, task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn oci(&self, rest: &str) -> String {
        format!("oci://{}/{rest}", self.address)
    }

    pub(super) fn put(
        &self,
        path: &str,
        status: u16,
        headers: &[(&'static str, &str)],
        body: impl Into<Vec<u8>>,
    ) {
        let headers = headers.iter().map(|(name, value)| (*name, value.to_string())).collect();
        let page = Page { status, headers, body: body.into() };
        self.pages.lock().unwrap().insert(path.into(), page);
    }

    /// The methods and paths since the last time.
    pub(super) fn heard(&self) -> Vec<String> {
        std::mem::take(&mut *self.heard.lock().unwrap()).into_iter().map(|(line, _)| line).collect()
    }

    /// Puts a component there as a registry has it, and gives the digests of manifest and layer.
    pub(super) fn push(
        &self,
        repository: &str,
        tag: &str,
        component: &[u8],
        annotations: &Value,
    ) -> (Digest, Digest) {
        let layer = Digest::of(component);
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": { "mediaType": "application/vnd.wasm.config.v0+json", "digest": Digest::of("{}").named(), "size": 2 },
            "layers": [{ "mediaType": "application/wasm", "digest": layer.named(), "size": component.len() }],
            "annotations": annotations,
        });
        let manifest = manifest.to_string();
        let digest = Digest::of(&manifest);
        self.put(&format!("/v2/{repository}/blobs/{}", layer.named()), 200, &[], component);
        for name in [tag, &digest.named()] {
            self.put(&format!("/v2/{repository}/manifests/{name}"), 200, &[], manifest.clone());
        }
        (digest, layer)
    }
}

async fn serve(stream: impl AsyncRead + AsyncWrite + Unpin, pages: Pages, heard: RequestLog) {
    let service = service_fn(move |request| answer(request, pages.clone(), heard.clone()));
    let connection = hyper::server::conn::http1::Builder::new();
    let _ = connection.serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(
    request: Request<Incoming>,
    pages: Pages,
    heard: RequestLog,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().to_string();
    let authorization = request.headers().get("authorization");
    let authorization = authorization.map(|value| value.to_str().unwrap().to_string());
    heard.lock().unwrap().push((format!("{} {path}", request.method()), authorization.clone()));
    let _ = request.into_body().collect().await;
    // A page may be for those who say who they are.
    let known = authorization.map(|authorization| format!("{path} {authorization}"));
    let pages = pages.lock().unwrap();
    let page = known.and_then(|known| pages.get(&known)).or_else(|| pages.get(&path));
    let page = page.cloned().unwrap_or(Page { status: 404, ..Page::default() });
    let mut response = Response::builder().status(page.status);
    for (name, value) in page.headers {
        response = response.header(name, value);
    }
    Ok(response.body(Full::from(page.body)).unwrap())
}
