//! What is written to the server.

use serde_json::Value;
use std::borrow::Cow;

use super::{Action, Client, InFlight, NEVER, OperationId, Purpose};
use crate::settings::Era;

impl Client {
    /// Sends a request of the era that the connection has, with what its `_meta` is to say.
    #[expect(clippy::too_many_arguments, reason = "a request has this many parts")]
    pub(super) fn send_request(
        &mut self,
        operation: OperationId,
        method: &'static str,
        params: &str,
        meta: &str,
        progress: bool,
        deadline: u64,
        purpose: Purpose,
    ) {
        // The token is the id that the request will have.
        let token = progress.then_some(self.ids + 1);
        let members = match self.era() {
            Some(Era::Modern) => with_meta(params, &[&self.modern_meta, meta], token),
            Some(Era::Legacy) | None => with_meta(params, &[meta], token),
        };
        self.send(operation, method, &members, deadline, purpose);
    }

    /// Sends a request with these parameters.
    pub(super) fn send(
        &mut self,
        operation: OperationId,
        method: &'static str,
        members: &str,
        deadline: u64,
        purpose: Purpose,
    ) {
        self.ids += 1;
        let id = self.ids;
        let mut line = String::with_capacity(members.len() + 64 + method.len());
        line.push_str(r#"{"jsonrpc":"2.0","id":"#);
        line.push_str(&id.to_string());
        line.push_str(r#","method":""#);
        line.push_str(method);
        line.push('"');
        if !members.is_empty() {
            line.push_str(r#","params":{"#);
            line.push_str(members);
            line.push('}');
        }
        line.push('}');
        self.write(line, Some(id));
        let request =
            InFlight { operation, deadline, method, subject: None, progressed: None, purpose };
        self.in_flight.insert(id, request);
        if deadline != NEVER {
            self.deadlines.insert((deadline, id));
        }
    }

    /// Says what the request is about that was sent last.
    pub(super) fn name_last(&mut self, subject: Option<String>) {
        if let Some(sent) = self.in_flight.get_mut(&self.ids) {
            sent.subject = subject;
        }
    }

    /// Sends something that nobody waits for the answer of.
    pub(super) fn send_aside(&mut self, method: &'static str, members: &str) {
        let deadline = self.now.saturating_add(self.settings.timeout);
        let operation = self.operation();
        self.send_request(operation, method, members, "", false, deadline, Purpose::Aside);
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
        let meta = match self.era() {
            Some(Era::Modern) => format!(r#","_meta":{{{}}}"#, self.modern_meta),
            Some(Era::Legacy) | None => String::new(),
        };
        self.write(
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"{reason}"{meta}}}}}"#
            ),
            None,
        );
    }

    /// Answers a request of the server's, whose id is JSON.
    pub(super) fn reply(&mut self, id: &str, result: &Result<String, (i64, String)>) {
        let answer = match result {
            Ok(result) => format!(r#""result":{result}"#),
            Err((code, message)) => {
                let message = Value::String(message.clone());
                format!(r#""error":{{"code":{code},"message":{message}}}"#)
            }
        };
        self.write(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#), None);
    }
}

/// Parameters with a `_meta`, where there is anything for it.
pub(super) fn with_meta<'a>(params: &'a str, meta: &[&str], token: Option<u64>) -> Cow<'a, str> {
    let token = token.map(|token| format!(r#""progressToken":{token}"#)).unwrap_or_default();
    let parts = || meta.iter().copied().chain([token.as_str()]).filter(|part| !part.is_empty());
    if parts().next().is_none() {
        return Cow::Borrowed(params);
    }
    let length: usize = parts().map(|part| part.len() + 1).sum();
    let mut text = String::with_capacity(params.len() + length + 16);
    text.push_str(params);
    if !params.is_empty() {
        text.push(',');
    }
    text.push_str(r#""_meta":{"#);
    for (index, part) in parts().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(part);
    }
    text.push('}');
    Cow::Owned(text)
}
