//! An answer of chat completions as one of the contract: whole, or put together from its chunks.
//!
//! Servers differ in what they leave out and where they put things, so that everything is optional
//! and a member of the wrong type is as good as missing.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tenon_sdk::Error;
use tenon_sdk::provider::{
    Completion, CompletionRequest, CompletionSummary, Delta, Part, Reasoning, StopReason,
    TokenUsage, ToolCall, ToolCallArguments, ToolCallStart,
};

use crate::error::Endpoint;

/// The longest answer to take.
pub const MOST_ANSWER: usize = 16 * 1024 * 1024;
/// The most tool calls to take.
const MOST_CALLS: usize = 1024;

/// A whole answer or a chunk of one.
#[derive(Deserialize, Default)]
#[serde(default)]
struct AnswerOrChunk {
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    model: Option<String>,
    #[serde(deserialize_with = "lenient")]
    choices: Option<Vec<Choice>>,
    #[serde(deserialize_with = "lenient")]
    usage: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    x_groq: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    system_fingerprint: Option<String>,
    #[serde(deserialize_with = "lenient")]
    service_tier: Option<String>,
    #[serde(deserialize_with = "lenient")]
    error: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Choice {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    /// Of a whole answer.
    #[serde(deserialize_with = "lenient")]
    message: Option<Said>,
    /// Of a chunk.
    #[serde(deserialize_with = "lenient")]
    delta: Option<Said>,
    #[serde(deserialize_with = "lenient")]
    finish_reason: Option<String>,
    /// vLLM tells here which of the stop texts it met.
    #[serde(deserialize_with = "lenient")]
    stop_reason: Option<String>,
    /// OpenRouter tells here what went wrong in the middle.
    #[serde(deserialize_with = "lenient")]
    error: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Said {
    #[serde(deserialize_with = "lenient")]
    content: Option<Value>,
    /// DeepSeek, llama.cpp and older vLLM.
    #[serde(deserialize_with = "lenient")]
    reasoning_content: Option<String>,
    /// OpenRouter, Ollama, Groq and newer vLLM.
    #[serde(deserialize_with = "lenient")]
    reasoning: Option<String>,
    #[serde(deserialize_with = "lenient")]
    refusal: Option<String>,
    #[serde(deserialize_with = "lenient")]
    tool_calls: Option<Vec<ToolCallChunk>>,
}

/// A tool call or a piece of one.
#[derive(Deserialize, Default)]
#[serde(default)]
struct ToolCallChunk {
    #[serde(deserialize_with = "lenient")]
    index: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    id: Option<String>,
    #[serde(deserialize_with = "lenient")]
    function: Option<Function>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Function {
    #[serde(deserialize_with = "lenient")]
    name: Option<String>,
    #[serde(deserialize_with = "lenient")]
    arguments: Option<Value>,
}

/// Reads a member of the wrong type as if it was missing.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    input: D,
) -> Result<Option<T>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(input)?).ok())
}

/// A tool call in the making.
#[derive(Default)]
struct PartialToolCall {
    /// The index by which the server speaks of it.
    key: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Its start was passed on.
    started: bool,
    /// How much of the arguments was passed on.
    passed: usize,
}

/// Puts an answer together.
pub struct Assembler {
    endpoint: Endpoint,
    model: String,
    stops: Vec<String>,
    /// Makes ids of tool calls where the server gives none.
    call_id: String,
    reasoning: String,
    text: String,
    calls: Vec<PartialToolCall>,
    size: usize,
    begun: bool,
    refused: bool,
    finish_reason: Option<String>,
    met_stop: bool,
    usage: TokenUsage,
    /// What else the server tells.
    extra: Map<String, Value>,
}

