//! Calls that other commands have `tenon dev` make: over a socket in a folder that is the user's own. A line with the
//! call, and a line with the answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tenon_host::types::ToolResult;
use tenon_host::types::mcp_json::{McpJson, read_tool_result};
use tenon_host::{Caller, Platform};

use crate::client::{Client, PreparedAnswers};
use crate::error::{Error, RelayedError};
use crate::tool_arguments::RawArguments;

/// A call of a tool, as a command was told to make it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ForwardedCall {
    pub(crate) tool: String,
    pub(crate) arguments: RawArguments,
    pub(crate) timeout_millis: Option<u64>,
    pub(crate) agent: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) traceparent: Option<String>,
    /// What the user answers where plugins ask; without it, they are asked where `tenon dev` runs.
    answers: Option<PreparedAnswers>,
}

/// Where calls are made.
#[derive(Clone)]
pub(crate) struct DevHost {
    pub(crate) platform: Platform,
    /// Who answers what plugins ask in them.
    pub(crate) client: Client,
}

/// What came of it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct DevAnswer {
    /// What its caller should know of the plugins that were called.
    pub(super) notes: Vec<String>,
    outcome: DevOutcome,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum DevOutcome {
    /// The result, as MCP has it.
    Result(Value),
    Error(RelayedError),
}

impl ForwardedCall {
    pub(crate) fn new(tool: String, arguments: RawArguments, caller: Caller) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            tool,
            arguments,
            timeout_millis: caller.timeout.map(millis),
            agent: caller.agent_id,
            session: caller.session_id,
            traceparent: caller.traceparent,
            answers: None,
        }
    }

    /// The same with answers to what plugins ask in it.
    pub(crate) fn answered_by(self, answers: Option<PreparedAnswers>) -> Self {
        Self { answers, ..self }
    }

    fn caller(&self, client: &Client) -> Caller {
        Caller {
            timeout: self.timeout_millis.map(Duration::from_millis),
            agent_id: self.agent.clone(),
            session_id: self.session.clone(),
            traceparent: self.traceparent.clone(),
            client: Some(Arc::new(client.for_call(self.answers.as_ref())).into()),
            ..Caller::default()
        }
    }
}

impl DevHost {
    /// Makes a call.
    ///
    /// # Errors
    ///
    /// What it fails with.
    pub(super) async fn call(&self, call: &ForwardedCall) -> Result<ToolResult, Error> {
        let DevHost { platform, client } = self;
        let ForwardedCall { tool, arguments, .. } = call;
        let call = arguments.call(platform, tool.clone(), call.caller(client));
        platform.call(call).await.map_err(Error::from)
    }
}

impl DevAnswer {
    pub(super) fn new(notes: Vec<String>, result: Result<ToolResult, Error>) -> Self {
        let outcome = match result {
            Ok(result) => {
                DevOutcome::Result(serde_json::to_value(McpJson(&result)).unwrap_or_default())
            }
            Err(error) => DevOutcome::Error(RelayedError::of(&error)),
        };
        Self { notes, outcome }
    }

    /// The result, after what its caller should know.
    fn into_result(self) -> Result<ToolResult, Error> {
        for note in &self.notes {
            tracing::warn!("{note}");
        }
        match self.outcome {
            DevOutcome::Result(result) => read_tool_result(result)
                .map_err(|error| Error::Host(format!("the answer of `tenon dev`: {error}"))),
            DevOutcome::Error(error) => Err(Error::Relayed(error)),
        }
    }
}

/// Has the `tenon dev` of this project make a call; nothing where none runs.
///
/// # Errors
///
/// What the call fails with, or that `tenon dev` ended before it was answered.
pub(crate) async fn call_running(
    project: &std::path::Path,
    call: &ForwardedCall,
) -> Result<Option<ToolResult>, Error> {
    let Some(answer) = socket::ask(project, call).await? else { return Ok(None) };
    answer.into_result().map(Some)
}

pub(super) use socket::{CallConnection, Listener};

/// The folder of sockets, in the user's folder for state.
const FOLDER: &str = "dev";

/// Where the socket of a project is; nothing where the user has no folder for it.
fn socket_of(project: &std::path::Path) -> Option<PathBuf> {
    use tenon_config::files::{Digest, exact};
    let state = tenon_host::HostEnvironment::of_process().state?;
    let project = project.canonicalize().ok()?;
    let name = Digest::of(exact(&project)).to_string();
    Some(state.join(FOLDER).join(format!("{}.socket", &name[..16])))
}

