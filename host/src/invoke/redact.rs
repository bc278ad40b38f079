//! Keeping secrets out of what plugins answer, and what they say of failures short.

use super::CallError;
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::model::{Completion, Part};
use crate::bindings::prompts::{Prompt, PromptDefinition};
use crate::bindings::resources::{ListedResource, ResourceTemplate};
use crate::bindings::types::{
    Content, ContentBlock, Error, ResourceBody, ResourceContents, ResourceLink, ToolResult,
};
use crate::runtime::Failure;
use crate::secret::Redactor;
use crate::text::shorten;

/// The longest words of a failure, in bytes.
const WORDS: usize = 16 << 10;

/// A result without secrets.
pub(super) fn result(redactor: &Redactor, mut result: ToolResult) -> ToolResult {
    if redactor.is_idle() {
        return result;
    }
    result.extra.iter_mut().chain(&mut result.structured).for_each(|json| redactor.json_text(json));
    result.content.iter_mut().for_each(|content| block(redactor, content));
    result
}

/// Masks secrets in a block of content.
fn block(redactor: &Redactor, block: &mut ContentBlock) {
    block.extra.iter_mut().for_each(|json| redactor.json_text(json));
    match &mut block.body {
        Content::Text(text) => redactor.redact(text),
        Content::Other(json) => redactor.json_text(json),
        Content::Resource(part) => contents(redactor, part),
        Content::ResourceLink(to) => link(redactor, to),
        Content::Image(media) | Content::Audio(media) => redactor.redact(&mut media.mime_type),
    }
}

/// Masks secrets in what was read.
pub(super) fn contents(redactor: &Redactor, contents: &mut ResourceContents) {
    let texts = [&mut contents.uri].into_iter().chain(&mut contents.mime_type);
    texts.for_each(|text| redactor.redact(text));
    contents.extra.iter_mut().for_each(|json| redactor.json_text(json));
    if let ResourceBody::Text(text) = &mut contents.body {
        redactor.redact(text);
    }
}

/// What a plugin says of itself, without secrets.
pub(crate) fn registration(redactor: &Redactor, mut registration: Registration) -> Registration {
    if redactor.is_idle() {
        return registration;
    }
    let Identity { name, version, description } = &mut registration.identity;
    [name, version, description].into_iter().for_each(|text| redactor.redact(text));
    for tool in &mut registration.tools {
        redactor.redact(&mut tool.description);
        tool.title.iter_mut().for_each(|text| redactor.redact(text));
        redactor.json_text(&mut tool.input_schema);
        let texts = [&mut tool.output_schema, &mut tool.extra];
        texts.into_iter().flatten().for_each(|json| redactor.json_text(json));
    }
    registration
}

/// Masks secrets in a resource of a listing.
pub(super) fn resource(redactor: &Redactor, resource: &mut ListedResource) {
    resource.extra.iter_mut().for_each(|json| redactor.json_text(json));
    link(redactor, &mut resource.link);
}

