//! POST: a message of a client, of either era.

use futures::future::BoxFuture;
use hyper::body::{Bytes, Incoming};
use hyper::header::HeaderMap;
use hyper::http::request::Parts;
use hyper::{Request as HttpRequest, Response, StatusCode};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

use super::answer::{self, AnswerBody, KEEP_ALIVE, empty, json, refusal};
use super::{Shared, body, legacy, modern_headers};
use crate::client::Outlet;
use crate::modern::ModernRequest;
use crate::offer::Peer;
use crate::protocol::error::{INVALID_REQUEST, RpcError};
use crate::protocol::message::{self, Invalid, Message, RawRequest, RequestId};
use crate::protocol::meta::Meta;
use crate::protocol::request::Request;
use crate::protocol::version::{Era, LEGACY};
use crate::protocol::write;

/// The most messages of one request that wait to be sent.
pub(super) const MAX_QUEUED: usize = 256;

/// The most pieces of a stream that wait for a client that reads slowly.
pub(super) const MAX_PIECES: usize = 16;

pub(super) async fn post(
    shared: &Arc<Shared>,
    peer: Peer,
    request: HttpRequest<Incoming>,
) -> Response<AnswerBody> {
    let (Parts { headers, .. }, body) = request.into_parts();
    if let Err(refused) = body::check_types(&headers) {
        return *refused;
    }
    let most = shared.server.settings.max_message;
    let mut memory = shared.memory.begin(&peer.principal);
    let response = match body::read(body, most, shared.settings.read_time, &mut memory).await {
        Ok(text) => take(shared, peer, &headers, &text).await,
        Err(refused) => *refused,
    };
    response.map(|body| body.keeping(memory))
}

/// Answers a message.
async fn take(
    shared: &Arc<Shared>,
    peer: Peer,
    headers: &HeaderMap,
    text: &str,
) -> Response<AnswerBody> {
    let version = match modern_headers::version(headers) {
        Ok(version) => version,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, None, &error),
    };
    if text.trim_start().starts_with('[') {
        return legacy::post_batch(shared, &peer, headers, text).await;
    }
    let message = match message::read_one(text) {
        Ok(message) => message,
        Err(Invalid { id, error }) => {
            return refusal(StatusCode::BAD_REQUEST, id.as_ref(), &error);
        }
    };
    let names_version = match &message {
        Message::Request(request) => request.meta.version().is_some(),
        Message::Notification { params, .. } => Meta::find(*params).version().is_some(),
        Message::Response { .. } => false,
    };
    let is_modern = !legacy::has_session(headers)
        && (version.is_some_and(|version| !LEGACY.contains(&version)) || names_version);
    if !is_modern {
        return legacy::post(shared, &peer, headers, message).await;
    }
    match message {
        Message::Request(raw) => modern(shared, peer, headers, &raw).await,
        // To go away is how a request is cancelled, and there is nothing else to tell.
        Message::Notification { .. } => empty(StatusCode::ACCEPTED),
        Message::Response { id, .. } => {
            let error = RpcError::new(INVALID_REQUEST, "nothing was asked that this could answer");
            refusal(StatusCode::BAD_REQUEST, Some(&id), &error)
        }
    }
}

/// Checks what the headers of a modern request say of what it asks for.
fn check_headers(
    shared: &Shared,
    peer: &Peer,
    headers: &HeaderMap,
    request: &Request,
) -> Result<(), RpcError> {
    if let Some(name) = request.name() {
        modern_headers::check_name(headers, name)?;
    }
    if let Request::CallTool { name, arguments, .. } = request {
        let tools = shared.server.offer.tools(&peer.profile, Era::Modern);
        if let Some(target) = tools.target(name) {
            modern_headers::check_arguments(headers, &target.headers, arguments)?;
        }
    }
    Ok(())
}

async fn modern(
    shared: &Arc<Shared>,
    peer: Peer,
    headers: &HeaderMap,
    raw: &RawRequest<'_>,
) -> Response<AnswerBody> {
    let read = ModernRequest::read(
        raw,
        |version| modern_headers::check_version(headers, version),
        || modern_headers::check_method(headers, &raw.method),
    );
    let read = read.and_then(|request| {
        check_headers(shared, &peer, headers, &request.request)?;
        Ok(request)
    });
    let mut request = match read {
        Ok(request) => request,
        Err(error) => return failed(&raw.id, &error),
    };
    let (outlet, messages) = Outlet::new(MAX_QUEUED);
    let (server, id, closing) = (shared.server.clone(), raw.id.clone(), shared.closing.clone());
    let answering: BoxFuture<'static, _> = match &mut request.request {
        Request::Listen(filter) => {
            let filter = std::mem::take(filter);
            Box::pin(async move { server.listen(&peer, &id, filter, &outlet, closing).await })
        }
        _ => Box::pin(async move { server.answer_modern(&peer, request, outlet).await }),
    };
    answer(raw.id.clone(), answering, messages, shared.settings.keep_alive).await
}

/// The response with an error.
fn failed(id: &RequestId, error: &RpcError) -> Response<AnswerBody> {
    let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    refusal(status, Some(id), error)
}

/// Answers as soon as it is known how: with a message, or with a stream of some where there is something to tell before
/// the answer. A client that goes away gives the request up.
async fn answer(
    id: RequestId,
    mut answering: BoxFuture<'static, Result<String, RpcError>>,
    mut messages: mpsc::Receiver<String>,
    keep_alive: Duration,
) -> Response<AnswerBody> {
    let first = tokio::select! {
        biased;
        Some(message) = messages.recv() => message,
        result = &mut answering => {
            // What was told in the same moment comes first.
            let Ok(first) = messages.try_recv() else {
                return match result {
                    Ok(result) => json(StatusCode::OK, write::response(&id, &result)),
                    Err(error) => failed(&id, &error),
                };
            };
            answering = Box::pin(std::future::ready(result));
            first
        }
    };
    let (response, pieces) = answer::stream(MAX_PIECES);
    tokio::spawn(async move {
        if pieces.send(answer::event(None, &first)).await.is_err() {
            return;
        }
        loop {
            let piece: Bytes = tokio::select! {
                biased;
                Some(message) = messages.recv() => answer::event(None, &message),
                result = &mut answering => {
                    let message = match result {
                        // The client has gone away.
                        Ok(result) if result.is_empty() => return,
                        Ok(result) => write::response(&id, &result),
                        Err(error) => write::error(Some(&id), &error),
                    };
                    while let Ok(message) = messages.try_recv() {
                        let _ = pieces.send(answer::event(None, &message)).await;
                    }
                    let _ = pieces.send(answer::event(None, &message)).await;
                    return;
                }
                () = pieces.closed() => return,
                () = tokio::time::sleep(keep_alive) => KEEP_ALIVE,
            };
            if pieces.send(piece).await.is_err() {
                return;
            }
        }
    });
    response
}
