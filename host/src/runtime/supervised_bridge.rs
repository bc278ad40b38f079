//! A bridge behind the breaker of its server.

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use std::collections::{BTreeSet, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tenon_config::limits::{MAX_DURATION, MAX_PAGES};
use tenon_config::pins::{DefinitionKind, McpDefinition};
use tenon_config::secret::Redactor;
use tenon_config::tool_hooks::ServerHook;
use tenon_types::{
    ArgumentCompletion, CallContext, Error, ErrorCode, HookDecision, HookEvent, Json, Prompt,
    PromptPage, Registration, ResourceContents, ResourcePage, Suggestions, TemplatePage,
    ToolResult,
};
use tokio::time::Instant;

use super::activity::{ServerActivity, ServerUseGuard};
use super::tool_hooks;
use crate::call::escape;
use crate::call::mask::{self, MaskSecrets, Unmasked};
use crate::call::{CurrentCall, Failure};
use crate::capability::server::Supervisor;
use crate::runtime::Plugin;

/// After how many milliseconds a server has surely been registered again.
const REGISTRATION_RETRY_AFTER: Duration = Duration::from_secs(1);

/// See the module.
pub(crate) struct SupervisedBridge<P> {
    inner: Arc<SharedBridge<P>>,
}

/// What is there for as long as a server is being asked what it has, whoever waits for it.
pub(crate) struct SharedBridge<P> {
    bridge: P,
    supervisor: Arc<Supervisor>,
    redactor: Arc<Redactor>,
    /// How long a server may take to say what it has.
    startup: Duration,
    /// The hook points that its tools handle.
    hooks: Vec<ServerHook>,
    /// What the server is used for, where the host starts and ends it.
    activity: Option<ServerActivity>,
    /// The server was asked itself what it has.
    asked: AtomicBool,
    /// It is being asked; callers wait for it together.
    asking: Mutex<Option<Asking>>,
    /// Tools that are not what they were registered as, until they are registered again.
    differing: ArcSwapOption<BTreeSet<String>>,
}

type Asking = Shared<BoxFuture<'static, Result<(), Failure>>>;

impl<P> Deref for SupervisedBridge<P> {
    type Target = SharedBridge<P>;

    fn deref(&self) -> &SharedBridge<P> {
        &self.inner
    }
}

impl<P: Plugin> SharedBridge<P> {
    /// Asks the server what it has.
    async fn ask(self: &Arc<Self>) -> Result<(), Failure> {
        let _use = self.begin_use();
        self.supervisor.lists();
        let answer = Unmasked::new(self.bridge.register().await);
        let answer = crate::runtime::as_registered(&self.redactor, answer)?;
        // What is refused has to be known before anybody registers it again.
        let differing = self.supervisor.differing(&answer);
        if !differing.is_empty() {
            self.differing.store(Some(Arc::new(differing)));
        }
        if self.supervisor.agrees(&answer) {
            return Ok(());
        }
        // A host that ends before it has registered it again finds it here the next time.
        let supervisor = self.supervisor.clone();
        let _ = tokio::task::spawn_blocking(move || supervisor.keep(&answer)).await;
        Ok(())
    }

    fn asking(&self) -> MutexGuard<'_, Option<Asking>> {
        self.asking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server is used until what is returned is dropped. It ends when it was not for long.
    fn begin_use(self: &Arc<Self>) -> Option<ServerUseGuard<'_>> {
        let activity = self.activity.as_ref()?;
        Some(activity.begin(|| {
            let watching = watch_idle(Arc::downgrade(self), activity.limit());
            tokio::spawn(watching).abort_handle()
        }))
    }

    /// Ends the server, unless somebody uses it after all. Returns whether it did.
    async fn end_idle(&self) -> bool {
        let supervisor = self.supervisor.clone();
        self.bridge.end_unused(Box::new(move || supervisor.stopped_as_idle())).await
    }
}

/// Waits until a server is idle for too long, and ends it.
async fn watch_idle<P: Plugin>(inner: Weak<SharedBridge<P>>, limit: Duration) {
    let mut pause = limit;
    loop {
        tokio::time::sleep(pause).await;
        let Some(inner) = inner.upgrade() else { return };
        let Some(activity) = &inner.activity else { return };
        pause = activity.time_left();
        if pause.is_zero() {
            // One that is being started is none that ends yet.
            if inner.end_idle().await && activity.stop_watching() {
                return;
            }
            pause = limit;
        }
    }
}

