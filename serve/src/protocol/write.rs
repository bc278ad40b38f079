//! Messages and results as JSON text. Results travel as the text that they are, so that nothing which a plugin wrote
//! is spelled in another way.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

use super::error::RpcError;
use super::message::RequestId;
use super::version::Era;

/// A response with a result, which is JSON.
pub(crate) fn response(id: &RequestId, result: &str) -> String {
    in_a_line([r#"{"jsonrpc":"2.0","id":"#, id.json(), r#","result":"#, result, "}"].concat())
}

/// The same JSON without ends of lines: in a text they are escaped, so those that are there stand between values, as a
/// plugin wrote them.
fn in_a_line(mut json: String) -> String {
    if json.contains(['\n', '\r']) {
        json = json.replace(['\n', '\r'], " ");
    }
    json
}

/// A response with an error. An id that is not known is left out.
pub(crate) fn error(id: Option<&RequestId>, error: &RpcError) -> String {
    let error = text(error);
    match id {
        Some(id) => [r#"{"jsonrpc":"2.0","id":"#, id.json(), r#","error":"#, &error, "}"].concat(),
        None => [r#"{"jsonrpc":"2.0","error":"#, &error, "}"].concat(),
    }
}

/// A request of the server's.
pub(crate) fn request(id: u64, method: &str, params: &Value) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A notification. The parameters are JSON.
pub(crate) fn notification(method: &str, params: Option<&str>) -> String {
    match params {
        Some(params) => in_a_line(
            [r#"{"jsonrpc":"2.0","method":""#, method, r#"","params":"#, params, "}"].concat(),
        ),
        None => [r#"{"jsonrpc":"2.0","method":""#, method, r#""}"#].concat(),
    }
}

/// A value as JSON text.
pub(crate) fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("its keys are texts and its JSON was checked")
}

/// Who may keep a result, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cache {
    /// In milliseconds.
    pub(crate) ttl: u64,
    /// Whether it is the same for all clients.
    pub(crate) is_public: bool,
}

/// Adds to a result, a JSON object, what the client's era has in each one.
pub(crate) fn complete(era: Era, result: String, cache: Option<Cache>) -> String {
    if era == Era::Legacy {
        return result;
    }
    let cache = match cache {
        None => String::new(),
        Some(Cache { ttl, is_public }) => {
            let scope = if is_public { "public" } else { "private" };
            format!(r#","ttlMs":{ttl},"cacheScope":"{scope}""#)
        }
    };
    let members = result.strip_prefix('{').unwrap_or("}");
    let comma = if members == "}" { "" } else { "," };
    [r#"{"resultType":"complete""#, &cache, comma, members].concat()
}

/// Takes a member out of an object that is JSON. The values of the others stay the text that they are.
pub(crate) fn without(object: &mut Option<String>, member: &str) {
    // Nearly all have none. A name can be spelled with `\u`.
    let may_have = |json: &&str| json.contains(member) || json.contains("\\u");
    let Some(json) = object.as_deref().filter(may_have) else { return };
    if let Ok(mut members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(json)
        && members.remove(member).is_some()
    {
        *object = (!members.is_empty()).then(|| text(&members));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_modern_result_says_its_type_and_a_legacy_one_does_not() {
        let cache = Some(Cache { ttl: 5, is_public: false });
        assert_eq!(complete(Era::Legacy, "{}".into(), cache), "{}");
        assert_eq!(complete(Era::Modern, "{}".into(), None), r#"{"resultType":"complete"}"#);
        assert_eq!(
            complete(Era::Modern, r#"{"tools":[]}"#.into(), cache),
            r#"{"resultType":"complete","ttlMs":5,"cacheScope":"private","tools":[]}"#
        );
    }

    #[test]
    fn a_member_is_taken_out_and_the_others_are_spelled_as_they_were() {
        let check = |object: &str, expected: Option<&str>| {
            let mut object = Some(object.to_string());
            without(&mut object, "resultType");
            assert_eq!(object.as_deref(), expected);
        };
        check(r#"{"resultType":"complete"}"#, None);
        check(r#"{"result\u0054ype":"complete","a":[]}"#, Some(r#"{"a":[]}"#));
        check(
            r#"{"resultType":"complete","_meta":{"n":[1e3,-0, 18446744073709551617]},"z":"\u0041"}"#,
            Some(r#"{"_meta":{"n":[1e3,-0, 18446744073709551617]},"z":"\u0041"}"#),
        );
        check(r#"{ "a": "resultType" }"#, Some(r#"{ "a": "resultType" }"#));
        check("no object: resultType", Some("no object: resultType"));
    }

    #[test]
    fn messages_are_json_rpc() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let id = RequestId::from(3);
        assert_eq!(
            read(&response(&id, r#"{"a":1}"#)),
            json!({ "jsonrpc": "2.0", "id": 3, "result": { "a": 1 } })
        );
        let lines = response(&id, "{\n\"a\":\r\n\"\\n\"}");
        assert!(!lines.contains('\n') && read(&lines)["result"]["a"] == "\n", "{lines}");
        let problem = RpcError::invalid_params("no \"x\"");
        assert_eq!(
            read(&error(Some(&id), &problem)),
            json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": -32602, "message": "no \"x\"" } })
        );
        assert_eq!(read(&error(None, &problem)).get("id"), None);
        assert_eq!(
            read(&request(7, "ping", &json!({}))),
            json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": {} })
        );
        assert_eq!(read(&notification("a/b", None)), json!({ "jsonrpc": "2.0", "method": "a/b" }));
        assert_eq!(read(&notification("a/b", Some("{}")))["params"], json!({}));
    }
}
