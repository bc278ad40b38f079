//! {{description}}.

use tenon_sdk::provider::{
    Completion, CompletionRequest, CompletionSummary, ModelFeatures, ModelInfo, Part, Provider,
    Role, StopReason, TokenUsage,
};
use tenon_sdk::{Context, Error, Result, plugin};

plugin!(provider: Parrot);

/// A provider with one model, `parrot`, which says what it was told last.
pub struct Parrot;

const MODEL: &str = "parrot";

impl Provider for Parrot {
    const NAME: &'static str = "{{name}}";
    const DESCRIPTION: &'static str = "Repeats what it is told";

    async fn models() -> Result<Vec<ModelInfo>> {
        Ok(vec![ModelInfo {
            id: MODEL.into(),
            provider: Self::NAME.into(),
            title: Some("Parrot".into()),
            context_window: None,
            max_output_tokens: None,
            features: ModelFeatures::empty(),
        }])
    }

    async fn complete(request: CompletionRequest, _: Context) -> Result<Completion> {
        if request.model != MODEL {
            return Err(Error::not_found(format!("there is no model \"{}\"", request.model)).into());
        }
        let told = last_words(&request)
            .ok_or_else(|| Error::invalid_input("the request has no user message"))?;
        let words = told.split_whitespace().count() as u64;
        Ok(Completion {
            parts: vec![Part::Text(told)],
            summary: CompletionSummary {
                model: request.model,
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage { input: words, output: words, cached_input: 0, reasoning: 0 },
                extra: None,
            },
        })
    }
}

/// What the user said last.
fn last_words(request: &CompletionRequest) -> Option<String> {
    let last = request.messages.iter().rfind(|message| message.role == Role::User)?;
    let texts = last.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.as_str()),
        _ => None,
    });
    Some(texts.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_sdk::ErrorCode;
    use tenon_sdk::testing::Host;

    #[test]
    fn a_parrot_repeats() {
        let request = CompletionRequest::new(MODEL, "Polly");
        let answer = Host::new().complete::<Parrot>(request).unwrap();
        assert_eq!(answer.plain_text(), "Polly");
    }

    #[test]
    fn other_models_do_not_exist() {
        let request = CompletionRequest::new("raven", "Nevermore");
        let error = Host::new().complete::<Parrot>(request).unwrap_err();
        assert_eq!(error.code, ErrorCode::NotFound);
    }
}
