//! The standard error of a child: always drained, shown in the log, and its last lines kept.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use tenon_confinement::WITHOUT_NAMESPACES;
use tenon_types::LogLevel;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::SetOnce;

use crate::capability::server::Supervisor;
use crate::observe::PluginLog;

/// The lines that are kept.
const MAX_LINES: usize = 20;

/// The longest line that is kept whole, in bytes.
const MAX_LINE_BYTES: usize = 16 << 10;

/// The last lines of a child.
pub(super) struct StderrTail {
    log: Arc<PluginLog>,
    /// Who is told what is said of the child, and not by it.
    supervisor: Option<Arc<Supervisor>>,
    lines: Mutex<VecDeque<String>>,
    /// There is nothing more to come.
    drained: SetOnce<()>,
}

impl StderrTail {
    pub(super) fn new(log: Arc<PluginLog>) -> Self {
        Self { log, supervisor: None, lines: Mutex::default(), drained: SetOnce::new() }
    }

    /// The same for a child of a supervisor's.
    pub(super) fn of(self, supervisor: Arc<Supervisor>) -> Self {
        Self { supervisor: Some(supervisor), ..self }
    }

    /// The last lines, oldest first.
    pub(super) fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Waits until everything was read.
    pub(super) async fn drained(&self) {
        self.drained.wait().await;
    }

    fn push(&self, line: &[u8]) {
        let is_cut = line.len() >= MAX_LINE_BYTES;
        let line = match is_cut {
            true => self.log.beginning_without_secrets(line),
            false => {
                let line = String::from_utf8_lossy(line);
                self.log.without_secrets(line.trim_end()).into_owned()
            }
        };
        self.log.write(LogLevel::Info, &format!("stderr: {line}"), &[]);
        if let Some(supervisor) = self.supervisor.as_ref().filter(|_| line == WITHOUT_NAMESPACES) {
            supervisor.lacks_namespaces();
            return;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }
}

/// Reads to the end, whatever comes.
pub(super) async fn drain(mut reader: impl AsyncRead + Unpin, tail: Arc<StderrTail>) {
    let mut chunk = vec![0; 8 << 10];
    let mut line = Vec::new();
    loop {
        let read = match reader.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(read) => read,
        };
        for piece in chunk[..read].split_inclusive(|&byte| byte == b'\n') {
            let room = MAX_LINE_BYTES - line.len();
            line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                tail.push(&line);
                line.clear();
            }
        }
    }
    if !line.is_empty() {
        tail.push(&line);
    }
    let _ = tail.drained.set(());
}

#[cfg(test)]
mod tests {
    use super::*;
    use tenon_config::secret::{Redactor, SecretValues};

    #[tokio::test]
    async fn half_a_secret_at_the_end_of_a_long_line_is_not_shown() {
        let mut secrets = SecretValues::default();
        secrets.add("A_TOKEN", "hunter22");
        for shown in 0.."hunter22".len() + 2 {
            let line = format!("{}hunter22 and more", "x".repeat(MAX_LINE_BYTES - shown));
            let log = PluginLog::new("test".into(), Redactor::new(&secrets), 100);
            let tail = Arc::new(StderrTail::new(Arc::new(log)));
            drain(line.as_bytes(), tail.clone()).await;
            assert!(!tail.lines()[0].contains('h'), "{shown}");
        }
    }

    // MCP.md: A4
    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_cut() {
        let mut input = Vec::new();
        for i in 0..MAX_LINES + 5 {
            input.extend_from_slice(format!("line {i}\n").as_bytes());
        }
        input.extend_from_slice(&vec![b'x'; 3 * MAX_LINE_BYTES]);
        let tail = Arc::new(StderrTail::new(Arc::new(PluginLog::new(
            "test".into(),
            Default::default(),
            100,
        ))));
        drain(&input[..], tail.clone()).await;
        let lines = tail.lines();
        assert_eq!(lines.len(), MAX_LINES);
        assert_eq!(lines[MAX_LINES - 2], format!("line {}", MAX_LINES + 4));
        assert_eq!(lines[MAX_LINES - 1].len(), MAX_LINE_BYTES);
    }
}
