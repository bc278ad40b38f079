//! Child processes that speak in lines: what stands behind the `stdio-child` import.
//!
//! The host owns the process: command, environment and folder, framing and caps, draining and
//! killing. It knows nothing of what the lines mean. A child lives in a process [`group`] that does
//! not outlive the host, whatever ends it.

mod confined;
mod group;
mod lines;
mod stderr;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tenon_config::discover::trust::TrustedProgram;
use tenon_config::limits::MAX_DURATION;
use tenon_confinement::NOT_CONFINED;
use tenon_types::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, Command};
use tokio::sync::{Mutex, Notify, SetOnce};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use confined::SandboxGuard;
pub(crate) use confined::ServerConfinement;
use group::{Group, Signal};
use lines::LineReader;
pub(crate) use lines::{ChildEvent, ExitStatus, OversizedLine};
use stderr::StderrTail;

use crate::capability::server::{Supervisor, TooManyStarts};
use crate::observe::PluginLog;

/// How to run a child. The bridge can neither choose nor see any of it.
pub(crate) struct ChildSpec {
    /// How it speaks in the log.
    pub(crate) log: Arc<PluginLog>,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    /// The whole environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) folder: Option<PathBuf>,
    /// What it has to be started with, where its user trusts that as it was.
    pub(crate) trusted: Option<Arc<TrustedProgram>>,
    /// Who keeps watch over it, over all instances of the plugin.
    pub(crate) supervisor: Arc<Supervisor>,
    /// The sandbox that it runs in, if it runs in one.
    pub(crate) confinement: Option<ServerConfinement>,
}

impl ChildSpec {
    /// The process, without a sandbox.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear().envs(&self.environment);
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    /// Why it is not started, where what it is started with has changed since its user trusted it.
    pub(crate) async fn distrust(self: Arc<Self>) -> Option<Error> {
        let trusted = self.trusted.clone()?;
        let changed = tokio::task::spawn_blocking(move || trusted.changed()).await;
        let changed = changed.unwrap_or_else(|_| Some(self.program.clone()))?.display().to_string();
        let problem = format!("{changed} has changed since its project was trusted");
        Some(Error::denied(format!("{problem}; run `tenon trust` to review the change")))
    }
}

/// How long a process whose output has ended may take to end itself, before it counts as one that
/// lives on.
const EXIT_DELAY: Duration = Duration::from_millis(250);

/// Why a child was not started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("`{program}` cannot be started")]
    Spawn {
        program: String,
        #[source]
        error: io::Error,
    },
    #[error("`{program}` cannot be started: its folder {folder} does not exist")]
    NoFolder { program: String, folder: String },
    #[error(transparent)]
    TooOften(#[from] TooManyStarts),
}

impl StartError {
    /// The error as the bridge gets to see it.
    pub(crate) fn into_contract(self) -> Error {
        unavailable(self.in_words())
    }

    fn in_words(&self) -> String {
        match self {
            Self::Spawn { program, error } if program.contains(char::is_whitespace) => {
                format!("{self}: {error}; arguments belong under `args`")
            }
            Self::Spawn { error, .. } => format!("{self}: {error}"),
            Self::NoFolder { .. } | Self::TooOften(_) => self.to_string(),
        }
    }
}

/// An error of the contract for what may work another time.
pub(crate) fn unavailable(message: impl Into<String>) -> Error {
    Error::unavailable(message)
}

/// An instance's place for its one child, and its clock.
pub(crate) struct ChildSlot {
    spec: Arc<ChildSpec>,
    child: Option<Arc<Child>>,
    /// What the child before this one, or this one, wrote to its standard error.
    stderr: Arc<StderrTail>,
    began: Instant,
    alarm: Option<GuestTimer>,
    /// Wakes whoever waits for events when there is something else to wait for: another child, the end
    /// of this one, or the timer.
    changed: Arc<Notify>,
}

/// A timer that was set. It waits by itself, so that who waits for events need not each time.
struct GuestTimer {
    rung: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl GuestTimer {
    fn set(at: Instant, changed: Arc<Notify>) -> Self {
        let rung = Arc::new(AtomicBool::new(false));
        let rings = rung.clone();
        let task = tokio::spawn(async move {
            sleep_until(at).await;
            rings.store(true, Ordering::Release);
            changed.notify_one();
        });
        Self { rung, task }
    }
}

impl Drop for GuestTimer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ChildSlot {
    pub(crate) fn new(spec: Arc<ChildSpec>) -> Self {
        Self {
            stderr: Arc::new(StderrTail::new(spec.log.clone()).of(spec.supervisor.clone())),
            spec,
            child: None,
            began: Instant::now(),
            alarm: None,
            changed: Arc::default(),
        }
    }

    /// How the child is run.
    pub(crate) fn spec(&self) -> Arc<ChildSpec> {
        self.spec.clone()
    }