/// Masks secrets in a resource template of a listing.
pub(super) fn template(redactor: &Redactor, template: &mut ResourceTemplate) {
    let ResourceTemplate { uri_template, name, title, description, mime_type, extra } = template;
    let texts = [title, description, mime_type].into_iter().flatten().chain([uri_template, name]);
    texts.for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in what a prompt of a listing says of itself. Names stay, by which it is asked for.
pub(super) fn prompt_definition(redactor: &Redactor, prompt: &mut PromptDefinition) {
    let PromptDefinition { name: _, title, description, arguments, extra } = prompt;
    let of_arguments = arguments.iter_mut().flat_map(|of| [&mut of.title, &mut of.description]);
    let texts = of_arguments.chain([title, description]).flatten();
    texts.for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in a prompt that was filled in.
pub(super) fn prompt(redactor: &Redactor, prompt: &mut Prompt) {
    prompt.description.iter_mut().for_each(|text| redactor.redact(text));
    prompt.messages.iter_mut().for_each(|message| block(redactor, &mut message.content));
}

/// Masks secrets in a link to a resource.
fn link(redactor: &Redactor, link: &mut ResourceLink) {
    let texts = [&mut link.title, &mut link.description, &mut link.mime_type];
    let texts = texts.into_iter().flatten().chain([&mut link.uri, &mut link.name]);
    texts.for_each(|text| redactor.redact(text));
}

/// An evaluation without secrets.
pub(super) fn evaluation(redactor: &Redactor, mut evaluation: Evaluation) -> Evaluation {
    evaluation.extra.iter_mut().for_each(|json| redactor.json_text(json));
    for finding in &mut evaluation.findings {
        redactor.redact(&mut finding.criterion);
        redactor.redact(&mut finding.reason);
    }
    evaluation
}

/// An answer of a model without secrets.
pub(super) fn completion(redactor: &Redactor, mut completion: Completion) -> Completion {
    for part in &mut completion.parts {
        match part {
            Part::Text(text) => redactor.redact(text),
            Part::ToolCall(call) => redactor.json_text(&mut call.arguments),
            Part::Other(json) => redactor.json_text(json),
            Part::Image(_) | Part::Audio(_) | Part::Reasoning(_) | Part::ToolAnswer(_) => {}
        }
    }
    completion
}

/// An error without secrets, of bounded length.
pub(super) fn error(redactor: &Redactor, mut error: CallError) -> CallError {
    match &mut error {
        CallError::NotFound { .. } | CallError::Disabled { .. } | CallError::Held { .. } => {}
        CallError::InvalidInput { problems, .. } => {
            problems.iter_mut().for_each(|problem| words(redactor, problem));
        }
        CallError::Vetoed { reason, .. } => words(redactor, reason),
        CallError::Failed { failure, .. } => mask_failure(redactor, failure),
    }
    error
}

/// A failure without secrets, of bounded length.
pub(crate) fn failure(redactor: &Redactor, mut failure: Failure) -> Failure {
    mask_failure(redactor, &mut failure);
    failure
}

fn mask_failure(redactor: &Redactor, failure: &mut Failure) {
    match failure {
        Failure::Answered(answer) => words(redactor, message_of(answer)),
        Failure::Trapped(text)
        | Failure::Lost(text)
        | Failure::Contract(text)
        | Failure::Host(text) => words(redactor, text),
        Failure::Limit(_) | Failure::Deadline(_) | Failure::Unsupported(_) => {}
    }
}

fn words(redactor: &Redactor, text: &mut String) {
    redactor.redact(text);
    shorten(text, WORDS);
}

fn message_of(error: &mut Error) -> &mut String {
    match error {
        Error::InvalidInput(message)
        | Error::NotFound(message)
        | Error::Denied(message)
        | Error::Timeout(message)
        | Error::Cancelled(message)
        | Error::Failed(message) => message,
        Error::Unavailable(unavailability) => &mut unavailability.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::prompts::{PromptArgument, PromptMessage, PromptRole};
    use crate::bindings::types::Media;
    use crate::secret::Secrets;

    const SECRET: &str = "hunter22";

    /// Masks what a plugin said, in which `left` of the secrets are names that have to stay.
    fn check<T: std::fmt::Debug>(mut said: T, mask: impl Fn(&Redactor, &mut T), left: usize) {
        let mut secrets = Secrets::default();
        secrets.add("A_TOKEN", SECRET);
        mask(&Redactor::new(&secrets), &mut said);
        let said = format!("{said:?}");
        assert_eq!(said.matches(SECRET).count(), left, "{said}");
    }

    fn text() -> String {
        format!("it is {SECRET}")
    }

    fn extra() -> Option<String> {
        Some(format!("{{\"{SECRET}\":\"\\u0068unter22\"}}"))
    }

    #[test]
    fn secrets_are_masked_wherever_they_can_stand() {
        let media = || Media { data: Vec::new(), mime_type: text() };
        let link = || ResourceLink {
            uri: text(),
            name: text(),
            title: Some(text()),
            description: Some(text()),
            mime_type: Some(text()),
            size: None,
        };
        let contents = ResourceContents {
            uri: text(),
            mime_type: Some(text()),
            body: ResourceBody::Text(text()),
            extra: extra(),
        };
        for body in [
            Content::Text(text()),
            Content::Image(media()),
            Content::Audio(media()),
            Content::ResourceLink(link()),
            Content::Resource(contents),
            Content::Other(extra().unwrap_or_default()),
        ] {
            check(ContentBlock { body, extra: extra() }, block, 0);
        }
        check(ListedResource { link: link(), extra: extra() }, resource, 0);
        let listed = ResourceTemplate {
            uri_template: text(),
            name: text(),
            title: Some(text()),
            description: Some(text()),
            mime_type: Some(text()),
            extra: extra(),
        };
        check(listed, template, 0);
        let argument = PromptArgument {
            name: text(),
            title: Some(text()),
            description: Some(text()),
            required: true,
        };
        let listed = PromptDefinition {
            name: text(),
            title: Some(text()),
            description: Some(text()),
            arguments: vec![argument],
            extra: extra(),
        };
        check(listed, prompt_definition, 2);
        let content = ContentBlock { body: Content::Text(text()), extra: extra() };
        let message = PromptMessage { role: PromptRole::User, content };
        check(Prompt { description: Some(text()), messages: vec![message] }, prompt, 0);
    }
}
