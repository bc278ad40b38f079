//! Whom calls are made for: who answers what plugins ask of a user or a model, and who hears of a call while it
//! runs.

use async_trait::async_trait;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use tenon_types::{
    Completion, CompletionRequest, Error, FormAnswer, FormRequest, LogLevel, Root, UrlAnswer,
    UrlRequest,
};

/// Answers what plugins and MCP servers ask of the user and of the default model. They can ask only for the features
/// that it declares.
#[async_trait]
pub trait ClientFeatures: Send + Sync + 'static {
    /// Returns the features that there are. The default is none.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Says what to do so that a feature is offered which is not. Whoever asks for it gets this in the error.
    fn remedy(&self, missing: ClientFeature) -> String {
        let _ = missing;
        "a host offers it with `Builder::client_features`".into()
    }

    /// Has the user fill in a form, naming who asks. An implementation must not answer for the user. The default
    /// refuses.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if there is no user to ask,
    /// [`ErrorCode::InvalidInput`](crate::types::ErrorCode::InvalidInput) if the form cannot be shown.
    async fn ask(&self, requester: &AskingPlugin, form: FormRequest) -> Result<FormAnswer, Error> {
        let _ = (requester, form);
        Err(Error::denied("this host has no user to ask"))
    }

    /// Asks the user to open a page, naming who asks and showing the whole address. An implementation must not open
    /// it without consent. The default refuses.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if there is no user to ask.
    async fn ask_url(
        &self,
        requester: &AskingPlugin,
        page: UrlRequest,
    ) -> Result<UrlAnswer, Error> {
        let _ = (requester, page);
        Err(Error::denied("this host has no user to ask"))
    }

    /// Completes a request with the model that the host chooses. The request names the model `default`; `extra` may
    /// have MCP's `modelPreferences`. The default refuses.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if there is no such model or the user refuses.
    async fn complete(
        &self,
        requester: &AskingPlugin,
        request: CompletionRequest,
    ) -> Result<Completion, Error> {
        let _ = (requester, request);
        Err(Error::denied("this host has no default model"))
    }

    /// Names the folders that the user works with, to an MCP server whose entry names none. The default refuses.
    ///
    /// # Errors
    ///
    /// [`ErrorCode::Denied`](crate::types::ErrorCode::Denied) if there are none to name.
    async fn roots(&self, requester: &AskingPlugin) -> Result<Vec<Root>, Error> {
        let _ = requester;
        Err(Error::denied("this host names no folders"))
    }
}

/// A feature that a [`ClientFeatures`] can offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientFeature {
    /// The user can fill in forms.
    Forms,
    /// The user can open web pages.
    Pages,
    /// A model can answer.
    Sampling,
    /// The folders that the user works with can be named.
    Roots,
}

/// The features that a [`ClientFeatures`] declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offers {
    /// The user can fill in forms.
    pub forms: bool,
    /// The user can open web pages, whose whole address is shown first.
    pub pages: bool,
    /// A model can answer.
    pub sampling: bool,
    /// The folders that the user works with can be named. Servers of the revision 2026-07-28 can ask for them in a call.
    pub roots: bool,
}

/// Who asks the user or a model: a plugin, or its MCP server, and on whose behalf.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskingPlugin {
    /// The id of the plugin.
    pub plugin: String,
    /// The call that the plugin is working on, if known.
    pub call_id: Option<String>,
    /// The agent that made the call.
    pub agent_id: Option<String>,
    /// The session of the call.
    pub session_id: Option<String>,
    /// Whether the host itself asks, whether a tool of the plugin may be called, and not the plugin.
    pub is_host: bool,
}

/// The client that a call is made for. It answers what the call's plugins ask, instead of the
/// [`ClientFeatures`] of the platform, and hears how the call goes. Its methods are called while the plugin waits, so
/// those that give nothing back must not block.
#[async_trait]
pub trait CallClient: ClientFeatures {
    /// The plugin says how far the call has come. The default ignores it.
    fn progress(&self, progress: Progress) {
        let _ = progress;
    }

    /// Returns whether messages of this level are wanted. The default wants none.
    fn wants_log(&self, level: LogLevel) -> bool {
        let _ = level;
        false
    }

    /// A plugin that works on the call writes a message. It has one line and no secrets. The default ignores it.
    fn log(&self, message: LogMessage) {
        let _ = message;
    }
}

/// How far a call has come.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What is done.
    pub done: f64,
    /// What `done` is at the end, if known.
    pub total: Option<f64>,
    /// What the plugin is doing.
    pub message: Option<String>,
}

impl Progress {
    /// So much is done.
    pub fn new(done: f64, total: Option<f64>, message: Option<String>) -> Self {
        Self { done, total, message }
    }
}

/// A message of a plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LogMessage {
    /// The plugin.
    pub plugin: Arc<str>,
    /// How much it matters.
    pub level: LogLevel,
    /// The message, in one line.
    pub text: String,
}

impl LogMessage {
    /// A message of a plugin.
    pub fn new(plugin: Arc<str>, level: LogLevel, text: String) -> Self {
        Self { plugin, level, text }
    }
}

/// The client of a call, shared. Two are equal if they are the same client.
#[derive(Clone)]
pub struct CallerClient {
    client: Arc<dyn CallClient>,
    /// Whether it hears how far the call has come.
    hears_progress: bool,
}

impl CallerClient {
    /// The same client for a plugin that handles a hook of the call: how far that has come is not how far the call
    /// has.
    pub(crate) fn of_hook(self) -> Self {
        Self { hears_progress: false, ..self }
    }

    pub(crate) fn hears_progress(&self) -> bool {
        self.hears_progress
    }

    /// The client, as one that answers.
    pub(crate) fn features(&self) -> Arc<dyn ClientFeatures> {
        self.client.clone()
    }
}

impl<T: CallClient> From<Arc<T>> for CallerClient {
    fn from(client: Arc<T>) -> Self {
        Self { client, hears_progress: true }
    }
}

impl Deref for CallerClient {
    type Target = dyn CallClient;

    fn deref(&self) -> &Self::Target {
        &*self.client
    }
}

impl PartialEq for CallerClient {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.client, &other.client)
    }
}

impl Eq for CallerClient {}

impl fmt::Debug for CallerClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CallerClient")
    }
}
