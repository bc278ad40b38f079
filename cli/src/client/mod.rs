//! What the command is to plugins and servers as their host: somebody who fills in forms, a model for their
//! questions, and a place for their messages. It remembers nothing.

pub(crate) mod form;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io::{self, BufRead, Write};
use std::process::Stdio;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tenon_config::config::SamplingAndMessageSettings;
use tenon_host::services::{
    AskingPlugin, CallClient, ClientFeature, ClientFeatures, Messaging, Offers,
};
use tenon_host::types::completion_json;
use tenon_host::types::text::{one_line, visible};
use tenon_host::types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, OutgoingMessage, Part, Role,
    UrlAnswer, UrlRequest,
};
use tenon_host::{Caller, Platform};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Mutex as AsyncMutex;

use crate::approval::is_terminal;
use crate::{Common, output, progress};

/// The most of a text that somebody is shown who is asked about it, in characters: of a longer one its
/// beginning, this much of its end, and how much there is between them.
const MAX_SHOWN: usize = 2000;
const MAX_SHOWN_END: usize = 400;

/// The command as a host.
#[derive(Clone)]
pub(crate) struct Client(Arc<Inner>);

struct Inner {
    /// Answers that were prepared; nothing where there are none.
    answers: Option<Mutex<ScriptedAnswers>>,
    settings: SamplingAndMessageSettings,
    /// There is one terminal, and one question at a time.
    terminal: Arc<AsyncMutex<()>>,
    /// Where the model is, once there is a platform.
    platform: OnceLock<Platform>,
}

/// Answers as a file has them: JSON that is checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct PreparedAnswers(Value);

impl PreparedAnswers {
    /// Reads those of a command; nothing where it has none.
    ///
    /// # Errors
    ///
    /// Where its file cannot be read, or has something else.
    pub(crate) fn read(common: &Common) -> Result<Option<Self>, crate::error::Error> {
        let Some(file) = &common.answers else { return Ok(None) };
        let value = output::read_json("answers", &format!("@{}", file.display()))?;
        ScriptedAnswers::read(value.clone()).map_err(|problem| {
            crate::error::Error::Input(format!("{}: {problem}", file.display()))
        })?;
        Ok(Some(Self(value)))
    }

    /// All of them, from the first. What another program sent may be none.
    fn all(&self) -> ScriptedAnswers {
        ScriptedAnswers::read(self.0.clone()).unwrap_or_default()
    }
}

/// Answers to what servers ask of their user.
#[derive(Default)]
struct ScriptedAnswers {
    rest: VecDeque<Answer>,
    /// Whether the last is for all that follow.
    repeats: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    /// The user fills the form in, or opens the page.
    Accept(Map<String, Value>),
    /// The user does not want to.
    Decline,
    /// The user did not decide.
    Cancel,
}

impl ScriptedAnswers {
    /// Reads one answer, which is for every question, or a list with one for each.
    fn read(value: Value) -> Result<Self, String> {
        let (list, repeats) = match value {
            Value::Array(list) => (list, false),
            one => (vec![one], true),
        };
        let rest = list.into_iter().map(Answer::read).collect::<Result<_, _>>()?;
        Ok(Self { rest, repeats })
    }

    fn next(&mut self) -> Option<Answer> {
        match self.repeats {
            true => self.rest.front().cloned(),
            false => self.rest.pop_front(),
        }
    }
}

impl Answer {
    fn read(value: Value) -> Result<Self, String> {
        let problem = "an answer is {\"accept\": {…}}, \"decline\" or \"cancel\"";
        match value {
            Value::String(word) if word == "decline" => Ok(Self::Decline),
            Value::String(word) if word == "cancel" => Ok(Self::Cancel),
            Value::Object(mut members) => match (members.remove("accept"), members.is_empty()) {
                (Some(Value::Object(content)), true) => Ok(Self::Accept(content)),
                _ => Err(problem.into()),
            },
            _ => Err(problem.into()),
        }
    }
}

