//! Language models behind any endpoint that speaks the chat completions of OpenAI: OpenAI itself,
//! vLLM, llama.cpp, Ollama, LM Studio, and gateways such as OpenRouter.
//!
//! The way of a request: [`settings`] says where it goes, [`request`] writes it, `client` sends
//! it, [`sse`] takes a streamed answer apart, [`answer`] puts it together, [`error`] says what a
//! refusal means. All but the client work on text alone.

pub mod answer;
pub mod api_key;
mod client;
pub mod error;
pub mod model_list;
pub mod request;
pub mod settings;
pub use tenon_sdk::provider::{
    Completion, CompletionRequest, CompletionSummary, Deltas, ModelInfo, Provider,
    StreamingProvider,
};
use tenon_sdk::{Context, Failure, plugin};

use client::Client;
use settings::Settings;

plugin!(streaming_provider: OpenAi);

/// See the crate.
pub struct OpenAi;

impl Provider for OpenAi {
    const NAME: &'static str = "openai";
    const DESCRIPTION: &'static str =
        "Models behind an endpoint that speaks the chat completions of OpenAI";

    async fn models() -> Result<Vec<ModelInfo>, Failure> {
        let settings = Settings::read()?;
        if let Some(models) = settings.models() {
            return Ok(models);
        }
        Ok(Client::new(settings)?.models().await?)
    }

    async fn complete(request: CompletionRequest, context: Context) -> Result<Completion, Failure> {
        let settings = Settings::read()?;
        let body = request::write(&request, &settings, false)?;
        Ok(Client::new(settings)?.complete(&request, body, &context).await?)
    }
}

impl StreamingProvider for OpenAi {
    fn check(request: &CompletionRequest) -> Result<(), Failure> {
        request::write(request, &Settings::read()?, true)?;
        Ok(())
    }

    async fn stream(
        request: CompletionRequest,
        context: Context,
        mut deltas: Deltas,
    ) -> Result<CompletionSummary, Failure> {
        let settings = Settings::read()?;
        let body = request::write(&request, &settings, true)?;
        let client = Client::new(settings)?;
        Ok(client.stream(&request, body, &context, &mut deltas).await?)
    }
}
