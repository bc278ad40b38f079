//! The handshake: in which era the server speaks, and who it is.

use super::{
    Action, Client, ConnectionState, EarlyServerExit, Error, LogLevel, NEVER, OperationId, Outcome,
    Purpose,
};
use crate::message::JsonSlice;
use crate::raw_json::Members;
use crate::server::{Server, unknown_revision};
use crate::settings::{Era, HandshakeMode};
use crate::{MODERN, REVISIONS};

/// How much of the time for the handshake a server gets to answer `server/discover`, where it may
/// well be of the other era: one part in this many.
const PROBE_PART: u64 = 3;

/// The codes of errors that only servers of the newer era have.
const MODERN_CODES: std::ops::RangeInclusive<i64> = -32022..=-32020;

/// A connection in the making.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Handshake {
    operation: OperationId,
    /// When all of it must be done.
    deadline: u64,
    /// What was tried, and what came of it.
    failed: Vec<(Era, Error)>,
    /// What is tried next, if what is being tried fails.
    next: Option<Era>,
    /// The server ended, and is being started again.
    waits: bool,
    /// A late sign of the other era was believed once.
    again: bool,
}

impl Client {
    /// A server is about to be started, which may write before it is spoken to.
    pub fn starting(&mut self) {
        self.noise = 0;
        self.words.clear();
        self.starting = true;
        self.early_end = None;
    }

    /// It could not be started.
    pub fn not_started(&mut self) {
        self.starting = false;
    }

    /// Notes that a server has ended which is not spoken to yet: whoever speaks to it learns of it then.
    pub(super) fn ends_early(&mut self, reason: &str, for_good: bool) -> bool {
        if self.starting {
            let end = || EarlyServerExit { reason: reason.to_string(), for_good };
            self.early_end.get_or_insert_with(end);
        }
        self.starting
    }

    /// It is spoken to; one that has ended by then will not answer.
    fn spoken_to(&mut self) {
        self.starting = false;
        match self.early_end.take() {
            Some(EarlyServerExit { reason, for_good: true }) => self.failed_to_go_on(&reason),
            Some(EarlyServerExit { reason, for_good: false }) => self.lost(&reason),
            None => {}
        }
    }

    /// Begins a connection with a server that has just started.
    pub fn connect(&mut self, now: u64, timeout: u64) -> OperationId {
        self.now = now;
        self.heard = now;
        let operation = self.operation();
        let auto = |era| match era {
            Era::Legacy => (Era::Legacy, Some(Era::Modern)),
            Era::Modern => (Era::Modern, Some(Era::Legacy)),
        };
        let (first, next) = match self.settings.protocol {
            HandshakeMode::Auto => auto(self.settings.era.unwrap_or(Era::Legacy)),
            HandshakeMode::Probe => auto(self.settings.era.unwrap_or(Era::Modern)),
            HandshakeMode::Legacy => (Era::Legacy, None),
            HandshakeMode::Modern => (Era::Modern, None),
        };
        self.state = ConnectionState::Connecting(Handshake {
            operation,
            deadline: now.saturating_add(timeout),
            failed: Vec::new(),
            next,
            waits: false,
            again: false,
        });
        self.attempt(first);
        self.spoken_to();
        operation
    }

    /// Learns that the server was started again, as it was asked to be.
    pub fn restarted(&mut self, now: u64) {
        self.now = now;
        self.starting = false;
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        // The one that waited for it may have been cancelled.
        if !std::mem::take(&mut handshake.waits) {
            return;
        }
        match handshake.next.take() {
            Some(era) => self.attempt(era),
            None => return self.give_handshake_up(),
        }
        self.spoken_to();
    }

    /// Begins the handshake of an era.
    fn attempt(&mut self, era: Era) {
        let ConnectionState::Connecting(handshake) = &self.state else { return };
        let Handshake { operation, deadline, next, .. } = *handshake;
        match era {
            Era::Legacy => {
                let params = Members::new()
                    .with("protocolVersion", REVISIONS[0])
                    .with("capabilities", self.settings.capabilities())
                    .with("clientInfo", self.settings.info());
                let line = self.line("initialize", &params, &[], false);
                self.send(operation, "initialize", line, deadline, Purpose::Initialize);
            }
            Era::Modern => {
                // What it asked so far, it asked as one of the older era.
                self.withdraw_all(|_| true);
                // One of the older era may never answer.
                let deadline = match next {
                    Some(_) => self.now + deadline.saturating_sub(self.now) / PROBE_PART,
                    None => deadline,
                };
                let ours = [&self.modern_meta, &self.modern_capabilities];
                let line = self.line("server/discover", &Members::new(), &ours, false);
                self.send(operation, "server/discover", line, deadline, Purpose::Discover);
            }
        }
    }

