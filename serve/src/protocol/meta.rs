//! The `_meta` of requests and results.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

use super::capabilities::{ClientCapabilities, Severity};
use super::error::RpcError;
use super::message::is_text_or_number;
use super::version::MODERN;

/// The member of a modern result's `_meta` that says who answers.
pub(crate) const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The member of a modern notification's `_meta` that names the subscription which it belongs to: the id of the
/// request that began it.
pub(crate) const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// Names a call in notifications of its progress: a string or a number, as the client wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProgressToken(Arc<str>);

impl ProgressToken {
    pub(crate) fn json(&self) -> &str {
        &self.0
    }
}

/// The longest token, in bytes of JSON.
const MAX_TOKEN_BYTES: usize = 1 << 10;

/// What the `_meta` of a request says that both eras have.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RequestMeta {
    pub(crate) progress_token: Option<ProgressToken>,
    /// A `traceparent` of W3C Trace Context.
    pub(crate) traceparent: Option<String>,
}

/// What a modern request says of its client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ModernMeta {
    pub(crate) version: String,
    pub(crate) capabilities: ClientCapabilities,
    /// The name of the client, where it gives one.
    pub(crate) client: Option<String>,
    /// The least of what is logged that the client wants with this request.
    pub(crate) log_level: Option<Severity>,
}

/// The `_meta` of a request. It is looked for once, as parameters may be long; whether it can be read matters only to who
/// needs it.
#[derive(Debug)]
pub(crate) struct Meta<'a>(Result<MetaForm<'a>, RpcError>);

/// What is read of `_meta`. Members that are wrong are told from such as are missing.
#[derive(Debug, Deserialize, Default)]
struct MetaForm<'a> {
    #[serde(rename = "progressToken", borrow, default)]
    progress_token: Option<&'a RawValue>,
    #[serde(default)]
    traceparent: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/protocolVersion", default)]
    version: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities", default)]
    capabilities: Option<Value>,
    #[serde(rename = "io.modelcontextprotocol/clientInfo", borrow, default)]
    client: Option<&'a RawValue>,
    #[serde(rename = "io.modelcontextprotocol/logLevel", default)]
    log_level: Option<Value>,
}

/// What is read of a client's own name. One of another form is none.
#[derive(Deserialize)]
struct ClientInfo {
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(rename = "_meta", borrow, default)]
    meta: Option<&'a RawValue>,
}

fn form(params: Option<&RawValue>) -> Result<MetaForm<'_>, RpcError> {
    let Some(params) = params else { return Ok(MetaForm::default()) };
    let params: Params<'_> = serde_json::from_str(params.get()).map_err(|error| {
        RpcError::invalid_params(format!("the parameters cannot be read: {error}"))
    })?;
    let Some(meta) = params.meta.filter(|meta| meta.get() != "null") else {
        return Ok(MetaForm::default());
    };
    serde_json::from_str(meta.get())
        .map_err(|error| RpcError::invalid_params(format!("`_meta` cannot be read: {error}")))
}

impl<'a> Meta<'a> {
    /// Looks for it in these parameters.
    pub(crate) fn find(params: Option<&'a RawValue>) -> Self {
        Self(form(params))
    }

    /// The revision that it names; nothing where it names none, as that of legacy requests.
    pub(crate) fn version(&self) -> Option<Cow<'_, str>> {
        match self.0.as_ref().ok()?.version.as_ref()? {
            Value::String(version) => Some(version.into()),
            other => Some(other.to_string().into()),
        }
    }

    /// Reads it as that of a legacy request.
    pub(crate) fn legacy(&self) -> Result<RequestMeta, RpcError> {
        self.form().and_then(RequestMeta::shared)
    }

    /// Reads it as that of a modern request, which must name its revision and what the client can do. Whether the
    /// revision is supported is not checked.
    pub(crate) fn modern(&self) -> Result<(RequestMeta, ModernMeta), RpcError> {
        let form = self.form()?;
        let shared = RequestMeta::shared(form)?;
        let missing = |name: &str| {
            RpcError::invalid_params(format!(
                "`_meta` has no io.modelcontextprotocol/{name}, which each request of {MODERN} needs"
            ))
        };
        let Some(Value::String(version)) = &form.version else {
            return Err(missing("protocolVersion"));
        };
        let capabilities = form.capabilities.as_ref().filter(|json| json.is_object());
        let capabilities = capabilities.ok_or_else(|| missing("clientCapabilities"))?;
        let log_level = match &form.log_level {
            None => None,
            Some(level) => Some(level.as_str().and_then(Severity::read).ok_or_else(|| {
                RpcError::invalid_params(format!("there is no log level {level}"))
            })?),
        };
        let client = form.client.map(RawValue::get).filter(|client| client.starts_with('{'));
        let client = client.and_then(|client| serde_json::from_str(client).ok());
        let modern = ModernMeta {
            version: version.clone(),
            capabilities: ClientCapabilities::read(capabilities),
            client: client.and_then(|ClientInfo { name }| name),
            log_level,
        };
        Ok((shared, modern))
    }

    fn form(&self) -> Result<&MetaForm<'a>, RpcError> {
        self.0.as_ref().map_err(Clone::clone)
    }
}

