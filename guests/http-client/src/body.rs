//! The body of an answer.

use tenon_sdk::Error;
use wasip3::http::types::{ErrorCode, Response, Trailers};
use wasip3::wit_bindgen::{FutureReader, FutureWriter, StreamReader, StreamResult};
use wasip3::wit_future;

use crate::error::explain;

/// The most bytes to ask the host for at once.
const PIECE: usize = 16 * 1024;

/// A body that is read piece by piece. Dropped, it tells the host that the rest is not wanted.
pub struct Body {
    stream: StreamReader<u8>,
    /// Says how the stream ended; read once.
    end: Option<FutureReader<Result<Option<Trailers>, ErrorCode>>>,
    /// Says how the reading went when it is dropped: well.
    _read: FutureWriter<Result<(), ErrorCode>>,
    target: String,
}

impl Body {
    pub(crate) fn new(response: Response, target: String) -> Self {
        let (read, read_end) = wit_future::new(|| Ok(()));
        let (stream, end) = Response::consume_body(response, read_end);
        Self { stream, end: Some(end), _read: read, target }
    }

    /// The next piece, which is not empty; `None` at the end.
    ///
    /// # Errors
    ///
    /// What broke the body off, as for [`send`](crate::send).
    pub async fn piece(&mut self) -> Result<Option<Vec<u8>>, Error> {
        while self.end.is_some() {
            let (result, piece) = self.stream.read(Vec::with_capacity(PIECE)).await;
            if !matches!(result, StreamResult::Complete(_))
                && let Some(end) = self.end.take()
                && let Err(code) = end.await
            {
                return Err(explain(&code, &self.target));
            }
            if !piece.is_empty() {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }

    /// Reads up to `most` bytes, and says whether there were more.
    ///
    /// # Errors
    ///
    /// What broke the body off, as for [`send`](crate::send).
    pub async fn read(mut self, most: usize) -> Result<(Vec<u8>, bool), Error> {
        let mut bytes = Vec::new();
        while let Some(piece) = self.piece().await? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                bytes.truncate(most);
                return Ok((bytes, true));
            }
        }
        Ok((bytes, false))
    }
}
