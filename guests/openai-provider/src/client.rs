//! Speaks with the endpoint.

use std::time::SystemTime;

use tenon_sdk::http::sse::{Event, EventTooLong, Parser};
use tenon_sdk::http::{self, Method, Request, Response, Url};
use tenon_sdk::provider::{Completion, CompletionRequest, CompletionSummary, Deltas, ModelInfo};
use tenon_sdk::{Context, Error, ErrorCode, secrets};

use crate::answer::{Assembler, MOST_ANSWER};
use crate::api_key::Key;
use crate::error::Endpoint;
use crate::model_list;
use crate::settings::Settings;

/// The most of a refusal to read.
const MOST_REFUSAL: usize = 64 * 1024;

/// What ends a streamed answer.
const DONE: &str = "[DONE]";

/// An endpoint, with the key to it.
pub(crate) struct Client {
    settings: Settings,
    base: Url,
    endpoint: Endpoint,
}

impl Client {
    /// Gets the key. A key that nobody has set is not sent: an endpoint may want none.
    pub(crate) fn new(settings: Settings) -> Result<Self, Error> {
        let base = settings.base()?;
        let key = match settings.secret.as_str() {
            "" => None,
            name => match secrets::get(name) {
                Ok(key) => Some(Key::new(&key).ok_or_else(|| {
                    Error::failed(format!("the secret \"{name}\" is empty or no key"))
                })?),
                Err(Error { code: ErrorCode::NotFound, .. }) => None,
                Err(error) => return Err(error),
            },
        };
        let name = http::shown(&base).trim_end_matches('/').to_string();
        let endpoint = Endpoint { name, key };
        Ok(Self { settings, base, endpoint })
    }

    /// The models that the endpoint lists.
    pub(crate) async fn models(&self) -> Result<Vec<ModelInfo>, Error> {
        let response = self.send(Method::Get, &["models"], None, None).await?;
        let body = self.whole(response).await?;
        model_list::read(&body).map_err(|what| self.endpoint.malformed(what))
    }

    /// Asks for an answer in one piece.
    pub(crate) async fn complete(
        &self,
        request: &CompletionRequest,
        body: Vec<u8>,
        context: &Context,
    ) -> Result<Completion, Error> {
        let response = self.ask(body, context).await?;
        let body = self.whole(response).await?;
        let mut assembler = self.assembler(request, context);
        assembler.take(&body)?;
        assembler.finish().map(|(_, completion)| completion)
    }

    /// Asks for an answer in pieces and passes them on as they come.
    pub(crate) async fn stream(
        &self,
        request: &CompletionRequest,
        body: Vec<u8>,
        context: &Context,
        deltas: &mut Deltas,
    ) -> Result<CompletionSummary, Error> {
        let mut response = self.ask(body, context).await?;
        let mut assembler = self.assembler(request, context);
        if response.headers.media_type().as_deref() == Some("application/json") {
            // It does not stream. What it has said is still an answer.
            let body = self.whole(response).await?;
            for delta in assembler.take(&body)? {
                deltas.write(delta).await?;
            }
        } else {
            let too_long =
                |EventTooLong| self.endpoint.malformed("an event of the answer is too long");
            let mut parser = Parser::default();
            let mut events = Vec::new();
            let mut done = false;
            while !done && let Some(piece) = response.chunk().await? {
                parser.push(&piece, &mut events).map_err(too_long)?;
                done = pass(&mut assembler, events.drain(..), deltas).await?;
            }
            if !done {
                events.extend(parser.finish().map_err(too_long)?);
                done = pass(&mut assembler, events.drain(..), deltas).await?;
            }
            if !done && !assembler.begun() {
                return Err(self.endpoint.malformed("the answer is no stream of events"));
            }
            if !done && !assembler.ended() {
                return Err(self.endpoint.broken_off());
            }
        }
        let (last, completion) = assembler.finish()?;
        for delta in last {
            deltas.write(delta).await?;
        }
        Ok(completion.summary)
    }

    fn assembler(&self, request: &CompletionRequest, context: &Context) -> Assembler {
        Assembler::new(self.endpoint.clone(), request, context.call_id())
    }

    async fn ask(&self, body: Vec<u8>, context: &Context) -> Result<Response, Error> {
        self.send(Method::Post, &["chat", "completions"], Some(body), context.traceparent()).await
    }

    /// Sends a request, and makes an error of an answer that is no success.
    async fn send(
        &self,
        method: Method,
        path: &[&str],
        body: Option<Vec<u8>>,
        traceparent: Option<&str>,
    ) -> Result<Response, Error> {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let agent = concat!("tenon-openai-provider/", env!("CARGO_PKG_VERSION"));
        let authorization = self.endpoint.key.as_ref().map(Key::header);
        let headers = [
            ("user-agent", Some(agent)),
            ("content-type", body.is_some().then_some("application/json")),
            ("authorization", authorization.as_deref()),
            ("openai-organization", self.settings.organization.as_deref()),
            ("openai-project", self.settings.project.as_deref()),
            ("traceparent", traceparent),
        ];
        let headers = headers.into_iter().filter_map(|(n, v)| Some((n.into(), v?.into())));
        let timeout = Some(self.settings.patience());
        let headers = headers.collect();
        let mut response = http::send(Request { method, url, headers, body, timeout }).await?;
        if (200..300).contains(&response.status) {
            return Ok(response);
        }
        // What there is of the reason will do.
        let (body, _) = response.read(MOST_REFUSAL).await.unwrap_or_default();
        let now = SystemTime::now();
        let error = self.endpoint.refused(response.status, &response.headers, &body, now);
        if error.code == ErrorCode::Denied && self.endpoint.key.is_none() {
            return Err(Error::denied(format!("{} ({})", error.message, self.keyless())));
        }
        Err(error)
    }

    /// Why no key was sent.
    fn keyless(&self) -> String {
        match self.settings.secret.as_str() {
            "" => "no key was sent: the configuration names no secret".into(),
            name => format!("no key was sent: the secret \"{name}\" is not set"),
        }
    }

    async fn whole(&self, mut response: Response) -> Result<Vec<u8>, Error> {
        match response.read(MOST_ANSWER).await? {
            (body, false) => Ok(body),
            (_, true) => Err(self.endpoint.malformed("the answer is too long")),
        }
    }
}

/// Passes on what events say; tells whether one of them ends the answer.
async fn pass(
    assembler: &mut Assembler,
    events: impl Iterator<Item = Event>,
    deltas: &mut Deltas,
) -> Result<bool, Error> {
    for event in events {
        if event.data.trim() == DONE {
            return Ok(true);
        }
        if event.name == "error" {
            return Err(assembler.take_error(&event.data));
        }
        // Some servers keep the connection alive with empty events.
        if event.data.trim().is_empty() {
            continue;
        }
        for delta in assembler.take(event.data.as_bytes())? {
            deltas.write(delta).await?;
        }
    }
    Ok(false)
}
