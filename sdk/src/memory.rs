//! What the host remembers. The manifest asks for it with `memory = ["search"]`.

use crate::Error;
pub use crate::bindings::base::tenon::plugin::memory::MemoryEntry;
use crate::imports::memory;

/// Searches the host's memory, best match first. The host may find fewer than `limit`.
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) where it is not granted.
pub async fn search(query: impl Into<String>, limit: u32) -> Result<Vec<MemoryEntry>, Error> {
    memory::search_memory(query.into(), limit).await
}