impl RequestMeta {
    fn shared(form: &MetaForm<'_>) -> Result<Self, RpcError> {
        let progress_token = match form.progress_token.map(RawValue::get) {
            None | Some("null") => None,
            Some(json) => {
                if json.len() > MAX_TOKEN_BYTES || !is_text_or_number(json) {
                    return Err(RpcError::invalid_params("`progressToken` is no string or number"));
                }
                Some(ProgressToken(json.into()))
            }
        };
        // One that is no text is not one.
        let traceparent = form.traceparent.as_ref().and_then(Value::as_str).map(Into::into);
        Ok(Self { progress_token, traceparent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn raw(json: Value) -> Box<RawValue> {
        RawValue::from_string(json.to_string()).unwrap()
    }

    #[test]
    fn a_modern_request_names_its_revision_and_its_capabilities() {
        const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
        const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
        let check = |params: Value, problem: &str| {
            let params = raw(params);
            let error = Meta::find(Some(&params)).modern().unwrap_err();
            assert_eq!(error.code, -32602);
            assert!(error.message.contains(problem), "{}", error.message);
        };
        check(json!({}), "protocolVersion");
        check(json!({ "_meta": {} }), "protocolVersion");
        check(json!({ "_meta": { VERSION: 3, CAPABILITIES: {} } }), "protocolVersion");
        check(json!({ "_meta": { VERSION: MODERN } }), "clientCapabilities");
        check(json!({ "_meta": { VERSION: MODERN, CAPABILITIES: [] } }), "clientCapabilities");
        check(json!({ "_meta": 3 }), "`_meta`");
        let level = "io.modelcontextprotocol/logLevel";
        check(json!({ "_meta": { VERSION: MODERN, CAPABILITIES: {}, level: "loud" } }), "loud");
        check(
            json!({ "_meta": { VERSION: MODERN, CAPABILITIES: {}, "progressToken": {} } }),
            "progressToken",
        );
        let good = json!({ "_meta": {
            VERSION: "x", CAPABILITIES: { "sampling": {} }, level: "info", "progressToken": "a\"b",
            "io.modelcontextprotocol/clientInfo": { "name": "c" }, "traceparent": "00-1-2-3", "other": 1,
        }, "name": "t" });
        let good = raw(good);
        let meta = Meta::find(Some(&good));
        let (read, modern) = meta.modern().unwrap();
        assert_eq!(read.progress_token.unwrap().json(), r#""a\"b""#);
        assert_eq!(read.traceparent.as_deref(), Some("00-1-2-3"));
        assert_eq!((&*modern.version, modern.client.as_deref()), ("x", Some("c")));
        assert!(modern.capabilities.sampling && modern.log_level == Some(Severity::Info));
        assert_eq!(meta.version().as_deref(), Some("x"));
    }

    #[test]
    fn a_client_has_a_name_where_it_gives_one_as_the_protocol_says() {
        let check = |client: Value, expected: Option<&str>| {
            let params = raw(json!({ "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client,
            }}));
            let (_, modern) = Meta::find(Some(&params)).modern().unwrap();
            assert_eq!(modern.client.as_deref(), expected, "{client}");
        };
        check(json!({ "name": "c", "version": "1" }), Some("c"));
        for other in [json!(null), json!("c"), json!(["c"]), json!({ "name": 7 }), json!({})] {
            check(other, None);
        }
    }

    #[test]
    fn a_legacy_request_needs_no_meta() {
        assert_eq!(Meta::find(None).legacy(), Ok(RequestMeta::default()));
        let params = raw(json!({ "_meta": { "progressToken": 7 } }));
        let meta = Meta::find(Some(&params));
        let read = meta.legacy().unwrap();
        assert_eq!(read.progress_token.unwrap().json(), "7");
        assert_eq!(meta.version(), None);
        assert_eq!(Meta::find(None).version(), None);
    }
}
