//! Keeping secrets out of what plugins answer, and what they say of failures short.
//!
//! Whatever a plugin answers, or says through an import, is [`Unmasked`], which only this module opens:
//! what leaves the host is [`Masked`], and a way out that forgets to mask does not compile.

use futures::FutureExt;
use serde_json::{Map, Value};
use std::mem;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use tenon_config::secret::Redactor;
use tenon_types::text::shorten;
use tenon_types::{
    Completion, CompletionRequest, CompletionSummary, Content, ContentBlock, Evaluation, Finding,
    FormRequest, HookPoint, Identity, Json, ListedResource, Media, Message, ModelInfo, ModelTool,
    OutgoingMessage, Part, Prompt, PromptArgument, PromptDefinition, PromptMessage, Reasoning,
    Registration, ResourceBody, ResourceContents, ResourceLink, ResourceTemplate, StopReason,
    Suggestions, ToolCall, ToolCallResult, ToolResult, UrlRequest,
};

use crate::call::{CallError, CallRefusal, Failure};

/// What a plugin answered or said, with whatever secrets are in it. Nobody gets it but as [`Masked`].
///
/// ```compile_fail,E0616
/// fn show(answer: tenon_host::invoke::Unmasked<String>) -> String {
///     answer.0
/// }
/// ```
#[must_use]
pub(crate) struct Unmasked<T>(T);

/// What a plugin answered, without secrets. Masking it is the only way to make one.
///
/// ```compile_fail,E0423
/// let masked = tenon_host::invoke::Masked(String::from("as it was"));
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub(crate) struct Masked<T>(T);

/// Opens what a plugin answered, where what comes of that is [`Unmasked`] again.
#[derive(Clone, Copy)]
pub(crate) struct UnmaskToken(());

impl<T> Unmasked<T> {
    /// What a plugin answered.
    pub(crate) fn new(answer: T) -> Self {
        Self(answer)
    }

    /// What comes of answers that are opened on the way.
    pub(crate) fn of<F: Future<Output = T>>(
        work: impl FnOnce(UnmaskToken) -> F,
    ) -> impl Future<Output = Self> {
        let work = work(UnmaskToken(()));
        async move { Self(work.await) }
    }

    /// The answer itself, for work whose outcome is `Unmasked` again.
    pub(crate) fn open(self, _: UnmaskToken) -> T {
        self.0
    }

    /// The same in another form.
    pub(crate) fn map<U>(self, form: impl FnOnce(T) -> U) -> Unmasked<U> {
        Unmasked(form(self.0))
    }
}

impl<T: MaskSecrets> Unmasked<T> {
    /// The answer without secrets.
    pub(crate) fn mask(mut self, redactor: &Arc<Redactor>) -> Masked<T> {
        self.0.mask(redactor);
        Masked(self.0)
    }
}

impl<T> Unmasked<Result<T, Failure>> {
    /// Whether there is an answer.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn is_ok(&self) -> bool {
        self.0.is_ok()
    }

    /// The answer as it was; or the failure, masked.
    pub(crate) fn or_masked_failure(
        self,
        redactor: &Arc<Redactor>,
    ) -> Result<Unmasked<T>, Failure> {
        match self.0 {
            Ok(answer) => Ok(Unmasked(answer)),
            Err(failure) => Err(self::failure(redactor, failure)),
        }
    }
}

/// The same for an answer that was not masked yet.
pub(crate) fn within_unmasked<T>(
    timeout: Duration,
    answer: impl Future<Output = Unmasked<Result<T, Failure>>>,
) -> impl Future<Output = Unmasked<Result<T, Failure>>> {
    let timed = tokio::time::timeout(timeout, answer);
    timed.map(move |answer| {
        answer.unwrap_or_else(|_| Unmasked::new(Err(Failure::Deadline(timeout))))
    })
}

impl<T> Masked<T> {
    /// What may leave the host.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }

    /// The same in another form.
    pub(crate) fn map<U>(self, form: impl FnOnce(T) -> U) -> Masked<U> {
        Masked(form(self.0))
    }

