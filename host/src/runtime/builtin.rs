//! Plugins that are part of the host, written in Rust against the same types.

use async_trait::async_trait;
use futures::future::BoxFuture;
use tenon_types::{
    CallContext, Error, HookDecision, HookEvent, HookPoint, HookRegistration, Identity, Json,
    ListedResource, Prompt, PromptDefinition, PromptPage, Registration, ResourceContents,
    ResourceLink, ResourcePage, ResourceTemplate, TemplatePage, ToolDefinition, ToolResult,
};
use tenon_uri_template::{TemplateError, UriTemplate, Values};

use super::Plugin;
use crate::call::Failure;

type ToolClosure =
    Box<dyn Fn(Json, CallContext) -> BoxFuture<'static, Result<ToolResult, Error>> + Send + Sync>;
type HookClosure =
    Box<dyn Fn(HookEvent) -> BoxFuture<'static, Result<HookDecision, Error>> + Send + Sync>;
type ResourceClosure = Box<
    dyn Fn(ResourceRequest, CallContext) -> BoxFuture<'static, Result<Vec<ResourceContents>, Error>>
        + Send
        + Sync,
>;
type PromptClosure =
    Box<dyn Fn(Values, CallContext) -> BoxFuture<'static, Result<Prompt, Error>> + Send + Sync>;

/// A resource that is read.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResourceRequest {
    /// The URI.
    pub uri: String,
    /// What the variables of its template stand for.
    pub variables: Values,
}

/// Resources of a built-in plugin: one, or those of a template.
struct BuiltinResource {
    template: UriTemplate,
    listed: ResourceOrTemplate,
    handler: ResourceClosure,
}

enum ResourceOrTemplate {
    Resource(ListedResource),
    Template(ResourceTemplate),
}

/// A built-in plugin with tools, hooks, resources and prompts, put together from closures.
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
    tools: Vec<(ToolDefinition, ToolClosure)>,
    hooks: Vec<(HookPoint, HookClosure)>,
    resources: Vec<BuiltinResource>,
    prompts: Vec<(PromptDefinition, PromptClosure)>,
}

