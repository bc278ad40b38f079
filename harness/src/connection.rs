//! The command that is the host of a test, and the messages to and from it.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as StdMutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, oneshot};

use crate::StartError;
use crate::answers::Answers;
use crate::protocol::{CallError, Message, Question, TestRequest};

/// Requests that wait for their responses. Once the command has ended there are none.
type Waiting = StdMutex<Option<BTreeMap<u64, oneshot::Sender<Result<Value, CallError>>>>>;

/// A command that runs. It ends when the last hold of it is dropped.
pub(crate) struct Connection {
    input: Arc<Mutex<ChildStdin>>,
    waiting: Arc<Waiting>,
    next: AtomicU64,
    child: Mutex<Child>,
}

impl Connection {
    /// Starts the command. It answers nothing before it is told which plugin it hosts.
    pub(crate) fn start(command: &Path, answers: Arc<Answers>) -> Result<Self, StartError> {
        let started = Command::new(command)
            .arg("harness")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // A test that ends without a word ends its host.
            .kill_on_drop(true)
            .spawn();
        let mut child =
            started.map_err(|source| StartError::NoCommand { command: command.into(), source })?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            unreachable!("both are piped");
        };
        let input = Arc::new(Mutex::new(input));
        let waiting: Arc<Waiting> = Arc::new(StdMutex::new(Some(BTreeMap::new())));
        tokio::spawn(read(output, input.clone(), waiting.clone(), answers));
        Ok(Self { input, waiting, next: AtomicU64::new(1), child: Mutex::new(child) })
    }

    /// Requests something, and waits for what comes of it.
    pub(crate) async fn request(&self, request: TestRequest) -> Result<Value, CallError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        match &mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(waiting) => drop(waiting.insert(id, answered)),
            None => return Err(lost()),
        }
        write(&self.input, &Message::Request { id, request }).await?;
        answer.await.unwrap_or_else(|_| Err(lost()))
    }

    /// Waits for the command to end.
    pub(crate) async fn ended(&self) {
        // How it ends is not asked: it has done all that it was asked to.
        let _ = self.child.lock().await.wait().await;
    }
}

fn lost() -> CallError {
    CallError::new("lost", "the command `tenon harness` has ended")
}

async fn write<R: serde::Serialize>(
    input: &Mutex<ChildStdin>,
    message: &Message<R>,
) -> Result<(), CallError> {
    let mut line = serde_json::to_vec(message)
        .map_err(|error| CallError::new("invalid-input", error.to_string()))?;
    line.push(b'\n');
    // A line is written whole also where its caller gives up: the next one begins at its beginning.
    let mut input = input.lock().await;
    input.write_all(&line).await.map_err(|_| lost())
}

/// Reads what the command says: responses, and questions, which are answered.
async fn read(
    output: ChildStdout,
    input: Arc<Mutex<ChildStdin>>,
    waiting: Arc<Waiting>,
    answers: Arc<Answers>,
) {
    let mut lines = BufReader::new(output).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let (id, result) = match serde_json::from_str(&line) {
            Ok(Message::<Question>::Request { id, request }) => {
                let answer = match answers.answer(request) {
                    Ok(result) => Message::<TestRequest>::Result { id, result },
                    Err(error) => Message::Error { id, error },
                };
                if write(&input, &answer).await.is_err() {
                    break;
                }
                continue;
            }
            Ok(Message::Result { id, result }) => (id, Ok(result)),
            Ok(Message::Error { id, error }) => (id, Err(error)),
            // It is no command of ours.
            Err(_) => break,
        };
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answered) = waiting.as_mut().and_then(|waiting| waiting.remove(&id)) {
            // Whoever asked may have given up.
            let _ = answered.send(result);
        }
    }
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}
