//! The calls that an instance serves: on whose behalf it turns to the host, and who is told of refusals.
//!
//! An instance that serves several calls turns to the host in one task of the component model for each of them, and
//! wasmtime says in which. So what is asked for, refused or logged belongs to that call and to no other. What a plugin
//! does in none of these tasks, such as work that goes on after the call that began it, belongs to no call.

use std::mem;
use std::sync::Arc;
use tenon_config::discover::PluginKind;
use tenon_types::LogLevel;
use tracing::Span;
use wasmtime::component::GuestTaskId;

use super::granted::GrantedCapabilities;
use super::host_capability::CapabilityContext;
use super::services::{AskingPlugin, ClientFeatures};
use crate::call::{Caller, CallerClient, CurrentCall};
use crate::observe::PluginLog;

/// A call that an instance serves.
struct ServedCall {
    id: Arc<str>,
    current_call: Option<Arc<CurrentCall>>,
    /// The task in which the guest serves it, once it has begun.
    task: Option<GuestTaskId>,
}

/// A request to a user or a model.
pub(crate) struct AskContext {
    /// Who asks.
    pub(crate) requester: AskingPlugin,
    /// The client of the call, where it has one of its own.
    pub(crate) client: Option<CallerClient>,
    /// The calls whose time stands still until there is an answer.
    pub(crate) calls: Vec<Arc<CurrentCall>>,
}

impl AskContext {
    /// Who answers: the client of the call, or that of the host.
    pub(super) fn features(&self, granted: &GrantedCapabilities) -> Arc<dyn ClientFeatures> {
        features_of(self.client.as_ref(), granted)
    }
}

fn features_of(
    client: Option<&CallerClient>,
    granted: &GrantedCapabilities,
) -> Arc<dyn ClientFeatures> {
    client.map_or_else(|| granted.features(), CallerClient::features)
}

/// The calls that an instance serves, and whose instance it is.
pub(crate) struct ServedCalls {
    context: Arc<CapabilityContext>,
    calls: Vec<ServedCall>,
    /// The task that turned to the host last. What is done for it at once is done on its behalf.
    asking: Option<GuestTaskId>,
    /// Room for tasks, which is used again.
    tasks: Vec<GuestTaskId>,
}

impl ServedCalls {
    /// None, of an instance of this plugin.
    pub(crate) fn new(context: Arc<CapabilityContext>) -> Self {
        Self { context, calls: Vec::new(), asking: None, tasks: Vec::new() }
    }

    /// The plugin's identifier.
    pub(crate) fn plugin(&self) -> &Arc<str> {
        &self.context.id
    }

    /// Whether it is a bridge, which calls the host for its server.
    pub(crate) fn is_bridge(&self) -> bool {
        self.context.kind == PluginKind::Mcp
    }

    /// How the plugin speaks in the log.
    pub(crate) fn log(&self) -> &Arc<PluginLog> {
        &self.context.log
    }

    /// What the plugin was lent.
    pub(crate) fn granted(&self) -> &Arc<GrantedCapabilities> {
        &self.context.granted
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.calls.len()
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, id: Arc<str>, current_call: Option<Arc<CurrentCall>>) {
        self.calls.push(ServedCall { id, current_call, task: None });
    }

    /// A call is over.
    pub(crate) fn end(&mut self, id: &Arc<str>) {
        // The oldest is nearly always the first to end.
        if let Some(at) = self.calls.iter().position(|call| Arc::ptr_eq(&call.id, id)) {
            self.calls.remove(at);
        }
    }

    /// The identifier of a call that the instance serves.
    pub(crate) fn served_as(&self, id: &str) -> Option<Arc<str>> {
        self.calls.iter().map(|call| &call.id).find(|served| ***served == *id).cloned()
    }

    /// The guest serves a call in this task.
    pub(crate) fn serve_in(&mut self, id: &Arc<str>, task: GuestTaskId) {
        if let Some(call) = self.calls.iter_mut().find(|call| Arc::ptr_eq(&call.id, id)) {
            call.task = Some(task);
        }
    }

    /// The guest turns to the host, in the first of these tasks that serves a call: the one that asks, and those that
    /// it was called by.
    pub(crate) fn asked_in(&mut self, tasks: Vec<GuestTaskId>) {
        let serves = |task: &&GuestTaskId| self.calls.iter().any(|call| call.task == Some(**task));
        self.asking = tasks.iter().find(serves).copied();
        self.tasks = tasks;
    }

    /// Empty room for the tasks that [`ServedCalls::asked_in`] is told.
    pub(crate) fn take_tasks(&mut self) -> Vec<GuestTaskId> {
        let mut tasks = mem::take(&mut self.tasks);
        tasks.clear();
        tasks
    }

    /// The call on whose behalf the guest turned to the host last.
    fn asking(&self) -> Option<&ServedCall> {
        self.calls.iter().find(|call| call.task.is_some() && call.task == self.asking)
    }

