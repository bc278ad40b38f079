//! Calls as a host makes them: through JSON.

use serde_json::Value;

use super::Host;
use crate::bindings::hooks::exports::tenon::plugin::hooks as wit;
use crate::eval::{Eval, Evaluation};
use crate::hook::{Hook, Outcome};
use crate::provider::{
    Completion, CompletionRequest, CompletionSummary, Delta, Deltas, ModelInfo, Provider,
    StreamingProvider,
};
use crate::tool::{Tool, serve};
use crate::{Error, Failure, Result, ToolResult};

/// An answer that came piece by piece.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamedAnswer {
    /// The pieces.
    pub deltas: Vec<Delta>,
    /// How it ended.
    pub end: Result<CompletionSummary, Error>,
}

impl Host {
    /// Calls a tool with arguments: an object.
    ///
    /// # Errors
    ///
    /// Those that a caller gets. What the model may mend is no error, but a result with
    /// [`is_error`](ToolResult::is_error).
    pub fn call_tool<T: Tool>(&self, arguments: Value) -> Result<ToolResult, Error> {
        let result = self.run(serve::<T>(arguments.to_string(), self.context()))?;
        json("the structured content", result.structured.as_deref().unwrap_or("null"))?;
        Ok(result)
    }

    /// Has a handler handle an event: the name of a point, such as `before-plan`, and its context, an object.
    ///
    /// # Errors
    ///
    /// Those of the handler, and [`ErrorCode::NotFound`](crate::ErrorCode::NotFound) for a point that it does not subscribe to.
    pub fn handle<H: Hook>(&self, point: &str, context: Value) -> Result<Outcome, Error> {
        if !H::POINTS.contains(&point) {
            let known = H::POINTS.join(", ");
            let words = format!("the handler does not subscribe to {point}, but to {known}");
            return Err(Error::not_found(words));
        }
        let context = context.to_string();
        let outcome = self.run(H::handle(point, &context, self.context()));
        Ok(match outcome.map_err(Failure::into_error)? {
            wit::HookOutcome::Continue => Outcome::Continue,
            wit::HookOutcome::Replace(context) => Outcome::Replace(json("the context", &context)?),
            wit::HookOutcome::Veto(reason) => Outcome::Veto(reason),
        })
    }

    /// Has a strategy judge a subject; the options are an object.
    ///
    /// # Errors
    ///
    /// Those of the strategy, and [`ErrorCode::Failed`](crate::ErrorCode::Failed) for a score that is not from 0 to 1.
    pub fn evaluate<E: Eval>(&self, subject: Value, options: Value) -> Result<Evaluation, Error> {
        let (subject, options) = (subject.to_string(), options.to_string());
        let evaluation = self
            .run(E::evaluate(&subject, &options, self.context()))
            .map_err(Failure::into_error)?;
        let scores = evaluation.findings.iter().filter_map(|finding| finding.score);
        for score in scores.chain([evaluation.score]) {
            if !(0.0..=1.0).contains(&score) {
                return Err(Error::failed(format!("the score {score} is not from 0 to 1")));
            }
        }
        Ok(evaluation)
    }

    /// The models of a provider.
    ///
    /// # Errors
    ///
    /// Those of the provider.
    pub fn models<P: Provider>(&self) -> Result<Vec<ModelInfo>, Error> {
        self.run(P::models()).map_err(Failure::into_error)
    }

    /// Has a provider answer in one piece.
    ///
    /// # Errors
    ///
    /// Those of the provider.
    pub fn complete<P: Provider>(&self, request: CompletionRequest) -> Result<Completion, Error> {
        self.run(P::complete(request, self.context())).map_err(Failure::into_error)
    }

    /// Has a provider answer piece by piece.
    ///
    /// # Errors
    ///
    /// Those of the provider before it has written anything; those after are the
    /// [end](StreamedAnswer::end).
    pub fn stream<P: StreamingProvider>(
        &self,
        request: CompletionRequest,
    ) -> Result<StreamedAnswer, Error> {
        self.stream_at_most::<P>(request, usize::MAX)
    }

    /// The same, with a reader that is gone after this many pieces.
    ///
    /// # Errors
    ///
    /// Those of [`Self::stream`].
    pub fn stream_at_most<P: StreamingProvider>(
        &self,
        request: CompletionRequest,
        pieces: usize,
    ) -> Result<StreamedAnswer, Error> {
        P::check(&request).map_err(Failure::into_error)?;
        let (deltas, read) = Deltas::kept(pieces);
        let end = self.run(P::stream(request, self.context(), deltas));
        Ok(StreamedAnswer { deltas: read.take(), end: end.map_err(Failure::into_error) })
    }
}

/// What a plugin says is JSON, and often made by hand.
fn json(what: &str, text: &str) -> Result<Value, Error> {
    serde_json::from_str(text)
        .map_err(|error| Error::failed(format!("{what} of the plugin is no JSON: {error}")))
}
