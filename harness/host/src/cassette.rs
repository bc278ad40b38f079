//! What a plugin asked of others, and what they answered: recorded once, and played to later tests.
//!
//! A cassette is a file of JSON, to be kept beside the test:
//!
//! ```json
//! { "version": 1, "calls": [
//!     { "call": "GET https://api.example.com/v1/weather", "with": { "body": "" },
//!       "answer": { "value": { "status": 200, "headers": [["content-type", "text/plain"]], "body": "21" } } },
//!     { "call": "tool text_tools__slug", "with": { "text": "A b" },
//!       "answer": { "error": { "code": "failed", "message": "no" } } }
//! ] }
//! ```
//!
//! The secrets of the test are masked in it, and headers that sign somebody in are left out.

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tempfile::NamedTempFile;
use tenon_config::secret::Redactor;
use tenon_host::services::{HostCall, HostCallInterceptor};
use tenon_host::types::{
    Completion, CompletionRequest, Error, ErrorCode, ToolResult, completion_json, mcp_json,
};

/// The version of the form of cassettes.
const VERSION: u32 = 1;

/// Headers whose names have these in them are not kept: they sign somebody in.
const LEFT_OUT: [&str; 6] = ["authenti", "authoriz", "cookie", "key", "secret", "token"];

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// There is none to play.
    #[error("there is no cassette {}: record it first", .0.display())]
    Missing(PathBuf),
    /// The plugin is an MCP server, whose calls do not pass a cassette.
    #[error("a cassette is for components and scripts, and not for MCP servers")]
    Server,
    /// Its file cannot be read or written.
    #[error("the cassette {} cannot be used: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no cassette.
    #[error("{} is no cassette of version {VERSION}: {problem}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

/// A cassette as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CassetteForm {
    version: u32,
    calls: Vec<RecordedHostCall>,
}

/// A call and its answer. While there is none, the call goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedHostCall {
    call: String,
    with: Value,
    answer: Option<RecordedOutcome>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RecordedOutcome {
    Value(Value),
    Error { code: String, message: String },
}

/// Records or plays what a plugin asks of others.
#[derive(Clone)]
pub(crate) struct Cassette(Arc<CassetteInner>);

struct CassetteInner {
    path: PathBuf,
    mask: Redactor,
    kind: TapeMode,
}

enum TapeMode {
    Recording(Mutex<Vec<RecordedHostCall>>),
    /// Each with whether it was played.
    Playing(Mutex<Vec<(RecordedHostCall, bool)>>),
}

impl Cassette {
    /// A cassette that is recorded anew.
    pub(crate) fn record(path: PathBuf, mask: Redactor) -> Self {
        Self(Arc::new(CassetteInner { path, mask, kind: TapeMode::Recording(Mutex::default()) }))
    }

    /// The plugin runs: what was recorded of an earlier one makes room.
    pub(crate) fn begin(&self) -> Result<(), CassetteError> {
        let TapeMode::Recording(calls) = &self.0.kind else { return Ok(()) };
        let written = self.0.write(&lock(calls));
        written.map_err(|source| CassetteError::File { path: self.0.path.clone(), source })
    }

    /// Plays a cassette.
    pub(crate) fn replay(path: PathBuf, mask: Redactor) -> Result<Self, CassetteError> {
        let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => CassetteError::Missing(path.clone()),
            _ => CassetteError::File { path: path.clone(), source },
        })?;
        let invalid = |problem| CassetteError::Invalid { path: path.clone(), problem };
        let form: CassetteForm =
            serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        if form.version != VERSION {
            return Err(invalid(format!("it is of version {}", form.version)));
        }
        let calls = form.calls.into_iter().map(|call| (call, false)).collect();
        Ok(Self(Arc::new(CassetteInner { path, mask, kind: TapeMode::Playing(Mutex::new(calls)) })))
    }

    /// The calls of a cassette that were not played so far.
    pub(crate) fn unplayed(&self) -> Vec<String> {
        let TapeMode::Playing(calls) = &self.0.kind else { return Vec::new() };
        let calls = lock(calls);
        let unplayed = calls.iter().filter(|(_, is_played)| !is_played);
        unplayed.map(|(recorded, _)| recorded.call.clone()).collect()
    }

    /// Answers a call from the cassette, or has it made and notes the answer.
    async fn answer<T>(
        &self,
        call: String,
        with: Value,
        made: HostCall<'_, T>,
        form: impl Fn(&T) -> Value,
        read: impl Fn(Value) -> Result<T, String>,
    ) -> Result<T, Error> {
        let tape = &self.0;
        let (call, with) = (tape.mask.text(&call).into_owned(), tape.masked(&with));
        match &tape.kind {
            TapeMode::Playing(calls) => match tape.play(&mut lock(calls), &call, &with)? {
                RecordedOutcome::Value(value) => read(value)
                    .map_err(|problem| Error::failed(format!("{}: {problem}", tape.of(&call)))),
                RecordedOutcome::Error { code, message } => {
                    Err(Error::new(code_of(&code), message))
                }
            },
            TapeMode::Recording(calls) => {
                // Its place is that of its beginning, as the plugin begins them in its own order.
                let place = {
                    let mut calls = lock(calls);
                    calls.push(RecordedHostCall { call, with, answer: None });
                    calls.len() - 1
                };
                let answer = made.await;
                let noted = match &answer {
                    Ok(value) => RecordedOutcome::Value(tape.masked(&form(value))),
                    Err(error) => RecordedOutcome::Error {
                        code: error.code.name().into(),
                        message: tape.mask.text(&error.message).into_owned(),
                    },
                };
                let mut calls = lock(calls);
                calls[place].answer = Some(noted);
                tape.write(&calls).map_err(|error| {
                    let path = tape.path.display();
                    Error::failed(format!("the cassette {path} cannot be written: {error}"))
                })?;
                answer
            }
        }
    }
}