    /// Whether the instance serves a call of this id.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.calls.iter().any(|call| &*call.id == id)
    }

    /// The span of the call on whose behalf the guest turned to the host.
    pub(crate) fn span(&self) -> Span {
        let current_call = self.asking().and_then(|call| call.current_call.as_ref());
        current_call
            .and_then(|current_call| current_call.span().cloned())
            .unwrap_or_else(Span::none)
    }

    /// What the plugin was lent that turns to the host, and on whose behalf it does. The chain of calls that it belongs
    /// to is the longest of those that the instance serves: else a plugin could call itself for ever by having work done
    /// in another task.
    pub(crate) fn access_and_caller(&self) -> (Arc<GrantedCapabilities>, Caller) {
        let caller = |call: &ServedCall| Some(call.current_call.as_ref()?.calls_others_for());
        let own = self.asking().and_then(caller).unwrap_or_default();
        let depths = self.calls.iter().filter_map(caller).map(|caller| caller.depth);
        let depth = depths.max().unwrap_or(own.depth);
        (self.granted().clone(), Caller { depth, ..own })
    }

    /// What the guest asks of a user or a model, and for which calls: the one on whose behalf it turned to the host; all
    /// where that is not known.
    pub(crate) fn request(&self) -> AskContext {
        let asking = self.asking();
        let calls = match asking {
            Some(call) => call.current_call.iter().cloned().collect(),
            None => self.calls.iter().filter_map(|call| call.current_call.clone()).collect(),
        };
        let client = self.client().cloned();
        let caller = asking.and_then(|call| call.current_call.as_ref()).map(|call| call.caller());
        let requester = AskingPlugin {
            plugin: self.plugin().to_string(),
            call_id: asking.map(|call| call.id.to_string()),
            agent_id: caller.and_then(|caller| caller.agent_id.clone()),
            session_id: caller.and_then(|caller| caller.session_id.clone()),
            is_host: false,
        };
        AskContext { requester, client, calls }
    }

    /// What answers what the guest asks: the client of the call, or that of the host.
    pub(crate) fn features(&self) -> Arc<dyn ClientFeatures> {
        features_of(self.client(), self.granted())
    }

    /// The client of the call on whose behalf the guest turned to the host. An old server does not say for which of
    /// its calls it asks: then it is the client that all of them have in common.
    pub(crate) fn client(&self) -> Option<&CallerClient> {
        fn client(call: &ServedCall) -> Option<&CallerClient> {
            call.current_call.as_ref()?.caller().client.as_ref()
        }
        match self.asking() {
            Some(asking) => client(asking),
            None if self.is_bridge() => {
                let (first, others) = self.calls.split_first()?;
                let first = client(first)?;
                others.iter().all(|call| client(call) == Some(first)).then_some(first)
            }
            None => None,
        }
    }

    /// The client that hears how far a call has come which the plugin serves.
    pub(crate) fn progress_client(&self, id: &str) -> Option<&CallerClient> {
        let served = self.calls.iter().find(|call| &*call.id == id)?;
        served.current_call.as_ref()?.caller().progress_client()
    }

    /// Where refusals go: to the call on whose behalf the guest turned to the host.
    pub(crate) fn refusals(&self) -> RefusalReporter {
        let current_call = self.asking().and_then(|call| call.current_call.clone());
        RefusalReporter { context: self.context.clone(), current_call }
    }
}

/// Where refusals go that a guest gets to know as a mere code: to the log, and to who called.
#[derive(Clone)]
pub(crate) struct RefusalReporter {
    context: Arc<CapabilityContext>,
    current_call: Option<Arc<CurrentCall>>,
}

impl RefusalReporter {
    /// What the plugin tried was not granted; `value` would have allowed it.
    pub(crate) fn not_granted(&self, tried: &str, capability: &str, value: &str) {
        self.say(self.context.granted.not_granted(tried, capability, value));
    }

    /// What the plugin tried is covered by no glob, for what it is; `value` would have allowed it.
    pub(crate) fn protected(&self, tried: &str, capability: &str, value: &str, what: &str) {
        self.say(self.context.granted.protected(tried, capability, value, what));
    }

    /// The plugin looked whether something is there that it was not granted. Libraries look for much
    /// that they can do without.
    pub(crate) fn looked(&self, tried: &str, capability: &str, value: &str) {
        let words = self.context.granted.not_granted(tried, capability, value);
        self.span().in_scope(|| self.context.log.write(LogLevel::Debug, &words, &[]));
    }

    /// What the plugin tried cannot be granted.
    pub(crate) fn never(&self, what: &str) {
        self.say(format!("plugin \"{}\": {what} is never granted", self.context.id));
    }

    /// Says it in these words.
    pub(crate) fn say(&self, words: String) {
        let logged = words.clone();
        self.say_and_log(words, &logged);
    }

    /// Says it in these words, and in others to the operator.
    pub(crate) fn say_and_log(&self, words: String, logged: &str) {
        let written = self.span().in_scope(|| self.context.log.write(LogLevel::Warn, logged, &[]));
        if let Some(current_call) = &self.current_call {
            current_call.refused(words, written);
        }
    }

    /// The span of the call that is being served.
    pub(crate) fn span(&self) -> Span {
        self.current_call
            .as_ref()
            .and_then(|current_call| current_call.span().cloned())
            .unwrap_or_else(Span::none)
    }
}
