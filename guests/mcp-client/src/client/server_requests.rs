//! What the server asks of the client: in the older era by requests of its own, in the newer by
//! answering that it needs something first.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use super::{
    Action, AskId, AskKind, Client, ConnectionState, Error, InFlight, LogLevel, NEVER, OperationId,
    Purpose, ResendParams,
};
use crate::message::JsonSlice;
use crate::raw_json::{Json, Members};
use crate::settings::Era;

/// The most that a server can have asked at a time.
const MAX_SERVER_REQUESTS: usize = 16;

/// How often one request is sent again with what the server asked for.
const MAX_INPUT_ROUNDS: u32 = 8;

/// Something that waits for an answer of the driver's.
#[derive(Debug)]
pub(super) enum PendingServerRequest {
    /// A request of the server's, by its id.
    Request(Json),
    /// One of the things that the answer to a request asked for.
    Input { request: u64, key: String },
    /// One of the things that a task needs.
    OfTask { operation: OperationId, task: String, key: String },
}

/// A request that the server answered with what it needs first.
#[derive(Debug)]
pub(super) struct RetryWithInput {
    pub(super) operation: OperationId,
    pub(super) deadline: u64,
    pub(super) method: &'static str,
    pub(super) subject: Option<String>,
    pub(super) resend: ResendParams,
}

/// What a request waits for before it is sent again.
#[derive(Debug)]
pub(super) struct Round {
    resend: ResendParams,
    responses: BTreeMap<String, Json>,
    open: usize,
    /// To be given back as it came.
    state: Option<Json>,
}

/// What comes of being asked something.
pub(super) enum ServerRequestDecision {
    Answer(Json),
    Refusal(i64, String),
    /// It is for the driver to say.
    Ask(AskKind),
}

impl Client {
    /// Answers what the server asked: with a result, which is JSON, or an error.
    pub fn answer(&mut self, ask: AskId, result: Result<String, (i64, String)>, now: u64) {
        self.now = now;
        let result = result.and_then(|text| {
            Json::parse(text).map_err(|error| (-32603, format!("the answer is not JSON: {error}")))
        });
        let asked = self.asked.remove(&ask);
        self.go_on();
        match asked {
            Some(PendingServerRequest::Request(id)) => self.reply(&id, &result),
            Some(PendingServerRequest::Input { request, key }) => self.input(request, key, result),
            Some(PendingServerRequest::OfTask { operation, task, key }) => {
                self.task_input(operation, &task, key, result);
            }
            None => {}
        }
    }

    /// A request of the server's, which only the older era has.
    pub(super) fn asked(&mut self, id: Json, method: &str, params: &str) {
        if matches!(self.state, ConnectionState::Disconnected) {
            return self.log(LogLevel::Debug, "a server that was given up still asks");
        }
        if self.is_modern() {
            let problem = format!("the server asks for {method}, which its era does not have");
            return self.log(LogLevel::Debug, problem);
        }
        if method == "ping" {
            return self.reply(&id, &Ok(Json::from(&json!({}))));
        }
        match self.respond(method, params) {
            ServerRequestDecision::Answer(answer) => self.reply(&id, &Ok(answer)),
            ServerRequestDecision::Refusal(code, message) => self.reply(&id, &Err((code, message))),
            ServerRequestDecision::Ask(_) if self.asked.len() >= MAX_SERVER_REQUESTS => {
                self.reply(&id, &Err((-32000, "there is too much to answer already".into())));
            }
            ServerRequestDecision::Ask(kind) => {
                let operation = self.only_operation();
                self.ask(kind, params, PendingServerRequest::Request(id), operation);
            }
        }
    }

    /// Whether the server is of the newer era, as far as is known: it must get no responses.
    fn is_modern(&self) -> bool {
        let probing = |request: &InFlight| matches!(request.purpose, Purpose::Discover);
        self.era() == Some(Era::Modern) || self.in_flight.values().any(probing)
    }

