//! What a language model is asked and what it answers.

use crate::{ContentBlock, Media};

/// A model that a provider offers.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// The name by which requests choose it, unique in the plugin.
    pub id: String,
    /// The provider it belongs to, as the registration named it.
    pub provider: String,
    /// The name that people see.
    pub title: Option<String>,
    /// The tokens it can take into account, input and output together.
    pub context_window: Option<u64>,
    /// The most tokens it writes in one answer.
    pub max_output_tokens: Option<u64>,
    /// What it can do.
    pub features: ModelFeatures,
}

/// What a model can do beyond answering text with text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelFeatures {
    /// It calls tools.
    pub tools: bool,
    /// It reads images.
    pub images: bool,
    /// It reads audio.
    pub audio: bool,
    /// It answers in the form of a given JSON Schema.
    pub response_schema: bool,
}

/// One request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionRequest {
    /// [`ModelInfo::id`]. An unknown one gets [`ErrorCode::NotFound`](crate::ErrorCode::NotFound).
    pub model: String,
    /// The conversation, oldest first; an empty one is bad input.
    pub messages: Vec<Message>,
    /// The tools that the model may ask for.
    pub tools: Vec<ModelTool>,
    /// Whether the model has to call one of them.
    pub tool_choice: ToolChoice,
    /// How the answer is drawn.
    pub sampling: SamplingOptions,
    /// A JSON Schema that the answer must match.
    pub response_schema: Option<String>,
    /// Settings of this provider that this crate does not name, as one JSON object.
    pub extra: Option<String>,
}

impl CompletionRequest {
    /// A request of one user message, without tools and with the provider's own settings.
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            messages: vec![Message::text(Role::User, prompt)],
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            sampling: SamplingOptions::default(),
            response_schema: None,
            extra: None,
        }
    }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The host's instructions.
    System,
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
    /// Results of the tools that the assistant asked for.
    Tool,
}

/// One turn of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
}

impl Message {
    /// A message in plain text.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())] }
    }
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// The model's reasoning. Providers that sign it need it back unchanged.
    Reasoning(Reasoning),
    /// The assistant asks for a tool.
    ToolCall(ToolCall),
    /// What the tool answered.
    ToolCallResult(ToolCallResult),
    /// A part of a kind that this crate does not name, as a JSON object in the provider's own
    /// form.
    Other(String),
}

/// Reasoning that a model shows.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasoning {
    /// The text.
    pub text: String,
    /// The provider's proof that the text is its own.
    pub signature: Option<String>,
}

/// The wish of a model to have a tool called.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCall {
    /// Unique in the conversation; the answer repeats it.
    pub id: String,
    /// The name that programs use.
    pub name: String,
    /// A JSON object, as the model wrote it: it may not match the schema.
    pub arguments: String,
}

/// The answer to a [`ToolCall`].
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallResult {
    /// The id of the call that this answers.
    pub id: String,
    /// What the tool said.
    pub content: Vec<ContentBlock>,
    /// Whether the tool could not do what was asked.
    pub is_error: bool,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTool {
    /// The name that programs use.
    pub name: String,
    /// What it is, for people and models.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: String,
}

/// Whether the model has to call a tool.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must not.
    None,
    /// It must, whichever.
    Required,
    /// It must call this one.
    Named(String),
}

/// How an answer is drawn; absent members mean the provider's defaults. A value outside of the
/// model's range is bad input.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SamplingOptions {
    /// The maximum number of tokens to generate.
    pub max_tokens: Option<u64>,
    /// How freely the answer is drawn; 0 takes the likeliest token.
    pub temperature: Option<f64>,
    /// The share of the likeliest tokens that are drawn from, from 0 to 1.
    pub top_p: Option<f64>,
    /// Texts at which the model stops, not included in the answer.
    pub stop_sequences: Vec<String>,
    /// Makes the answer repeatable where the provider can.
    pub seed: Option<u64>,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Completion {
    /// Text, reasoning and tool calls, in order.
    pub parts: Vec<Part>,
    /// How it ended.
    pub summary: CompletionSummary,
}

impl Completion {
    /// An answer of this model in plain text, which took no tokens that anybody counted.
    pub fn text(model: impl Into<String>, text: impl Into<String>) -> Self {
        let summary = CompletionSummary {
            model: model.into(),
            stop_reason: StopReason::EndTurn,
            usage: TokenUsage::default(),
            extra: None,
        };
        Self { parts: vec![Part::Text(text.into())], summary }
    }
}

/// How an answer ended and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletionSummary {
    /// The model that answered, where it is more exact than the one asked for.
    pub model: String,
    /// Why the model stopped.
    pub stop_reason: StopReason,
    /// The tokens it took.
    pub usage: TokenUsage,
    /// What else the provider reports, as one JSON object.
    pub extra: Option<String>,
}

/// Why a model stopped.
#[derive(Debug, Clone, PartialEq)]
pub enum StopReason {
    /// It was done.
    EndTurn,
    /// It reached [`SamplingOptions::max_tokens`] or its own limit.
    MaxTokens,
    /// It met one of [`SamplingOptions::stop_sequences`].
    StopSequence,
    /// It waits for the tools it asked for.
    ToolUse,
    /// The provider withheld the answer.
    Refusal,
    /// A reason of the provider's own.
    Other(String),
}

/// Tokens, as the provider counts them; zero where it does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// The tokens of the request.
    pub input: u64,
    /// The tokens of the answer.
    pub output: u64,
    /// How many of the input tokens came from a cache.
    pub cached_input: u64,
    /// How many of the output tokens were reasoning.
    pub reasoning: u64,
}

/// A piece of an answer in the making.
#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning.
    Reasoning(String),
    /// A tool call begins; its arguments follow in pieces.
    ToolCallStart(ToolCallStart),
    /// More of the arguments of the tool call with this index.
    ToolCallArguments(ToolCallArguments),
}

/// The beginning of a tool call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallStart {
    /// Counts the tool calls of this answer from zero.
    pub index: u32,
    /// The id of the call, which its result names.
    pub id: String,
    /// The name that programs use.
    pub name: String,
}

/// A piece of a tool call's arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolCallArguments {
    /// [`ToolCallStart::index`]
    pub index: u32,
    /// A fragment of JSON text; the fragments of an index, joined, are the arguments.
    pub fragment: String,
}
