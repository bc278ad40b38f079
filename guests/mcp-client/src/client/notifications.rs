//! What the server tells by itself.

use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;

use super::{
    Action, Client, EmptyLists, Error, InFlight, LogLevel, NEVER, OperationId, Outcome, Purpose,
    Request,
};
use crate::message::JsonSlice;
use crate::raw_json::Members;
use crate::settings::Era;

/// How long after the first word of it the tools are said to have changed, in milliseconds: servers
/// tell several times in a row.
const DEBOUNCE_MILLIS: u64 = 100;

/// How far apart reports of one operation's progress are, in milliseconds; those between are left
/// out, but for the last.
const PROGRESS_INTERVAL_MILLIS: u64 = 50;

/// How often a stream of news is begun anew that the server ends, without anything having come.
const MAX_LISTEN_ATTEMPTS: u32 = 5;

/// How long to wait before the first of them; each further one waits twice as long.
const LISTEN_RETRY_MILLIS: u64 = 1_000;

/// What the server was asked to tell. It is asked again on the next connection.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    uris: BTreeSet<String>,
    /// In the newer era, the request whose stream brings it.
    stream: Option<u64>,
    /// The oldest stream that may still bring some: one that another took the place of has news until the
    /// server has heard of the other.
    oldest: Option<u64>,
    /// How often it was begun.
    attempts: u32,
    /// When to begin it again.
    again: Option<u64>,
}

impl Subscriptions {
    pub(super) fn due(&self) -> Option<u64> {
        self.again
    }

    /// The connection is gone. What was subscribed to is asked for again on the next.
    pub(super) fn lost(&mut self) {
        self.stream = None;
        self.oldest = None;
        self.attempts = 0;
        self.again = None;
    }

    /// Whether news that name the stream of this request are of one that was asked for.
    fn brings(&self, request: u64) -> bool {
        let (Some(oldest), Some(newest)) = (self.oldest, self.stream) else { return false };
        (oldest..=newest).contains(&request)
    }
}

/// The request whose stream brings some news, where they name one. What names its stream in a way of the
/// server's own says nothing.
fn stream_of(params: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "io.modelcontextprotocol/subscriptionId")]
        stream: Value,
    }
    match serde_json::from_str::<Params>(params).ok()?.meta.stream {
        Value::Number(id) => id.as_f64().map(|id| id as u64),
        Value::String(id) => id.parse().ok(),
        _ => None,
    }
}

impl Client {
    pub(super) fn notified(&mut self, method: &str, params: &str) {
        let stream = (self.era() == Some(Era::Modern)).then(|| stream_of(params)).flatten();
        // Those of a stream that is over, or never was, are nobody's.
        if stream.is_some_and(|stream| !self.subscriptions.brings(stream)) {
            return;
        }
        match method {
            "notifications/tools/list_changed" => self.note_change(),
            // They are listed whenever somebody wants them; that there are any is news.
            "notifications/resources/list_changed" if self.awaited.resources => self.note_change(),
            "notifications/prompts/list_changed" if self.awaited.prompts => self.note_change(),
            "notifications/resources/updated" => {
                #[derive(Deserialize)]
                struct Params {
                    uri: String,
                }
                if let Ok(Params { uri }) = serde_json::from_str(params) {
                    self.actions.push_back(Action::ResourceUpdated(uri));
                }
            }
            "notifications/subscriptions/acknowledged" => self.acknowledged(stream, params),
            "notifications/progress" => self.progressed(params),
            "notifications/message" => self.logged(params),
            "notifications/cancelled" => self.not_wanted(params),
            _ => {}
        }
    }

    fn note_change(&mut self) {
        self.tools_changed.get_or_insert(self.now + DEBOUNCE_MILLIS);
    }

    /// Says which lists have nothing. Once the server tells of a change of one of them, it is
    /// [`Action::ToolsChanged`].
    pub fn await_lists(&mut self, awaited: EmptyLists, now: u64) {
        self.now = now;
        let is_new = self.awaited != awaited;
        self.awaited = awaited;
        // The stream of news tells of what it was asked for.
        if is_new && self.era() == Some(Era::Modern) {
            self.subscriptions.attempts = 0;
            self.listen();
        }
    }

    fn progressed(&mut self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: f64,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let Ok(Params { progress_token, progress, total, message }) = serde_json::from_str(params)
        else {
            return;
        };
        // The token is the request's id. One that is over has no progress.
        let request = self.in_flight.get_mut(&(progress_token as u64));
        // Nobody waits for the end of what the client asks for itself.
        let Some(request) = request.filter(|request| !request.purpose.is_own()) else { return };
        let last = total.is_some_and(|total| progress >= total);
        if !last
            && request.progressed.is_some_and(|then| self.now < then + PROGRESS_INTERVAL_MILLIS)
        {
            return;
        }
        request.progressed = Some(self.now);
        let operation = request.operation;
        self.actions.push_back(Action::Progress { operation, progress, total, message });
    }

    fn logged(&mut self, params: &str) {
        #[derive(Deserialize)]
        struct Params {
            #[serde(default)]
            level: String,
            #[serde(default)]
            data: Value,
            #[serde(default)]
            logger: Value,
        }
        let Ok(Params { level, data, logger }) = serde_json::from_str(params) else { return };
        let level = match level.as_str() {
            "debug" => LogLevel::Debug,
            "warning" => LogLevel::Warn,
            "error" | "critical" | "alert" | "emergency" => LogLevel::Error,
            _ => LogLevel::Info,
        };
        let message = match data {
            Value::String(text) => text,
            other => other.to_string(),
        };
        let logger = logger.as_str().map(str::to_string);
        self.actions.push_back(Action::Log { level, message, logger });
    }