    /// Whether this operation is the handshake that is going on.
    pub(super) fn is_connecting(&self, operation: OperationId) -> bool {
        matches!(&self.state, ConnectionState::Connecting(handshake) if handshake.operation == operation)
    }

    /// Notes that a server which ended in its handshake, before it answered anything, would do so again.
    /// One that was asked in the words of the newer era on purpose may have failed for that: there are
    /// published servers of the older era that do.
    pub(super) fn ended_for_good(&mut self, reason: &str) {
        let by_probe = self.settings.protocol == HandshakeMode::Probe
            && self.settings.era != Some(Era::Modern);
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        let answered = !handshake.failed.is_empty() || handshake.again;
        if !by_probe && !answered && !speaks_of_the_era(reason) {
            handshake.next = None;
        }
    }

    /// Whether a server that ended in its handshake is to be started once more, for the other era.
    pub(super) fn begin_again(&mut self, reason: &str) -> bool {
        let ConnectionState::Connecting(handshake) = &mut self.state else { return false };
        if handshake.next.is_none() || handshake.waits {
            return false;
        }
        handshake.waits = true;
        let tried = match handshake.next {
            Some(Era::Modern) => Era::Legacy,
            _ => Era::Modern,
        };
        handshake.failed.push((tried, Error::Lost(reason.to_string())));
        self.in_flight.clear();
        self.actions.push_back(Action::Restart);
        true
    }

    /// The server has ended before it was connected, and is not started again.
    pub(super) fn lost_in_handshake(&mut self, reason: &str) {
        if let ConnectionState::Connecting(handshake) = &mut self.state {
            let last = handshake.failed.last().map(|(era, _)| *era);
            let era = if last == Some(Era::Legacy) { Era::Modern } else { Era::Legacy };
            handshake.failed.push((era, Error::Lost(reason.to_string())));
        }
        self.give_handshake_up();
    }

    pub(super) fn initialized(&mut self, result: Result<JsonSlice, Error>) {
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        let modern = matches!(&result, Err(Error::Rpc { code, .. }) if MODERN_CODES.contains(code));
        let permitted = self.settings.protocol != HandshakeMode::Legacy;
        if modern && permitted && !handshake.again {
            // Only the newer era has this answer, so a probe that had none was too early.
            handshake.again = true;
            handshake.next = Some(Era::Modern);
        }
        // Who answers is of the older era, unless it offers the revision of the newer.
        if result.as_ref().is_ok_and(|answer| !answer.get().contains(MODERN)) {
            handshake.next = None;
        }
        match result.and_then(|payload| Server::initialized(payload.get())) {
            Ok(server) => {
                self.write(
                    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.into(),
                    None,
                );
                let logs = server.capabilities.logging;
                self.connected(server);
                if let Some(level) = self.settings.log_level.clone().filter(|_| logs) {
                    self.send_aside("logging/setLevel", &Members::new().with("level", level));
                }
                self.subscribe_again();
            }
            Err(error) => self.attempt_failed(Era::Legacy, error),
        }
    }

    pub(super) fn discovered(&mut self, result: Result<JsonSlice, Error>) {
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        let error = match result.and_then(|payload| Server::discovered(payload.get())) {
            Ok(server) => {
                self.connected(server);
                return self.listen();
            }
            Err(error) => error,
        };
        if let Error::Rpc { code, data, .. } = &error
            && MODERN_CODES.contains(code)
        {
            // It is of the newer era, so the older is not for it.
            handshake.next = None;
            let supported = data.as_deref().and_then(|data| {
                let data: serde_json::Value = serde_json::from_str(data).ok()?;
                serde_json::from_value::<Vec<String>>(data.get("supported")?.clone()).ok()
            });
            match supported {
                Some(supported) if supported.iter().all(|version| version != MODERN) => {
                    return self.attempt_failed(Era::Modern, unknown_revision(&supported));
                }
                // It contradicts itself, and is asked once more.
                Some(_) if !std::mem::replace(&mut handshake.again, true) => {
                    return self.attempt(Era::Modern);
                }
                Some(_) | None => {}
            }
        }
        self.attempt_failed(Era::Modern, error);
    }

