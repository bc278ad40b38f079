//! What the types of the contract are as the host's own, and back: member by member.
//!
//! Who adds a member to one of them gets an error here.

use std::time::Duration;
use tenon_types::{FormAnswer, HookPoint, Json, UrlAnswer};

use super::{
    completions, evals, hooks, lifecycle, log, memory, messaging, model, prompts, providers,
    resources, types, user,
};

/// A value as the type of the other side.
pub(crate) trait Convert<T> {
    /// Converts it. Texts and bytes are moved.
    fn convert(self) -> T;
}

/// What is the same on both sides.
macro_rules! same {
    ($($same:ty),* $(,)?) => {$(
        impl Convert<$same> for $same {
            fn convert(self) -> $same {
                self
            }
        }
    )*};
}

same!((), bool, f64, i32, u32, u64, String, (String, String), Vec<u8>);

impl<A: Convert<B>, B> Convert<Option<B>> for Option<A> {
    fn convert(self) -> Option<B> {
        self.map(A::convert)
    }
}

impl<A: Convert<B>, B> Convert<Vec<B>> for Vec<A> {
    fn convert(self) -> Vec<B> {
        self.into_iter().map(A::convert).collect()
    }
}

impl<A: Convert<B>, B, E: Convert<F>, F> Convert<Result<B, F>> for Result<A, E> {
    fn convert(self) -> Result<B, F> {
        self.map(A::convert).map_err(E::convert)
    }
}

impl Convert<Duration> for u64 {
    fn convert(self) -> Duration {
        Duration::from_millis(self)
    }
}

impl Convert<u64> for Duration {
    fn convert(self) -> u64 {
        u64::try_from(self.as_millis()).unwrap_or(u64::MAX)
    }
}

macro_rules! records {
    ($($module:ident::$theirs:ident = $ours:ident { $($member:ident),* $(,)? };)*) => {$(
        impl Convert<tenon_types::$ours> for $module::$theirs {
            fn convert(self) -> tenon_types::$ours {
                let $module::$theirs { $($member),* } = self;
                tenon_types::$ours { $($member: $member.convert()),* }
            }
        }

        impl Convert<$module::$theirs> for tenon_types::$ours {
            fn convert(self) -> $module::$theirs {
                let tenon_types::$ours { $($member),* } = self;
                $module::$theirs { $($member: $member.convert()),* }
            }
        }
    )*};
}

macro_rules! cases {
    ($($module:ident::$theirs:ident = $ours:ident { $($case:ident $(($value:ident))?),* $(,)? };)*) => {$(
        impl Convert<tenon_types::$ours> for $module::$theirs {
            fn convert(self) -> tenon_types::$ours {
                match self {
                    $(Self::$case $(($value))? => tenon_types::$ours::$case $(($value.convert()))?),*
                }
            }
        }

        impl Convert<$module::$theirs> for tenon_types::$ours {
            fn convert(self) -> $module::$theirs {
                match self {
                    $(Self::$case $(($value))? => $module::$theirs::$case $(($value.convert()))?),*
                }
            }
        }
    )*};
}

