//! What stands in for the rest of the world: services, a network, plugins that are called, and who
//! reads the log. Each keeps what reaches it.

use async_trait::async_trait;
use serde_json::json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tenon_host::services::{
    ApprovalChange, ApprovalRequest, Approver, AskingPlugin, ClientFeatures, Connector,
    GrantDecision, Memory, MemorySearch, Messaging, Offers, OutgoingMessage, Resolver, Secret,
    SecretStore, Stream, SystemNetwork,
};
use tenon_host::types::{
    CallContext, Completion, CompletionRequest, CompletionSummary, Error, FormAnswer, FormRequest,
    Identity, Json, ModelFeatures, ModelInfo, Part, ProviderDefinition, Registration, StopReason,
    TokenUsage, ToolDefinition, ToolResult,
};
use tenon_host::{Failure, Plugin};
use tracing::Metadata;
use tracing::dispatcher::{self, DefaultGuard, Dispatch, WeakDispatch};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_core::span::Current;

/// Something that is told things, and keeps them.
#[derive(Clone, Default)]
pub(crate) struct Recorder(Arc<Mutex<Vec<String>>>);

impl Recorder {
    fn lines(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, line: impl Into<String>) {
        self.lines().push(line.into());
    }

    /// What it was told since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.lines())
    }
}

#[async_trait]
impl Messaging for Recorder {
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let OutgoingMessage { channel, text, .. } = message;
        self.tell(format!("{plugin} to {}: {text}", channel.as_deref().unwrap_or("the user")));
        Ok(())
    }
}

#[async_trait]
impl MemorySearch for Recorder {
    async fn search(&self, plugin: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        self.tell(format!("{plugin} searches {query}"));
        // More than was asked for.
        let memory = |i| Memory { text: format!("{query} {i}"), score: 0.5, source: None };
        Ok((0..limit.saturating_add(2)).map(memory).collect())
    }
}

#[async_trait]
impl ClientFeatures for Recorder {
    fn offers(&self) -> Offers {
        Offers { forms: true, ..Offers::default() }
    }

    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        self.tell(format!("{} asks the user: {}", requester.plugin, form.message));
        Ok(FormAnswer::Accepted(Default::default()))
    }
}

/// Keeps secrets, a different one for each plugin.
pub(crate) struct FakeSecretStore;

/// What all of its secrets begin with.
pub(crate) const SECRET: &str = "hunter22-";

#[async_trait]
impl SecretStore for FakeSecretStore {
    async fn secret(&self, plugin: &str, name: &str) -> Option<Secret> {
        (name == "api-key").then(|| Secret::new(format!("{SECRET}{plugin}")))
    }
}

/// Approves what is requested, but for plugins of which something else is said: by their ids and
/// capabilities.
#[derive(Default)]
pub(crate) struct ApproveExcept {
    pub(crate) instead: Vec<(String, &'static str, Vec<String>)>,
    pub(crate) undecided: Vec<String>,
    pub(crate) stale: Vec<String>,
}

#[async_trait]
impl Approver for ApproveExcept {
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        let plugin = &request.plugin;
        if self.undecided.contains(plugin) {
            return GrantDecision::Undecided;
        }
        if self.stale.contains(plugin) {
            return GrantDecision::Stale(vec![ApprovalChange::Component]);
        }
        let mut granted: BTreeMap<_, _> = request.capabilities.clone();
        for (of, capability, values) in &self.instead {
            if of == plugin {
                granted.insert((*capability).into(), values.clone());
            }
        }
        granted.into()
    }
}

/// A network in which names lead where [`NAMES`] says. Nothing is sent but to one server on this
/// machine.
#[derive(Clone)]
pub(crate) struct Network {
    server: SocketAddr,
    /// Where connections were to lead.
    pub(crate) connected: Recorder,
    /// How often names were resolved that lead elsewhere the second time.
    resolved: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Names, and where they lead. Those that begin with `rebind` lead to one after the other.
const NAMES: &[(&str, &[&str])] = &[
    ("localhost", &["127.0.0.1"]),
    ("public.example.com", &["8.8.8.8"]),
    ("loopback.example.com", &["127.0.0.1"]),
    ("private.example.com", &["10.0.0.5"]),
    ("metadata.example.com", &["169.254.169.254"]),
    ("mapped.example.com", &["::ffff:127.0.0.1"]),
    ("translated.example.com", &["64:ff9b::7f00:1"]),
    ("unique-local.example.com", &["fd00::1"]),
    ("unspecified.example.com", &["0.0.0.0"]),
    ("mixed.example.com", &["10.0.0.5", "8.8.8.8"]),
    ("rebind-wasi-0-2.example.com", &["8.8.8.8", "10.0.0.5"]),
    ("rebind-wasi-0-3.example.com", &["8.8.8.8", "10.0.0.5"]),
    ("rebind-rhai.example.com", &["8.8.8.8", "10.0.0.5"]),
];

impl Network {
    pub(crate) fn with(server: SocketAddr) -> Self {
        Self { server, connected: Recorder::default(), resolved: Arc::default() }
    }
}

#[async_trait]
impl Resolver for Network {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let (_, addresses) = NAMES.iter().find(|(name, _)| *name == host).ok_or_else(|| {
            io::Error::new(io::ErrorKind::NotFound, format!("there is no host {host}"))
        })?;
        let addresses = addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok());
        let mut addresses: Vec<_> = addresses.map(|ip| SocketAddr::new(ip, port)).collect();
        if host.starts_with("rebind") {
            let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
            let times = resolved.entry(host.into()).or_default();
            let next = addresses[(*times).min(addresses.len() - 1)];
            *times += 1;
            addresses = vec![next];
        }
        Ok(addresses)
    }
}

