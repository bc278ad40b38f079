//! The client that a request comes from, as the platform sees it: who hears how a call goes, and answers what plugins
//! ask of a user or a model meanwhile.
//!
//! The eras ask in two ways. A legacy client gets a request of the server's in the middle of its own, and answers it.
//! A modern one gets the questions as the result of its request, and repeats the request with the answers; the call
//! waits meanwhile (`crate::parked`).

mod answers;
mod form;
mod outlet;
mod roots_answer;
mod sampling;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use tenon_host::services::{
    AskingPlugin, CallClient, ClientFeature, ClientFeatures, LogMessage, Offers, Progress,
};
use tenon_host::types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, INPUT_KEY, LogLevel, Root,
    UrlAnswer, UrlRequest,
};
use tokio::sync::{mpsc, oneshot};

pub(crate) use answers::{PendingAnswers, QuestionLimits};
pub(crate) use outlet::Outlet;

use crate::lock;
use crate::protocol::capabilities::{ClientCapabilities, Severity};
use crate::protocol::meta::ProgressToken;
use crate::protocol::write;

/// A question to the user or a model behind a modern client, which waits for its answer.
#[derive(Debug)]
pub(crate) struct Question {
    /// Its name among the questions of the call.
    pub(crate) key: String,
    pub(crate) method: &'static str,
    pub(crate) params: Value,
    /// Where the answer goes.
    pub(crate) answer: oneshot::Sender<Value>,
}

/// How the client is asked.
enum AskMode {
    /// By requests of the server's.
    Requests(Arc<PendingAnswers>),
    /// By a result that the client answers with the next request.
    Results(mpsc::UnboundedSender<Question>),
}

/// Where news of the call go. It changes where a call goes on with another request.
struct NotificationSink {
    outlet: Outlet,
    token: Option<ProgressToken>,
    /// The least of what is logged that is wanted.
    level: Option<Severity>,
}

/// The client of one call.
pub(crate) struct RequestClient {
    capabilities: ClientCapabilities,
    asking: AskMode,
    listener: Mutex<NotificationSink>,
    /// How far the call has come: what is told of it only grows.
    done: Mutex<f64>,
    state: Mutex<CallQuestions>,
}

/// What was asked so far.
#[derive(Default)]
struct CallQuestions {
    /// How many questions there were.
    count: u64,
    /// Answers that came before their questions.
    early: Map<String, Value>,
    /// What was needed that the client has not declared.
    missing: Option<ClientFeature>,
}

impl RequestClient {
    /// A legacy client, which is asked by requests.
    pub(crate) fn legacy(
        capabilities: ClientCapabilities,
        pending: Arc<PendingAnswers>,
        outlet: Outlet,
        token: Option<ProgressToken>,
        level: Option<Severity>,
    ) -> Self {
        Self::new(
            capabilities,
            AskMode::Requests(pending),
            NotificationSink { outlet, token, level },
        )
    }

    /// A modern client, and the questions to it. `early` are answers that it has sent without being asked.
    pub(crate) fn modern(
        capabilities: ClientCapabilities,
        outlet: Outlet,
        token: Option<ProgressToken>,
        level: Option<Severity>,
        early: Map<String, Value>,
    ) -> (Self, mpsc::UnboundedReceiver<Question>) {
        let (sender, questions) = mpsc::unbounded_channel();
        let client = Self::new(
            capabilities,
            AskMode::Results(sender),
            NotificationSink { outlet, token, level },
        );
        lock(&client.state).early = early;
        (client, questions)
    }

    fn new(capabilities: ClientCapabilities, asking: AskMode, listener: NotificationSink) -> Self {
        Self {
            capabilities,
            asking,
            listener: Mutex::new(listener),
            done: Mutex::new(f64::NEG_INFINITY),
            state: Mutex::default(),
        }
    }

    /// The call goes on with another request of the same client.
    pub(crate) fn go_on_with(
        &self,
        outlet: Outlet,
        token: Option<ProgressToken>,
        level: Option<Severity>,
    ) {
        *lock(&self.listener) = NotificationSink { outlet, token, level };
    }

    /// The call waits, and nobody hears of it meanwhile.
    pub(crate) fn rest(&self) {
        self.go_on_with(Outlet::closed_one(), None, None);
    }

    /// Answers that came before their questions, where a call goes on.
    pub(crate) fn add_early(&self, answers: Map<String, Value>) {
        lock(&self.state).early.extend(answers);
    }

    /// What a plugin needed of the client that it has not declared.
    pub(crate) fn missing(&self) -> Option<ClientFeature> {
        lock(&self.state).missing
    }

