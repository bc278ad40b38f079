//! Reads the body of a response within bounds.

use crate::Error;
use crate::imports::http::ResponseBody;

/// Reads up to `most` bytes, and says whether there were more.
pub(super) async fn read(body: &mut ResponseBody, most: usize) -> Result<(Vec<u8>, bool), Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.chunk().await? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > most {
            bytes.truncate(most);
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}