impl Client {
    pub(crate) fn new(
        common: &Common,
        settings: SamplingAndMessageSettings,
    ) -> Result<Self, crate::error::Error> {
        Ok(Self(Arc::new(Inner {
            answers: PreparedAnswers::read(common)?.map(|answers| Mutex::new(answers.all())),
            settings,
            terminal: Arc::default(),
            platform: OnceLock::new(),
        })))
    }

    /// The same for one call, which answers were prepared for.
    pub(crate) fn for_call(&self, answers: Option<&PreparedAnswers>) -> Self {
        let Some(answers) = answers else { return self.clone() };
        let Inner { settings, terminal, platform, .. } = &*self.0;
        Self(Arc::new(Inner {
            answers: Some(Mutex::new(answers.all())),
            settings: settings.clone(),
            terminal: terminal.clone(),
            platform: platform.clone(),
        }))
    }

    /// Whether a model answers servers.
    fn samples(&self) -> bool {
        self.0.settings.sampling_model.is_some()
    }

    /// Has the models of this platform answer.
    pub(crate) fn ask_models_of(&self, platform: &Platform) {
        // There is one platform.
        let _ = self.0.platform.set(platform.clone());
    }

    /// The answer that was prepared, or that somebody gives on the terminal.
    async fn answer(
        &self,
        requester: &AskingPlugin,
        ask: impl FnOnce() -> Option<Answer> + Send + 'static,
    ) -> Answer {
        if let Some(answers) = &self.0.answers {
            let next = answers.lock().unwrap_or_else(PoisonError::into_inner).next();
            return next.unwrap_or_else(|| {
                tracing::warn!("plugin \"{}\" asks more than there are answers", requester.plugin);
                Answer::Cancel
            });
        }
        let _terminal = self.0.terminal.lock().await;
        tokio::task::spawn_blocking(ask).await.ok().flatten().unwrap_or(Answer::Cancel)
    }
}

#[async_trait]
impl ClientFeatures for Client {
    fn offers(&self) -> Offers {
        let answers = self.0.answers.is_some() || is_terminal();
        // Who is not asked has said so.
        let samples = self.samples() && (!self.0.settings.sampling_asks || is_terminal());
        // Nobody who prepares answers to forms has seen which page would be opened.
        let pages = self.0.answers.is_none() && is_terminal();
        Offers { forms: answers, pages, sampling: samples, roots: false }
    }

