//! The measures of the server itself, through the `metrics` facade beside those of calls, and `/metrics`, where they
//! are read.

use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use metrics::{counter, describe_counter, describe_gauge, gauge};
use std::fmt;

use super::Shared;
use super::answer::{AnswerBody, Refused, text};
use super::token::TokenGrant;
use crate::rates;

/// The connections that are open.
const CONNECTIONS: &str = "tenon_serve_connections";

/// The legacy sessions that have not ended.
const SESSIONS: &str = "tenon_serve_sessions";

/// The calls of modern clients that wait for answers.
const WAITING_CALLS: &str = "tenon_serve_waiting_calls";

/// The responses: label `status`.
const RESPONSES: &str = "tenon_serve_responses_total";

/// Prometheus' [text format](https://prometheus.io/docs/instrumenting/exposition_formats/).
const FORMAT: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// The recorder of the `metrics` facade, as text.
pub trait MetricsSource: fmt::Debug + Send + Sync + 'static {
    /// All measures in Prometheus' text format.
    fn render(&self) -> String;
}

/// Tells the recorder what is measured.
pub(super) fn describe() {
    describe_gauge!(CONNECTIONS, "Open connections of clients.");
    describe_gauge!(SESSIONS, "Sessions of legacy clients.");
    describe_gauge!(WAITING_CALLS, "Calls of modern clients that wait for answers.");
    describe_counter!(RESPONSES, "Responses over HTTP, by status.");
    rates::describe();
}

/// Counts a response, where somebody reads measures.
pub(super) fn count(shared: &Shared, status: StatusCode) {
    if shared.settings.metrics.is_some() {
        match status {
            StatusCode::OK => counter!(RESPONSES, "status" => "200").increment(1),
            // A text of its own is copied each time.
            status => counter!(RESPONSES, "status" => status.as_str().to_string()).increment(1),
        }
    }
}

/// The measures, for whoever may use everything.
pub(super) fn get(shared: &Shared, grant: &TokenGrant) -> Result<Response<AnswerBody>, Refused> {
    let Some(source) = &shared.settings.metrics else {
        return Err(text(StatusCode::NOT_FOUND, "nothing is measured here\n").into());
    };
    if grant.profile.is_some() || grant.tools.is_some() {
        let problem = "the token is good for some tools only, and metrics name all\n";
        return Err(text(StatusCode::FORBIDDEN, problem).into());
    }
    let connections = shared.settings.max_connections - shared.room.available_permits();
    gauge!(CONNECTIONS).set(connections as f64);
    gauge!(SESSIONS).set(shared.sessions.count() as f64);
    gauge!(WAITING_CALLS).set(shared.server.parked.count() as f64);
    let mut response = text(StatusCode::OK, source.render());
    response.headers_mut().insert(CONTENT_TYPE, FORMAT);
    Ok(response)
}
