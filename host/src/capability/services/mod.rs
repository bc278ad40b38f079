//! What a host can offer to plugins, as traits with safe defaults: a plugin that asks a host which
//! offers nothing is told so.
//!
//! Plugins reach a service only if their manifest requests it and the host's [`Approver`] grants it.

mod access_tokens;
mod interceptor;
mod lazy_in_store;
mod state_backend;
mod tls;

use async_trait::async_trait;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;
use tenon_config::admit::{Approvals, Rules};
use tenon_config::discover::Candidate;
use tenon_config::pins::Quarantine;
use tenon_types::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

pub use crate::call::approver::{ApprovalScope, ApproverDecision, CallApprover, CallToApprove};
pub use crate::call::client::{
    AskingPlugin, CallClient, CallerClient, ClientFeature, ClientFeatures, LogMessage, Offers,
    Progress,
};
pub use access_tokens::{AccessTokens, AuthChallenge};
pub use interceptor::{HostCall, HostCallInterceptor};
pub(crate) use lazy_in_store::LazyInStore;
pub(crate) use state_backend::StateBackend;
pub use tenon_call_approvals::{
    Approval as PendingCall, ApprovalState, CallApprovalError, CallDetails, StandingApproval,
};
pub use tenon_config::approver::{
    ApprovalChange, ApprovalRequest, Approver, GrantAll, GrantDecision, GrantWarning,
    ServerParameters,
};
pub use tenon_config::pins::{
    ChangedPart, DefinitionKind, HeldDefinition, McpDefinition, ObservedDefinitions, PinCheck,
    PinError, PinFile, PinMode, Pins, UnstablePart,
};
pub use tenon_config::secret::{Secret, SecretStore};
/// The name of the host's own database, in the folder of [`Builder::state`](crate::Builder::state). It has what plugins keep,
/// and the record of calls.
pub use tenon_store::FILE_NAME as STATE_FILE;
pub use tenon_store::{
    Bucket, BucketUsage, Durability, ENTRY_OVERHEAD_BYTES, Item, ItemOutcome, ItemPage, ItemQuota,
    ItemStore, KeyPage, LazyStore, LogEntry, LogHash, LogIntegrity, LogPolicy, LogStore,
    LogSummary, MAX_BATCH_ENTRIES, MAX_PAGE_KEYS, NewEntry, Quota, Scope, SqliteStore, StateStore,
    Store, StoreError, SwapOutcome,
};
pub use tenon_types::{Memory, OutgoingMessage};

/// Sends plugins' messages to people, for the capability `messaging`.
#[async_trait]
pub trait Messaging: Send + Sync + 'static {
    /// Sends a message. The default refuses.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::NotFound`](crate::types::ErrorCode::NotFound) if the channel does not exist,
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if plugins may not use it.
    async fn send(&self, plugin: &str, message: OutgoingMessage) -> Result<(), Error> {
        let _ = (plugin, message);
        Err(Error::denied("this host sends no messages"))
    }
}

/// Searches the host's memory, for the capability `memory`.
#[async_trait]
pub trait MemorySearch: Send + Sync + 'static {
    /// Returns at most `limit` memories, best match first. The default returns an error, so that a plugin
    /// does not take it for a search without results.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if the host has no memory; any other error if the search
    /// fails.
    async fn search(&self, plugin: &str, query: &str, limit: u32) -> Result<Vec<Memory>, Error> {
        let _ = (plugin, query, limit);
        Err(Error::denied("this host remembers nothing"))
    }
}

/// Tells scripts the time.
pub trait Clock: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> SystemTime;
}

/// The system's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
}

/// Resolves host names for plugins' requests.
#[async_trait]
pub trait Resolver: Send + Sync + 'static {
    /// Returns the addresses of a host, best first. Called once for each request to a name. Each address is
    /// checked before anything connects to it.
    ///
    /// # Errors
    ///
    /// If the host cannot be resolved.
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>>;
}

/// Opens connections for plugins' requests. TLS runs on top of them.
#[async_trait]
pub trait Connector: Send + Sync + 'static {
    /// Connects to an address that the plugin may reach.
    ///
    /// # Errors
    ///
    /// If the connection fails.
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>>;

    /// Whether its connections are secure by themselves, so that `https` has no TLS on top of them: those of a test, which
    /// do not leave the process. The default is `false`.
    fn is_secure(&self) -> bool {
        false
    }
}

/// A connection.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The system's resolver, and TCP.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemNetwork;

#[async_trait]
impl Resolver for SystemNetwork {
    async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(lookup_host((host, port)).await?.collect())
    }
}

#[async_trait]
impl Connector for SystemNetwork {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Box::new(stream))
    }
}

/// How requests leave the host.
#[derive(Clone)]
pub(crate) struct NetworkBackend {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) tls: Arc<OnceLock<TlsConnector>>,
}

impl Default for NetworkBackend {
    fn default() -> Self {
        let (resolver, connector) = (Arc::new(SystemNetwork), Arc::new(SystemNetwork));
        Self { resolver, connector, tls: Arc::default() }
    }
}

impl NetworkBackend {
    /// The public authorities are trusted, and no others.
    pub(crate) fn tls(&self) -> &TlsConnector {
        self.tls.get_or_init(tls::connector)
    }
}

