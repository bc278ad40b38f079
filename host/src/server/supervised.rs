//! A bridge behind the breaker of its server.

use async_trait::async_trait;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::Supervisor;
use crate::bindings::completions::{Blank, Suggestions};
use crate::bindings::lifecycle::Registration;
use crate::bindings::prompts::{Prompt, PromptPage};
use crate::bindings::resources::{ResourcePage, TemplatePage};
use crate::bindings::types::{CallContext, Error, ResourceContents, ToolResult, Unavailability};
use crate::runtime::{Failure, Plugin};
use crate::secret::Redactor;

/// After how many milliseconds a server has surely been registered again.
const AGAIN: u64 = 1_000;

/// See the module.
pub(crate) struct Supervised<P> {
    bridge: P,
    supervisor: Arc<Supervisor>,
    redactor: Redactor,
    /// The server was asked itself what it has.
    asked: OnceCell<()>,
}

impl<P: Plugin> Supervised<P> {
    pub(crate) fn new(bridge: P, supervisor: Arc<Supervisor>, redactor: Redactor) -> Self {
        Self { bridge, supervisor, redactor, asked: OnceCell::new() }
    }

    /// Has a server that was registered without being asked say what it has, before it is called:
    /// nobody calls something other than they were shown.
    async fn as_shown(&self) -> Result<(), Failure> {
        if self.asked.initialized() || !self.supervisor.has_stand_in() {
            return Ok(());
        }
        let ask = || async {
            let answer = self.bridge.register().await?;
            let answer = crate::register::as_registered(&self.redactor, answer);
            if self.supervisor.agrees(&answer) {
                return Ok(());
            }
            // A host that ends before it has registered it again finds it here the next time.
            let supervisor = self.supervisor.clone();
            let _ = tokio::task::spawn_blocking(move || supervisor.keep(&answer)).await;
            Err(Failure::Answered(Error::Unavailable(Unavailability {
                message: "what the server has is not what it had when it was last asked, so that \
                          the call was not made; it is registered again"
                    .into(),
                retry_after: Some(AGAIN),
            })))
        };
        Box::pin(self.asked.get_or_try_init(ask)).await.copied()
    }

    /// Waits for the answer to a call, unless calls are not tried at the moment.
    async fn guarded<R>(
        &self,
        deadline: Option<u64>,
        answer: impl Future<Output = Result<R, Failure>>,
    ) -> Result<R, Failure> {
        self.as_shown().await?;
        let began = Instant::now();
        if let Err(wait) = self.supervisor.admit(began) {
            let why = self.supervisor.last_error();
            let why = why.map(|why| format!(". The last time: {why}")).unwrap_or_default();
            let message = format!(
                "calls to the server got no answer several times in a row, so that none is tried \
                 for a while{why}"
            );
            return Err(Failure::Answered(Error::Unavailable(Unavailability {
                message,
                retry_after: Some(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
            })));
        }
        let deadline = deadline.map(|limit| began + Duration::from_millis(limit));
        let mut call = Trying { supervisor: &self.supervisor, began, deadline, done: false };
        let answer = answer.await;
        call.done = true;
        let now = Instant::now();
        match &answer {
            Err(Failure::Answered(Error::Unavailable(_) | Error::Timeout(_)))
            | Err(Failure::Deadline(_)) => self.supervisor.unanswered(began, now),
            // What is the plugin's own affair, the host's or the caller's.
            Err(Failure::Answered(Error::Cancelled(_)) | Failure::Host(_)) => {
                self.supervisor.abandoned(now);
            }
            Ok(_) | Err(_) => self.supervisor.answered(now),
        }
        answer
    }
}

/// A call on its way. Dropped, it was given up: by its caller, or because its time was over.
struct Trying<'a> {
    supervisor: &'a Supervisor,
    began: Instant,
    deadline: Option<Instant>,
    done: bool,
}

/// How much before the time that the plugin was told a host may give a call up: clocks are read at
/// different moments.
const EARLY: Duration = Duration::from_millis(20);

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let now = Instant::now();
        // While it is being started, others have their eye on it.
        let overdue = self.deadline.is_some_and(|deadline| now + EARLY >= deadline);
        match overdue && self.supervisor.is_ready() {
            true => self.supervisor.unanswered(self.began, now),
            false => self.supervisor.abandoned(now),
        }
    }
}

#[async_trait]
impl<P: Plugin> Plugin for Supervised<P> {
    async fn register(&self) -> Result<Registration, Failure> {
        let registration = self.bridge.register().await?;
        let _ = self.asked.set(());
        Ok(registration)
    }

    async fn call_tool(
        &self,
        name: &str,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Failure> {
        self.guarded(context.deadline, self.bridge.call_tool(name, arguments, context)).await
    }

    async fn list_resources(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<ResourcePage, Failure> {
        self.guarded(context.deadline, self.bridge.list_resources(cursor, context)).await
    }

    async fn list_templates(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<TemplatePage, Failure> {
        self.guarded(context.deadline, self.bridge.list_templates(cursor, context)).await
    }

    async fn read_resource(
        &self,
        uri: &str,
        context: CallContext,
    ) -> Result<Vec<ResourceContents>, Failure> {
        self.guarded(context.deadline, self.bridge.read_resource(uri, context)).await
    }

    async fn subscribe(
        &self,
        uri: &str,
        wanted: bool,
        context: CallContext,
    ) -> Result<(), Failure> {
        self.guarded(context.deadline, self.bridge.subscribe(uri, wanted, context)).await
    }

    async fn list_prompts(
        &self,
        cursor: Option<String>,
        context: CallContext,
    ) -> Result<PromptPage, Failure> {
        self.guarded(context.deadline, self.bridge.list_prompts(cursor, context)).await
    }

    async fn get_prompt(
        &self,
        name: &str,
        arguments: Vec<(String, String)>,
        context: CallContext,
    ) -> Result<Prompt, Failure> {
        self.guarded(context.deadline, self.bridge.get_prompt(name, arguments, context)).await
    }

    async fn suggest(&self, blank: Blank, context: CallContext) -> Result<Suggestions, Failure> {
        self.guarded(context.deadline, self.bridge.suggest(blank, context)).await
    }

    async fn shutdown(&self) {
        self.bridge.shutdown().await;
    }
}
