//! Resources and prompts of a script, and completion of their arguments.
//!
//! ```rhai
//! resource(#{ uri: "notes://{name}", name: "note", list: || [#{ uri: "notes://today", name: "today" }] },
//!          |variables| state.get(variables.name));
//!
//! prompt(#{ name: "review", description: "Asks for a review",
//!           arguments: [#{ name: "language", required: true, complete: ["Rust", "Python"] }] },
//!        |arguments| `Review this ${arguments.language} code.`);
//! ```

use rhai::{Array, Blob, Dynamic, FnPtr, ImmutableString, Map};
use tenon_types::{
    Content, ContentBlock, ListedResource, Prompt, PromptArgument, PromptDefinition, PromptMessage,
    PromptRole, ResourceBody, ResourceContents, ResourceLink, ResourceTemplate, Suggestions,
};
use tenon_uri_template::UriTemplate;

use super::content;
use super::engine::DefinitionMap;
use super::json::to_text;

/// A resource, or a family of resources that a template names.
pub(super) struct ScriptResource {
    pub(super) template: UriTemplate,
    name: String,
    title: Option<String>,
    description: Option<String>,
    mime_type: Option<String>,
    /// Gives the contents, from a map of the template's variables.
    pub(super) function: FnPtr,
    /// Gives what there is of the template now.
    pub(super) list: Option<FnPtr>,
    pub(super) completers: Vec<(String, Completer)>,
}

/// A prompt.
pub(super) struct ScriptPrompt {
    pub(super) definition: PromptDefinition,
    /// Gives the messages, from a map of the arguments.
    pub(super) function: FnPtr,
    pub(super) completers: Vec<(String, Completer)>,
}

/// What suggests values for an argument.
pub(super) enum Completer {
    Values(Vec<String>),
    /// Gives values, from the text that was typed.
    Function(FnPtr),
}

/// Takes functions out of what a script says, each by itself.
pub(super) type Detach<'a> = &'a mut dyn FnMut(&FnPtr) -> Result<FnPtr, String>;

impl ScriptResource {
    pub(super) fn define(
        about: &Map,
        function: &FnPtr,
        detach: Detach<'_>,
    ) -> Result<Self, String> {
        let known =
            ["uri", "name", "title", "description", "mime_type", "list", "complete"].as_slice();
        let about = DefinitionMap::new("resource", about.clone(), known)?;
        let uri = about.text("uri")?.ok_or("the resource has no uri")?;
        let template = UriTemplate::parse(&uri)
            .map_err(|error| format!("the uri {uri:?} of a resource: {error}"))?;
        let completers = match about.member("complete") {
            None => Vec::new(),
            Some(completers) => completers
                .read_lock::<Map>()
                .ok_or("the `complete` of a resource is a map by the names of variables")?
                .iter()
                .map(|(name, value)| Ok((name.to_string(), Completer::read(value, detach)?)))
                .collect::<Result<_, String>>()?,
        };
        if let Some((name, _)) = completers
            .iter()
            .find(|(name, _)| template.variables().all(|known| known.name != *name))
        {
            return Err(format!("the resource {uri} has no variable \"{name}\""));
        }
        let list = match about.member("list") {
            Some(_) if template.is_fixed() => {
                return Err(format!("{uri} is one resource, and lists no others"));
            }
            Some(list) => Some(detach(&function_of("list", list)?)?),
            None => None,
        };
        Ok(Self {
            name: about.name()?,
            title: about.text("title")?,
            description: about.text("description")?,
            mime_type: about.text("mime_type")?,
            function: detach(function)?,
            list,
            completers,
            template,
        })
    }

    /// How long its texts are.
    pub(super) fn length(&self) -> usize {
        let texts = [&self.title, &self.description, &self.mime_type];
        let texts = texts.into_iter().flatten().map(String::len);
        self.template.text().len() + self.name.len() + texts.sum::<usize>()
    }

    /// The resource as it is listed, where it is one.
    pub(super) fn listed(&self) -> Option<ListedResource> {
        self.template.is_fixed().then(|| ListedResource {
            link: ResourceLink {
                uri: self.template.text().into(),
                name: self.name.clone(),
                title: self.title.clone(),
                description: self.description.clone(),
                mime_type: self.mime_type.clone(),
                size: None,
            },
            extra: None,
        })
    }

