//! Requests of the modern era: each says by itself who asks and what its client can do.

use ring::digest::{Context, Digest, SHA256};
use serde::Serialize;
use std::io::{self, Write};
use std::sync::Arc;
use tenon_host::Caller;
use tenon_host::services::CallerClient;
use tokio::sync::watch;

use crate::changes::{self, Change, ClientSubscription};
use crate::client::{Outlet, RequestClient};
use crate::offer::Peer;
use crate::parked::{Progressed, RunningCall};
use crate::protocol::error::RpcError;
use crate::protocol::message::{RawRequest, RequestId};
use crate::protocol::meta::{ModernMeta, RequestMeta, SUBSCRIPTION_ID};
use crate::protocol::request::{Input, ListKind, ListenFilter, Request};
use crate::protocol::version::{Era, MODERN};
use crate::protocol::write;
use crate::request_handler::RequestHandler;
use crate::server::{Inner, closed};

/// A request that is known to be one of this era.
#[derive(Debug)]
pub(crate) struct ModernRequest {
    pub(crate) request: Request,
    meta: RequestMeta,
    modern: ModernMeta,
}

impl ModernRequest {
    /// Reads a request: first what it says of itself, then its revision, and then what it asks for. `check` is asked
    /// before the revision and before the method, about headers.
    pub(crate) fn read(
        raw: &RawRequest<'_>,
        check_version: impl FnOnce(&str) -> Result<(), RpcError>,
        check_method: impl FnOnce() -> Result<(), RpcError>,
    ) -> Result<Self, RpcError> {
        let (meta, modern) = raw.meta.modern()?;
        check_version(&modern.version)?;
        if modern.version != MODERN {
            return Err(RpcError::unsupported_version(&modern.version));
        }
        check_method()?;
        let request = Request::read(Era::Modern, &raw.method, raw.params)?;
        Ok(Self { request, meta, modern })
    }
}

impl Inner {
    /// Answers a request. Gives the result, a JSON object. Dropping the future gives the request up.
    pub(crate) async fn answer_modern(
        &self,
        peer: &Peer,
        request: ModernRequest,
        outlet: Outlet,
    ) -> Result<String, RpcError> {
        let ModernRequest { mut request, meta, modern } = request;
        let caller = Caller {
            agent_id: modern.client.clone(),
            traceparent: meta.traceparent.clone(),
            ..Caller::default()
        };
        let Some(input) = take_input(&mut request) else {
            let mut work = self.work(peer, Era::Modern, caller);
            let client = RequestClient::modern(
                modern.capabilities,
                outlet,
                meta.progress_token,
                modern.log_level,
                Default::default(),
            );
            // What is listed or suggested asks nobody.
            let client = Arc::new(client.0);
            work.caller.client = Some(CallerClient::from(client));
            return work.run(request).await;
        };
        let digest = digest_of(&request);
        let profile = peer.profile.key();
        let bound: &[&[u8]] = &[peer.principal.as_bytes(), profile.as_bytes(), digest.as_ref()];
        let (token, level) = (meta.progress_token, modern.log_level);
        let call = match &input.state {
            Some(state) => {
                let mut call = self.parked.take(state, bound).await?;
                call.client.go_on_with(outlet, token, level);
                call.take_answers(input.answers);
                call
            }
            None => {
                let (client, questions) =
                    RequestClient::modern(modern.capabilities, outlet, token, level, input.answers);
                let client = Arc::new(client);
                let mut work = self.work(peer, Era::Modern, caller);
                work.caller.client = Some(CallerClient::from(client.clone()));
                work.client = Some(client.clone());
                RunningCall::new(Box::pin(run(work, request)), client, questions)
            }
        };
        match call.go_on().await {
            Progressed::Done(done) => done,
            Progressed::Waits(call) => {
                call.client.rest();
                self.parked.park(call, bound).await
            }
        }
    }

    /// Tells a client of changes until it goes away or the server ends.
    pub(crate) async fn listen(
        &self,
        peer: &Peer,
        id: &RequestId,
        filter: ListenFilter,
        outlet: &Outlet,
        mut closing: watch::Receiver<bool>,
    ) -> Result<String, RpcError> {
        let news = self.changes.subscribe();
        let work = Arc::new(self.work(peer, Era::Modern, Caller::default()));
        let mut held: Vec<ClientSubscription> = Vec::new();
        let mut updates = Vec::new();
        for uri in &filter.updates {
            match self.subscriptions.subscribe(&work, uri).await {
                Ok(subscription) => {
                    held.push(subscription);
                    updates.push(uri.clone());
                }
                Err(error) => tracing::debug!("{uri:?} is not subscribed: {}", error.message),
            }
        }
        let meta = format!(r#"{{"{SUBSCRIPTION_ID}":{}}}"#, id.json());
        let accepted = accepted(&filter, &updates);
        let params = format!(r#"{{"_meta":{meta},"notifications":{accepted}}}"#);
        let acknowledged =
            write::notification("notifications/subscriptions/acknowledged", Some(&params));
        if !outlet.send(acknowledged).await {
            return Ok(String::new());
        }
        let wants = |change: &Change| is_wanted(&filter, &updates, change);
        tokio::select! {
            () = changes::tell(news, outlet, Some(&meta), wants, || updates.clone()) => {
                Ok(String::new())
            }
            () = closed(&mut closing) => Ok(write::complete(Era::Modern, "{}".into(), None)),
        }
    }
}

async fn run(work: RequestHandler, request: Request) -> Result<String, RpcError> {
    work.run(request).await
}

/// What a client brings for its user, where the request may need one.
fn take_input(request: &mut Request) -> Option<Input> {
    match request {
        Request::CallTool { input, .. }
        | Request::ReadResource { input, .. }
        | Request::GetPrompt { input, .. } => Some(std::mem::take(input)),
        _ => None,
    }
}

/// What a call that waits is bound to: what is asked, without the answers. Every call has one, so it is digested as it
/// is written.
fn digest_of(request: &Request) -> Digest {
    match request {
        Request::CallTool { name, arguments, .. } => {
            digest_as_json(&("tools/call", name, arguments))
        }
        Request::ReadResource { uri, .. } => digest_as_json(&("resources/read", uri)),
        Request::GetPrompt { name, arguments, .. } => {
            digest_as_json(&("prompts/get", name, arguments))
        }
        _ => digest_as_json(&()),
    }
}

fn digest_as_json(value: &impl Serialize) -> Digest {
    struct DigestWriter(Context);

    impl Write for DigestWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.update(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut writer = DigestWriter(Context::new(&SHA256));
    serde_json::to_writer(&mut writer, value).expect("texts and JSON are written as JSON");
    writer.0.finish()
}

/// What of a filter is served, as JSON.
fn accepted(filter: &ListenFilter, updates: &[String]) -> String {
    let mut accepted = serde_json::Map::new();
    for (name, wanted) in [
        ("toolsListChanged", filter.tools),
        ("resourcesListChanged", filter.resources),
        ("promptsListChanged", filter.prompts),
    ] {
        if wanted {
            accepted.insert(name.into(), true.into());
        }
    }
    if !updates.is_empty() {
        accepted.insert("resourceSubscriptions".into(), updates.into());
    }
    serde_json::Value::Object(accepted).to_string()
}

fn is_wanted(filter: &ListenFilter, updates: &[String], change: &Change) -> bool {
    match change {
        Change::List(ListKind::Tools) => filter.tools,
        Change::List(ListKind::Prompts) => filter.prompts,
        Change::List(_) => filter.resources,
        Change::Resource(uri) => updates.iter().any(|wanted| **wanted == **uri),
    }
}
