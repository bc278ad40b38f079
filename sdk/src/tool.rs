//! What stands behind [`#[tool]`](macro@crate::tool).

use serde::de::DeserializeOwned;

use crate::bindings::base::tenon::plugin::types::{Error, ToolDefinition, ToolResult};
pub use crate::content::IntoToolResult;
use crate::content::error_result;
use crate::schema::Parameter;
use crate::{Context, Failure};

/// A tool. The attribute implements it; by hand it serves tools whose schema is only known at run
/// time.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no tool",
    label = "no `#[tool]`",
    note = "write `#[tool]` above its function"
)]
pub trait Tool {
    /// The name by which the host calls it.
    const NAME: &'static str;

    /// How the host lists the tool.
    fn definition() -> ToolDefinition;

    /// Serves a call with arguments in JSON.
    fn call(
        arguments: String,
        context: Context,
    ) -> impl Future<Output = Result<ToolResult, Failure>>;
}

/// What a parameter of a tool may be.
#[doc(hidden)]
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not made from JSON",
    note = "write `#[derive(serde::Deserialize, schemars::JsonSchema)]` above it; Cargo.toml names \
            these crates under [dependencies]: `serde = {{ version = \"1.0\", features = \
            [\"derive\"] }}` and `schemars = \"1.2\"`",
    note = "types of `chrono`, `uuid` and `url` are arguments with the feature of that name of `tenon-sdk`"
)]
pub trait Argument {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + schemars::JsonSchema> Argument for T {}

/// Asks the compiler whether a parameter may be of this type.
#[doc(hidden)]
pub const fn check_argument<T: Argument>() {}

/// Reads the arguments of a tool by their schema.
#[doc(hidden)]
pub fn parse_checked<T: DeserializeOwned>(
    what: &str,
    text: &str,
    schema: fn() -> String,
) -> Result<T, Error> {
    crate::check::parse(what, text, schema)
}

/// Reads the arguments of a tool whose parameters have constant schemas: their types refuse what these do not allow.
#[doc(hidden)]
pub fn parse_known<T: DeserializeOwned>(
    what: &str,
    text: &str,
    parameters: &[Parameter],
) -> Result<T, Error> {
    serde_json::from_str(text)
        .map_err(|error| crate::check::constant_schema::explain(what, text, parameters, &error))
}

/// Serves a call, and shows the model a failure that it may be able to mend.
#[doc(hidden)]
pub async fn serve<T: Tool>(arguments: String, context: Context) -> Result<ToolResult, Error> {
    let served = context.until_cancelled(T::call(arguments, context.clone())).await;
    answered(served.ok_or_else(|| Error::cancelled("the caller gave up"))?)
}

/// What the caller gets of what the tool's function came to.
pub(crate) fn answered(outcome: Result<ToolResult, Failure>) -> Result<ToolResult, Error> {
    match outcome {
        Ok(result) => Ok(result),
        Err(Failure::Message(message)) => Ok(error_result(message)),
        Err(Failure::Error(error)) => Err(error),
    }
}
