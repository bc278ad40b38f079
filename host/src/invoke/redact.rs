//! Keeping secrets out of what a plugin answers.

use super::CallError;
use crate::bindings::types::{Content, Error, ResourceBody, ToolResult};
use crate::runtime::Failure;
use crate::secret::Redactor;

/// A result without secrets.
pub(super) fn result(redactor: &Redactor, mut result: ToolResult) -> ToolResult {
    if redactor.is_idle() {
        return result;
    }
    let extras = result.extra.iter_mut().chain(&mut result.structured);
    extras.for_each(|json| redactor.redact(json));
    for block in &mut result.content {
        block.extra.iter_mut().for_each(|json| redactor.redact(json));
        match &mut block.body {
            Content::Text(text) | Content::Other(text) => redactor.redact(text),
            Content::Resource(contents) => {
                redactor.redact(&mut contents.uri);
                contents.extra.iter_mut().for_each(|json| redactor.redact(json));
                if let ResourceBody::Text(text) = &mut contents.body {
                    redactor.redact(text);
                }
            }
            Content::ResourceLink(link) => {
                redactor.redact(&mut link.uri);
                redactor.redact(&mut link.name);
                link.description.iter_mut().for_each(|text| redactor.redact(text));
            }
            Content::Image(_) | Content::Audio(_) => {}
        }
    }
    result
}

/// An error without secrets.
pub(super) fn error(redactor: &Redactor, mut error: CallError) -> CallError {
    if redactor.is_idle() {
        return error;
    }
    match &mut error {
        CallError::NotFound { .. } | CallError::Disabled(_) => {}
        CallError::InvalidInput { problems, .. } => {
            problems.iter_mut().for_each(|problem| redactor.redact(problem));
        }
        CallError::Vetoed { reason, .. } => redactor.redact(reason),
        CallError::Failed { failure, .. } => match failure {
            Failure::Answered(answer) => redactor.redact(message_of(answer)),
            Failure::Trapped(text)
            | Failure::Lost(text)
            | Failure::Contract(text)
            | Failure::Host(text) => redactor.redact(text),
            Failure::Limit(_) | Failure::Deadline(_) | Failure::Unsupported(_) => {}
        },
    }
    error
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
