//! What is written to the server.

use serde_json::Value;

use super::{Action, Client, InFlight, OperationId, Purpose};
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
        let ours = match self.era() {
            Some(Era::Modern) => &self.modern_meta,
            Some(Era::Legacy) | None => "",
        };
        let line = self.line(method, params, &[ours, meta], progress);
        self.send(operation, method, line, deadline, purpose);
    }

    /// The next request, to be sent with [`Client::send`]: its parameters, what its `_meta` says, and
    /// whether the server is to tell how far it has come.
    pub(super) fn line(&self, method: &str, params: &str, meta: &[&str], progress: bool) -> String {
        let mut id = itoa::Buffer::new();
        let id = id.format(self.ids + 1);
        let length: usize = params.len() + meta.iter().map(|part| part.len() + 1).sum::<usize>();
        let mut line = String::with_capacity(length + method.len() + 2 * id.len() + 80);
        line.push_str(r#"{"jsonrpc":"2.0","id":"#);
        line.push_str(id);
        line.push_str(r#","method":""#);
        line.push_str(method);
        line.push('"');
        let meta = meta.iter().filter(|part| !part.is_empty());
        let has_meta = progress || meta.clone().next().is_some();
        if !params.is_empty() || has_meta {
            line.push_str(r#","params":{"#);
            line.push_str(params);
            if has_meta {
                line.push_str(if params.is_empty() { r#""_meta":{"# } else { r#","_meta":{"# });
                for part in meta {
                    line.push_str(part);
                    line.push(',');
                }
                if progress {
                    // The token is the id.
                    line.push_str(r#""progressToken":"#);
                    line.push_str(id);
                } else {
                    line.pop();
                }
                line.push('}');
            }
            line.push('}');
        }
        line.push('}');
        line
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
        if let Some(sent) = self.in_flight.get_mut(self.ids) {
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
