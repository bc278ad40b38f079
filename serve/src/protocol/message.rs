//! JSON-RPC 2.0 messages of clients.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::error::Category;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

use super::error::{INVALID_REQUEST, PARSE, RpcError};
use super::meta::Meta;

/// The longest id, in bytes of JSON: ids are kept until their requests are answered.
const MAX_ID_BYTES: usize = 1 << 10;

/// The most messages of a batch.
const MAX_BATCH: usize = 100;

/// The id of a request: a string or a number, as the client wrote it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    fn read(json: &RawValue) -> Option<Self> {
        let text = json.get();
        (text.len() <= MAX_ID_BYTES && is_text_or_number(text)).then(|| Self(text.into()))
    }

    /// The id as JSON.
    pub(crate) fn json(&self) -> &str {
        &self.0
    }

    /// An id of the server's own requests, and the number that it stands for.
    pub(crate) fn number(&self) -> Option<u64> {
        self.0.parse().ok()
    }
}

/// Whether JSON is a text or a number that every reader takes: it is given back as it is.
pub(crate) fn is_text_or_number(json: &str) -> bool {
    match json.starts_with('"') {
        true => serde_json::from_str::<Cow<'_, str>>(json).is_ok(),
        false => serde_json::from_str::<serde_json::Number>(json).is_ok(),
    }
}

impl From<u64> for RequestId {
    fn from(number: u64) -> Self {
        Self(number.to_string().into())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

/// What a client says.
#[derive(Debug)]
pub(crate) enum Message<'a> {
    /// It asks for something.
    Request(RawRequest<'a>),
    /// It tells something.
    Notification {
        /// What it tells.
        method: Cow<'a, str>,
        /// More about it.
        params: Option<&'a RawValue>,
    },
    /// It answers a request of the server's: a result, or what its error says.
    Response {
        /// The request's id.
        id: RequestId,
        /// The answer.
        answer: Result<&'a RawValue, String>,
    },
}

/// A request whose parameters are not read yet.
#[derive(Debug)]
pub(crate) struct RawRequest<'a> {
    pub(crate) id: RequestId,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) meta: Meta<'a>,
}

/// What is no message, and the id of the request that it may have been.
#[derive(Debug, PartialEq)]
pub(crate) struct Invalid {
    pub(crate) id: Option<RequestId>,
    pub(crate) error: RpcError,
}

impl Invalid {
    fn new(id: Option<RequestId>, code: i32, message: impl Into<String>) -> Self {
        Self { id, error: RpcError::new(code, message) }
    }
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow, default, deserialize_with = "borrowed")]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "borrowed")]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// A member that is there, be it `null`.
fn present<'de: 'a, 'a, D: Deserializer<'de>>(json: D) -> Result<Option<&'a RawValue>, D::Error> {
    <&RawValue>::deserialize(json).map(Some)
}

/// A text, where there is one. In an `Option`, serde would copy it.
fn borrowed<'de: 'a, 'a, D: Deserializer<'de>>(json: D) -> Result<Option<Cow<'a, str>>, D::Error> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

    let text = Option::<Text<'_>>::deserialize(json)?;
    Ok(text.map(|Text(text)| text))
}

/// Reads one message, or those of a batch, which only the revision 2025-03-26 has.
pub(crate) fn read(text: &str) -> Vec<Result<Message<'_>, Invalid>> {
    if !text.trim_start().starts_with('[') {
        return vec![read_one(text)];
    }
    match serde_json::from_str::<Vec<&RawValue>>(text) {
        Err(error) => {
            vec![Err(Invalid::new(None, PARSE, format!("the message is not JSON: {error}")))]
        }
        Ok(batch) if batch.is_empty() || batch.len() > MAX_BATCH => {
            let problem = format!("a batch has 1 to {MAX_BATCH} messages");
            vec![Err(Invalid::new(None, INVALID_REQUEST, problem))]
        }
        Ok(batch) => batch.into_iter().map(|message| read_one(message.get())).collect(),
    }
}

/// Reads one message.
pub(crate) fn read_one(text: &str) -> Result<Message<'_>, Invalid> {
    let form: RawMessage<'_> =
        serde_json::from_str(text).map_err(|error| match error.classify() {
            Category::Data => Invalid::new(
                id_of(text),
                INVALID_REQUEST,
                format!("the message is no JSON-RPC: {error}"),
            ),
            _ => Invalid::new(None, PARSE, format!("the message is not JSON: {error}")),
        })?;
    let RawMessage { jsonrpc, id, method, params, result, error } = form;
    let read_id = id.map(RequestId::read);
    let id = read_id.clone().flatten();
    let invalid = |problem: &str| Invalid::new(id.clone(), INVALID_REQUEST, problem);
    if jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("the member \"jsonrpc\" of a message is \"2.0\""));
    }
    if let Some(None) = read_id {
        return Err(invalid(&format!(
            "an id is a string or a number, of at most {MAX_ID_BYTES} bytes"
        )));
    }
    match (method, result, error) {
        (Some(method), None, None) => {
            // Positional parameters mean nothing here.
            if params.is_some_and(|params| !params.get().starts_with('{')) {
                return Err(Invalid::new(
                    id.clone(),
                    super::error::INVALID_PARAMS,
                    "the parameters are not an object",
                ));
            }
            Ok(match id {
                Some(id) => {
                    Message::Request(RawRequest { id, method, params, meta: Meta::find(params) })
                }
                None => Message::Notification { method, params },
            })
        }
        (None, Some(result), None) => match id {
            Some(id) => Ok(Message::Response { id, answer: Ok(result) }),
            None => Err(invalid("a response has no id")),
        },
        (None, None, Some(error)) => match id {
            Some(id) => Ok(Message::Response { id, answer: Err(words_of(error)) }),
            None => Err(invalid("a response has no id")),
        },
        _ => Err(invalid("a message has a method, a result or an error, and only one of them")),
    }
}