    /// For steps that take what was not masked yet: it is masked once more.
    pub(crate) fn again(self) -> Unmasked<T> {
        Unmasked(self.0)
    }

    /// The same after work that takes time.
    pub(crate) async fn then<U, F: Future<Output = U>>(
        self,
        work: impl FnOnce(T) -> F,
    ) -> Masked<U> {
        Masked(work(self.0).await)
    }
}

impl<T, E> Masked<Result<T, E>> {
    pub(crate) fn transpose(self) -> Result<Masked<T>, E> {
        self.0.map(Masked)
    }
}

impl<T> Deref for Masked<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// What can be masked: each text of it that a plugin chose.
pub(crate) trait MaskSecrets {
    fn mask(&mut self, redactor: &Arc<Redactor>);

    /// Whether there is a secret in what it is asked for by, if it is listed. That cannot be masked: it is left
    /// out of the list.
    fn is_named_by_secret(&self, redactor: &Redactor) -> bool {
        let _ = redactor;
        false
    }
}

/// Masks values by what is done to one of them where there is something to mask.
macro_rules! mask {
    ($($type:ty => $with:expr $(, listed $names:expr)?;)*) => {$(
        impl MaskSecrets for $type {
            fn mask(&mut self, redactor: &Arc<Redactor>) {
                if !redactor.is_idle() {
                    let mask: fn(&Redactor, &mut Self) = $with;
                    mask(redactor, self);
                }
            }

            $(fn is_named_by_secret(&self, redactor: &Redactor) -> bool {
                let names: fn(&Self) -> Vec<&str> = $names;
                names(self).into_iter().any(|name| redactor.holds(name))
            })?
        }
    )*};
}

mask! {
    ToolResult => result;
    ListedResource => resource, listed |listed| vec![&listed.link.uri];
    ResourceTemplate => template, listed |listed| vec![&listed.uri_template];
    PromptDefinition => prompt_definition, listed |listed| {
        let arguments = listed.arguments.iter().map(|argument| argument.name.as_str());
        arguments.chain([listed.name.as_str()]).collect()
    };
    Prompt => prompt;
    Suggestions => suggestions;
    Evaluation => evaluation;
    Completion => completion;
    CompletionRequest => completion_request;
    FormRequest => form;
    UrlRequest => page;
    CompletionSummary => summary;
    ModelInfo => model, listed |listed| vec![&listed.id, &listed.provider];
    Registration => registration;
    OutgoingMessage => message;
    String => Redactor::redact;
    Value => Redactor::texts;
}

impl<T: MaskSecrets> MaskSecrets for Option<T> {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        self.iter_mut().for_each(|item| item.mask(redactor));
    }
}

impl<T: MaskSecrets> MaskSecrets for Vec<T> {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        leave_out(redactor, self);
        self.iter_mut().for_each(|item| item.mask(redactor));
    }
}

/// Leaves what has a secret in what it is asked for by out of a list, and says so.
pub(crate) fn leave_out<T: MaskSecrets>(redactor: &Redactor, listed: &mut Vec<T>) {
    if redactor.is_idle() {
        return;
    }
    let all = listed.len();
    listed.retain(|item| !item.is_named_by_secret(redactor));
    let left_out = all - listed.len();
    if left_out > 0 {
        tracing::warn!("{left_out} of {all} that it lists are left out: their names have a secret");
    }
}

impl<T: MaskSecrets, E: MaskSecrets> MaskSecrets for Result<T, E> {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        match self {
            Ok(answer) => answer.mask(redactor),
            Err(error) => error.mask(redactor),
        }
    }
}

impl MaskSecrets for Failure {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        mask_failure(redactor, self);
    }
}

impl MaskSecrets for CallError {
    fn mask(&mut self, redactor: &Arc<Redactor>) {
        mask_error(redactor, self);
    }
}

/// The longest words of a failure, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 10;