    pub(super) fn respond(&self, method: &str, params: &str) -> ServerRequestDecision {
        let features = self.settings.features;
        match method {
            "roots/list" if !self.settings.roots.is_empty() => {
                ServerRequestDecision::Answer(Json::from(&self.settings.roots()))
            }
            "roots/list" if features.roots && self.era() == Some(Era::Modern) => {
                ServerRequestDecision::Ask(AskKind::Roots)
            }
            // Whoever asks though it was told not to, learns that there is nobody to ask.
            "elicitation/create" if !features.forms && !features.pages => {
                ServerRequestDecision::Answer(Json::from(&json!({ "action": "cancel" })))
            }
            "elicitation/create" => {
                #[derive(Deserialize)]
                struct ElicitationParams {
                    #[serde(default)]
                    mode: Option<String>,
                }
                let mode =
                    serde_json::from_str(params).ok().and_then(|ElicitationParams { mode }| mode);
                match mode.as_deref() {
                    None | Some("form") if features.forms => {
                        ServerRequestDecision::Ask(AskKind::Elicitation)
                    }
                    Some("url") if features.pages => {
                        ServerRequestDecision::Ask(AskKind::Elicitation)
                    }
                    mode => ServerRequestDecision::Refusal(
                        -32602,
                        format!("this client does not have the mode {}", mode.unwrap_or("form")),
                    ),
                }
            }
            "sampling/createMessage" if features.sampling => {
                ServerRequestDecision::Ask(AskKind::Sampling)
            }
            _ => ServerRequestDecision::Refusal(
                -32601,
                format!("this client does not have {method}"),
            ),
        }
    }

    pub(super) fn ask(
        &mut self,
        kind: AskKind,
        params: &str,
        asked: PendingServerRequest,
        operation: Option<OperationId>,
    ) {
        self.asks += 1;
        let ask = AskId(self.asks);
        self.asked.insert(ask, asked);
        self.asking_since.get_or_insert(self.now);
        self.actions.push_back(Action::Ask { ask, kind, params: params.to_string(), operation });
    }

