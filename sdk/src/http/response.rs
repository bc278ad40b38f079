//! Responses, and what is made of their bodies.

use std::time::Duration;

use serde::de::DeserializeOwned;

use super::{Headers, MAX_BODY_BYTES, Method, Url, body, retry, shown};
use crate::imports::http::ResponseBody;
use crate::{Error, ErrorCode};

/// A response, whose body is still to be read. Dropped, it tells the host that the rest is not wanted.
pub struct Response {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    /// Where it comes from: after redirects, the last URL.
    pub url: Url,
    method: Method,
    most: usize,
    body: ResponseBody,
}

impl Response {
    pub(super) fn new(
        status: u16,
        headers: Headers,
        body: ResponseBody,
        method: Method,
        url: Url,
    ) -> Self {
        Self { status, headers, url, method, most: MAX_BODY_BYTES, body }
    }

    /// The same, of whose body so many bytes are read as a whole.
    pub(super) fn with_most(self, most: usize) -> Self {
        Self { most, ..self }
    }

    /// Whether the status says that the request succeeded.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// How long the server asks to wait before another attempt, if it does.
    pub fn retry_after(&self) -> Option<Duration> {
        retry::retry_after(&self.headers)
    }

    /// The response itself where its status is less than 400.
    ///
    /// # Errors
    ///
    /// For greater ones [`ErrorCode::NotFound`] (404 and 410), [`ErrorCode::Denied`] (401 and 403),
    /// [`ErrorCode::Unavailable`] (429, and 500 or more) or [`ErrorCode::Failed`], with the status as `status` in the
    /// data of the error.
    pub fn error_for_status(self) -> Result<Self, Error> {
        let code = match self.status {
            ..=399 => return Ok(self),
            404 | 410 => ErrorCode::NotFound,
            401 | 403 => ErrorCode::Denied,
            429 | 500.. => ErrorCode::Unavailable,
            _ => ErrorCode::Failed,
        };
        let message = format!("{} {} answered {}", self.method, shown(&self.url), self.status);
        let mut error = Error::new(code, message);
        // By hand: as a `Value`, it would bring what writes any JSON.
        error.data = Some(format!(r#"{{"status":{}}}"#, self.status));
        Err(match self.retry_after() {
            Some(time) => error.retry_after(time),
            None => error,
        })
    }

    /// The next piece of the body, which is not empty; `None` at the end.
    ///
    /// # Errors
    ///
    /// What broke the body off, as for [`send`](super::send).
    pub async fn chunk(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.body.chunk().await
    }

    /// The whole body.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where it is longer than the request allows, and what broke it off.
    pub async fn bytes(mut self) -> Result<Vec<u8>, Error> {
        match self.read(self.most).await? {
            (bytes, false) => Ok(bytes),
            (_, true) => {
                let (target, most) = (shown(&self.url), self.most);
                Err(Error::failed(format!("{target}: the answer is longer than {most} bytes")))
            }
        }
    }

    /// The whole body as text. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    ///
    /// As for [`bytes`](Self::bytes).
    pub async fn text(self) -> Result<String, Error> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
    }

    /// The whole body, which is JSON, as a value of any type.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where it is no `T`, and as for [`bytes`](Self::bytes).
    pub async fn json<T: DeserializeOwned>(self) -> Result<T, Error> {
        let target = shown(&self.url);
        let bytes = self.bytes().await?;
        serde_json::from_slice(&bytes)
            .map_err(|error| Error::failed(format!("{target}: the answer is unexpected: {error}")))
    }

    /// Reads up to `most` bytes of what is left of the body, and says whether there were more.
    ///
    /// # Errors
    ///
    /// What broke the body off, as for [`send`](super::send).
    pub async fn read(&mut self, most: usize) -> Result<(Vec<u8>, bool), Error> {
        body::read(&mut self.body, most).await
    }
}
