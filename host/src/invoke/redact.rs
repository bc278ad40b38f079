//! Keeping secrets out of what plugins answer, and what they say of failures short.

use super::CallError;
use crate::bindings::eval_handler::Evaluation;
use crate::bindings::lifecycle::{Identity, Registration};
use crate::bindings::model::{Completion, Part};
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
pub(super) fn block(redactor: &Redactor, block: &mut ContentBlock) {
    block.extra.iter_mut().for_each(|json| redactor.json_text(json));
    match &mut block.body {
        Content::Text(text) => redactor.redact(text),
        Content::Other(json) => redactor.json_text(json),
        Content::Resource(part) => contents(redactor, part),
        Content::ResourceLink(to) => link(redactor, to),
        Content::Image(_) | Content::Audio(_) => {}
    }
}

/// Masks secrets in what was read.
pub(super) fn contents(redactor: &Redactor, contents: &mut ResourceContents) {
    redactor.redact(&mut contents.uri);
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

/// Masks secrets in a link to a resource.
pub(super) fn link(redactor: &Redactor, link: &mut ResourceLink) {
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
