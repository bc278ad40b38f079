//! A language-model provider without a model: it answers with the last user message, word by word.
//! What it says and what it counts depend on the request alone.

use tenon_sdk::provider::{
    Completion, CompletionRequest, CompletionSummary, Delta, Deltas, ModelFeatures, ModelInfo,
    Part, Provider, Role, StopReason, StreamingProvider, TokenUsage, ToolCall, ToolCallArguments,
    ToolCallStart, ToolChoice,
};
use tenon_sdk::{Context, Error, Failure, plugin};

plugin!(streaming_provider: Echo);

/// See the crate.
pub struct Echo;

/// Answers with the last message.
const ECHO: &str = "echo";
/// Answers with the words of the last message in reverse order.
const REVERSE: &str = "echo-reverse";

/// An answer, before it is cut into pieces.
struct Answer {
    /// Each with the space in front of it.
    words: Vec<String>,
    call: Option<ToolCall>,
    stop: StopReason,
    usage: TokenUsage,
}

fn answer(request: &CompletionRequest) -> Result<Answer, Failure> {
    let reversed = match request.model.as_str() {
        ECHO => false,
        REVERSE => true,
        other => return Err(Error::not_found(format!("no model \"{other}\"")).into()),
    };
    let prompt = request
        .messages
        .iter()
        .rev()
        .find(|message| message.role == Role::User)
        .ok_or_else(|| Error::invalid_input("the request has no user message"))?;
    let text: Vec<&str> = prompt
        .parts
        .iter()
        .filter_map(|part| if let Part::Text(text) = part { Some(text.as_str()) } else { None })
        .collect();
    let text = text.join(" ");
    let mut words: Vec<&str> = text.split_whitespace().collect();
    if reversed {
        words.reverse();
    }

    let limit = request.sampling.max_tokens.map_or(usize::MAX, |limit| limit as usize);
    let mut stop = StopReason::EndTurn;
    if let Some(end) =
        words.iter().position(|word| request.sampling.stop_sequences.iter().any(|s| s == word))
    {
        words.truncate(end);
        stop = StopReason::StopSequence;
    }
    if words.len() > limit {
        words.truncate(limit);
        stop = StopReason::MaxTokens;
    }

    // Asked to use a tool, it calls the named one, or else the first, with what it was told.
    let tool = match &request.tool_choice {
        ToolChoice::Named(name) => Some(name.clone()),
        ToolChoice::Required => request.tools.first().map(|tool| tool.name.clone()),
        ToolChoice::Auto | ToolChoice::None => None,
    };
    let call = tool.map(|name| {
        stop = StopReason::ToolUse;
        let arguments = tenon_sdk::json!({ "text": words.join(" ") }).to_string();
        ToolCall { id: "call-0".into(), name, arguments }
    });

    let input = request
        .messages
        .iter()
        .flat_map(|message| &message.parts)
        .map(|part| if let Part::Text(text) = part { text.split_whitespace().count() } else { 1 })
        .sum::<usize>() as u64;
    let output = words.len() as u64;
    let words = words
        .iter()
        .enumerate()
        .map(|(i, word)| if i == 0 { word.to_string() } else { format!(" {word}") })
        .collect();
    let usage = TokenUsage { input, output, cached_input: 0, reasoning: 0 };
    Ok(Answer { words, call, stop, usage })
}

fn summary(request: &CompletionRequest, answer: &Answer) -> CompletionSummary {
    CompletionSummary {
        model: request.model.clone(),
        stop_reason: answer.stop.clone(),
        usage: answer.usage,
        extra: None,
    }
}

impl Provider for Echo {
    const NAME: &'static str = "echo";
    const DESCRIPTION: &'static str = "Answers with what it was told";

    async fn models() -> Result<Vec<ModelInfo>, Failure> {
        let model = |id: &str, title: &str| ModelInfo {
            id: id.into(),
            provider: Self::NAME.into(),
            title: Some(title.into()),
            context_window: None,
            max_output_tokens: None,
            features: ModelFeatures::TOOLS,
        };
        Ok(vec![model(ECHO, "Echo"), model(REVERSE, "Echo, backwards")])
    }

    async fn complete(request: CompletionRequest, _: Context) -> Result<Completion, Failure> {
        let answer = answer(&request)?;
        let summary = summary(&request, &answer);
        let parts = match answer.call {
            Some(call) => vec![Part::ToolCall(call)],
            None => vec![Part::Text(answer.words.concat())],
        };
        Ok(Completion { parts, summary })
    }
}

impl StreamingProvider for Echo {
    fn check(request: &CompletionRequest) -> Result<(), Failure> {
        answer(request).map(drop)
    }

    async fn stream(
        request: CompletionRequest,
        _: Context,
        mut deltas: Deltas,
    ) -> Result<CompletionSummary, Failure> {
        let answer = answer(&request)?;
        match &answer.call {
            Some(call) => {
                let start =
                    ToolCallStart { index: 0, id: call.id.clone(), name: call.name.clone() };
                deltas.write(Delta::ToolCallStart(start)).await?;
                let fragment = call.arguments.clone();
                deltas
                    .write(Delta::ToolCallArguments(ToolCallArguments { index: 0, fragment }))
                    .await?;
            }
            None => {
                for word in &answer.words {
                    deltas.write(Delta::Text(word.clone())).await?;
                }
            }
        }
        Ok(summary(&request, &answer))
    }
}