/// The services of a host that offers none.
struct NoServices;

impl Messaging for NoServices {}
impl MemorySearch for NoServices {}
impl ClientFeatures for NoServices {}
impl Approver for NoServices {}
impl CallApprover for NoServices {}
impl Pins for NoServices {}
impl AccessTokens for NoServices {}

/// The services of a host.
#[derive(Clone)]
pub(crate) struct Services {
    pub(crate) network: NetworkBackend,
    pub(crate) messaging: Arc<dyn Messaging>,
    pub(crate) memory: Arc<dyn MemorySearch>,
    pub(crate) features: Arc<dyn ClientFeatures>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) call_approver: Arc<dyn CallApprover>,
    pub(crate) pins: Arc<dyn Pins>,
    /// If `None`, secrets come from the environment and from files.
    pub(crate) secrets: Option<Arc<dyn SecretStore>>,
    pub(crate) access_tokens: Arc<dyn AccessTokens>,
    /// What plugins keep.
    pub(crate) state: Arc<StateBackend>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Who stands between plugins and what they ask of others, if somebody does.
    pub(crate) interceptor: Option<Arc<dyn HostCallInterceptor>>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            network: NetworkBackend::default(),
            messaging: Arc::new(NoServices),
            memory: Arc::new(NoServices),
            features: Arc::new(NoServices),
            approver: Arc::new(NoServices),
            call_approver: Arc::new(NoServices),
            pins: Arc::new(NoServices),
            secrets: None,
            access_tokens: Arc::new(NoServices),
            state: Arc::default(),
            clock: Arc::new(SystemClock),
            interceptor: None,
        }
    }
}

/// Asks about all candidates that need approval, one after the other.
pub async fn ask_approver(
    candidates: &[Candidate],
    rules: &Rules,
    approver: &dyn Approver,
) -> Approvals {
    let mut approvals = Approvals::default();
    for candidate in Approvals::wanted(candidates, rules) {
        let candidate = candidate.clone();
        // It reads the plugin's file.
        let asked = tokio::task::spawn_blocking(move || candidate.request_approval()).await;
        let Ok((request, content)) = asked else { continue };
        if Approvals::can_ask(&request, content) {
            let approval = approver.approve(&request).await;
            approvals.insert(&request.plugin, content, approval);
        }
    }
    approvals
}

/// What a keeper of pins says of what these servers have said. It may block, so it is asked on a thread for that.
pub(crate) async fn ask_pins(
    pins: Arc<dyn Pins>,
    servers: Vec<(PinMode, Vec<ObservedDefinitions>)>,
) -> Quarantine {
    if servers.iter().all(|(mode, _)| *mode == PinMode::Off) {
        return Quarantine::default();
    }
    let servers = Arc::new(servers);
    let asked = servers.clone();
    let answer = tokio::task::spawn_blocking(move || Quarantine::ask(&*pins, &asked)).await;
    answer.unwrap_or_else(|error| Quarantine::unknown(&servers, &error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread::{self, ThreadId};
    use tenon_config::pins::PinSubject;
    use tenon_types::ToolDefinition;
    use tokio::sync::mpsc;

    fn seen() -> Vec<(PinMode, Vec<ObservedDefinitions>)> {
        let server = PinSubject {
            plugin: "p".into(),
            named_in: "/no/such/tenon.toml".into(),
            server: "1".into(),
            mode: PinMode::Hold,
        };
        let definition =
            McpDefinition::of_tool(&ToolDefinition::new("t", "d", &serde_json::json!({})));
        let definitions = [("t".to_string(), definition)].into_iter();
        vec![(PinMode::Hold, vec![server.seen(DefinitionKind::Tool, definitions, true)])]
    }

    struct Panics;

    impl Pins for Panics {
        fn check(&self, _: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
            panic!("it is what is tested")
        }
    }

    #[tokio::test]
    async fn a_keeper_of_pins_that_breaks_holds_everything() {
        let quarantine = ask_pins(Arc::new(Panics), seen()).await;
        assert!(quarantine.of("p", DefinitionKind::Tool, "t").is_some_and(|hold| !hold.is_warning));
    }

    struct ThreadReportingPins(mpsc::UnboundedSender<ThreadId>);

    impl Pins for ThreadReportingPins {
        fn check(&self, _: &[ObservedDefinitions]) -> Result<PinCheck, PinError> {
            self.0.send(thread::current().id()).expect("somebody listens");
            Ok(PinCheck::default())
        }
    }

    #[tokio::test]
    async fn pins_are_asked_on_a_thread_that_may_block_and_only_for_what_is_compared() {
        let (sender, mut threads) = mpsc::unbounded_channel();
        let pins: Arc<dyn Pins> = Arc::new(ThreadReportingPins(sender));
        let quarantine = ask_pins(pins.clone(), seen()).await;
        assert!(quarantine.of("p", DefinitionKind::Tool, "t").is_none());
        assert_ne!(threads.recv().await, Some(thread::current().id()));
        let ignored = seen().into_iter().map(|(_, seen)| (PinMode::Off, seen)).collect();
        ask_pins(pins, ignored).await;
        assert!(threads.try_recv().is_err(), "nobody is asked");
    }
}
