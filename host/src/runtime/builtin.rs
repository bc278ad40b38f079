//! Plugins that are part of the host, written in Rust against the same types.

use async_trait::async_trait;
use futures::future::BoxFuture;
use tenon_types::{
    CallContext, Error, HookDecision, HookEvent, HookPoint, Identity, Json, Registration,
    ToolDefinition, ToolResult,
};

use super::Plugin;
use crate::call::Failure;

type ToolHandler =
    Box<dyn Fn(Json, CallContext) -> BoxFuture<'static, Result<ToolResult, Error>> + Send + Sync>;
type HookHandler =
    Box<dyn Fn(HookEvent) -> BoxFuture<'static, Result<HookDecision, Error>> + Send + Sync>;

/// A built-in plugin with tools and hooks, put together from closures.
///
/// ```
/// use serde_json::json;
/// use tenon_host::types::{ToolDefinition, ToolResult};
/// use tenon_host::Builtin;
///
/// let schema = json!({
///     "type": "object",
///     "properties": { "n": { "type": "integer" } },
///     "required": ["n"],
/// });
/// let clock = Builtin::new("counter", "Counts").tool(
///     ToolDefinition::new("next", "Returns the next number", &schema),
///     |arguments, _context| async move {
///         let n: i64 = arguments.member("n")?;
///         Ok(ToolResult::text((n + 1).to_string()))
///     },
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

    /// Adds a tool. The handler gets an object that matches the definition's schema.
    pub fn tool<F, R>(mut self, definition: ToolDefinition, handler: F) -> Self
    where
        F: Fn(Json, CallContext) -> R + Send + Sync + 'static,
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
        F: Fn(HookEvent) -> R + Send + Sync + 'static,
        R: Future<Output = Result<HookDecision, Error>> + Send + 'static,
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
        arguments: Json,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let tool = self.tools.iter().find(|(definition, _)| definition.name == name);
        let (_, handler) = tool.ok_or_else(|| {
            Failure::Answered(Error::NotFound(format!("this plugin has no tool \"{name}\"")))
        })?;
        handler(arguments, context).await.map_err(Failure::Answered)
    }

    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let mut outcome = HookDecision::Continue;
        let mut context = event.context.clone();
        for (_, handler) in self.hooks.iter().filter(|(point, _)| *point == event.point) {
            let event = HookEvent { context: context.clone(), ..event.clone() };
            match handler(event).await.map_err(Failure::Answered)? {
                HookDecision::Continue => {}
                HookDecision::Replace(replaced) => {
                    context.clone_from(&replaced);
                    outcome = HookDecision::Replace(replaced);
                }
                HookDecision::Veto(reason) => return Ok(HookDecision::Veto(reason)),
            }
        }
        Ok(outcome)
    }
}