records! {
    types::ContentBlock = ContentBlock { body, extra };
    types::Media = Media { data, mime_type };
    types::ResourceLink = ResourceLink { uri, name, title, description, mime_type, size };
    types::ResourceContents = ResourceContents { uri, mime_type, body, extra };
    types::ToolDefinition = ToolDefinition {
        name, title, description, input_schema, output_schema, annotations, capabilities, extra,
    };
    types::ToolAnnotations = ToolAnnotations { read_only, destructive, idempotent, open_world };
    types::ToolResult = ToolResult { content, structured, is_error, extra };
    lifecycle::Identity = Identity { name, version, description, extra };
    providers::ProviderDefinition = ProviderDefinition { name, description };
    evals::EvalDefinition = EvalDefinition { name, description, options_schema };
    model::ModelInfo = ModelInfo {
        id, provider, title, context_window, max_output_tokens, features,
    };
    model::CompletionRequest = CompletionRequest {
        model, messages, tools, tool_choice, sampling, response_schema, extra,
    };
    model::Message = Message { role, parts };
    model::Reasoning = Reasoning { text, signature };
    model::ToolCall = ToolCall { id, name, arguments };
    model::ToolCallResult = ToolCallResult { id, content, is_error };
    model::ModelTool = ModelTool { name, description, input_schema };
    model::SamplingOptions = SamplingOptions { max_tokens, temperature, top_p, stop_sequences, seed };
    model::Completion = Completion { parts, summary };
    model::CompletionSummary = CompletionSummary { model, stop_reason, usage, extra };
    model::TokenUsage = TokenUsage { input, output, cached_input, reasoning };
    model::ToolCallStart = ToolCallStart { index, id, name };
    model::ToolCallArguments = ToolCallArguments { index, fragment };
    messaging::OutgoingMessage = OutgoingMessage { channel, text, extra };
    memory::MemoryEntry = Memory { text, score, source };
    resources::ResourcePage = ResourcePage { resources, next };
    resources::ListedResource = ListedResource { link, extra };
    resources::TemplatePage = TemplatePage { templates, next };
    resources::ResourceTemplate = ResourceTemplate {
        uri_template, name, title, description, mime_type, extra,
    };
    prompts::PromptPage = PromptPage { prompts, next };
    prompts::PromptDefinition = PromptDefinition { name, title, description, arguments, extra };
    prompts::PromptArgument = PromptArgument { name, title, description, required, extra };
    prompts::Prompt = Prompt { description, messages, extra };
    prompts::PromptMessage = PromptMessage { role, content, extra };
    completions::ArgumentCompletion = ArgumentCompletion { reference, name, value, others };
    completions::Suggestions = Suggestions { values, total, has_more, extra };
    evals::Evaluation = Evaluation { score, verdict, findings, extra };
    evals::Finding = Finding { criterion, verdict, score, reason };
}

cases! {
    types::ErrorCode = ErrorCode {
        InvalidInput, NotFound, Denied, Timeout, Cancelled, Unavailable, Failed,
    };
    types::Content = Content {
        Text(value), Image(value), Audio(value), ResourceLink(value), Resource(value),
        Other(value),
    };
    types::ResourceBody = ResourceBody { Text(value), Blob(value) };
    model::Role = Role { System, User, Assistant, Tool };
    model::Part = Part {
        Text(value), Image(value), Audio(value), Reasoning(value), ToolCall(value),
        ToolCallResult(value), Other(value),
    };
    model::ToolChoice = ToolChoice { Auto, None, Required, Named(value) };
    model::StopReason = StopReason { EndTurn, MaxTokens, StopSequence, ToolUse, Refusal, Other(value) };
    model::Delta = Delta {
        Text(value), Reasoning(value), ToolCallStart(value), ToolCallArguments(value),
    };
    prompts::PromptRole = PromptRole { User, Assistant };
    completions::CompletionReference = CompletionReference { Prompt(value), ResourceTemplate(value) };
    evals::Verdict = Verdict { Pass, Fail, Inconclusive };
    hooks::HookMode = HookMode { Enforce, Audit };
    log::Level = LogLevel { Trace, Debug, Info, Warn, Error };
}

impl Convert<tenon_types::CallContext> for types::CallContext {
    fn convert(self) -> tenon_types::CallContext {
        let Self { call_id, agent_id, session_id, traceparent, time_left, extra } = self;
        let time_left = time_left.convert();
        tenon_types::CallContext { call_id, agent_id, session_id, traceparent, time_left, extra }
    }
}

impl Convert<types::CallContext> for tenon_types::CallContext {
    fn convert(self) -> types::CallContext {
        let Self { call_id, agent_id, session_id, traceparent, time_left, extra } = self;
        let time_left = time_left.convert();
        types::CallContext { call_id, agent_id, session_id, traceparent, time_left, extra }
    }
}