    /// Who keeps watch over the child.
    pub(crate) fn supervisor(&self) -> Arc<Supervisor> {
        self.spec.supervisor.clone()
    }

    /// Starts the child.
    pub(crate) fn start(&mut self) -> Result<(), StartError> {
        let started = self.spawn();
        if let Err(error) = &started {
            self.spec.supervisor.ended(&error.in_words(), Vec::new());
        }
        started
    }

    fn spawn(&mut self) -> Result<(), StartError> {
        let stderr = StderrTail::new(self.spec.log.clone());
        self.stderr = Arc::new(stderr.of(self.spec.supervisor.clone()));
        let program = self.spec.program.display().to_string();
        if let Some(folder) = self.spec.folder.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(StartError::NoFolder { program, folder: folder.display().to_string() });
        }
        let child = Child::spawn(&self.spec, self.stderr.clone(), self.changed.clone())
            .map_err(|error| StartError::Spawn { program, error })?;
        self.child = Some(Arc::new(child));
        self.changed.notify_one();
        Ok(())
    }

    pub(crate) fn child(&self) -> Option<Arc<Child>> {
        self.child.clone()
    }

    pub(crate) fn take(&mut self) -> Option<Arc<Child>> {
        self.changed.notify_one();
        self.child.take()
    }

    /// What to wait for: the child, and that there is another, or that the timer is due. Whether it
    /// is already.
    pub(crate) fn watch(&self) -> (Option<Arc<Child>>, Arc<Notify>, bool) {
        let due = self.alarm.as_ref().is_some_and(|alarm| alarm.rung.load(Ordering::Acquire));
        (self.child.clone(), self.changed.clone(), due)
    }

    pub(crate) fn set_timer(&mut self, at: Duration) {
        self.alarm = Some(GuestTimer::set(self.began + at.min(MAX_DURATION), self.changed.clone()));
    }

