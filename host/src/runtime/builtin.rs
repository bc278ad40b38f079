//! Plugins that are part of the host, written in Rust against the same types.

use async_trait::async_trait;
use futures::future::BoxFuture;

use super::Plugin;
use crate::bindings::hook_handler::{Event, Outcome};
use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::model::{CompletionRequest, Message, Part, Role, Sampling, ToolChoice};
use crate::bindings::types::{
    CallContext, Content, ContentBlock, Error, HookPoint, ToolAnnotations, ToolDefinition,
    ToolResult,
};
use crate::call::Failure;

type ToolHandler =
    Box<dyn Fn(String, CallContext) -> BoxFuture<'static, Result<ToolResult, Error>> + Send + Sync>;
type HookHandler = Box<dyn Fn(Event) -> BoxFuture<'static, Result<Outcome, Error>> + Send + Sync>;

/// A built-in plugin with tools and hooks, put together from closures.
///
/// ```
/// use serde_json::json;
/// use tenon_host::types::{ToolDefinition, ToolResult};
/// use tenon_host::Builtin;
///
/// let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
/// let clock = Builtin::new("counter", "Counts").tool(
///     ToolDefinition::new("next", "Returns the next number", &schema),
///     |arguments, _context| async move { Ok(ToolResult::text(arguments)) },
/// );
/// ```
pub struct Builtin {
    identity: Identity,
    tools: Vec<(ToolDefinition, ToolHandler)>,
    hooks: Vec<(HookPoint, HookHandler)>,
}

impl Builtin {
    /// Begins a plugin, with the version of this crate.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let identity = Identity {
            name: name.into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: description.into(),
        };
        Self { identity, tools: Vec::new(), hooks: Vec::new() }
    }

    /// Adds a tool. The handler gets the text of a JSON object that matches the definition's
    /// schema.
    pub fn tool<F, R>(mut self, definition: ToolDefinition, handler: F) -> Self
    where
        F: Fn(String, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
    {
        let handler: ToolHandler =
            Box::new(move |arguments, context| Box::pin(handler(arguments, context)));
        self.tools.push((definition, handler));
        self
    }

    /// Adds a handler of a hook point.
    pub fn hook<F, R>(mut self, point: HookPoint, handler: F) -> Self
    where
        F: Fn(Event) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome, Error>> + Send + 'static,
    {
        self.hooks.push((point, Box::new(move |event| Box::pin(handler(event)))));
        self
    }
}

#[async_trait]
impl Plugin for Builtin {
    async fn register(&self) -> Result<Registration, Failure> {
        Ok(Registration {
            tools: self.tools.iter().map(|(definition, _)| definition.clone()).collect(),
            hooks: self.hooks.iter().map(|(point, _)| point.clone()).collect(),
            ..Registration::new(self.identity.clone())
        })
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let tool = self.tools.iter().find(|(definition, _)| definition.name == name);
        let (_, handler) = tool.ok_or_else(|| {
            Failure::Answered(Error::NotFound(format!("this plugin has no tool \"{name}\"")))
        })?;
        handler(arguments, context).await.map_err(Failure::Answered)
    }

    async fn handle(&self, event: Event) -> Result<Outcome, Failure> {
        let mut outcome = Outcome::Continue;
        let mut context = event.context.clone();
        for (_, handler) in self.hooks.iter().filter(|(point, _)| *point == event.point) {
            let event = Event { context: context.clone(), ..event.clone() };
            match handler(event).await.map_err(Failure::Answered)? {
                Outcome::Continue => {}
                Outcome::Replace(replaced) => {
                    context.clone_from(&replaced);
                    outcome = Outcome::Replace(replaced);
                }
                Outcome::Veto(reason) => return Ok(Outcome::Veto(reason)),
            }
        }
        Ok(outcome)
    }
}

impl Registration {
    /// The registration of a plugin that contributes nothing.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            tools: Vec::new(),
            hooks: Vec::new(),
            providers: Vec::new(),
            evals: Vec::new(),
            resources: false,
            prompts: false,
        }
    }
}

impl ToolDefinition {
    /// A tool that is called with arguments of this JSON Schema.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: &serde_json::Value,
    ) -> Self {
        Self {
            name: name.into(),
            title: None,
            description: description.into(),
            input_schema: input_schema.to_string(),
            output_schema: None,
            annotations: ToolAnnotations {
                read_only: None,
                destructive: None,
                idempotent: None,
                open_world: None,
            },
            capabilities: Vec::new(),
            extra: None,
        }
    }
}

impl CompletionRequest {
    /// A request of one user message, without tools and with the provider's own settings.
    pub fn new(model: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            messages: vec![Message::text(Role::User, prompt)],
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            limits: Sampling {
                max_tokens: None,
                temperature: None,
                top_p: None,
                stop: Vec::new(),
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

impl ToolResult {
    /// An answer in plain text.
    pub fn text(text: impl Into<String>) -> Self {
        let block = ContentBlock { body: Content::Text(text.into()), extra: None };
        Self { content: vec![block], structured: None, is_error: false, extra: None }
    }

    /// An answer that says, in plain text, why there is no better one.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// The text of the answer: that of its text blocks, a line each.
    pub fn plain_text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match &block.body {
            Content::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}
