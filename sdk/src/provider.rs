//! Language-model providers.

use crate::bindings::base::tenon::plugin::types::Error;
use crate::bindings::provider_stream::{wit_future, wit_stream};
use crate::{Context, Failure};
use wit_bindgen::{FutureReader, StreamReader, StreamWriter};

pub use crate::bindings::base::tenon::plugin::model::*;
pub use crate::bindings::base::tenon::plugin::types::{
    Content, ResourceBody, ResourceContents, ResourceLink,
};

/// A provider of language models. Name it in [`plugin!`](crate::plugin) as `provider: MyProvider`.
pub trait Provider {
    /// The name under which the plugin lists it.
    const NAME: &'static str;
    /// What it is, in a sentence.
    const DESCRIPTION: &'static str;

    /// The models there are now.
    fn models() -> impl Future<Output = Result<Vec<ModelInfo>, Failure>>;

    /// Answers in one piece.
    fn complete(
        request: CompletionRequest,
        context: Context,
    ) -> impl Future<Output = Result<Completion, Failure>>;
}

/// A provider that can also answer piece by piece. Name it in [`plugin!`](crate::plugin) as
/// `streaming_provider: MyProvider`.
pub trait StreamingProvider: Provider + 'static {
    /// Checks a request before anything is written, so that bad input is an error of the call and
    /// not of the stream.
    fn check(request: &CompletionRequest) -> Result<(), Failure>;

    /// Writes the answer to `deltas` and says how it ended.
    fn stream(
        request: CompletionRequest,
        context: Context,
        deltas: Deltas,
    ) -> impl Future<Output = Result<CompletionSummary, Failure>>;
}

impl CompletionRequest {
    /// A request of one user message, without tools and with the provider's own settings.
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            messages: vec![Message::text(Role::User, prompt)],
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            limits: Sampling {
                max_tokens: None,
                temperature: None,
                top_p: None,
                stop: Vec::new(),
                seed: None,
            },
            response_schema: None,
            extra: None,
        }
    }
}

impl Message {
    /// A message in plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())] }
    }
}

/// Where a provider writes the pieces of an answer.
pub struct Deltas(StreamWriter<Delta>);

impl Deltas {
    /// Writes a piece, and waits until the reader took it.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`] when nobody reads any more.
    pub async fn write(&mut self, delta: Delta) -> Result<(), Error> {
        match self.0.write_one(delta).await {
            None => Ok(()),
            Some(_) => Err(Error::Cancelled("the reader is gone".into())),
        }
    }
}

/// A stream of deltas, and what comes after it.
#[doc(hidden)]
pub type Answer = (StreamReader<Delta>, FutureReader<Result<CompletionSummary, Error>>);

/// Starts a streamed answer; the writing goes on after this has returned.
#[doc(hidden)]
pub fn serve<P: StreamingProvider>(
    request: CompletionRequest,
    context: Context,
) -> Result<Answer, Error> {
    P::check(&request).map_err(Failure::into_error)?;
    let (writer, reader) = wit_stream::new();
    let (end, ended) = wit_future::new(|| Err(Error::Failed("the provider gave up".into())));
    wit_bindgen::spawn_local(async move {
        let summary = P::stream(request, context, Deltas(writer)).await;
        // A host that no longer wants the summary has dropped its end.
        let _ = end.write(summary.map_err(Failure::into_error)).await;
    });
    Ok((reader, ended))
}
