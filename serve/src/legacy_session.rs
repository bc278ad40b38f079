//! Sessions of the legacy era: what a client said with `initialize`, and what came of it since.

use serde_json::json;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tenon_host::Caller;
use tenon_host::services::CallerClient;

use crate::changes::{self, Change, ClientSubscription};
use crate::client::{Outlet, PendingAnswers, RequestClient};
use crate::lock;
use crate::offer::Peer;
use crate::protocol::capabilities::Severity;
use crate::protocol::error::RpcError;
use crate::protocol::meta::RequestMeta;
use crate::protocol::request::{Initialize, Request};
use crate::protocol::version::{Era, negotiate};
use crate::request_handler::{server_capabilities, server_info};
use crate::server::Inner;

/// The most resources that one session subscribes to.
const MAX_SUBSCRIPTIONS: usize = 1000;

/// A session.
pub(crate) struct Session {
    /// Names it in the platform: state and instances of sessions are kept by this.
    pub(crate) id: String,
    pub(crate) peer: Peer,
    version: &'static str,
    begun: Initialize,
    /// What the client was asked.
    pub(crate) pending: Arc<PendingAnswers>,
    level: Mutex<Option<Severity>>,
    subscriptions: Mutex<HashMap<String, ClientSubscription>>,
}

impl Session {
    /// A session begins. The second value is the result of `initialize`.
    pub(crate) fn begin(
        server: &Inner,
        id: String,
        peer: Peer,
        begun: Initialize,
    ) -> (Self, String) {
        let version = negotiate(&begun.version);
        let result = json!({
            "protocolVersion": version,
            "capabilities": server_capabilities(),
            "serverInfo": server_info(),
        });
        let session = Self {
            id,
            peer,
            version,
            begun,
            pending: Arc::new(PendingAnswers::new(server.questions.clone())),
            level: Mutex::new(None),
            subscriptions: Mutex::default(),
        };
        (session, result.to_string())
    }

    /// The revision that it speaks.
    pub(crate) fn version(&self) -> &'static str {
        self.version
    }

    /// Answers a request. Gives the result, a JSON object. Dropping the future gives the request up.
    pub(crate) async fn answer(
        &self,
        server: &Inner,
        request: Request,
        meta: RequestMeta,
        outlet: Outlet,
    ) -> Result<String, RpcError> {
        match request {
            Request::Initialize(_) => Err(RpcError::new(
                crate::protocol::error::INVALID_REQUEST,
                "the session has begun already",
            )),
            Request::SetLevel(level) => {
                *lock(&self.level) = Some(level);
                Ok("{}".into())
            }
            Request::Subscribe { uri, wanted } => {
                self.subscribe(server, uri, wanted).await?;
                Ok("{}".into())
            }
            request => {
                // Until a client says how much it wants, it gets what matters.
                let level = *lock(&self.level);
                let level = level.or(Some(Severity::Info));
                let client = Arc::new(RequestClient::legacy(
                    self.begun.capabilities,
                    self.pending.clone(),
                    outlet,
                    meta.progress_token,
                    level,
                ));
                let caller = Caller {
                    agent_id: self.begun.client.clone(),
                    session_id: Some(self.id.clone()),
                    traceparent: meta.traceparent,
                    client: Some(CallerClient::from(client.clone())),
                    ..Caller::default()
                };
                let mut work = server.work(&self.peer, Era::Legacy, caller);
                work.client = Some(client);
                work.run(request).await
            }
        }
    }

    async fn subscribe(&self, server: &Inner, uri: String, wanted: bool) -> Result<(), RpcError> {
        let held = || lock(&self.subscriptions);
        if !wanted {
            held().remove(&uri);
            return Ok(());
        }
        let count = held().len();
        if held().contains_key(&uri) {
            return Ok(());
        }
        if count >= MAX_SUBSCRIPTIONS {
            return Err(RpcError::invalid_params(format!(
                "a session subscribes to {MAX_SUBSCRIPTIONS} resources at most"
            )));
        }
        let caller = Caller { session_id: Some(self.id.clone()), ..Caller::default() };
        let work = Arc::new(server.work(&self.peer, Era::Legacy, caller));
        let subscription = server.subscriptions.subscribe(&work, &uri).await?;
        held().insert(uri, subscription);
        Ok(())
    }

    /// Whether the client is told of a change.
    fn wants(&self, change: &Change) -> bool {
        match change {
            Change::List(_) => true,
            Change::Resource(uri) => {
                let held = lock(&self.subscriptions);
                held.contains_key(&**uri)
            }
        }
    }

    /// Tells the client of changes until it goes away or the server ends.
    pub(crate) async fn tell_changes(&self, server: &Inner, outlet: &Outlet) {
        let resources = || lock(&self.subscriptions).keys().cloned().collect();
        let news = server.changes.subscribe();
        changes::tell(news, outlet, None, |change| self.wants(change), resources).await;
    }
}