    fn remedy(&self, missing: ClientFeature) -> String {
        let remedy = match missing {
            ClientFeature::Forms => "run it on a terminal, or answer with `--answers FILE`",
            ClientFeature::Sampling if !self.samples() => {
                "set `model` under [sampling] in the user's configuration"
            }
            ClientFeature::Sampling => {
                "run it on a terminal, or set `ask = false` under [sampling] in the user's configuration"
            }
            _ => "run it on a terminal, without `--answers`",
        };
        remedy.into()
    }

    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        let fields = form::fields(&form.schema).map_err(Error::invalid_input)?;
        let (shown, plugin) = (fields.clone(), requester.plugin.clone());
        let ask = move || ask_form(&plugin, &form.message, &shown);
        let given = match self.answer(requester, ask).await {
            Answer::Decline => return Ok(FormAnswer::Declined),
            Answer::Cancel => return Ok(FormAnswer::Cancelled),
            Answer::Accept(given) => given,
        };
        if let Some(name) = form::unknown(&fields, &given) {
            tracing::warn!(
                "the form of plugin \"{}\" has no member {name:?}, so its answer is left out",
                requester.plugin
            );
        }
        Ok(match form::filled_in(&fields, &given) {
            Ok(content) => FormAnswer::Accepted(content),
            Err(problem) => {
                tracing::warn!("plugin \"{}\" is not answered: {problem}", requester.plugin);
                FormAnswer::Cancelled
            }
        })
    }

    async fn ask_url(
        &self,
        requester: &AskingPlugin,
        page: UrlRequest,
    ) -> Result<UrlAnswer, Error> {
        let plugin = requester.plugin.clone();
        Ok(match self.answer(requester, move || ask_page(&plugin, &page)).await {
            Answer::Accept(_) => UrlAnswer::Accepted,
            Answer::Decline => UrlAnswer::Declined,
            Answer::Cancel => UrlAnswer::Cancelled,
        })
    }

    async fn complete(
        &self,
        requester: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        let SamplingAndMessageSettings { sampling_model, sampling_asks, .. } = &self.0.settings;
        let (Some(model), Some(platform)) = (sampling_model, self.0.platform.get()) else {
            return Err(Error::denied("no default model is configured"));
        };
        if *sampling_asks {
            let _terminal = self.0.terminal.lock().await;
            let question = question_of_sampling(&requester.plugin, &request, model);
            let allowed =
                tokio::task::spawn_blocking(move || choice(&question, &["y", "n"]) == Some("y"));
            if !allowed.await.unwrap_or(false) {
                return Err(Error::denied("the user does not want it"));
            }
        }
        let by = Some(requester.plugin.as_str().into());
        let caller = Caller { by, depth: 1, ..Caller::default() };
        let request = CompletionRequest { model: model.clone(), ..request };
        let completion = platform.complete(request, &caller).await;
        completion.map_err(|error| Error::unavailable(error.to_string()))
    }
}

impl CallClient for Client {}

#[async_trait]
impl Messaging for Client {
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let Some((program, arguments)) = self.0.settings.message_command.split_first() else {
            let to = message.channel.map(|channel| format!(" to {channel}")).unwrap_or_default();
            let text = format!("[message of {plugin}{to}] {}\n", message.text);
            // Where standard error is closed there is nobody to tell.
            let _ = progress::stderr().write_all(visible(&text).as_bytes());
            return Ok(());
        };
        let failed = |problem: String| {
            let message = format!("the message is not sent: {problem}");
            Error::unavailable(message)
        };
        let extra = message.extra.as_deref().map(serde_json::from_str::<Value>);
        let form = json!({
            "plugin": plugin,
            "channel": message.channel,
            "text": message.text,
            "extra": extra.and_then(Result::ok),
        });
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| failed(format!("{program}: {error}")))?;
        if let Some(mut input) = child.stdin.take() {
            // One that does not read its input may have all that it wants to know.
            let _ = input.write_all(format!("{form}\n").as_bytes()).await;
        }
        let status = child.wait().await.map_err(|error| failed(error.to_string()))?;
        match status.success() {
            true => Ok(()),
            false => Err(failed(format!("{program} ended with {status}"))),
        }
    }
}

/// What a plugin asks, as it is shown. The plugin has a say in the words.
fn asks(plugin: &str, message: &str) -> String {
    let message = visible(message).trim_end().replace('\n', "\n  | ");
    format!("plugin \"{}\" asks: {message}\n", one_line(plugin))
}

/// Asks on the terminal for a page to be opened; nothing where nobody answers.
fn ask_page(plugin: &str, page: &UrlRequest) -> Option<Answer> {
    let asked = asks(plugin, &page.message);
    let question = format!(
        "{asked}  it wants you to open {}\ndo you? [y]es, [n]o, [c]ancel: ",
        one_line(&page.url)
    );
    choice(&question, &["y", "n", "c"]).map(|choice| match choice {
        "y" => Answer::Accept(Map::new()),
        "n" => Answer::Decline,
        _ => Answer::Cancel,
    })
}

