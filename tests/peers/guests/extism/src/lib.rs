//! Echoes: the plugin of Extism, as the README of its kit writes plugins that take JSON.

use extism_pdk::{FnResult, Json, plugin_fn};
use serde::Deserialize;

/// What the host passes.
#[derive(Deserialize)]
pub struct Arguments {
    text: String,
}

/// Answers with the `text` of its arguments.
#[plugin_fn]
pub fn echo(Json(Arguments { text }): Json<Arguments>) -> FnResult<String> {
    Ok(text)
}
