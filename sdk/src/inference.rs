//! Language models of the host. The manifest names them under `providers`.

use crate::Error;
pub use crate::bindings::base::tenon::plugin::model::{Completion, CompletionRequest};
use crate::imports::inference;

/// Has a model complete a request.
///
/// ```no_run
/// use tenon_sdk::inference::{CompletionRequest, complete};
/// # async fn example() -> tenon_sdk::Result<String> {
/// let answer = complete(CompletionRequest::new("a-model", "Name a colour.")).await?;
/// Ok(answer.plain_text())
/// # }
/// ```
///
/// # Errors
///
/// [`ErrorCode::Denied`](crate::ErrorCode::Denied) for a model that is not granted, and those of the provider.
pub async fn complete(request: CompletionRequest) -> Result<Completion, Error> {
    inference::complete(request).await
}
