//! The members that the host puts into the `_meta` of what it passes on. Plugins cannot: whatever they put under
//! `tenon/` is dropped.

pub use crate::invoke::stored_results::STRUCTURED;
pub use crate::invoke::{OUTPUT_MISMATCH, REFUSED, TRUNCATED, USAGE};
