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
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no provider of language models",
    label = "it does not implement `Provider`",
    note = "write `impl tenon_sdk::provider::Provider for {Self}`"
)]
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
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not answer piece by piece",
    label = "it does not implement `StreamingProvider`",
    note = "implement `tenon_sdk::provider::StreamingProvider`, or write `provider:` for \
            `streaming_provider:`"
)]
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
            sampling: SamplingOptions {
                max_tokens: None,
                temperature: None,
                top_p: None,
                stop_sequences: Vec::new(),
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

impl Completion {
    /// The texts of the answer, one after the other.
    pub fn plain_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}

/// What a model of a test answers: text, or a whole completion, alone or in a result.
#[cfg(not(target_arch = "wasm32"))]
#[doc(hidden)]
pub trait IntoTestCompletion {
    fn into_completion(self, model: &str) -> Result<Completion, Error>;
}

#[cfg(not(target_arch = "wasm32"))]
const _: () = {
    impl IntoTestCompletion for Completion {
        fn into_completion(self, _: &str) -> Result<Completion, Error> {
            Ok(self)
        }
    }

    impl IntoTestCompletion for String {
        fn into_completion(self, model: &str) -> Result<Completion, Error> {
            let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
            let summary = CompletionSummary {
                model: model.to_string(),
                stop_reason: StopReason::EndTurn,
                usage,
                extra: None,
            };
            Ok(Completion { parts: vec![Part::Text(self)], summary })
        }
    }

    impl IntoTestCompletion for &str {
        fn into_completion(self, model: &str) -> Result<Completion, Error> {
            self.to_string().into_completion(model)
        }
    }

    impl<T: IntoTestCompletion> IntoTestCompletion for Result<T, Failure> {
        fn into_completion(self, model: &str) -> Result<Completion, Error> {
            self?.into_completion(model)
        }
    }
};

/// Where a provider writes the pieces of an answer.
pub struct Deltas(Sink);

enum Sink {
    Host(StreamWriter<Delta>),
    #[cfg(not(target_arch = "wasm32"))]
    Test {
        read: std::rc::Rc<std::cell::RefCell<Vec<Delta>>>,
        most: usize,
    },
}

impl Deltas {
    /// Writes a piece, and waits until the reader took it.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Cancelled`](crate::ErrorCode::Cancelled) when nobody reads any more.
    pub async fn write(&mut self, delta: Delta) -> Result<(), Error> {
        let is_gone = match &mut self.0 {
            Sink::Host(writer) => writer.write_one(delta).await.is_some(),
            #[cfg(not(target_arch = "wasm32"))]
            Sink::Test { read, most } => {
                let mut read = read.borrow_mut();
                let is_gone = read.len() >= *most;
                if !is_gone {
                    read.push(delta);
                }
                is_gone
            }
        };
        match is_gone {
            false => Ok(()),
            true => Err(Error::cancelled("the reader is gone")),
        }
    }

    /// Deltas of which a test reads so many.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn kept(most: usize) -> (Self, std::rc::Rc<std::cell::RefCell<Vec<Delta>>>) {
        let read = std::rc::Rc::default();
        (Self(Sink::Test { read: std::rc::Rc::clone(&read), most }), read)
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
    let (end, ended) = wit_future::new(|| Err(Error::failed("the provider gave up")));
    wit_bindgen::spawn_local(async move {
        let summary = P::stream(request, context, Deltas(Sink::Host(writer))).await;
        // A host that no longer wants the summary has dropped its end.
        let _ = end.write(summary.map_err(Failure::into_error)).await;
    });
    Ok((reader, ended))
}
