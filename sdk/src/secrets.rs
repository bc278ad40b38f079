//! Secrets that the user keeps for the plugin. The manifest names them under `secrets`.

use crate::Error;
use crate::imports::secrets;

/// The value of a secret by its name.
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) for one that is not granted, [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) for one that nobody has set.
pub fn get(name: &str) -> Result<String, Error> {
    secrets::get(name)
}