    pub(crate) fn clear_timer(&mut self) {
        self.alarm = None;
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    pub(crate) fn stderr_tail(&self) -> Vec<String> {
        self.stderr.lines()
    }
}

/// A running child. Dropping it kills it, with all of its group.
pub(crate) struct Child {
    grace: Duration,
    supervisor: Arc<Supervisor>,
    input: Mutex<Input>,
    lines: Mutex<LineReader>,
    exit: Arc<SetOnce<ExitInfo>>,
    stderr: Arc<StderrTail>,
    group: Group,
    /// What it has of its own in its sandbox.
    process_sandbox: Option<SandboxGuard>,
}

/// How and when a child ended.
struct ExitInfo {
    status: ExitStatus,
    at: Instant,
}

/// The standard input, and what a cancelled write has left over: half a line would garble the next.
struct Input {
    pipe: Option<ChildStdin>,
    rest: VecDeque<u8>,
}

impl Input {
    /// The pipe, and what is to be written to it: these lines behind what is left over.
    fn with(&mut self, lines: Vec<Vec<u8>>) -> Result<(&mut ChildStdin, &mut VecDeque<u8>), Error> {
        if lines.iter().any(|line| memchr::memchr(b'\n', line).is_some()) {
            return Err(Error::invalid_input("the line has a line end in it"));
        }
        let Self { pipe: Some(pipe), rest } = self else {
            return Err(unavailable("the server's standard input is closed"));
        };
        for line in lines {
            rest.extend(line);
            rest.push_back(b'\n');
        }
        Ok((pipe, rest))
    }
}

impl Child {
    /// Starts it. `ended` is told when it has ended.
    fn spawn(spec: &ChildSpec, stderr: Arc<StderrTail>, ended: Arc<Notify>) -> io::Result<Self> {
        let group = Group::new()?;
        let (mut command, told, process_sandbox) = match &spec.confinement {
            None => (spec.command(), Vec::new(), None),
            Some(confinement) => {
                let (command, told, process_sandbox) = confinement.command(spec)?;
                (command, told, Some(process_sandbox))
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.kill_on_drop(true);
        group.enclose(&mut command);
        let mut process = command.spawn()?;
        let pipe = process.stdin.take();
        let output = process.stdout.take().ok_or_else(|| io::Error::other("no standard output"))?;
        if let Some(errors) = process.stderr.take() {
            tokio::spawn(stderr::drain(errors, stderr.clone()));
        }
        let exit = Arc::new(SetOnce::new());
        tokio::spawn({
            let exit = exit.clone();
            async move {
                let status = exit_status(process.wait().await);
                let _ = exit.set(ExitInfo { status, at: Instant::now() });
                ended.notify_one();
            }
        });
        Ok(Self {
            grace: spec.supervisor.policy().shutdown_grace,
            supervisor: spec.supervisor.clone(),
            // What a launcher is told goes before all lines.
            input: Mutex::new(Input { pipe, rest: told.into() }),
            lines: Mutex::new(LineReader::new(output, spec.supervisor.policy().max_message)),
            exit,
            stderr,
            group,
            process_sandbox,
        })
    }

    /// Writes lines, after those before them.
    pub(crate) async fn write_lines(&self, lines: Vec<Vec<u8>>) -> Result<(), Error> {
        let mut input = self.input.lock().await;
        let (pipe, rest) = input.with(lines)?;
        while !rest.is_empty() {
            match pipe.write(rest.as_slices().0).await {
                Ok(written) => drop(rest.drain(..written)),
                // Of a server that has ended, the end is the news, and an event.
                Err(_) if timeout(EXIT_DELAY, self.exit.wait()).await.is_ok() => return Ok(()),
                Err(error) => {
                    return Err(unavailable(format!("the server does not read: {error}")));
                }
            }
        }
        Ok(())
    }

    /// Waits for events; at least one. After the last event it waits for ever. It is begun again when
    /// the child has ended, and does not look for that while it waits.
    pub(crate) async fn next_events(&self) -> Vec<ChildEvent> {
        let mut lines = self.lines.lock().await;
        if lines.ended() {
            return std::future::pending().await;
        }
        let events = match self.exit.get() {
            None => lines.next().await,
            // A grandchild may hold the pipe open, or write to it: what is left to read is read, but
            // not waited for long, and no more than there can be.
            Some(exit) if lines.may_have_more() => {
                timeout_at(exit.at + EXIT_DELAY, lines.next()).await.unwrap_or_default()
            }
            Some(_) => Vec::new(),
        };
        if !events.is_empty() {
            return events;
        }
        // The end is marked last: waiting may be given up, and it must not be lost.
        let event = match timeout(EXIT_DELAY, self.exit.wait()).await {
            Ok(exit) => self.exited(exit.status).await,
            Err(_) => {
                self.supervisor.ended("the server closed its output", self.stderr.lines());
                ChildEvent::Closed
            }
        };
        lines.end();
        vec![event]
    }

    /// The last event of a child that has ended, once its last words were heard.
    async fn exited(&self, status: ExitStatus) -> ChildEvent {
        let _ = timeout(EXIT_DELAY, self.stderr.drained()).await;
        let how = match (status.code, status.signal) {
            // The launcher has said why, last of all.
            (Some(code), _)
                if self.process_sandbox.is_some() && code == i32::from(NOT_CONFINED) =>
            {
                let lines = self.stderr.lines();
                let said = lines.iter().rev().find_map(|line| line.strip_prefix("tenon: "));
                said.unwrap_or("the server was not started in its sandbox").to_string()
            }
            (Some(code), _) => format!("the server exited with code {code}"),
            (None, Some(signal)) => format!("the server was ended by signal {signal}"),
            (None, None) => "the server ended".into(),
        };
        self.supervisor.ended(&how, self.stderr.lines());
        ChildEvent::Exited(status)
    }

    /// Ends the child: closes its input, then asks it to terminate, then kills its group, waiting
    /// in between. Its output is drained meanwhile: a child that is blocked on a write sees no end
    /// of its input.
    pub(crate) async fn stop(&self) {
        self.supervisor.stopped();
        let closing = async {
            // After what is being written, as far as the child reads it.
            self.input.lock().await.pipe = None;
            std::future::pending::<()>().await;
        };
        let draining = async {
            let mut lines = self.lines.lock().await;
            while !lines.ended() && !lines.next().await.is_empty() {}
            std::future::pending::<()>().await;
        };
        let ending = async {
            for signal in [Signal::Terminate, Signal::Kill] {
                if timeout(self.grace, self.exit.wait()).await.is_ok() {
                    return;
                }
                self.group.signal(signal);
            }
            let _ = timeout(self.grace, self.exit.wait()).await;
        };
        tokio::select! {
            () = closing => {}
            () = draining => {}
            () = ending => {}
        }
        self.group.signal(Signal::Kill);
    }
}

fn exit_status(status: io::Result<std::process::ExitStatus>) -> ExitStatus {
    let Ok(status) = status else { return ExitStatus { code: None, signal: None } };
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    ExitStatus { code: status.code(), signal }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::capability::server::Supervision;
    use crate::observe::PluginNotifications;
    use tenon_config::secret::Redactor;
    use tenon_types::ErrorCode;

    /// A child that gives back each line that it reads.
    fn echo() -> Child {
        spawn("/bin/cat", &[])
    }

    fn spawn(program: &str, arguments: &[&str]) -> Child {
        spawn_within(Supervision::default().shutdown_grace, program, arguments)
    }

    /// A child that has so long to end, at each step.
    fn spawn_within(shutdown_grace: Duration, program: &str, arguments: &[&str]) -> Child {
        let log = Arc::new(PluginLog::new("echo".into(), Redactor::default(), 1));
        let supervision = Supervision { shutdown_grace, ..Supervision::default() };
        let supervisor =
            Supervisor::new("echo".into(), "stdio", supervision, PluginNotifications::default());
        let spec = ChildSpec {
            log: log.clone(),
            program: program.into(),
            arguments: arguments.iter().map(ToString::to_string).collect(),
            environment: BTreeMap::new(),
            folder: None,
            trusted: None,
            supervisor: Arc::new(supervisor),
            confinement: None,
        };
        Child::spawn(&spec, Arc::new(StderrTail::new(log)), Arc::default())
            .expect("the child starts")
    }

    fn lines(lines: &[&str]) -> Vec<Vec<u8>> {
        lines.iter().map(|line| line.as_bytes().to_vec()).collect()
    }

    /// So many lines of a child.
    async fn read(child: &Child, many: usize) -> Vec<String> {
        let mut read = Vec::new();
        while read.len() < many {
            read.extend(child.next_events().await.into_iter().map(|event| match event {
                ChildEvent::Line(line) => String::from_utf8(line).expect("it is what was written"),
                other => panic!("{other:?}"),
            }));
        }
        read
    }

    // MCP.md: A1
    #[tokio::test]
    async fn lines_are_written_whole_and_in_order_or_not_at_all() {
        let child = echo();
        let refused = child.write_lines(lines(&["one", "two\nthree"])).await;
        assert!(matches!(refused, Err(Error { code: ErrorCode::InvalidInput, .. })), "{refused:?}");
        child.write_lines(lines(&["four", "", "five"])).await.expect("they are written");
        child.write_lines(lines(&["six"])).await.expect("it is written");
        assert_eq!(read(&child, 4).await, ["four", "", "five", "six"]);
    }

    #[tokio::test]
    async fn the_rest_of_a_write_that_was_given_up_is_written_before_the_next() {
        let child = echo();
        // More than two pipes hold, whose other ends nobody reads.
        let long = "x".repeat(4 << 20);
        {
            let mut writing = std::pin::pin!(child.write_lines(lines(&[&long, "two"])));
            assert!(futures::poll!(writing.as_mut()).is_pending());
        }
        let (written, read) = tokio::join!(child.write_lines(lines(&["three"])), read(&child, 3));
        written.expect("it is written");
        assert!(read == [long.as_str(), "two", "three"], "{:?}", read.last());
    }

    // MCP.md: A9
    #[tokio::test]
    async fn a_child_that_is_written_to_as_it_is_stopped_sees_the_end_of_its_input() {
        // It reads once it has written more than a pipe holds, which nobody reads before.
        let script = "trap 'exit 9' TERM; head -c 300000 /dev/zero; cat > /dev/null; exit 7";
        let child = spawn("/bin/sh", &["-c", script]);
        let long = "x".repeat(4 << 20);
        let long = lines(&[&long]);
        let (written, ()) = tokio::join!(child.write_lines(long), child.stop());
        written.expect("it is read in the end");
        assert_eq!(child.exit.wait().await.status.code, Some(7));
    }

    // MCP.md: A9
    #[tokio::test]
    async fn a_child_is_told_to_end_before_it_is_killed() {
        let check = async |script: &str, grace: u64, expected: (Option<i32>, Option<i32>)| {
            let grace = Duration::from_millis(grace);
            let child = spawn_within(grace, "/bin/sh", &["-c", script]);
            // What it does about signals is settled by then.
            assert_eq!(read(&child, 1).await, ["ready"]);
            child.stop().await;
            let status = child.exit.wait().await.status;
            assert_eq!((status.code, status.signal), expected, "{script}");
        };
        let rows = [
            // At the end of its input.
            ("echo ready; cat > /dev/null; exit 7", 60_000, (Some(7), None)),
            // When it is asked to terminate.
            (
                "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done",
                2_000,
                (Some(9), None),
            ),
            // Otherwise.
            ("trap '' TERM; echo ready; while :; do sleep 0.05; done", 300, (None, Some(9))),
        ];
        let checks = rows.map(|(script, grace, expected)| check(script, grace, expected));
        futures::future::join_all(checks).await;
    }

    #[tokio::test]
    async fn a_child_is_written_to_by_one_at_a_time() {
        let child = echo();
        let long = "x".repeat(4 << 20);
        let mut writing = std::pin::pin!(child.write_lines(lines(&[&long])));
        assert!(futures::poll!(writing.as_mut()).is_pending());
        let next = child.write_lines(lines(&["two"]));
        let (written, next, read) = tokio::join!(writing, next, read(&child, 2));
        written.expect("it is written");
        next.expect("it is written");
        assert!(read == [long.as_str(), "two"], "{:?}", read.last());
    }
}