impl Builtin {
    /// Begins a plugin, with the version of this crate.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        let identity = Identity::new(name, env!("CARGO_PKG_VERSION"), description);
        Self {
            identity,
            tools: Vec::new(),
            hooks: Vec::new(),
            resources: Vec::new(),
            prompts: Vec::new(),
        }
    }

    /// Adds a tool. The handler gets an object that matches the definition's schema.
    pub fn tool<F, R>(mut self, definition: ToolDefinition, handler: F) -> Self
    where
        F: Fn(Json, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<ToolResult, Error>> + Send + 'static,
    {
        let handler: ToolClosure =
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

    /// Adds a resource, or those that a URI template stands for.
    ///
    /// # Errors
    ///
    /// If the URI is no URI and no template (RFC 6570) by which a URI can be read in one way.
    pub fn resource<F, R>(mut self, link: ResourceLink, handler: F) -> Result<Self, TemplateError>
    where
        F: Fn(ResourceRequest, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Vec<ResourceContents>, Error>> + Send + 'static,
    {
        let template = UriTemplate::parse(&link.uri)?;
        let listed = match template.is_fixed() {
            true => ResourceOrTemplate::Resource(ListedResource { link, extra: None }),
            false => {
                let ResourceLink { uri, name, title, description, mime_type, size: _ } = link;
                let (uri_template, extra) = (uri, None);
                let template =
                    ResourceTemplate { uri_template, name, title, description, mime_type, extra };
                ResourceOrTemplate::Template(template)
            }
        };
        let handler: ResourceClosure =
            Box::new(move |request, context| Box::pin(handler(request, context)));
        self.resources.push(BuiltinResource { template, listed, handler });
        Ok(self)
    }

    /// Adds a prompt. The handler gets the arguments that its definition names; those that are required are there.
    pub fn prompt<F, R>(mut self, definition: PromptDefinition, handler: F) -> Self
    where
        F: Fn(Values, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Prompt, Error>> + Send + 'static,
    {
        let handler: PromptClosure =
            Box::new(move |arguments, context| Box::pin(handler(arguments, context)));
        self.prompts.push((definition, handler));
        self
    }
}

/// Refuses a cursor: the lists have one page.
pub(super) fn only_page(cursor: Option<String>) -> Result<(), Failure> {
    match cursor {
        None => Ok(()),
        Some(_) => Err(Error::invalid_input("there is no such page").into()),
    }
}

/// That a plugin or script has no resource of a URI, which is also in `data`, as MCP says it.
pub(super) fn no_resource(what: &str, uri: &str) -> Failure {
    let error = Error::not_found(format!("this {what} has no resource {uri}"));
    error.with_data(serde_json::json!({ "uri": uri }).into()).into()
}

/// The resources that a URI may be of, with the variables of their templates. What is one resource goes before what a
/// template covers.
pub(super) fn matching<'a, R>(
    resources: &'a [R],
    template: impl Fn(&R) -> &UriTemplate,
    uri: &str,
) -> Vec<(&'a R, Values)> {
    let matches = |of: &'a R| Some((of, template(of).matches(uri)?));
    let mut matching: Vec<_> = resources.iter().filter_map(matches).collect();
    matching.sort_by_key(|(of, _)| !template(of).is_fixed());
    matching
}

/// Checks that a prompt has all arguments that it requires, and no others.
pub(super) fn check_arguments(
    definition: &PromptDefinition,
    given: &[(String, String)],
) -> Result<(), Error> {
    let known = &definition.arguments;
    let is_known = |name: &str| known.iter().any(|argument| argument.name == name);
    if let Some((name, _)) = given.iter().find(|(name, _)| !is_known(name)) {
        return Err(Error::invalid_input(format!("this prompt has no argument \"{name}\"")));
    }
    let is_given = |name: &str| given.iter().any(|(known, _)| known == name);
    match known.iter().find(|argument| argument.required && !is_given(&argument.name)) {
        None => Ok(()),
        Some(argument) => {
            Err(Error::invalid_input(format!("the argument \"{}\" is missing", argument.name)))
        }
    }
}

#[async_trait]
impl Plugin for Builtin {
    async fn register(&self) -> Result<Registration, Failure> {
        Ok(Registration {
            tools: self.tools.iter().map(|(definition, _)| definition.clone()).collect(),
            hooks: { self.hooks.iter() }
                .map(|(point, _)| HookRegistration::new(point.clone()))
                .collect(),
            resources: !self.resources.is_empty(),
            prompts: !self.prompts.is_empty(),
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
            Failure::Answered(Error::not_found(format!("this plugin has no tool \"{name}\"")))
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
                    context = replaced.clone();
                    outcome = HookDecision::Replace(replaced);
                }
                HookDecision::Veto(reason) => return Ok(HookDecision::Veto(reason)),
            }
        }
        Ok(outcome)
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        _: CallContext,
    ) -> Result<ResourcePage, Failure> {
        only_page(cursor)?;
        let resources = self.resources.iter().filter_map(|resource| match &resource.listed {
            ResourceOrTemplate::Resource(listed) => Some(listed.clone()),
            ResourceOrTemplate::Template(_) => None,
        });
        Ok(ResourcePage { resources: resources.collect(), next: None })
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        _: CallContext,
    ) -> Result<TemplatePage, Failure> {
        only_page(cursor)?;
        let templates = self.resources.iter().filter_map(|resource| match &resource.listed {
            ResourceOrTemplate::Template(template) => Some(template.clone()),
            ResourceOrTemplate::Resource(_) => None,
        });
        Ok(TemplatePage { templates: templates.collect(), next: None })
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        let found = matching(&self.resources, |of| &of.template, uri).into_iter().next();
        let Some((resource, variables)) = found else {
            return Err(no_resource("plugin", uri));
        };
        let request = ResourceRequest { uri: uri.into(), variables };
        (resource.handler)(request, context).await.map_err(Failure::Answered)
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        _: CallContext,
    ) -> Result<PromptPage, Failure> {
        only_page(cursor)?;
        let prompts = self.prompts.iter().map(|(definition, _)| definition.clone());
        Ok(PromptPage { prompts: prompts.collect(), next: None })
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        let prompt = self.prompts.iter().find(|(definition, _)| definition.name == name);
        let (definition, handler) = prompt
            .ok_or_else(|| Error::not_found(format!("this plugin has no prompt \"{name}\"")))?;
        check_arguments(definition, &arguments)?;
        handler(arguments, context).await.map_err(Failure::Answered)
    }
}