    fn connected(&mut self, server: Server) {
        let ConnectionState::Connecting(Handshake { operation, .. }) = self.state else { return };
        self.settings.era = Some(server.era);
        self.starting = false;
        self.words.clear();
        self.state = ConnectionState::Connected(server.clone());
        self.finish(operation, Ok(Outcome::Connected(server)));
    }

    fn attempt_failed(&mut self, era: Era, error: Error) {
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        let late = era == Era::Legacy && error == Error::Timeout;
        handshake.failed.push((era, error));
        match handshake.next.take() {
            // Of what began with `initialize`, all the time there was is over.
            Some(era) if !late => self.attempt(era),
            Some(_) | None => self.give_handshake_up(),
        }
    }

    fn give_handshake_up(&mut self) {
        let ConnectionState::Connecting(handshake) = &mut self.state else { return };
        let operation = handshake.operation;
        let failed = std::mem::take(&mut handshake.failed);
        self.state = ConnectionState::Disconnected;
        self.finish(operation, Err(both(failed)));
    }

    /// When the server was silent for so long that it is asked whether it lives. While it owes
    /// answers it may be busy with them; what has only one thread cannot do both.
    pub(super) fn ping_due(&self) -> Option<u64> {
        let interval = self.settings.ping?;
        let idle = self.era() == Some(Era::Legacy) && self.in_flight.is_empty();
        idle.then_some(self.heard.saturating_add(interval))
    }

    pub(super) fn ping(&mut self) {
        let operation = self.operation();
        let deadline = self.now.saturating_add(self.settings.timeout).min(NEVER - 1);
        let line = self.line("ping", &Members::new(), &[], false);
        self.send(operation, "ping", line, deadline, Purpose::Ping);
    }

    pub(super) fn pinged(&mut self, error: Option<Error>) {
        match error {
            // An error is an answer.
            None | Some(Error::Rpc { .. } | Error::Protocol(_)) => {}
            Some(_) => {
                let reason = "the server does not answer any more".to_string();
                self.log(LogLevel::Warn, &*reason);
                self.actions.push_back(Action::Disconnect(reason));
            }
        }
    }
}

/// Whether a server's last words are about how it was spoken to.
fn speaks_of_the_era(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    [
        "initialize",
        "server/discover",
        "protocolversion",
        "protocol version",
        "unknown method",
        "method not found",
    ]
    .iter()
    .any(|sign| words.contains(sign))
}

/// Why no handshake succeeded, in the words of each that was tried. The kind is that of the first:
/// what was tried after it is a guess. Whoever does not know the method of the other era has said
/// nothing by it.
fn both(failed: Vec<(Era, Error)>) -> Error {
    let mut failed = failed.into_iter();
    let Some((tried, first)) = failed.next() else {
        return Error::Protocol("no handshake was tried".into());
    };
    let Some((era, second)) = failed.next().filter(|(_, second)| *second != first) else {
        return first;
    };
    let is_unknown = |error: &Error| matches!(error, Error::Rpc { code: -32601, .. });
    match (is_unknown(&first), is_unknown(&second)) {
        (_, true) => return first,
        (true, false) => return second,
        (false, false) => {}
    }
    let asked = |era| match era {
        Era::Legacy => "initialize",
        Era::Modern => "server/discover",
    };
    let guess = format!("to {}: {}", asked(era), in_words(&second));
    let also = format!("; and {guess}");
    match first {
        // Its code and data stand behind the message.
        Error::Rpc { code, message, data } => {
            let message = format!("{guess}; and to {}: {message}", asked(tried));
            Error::Rpc { code, message, data }
        }
        Error::Lost(reason) => match second {
            // It ended both times.
            Error::Lost(again) => Error::Lost(again),
            _ => Error::Lost(format!("{reason}{also}")),
        },
        Error::Protocol(problem) => Error::Protocol(format!("{problem}{also}")),
        Error::Needs(problem) => Error::Needs(format!("{problem}{also}")),
        Error::Unavailable { message, retry_after } => {
            Error::Unavailable { message: format!("{message}{also}"), retry_after }
        }
        Error::Timeout | Error::Cancelled | Error::Undeclared(_) => second,
    }
}

fn in_words(error: &Error) -> String {
    match error {
        Error::Rpc { code, message, .. } => format!("{message} (code {code})"),
        Error::Timeout => "no answer in time".into(),
        Error::Cancelled => "cancelled".into(),
        Error::Lost(reason)
        | Error::Protocol(reason)
        | Error::Needs(reason)
        | Error::Undeclared(reason)
        | Error::Unavailable { message: reason, .. } => reason.clone(),
    }
}