impl<P: Plugin> SupervisedBridge<P> {
    pub(crate) fn new(
        bridge: P,
        supervisor: Arc<Supervisor>,
        redactor: Redactor,
        startup: Duration,
        hooks: Vec<ServerHook>,
        idle: Option<Duration>,
    ) -> Self {
        let inner = SharedBridge {
            bridge,
            supervisor,
            redactor: Arc::new(redactor),
            startup,
            hooks,
            activity: idle.map(ServerActivity::new),
            asked: AtomicBool::new(false),
            asking: Mutex::default(),
            differing: ArcSwapOption::empty(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Has a server that was registered without being asked say what it has, before it is called.
    /// It goes on when nobody waits for it any more: who calls next finds it done.
    fn being_asked(&self) -> Option<Asking> {
        if self.asked.load(Ordering::Acquire) || !self.supervisor.has_stand_in() {
            return None;
        }
        let mut asking = self.inner.asking();
        if self.asked.load(Ordering::Acquire) {
            return None;
        }
        let begin = || {
            let inner = self.inner.clone();
            let asking = async move {
                let supervisor = &inner.supervisor;
                let answer = supervisor.start_in_turn(true, inner.startup, inner.ask()).await;
                inner.asked.store(answer.is_ok(), Ordering::Release);
                *inner.asking() = None;
                answer
            };
            let asking = asking.boxed().shared();
            tokio::spawn(asking.clone());
            asking
        };
        Some(asking.get_or_insert_with(begin).clone())
    }

    /// Refuses a tool that is not what it was registered as: nobody calls something other than they
    /// were shown.
    fn as_shown(&self, tool: &str) -> Result<(), Failure> {
        match &*self.differing.load() {
            Some(differing) if differing.contains(tool) => {
                let error = Error::unavailable(
                    "the server's tools have changed, so the call was not made; the plugin registers again",
                );
                Err(Failure::Answered(error.retry_after(Some(REGISTRATION_RETRY_AFTER))))
            }
            _ => Ok(()),
        }
    }

    /// Lists the prompts up to one of them, so that it is known whether it is held: the list may have
    /// changed since somebody last saw it.
    async fn see_prompt(&self, name: &str, context: &CallContext) -> Result<(), Failure> {
        if !self.supervisor.is_pinned() {
            return Ok(());
        }
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = self.list_prompts(cursor, context.clone()).await?;
            let is_seen = page.prompts.iter().any(|prompt| prompt.name == name);
            if is_seen || page.next.is_none() {
                break;
            }
            cursor = page.next;
        }
        Ok(())
    }

    /// Leaves out of a page of a list what its server said otherwise when it was first seen. Compared is
    /// what is shown.
    async fn keep_as_pinned<T: MaskSecrets + Clone>(
        &self,
        kind: DefinitionKind,
        items: &mut Vec<T>,
        is_whole: bool,
        name: fn(&T) -> &str,
        show: fn(&mut T),
        define: fn(&T) -> McpDefinition,
    ) {
        // Names are kept and shown where they are compared.
        mask::leave_out(&self.redactor, items);
        if !self.supervisor.is_pinned() {
            return;
        }
        // Only one of a name is compared: there must be no other.
        let mut names = HashSet::new();
        items.retain(|item| names.insert(name(item).to_string()));
        let definition = |item: &T| {
            let mut shown = item.clone();
            shown.mask(&self.redactor);
            show(&mut shown);
            (name(item).to_string(), define(&shown))
        };
        let definitions = items.iter().map(definition).collect();
        self.supervisor.compare(kind, definitions, is_whole).await;
        items.retain(|item| self.supervisor.held(kind, name(item)).is_none());
    }

    /// Makes a call and waits for its answer, unless calls are not tried at the moment. A call that is
    /// not made says nothing of the server.
    async fn guarded<'a, R>(
        &'a self,
        time_left: Option<Duration>,
        call: impl FnOnce() -> Result<BoxFuture<'a, Result<R, Failure>>, Failure>,
    ) -> Result<R, Failure> {
        if let Some(asking) = self.being_asked() {
            asking.await?;
        }
        let _use = self.inner.begin_use();
        let answer = call()?;
        let began = Instant::now();
        if let Err(wait) = self.supervisor.admit(began) {
            let why = self.supervisor.last_error();
            let why = why.map(|why| format!(". The last time: {why}")).unwrap_or_default();
            let message = format!(
                "calls to the server got no answer several times in a row, so that none is tried \
                 for a while{why}"
            );
            return Err(Failure::Answered(Error::unavailable(message).retry_after(Some(wait))));
        }
        let deadline = time_left.map(|time_left| began + time_left.min(MAX_DURATION));
        let (supervisor, current_call) = (&self.supervisor, CurrentCall::current());
        let mut trying = SupervisedCall { supervisor, began, deadline, current_call, done: false };
        let answer = answer.await;
        trying.done = true;
        match &answer {
            Err(Failure::Answered(Error {
                code: ErrorCode::Unavailable | ErrorCode::Timeout,
                ..
            }))
            | Err(Failure::Deadline(_)) => self.supervisor.unanswered(began, Instant::now()),
            // What is the plugin's own affair, the host's or the caller's.
            Err(Failure::Answered(Error { code: ErrorCode::Cancelled, .. }) | Failure::Host(_)) => {
                self.supervisor.abandoned();
            }
            Ok(_) | Err(_) => self.supervisor.answered(),
        }
        answer
    }
}

/// A call on its way. Dropped, it was given up: by its caller, or because its time was over.
struct SupervisedCall<'a> {
    supervisor: &'a Supervisor,
    began: Instant,
    deadline: Option<Instant>,
    current_call: Option<Arc<CurrentCall>>,
    done: bool,
}

