//! JSON Schemas of `plugin.toml` and `tenon.toml`, for editors and for the reference.
//!
//! Their files are written by hand, because half of what they say is nowhere in the types that parse: sentences for
//! authors, defaults that are applied later, patterns that other crates check. Tests hold them against the parsers, in
//! both directions.

/// The schema of `plugin.toml`, JSON Schema draft 2020-12.
pub const PLUGIN: &str = include_str!("../schemas/plugin.schema.json");

/// The schema of `tenon.toml` and of a user's `config.toml`.
pub const PROJECT: &str = include_str!("../schemas/tenon.schema.json");

#[cfg(test)]
mod keys;
#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;
