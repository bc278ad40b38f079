//! Interruptions: Ctrl-C, or the system's word that a command is to end.

use std::future::pending;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from when it is made: nothing that comes between two waits is missed.
pub(crate) struct Interrupts {
    #[cfg(unix)]
    signals: [Option<Signal>; 3],
}

impl Interrupts {
    /// Begins to listen. A signal no longer ends the process by itself.
    #[cfg(unix)]
    pub(crate) fn listen() -> Self {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        Self { signals: kinds.map(|kind| signal(kind).ok()) }
    }

    #[cfg(not(unix))]
    pub(crate) fn listen() -> Self {
        Self {}
    }

    /// Waits for the next.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        async fn one(signal: &mut Option<Signal>) {
            match signal {
                Some(signal) => signal.recv().await.unwrap_or(()),
                None => pending().await,
            }
        }
        let [interrupt, terminate, hangup] = &mut self.signals;
        tokio::select! {
            () = one(interrupt) => {}
            () = one(terminate) => {}
            () = one(hangup) => {}
        }
    }

    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            pending().await
        }
    }
}
