//! What is fuzzed: what clients send. It stands here, beside what it is about.

use serde_json::Value;

use crate::protocol::message::{self, Invalid, Message};
use crate::protocol::request::Request;
use crate::protocol::version::Era;
use crate::protocol::write;

/// Any text, as a message of a client: it is read or refused in either era, and what is answered is one line of JSON-RPC
/// with the client's own id.
pub fn mcp_request(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for message in message::read(text) {
        match message {
            Ok(Message::Request(raw)) => {
                let id: Value = serde_json::from_str(raw.id.json()).expect("an id is JSON");
                assert!(id.is_string() || id.is_number(), "{id}");
                for era in [Era::Legacy, Era::Modern] {
                    let _ = (raw.meta.version(), raw.meta.legacy(), raw.meta.modern());
                    let answer = match Request::read(era, &raw.method, raw.params) {
                        Ok(_) => write::response(&raw.id, &write::complete(era, "{}".into(), None)),
                        Err(error) => {
                            assert!(!error.message.is_empty(), "it is wrong for no reason");
                            write::error(Some(&raw.id), &error)
                        }
                    };
                    assert!(!answer.contains(['\n', '\r']), "{answer}");
                    let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
                    assert_eq!(answer["jsonrpc"], "2.0");
                    assert_eq!(answer["id"], id);
                    assert!(
                        answer["result"].is_object() != answer["error"].is_object(),
                        "{answer}"
                    );
                }
            }
            Ok(Message::Notification { .. } | Message::Response { .. }) => {}
            Err(Invalid { id, error }) => {
                let answer = write::error(id.as_ref(), &error);
                let answer: Value = serde_json::from_str(&answer).expect("it is JSON");
                assert!(answer["error"]["code"].is_i64(), "{answer}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tenon_inputs::{InputKind, fuzz};

    #[test]
    fn what_clients_send() {
        fuzz("mcp_request", InputKind::Bytes, super::mcp_request);
    }
}
