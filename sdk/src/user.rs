//! Questions to the user. The manifest asks for them with `user = ["ask"]`, and for pages with `"ask-url"`.
//!
//! ```no_run
//! use tenon_sdk::user::{self, Answer};
//! use tenon_sdk::{Result, tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Trip {
//!     /// Where to.
//!     city: String,
//!     nights: u8,
//! }
//!
//! /// Books a trip.
//! #[tool]
//! async fn book() -> Result<String> {
//!     Ok(match user::ask::<Trip>("Where do you want to go?").await? {
//!         Answer::Accepted(Trip { city, nights }) => format!("{nights} nights in {city}"),
//!         Answer::Declined | Answer::Cancelled => "nothing is booked".to_string(),
//!     })
//! }
//! # fn main() {}
//! ```

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use crate::bindings::base::tenon::plugin::user::{
    FormAnswer, FormRequest, UrlAnswer, UrlRequest,
};
use crate::imports::user;
use crate::{Error, Result};

/// What the user made of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<T> {
    /// What was filled in.
    Accepted(T),
    /// The user does not want to answer.
    Declined,
    /// The user went away, or the host could not ask.
    Cancelled,
}

/// Has the user fill in a form, whose members are those of a struct: texts, numbers, truth values and choices.
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) where it is not granted or there is no user,
/// [`ErrorCode::InvalidInput`](crate::ErrorCode::InvalidInput) where the members are no form or one asks for a secret,
/// [`ErrorCode::Failed`](crate::ErrorCode::Failed) where the answer is not of the type.
pub async fn ask<T: DeserializeOwned + JsonSchema>(message: &str) -> Result<Answer<T>, Error> {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<T>();
    Ok(match ask_form(message, &schema.to_value()).await? {
        Answer::Accepted(content) => {
            Answer::Accepted(serde_json::from_value(content).map_err(|error| {
                Error::failed(format!("the answer of the user is not what was asked: {error}"))
            })?)
        }
        Answer::Declined => Answer::Declined,
        Answer::Cancelled => Answer::Cancelled,
    })
}

/// The same with a form by its JSON Schema, which is that of an object.
///
/// # Errors
///
/// As for [`ask`].
pub async fn ask_form(message: &str, schema: &Value) -> Result<Answer<Value>, Error> {
    let form =
        FormRequest { message: message.to_string(), schema: schema.to_string(), extra: None };
    Ok(match user::ask(form).await? {
        FormAnswer::Accepted(content) => Answer::Accepted(
            serde_json::from_str(&content)
                .map_err(|error| Error::failed(format!("the answer is no JSON: {error}")))?,
        ),
        FormAnswer::Declined => Answer::Declined,
        FormAnswer::Cancelled => Answer::Cancelled,
    })
}

/// Asks the user to open a page: where a secret is typed in, or something is paid for. That it was opened does not mean
/// that anything was done there.
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) where it is not granted or there is no user.
pub async fn ask_url(message: &str, url: &str) -> Result<UrlAnswer, Error> {
    let (message, url) = (message.to_string(), url.to_string());
    user::ask_url(UrlRequest { message, url, id: None, extra: None }).await
}
