//! What plugins are asked and what they answer, as types of the host's own.
//!
//! Every kind of plugin is called with these, whatever version of the contract a component was built for. They
//! have the JSON forms that the Model Context Protocol gives them ([`mcp_json`]). What a tool's name may be is in
//! [`name`], what a text may look like that is shown in [`text`]. Nothing here knows how plugins run.
//!
//! Their fields are public and may be taken apart exhaustively: whoever masks or escapes what a plugin said does
//! not compile when a field is added that it would pass on.

mod call_context;
pub mod completion_json;
mod content;
mod error;
mod evaluation;
pub mod hook;
mod hook_context;
mod json;
mod language_model;
mod log_level;
pub mod mcp_json;
mod mcp_operation;
mod messaging;
pub mod name;
mod prompt;
mod registration;
mod resource_list;
mod suggestions;
pub mod text;
mod tool;
mod user;

pub use call_context::CallContext;
pub use content::{Content, ContentBlock, Media, ResourceBody, ResourceContents, ResourceLink};
pub use error::{Error, ErrorCode};
pub use evaluation::{Evaluation, Finding, Verdict};
pub use hook::{HookDecision, HookEvent, HookMode, HookPoint, HookRegistration};
pub use hook_context::HookContext;
pub use json::{Json, NotJson};
pub use language_model::{
    Completion, CompletionRequest, CompletionSummary, Delta, Message, ModelFeatures, ModelInfo,
    ModelTool, Part, Reasoning, Role, SamplingOptions, StopReason, TokenUsage, ToolCall,
    ToolCallArguments, ToolCallResult, ToolCallStart, ToolChoice,
};
pub use log_level::LogLevel;
pub use mcp_operation::McpOperation;
pub use messaging::{IncomingMessage, Memory, OutgoingMessage};
pub use prompt::{Prompt, PromptArgument, PromptDefinition, PromptMessage, PromptPage, PromptRole};
pub use registration::{EvalDefinition, Identity, ProviderDefinition, Registration};
pub use resource_list::{ListedResource, ResourcePage, ResourceTemplate, TemplatePage};
pub use suggestions::{ArgumentCompletion, CompletionReference, Suggestions};
pub use tool::{ToolAnnotations, ToolDefinition, ToolResult};
pub use user::{FormAnswer, FormRequest, INPUT_KEY, Root, UrlAnswer, UrlRequest};