    /// Asks to be told when a resource changes, or not any more, where the server declares that it tells.
    pub fn subscribe(&mut self, uri: &str, wanted: bool, now: u64) -> OperationId {
        self.now = now;
        if self.server().is_some_and(|server| !server.capabilities.subscriptions) {
            let operation = self.operation();
            let problem = "the server does not tell when resources change";
            self.finish(operation, Err(Error::Undeclared(problem.into())));
            return operation;
        }
        if self.era() == Some(Era::Modern) {
            let changed = match wanted {
                true => self.subscriptions.uris.insert(uri.to_string()),
                false => self.subscriptions.uris.remove(uri),
            };
            let operation = self.operation();
            if changed {
                self.subscriptions.attempts = 0;
                self.listen();
            }
            self.finish(operation, Ok(Outcome::Result(JsonSlice::from("{}"))));
            return operation;
        }
        let method = if wanted { "resources/subscribe" } else { "resources/unsubscribe" };
        let params = Members::new().with("uri", uri);
        let request = Request {
            method,
            params,
            meta: Members::new(),
            subject: Some(uri),
            timeout: None,
            progress: false,
            task: false,
            features: None,
        };
        self.request(request, now)
    }

    /// Notes what a server of the older era has agreed to tell, or to tell no more.
    pub(super) fn subscribed(&mut self, method: &str, uri: Option<&str>) {
        match (method, uri) {
            ("resources/subscribe", Some(uri)) => {
                self.subscriptions.uris.insert(uri.to_string());
            }
            ("resources/unsubscribe", Some(uri)) => drop(self.subscriptions.uris.remove(uri)),
            _ => {}
        }
    }

    /// Subscribes again to what a server of the older era was to tell before it was lost.
    pub(super) fn subscribe_again(&mut self) {
        if !self.server().is_some_and(|server| server.capabilities.subscriptions) {
            return;
        }
        for uri in self.subscriptions.uris.clone() {
            self.send_aside("resources/subscribe", &Members::new().with("uri", uri));
        }
    }

    /// Begins the stream of news, in place of one there may be.
    pub(super) fn listen(&mut self) {
        if let Some(former) = self.subscriptions.stream.take() {
            self.give_up(former, "another one takes its place");
        }
        self.subscriptions.again = None;
        let oldest = self.subscriptions.oldest.take();
        let Some(server) = self.server() else { return };
        let mut wanted = json!({});
        if server.capabilities.tools_changes {
            wanted["toolsListChanged"] = json!(true);
        }
        if server.capabilities.resources_changes && self.awaited.resources {
            wanted["resourcesListChanged"] = json!(true);
        }
        if server.capabilities.prompts_changes && self.awaited.prompts {
            wanted["promptsListChanged"] = json!(true);
        }
        if !self.subscriptions.uris.is_empty() {
            wanted["resourceSubscriptions"] = json!(self.subscriptions.uris);
        }
        if wanted == json!({}) {
            return;
        }
        self.subscriptions.attempts += 1;
        let params = Members::new().with("notifications", wanted);
        let operation = self.operation();
        let method = "subscriptions/listen";
        self.send_request(
            operation,
            method,
            &params,
            &Members::new(),
            false,
            NEVER,
            Purpose::Listen,
        );
        self.subscriptions.stream = Some(self.ids);
        self.subscriptions.oldest = oldest.or(Some(self.ids));
    }

    /// The server has heard what it is to tell.
    fn acknowledged(&mut self, stream: Option<u64>, params: &str) {
        // Of one that another took the place of, it says nothing of the other.
        if stream.is_some() && stream != self.subscriptions.stream {
            return;
        }
        self.subscriptions.oldest = self.subscriptions.stream;
        self.subscriptions.attempts = 0;
        let tells = serde_json::from_str::<Value>(params)
            .ok()
            .and_then(|params| params.pointer("/notifications/toolsListChanged")?.as_bool());
        let promised = self.server().is_some_and(|server| server.capabilities.tools_changes);
        if promised && tells != Some(true) {
            self.log(LogLevel::Debug, "the server will not tell when its tools change");
        }
    }

    /// The server has ended the stream of news.
    pub(super) fn listening_ended(&mut self, error: Option<Error>) {
        self.subscriptions.stream = None;
        self.subscriptions.oldest = None;
        // One that has no such method will have none later.
        let never = matches!(error, Some(Error::Rpc { code: -32601, .. }));
        let attempts = self.subscriptions.attempts;
        if never || attempts >= MAX_LISTEN_ATTEMPTS {
            return self.log(LogLevel::Debug, "the server does not tell of changes");
        }
        let wait = LISTEN_RETRY_MILLIS << attempts.saturating_sub(1);
        self.subscriptions.again = Some(self.now + wait);
    }

    pub(super) fn listen_again(&mut self) {
        if self.subscriptions.again.is_some_and(|due| due <= self.now) {
            self.listen();
        }
    }

    /// The operation that something concerns which the server says without naming one.
    pub(super) fn only_operation(&self) -> Option<OperationId> {
        let InFlight { operation, .. } = self.in_flight.get(&self.only_request()?)?;
        Some(*operation)
    }
}