impl Assembler {
    /// An answer to a request that is served as the call with this id.
    pub fn new(endpoint: Endpoint, request: &CompletionRequest, call_id: &str) -> Self {
        Self {
            endpoint,
            model: request.model.clone(),
            stops: request.sampling.stop_sequences.clone(),
            call_id: call_id.into(),
            reasoning: String::new(),
            text: String::new(),
            calls: Vec::new(),
            size: 0,
            begun: false,
            refused: false,
            finish_reason: None,
            met_stop: false,
            usage: TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 },
            extra: Map::new(),
        }
    }

    /// Takes a whole answer or a chunk, as JSON, and says what is new in it.
    ///
    /// # Errors
    ///
    /// What the server reports in its place, or [`ErrorCode::Failed`] where it is none.
    pub fn take(&mut self, json: &[u8]) -> Result<Vec<Delta>, Error> {
        let chunk: AnswerOrChunk = serde_json::from_slice(json).map_err(|error| {
            self.endpoint.malformed(match error.is_data() {
                true => "the answer has another form than a chat completion",
                false => "the answer is no valid JSON",
            })
        })?;
        if let Some(error) = &chunk.error {
            return Err(self.endpoint.reported(error));
        }
        for (key, value) in [
            ("id", chunk.id),
            ("system_fingerprint", chunk.system_fingerprint),
            ("service_tier", chunk.service_tier),
        ] {
            if let Some(value) = value {
                self.extra.insert(key.into(), json!(value));
            }
        }
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.model = model;
        }
        let groq = chunk.x_groq.as_ref().and_then(|groq| groq.get("usage"));
        if let Some(counts) = chunk.usage.as_ref().or(groq).filter(|counts| counts.is_object()) {
            self.usage = usage(counts);
        }
        let mut deltas = Vec::new();
        for choice in chunk.choices.unwrap_or_default() {
            // One was asked for.
            if choice.index.is_none_or(|index| index == 0) {
                self.take_choice(choice, &mut deltas)?;
            }
        }
        Ok(deltas)
    }

    /// Takes what a server sends as an event of the type `error`.
    pub fn take_error(&self, json: &str) -> Error {
        let error = serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.into()));
        self.endpoint.reported(error.get("error").unwrap_or(&error))
    }

    /// Whether anything of an answer was there.
    pub fn begun(&self) -> bool {
        self.begun
    }

    /// Whether the server has said why the answer ends.
    pub fn ended(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Ends the answer: what is still to be passed on, and the whole.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Failed`] where it was none, or asks for a tool in a way that no tool understands.
    pub fn finish(mut self) -> Result<(Vec<Delta>, Completion), Error> {
        if !self.begun {
            return Err(self.endpoint.malformed("the answer has no choices"));
        }
        let mut deltas = Vec::new();
        let mut whole = Vec::new();
        let cut = self.finish_reason.as_deref() == Some("length");
        for (index, call) in std::mem::take(&mut self.calls).into_iter().enumerate() {
            if call.name.is_empty() {
                if cut {
                    continue;
                }
                return Err(self.endpoint.malformed("the answer asks for a tool without a name"));
            }
            let mut call = call.settled();
            call.rest(index, &mut deltas);
            if serde_json::from_str::<BTreeMap<String, IgnoredAny>>(&call.arguments).is_ok() {
                let PartialToolCall { id, name, arguments, .. } = call;
                whole.push(ToolCall { id, name, arguments });
            } else if !cut {
                let name = &call.name;
                let what =
                    format!("the arguments of the call of the tool \"{name}\" are no JSON object");
                return Err(self.endpoint.malformed(&what));
            }
        }
        let summary = CompletionSummary {
            stop_reason: self.stop_reason(!whole.is_empty()),
            model: self.model,
            usage: self.usage,
            extra: (!self.extra.is_empty()).then(|| Value::Object(self.extra).to_string()),
        };
        let mut parts = Vec::new();
        if !self.reasoning.is_empty() {
            parts.push(Part::Reasoning(Reasoning { text: self.reasoning, signature: None }));
        }
        if !self.text.is_empty() {
            parts.push(Part::Text(self.text));
        }
        parts.extend(whole.into_iter().map(Part::ToolCall));
        Ok((deltas, Completion { parts, summary }))
    }

    fn take_choice(&mut self, choice: Choice, deltas: &mut Vec<Delta>) -> Result<(), Error> {
        if let Some(error) = &choice.error {
            return Err(self.endpoint.reported(error));
        }
        self.begun = true;
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason);
        }
        if let Some(stop) = choice.stop_reason {
            self.met_stop |= self.stops.contains(&stop);
        }
        let whole = choice.message.is_some();
        let Some(said) = choice.message.or(choice.delta) else { return Ok(()) };

        let (mut thought, mut text) = (String::new(), String::new());
        thought.extend(said.reasoning_content.or(said.reasoning));
        match said.content {
            Some(Value::String(words)) => text = words,
            // Mistral lists pieces, some of which are thoughts.
            Some(Value::Array(pieces)) => {
                for piece in &pieces {
                    match piece.get("thinking") {
                        Some(inner) => thought.push_str(&words(inner)),
                        None => text.push_str(&words(piece)),
                    }
                }
            }
            _ => {}
        }
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty()) {
            self.refused = true;
            text.push_str(&refusal);
        }
        self.grow(thought.len() + text.len())?;
        if !thought.is_empty() {
            self.reasoning.push_str(&thought);
            deltas.push(Delta::Reasoning(thought));
        }
        if !text.is_empty() {
            self.text.push_str(&text);
            deltas.push(Delta::Text(text));
        }
        for wanted in said.tool_calls.unwrap_or_default() {
            self.take_call(wanted, whole, deltas)?;
        }
        Ok(())
    }

    fn take_call(
        &mut self,
        wanted: ToolCallChunk,
        whole: bool,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), Error> {
        let id = wanted.id.unwrap_or_default();
        let function = wanted.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let arguments = match function.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text,
            // Some servers give the object itself.
            Some(value) => value.to_string(),
        };
        self.grow(id.len() + name.len() + arguments.len())?;
        let known = if whole { None } else { self.known(wanted.index, &id, &name) };
        let index = known.unwrap_or(self.calls.len());
        if index == self.calls.len() {
            if index == MOST_CALLS {
                return Err(self.endpoint.malformed("the answer asks for too many tools"));
            }
            self.calls.push(PartialToolCall { key: wanted.index, ..PartialToolCall::default() });
        }
        let given = format!("call_{}_{index}", self.call_id);
        let call = &mut self.calls[index];
        if call.name.is_empty() {
            call.name = name;
        }
        if call.id.is_empty() {
            call.id = id;
        }
        call.arguments.push_str(&arguments);
        if !call.name.is_empty() {
            if call.id.is_empty() {
                call.id = given;
            }
            call.begin(index, deltas);
            // What does not begin like an object may have to be mended at the end.
            if call.arguments.trim_start().starts_with('{') {
                call.rest(index, deltas);
            }
        }
        Ok(())
    }

    /// Which of the calls so far a piece belongs to. Some servers give no index, and some give every
    /// call the same one; a new id with a name is a new call then.
    fn known(&self, key: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let differs = |call: &PartialToolCall| {
            !id.is_empty() && !name.is_empty() && !call.name.is_empty() && call.id != id
        };
        match key {
            Some(_) => {
                let last = self.calls.iter().rposition(|call| call.key == key)?;
                (!differs(&self.calls[last])).then_some(last)
            }
            None if !id.is_empty() => self.calls.iter().rposition(|call| call.id == id),
            None => {
                let last = self.calls.len().checked_sub(1)?;
                (name.is_empty() || self.calls[last].name.is_empty()).then_some(last)
            }
        }
    }

    fn grow(&mut self, by: usize) -> Result<(), Error> {
        self.size += by;
        if self.size > MOST_ANSWER {
            return Err(self.endpoint.malformed("the answer is too long"));
        }
        Ok(())
    }

    /// Why the answer ended. Some servers say "stop" when they wait for tools.
    fn stop_reason(&self, calls: bool) -> StopReason {
        match self.finish_reason.as_deref() {
            Some("length" | "max_tokens") => StopReason::MaxTokens,
            Some("content_filter") => StopReason::Refusal,
            _ if self.refused => StopReason::Refusal,
            _ if calls => StopReason::ToolUse,
            Some("stop") if self.met_stop => StopReason::StopSequence,
            Some("stop_sequence") => StopReason::StopSequence,
            None | Some("stop" | "eos" | "eos_token" | "end_turn") => StopReason::EndTurn,
            Some("tool_calls" | "function_call") => StopReason::EndTurn,
            Some(other) => StopReason::Other(other.chars().take(100).collect()),
        }
    }
}

impl PartialToolCall {
    fn begin(&mut self, index: usize, deltas: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.started, true) {
            deltas.push(Delta::ToolCallStart(ToolCallStart {
                index: index as u32,
                id: self.id.clone(),
                name: self.name.clone(),
            }));
        }
    }

    /// Passes on what is new of the arguments.
    fn rest(&mut self, index: usize, deltas: &mut Vec<Delta>) {
        let fragment = &self.arguments[self.passed..];
        if !fragment.is_empty() {
            let fragment = fragment.to_string();
            self.passed = self.arguments.len();
            deltas.push(Delta::ToolCallArguments(ToolCallArguments {
                index: index as u32,
                fragment,
            }));
        }
    }

    /// The call with arguments that are an object, as far as they can be taken for one: models write
    /// nothing for no arguments, and servers put an object into a text once too often.
    fn settled(mut self) -> Self {
        if self.passed > 0 {
            return self;
        }
        match serde_json::from_str(&self.arguments) {
            _ if self.arguments.trim().is_empty() => self.arguments = "{}".into(),
            Ok(Value::Null) => self.arguments = "{}".into(),
            Ok(Value::String(inner)) if inner.trim().is_empty() => self.arguments = "{}".into(),
            Ok(Value::String(inner)) => self.arguments = inner,
            _ => {}
        }
        self
    }
}

/// The text in a piece of content: itself, its `text`, or the texts in a list.
fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(pieces) => pieces.iter().map(words).collect(),
        Value::Object(members) => members.get("text").map(words).unwrap_or_default(),
        _ => String::new(),
    }
}

fn usage(counts: &Value) -> TokenUsage {
    let count = |pointers: &[&str]| {
        let value = pointers.iter().find_map(|pointer| {
            let value = counts.pointer(pointer)?;
            value.as_u64().or_else(|| value.as_f64().map(|value| value as u64))
        });
        value.unwrap_or_default()
    };
    TokenUsage {
        input: count(&["/prompt_tokens", "/input_tokens"]),
        output: count(&["/completion_tokens", "/output_tokens"]),
        cached_input: count(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]),
        reasoning: count(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]),
    }
}

#[cfg(test)]
mod tests;
