//! The plugin's configuration, as the operator wrote it.

use serde::de::DeserializeOwned;

use crate::Error;
use crate::imports::config;

/// One value by its key; `None` where the operator set none.
///
/// # Errors
///
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where the value is not a `T`, naming the key.
pub fn get<T: DeserializeOwned>(key: &str) -> Result<Option<T>, Error> {
    let Some(text) = config::get(key) else { return Ok(None) };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::invalid_input(format!("configuration \"{key}\": {error}")))
}

/// All of the configuration, as a type of the plugin's own.
///
/// # Errors
///
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where it is not a `T`.
pub fn all<T: DeserializeOwned>() -> Result<T, Error> {
    crate::error::parse_arguments("configuration", &config::all())
}