    /// The template as it is listed, where it is one.
    pub(super) fn listed_template(&self) -> Option<ResourceTemplate> {
        (!self.template.is_fixed()).then(|| ResourceTemplate {
            uri_template: self.template.text().into(),
            name: self.name.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            mime_type: self.mime_type.clone(),
            extra: None,
        })
    }

    /// The resources that a script says there are.
    pub(super) fn read_list(&self, listed: &Dynamic) -> Result<Vec<ListedResource>, String> {
        let listed = listed.read_lock::<Array>().ok_or("`list` returns an array of maps")?;
        let item = |item: &Dynamic| {
            let map = item.read_lock::<Map>().ok_or("`list` returns an array of maps")?;
            let known = ["uri", "name", "title", "description", "mime_type"].as_slice();
            let about = DefinitionMap::new("listed resource", map.clone(), known)?;
            let uri = about.text("uri")?.ok_or("a listed resource has no uri")?;
            let name = about.text("name")?.unwrap_or_else(|| uri.clone());
            let link = ResourceLink {
                uri,
                name,
                title: about.text("title")?,
                description: about.text("description")?,
                mime_type: about.text("mime_type")?.or_else(|| self.mime_type.clone()),
                size: None,
            };
            Ok(ListedResource { link, extra: None })
        };
        listed.iter().map(item).collect()
    }

    /// What a script says is in a resource: text, bytes, or a value as JSON; nothing where there is no such resource.
    pub(super) fn read_contents(
        &self,
        uri: &str,
        contents: &Dynamic,
    ) -> Result<Option<Vec<ResourceContents>>, String> {
        if contents.is_unit() {
            return Ok(None);
        }
        let (body, usual_type) = if let Some(text) = contents.read_lock::<ImmutableString>() {
            (ResourceBody::Text(text.to_string()), "text/plain")
        } else if let Some(bytes) = contents.read_lock::<Blob>() {
            (ResourceBody::Blob(bytes.clone()), "application/octet-stream")
        } else {
            (ResourceBody::Text(to_text(contents)?), "application/json")
        };
        let mime_type = self.mime_type.clone().or_else(|| Some(usual_type.into()));
        Ok(Some(vec![ResourceContents { uri: uri.into(), mime_type, body, extra: None }]))
    }
}

impl ScriptPrompt {
    pub(super) fn define(
        about: &Map,
        function: &FnPtr,
        detach: Detach<'_>,
    ) -> Result<Self, String> {
        let known = ["name", "title", "description", "arguments"].as_slice();
        let about = DefinitionMap::new("prompt", about.clone(), known)?;
        let (mut arguments, mut completers) = (Vec::new(), Vec::new());
        if let Some(listed) = about.member("arguments") {
            let listed = listed.read_lock::<Array>();
            for argument in listed.ok_or("the `arguments` of a prompt are an array")?.iter() {
                // A name alone is an argument that is required.
                if let Some(name) = argument.read_lock::<ImmutableString>() {
                    arguments.push(argument_of(&name, true));
                    continue;
                }
                let map = argument.read_lock::<Map>();
                let map = map.ok_or("an argument of a prompt is a name or a map")?;
                let known = ["name", "title", "description", "required", "complete"].as_slice();
                let about = DefinitionMap::new("argument", map.clone(), known)?;
                let name = about.name()?;
                if let Some(completer) = about.member("complete") {
                    completers.push((name.clone(), Completer::read(completer, detach)?));
                }
                arguments.push(PromptArgument {
                    title: about.text("title")?,
                    description: about.text("description")?,
                    ..argument_of(&name, about.truth("required")?.unwrap_or(false))
                });
            }
        }
        let definition = PromptDefinition {
            name: about.name()?,
            title: about.text("title")?,
            description: about.text("description")?,
            arguments,
            extra: None,
        };
        Ok(Self { definition, function: detach(function)?, completers })
    }

    /// How long its texts are.
    pub(super) fn length(&self) -> usize {
        let PromptDefinition { name, title, description, arguments, .. } = &self.definition;
        let of_arguments = arguments.iter().flat_map(|argument| {
            [Some(&argument.name), argument.title.as_ref(), argument.description.as_ref()]
        });
        let texts = [Some(name), title.as_ref(), description.as_ref()].into_iter();
        texts.chain(of_arguments).flatten().map(String::len).sum()
    }