/// Masks secrets in a result.
fn result(redactor: &Redactor, result: &mut ToolResult) {
    result.extra.iter_mut().chain(&mut result.structured).for_each(|json| redactor.json_text(json));
    blocks(redactor, result.content.iter_mut());
}

/// Masks secrets in blocks of content, whose texts are read one after the other.
fn blocks<'a>(redactor: &Redactor, blocks: impl Iterator<Item = &'a mut ContentBlock>) {
    let mut texts = Vec::new();
    for ContentBlock { body, extra } in blocks {
        extra.iter_mut().for_each(|json| redactor.json_text(json));
        match body {
            Content::Text(text) => texts.push(text),
            Content::Other(json) => redactor.json_text(json),
            Content::Resource(of) => texts.extend(part(redactor, of)),
            Content::ResourceLink(to) => {
                link(redactor, to);
                texts.push(&mut to.name);
            }
            Content::Image(of) | Content::Audio(of) => media(redactor, of),
        }
    }
    redactor.together(&mut texts);
}

fn media(redactor: &Redactor, media: &mut Media) {
    redactor.redact(&mut media.mime_type);
    redactor.bytes(&mut media.data);
}

/// Masks secrets in what was read, whose texts are read one after the other.
pub(crate) fn read(redactor: &Redactor, read: &mut [ResourceContents]) {
    let texts = read.iter_mut().filter_map(|contents| part(redactor, contents));
    redactor.together(&mut texts.collect::<Vec<_>>());
}

/// Masks secrets in all of a part of a resource but its text, and returns that: texts are read one after the other.
fn part<'a>(redactor: &Redactor, contents: &'a mut ResourceContents) -> Option<&'a mut String> {
    let ResourceContents { uri, mime_type, body, extra } = contents;
    mime_type.iter_mut().chain([uri]).for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
    match body {
        ResourceBody::Text(text) => Some(text),
        ResourceBody::Blob(bytes) => {
            redactor.bytes(bytes);
            None
        }
    }
}

/// Masks secrets in what a plugin says of itself. What has a secret in its name is not registered, as what
/// is left of that is no name.
fn registration(redactor: &Redactor, registration: &mut Registration) {
    let Identity { name, version, description, extra } = &mut registration.identity;
    extra.iter_mut().for_each(|json| redactor.json_text(json));
    [name, version, description].into_iter().for_each(|text| redactor.redact(text));
    for tool in &mut registration.tools {
        redactor.redact(&mut tool.name);
        redactor.redact(&mut tool.description);
        tool.title.iter_mut().for_each(|text| redactor.redact(text));
        redactor.json_text(&mut tool.input_schema);
        let texts = [&mut tool.output_schema, &mut tool.extra];
        texts.into_iter().flatten().for_each(|json| redactor.json_text(json));
    }
    for provider in &mut registration.providers {
        redactor.redact(&mut provider.name);
        redactor.redact(&mut provider.description);
    }
    for point in &mut registration.hooks {
        if let HookPoint::Custom(name) = &mut point.point {
            redactor.redact(name);
        }
    }
    for eval in &mut registration.evals {
        redactor.redact(&mut eval.name);
        redactor.redact(&mut eval.description);
        eval.options_schema.iter_mut().for_each(|json| redactor.json_text(json));
    }
}

/// Masks secrets in what a provider says of a model.
fn model(redactor: &Redactor, model: &mut ModelInfo) {
    model.title.iter_mut().for_each(|text| redactor.redact(text));
}

/// Masks secrets in a resource of a listing.
fn resource(redactor: &Redactor, resource: &mut ListedResource) {
    resource.extra.iter_mut().for_each(|json| redactor.json_text(json));
    link(redactor, &mut resource.link);
}