    /// The server does not want an answer any more.
    pub(super) fn not_wanted(&mut self, params: &str) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct CancelledParams<'a> {
            #[serde(borrow)]
            request_id: &'a RawValue,
        }
        let Ok(CancelledParams { request_id }) = serde_json::from_str(params) else { return };
        let by_id = |asked: &PendingServerRequest| matches!(asked, PendingServerRequest::Request(id) if id.get() == request_id.get());
        self.withdraw_all(by_id);
    }

    /// What a request waits for is not wanted any more.
    pub(super) fn withdraw(&mut self, request: u64) {
        self.withdraw_all(
            |asked| matches!(asked, PendingServerRequest::Input { request: of, .. } if *of == request),
        );
    }

    pub(super) fn withdraw_all(&mut self, is_it: impl Fn(&PendingServerRequest) -> bool) {
        let asks = self.asked.extract_if(.., |_, asked| is_it(asked));
        let withdrawn = asks.map(|(ask, _)| Action::Withdraw(ask));
        self.actions.extend(withdrawn);
        self.go_on();
    }

    /// Where nothing is asked any more, the time of requests goes on: they have as long as they had
    /// before.
    fn go_on(&mut self) {
        let Some(since) = self.asking_since.filter(|_| self.asked.is_empty()) else { return };
        self.asking_since = None;
        let took = self.now.saturating_sub(since);
        for request in self.in_flight.values_mut().filter(|request| request.deadline != NEVER) {
            request.deadline = request.deadline.saturating_add(took).min(NEVER - 1);
        }
        self.look_when_the_next_is_due();
    }

    /// A request was answered with what it takes to answer it.
    pub(super) fn needs_input(&mut self, again: RetryWithInput, result: &JsonSlice) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct InputRequired<'a> {
            #[serde(borrow, default)]
            input_requests: BTreeMap<String, InputRequest<'a>>,
            #[serde(borrow, default)]
            request_state: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct InputRequest<'a> {
            method: String,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let RetryWithInput { operation, deadline, method: of, subject, resend } = again;
        let required: InputRequired<'_> = match serde_json::from_str(result.get()) {
            Ok(required) => required,
            Err(error) => {
                let problem = format!("what the server asks for is invalid: {error}");
                return self.finish(operation, Err(Error::Protocol(problem)));
            }
        };
        if resend.rounds >= MAX_INPUT_ROUNDS || required.input_requests.len() > MAX_SERVER_REQUESTS
        {
            let problem = "the server asks for ever more";
            return self.finish(operation, Err(Error::Protocol(problem.into())));
        }
        let mut responses = BTreeMap::new();
        let mut to_ask = Vec::new();
        for (key, InputRequest { method, params }) in required.input_requests {
            let params = params.map_or("{}", RawValue::get);
            match self.respond(&method, params) {
                ServerRequestDecision::Answer(answer) => drop(responses.insert(key, answer)),
                ServerRequestDecision::Ask(kind) => to_ask.push((key, kind, params)),
                ServerRequestDecision::Refusal(..) => {
                    let problem = format!("the server asks for {method} before it answers");
                    return self.finish(operation, Err(Error::Needs(problem)));
                }
            }
        }
        let state = required.request_state.map(Json::from);
        let round = Round { resend, responses, open: to_ask.len(), state };
        if round.open == 0 {
            let waiting = InFlight::waiting(operation, deadline, of, subject, round);
            return self.send_again(waiting);
        }
        // Under a number of its own it can be given up like any other request.
        self.ids += 1;
        let request = self.ids;
        let waiting = InFlight::waiting(operation, deadline, of, subject, round);
        self.wait_for(request, waiting);
        for (key, kind, params) in to_ask {
            self.ask(kind, params, PendingServerRequest::Input { request, key }, Some(operation));
        }
    }

    /// One of the things that a request waits for.
    fn input(&mut self, request: u64, key: String, result: Result<Json, (i64, String)>) {
        let Some(InFlight { purpose: Purpose::Asking(round), .. }) =
            self.in_flight.get_mut(&request)
        else {
            return;
        };
        match result {
            Ok(answer) => {
                round.responses.insert(key, answer);
                round.open -= 1;
                if round.open > 0 {
                    return;
                }
                if let Some(waiting) = self.forget(request) {
                    self.send_again(waiting);
                }
            }
            Err((_, message)) => {
                self.withdraw(request);
                if let Some(waiting) = self.forget(request) {
                    self.finish(waiting.operation, Err(Error::Needs(message)));
                }
            }
        }
    }

    /// Sends a request again, with what it waited for.
    fn send_again(&mut self, waiting: InFlight) {
        let InFlight { operation, deadline, method, subject, purpose, .. } = waiting;
        let Purpose::Asking(round) = purpose else { return };
        let Round { mut resend, responses, state, .. } = *round;
        resend.rounds += 1;
        let mut params = resend.params.clone();
        if !responses.is_empty() {
            let responses: Members = responses.into_iter().collect();
            params.push("inputResponses", Json::from(&responses));
        }
        if let Some(state) = state {
            params.push("requestState", state);
        }
        let (meta, progress) = (resend.meta.clone(), resend.progress);
        let purpose = Purpose::Plain(Some(Box::new(resend)));
        self.send_request(operation, method, &params, &meta, progress, deadline, purpose);
        self.name_last(subject);
    }
}

impl InFlight {
    /// One that waits to be sent again.
    fn waiting(
        operation: OperationId,
        deadline: u64,
        method: &'static str,
        subject: Option<String>,
        round: Round,
    ) -> Self {
        let purpose = Purpose::Asking(Box::new(round));
        Self { operation, deadline, method, subject, progressed: None, purpose }
    }
}