    /// The prompt that a script has filled in: a text, an array of messages, or a map with `description` and
    /// `messages`.
    pub(super) fn read(&self, filled: &Dynamic) -> Result<Prompt, String> {
        let description = self.definition.description.clone();
        let prompt = |messages| Prompt { description: description.clone(), messages, extra: None };
        if filled.is_string() || filled.is_array() {
            return messages(filled).map(prompt);
        }
        let map = filled.read_lock::<Map>();
        let map =
            map.ok_or("a prompt is a text, an array of messages, or a map with `messages`")?;
        let about = DefinitionMap::new("prompt", map.clone(), &["description", "messages"])?;
        let said = about.member("messages").ok_or("the prompt has no messages")?;
        let description = about.text("description")?.or_else(|| description.clone());
        Ok(Prompt { description, ..prompt(messages(said)?) })
    }
}

fn argument_of(name: &str, required: bool) -> PromptArgument {
    PromptArgument { name: name.into(), title: None, description: None, required, extra: None }
}

/// The messages of a prompt: a text of the user's, or an array of texts, content, and maps with `role` and `text` or
/// `content`.
fn messages(said: &Dynamic) -> Result<Vec<PromptMessage>, String> {
    let message = |role, text: &str| PromptMessage {
        role,
        content: ContentBlock { body: Content::Text(text.into()), extra: None },
        extra: None,
    };
    if let Some(text) = said.read_lock::<ImmutableString>() {
        return Ok(vec![message(PromptRole::User, &text)]);
    }
    let said = said.read_lock::<Array>().ok_or("`messages` is a text or an array")?;
    let read = |said: &Dynamic| {
        if let Some(mut blocks) = content::blocks(said) {
            let content = blocks.pop().ok_or("a message has content")?;
            return Ok(PromptMessage { role: PromptRole::User, content, extra: None });
        }
        if let Some(text) = said.read_lock::<ImmutableString>() {
            return Ok(message(PromptRole::User, &text));
        }
        let map = said.read_lock::<Map>().ok_or("a message is a text or a map")?;
        let about = DefinitionMap::new("message", map.clone(), &["role", "text", "content"])?;
        let role = match about.text("role")?.as_deref() {
            None | Some("user") => PromptRole::User,
            Some("assistant") => PromptRole::Assistant,
            Some(role) => {
                return Err(format!("the `role` of a message is user or assistant, not {role:?}"));
            }
        };
        if let Some(content) = about.member("content") {
            let mut blocks = content::blocks(content).unwrap_or_default();
            let content = blocks.pop().ok_or("the `content` of a message is one block")?;
            return Ok(PromptMessage { role, content, extra: None });
        }
        Ok(message(role, &about.text("text")?.ok_or("a message has no text")?))
    };
    said.iter().map(read).collect()
}

impl Completer {
    fn read(value: &Dynamic, detach: Detach<'_>) -> Result<Self, String> {
        match value.read_lock::<Array>() {
            Some(values) => texts(&values).map(Self::Values),
            None => Ok(Self::Function(detach(&function_of("complete", value)?)?)),
        }
    }
}

/// The most values that are suggested for an argument.
const MAX_SUGGESTIONS: usize = 100;

/// Those of some values that begin with what was typed.
pub(super) fn suggest_among(values: &[String], typed: &str) -> Suggestions {
    let typed = typed.to_lowercase();
    let fits = |value: &&String| value.to_lowercase().starts_with(&typed);
    suggestions(values.iter().filter(fits).cloned().collect())
}

/// The values that a script suggests.
pub(super) fn suggested(values: &Dynamic) -> Result<Suggestions, String> {
    let values = values.read_lock::<Array>().ok_or("`complete` returns an array of texts")?;
    texts(&values).map(suggestions)
}

fn suggestions(mut values: Vec<String>) -> Suggestions {
    let total = values.len();
    values.truncate(MAX_SUGGESTIONS);
    let has_more = total > values.len();
    Suggestions { values, total: Some(total as u64), has_more, extra: None }
}

fn texts(values: &[Dynamic]) -> Result<Vec<String>, String> {
    let text = |value: &Dynamic| {
        let text = value.read_lock::<ImmutableString>().map(|text| text.to_string());
        text.ok_or_else(|| "`complete` has texts".to_string())
    };
    values.iter().map(text).collect()
}

fn function_of(key: &str, value: &Dynamic) -> Result<FnPtr, String> {
    let function = value.read_lock::<FnPtr>().map(|function| function.clone());
    function.ok_or_else(|| format!("`{key}` is a function"))
}
