use tenon_sdk::plugin;
use tenon_sdk::provider::{Completion, CompletionRequest, ModelInfo, Provider};
use tenon_sdk::{Context, Result};

plugin!(streaming_provider: Whole);

struct Whole;

impl Provider for Whole {
    const NAME: &'static str = "whole";
    const DESCRIPTION: &'static str = "Answers in one piece";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(Vec::new())
    }

    async fn complete(_: CompletionRequest, _: Context) -> Result<Completion> {
        unreachable!()
    }
}

fn main() {}
