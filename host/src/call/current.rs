//! The call that a plugin serves: on whose behalf, how deep, and what it uses.

use serde::Serialize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::Span;

use super::Caller;
use super::paused_time::{OuterCalls, PausedTime};

/// What one call of a tool used, all of its attempts together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// The time from the call to its answer, hooks and waiting included, in microseconds.
    pub wall_micros: u64,
    /// The processor time of the plugin, in microseconds, where it can be told. On an instance that
    /// several calls share it is what the instance took meanwhile.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_micros: Option<u64>,
    /// The linear memory of the instance at the end, which is its most, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// How often the plugin called the host, what its runtime does for it included. An MCP server
    /// that is a child of the host's cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_calls: Option<u64>,
    /// The length of the arguments, in bytes of JSON.
    pub bytes_in: u64,
    /// The length of what the plugin answered, in bytes.
    pub bytes_out: u64,
    /// How often the plugin was called.
    pub attempts: u32,
}

/// A call that is being served, of a tool or of anything else.
///
/// Like a span of `tracing` it goes along with the call, so that plugins which neither measure nor
/// call back need not know of it.
#[derive(Debug, Default)]
pub(crate) struct CurrentCall {
    /// On whose behalf.
    caller: Caller,
    span: Option<Span>,
    /// Whether anything was noted.
    known: AtomicBool,
    cpu_nanos: AtomicU64,
    memory: AtomicU64,
    host_calls: AtomicU64,
    /// Whether those were counted.
    counts_host_calls: AtomicBool,
    paused_time: PausedTime,
    refusals: Mutex<Refusals>,
}

/// What the plugin was refused in one call.
#[derive(Debug, Default)]
struct Refusals {
    /// The first of them, in words.
    words: Vec<String>,
    /// How many came after these.
    more: u64,
    /// How many of all did not get into the log.
    unlogged: u64,
}

/// The most refusals that are kept of one call.
const MAX_REFUSALS: usize = 8;

tokio::task_local! {
    static CURRENT_CALL: Arc<CurrentCall>;
}

impl CurrentCall {
    /// A call on somebody's behalf, in the current span.
    pub(crate) fn new(caller: Caller) -> Arc<Self> {
        let span = Span::current();
        let span = (!span.is_disabled()).then_some(span);
        Arc::new(Self { caller, span, ..Self::default() })
    }

    /// Has a plugin serve the call.
    pub(crate) fn by<F: Future>(
        self: &Arc<Self>,
        plugin: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        CURRENT_CALL.scope(self.clone(), plugin)
    }

    /// The call that is being served.
    pub(crate) fn current() -> Option<Arc<Self>> {
        CURRENT_CALL.try_with(Arc::clone).ok()
    }

    /// On whose behalf a plugin calls that serves this.
    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// On whose behalf the plugin calls others meanwhile.
    pub(crate) fn calls_others_for(self: &Arc<Self>) -> Caller {
        Caller { outer: OuterCalls::of(self), ..self.caller.clone() }
    }

    /// For how long the call's time has stood still.
    pub(crate) fn paused_time(&self) -> &PausedTime {
        &self.paused_time
    }

    /// The span of the call.
    pub(crate) fn span(&self) -> Option<&Span> {
        self.span.as_ref()
    }

    /// Adds to what the call has used.
    pub(crate) fn note(&self, cpu: Duration, memory: Option<usize>, host_calls: Option<u64>) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        self.cpu_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.memory.fetch_max(memory.unwrap_or(0) as u64, Ordering::Relaxed);
        if let Some(host_calls) = host_calls {
            self.host_calls.fetch_add(host_calls, Ordering::Relaxed);
            self.counts_host_calls.store(true, Ordering::Relaxed);
        }
        self.known.store(true, Ordering::Relaxed);
    }

    /// Notes what the plugin was refused, and whether it got into the log.
    pub(crate) fn refused(&self, words: String, logged: bool) {
        let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
        refusals.unlogged += u64::from(!logged);
        if refusals.words.contains(&words) {
            return;
        }
        match refusals.words.len() < MAX_REFUSALS {
            true => refusals.words.push(words),
            false => refusals.more += 1,
        }
    }

    /// What the plugin was refused, in words, and how many refusals did not get into the log.
    pub(crate) fn refusals(&self) -> (Vec<String>, u64) {
        let refusals =
            std::mem::take(&mut *self.refusals.lock().unwrap_or_else(PoisonError::into_inner));
        let Refusals { mut words, more, unlogged } = refusals;
        if more > 0 {
            words.push(format!("and {more} more were refused"));
        }
        (words, unlogged)
    }

    /// What was noted so far.
    pub(crate) fn usage(&self) -> Usage {
        if !self.known.load(Ordering::Relaxed) {
            return Usage::default();
        }
        let memory = self.memory.load(Ordering::Relaxed);
        let counts_host_calls = self.counts_host_calls.load(Ordering::Relaxed);
        Usage {
            cpu_micros: Some(self.cpu_nanos.load(Ordering::Relaxed) / 1_000),
            memory_bytes: (memory > 0).then_some(memory),
            host_calls: counts_host_calls.then(|| self.host_calls.load(Ordering::Relaxed)),
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_beyond_those_that_are_kept_are_counted() {
        let current_call = CurrentCall::new(Caller::default());
        for i in 0..11 {
            current_call.refused(format!("no {i}"), i < 9);
        }
        // Once more what was said before.
        current_call.refused("no 1".into(), true);
        let (words, unlogged) = current_call.refusals();
        assert_eq!((words.len(), unlogged), (9, 2));
        assert_eq!((words[7].as_str(), words[8].as_str()), ("no 7", "and 3 more were refused"));
    }
}
