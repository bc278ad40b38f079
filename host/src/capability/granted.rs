//! What one plugin was lent, and the way to the host that lends it. Components and scripts turn to
//! the same place.

use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::{Arc, OnceLock, Weak};
use tenon_config::grant::Grants;
use tenon_config::secret::KnownSecrets;
use tenon_types::text::one_line;
use tenon_types::{
    Completion, CompletionRequest, Error, HookPoint, LogLevel, OutgoingMessage, ToolDefinition,
    ToolResult,
};
use tokio::task::JoinSet;
use tracing::{Instrument, Span};

use crate::call::mask::{MaskSecrets, Masked, Unmasked};
use crate::call::{Call, CallError, Caller, Failure, HookReport};
use crate::capability::services::{ClientFeature, ClientFeatures, Clock, Services};
use crate::observe::PluginLog;

/// What one plugin was lent.
pub(crate) struct GrantedCapabilities {
    plugin: Arc<str>,
    grants: Grants,
    pub(super) host_services: Arc<HostServices>,
    /// Through which the operator learns of refusals.
    log: Option<Arc<PluginLog>>,
}

impl GrantedCapabilities {
    pub(crate) fn new(plugin: Arc<str>, grants: Grants, host_services: Arc<HostServices>) -> Self {
        Self { plugin, grants, host_services, log: None }
    }

    /// The same, with a way to tell the operator of refusals.
    pub(crate) fn with_log(self, log: Arc<PluginLog>) -> Self {
        Self { log: Some(log), ..self }
    }

    pub(crate) fn plugin(&self) -> &str {
        &self.plugin
    }

    /// Who answers what MCP servers ask.
    pub(super) fn features(&self) -> Arc<dyn ClientFeatures> {
        self.host_services.services.features.clone()
    }

    /// What the plugin says to the host, without secrets: its own, and those of other plugins.
    pub(super) fn masked<T: MaskSecrets>(&self, said: Unmasked<T>) -> Masked<T> {
        match (&self.log, self.host_services.secrets.redactor()) {
            (Some(log), _) => log.masked(said),
            (None, redactor) => said.mask(&redactor.unwrap_or_default()),
        }
    }

    /// The same of a message that it sends.
    pub(super) fn masked_message(
        &self,
        message: Unmasked<OutgoingMessage>,
    ) -> Masked<OutgoingMessage> {
        match &self.log {
            Some(log) => log.masked_message(message),
            None => self.masked(message),
        }
    }

    /// The clock of scripts.
    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        self.host_services.services.clock.clone()
    }

    pub(super) fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Whether a value of a capability was granted.
    pub(super) fn has(&self, capability: &str, value: &str) -> bool {
        self.grants.allow(capability, value)
    }

    /// Refuses what was not granted, in words that teach.
    pub(super) fn require(&self, capability: &str, value: &str, tried: &str) -> Result<(), Error> {
        if self.grants.allow(capability, value) {
            return Ok(());
        }
        Err(self.denied(self.not_granted(tried, capability, value)))
    }

    /// The words of a refusal: what would grant it is up to the manifest, or to who approved less.
    pub(crate) fn not_granted(&self, tried: &str, capability: &str, value: &str) -> String {
        match self.grants.was_requested(capability, value) {
            true => granted_less(&self.plugin, tried),
            false => not_granted(&self.plugin, tried, RequestedIn::Manifest, capability, value),
        }
    }

    /// The words of a refusal of what only a request by its name covers.
    pub(crate) fn protected(
        &self,
        tried: &str,
        capability: &str,
        value: &str,
        what: &str,
    ) -> String {
        let plugin = &self.plugin;
        format!(
            "plugin \"{plugin}\": {} is not granted, as no glob covers {what}; its plugin.toml would \
             request it by name, with `{capability} = [{value:?}]` under [capabilities]",
            one_line(tried)
        )
    }

    /// A refusal in these words, which the operator learns of as well.
    pub(super) fn denied(&self, words: String) -> Error {
        let logged = words.clone();
        self.denied_and_logged(words, &logged)
    }

    /// A refusal of which the operator learns more than the plugin.
    pub(super) fn denied_and_logged(&self, words: String, logged: &str) -> Error {
        if let Some(log) = &self.log {
            log.write(LogLevel::Warn, logged, &[]);
        }
        Error::denied(words)
    }
}

/// Refuses what is asked of the user or the default model, where nobody offers that.
pub(super) fn not_offered(features: &dyn ClientFeatures, missing: ClientFeature) -> Error {
    let problem = match missing {
        ClientFeature::Forms => "this host has no user who fills in forms",
        ClientFeature::Pages => "this host has no user who opens pages",
        ClientFeature::Sampling => "this host has no default model",
        ClientFeature::Roots => "this host names no folders",
    };
    Error::denied(format!("{problem}; {}", features.remedy(missing)))
}

/// The words of a refusal of what was requested.
fn granted_less(plugin: &str, tried: &str) -> String {
    let tried = one_line(tried);
    format!(
        "plugin \"{plugin}\": {tried} is not granted; less was granted than its plugin.toml \
         requests, and `tenon approve {plugin} --grant …` grants more"
    )
}

