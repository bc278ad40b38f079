//! What is written to the server.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Action, Client, InFlight, OperationId, Purpose};
use crate::raw_json::{Json, Members};
use crate::settings::{CLIENT_CAPABILITIES, Era};

impl Client {
    /// Sends a request of the era that the connection has, with what its `_meta` is to say.
    #[expect(clippy::too_many_arguments, reason = "a request has this many parts")]
    pub(super) fn send_request(
        &mut self,
        operation: OperationId,
        method: &'static str,
        params: &Members,
        meta: &Members,
        progress: bool,
        deadline: u64,
        purpose: Purpose,
    ) {
        let line = match self.era() {
            Some(Era::Modern) if meta.iter().any(|(name, _)| name == CLIENT_CAPABILITIES) => {
                self.line(method, params, &[&self.modern_meta, meta], progress)
            }
            Some(Era::Modern) => {
                let ours = [&self.modern_meta, &self.modern_capabilities, meta];
                self.line(method, params, &ours, progress)
            }
            Some(Era::Legacy) | None => self.line(method, params, &[meta], progress),
        };
        self.send(operation, method, line, deadline, purpose);
    }

    /// The next request, to be sent with [`Client::send`]: its parameters, what its `_meta` says, and
    /// whether the server is to tell how far it has come.
    pub(super) fn line(
        &self,
        method: &str,
        members: &Members,
        meta: &[&Members],
        progress: bool,
    ) -> String {
        let id = self.ids + 1;
        // The token is the id.
        let progress_token = progress.then_some(id);
        let params = Params { members, meta: Meta { members: meta, progress_token } };
        written(&OutgoingRequest { jsonrpc: VERSION, id: Some(id), method, params })
    }

    /// Sends the next request.
    pub(super) fn send(
        &mut self,
        operation: OperationId,
        method: &'static str,
        line: String,
        deadline: u64,
        purpose: Purpose,
    ) {
        self.ids += 1;
        let id = self.ids;
        self.write(line, Some(id));
        let request =
            InFlight { operation, deadline, method, subject: None, progressed: None, purpose };
        self.wait_for(id, request);
    }

    /// Says what the request is about that was sent last.
    pub(super) fn name_last(&mut self, subject: Option<String>) {
        if let Some(sent) = self.in_flight.get_mut(&self.ids) {
            sent.subject = subject;
        }
    }

    /// Sends something that nobody waits for the answer of.
    pub(super) fn send_aside(&mut self, method: &'static str, params: &Members) {
        let deadline = self.now.saturating_add(self.settings.timeout);
        let operation = self.operation();
        let meta = Members::new();
        self.send_request(operation, method, params, &meta, false, deadline, Purpose::Aside);
    }

    /// Writes a message. Line ends in it can only be white space between JSON tokens.
    pub(super) fn write(&mut self, message: String, request: Option<u64>) {
        let mut line = message.into_bytes();
        let mut at = 0;
        while let Some(found) = memchr::memchr2(b'\n', b'\r', &line[at..]) {
            at += found;
            line[at] = b' ';
        }
        self.actions.push_back(Action::Write { line, request });
    }

    /// Tells the server that the answer to a request is not waited for.
    pub(super) fn cancelled(&mut self, id: u64, reason: &str) {
        let members = Members::new().with("requestId", id).with("reason", reason);
        let ours = match self.era() {
            Some(Era::Modern) => vec![&self.modern_meta, &self.modern_capabilities],
            Some(Era::Legacy) | None => Vec::new(),
        };
        let meta = Meta { members: &ours, progress_token: None };
        let params = Params { members: &members, meta };
        let method = "notifications/cancelled";
        let line = written(&OutgoingRequest { jsonrpc: VERSION, id: None, method, params });
        self.write(line, None);
    }

    /// Answers a request of the server's.
    pub(super) fn reply(&mut self, id: &Json, result: &Result<Json, (i64, String)>) {
        let answer = match result {
            Ok(result) => Answer::Result(result),
            Err((code, message)) => Answer::Error { code: *code, message },
        };
        self.write(written(&ClientResponse { jsonrpc: VERSION, id, answer }), None);
    }
}

const VERSION: &str = "2.0";

/// A request, or a notification where it has no id.
#[derive(Serialize)]
struct OutgoingRequest<'a> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    #[serde(skip_serializing_if = "Params::is_empty")]
    params: Params<'a>,
}

struct Params<'a> {
    members: &'a Members,
    meta: Meta<'a>,
}

impl Params<'_> {
    fn is_empty(&self) -> bool {
        self.members.is_empty() && self.meta.is_empty()
    }
}

impl Serialize for Params<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.members.iter() {
            map.serialize_entry(name, value)?;
        }
        if !self.meta.is_empty() {
            map.serialize_entry("_meta", &self.meta)?;
        }
        map.end()
    }
}

struct Meta<'a> {
    members: &'a [&'a Members],
    progress_token: Option<u64>,
}

impl Meta<'_> {
    fn is_empty(&self) -> bool {
        self.progress_token.is_none() && self.members.iter().all(|members| members.is_empty())
    }
}

impl Serialize for Meta<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.members.iter().flat_map(|members| members.iter()) {
            map.serialize_entry(name, value)?;
        }
        if let Some(token) = self.progress_token {
            map.serialize_entry("progressToken", &token)?;
        }
        map.end()
    }
}

/// An answer to a request of the server's.
#[derive(Serialize)]
struct ClientResponse<'a> {
    jsonrpc: &'static str,
    id: &'a Json,
    #[serde(flatten)]
    answer: Answer<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Answer<'a> {
    Result(&'a Json),
    Error { code: i64, message: &'a str },
}

fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("a message is JSON")
}