#[cfg(unix)]
mod socket {
    use std::io;
    use std::path::{Path, PathBuf};
    use tenon_config::files;
    use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
    use tokio::net::{UnixListener, UnixStream};

    use super::{DevAnswer, ForwardedCall, socket_of};
    use crate::error::Error;

    /// The longest call, in bytes.
    const MAX_CALL_BYTES: u64 = 64 << 20;

    /// Takes calls. Dropped, its socket is removed.
    pub(crate) struct Listener {
        listener: UnixListener,
        path: PathBuf,
    }

    /// A command that waits for an answer.
    pub(crate) struct CallConnection(BufReader<UnixStream>);

    impl Listener {
        /// Listens for the calls of a project.
        ///
        /// # Errors
        ///
        /// Where another `tenon dev` does already, or the socket cannot be made.
        pub(crate) async fn bind(project: &Path) -> Result<Self, Error> {
            let path = socket_of(project);
            let path =
                path.ok_or_else(|| Error::Host("no folder for a socket: HOME is not set".into()))?;
            let failed = |error: io::Error| Error::Host(format!("{}: {error}", path.display()));
            files::claim(path.parent().unwrap_or(&path)).map_err(failed)?;
            if UnixStream::connect(&path).await.is_ok() {
                let problem = format!("another `tenon dev` runs in {}", project.display());
                return Err(Error::Input(problem));
            }
            // One that ended without removing it has left it.
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => {}
            }
            let listener = UnixListener::bind(&path).map_err(failed)?;
            Ok(Self { listener, path })
        }

        /// Waits for a command.
        pub(crate) async fn accept(&self) -> io::Result<CallConnection> {
            let (stream, _) = self.listener.accept().await?;
            Ok(CallConnection(BufReader::new(stream)))
        }
    }

    impl Drop for Listener {
        fn drop(&mut self) {
            // It may be gone.
            let _ = std::fs::remove_file(&self.path);
        }
    }

    impl CallConnection {
        /// Reads the call; nothing where there is none that can be read.
        pub(crate) async fn call(&mut self) -> Option<ForwardedCall> {
            let mut line = String::new();
            (&mut self.0).take(MAX_CALL_BYTES).read_line(&mut line).await.ok()?;
            serde_json::from_str(&line).ok()
        }

        /// Waits until the command has gone.
        pub(crate) async fn gone(&mut self) {
            // It sends nothing more.
            let _ = self.0.read(&mut [0]).await;
        }

        pub(crate) async fn answer(&mut self, answer: &DevAnswer) {
            let Ok(line) = serde_json::to_string(answer) else { return };
            // One that has gone is told nothing.
            let _ = self.0.write_all(format!("{line}\n").as_bytes()).await;
        }
    }

    pub(super) async fn ask(
        project: &Path,
        call: &ForwardedCall,
    ) -> Result<Option<DevAnswer>, Error> {
        let Some(path) = socket_of(project) else { return Ok(None) };
        let Ok(mut stream) = UnixStream::connect(&path).await else { return Ok(None) };
        let ended = |error: io::Error| Error::Host(format!("`tenon dev` has ended: {error}"));
        let line = serde_json::to_string(call).map_err(|error| ended(error.into()))?;
        stream.write_all(format!("{line}\n").as_bytes()).await.map_err(ended)?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await.map_err(ended)?;
        serde_json::from_str(&answer).map(Some).map_err(|error| ended(error.into()))
    }
}

#[cfg(not(unix))]
mod socket {
    use std::future::pending;
    use std::io;
    use std::path::Path;

    use super::{DevAnswer, ForwardedCall};
    use crate::error::Error;

    /// Takes no calls: commands load the plugins by themselves.
    pub(crate) struct Listener;

    pub(crate) struct CallConnection;

    impl Listener {
        pub(crate) async fn bind(_: &Path) -> Result<Self, Error> {
            Ok(Self)
        }

        pub(crate) async fn accept(&self) -> io::Result<CallConnection> {
            pending().await
        }
    }

    impl CallConnection {
        pub(crate) async fn call(&mut self) -> Option<ForwardedCall> {
            None
        }

        pub(crate) async fn gone(&mut self) {}

        pub(crate) async fn answer(&mut self, _: &DevAnswer) {}
    }

    pub(super) async fn ask(_: &Path, _: &ForwardedCall) -> Result<Option<DevAnswer>, Error> {
        Ok(None)
    }
}