#[async_trait]
impl Connector for Network {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.connected.tell(address.to_string());
        match address == self.server {
            true => SystemNetwork.connect(address).await,
            false => Err(io::ErrorKind::ConnectionRefused.into()),
        }
    }
}

/// A plugin that is part of the host, for others to call: it has the tools `echo` and `other`, and
/// the models `known` and `other`.
#[derive(Clone, Default)]
pub(crate) struct RecordingPlugin {
    pub(crate) called: Recorder,
}

/// Its id.
pub(crate) const WITNESS: &str = "conformance-witness";

#[async_trait]
impl Plugin for RecordingPlugin {
    async fn register(&self) -> Result<Registration, Failure> {
        let schema = json!({ "type": "object" });
        let tool = |name| ToolDefinition::new(name, "is called by others", &schema);
        let identity =
            Identity::new(WITNESS, env!("CARGO_PKG_VERSION"), "keeps what it is called with");
        let provider =
            ProviderDefinition { name: "witness".into(), description: "says yes".into() };
        Ok(Registration {
            tools: vec![tool("echo"), tool("other")],
            providers: vec![provider],
            ..Registration::new(identity)
        })
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Json,
        _: CallContext,
    ) -> Result<ToolResult, Failure> {
        self.called.tell(format!("{name} {arguments}"));
        Ok(ToolResult::text(format!("{name} was called")))
    }

    async fn models(&self) -> Result<Vec<ModelInfo>, Failure> {
        let model = |id: &str| ModelInfo {
            id: id.into(),
            provider: "witness".into(),
            title: None,
            context_window: None,
            max_output_tokens: None,
            features: ModelFeatures::default(),
        };
        Ok(vec![model("known"), model("other")])
    }

    async fn complete(
        &self,
        request: CompletionRequest,
        _: CallContext,
    ) -> Result<Completion, Failure> {
        self.called.tell(format!("model {}", request.model));
        let usage = TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 };
        let summary = CompletionSummary {
            model: request.model,
            stop_reason: StopReason::EndTurn,
            usage,
            extra: None,
        };
        Ok(Completion { parts: vec![Part::Text("yes".into())], summary })
    }
}

/// Who reads the log of one call, whichever thread or task of the host writes it: it becomes the
/// subscriber wherever a span of this call is entered.
#[derive(Clone, Default)]
pub(crate) struct CallTracingSubscriber {
    pub(crate) log: Recorder,
    dispatch: Arc<OnceLock<WeakDispatch>>,
    /// The spans that there are, by their ids less one.
    spans: Arc<Mutex<Vec<&'static Metadata<'static>>>>,
}

thread_local! {
    /// The spans that were entered on this thread, and who read the log before.
    static ENTERED: RefCell<Vec<(Id, Option<DefaultGuard>)>> = const { RefCell::new(Vec::new()) };
}

impl tracing::Subscriber for CallTracingSubscriber {
    fn on_register_dispatch(&self, dispatch: &Dispatch) {
        let _ = self.dispatch.set(dispatch.downgrade());
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        spans.push(span.metadata());
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, _: &Id, values: &Record<'_>) {
        let mut line = LogLineVisitor::default();
        values.record(&mut line);
        self.log.tell(line.0);
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut line = LogLineVisitor::default();
        event.record(&mut line);
        self.log.tell(line.0);
    }

    fn enter(&self, span: &Id) {
        let dispatch = self.dispatch.get().and_then(WeakDispatch::upgrade);
        let before = dispatch.map(|dispatch| dispatcher::set_default(&dispatch));
        ENTERED.with_borrow_mut(|entered| entered.push((span.clone(), before)));
    }

    fn exit(&self, _: &Id) {
        let left = ENTERED.with_borrow_mut(Vec::pop);
        drop(left);
    }

    fn current_span(&self) -> Current {
        let entered = ENTERED.with_borrow(|entered| entered.last().map(|(id, _)| id.clone()));
        let Some(id) = entered else { return Current::none() };
        let spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = usize::try_from(id.into_u64() - 1).ok().and_then(|at| spans.get(at));
        metadata.map_or_else(Current::none, |metadata| Current::new(id, metadata))
    }
}

#[derive(Default)]
struct LogLineVisitor(String);

impl Visit for LogLineVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, "{field}={value:?} ");
    }
}