    /// Puts a question to the client until there is an answer that `read` takes.
    async fn put<T>(
        &self,
        method: &'static str,
        mut params: Value,
        read: impl Fn(&Value) -> Result<T, String> + Send + Sync,
    ) -> Result<T, Error> {
        let key = self.key_of(&mut params);
        match &self.asking {
            AskMode::Requests(pending) => {
                let outlet = lock(&self.listener).outlet.clone();
                let answer = pending.ask(&outlet, method, &params).await?;
                read(&answer).map_err(|problem| {
                    Error::failed(format!(
                        "the client answers in a way that nobody understands: {problem}"
                    ))
                })
            }
            AskMode::Results(questions) => loop {
                let early = lock(&self.state).early.remove(&key);
                if let Some(answer) = early.and_then(|answer| read(&answer).ok()) {
                    return Ok(answer);
                }
                let (sender, answer) = oneshot::channel();
                let (key, params) = (key.clone(), params.clone());
                let question = Question { key, method, params, answer: sender };
                let gone = |_| Error::cancelled("the client has given up");
                questions.send(question).map_err(|_| gone(()))?;
                // One that is wrong is as good as none: the client is asked again.
                if let Ok(answer) = read(&answer.await.map_err(|_| gone(()))?) {
                    return Ok(answer);
                }
            },
        }
    }

    /// The name of a question: what the plugin calls it in `_meta`, the title of its form, or its number.
    fn key_of(&self, params: &mut Value) -> String {
        let mut state = lock(&self.state);
        state.count += 1;
        let number = state.count;
        let meta = params.get_mut("_meta").and_then(Value::as_object_mut);
        let named = meta.and_then(|meta| meta.remove(INPUT_KEY));
        if params["_meta"].as_object().is_some_and(Map::is_empty) {
            params.as_object_mut().map(|params| params.remove("_meta"));
        }
        match named {
            Some(Value::String(name)) if !name.is_empty() && name.len() <= 64 => name,
            _ => {
                let title = params["requestedSchema"]["title"].as_str().and_then(key_of_title);
                title.unwrap_or_else(|| format!("question-{number}"))
            }
        }
    }
}