/// Where a plugin says what it requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedIn {
    /// Its `plugin.toml`.
    Manifest,
    /// The entry of a configuration that names it: a server's.
    Entry,
}

/// The words of every other refusal: who tried what, and the line that would request it.
pub(crate) fn not_granted(
    plugin: &str,
    tried: &str,
    requested_in: RequestedIn,
    capability: &str,
    value: &str,
) -> String {
    // The plugin made up what it tried.
    let tried = one_line(tried);
    let [place, table] = match requested_in {
        RequestedIn::Manifest => ["plugin.toml", "[capabilities]"],
        RequestedIn::Entry => ["entry", "`capabilities`"],
    };
    format!(
        "plugin \"{plugin}\": {tried} is not granted; its {place} would request it with \
         `{capability} = [{value:?}]` under {table}"
    )
}

/// The way to the services of a host, and to its other plugins.
#[derive(Default)]
pub(crate) struct HostServices {
    pub(crate) services: Services,
    other_plugins: OnceLock<Weak<dyn OtherPlugins>>,
    pub(crate) secrets: Arc<KnownSecrets>,
}

/// What plugins can ask a host for that concerns other plugins.
#[async_trait]
pub(crate) trait OtherPlugins: Send + Sync {
    /// The tools of all plugins whose names are allowed, under the names that they are called by.
    fn tools(&self, is_allowed: &dyn Fn(&str) -> bool) -> Vec<ToolDefinition>;

    /// Whether anybody handles a hook point.
    fn is_handled(&self, point: &HookPoint) -> bool;

    async fn call(&self, call: Call) -> Result<ToolResult, CallError>;

    async fn complete(
        &self,
        request: CompletionRequest,
        caller: &Caller,
    ) -> Result<Completion, CallError>;

    /// Runs the hooks of a point of the host's own, whose context is what it has to be.
    async fn fire(
        &self,
        point: &HookPoint,
        context: Map<String, Value>,
        caller: &Caller,
    ) -> HookReport;
}

impl HostServices {
    pub(crate) fn new(services: Services) -> Self {
        Self { services, ..Self::default() }
    }

    /// There is a platform now.
    pub(crate) fn lead_to(&self, other_plugins: Weak<dyn OtherPlugins>) {
        let _ = self.other_plugins.set(other_plugins);
    }

    pub(super) fn other_plugins(&self) -> Result<Arc<dyn OtherPlugins>, Error> {
        let other_plugins = self.other_plugins.get().and_then(Weak::upgrade);
        other_plugins.ok_or_else(|| Error::failed("the host is not ready for calls of plugins"))
    }
}

/// Does something in a task of its own, and gives it up when this is dropped: what a component asks
/// for must not run inside of its own event loop, in which that of no other component may run.
/// The span is that of the call that it is asked for: who polls the component may serve another one.
pub(super) async fn apart<T: Send + 'static>(
    span: Span,
    what: impl Future<Output = Result<T, Error>> + Send + 'static,
) -> Result<T, Error> {
    let mut task = JoinSet::new();
    task.spawn(what.instrument(span));
    match task.join_next().await {
        Some(Ok(done)) => done,
        Some(Err(error)) => Err(Error::failed(format!("the host failed: {error}"))),
        None => Err(Error::failed("the host did nothing")),
    }
}

/// The longest chain of calls that plugins make of each other.
const MAX_CALL_DEPTH: u32 = 8;

/// On whose behalf a plugin calls that serves a call itself: one deeper in the chain.
pub(super) fn deeper(granted: &GrantedCapabilities, caller: Caller) -> Result<Caller, Error> {
    match caller.depth >= MAX_CALL_DEPTH {
        true => Err(Error::denied(format!(
            "the chain of calls of plugins by plugins is longer than {MAX_CALL_DEPTH}"
        ))),
        false => {
            let by = Some(granted.plugin.clone());
            Ok(Caller { depth: caller.depth + 1, by, timeout: None, ..caller })
        }
    }
}