/// The id that a `notifications/cancelled` names.
pub(crate) fn cancelled_id(params: Option<&RawValue>) -> Option<RequestId> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CancelledParams<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let CancelledParams { request_id } = serde_json::from_str(params?.get()).ok()?;
    RequestId::read(request_id)
}

/// The id of a message whose other members are wrong.
fn id_of(text: &str) -> Option<RequestId> {
    #[derive(Deserialize)]
    struct WithId<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
    }
    let form: WithId<'_> = serde_json::from_str(text).ok()?;
    RequestId::read(form.id?)
}

/// What an error of a client's says.
fn words_of(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct ErrorBody {
        #[serde(default)]
        code: i64,
        #[serde(default)]
        message: String,
    }
    match serde_json::from_str::<ErrorBody>(error.get()) {
        Ok(ErrorBody { code, message }) => format!("{message} ({code})"),
        Err(_) => "an error without words".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, id: Option<&str>, code: i32) {
        let invalid = read_one(text).expect_err(text);
        assert_eq!(invalid.error.code, code, "{text}: {}", invalid.error.message);
        assert_eq!(invalid.id.as_ref().map(RequestId::json), id, "{text}");
    }

    #[test]
    fn what_is_no_message_is_refused_with_the_id_that_it_has() {
        check("", None, PARSE);
        check("{", None, PARSE);
        check("nothing", None, PARSE);
        check("{\"id\":1}x", None, PARSE);
        check("3", None, INVALID_REQUEST);
        check("\"x\"", None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":1}"#, Some("1"), INVALID_REQUEST);
        check(r#"{"id":1,"method":"ping"}"#, Some("1"), INVALID_REQUEST);
        check(r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, Some("\"a\""), INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":1e999,"method":"ping"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":"\ud800","method":"ping"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":2,"method":3}"#, Some("2"), INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":2,"id":3,"method":"x"}"#, None, INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":2,"method":"x","params":[1]}"#, Some("2"), -32602);
        check(r#"{"jsonrpc":"2.0","id":2,"method":"x","params":null}"#, Some("2"), -32602);
        check(r#"{"jsonrpc":"2.0","id":2,"method":"x","result":{}}"#, Some("2"), INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","id":2,"result":{},"error":{}}"#, Some("2"), INVALID_REQUEST);
        check(r#"{"jsonrpc":"2.0","result":{}}"#, None, INVALID_REQUEST);
        let long =
            format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"x"}}"#, "x".repeat(MAX_ID_BYTES));
        check(&long, None, INVALID_REQUEST);
    }

    #[test]
    fn messages_are_told_apart() {
        let Ok(Message::Request(request)) = read_one(
            r#" {"jsonrpc":"2.0","id":-7,"method":"a\u002fb","params":{"x":1}, "more":2}"#,
        ) else {
            panic!("it is a request")
        };
        assert_eq!((request.id.json(), &*request.method), ("-7", "a/b"));
        assert_eq!(request.params.map(RawValue::get), Some(r#"{"x":1}"#));
        let told = read_one(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        assert!(matches!(told, Ok(Message::Notification { params: None, .. })), "{told:?}");
        let Ok(Message::Response { id, answer: Ok(result) }) =
            read_one(r#"{"jsonrpc":"2.0","id":5,"result":{}}"#)
        else {
            panic!("it is a response")
        };
        assert_eq!((id.number(), result.get()), (Some(5), "{}"));
        let Ok(Message::Response { answer: Err(words), .. }) =
            read_one(r#"{"jsonrpc":"2.0","id":"5","error":{"code":-1,"message":"no"}}"#)
        else {
            panic!("it is a response")
        };
        assert_eq!(words, "no (-1)");
    }

    #[test]
    fn a_batch_is_read_message_by_message() {
        let batch = read(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}, 3]"#);
        assert!(matches!(&batch[..], [Ok(Message::Request(_)), Err(_)]), "{batch:?}");
        for wrong in ["[]", "[", "[1,]"] {
            assert!(matches!(&read(wrong)[..], [Err(_)]), "{wrong}");
        }
        let many = format!("[{}1]", "1,".repeat(MAX_BATCH));
        assert_eq!(read(&many).len(), 1);
    }
}