impl Convert<tenon_types::ModelFeatures> for model::ModelFeatures {
    fn convert(self) -> tenon_types::ModelFeatures {
        tenon_types::ModelFeatures {
            tools: self.contains(Self::TOOLS),
            images: self.contains(Self::IMAGES),
            audio: self.contains(Self::AUDIO),
            response_schema: self.contains(Self::RESPONSE_SCHEMA),
        }
    }
}

impl Convert<model::ModelFeatures> for tenon_types::ModelFeatures {
    fn convert(self) -> model::ModelFeatures {
        let Self { tools, images, audio, response_schema } = self;
        let features = [
            (tools, model::ModelFeatures::TOOLS),
            (images, model::ModelFeatures::IMAGES),
            (audio, model::ModelFeatures::AUDIO),
            (response_schema, model::ModelFeatures::RESPONSE_SCHEMA),
        ];
        let held = features.into_iter().filter(|(has, _)| *has);
        held.fold(model::ModelFeatures::empty(), |all, (_, feature)| all | feature)
    }
}

impl Convert<tenon_types::Error> for types::Error {
    /// Data that is not JSON is kept as text.
    fn convert(self) -> tenon_types::Error {
        let Self { code, message, retry_after, data } = self;
        let error = tenon_types::Error::new(code.convert(), message);
        let error = error.retry_after(retry_after.convert());
        match data {
            None => error,
            Some(data) => error.with_data(Json::parse_or_text(data)),
        }
    }
}

impl Convert<types::Error> for tenon_types::Error {
    fn convert(self) -> types::Error {
        let tenon_types::Error { code, message, retry_after, data } = self;
        let (code, retry_after) = (code.convert(), retry_after.convert());
        types::Error { code, message, retry_after, data: data.map(Json::into_text) }
    }
}

impl Convert<tenon_types::HookRegistration> for hooks::HookRegistration {
    fn convert(self) -> tenon_types::HookRegistration {
        let Self { point, mode, priority } = self;
        let (point, mode) = (HookPoint::named(point), mode.convert());
        tenon_types::HookRegistration { point, mode, priority }
    }
}

impl Convert<user::FormAnswer> for FormAnswer {
    fn convert(self) -> user::FormAnswer {
        match self {
            Self::Accepted(content) => {
                user::FormAnswer::Accepted(serde_json::Value::Object(content).to_string())
            }
            Self::Declined => user::FormAnswer::Declined,
            Self::Cancelled => user::FormAnswer::Cancelled,
        }
    }
}

impl Convert<user::UrlAnswer> for UrlAnswer {
    fn convert(self) -> user::UrlAnswer {
        match self {
            Self::Accepted => user::UrlAnswer::Accepted,
            Self::Declined => user::UrlAnswer::Declined,
            Self::Cancelled => user::UrlAnswer::Cancelled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_alike_on_both_sides_comes_back() {
        let all: tenon_types::ModelFeatures = model::ModelFeatures::all().convert();
        let theirs: model::ModelFeatures = all.convert();
        assert!(theirs == model::ModelFeatures::all(), "a feature is lost");
        let features = tenon_types::ModelFeatures { images: true, ..Default::default() };
        let theirs: model::ModelFeatures = features.convert();
        assert!(theirs == model::ModelFeatures::IMAGES);
        let back: tenon_types::ModelFeatures = theirs.convert();
        assert_eq!(back, features);
        let context = tenon_types::CallContext {
            call_id: "1".into(),
            agent_id: Some("a".into()),
            session_id: Some("s".into()),
            traceparent: Some("t".into()),
            time_left: Some(Duration::from_millis(1_500)),
            extra: Some("{}".into()),
        };
        let theirs: types::CallContext = context.clone().convert();
        assert_eq!(theirs.time_left, Some(1_500));
        let back: tenon_types::CallContext = theirs.convert();
        assert_eq!(back, context);
    }
}