/// A title as a key: `UserName` and `User name` are `user_name`. Nothing where it has nothing that a key may have.
fn key_of_title(title: &str) -> Option<String> {
    let mut key = String::new();
    let mut was_lower = false;
    for character in title.chars().take(64) {
        match character {
            'A'..='Z' => {
                if was_lower {
                    key.push('_');
                }
                key.push(character.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' => key.push(character),
            _ if key.ends_with('_') => {}
            _ => key.push('_'),
        }
        was_lower = character.is_ascii_lowercase() || character.is_ascii_digit();
    }
    let key = key.trim_matches('_');
    (!key.is_empty()).then(|| key.to_string())
}

/// What a user is asked, with who asks: a client knows one server, and the user is to know which plugin it is.
fn said_by(requester: &AskingPlugin, message: String) -> String {
    match requester.is_host {
        true => message,
        false => format!("The plugin \"{}\" asks: {message}", requester.plugin),
    }
}

#[async_trait]
impl ClientFeatures for RequestClient {
    fn offers(&self) -> Offers {
        self.capabilities.offers()
    }

    fn remedy(&self, missing: ClientFeature) -> String {
        // It is asked for where something is refused, and for nothing else.
        lock(&self.state).missing = Some(missing);
        let capability = match missing {
            ClientFeature::Sampling => "`sampling`",
            ClientFeature::Roots => "`roots`",
            ClientFeature::Pages => "`elicitation` with the mode `url`",
            _ => "`elicitation`",
        };
        format!("the MCP client has not declared {capability}")
    }

    async fn ask(
        &self,
        requester: &AskingPlugin,
        mut form: FormRequest,
    ) -> Result<FormAnswer, Error> {
        form.message = said_by(requester, form.message);
        let params = form::params(form);
        let schema = params["requestedSchema"].clone();
        self.put("elicitation/create", params, |answer| form::read_answer(&schema, answer)).await
    }

    async fn ask_url(
        &self,
        requester: &AskingPlugin,
        mut page: UrlRequest,
    ) -> Result<UrlAnswer, Error> {
        page.message = said_by(requester, page.message);
        self.put("elicitation/create", form::page_params(page), form::read_page_answer).await
    }

    async fn complete(
        &self,
        _: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        if !request.tools.is_empty() && !self.capabilities.sampling_tools {
            return Err(Error::denied(
                "the MCP client has not declared `sampling.tools`, so its model calls no tools",
            ));
        }
        let params = sampling::params(&request)?;
        self.put("sampling/createMessage", params, sampling::read_answer).await
    }

    async fn roots(&self, _: &AskingPlugin) -> Result<Vec<Root>, Error> {
        self.put("roots/list", json!({}), roots_answer::read_answer).await
    }
}

impl CallClient for RequestClient {
    fn progress(&self, Progress { done, total, message, .. }: Progress) {
        let listener = lock(&self.listener);
        let Some(token) = &listener.token else { return };
        let mut before = lock(&self.done);
        // What is told of a call's progress has to grow.
        if !done.is_finite() || done <= *before {
            return;
        }
        *before = done;
        let mut params =
            format!(r#"{{"progressToken":{},"progress":{}"#, token.json(), json!(done));
        if let Some(total) = total.filter(|total| total.is_finite()) {
            params += &format!(r#","total":{}"#, json!(total));
        }
        if let Some(message) = message {
            params += &format!(r#","message":{}"#, json!(message));
        }
        params.push('}');
        listener.outlet.tell(write::notification("notifications/progress", Some(&params)));
    }

    fn wants_log(&self, level: LogLevel) -> bool {
        lock(&self.listener).level.is_some_and(|least| Severity::from(level) >= least)
    }

    fn log(&self, LogMessage { plugin, level, text, .. }: LogMessage) {
        let level = Severity::from(level).name();
        let params = json!({ "level": level, "logger": &*plugin, "data": text }).to_string();
        let outlet = lock(&self.listener).outlet.clone();
        outlet.tell(write::notification("notifications/message", Some(&params)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::meta::Meta;

    fn both() -> ClientCapabilities {
        ClientCapabilities { forms: true, sampling: true, ..ClientCapabilities::default() }
    }

    fn name_form() -> FormRequest {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        FormRequest::new("Who?", schema)
    }

    #[tokio::test]
    async fn progress_is_told_by_its_token_and_only_grows() {
        let (outlet, mut sent) = Outlet::new(8);
        let params = r#"{"_meta":{"progressToken":"t"}}"#.to_string();
        let params = serde_json::value::RawValue::from_string(params).unwrap();
        let token = Meta::find(Some(&params)).legacy().unwrap().progress_token;
        let (client, _questions) =
            RequestClient::modern(both(), outlet, token, Some(Severity::Warning), Map::new());
        for (done, total) in
            [(0.0, Some(2.0)), (0.0, None), (1.5, None), (1.0, None), (f64::NAN, None)]
        {
            client.progress(Progress::new(done, total, Some("so".into())));
        }
        assert!(client.wants_log(LogLevel::Warn) && !client.wants_log(LogLevel::Info));
        client.log(LogMessage::new("p".into(), LogLevel::Error, "bad".into()));
        drop(client);
        let mut all = Vec::new();
        while let Some(message) = sent.recv().await {
            let message: Value = serde_json::from_str(&message).unwrap();
            all.push(message["params"].clone());
        }
        assert_eq!(
            all,
            [
                json!({ "progressToken": "t", "progress": 0.0, "total": 2.0, "message": "so" }),
                json!({ "progressToken": "t", "progress": 1.5, "message": "so" }),
                json!({ "level": "error", "logger": "p", "data": "bad" }),
            ]
        );
    }

    #[tokio::test]
    async fn a_wrong_answer_is_as_good_as_none() {
        let (outlet, _sent) = Outlet::new(8);
        let (client, mut questions) = RequestClient::modern(both(), outlet, None, None, Map::new());
        let answers = async {
            let mut keys = Vec::new();
            for answer in [json!(3), json!({ "action": "accept", "content": { "name": "Ada" } })] {
                let question = questions.recv().await.unwrap();
                keys.push(question.key);
                question.answer.send(answer).unwrap();
            }
            keys
        };
        let requester = AskingPlugin::default();
        let (answer, keys) = tokio::join!(client.ask(&requester, name_form()), answers);
        assert_eq!(answer, Ok(FormAnswer::accept([("name", "Ada")])));
        assert_eq!(keys, ["question-1", "question-1"]);
    }

    #[tokio::test]
    async fn an_answer_may_come_before_its_question() {
        let (outlet, _sent) = Outlet::new(8);
        let early = json!({ "who": { "action": "decline" }, "other": 1 });
        let early = early.as_object().unwrap().clone();
        let (client, mut questions) = RequestClient::modern(both(), outlet, None, None, early);
        let mut form = name_form();
        form.extra.insert("_meta".into(), json!({ INPUT_KEY: "who", "x": 1 }));
        let requester = AskingPlugin::default();
        assert_eq!(client.ask(&requester, form.clone()).await, Ok(FormAnswer::Declined));
        // It is used once.
        let asked = async {
            let question = questions.recv().await.unwrap();
            assert_eq!((&*question.key, &question.params["_meta"]), ("who", &json!({ "x": 1 })));
            question.answer.send(json!({ "action": "cancel" })).unwrap();
        };
        let (answer, ()) = tokio::join!(client.ask(&requester, form), asked);
        assert_eq!(answer, Ok(FormAnswer::Cancelled));
    }

    #[test]
    fn a_question_is_called_what_its_form_is() {
        let check = |title: &str, key: Option<&str>| {
            assert_eq!(key_of_title(title).as_deref(), key, "{title}");
        };
        check("UserName", Some("user_name"));
        check("User name", Some("user_name"));
        check("user_name", Some("user_name"));
        check("HTTP server 2", Some("http_server_2"));
        check("  \u{e9} -- ", None);
        check("", None);
    }

    #[tokio::test]
    async fn a_call_whose_request_is_gone_is_cancelled() {
        let (outlet, _sent) = Outlet::new(8);
        let (client, questions) = RequestClient::modern(both(), outlet, None, None, Map::new());
        drop(questions);
        let answer = client.ask(&AskingPlugin::default(), name_form()).await;
        assert_eq!(answer.unwrap_err().code, tenon_host::types::ErrorCode::Cancelled);
    }
}