/// Has a form filled in on the terminal; nothing where nobody answers.
fn ask_form(plugin: &str, message: &str, fields: &[form::Field]) -> Option<Answer> {
    let asked = asks(plugin, message);
    match choice(&format!("{asked}answer it? [y]es, [n]o, [c]ancel: "), &["y", "n", "c"])? {
        "y" => {}
        "n" => return Some(Answer::Decline),
        _ => return Some(Answer::Cancel),
    }
    let mut content = Map::new();
    for field in fields {
        let mut question = field.question();
        loop {
            match field.read(&line(&question)?) {
                Ok(value) => {
                    content.extend(value.map(|value| (field.name.clone(), value)));
                    break;
                }
                Err(problem) => question = format!("  it {problem}: "),
            }
        }
    }
    Some(Answer::Accept(content))
}

/// Shows all that a model would be told, and asks whether it may be.
fn question_of_sampling(plugin: &str, request: &CompletionRequest, model: &str) -> String {
    let mut question =
        format!("plugin \"{}\" asks the model {}:\n", one_line(plugin), one_line(model));
    let mut say = |who: &str, said: &str| {
        let said = visible(said).trim_end().replace('\n', "\n  | ");
        question.push_str(&format!("  [{}] {}\n", one_line(who), ends_of(&said)));
    };
    for message in &request.messages {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool result",
        };
        for part in &message.parts {
            match part {
                Part::Text(text) => say(role, text),
                other => say(role, &completion_json::part(other).to_string()),
            }
        }
    }
    for tool in &request.tools {
        say("tool", &format!("{}: {} {}", tool.name, tool.description, tool.input_schema));
    }
    question.push_str("may it? [y]es, [n]o: ");
    question
}

/// A text as far as somebody is shown it: both its ends, and how much is left out between them.
fn ends_of(text: &str) -> String {
    let length = text.chars().count();
    if length <= MAX_SHOWN {
        return text.to_string();
    }
    let beginning: String = text.chars().take(MAX_SHOWN - MAX_SHOWN_END).collect();
    let end: String = text.chars().skip(length - MAX_SHOWN_END).collect();
    format!("{beginning}\n  [{} characters are not shown]\n  | {end}", length - MAX_SHOWN)
}

/// Asks until one of these is chosen, by its letter or a word that begins with it.
fn choice(question: &str, letters: &[&'static str]) -> Option<&'static str> {
    let words = [("y", "yes"), ("n", "no"), ("c", "cancel")];
    let mut question = question.to_string();
    loop {
        let answer = line(&question)?.to_lowercase();
        let meant = words.iter().find(|(letter, word)| [*letter, *word].contains(&&*answer));
        if let Some((letter, _)) = meant.filter(|(letter, _)| letters.contains(letter)) {
            return Some(letter);
        }
        question = format!("  one of {}: ", letters.join(", "));
    }
}

/// Asks for a line; nothing where nobody answers.
pub(crate) fn line(question: &str) -> Option<String> {
    // Where standard error is closed there is nobody to ask.
    progress::stderr().write_all(question.as_bytes()).ok()?;
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_for_each_question_or_for_all() {
        let accept = |value: Value| Some(Answer::Accept(value.as_object().unwrap().clone()));
        let mut one = ScriptedAnswers::read(json!({ "accept": { "a": 1 } })).unwrap();
        assert_eq!(
            (one.next(), one.next()),
            (accept(json!({ "a": 1 })), accept(json!({ "a": 1 })))
        );
        let mut list =
            ScriptedAnswers::read(json!(["decline", { "accept": {} }, "cancel"])).unwrap();
        assert_eq!(list.next(), Some(Answer::Decline));
        assert_eq!(list.next(), accept(json!({})));
        assert_eq!((list.next(), list.next()), (Some(Answer::Cancel), None));
        for value in [
            json!("yes"),
            json!({}),
            json!({ "accept": 1 }),
            json!({ "accept": {}, "b": 1 }),
            json!([1]),
        ] {
            assert!(ScriptedAnswers::read(value.clone()).is_err(), "{value}");
        }
    }
}