/// How much before the time that the plugin was told a host may give a call up: clocks are read at
/// different moments.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(20);

impl Drop for SupervisedCall<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let now = Instant::now();
        // While it is being started, others have their eye on it.
        let stood =
            self.current_call.as_ref().map(|current_call| current_call.stood()).unwrap_or_default();
        let overdue =
            self.deadline.is_some_and(|deadline| now + CLOCK_TOLERANCE >= deadline + stood);
        match overdue && self.supervisor.is_ready() {
            true => self.supervisor.unanswered(self.began, now),
            false => self.supervisor.abandoned(),
        }
    }
}

#[async_trait]
impl<P: Plugin> Plugin for SupervisedBridge<P> {
    async fn register(&self) -> Result<Registration, Failure> {
        let _use = self.inner.begin_use();
        self.supervisor.lists();
        let registration = self.bridge.register().await?;
        self.asked.store(true, Ordering::Release);
        self.differing.store(None);
        Ok(registration)
    }

    fn starting(&self) -> Option<BoxFuture<'_, Result<(), Failure>>> {
        self.being_asked().map(FutureExt::boxed)
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: Json,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        let time_left = context.time_left;
        let call = || {
            self.as_shown(name)?;
            Ok(self.bridge.call_tool(name, arguments, context))
        };
        self.guarded(time_left, call).await
    }

    async fn handle(&self, event: HookEvent) -> Result<HookDecision, Failure> {
        let tool = tool_hooks::tool_for(&self.hooks, &event.point)?;
        let arguments = tool_hooks::arguments(&event);
        let result = self.call_tool(tool, arguments, event.call).await?;
        tool_hooks::decision(&result)
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        let (is_first, time_left) = (cursor.is_none(), context.time_left);
        let listed = self.guarded(time_left, || Ok(self.bridge.list_resources(cursor, context)));
        let mut page = listed.await?;
        let is_whole = is_first && page.next.is_none();
        self.keep_as_pinned(
            DefinitionKind::Resource,
            &mut page.resources,
            is_whole,
            |of| &of.link.uri,
            escape::resource,
            McpDefinition::of_resource,
        )
        .await;
        Ok(page)
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        let is_first = cursor.is_none();
        let time_left = context.time_left;
        let listed = self.guarded(time_left, || Ok(self.bridge.list_templates(cursor, context)));
        let mut page = listed.await?;
        let is_whole = is_first && page.next.is_none();
        self.keep_as_pinned(
            DefinitionKind::Template,
            &mut page.templates,
            is_whole,
            |of| &of.uri_template,
            escape::template,
            McpDefinition::of_template,
        )
        .await;
        Ok(page)
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        self.guarded(context.time_left, || Ok(self.bridge.read_resource(uri, context))).await
    }

    async fn subscribe(
        &self,
        uri: &str,
        wanted: bool,
        context: CallContext,
    ) -> Result<(), Failure> {
        let time_left = context.time_left;
        // Who does not want to know any more keeps no server running, whatever it answers.
        if let Some(activity) = self.activity.as_ref().filter(|_| !wanted) {
            activity.unsubscribed(uri);
        }
        self.guarded(time_left, || Ok(self.bridge.subscribe(uri, wanted, context))).await?;
        if let Some(activity) = self.activity.as_ref().filter(|_| wanted) {
            activity.subscribed(uri);
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        let is_first = cursor.is_none();
        let time_left = context.time_left;
        let listed = self.guarded(time_left, || Ok(self.bridge.list_prompts(cursor, context)));
        let mut page = listed.await?;
        let is_whole = is_first && page.next.is_none();
        self.keep_as_pinned(
            DefinitionKind::Prompt,
            &mut page.prompts,
            is_whole,
            |of| &of.name,
            escape::prompt_definition,
            McpDefinition::of_prompt,
        )
        .await;
        Ok(page)
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        self.see_prompt(name, &context).await?;
        if let Some(why) = self.supervisor.held(DefinitionKind::Prompt, name) {
            let what = DefinitionKind::Prompt.describe(name);
            return Err(Failure::Answered(Error::denied(format!("{what} is held: {why}"))));
        }
        self.guarded(context.time_left, || Ok(self.bridge.get_prompt(name, arguments, context)))
            .await
    }

    async fn suggest(
        &self,
        argument: ArgumentCompletion,
        context: CallContext,
    ) -> Result<Suggestions, Failure> {
        self.guarded(context.time_left, || Ok(self.bridge.suggest(argument, context))).await
    }

    async fn shutdown(&self) {
        self.bridge.shutdown().await;
    }
}
