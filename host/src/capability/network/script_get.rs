//! A `GET` from beginning to end, for scripts.

use std::collections::BTreeMap;
use tenon_config::grant::NETWORK;
use tenon_types::Error;

use bytes::{Bytes, BytesMut};
use futures::future::{Either, select};
use http::header::{ACCEPT, HeaderValue, LOCATION, USER_AGENT};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt, Empty};
use url::Url;
use wasmtime_wasi_http::{Error as HttpError, RequestOptions, WasiBody};

use super::client::{Driver, Network, RefusalMessages, SendError, in_words};
use super::grants::everything_at;
use crate::capability::granted::GrantedCapabilities;

/// The most redirects that are followed.
const MAX_REDIRECTS: usize = 5;

/// The response to a `GET`.
pub(crate) struct GetResponse {
    pub(crate) status: u16,
    /// Several of one name are one, with commas between them.
    pub(crate) headers: BTreeMap<String, String>,
    /// What of it is not text is replaced.
    pub(crate) body: String,
}

/// Fetches what is at a URL, or where it redirects to. Each redirect is checked like any request.
pub(crate) async fn get(
    granted: &GrantedCapabilities,
    network: Option<&Network>,
    url: &str,
    most: usize,
) -> Result<GetResponse, Error> {
    let invalid = |url: &str| Error::invalid_input(format!("{url:?} is not an http or https URL"));
    let mut url = Url::parse(url).map_err(|_| invalid(url))?;
    if url.cannot_be_a_base() || !url.has_host() {
        return Err(invalid(url.as_str()));
    }
    let Some(network) = network else {
        let value = everything_at(&url);
        let tried = in_words(&Method::GET, &url);
        return Err(granted.denied(granted.not_granted(&tried, NETWORK, &value)));
    };
    for _ in 0..=MAX_REDIRECTS {
        let (response, driver) = send(granted, network, &url).await?;
        let Some(location) = redirect(&response) else {
            return read(response, driver, most).await;
        };
        url = url.join(&location).map_err(|_| invalid(&location))?;
        url.set_fragment(None);
    }
    Err(Error::failed(format!("there are more than {MAX_REDIRECTS} redirects")))
}

async fn send(
    granted: &GrantedCapabilities,
    network: &Network,
    url: &Url,
) -> Result<(Response<WasiBody>, Driver), Error> {
    let body = Empty::<Bytes>::new().map_err(HttpError::from).boxed_unsync();
    let agent = concat!("tenon/", env!("CARGO_PKG_VERSION"));
    let request = Request::get(url.as_str())
        .header(ACCEPT, HeaderValue::from_static("*/*"))
        .header(USER_AGENT, HeaderValue::from_static(agent))
        .body(body)
        .map_err(|error| Error::invalid_input(format!("{url}: {error}")))?;
    network.send(request, RequestOptions::default()).await.map_err(|unsent| match unsent {
        SendError::Refused(RefusalMessages { said, logged }) => {
            granted.denied_and_logged(said, &logged)
        }
        SendError::Failed(error) => failed(&error),
    })
}

/// Where a response redirects to.
fn redirect(response: &Response<WasiBody>) -> Option<String> {
    let redirects = matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = redirects.then(|| response.headers().get(LOCATION))??;
    location.to_str().ok().map(str::to_string)
}

async fn read(
    response: Response<WasiBody>,
    driver: Driver,
    most: usize,
) -> Result<GetResponse, Error> {
    let (parts, mut body) = response.into_parts();
    let too_long = || Error::failed(format!("the response is longer than {most} bytes"));
    let reading = async {
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|error| failed(&error))?.into_data() else { continue };
            if read.len() + data.len() > most {
                return Err(too_long());
            }
            read.extend_from_slice(&data);
        }
        // What replaces a byte that is no text is longer than that.
        let text = String::from_utf8_lossy(&read).into_owned();
        if text.len() <= most { Ok(text) } else { Err(too_long()) }
    };
    let body = match select(Box::pin(reading), driver).await {
        Either::Left((body, _)) => body?,
        Either::Right(((), reading)) => reading.await?,
    };
    Ok(GetResponse { status: parts.status.as_u16(), headers: texts(&parts.headers), body })
}

fn texts(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::<String, String>::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        { texts.entry(name.to_string()) }
            .and_modify(|text| text.extend([", ", &value]))
            .or_insert_with(|| value.to_string());
    }
    texts
}

fn failed(error: &HttpError) -> Error {
    match error {
        HttpError::ConnectionTimeout
        | HttpError::ConnectionReadTimeout
        | HttpError::HttpResponseTimeout => Error::timeout(error.to_string()),
        _ => Error::failed(error.to_string()),
    }
}
