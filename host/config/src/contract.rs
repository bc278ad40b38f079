//! The contract between the host and its plugins: the WIT package `tenon:plugin`.

/// The version of the package that this host speaks.
pub const PACKAGE_VERSION: &str = "0.2.0";
