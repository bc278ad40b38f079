//! host
pub mod bindings;
pub mod capability;
mod child;
pub mod limits;
pub mod runtime;