/// Masks secrets in a resource template of a listing.
fn template(redactor: &Redactor, template: &mut ResourceTemplate) {
    let ResourceTemplate { uri_template, name, title, description, mime_type, extra } = template;
    let texts = [title, description, mime_type].into_iter().flatten().chain([uri_template, name]);
    texts.for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in what a prompt of a listing says of itself.
fn prompt_definition(redactor: &Redactor, prompt: &mut PromptDefinition) {
    let PromptDefinition { name: _, title, description, arguments, extra } = prompt;
    let texts = [title, description].into_iter().flatten();
    texts.for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
    for PromptArgument { name: _, title, description, required: _, extra } in arguments {
        let texts = [title, description].into_iter().flatten();
        texts.for_each(|text| redactor.redact(text));
        extra.iter_mut().for_each(|json| redactor.json_text(json));
    }
}

/// Masks secrets in a message that a plugin sends.
fn message(redactor: &Redactor, message: &mut OutgoingMessage) {
    let OutgoingMessage { channel, text, extra } = message;
    channel.iter_mut().chain([text]).for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in a prompt that was filled in.
fn prompt(redactor: &Redactor, prompt: &mut Prompt) {
    let Prompt { description, messages, extra } = prompt;
    description.iter_mut().for_each(|text| redactor.redact(text));
    extra.iter_mut().for_each(|json| redactor.json_text(json));
    let messages = messages.iter_mut().map(|PromptMessage { role: _, content, extra }| {
        extra.iter_mut().for_each(|json| redactor.json_text(json));
        content
    });
    blocks(redactor, messages);
}

/// Masks secrets in values for an argument.
fn suggestions(redactor: &Redactor, suggestions: &mut Suggestions) {
    suggestions.values.iter_mut().for_each(|value| redactor.redact(value));
    suggestions.extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in a link to a resource.
fn link(redactor: &Redactor, link: &mut ResourceLink) {
    let texts = [&mut link.title, &mut link.description, &mut link.mime_type];
    let texts = texts.into_iter().flatten().chain([&mut link.uri, &mut link.name]);
    texts.for_each(|text| redactor.redact(text));
}

/// Masks secrets in an evaluation.
fn evaluation(redactor: &Redactor, evaluation: &mut Evaluation) {
    evaluation.extra.iter_mut().for_each(|json| redactor.json_text(json));
    for Finding { criterion, reason, verdict: _, score: _ } in &mut evaluation.findings {
        redactor.redact(criterion);
        redactor.redact(reason);
    }
}

/// Masks secrets in a question to the user.
fn form(redactor: &Redactor, FormRequest { message, schema, extra }: &mut FormRequest) {
    redactor.redact(message);
    redactor.texts(schema);
    members(redactor, extra);
}

/// Masks secrets in what is said of a page that the user is to open, and in its address.
fn page(redactor: &Redactor, UrlRequest { message, url, id, extra }: &mut UrlRequest) {
    [message, url].into_iter().chain(id).for_each(|text| redactor.redact(text));
    members(redactor, extra);
}

fn members(redactor: &Redactor, members: &mut Map<String, Value>) {
    let mut object = Value::Object(mem::take(members));
    redactor.texts(&mut object);
    if let Value::Object(masked) = object {
        *members = masked;
    }
}

/// Masks secrets in a request to a model, as far as the plugin wrote it.
fn completion_request(redactor: &Redactor, request: &mut CompletionRequest) {
    let CompletionRequest {
        model,
        messages,
        tools,
        tool_choice: _,
        sampling,
        response_schema,
        extra,
    } = request;
    redactor.redact(model);
    for Message { role: _, parts: said } in messages {
        parts(redactor, said);
    }
    for ModelTool { name, description, input_schema } in tools {
        [name, description].into_iter().for_each(|text| redactor.redact(text));
        redactor.json_text(input_schema);
    }
    sampling.stop_sequences.iter_mut().for_each(|text| redactor.redact(text));
    [response_schema, extra].into_iter().flatten().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in an answer of a model.
fn completion(redactor: &Redactor, completion: &mut Completion) {
    parts(redactor, &mut completion.parts);
    summary(redactor, &mut completion.summary);
}

/// Masks secrets in parts of a message. Their texts are read one after the other, and so is their reasoning.
fn parts(redactor: &Redactor, parts: &mut [Part]) {
    let (mut texts, mut reasoning) = (Vec::new(), Vec::new());
    for part in parts {
        match part {
            Part::Text(text) => texts.push(text),
            // A proof that has a secret in it proves nothing any more, which is better than the secret.
            Part::Reasoning(Reasoning { text, signature }) => {
                reasoning.push(text);
                signature.iter_mut().for_each(|text| redactor.redact(text));
            }
            Part::ToolCall(ToolCall { id, name, arguments }) => {
                redactor.redact(id);
                redactor.redact(name);
                redactor.json_text(arguments);
            }
            Part::ToolCallResult(ToolCallResult { id, content, is_error: _ }) => {
                redactor.redact(id);
                blocks(redactor, content.iter_mut());
            }
            Part::Other(json) => redactor.json_text(json),
            Part::Image(of) | Part::Audio(of) => media(redactor, of),
        }
    }
    redactor.together(&mut texts);
    redactor.together(&mut reasoning);
}

/// Masks secrets in what a provider says of an answer.
fn summary(redactor: &Redactor, summary: &mut CompletionSummary) {
    let CompletionSummary { model, stop_reason, usage: _, extra } = summary;
    redactor.redact(model);
    if let StopReason::Other(reason) = stop_reason {
        redactor.redact(reason);
    }
    extra.iter_mut().for_each(|json| redactor.json_text(json));
}

/// Masks secrets in an error, and bounds its length.
fn mask_error(redactor: &Redactor, error: &mut CallError) {
    match error {
        // A plugin may have chosen the name.
        CallError::NotFound { what: _, name, nearest } => {
            [name].into_iter().chain(nearest).for_each(|name| redactor.redact(name));
        }
        CallError::Disabled { tool, by: _ } => redactor.redact(tool),
        CallError::Held { what: _, name, plugin: _, why } => {
            redactor.redact(name);
            words(redactor, why);
        }
        CallError::InvalidInput { what: _, name, problems } => {
            redactor.redact(name);
            problems.iter_mut().for_each(|problem| words(redactor, problem));
        }
        CallError::NotApproved { tool, refusal } => {
            redactor.redact(tool);
            mask_refusal(redactor, refusal);
        }
        CallError::Vetoed { reason, .. } => words(redactor, reason),
        CallError::Failed { failure, .. } => mask_failure(redactor, failure),
    }
}

fn mask_refusal(redactor: &Redactor, refusal: &mut CallRefusal) {
    match refusal {
        // What rules say is the operator's.
        CallRefusal::Forbidden { by: _ } | CallRefusal::Running { id: _ } => {}
        CallRefusal::Pending { id: _, by: _, arguments, was_interrupted: _, run: _ } => {
            words(redactor, arguments);
        }
        CallRefusal::Unasked { by: _, problem } | CallRefusal::Unkept { by: _, problem } => {
            words(redactor, problem);
        }
        CallRefusal::Denied { reason } => {
            reason.iter_mut().for_each(|reason| words(redactor, reason));
        }
    }
}

/// An error without secrets, of bounded length.
pub(crate) fn error(redactor: &Redactor, mut error: CallError) -> CallError {
    mask_error(redactor, &mut error);
    error
}

/// A failure without secrets, of bounded length.
fn failure(redactor: &Redactor, mut failure: Failure) -> Failure {
    mask_failure(redactor, &mut failure);
    failure
}

/// Masks secrets in what programs can read about an error. What is too long is left out.
fn mask_data(redactor: &Redactor, data: &mut Option<Json>) {
    let Some(json) = data else { return };
    if json.text().len() > MAX_MESSAGE_BYTES {
        *data = None;
    } else if !redactor.is_idle() {
        redactor.texts(json.value_mut());
    }
}

fn mask_failure(redactor: &Redactor, failure: &mut Failure) {
    match failure {
        Failure::Answered(answer) => {
            words(redactor, &mut answer.message);
            mask_data(redactor, &mut answer.data);
        }
        Failure::Trapped(text)
        | Failure::Lost(text)
        | Failure::Contract(text)
        | Failure::Host(text) => words(redactor, text),
        Failure::LimitExceeded(_) | Failure::Deadline(_) | Failure::Unsupported(_) => {}
    }
}

fn words(redactor: &Redactor, text: &mut String) {
    redactor.redact(text);
    shorten(text, MAX_MESSAGE_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_config::log_capture::logged;
    use tenon_types::{
        Error, EvalDefinition, HookRegistration, ModelFeatures, PromptRole, ProviderDefinition,
        TokenUsage, ToolDefinition, Verdict,
    };

    const SECRET: &str = "hunter22";

    /// Masks what a plugin said.
    fn check<T: std::fmt::Debug>(mut said: T, mask: impl Fn(&Redactor, &mut T)) {
        mask(&Redactor::of(&[SECRET]), &mut said);
        let said = format!("{said:?}");
        assert!(!said.contains(SECRET), "{said}");
        let bytes = format!("{:?}", SECRET.as_bytes());
        assert!(!said.contains(bytes.trim_matches(['[', ']'])), "{said}");
    }

    fn text() -> String {
        format!("it is {SECRET}")
    }

    fn extra() -> Option<String> {
        Some(format!("{{\"{SECRET}\":\"\\u0068unter22\"}}"))
    }

    /// A part of a resource with this text.
    fn contents(text: &str) -> ResourceContents {
        let (uri, body) = ("a:b".into(), ResourceBody::Text(text.into()));
        ResourceContents { uri, mime_type: None, body, extra: None }
    }

    #[test]
    fn a_secret_that_is_split_over_blocks_of_any_kinds_is_masked() {
        let block = |body| ContentBlock { body, extra: None };
        let resource = |text: &str| block(Content::Resource(contents(text)));
        let text = |text: &str| block(Content::Text(text.into()));
        let named = |name: &str| {
            block(Content::ResourceLink(ResourceLink {
                uri: "a:b".into(),
                name: name.into(),
                title: None,
                description: None,
                mime_type: None,
                size: None,
            }))
        };
        let (begin, end) = SECRET.split_at(4);
        for content in [
            vec![text(begin), resource(end)],
            vec![resource(begin), resource(end)],
            vec![resource(begin), text(end)],
            vec![text(begin), named(end)],
            vec![named(begin), resource(end)],
        ] {
            let redactor = Redactor::of(&[SECRET]);
            let mut result = ToolResult { content, ..ToolResult::text("") };
            super::result(&redactor, &mut result);
            let shown = format!("{:?}", result.content);
            assert!(!shown.contains(begin) && !shown.contains(end), "{shown}");
        }
    }

    #[test]
    fn a_secret_that_is_split_over_parts_of_a_resource_is_masked() {
        let (begin, end) = SECRET.split_at(4);
        let mut parts = [begin, end].map(contents);
        read(&Redactor::of(&[SECRET]), &mut parts);
        let shown = format!("{parts:?}");
        assert!(!shown.contains(begin) && !shown.contains(end), "{shown}");
    }

    #[test]
    fn secrets_are_masked_wherever_they_can_stand() {
        let media = || Media { data: text().into_bytes(), mime_type: text() };
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
            check(vec![ContentBlock { body, extra: extra() }], |by, said| {
                blocks(by, said.iter_mut())
            });
        }
        check(ListedResource { link: link(), extra: extra() }, resource);
        let listed = ResourceTemplate {
            uri_template: text(),
            name: text(),
            title: Some(text()),
            description: Some(text()),
            mime_type: Some(text()),
            extra: extra(),
        };
        check(listed, template);
        // A name that has a secret leaves no list.
        check_said(vec![prompt_named(text())]);
        let content = ContentBlock { body: Content::Text(text()), extra: extra() };
        let message = PromptMessage { role: PromptRole::User, content, extra: extra() };
        let filled_in =
            Prompt { description: Some(text()), messages: vec![message], extra: extra() };
        check(filled_in, prompt);
        let tool = ToolDefinition {
            title: Some(text()),
            output_schema: extra(),
            extra: extra(),
            ..ToolDefinition::new(text(), text(), &serde_json::json!({ "description": text() }))
        };
        let identity =
            Identity { name: text(), version: text(), description: text(), extra: extra() };
        let eval = EvalDefinition { name: text(), description: text(), options_schema: extra() };
        let registered = Registration {
            tools: vec![tool],
            providers: vec![ProviderDefinition { name: text(), description: text() }],
            evals: vec![eval],
            hooks: vec![HookRegistration::new(HookPoint::Custom(text()))],
            ..Registration::new(identity)
        };
        check(registered, registration);
        let suggested =
            Suggestions { values: vec![text()], total: None, has_more: false, extra: extra() };
        check(suggested, suggestions);
    }

    /// A redactor that knows the secret.
    fn knowing() -> Arc<Redactor> {
        Arc::new(Redactor::of(&[SECRET]))
    }

    fn prompt_named(name: String) -> PromptDefinition {
        let argument = PromptArgument {
            name: "a".into(),
            title: Some(text()),
            description: Some(text()),
            required: true,
            extra: extra(),
        };
        PromptDefinition {
            name,
            title: Some(text()),
            description: Some(text()),
            arguments: vec![argument],
            extra: extra(),
        }
    }

    /// Masks what a plugin said as it leaves the plugin.
    fn check_said<T: MaskSecrets + std::fmt::Debug>(said: T) {
        check(said, |by, said| said.mask(&Arc::new(by.clone())));
    }

    #[test]
    fn whatever_a_plugin_answers_is_masked() {
        let content = || vec![ContentBlock { body: Content::Text(text()), extra: extra() }];
        let answer =
            ToolResult { content: content(), structured: extra(), is_error: false, extra: extra() };
        check_said(answer.clone());
        check_said(Some(answer.clone()));
        check_said(Ok::<_, Failure>(answer.clone()));
        let finding =
            Finding { criterion: text(), reason: text(), verdict: Verdict::Pass, score: None };
        let score = Evaluation {
            score: 1.0,
            verdict: Verdict::Pass,
            findings: vec![finding],
            extra: extra(),
        };
        check_said(score);
        let summary = CompletionSummary {
            model: text(),
            stop_reason: StopReason::Other(text()),
            usage: TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 },
            extra: extra(),
        };
        let parts = vec![
            Part::Text(text()),
            Part::Reasoning(Reasoning { text: text(), signature: Some(text()) }),
            Part::ToolCall(ToolCall {
                id: text(),
                name: text(),
                arguments: extra().unwrap_or_default(),
            }),
            Part::ToolCallResult(ToolCallResult {
                id: text(),
                content: content(),
                is_error: false,
            }),
            Part::Other(extra().unwrap_or_default()),
        ];
        check_said(Completion { parts, summary: summary.clone() });
        check_said(summary);
        let message = OutgoingMessage { channel: Some(text()), text: text(), extra: extra() };
        check_said(message);
        check_said(prompt_named("p".into()));
    }

    #[test]
    fn what_is_listed_under_a_name_with_a_secret_is_left_out_and_nothing_else() {
        let model = |id: String| ModelInfo {
            id,
            provider: "p".into(),
            title: Some(text()),
            context_window: None,
            max_output_tokens: None,
            features: ModelFeatures::default(),
        };
        let mut models = vec![model("a".into()), model(text()), model("b".into())];
        let said = logged(|| models.mask(&knowing()));
        assert!(said.contains("1 of 3 that it lists are left out"), "{said}");
        assert_eq!(logged(|| models.mask(&knowing())), "");
        let ids: Vec<&str> = models.iter().map(|model| model.id.as_str()).collect();
        assert_eq!(ids, ["a", "b"]);
        check_said(models);
        // What has no name cannot have a secret in it.
        let mut texts = vec![text(), "b".to_string()];
        texts.mask(&knowing());
        assert_eq!(texts, ["it is [redacted]", "b"]);
        let mut all = vec![model(text())];
        all.mask(&Arc::default());
        assert_eq!(all.len(), 1);
    }

    #[test]
    fn failures_and_errors_are_masked_and_bounded() {
        let answers = [
            Error::invalid_input(text()),
            Error::not_found(text()),
            Error::denied(text()),
            Error::timeout(text()),
            Error::cancelled(text()),
            Error::failed(text()),
            Error::unavailable(text()),
        ];
        let failures = answers.map(Failure::Answered).into_iter().chain([
            Failure::Trapped(text()),
            Failure::Lost(text()),
            Failure::Contract(text()),
            Failure::Host(text()),
        ]);
        for failure in failures {
            let masked = Unmasked::new(Err::<(), _>(failure.clone()));
            assert!(!masked.is_ok());
            let masked = masked.or_masked_failure(&knowing()).map(drop).expect_err("it is one");
            assert!(masked.to_string().contains("it is [redacted]"), "{masked}");
            check_said(failure.clone());
            check_said(CallError::Failed { plugin: "p".into(), failure });
        }
        assert!(Unmasked::new(Ok::<_, Failure>(())).is_ok());
        let (what, name) = ("tool", text);
        let refused = |refusal| CallError::NotApproved { tool: name(), refusal: Box::new(refusal) };
        for error in [
            CallError::NotFound { what, name: name(), nearest: Some(text()) },
            CallError::Disabled { tool: name(), by: "x" },
            CallError::Held { what, name: name(), plugin: "p".into(), why: text() },
            CallError::InvalidInput { what, name: name(), problems: vec![text()] },
            CallError::Vetoed { plugin: "p".into(), reason: text() },
            refused(CallRefusal::Pending {
                id: "A-1".into(),
                by: "x".into(),
                arguments: text(),
                was_interrupted: false,
                run: None,
            }),
            refused(CallRefusal::Unasked { by: "x".into(), problem: text() }),
            refused(CallRefusal::Unkept { by: "x".into(), problem: text() }),
            refused(CallRefusal::Denied { reason: Some(text()) }),
        ] {
            check_said(error);
        }
        let long = Failure::Trapped("x".repeat(2 * MAX_MESSAGE_BYTES));
        let Failure::Trapped(text) = failure(&knowing(), long) else { panic!("it is another") };
        assert!(text.len() <= MAX_MESSAGE_BYTES + 100, "{}", text.len());
    }

    #[test]
    fn whatever_a_plugin_asks_a_user_or_a_model_is_masked() {
        let members = || {
            let Value::Object(members) = serde_json::json!({ "m": { "n": text() } }) else {
                panic!("it is an object")
            };
            members
        };
        let schema = serde_json::json!({ "properties": { "a": { "title": text() } } });
        check(FormRequest { message: text(), schema, extra: members() }, form);
        let id = Some(text());
        check(UrlRequest { message: text(), url: text(), id, extra: members() }, page);
        let input_schema = extra().unwrap_or_default();
        let mut request = CompletionRequest {
            tools: vec![ModelTool { name: text(), description: text(), input_schema }],
            response_schema: extra(),
            extra: extra(),
            ..CompletionRequest::new(text(), text())
        };
        request.sampling.stop_sequences = vec![text()];
        check(request, completion_request);
    }

    #[test]
    fn the_data_of_an_error_is_masked_and_left_out_if_it_is_too_long() {
        let masked = |data: Value| {
            let mut data = Some(Json::from(data));
            mask_data(&knowing(), &mut data);
            data.map(|data| data.text().to_string())
        };
        let data = serde_json::json!({ "is": text() });
        assert_eq!(masked(data).as_deref(), Some(r#"{"is":"it is [redacted]"}"#));
        // Two of these bytes are the quotes of the JSON text.
        let of_bytes = |bytes: usize| Value::from("x".repeat(bytes - 2));
        assert!(masked(of_bytes(MAX_MESSAGE_BYTES)).is_some());
        assert_eq!(masked(of_bytes(MAX_MESSAGE_BYTES + 1)), None);
    }
}