/// An error of a call as a plugin gets to see it that has called.
pub(super) fn as_contract(error: CallError) -> Error {
    let message = error.to_string();
    match error {
        CallError::NotFound { .. } => Error::not_found(message),
        CallError::InvalidInput { .. } => Error::invalid_input(message),
        CallError::Disabled { .. }
        | CallError::Held { .. }
        | CallError::NotApproved { .. }
        | CallError::Vetoed { .. } => Error::denied(message),
        CallError::Failed { failure, .. } => match failure {
            Failure::Answered(error) => error,
            Failure::Deadline(_) => Error::timeout(message),
            Failure::Lost(_) => crate::capability::server::unavailable(message),
            Failure::Trapped(_)
            | Failure::LimitExceeded(_)
            | Failure::Unsupported(_)
            | Failure::Contract(_)
            | Failure::Host(_) => Error::failed(message),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_config::grant::GrantSet;
    use tenon_config::log_capture::logged;
    use tenon_types::ErrorCode;

    #[test]
    fn a_plugin_has_a_name_what_it_was_granted_and_a_log_of_what_it_was_not() {
        let mut set = GrantSet::default();
        set.add_approved("tools", "a__*").unwrap();
        let grants = Grants::new(set.clone(), set);
        let granted = GrantedCapabilities::new("p".into(), grants, Arc::default());
        assert_eq!(granted.plugin(), "p");
        assert!(granted.grants().allow("tools", "a__b"));
        assert!(granted.require("tools", "a__b", "it").is_ok());
        assert!(granted.has("tools", "a__b") && !granted.has("tools", "b__b"));
        let refuse = |granted: &GrantedCapabilities| {
            logged(|| drop(granted.require("tools", "b__b", "calling b__b").unwrap_err()))
        };
        assert_eq!(refuse(&granted), "");
        let log = PluginLog::new("p".into(), Default::default(), 1);
        let said = refuse(&granted.with_log(Arc::new(log)));
        assert!(said.contains("calling b__b is not granted"), "{said}");
    }

    #[test]
    fn a_refusal_of_what_is_protected_says_that_it_takes_its_name() {
        let granted = GrantedCapabilities::new("p".into(), Grants::default(), Arc::default());
        assert_eq!(
            granted.protected("writing /p/.git", "filesystem", "write:/p/.git", "hooks of Git"),
            "plugin \"p\": writing /p/.git is not granted, as no glob covers hooks of Git; its \
             plugin.toml would request it by name, with `filesystem = [\"write:/p/.git\"]` under \
             [capabilities]"
        );
    }

    /// A platform that nobody calls.
    struct NoOtherPlugins;

    #[async_trait]
    impl OtherPlugins for NoOtherPlugins {
        fn tools(&self, _: &dyn Fn(&str) -> bool) -> Vec<ToolDefinition> {
            Vec::new()
        }

        fn is_handled(&self, _: &HookPoint) -> bool {
            false
        }

        async fn call(&self, _: Call) -> Result<ToolResult, CallError> {
            unreachable!("nobody calls it")
        }

        async fn complete(
            &self,
            _: CompletionRequest,
            _: &Caller,
        ) -> Result<Completion, CallError> {
            unreachable!("nobody calls it")
        }

        async fn fire(&self, _: &HookPoint, _: Map<String, Value>, _: &Caller) -> HookReport {
            unreachable!("nobody calls it")
        }
    }

    #[test]
    fn there_is_a_platform_from_when_it_is_there_until_it_ends() {
        let (host_services, platform) = (HostServices::default(), Arc::new(NoOtherPlugins));
        assert!(host_services.other_plugins().is_err());
        let weak: Weak<NoOtherPlugins> = Arc::downgrade(&platform);
        host_services.lead_to(weak);
        assert!(host_services.other_plugins().is_ok());
        drop(platform);
        assert!(host_services.other_plugins().is_err());
    }

    #[test]
    fn a_refusal_names_the_plugin_what_it_tried_and_the_line() {
        let granted = GrantedCapabilities::new("p".into(), Grants::default(), Arc::default());
        let Err(Error { code: ErrorCode::Denied, message, .. }) =
            granted.require("tools", "a__b", "calling the tool a__b")
        else {
            panic!("it is denied");
        };
        assert_eq!(
            message,
            "plugin \"p\": calling the tool a__b is not granted; its plugin.toml would request it \
             with `tools = [\"a__b\"]` under [capabilities]"
        );
    }

    #[test]
    fn a_refusal_of_what_was_requested_names_what_would_grant_it() {
        let mut requested = GrantSet::default();
        requested.add_approved("tools", "a__*").unwrap();
        requested.add_approved("filesystem", "readwrite:/a/**").unwrap();
        let grants = Grants::new(requested, Default::default());
        let granted = GrantedCapabilities::new("p".into(), grants, Arc::default());
        let less = "plugin \"p\": it is not granted; less was granted than its plugin.toml \
                    requests, and `tenon approve p --grant …` grants more";
        let check = |capability, value, is_requested| {
            let said = granted.not_granted("it", capability, value);
            assert_eq!(said == less, is_requested, "{capability} {value}: {said}");
        };
        check("tools", "a__b", true);
        check("tools", "b__b", false);
        check("filesystem", "write:/a/b", true);
        check("filesystem", "read:/b", false);
    }

    #[test]
    fn a_chain_of_calls_ends() {
        let granted = GrantedCapabilities::new("p".into(), Grants::default(), Arc::default());
        let timeout = Some(std::time::Duration::from_secs(1));
        let mut caller = Caller { timeout, ..Caller::default() };
        for _ in 0..MAX_CALL_DEPTH {
            caller = deeper(&granted, caller).unwrap();
            // The call of the plugin has its own time, in which this one is.
            assert_eq!(caller.timeout, None);
            assert_eq!(caller.by.as_deref(), Some("p"));
        }
        assert!(matches!(deeper(&granted, caller), Err(Error { code: ErrorCode::Denied, .. })));
    }
}