impl CassetteInner {
    /// The answer to a call: each is played once, those that are equal in their order.
    fn play(
        &self,
        calls: &mut [(RecordedHostCall, bool)],
        call: &str,
        with: &Value,
    ) -> Result<RecordedOutcome, Error> {
        let of_call = || calls.iter().filter(|(recorded, _)| recorded.call == call);
        let known = of_call().count();
        let equal = of_call().filter(|(recorded, _)| recorded.with == *with).count();
        let next = { calls.iter_mut() }.find(|(recorded, is_played)| {
            !is_played && recorded.call == call && recorded.with == *with
        });
        if let Some((recorded, is_played)) = next
            && let Some(answer) = &recorded.answer
        {
            *is_played = true;
            return Ok(answer.clone());
        }
        let problem = match (known, equal) {
            (0, _) => "it has no such call".into(),
            (_, 0) => "it has this call with something else".into(),
            (_, equal) => format!("it has this call {equal} times only"),
        };
        Err(Error::denied(format!("{}: {problem}; record it again", self.of(call))))
    }

    /// A value without the secrets of the test.
    fn masked(&self, value: &Value) -> Value {
        let mut text = value.to_string();
        self.mask.json_text(&mut text);
        // Masked JSON is JSON.
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn of(&self, call: &str) -> String {
        format!("the cassette {}, {call}", self.path.display())
    }

    /// Writes the calls that have an answer. Nobody sees half a file.
    fn write(&self, calls: &[RecordedHostCall]) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(folder)?;
        let calls = calls.iter().filter(|call| call.answer.is_some()).cloned().collect();
        let mut text = serde_json::to_vec_pretty(&CassetteForm { version: VERSION, calls })?;
        text.push(b'\n');
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(&text)?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn code_of(name: &str) -> ErrorCode {
    let known = [
        ErrorCode::InvalidInput,
        ErrorCode::NotFound,
        ErrorCode::Denied,
        ErrorCode::Timeout,
        ErrorCode::Cancelled,
        ErrorCode::Unavailable,
    ];
    known.into_iter().find(|code| code.name() == name).unwrap_or(ErrorCode::Failed)
}

#[async_trait]
impl HostCallInterceptor for Cassette {
    async fn call_tool(
        &self,
        name: &str,
        arguments: &Value,
        call: HostCall<'_, ToolResult>,
    ) -> Result<ToolResult, Error> {
        let read = |form| mcp_json::read_tool_result(form).map_err(|error| error.to_string());
        self.answer(format!("tool {name}"), arguments.clone(), call, mcp_json::tool_result, read)
            .await
    }

    async fn complete(
        &self,
        request: &CompletionRequest,
        call: HostCall<'_, Completion>,
    ) -> Result<Completion, Error> {
        let with = completion_json::request(request);
        let (form, read) = (completion_json::completion, completion_json::read_completion);
        self.answer(format!("model {}", request.model), with, call, form, read).await
    }

    async fn fetch(
        &self,
        request: &http::Request<Vec<u8>>,
        call: HostCall<'_, http::Response<Vec<u8>>>,
    ) -> Result<http::Response<Vec<u8>>, Error> {
        let name = format!("{} {}", request.method(), request.uri());
        let mask = &self.0.mask;
        let with = json!({ "body": body(request.body(), mask) });
        self.answer(name, with, call, |answer| response(answer, mask), read_response).await
    }
}

/// The bytes of a body: a text, or `{ "base64": … }`.
fn body(bytes: &[u8], mask: &Redactor) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => {
            let mut bytes = bytes.to_vec();
            mask.bytes(&mut bytes);
            json!({ "base64": STANDARD.encode(bytes) })
        }
    }
}

