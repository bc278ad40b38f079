//! HTTP requests. The manifest names what they may reach: `network = ["https://api.example.com/*"]`.
//!
//! ```no_run
//! use tenon_sdk::{Result, http, plugin, tool};
//!
//! #[derive(serde::Deserialize)]
//! struct Weather {
//!     degrees: f64,
//! }
//!
//! /// Says how warm it is.
//! #[tool]
//! async fn temperature(city: String) -> Result<String> {
//!     let weather: Weather = http::get("https://api.example.com/weather")
//!         .query("city", city)
//!         .send()
//!         .await?
//!         .error_for_status()?
//!         .json()
//!         .await?;
//!     Ok(format!("{} °C", weather.degrees))
//! }
//!
//! plugin!(tools: [temperature]);
//! # fn main() {}
//! ```
//!
//! Other calls of the instance go on while a request waits. Several requests of one call run at once when their futures
//! are awaited together, as with `futures::join!`.
//!
//! The host checks every request, and each redirect is a request. An error names the target without its query, which
//! may hold secrets. In a test, [`Host::http`](crate::testing::Host::http) answers requests.

mod body;
#[cfg(target_arch = "wasm32")]
pub(crate) mod component;
#[cfg(any(target_arch = "wasm32", test))]
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod method;
mod redirect;
mod request;
mod response;
mod retry;
pub mod sse;
mod target;

use crate::Error;

pub use headers::Headers;
pub use method::Method;
pub use request::{Request, RequestBuilder};
pub use response::Response;
pub use target::{parse, shown};
pub use url::Url;

/// The most bytes of a body that are read as a whole, where the request says nothing.
pub const MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A request to get what is at a URL.
pub fn get(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Get, url)
}

/// A request for the headers of what is at a URL.
pub fn head(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Head, url)
}

/// A request that sends something to a URL.
pub fn post(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Post, url)
}

/// A request to replace what is at a URL.
pub fn put(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Put, url)
}

/// A request to change a part of what is at a URL.
pub fn patch(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Patch, url)
}

/// A request to delete what is at a URL.
pub fn delete(url: impl AsRef<str>) -> RequestBuilder {
    request(Method::Delete, url)
}

/// A request with any method. A URL that is not valid is an error of [`RequestBuilder::send`].
pub fn request(method: Method, url: impl AsRef<str>) -> RequestBuilder {
    RequestBuilder::new(method, url.as_ref())
}

/// Sends a request once, as it is, and waits for the beginning of the response. It follows no redirect and repeats
/// nothing: [`RequestBuilder::send`] does.
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) where the host refuses the request,
/// [`ErrorCode::Timeout`](crate::ErrorCode::Timeout) where nobody answers in time,
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) for a request that cannot be sent, and mostly
/// [`ErrorCode::Unavailable`](crate::ErrorCode::Unavailable) for anything else.
pub async fn send(request: Request) -> Result<Response, Error> {
    let (method, url) = (request.method.clone(), request.url.clone());
    let (status, headers, body) = crate::imports::http::send(request).await?;
    Ok(Response::new(status, headers, body, method, url))
}