fn response(response: &http::Response<Vec<u8>>, mask: &Redactor) -> Value {
    let is_kept = |name: &str| !LEFT_OUT.iter().any(|part| name.contains(part));
    let headers = response.headers().iter().filter(|(name, _)| is_kept(name.as_str()));
    let headers = headers
        .map(|(name, value)| json!([name.as_str(), String::from_utf8_lossy(value.as_bytes())]));
    json!({
        "status": response.status().as_u16(),
        "headers": headers.collect::<Vec<_>>(),
        "body": body(response.body(), mask),
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ResponseForm {
    status: u16,
    headers: Vec<(String, String)>,
    body: BodyForm,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum BodyForm {
    Text(String),
    Bytes { base64: String },
}

fn read_response(form: Value) -> Result<http::Response<Vec<u8>>, String> {
    let form: ResponseForm = serde_json::from_value(form).map_err(|error| error.to_string())?;
    let body = match form.body {
        BodyForm::Text(text) => text.into_bytes(),
        BodyForm::Bytes { base64 } => STANDARD.decode(base64).map_err(|error| error.to_string())?,
    };
    let mut response = http::Response::builder().status(form.status);
    for (name, value) in &form.headers {
        response = match name.as_str() {
            // The body is here as a whole.
            "transfer-encoding" | "connection" => response,
            // A masked body has another length.
            "content-length" => response.header(name, body.len()),
            _ => response.header(name, value),
        };
    }
    response.body(body).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn playing(calls: Value) -> Result<Cassette, CassetteError> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("c.json");
        fs::write(&path, json!({ "version": 1, "calls": calls }).to_string()).unwrap();
        Cassette::replay(path, Redactor::default())
    }

    async fn call(cassette: &Cassette, name: &str, arguments: Value) -> Result<String, String> {
        let made = Box::pin(async { panic!("nothing is called") });
        let result = cassette.call_tool(name, &arguments, made).await;
        result.map(|result| result.plain_text()).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn equal_calls_are_played_in_their_order_and_others_whenever_they_come() {
        let value =
            |text: &str| json!({ "value": { "content": [{ "type": "text", "text": text }] } });
        let cassette = playing(json!([
            { "call": "tool a", "with": { "n": 1 }, "answer": value("first") },
            { "call": "tool a", "with": { "n": 1 }, "answer": value("second") },
            { "call": "tool b", "with": {}, "answer": { "error": { "code": "timeout", "message": "late" } } },
        ]));
        let cassette = cassette.unwrap();
        assert_eq!(call(&cassette, "b", json!({})).await.unwrap_err(), "timeout: late");
        assert_eq!(call(&cassette, "a", json!({ "n": 1 })).await.unwrap(), "first");
        assert_eq!(cassette.unplayed(), ["tool a"]);
        assert_eq!(call(&cassette, "a", json!({ "n": 1 })).await.unwrap(), "second");
        let problem = call(&cassette, "a", json!({ "n": 1 })).await.unwrap_err();
        assert!(problem.contains("it has this call 2 times only"), "{problem}");
        let problem = call(&cassette, "a", json!({ "n": 2 })).await.unwrap_err();
        assert!(problem.contains("it has this call with something else"), "{problem}");
        let problem = call(&cassette, "c", json!({})).await.unwrap_err();
        assert!(problem.contains("it has no such call"), "{problem}");
    }

    #[tokio::test]
    async fn what_is_no_cassette_is_refused() {
        for calls in [
            json!({}),
            json!([{ "call": "x" }]),
            json!([{ "call": "x", "with": 1, "answer": { "v": 1 } }]),
        ] {
            assert!(matches!(playing(calls), Err(CassetteError::Invalid { .. })));
        }
        let odd =
            playing(json!([{ "call": "tool a", "with": {}, "answer": { "value": 1 } }])).unwrap();
        let problem = call(&odd, "a", json!({})).await.unwrap_err();
        assert!(problem.starts_with("failed: the cassette "), "{problem}");
    }
}
