//! What the threads of a run share, and what each has of its own.

use futures::future::{Either, select};
use rhai::{AST, Dynamic, EvalAltResult, Position};
use serde_json::Value;
use std::cell::RefCell;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use tenon_config::limits::Limits;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::super::error::ScriptResult;
use super::functions::{ToolFunctions, stop_or_limit};
use super::{Abandoned, RunHost, RunLimits, RunStopped, running_call, stop};
use crate::runtime::rhai::running_call::ThreadTotals;

/// What all threads of a run share.
pub(super) struct RunShared {
    pub(super) host: Arc<dyn RunHost>,
    pub(super) runtime: Handle,
    pub(super) abandoned: Abandoned,
    pub(super) given_up: Arc<AtomicBool>,
    pub(super) functions: Arc<ToolFunctions>,
    pub(super) limits: RunLimits,
    pub(super) script_limits: Limits,
    pub(super) ast: AST,
    pub(super) data: Dynamic,
    /// The time that the script sees.
    pub(super) began: SystemTime,
    /// What its threads have used together.
    pub(super) used: Arc<ThreadTotals>,
    /// Places for those of its threads that compute.
    pub(super) processors: Arc<Semaphore>,
    pub(super) progress: RunCounters,
}

/// How far a run is.
#[derive(Default)]
pub(super) struct RunCounters {
    operations: AtomicU64,
    calls: AtomicU64,
    /// How many threads work besides the first.
    threads: AtomicUsize,
    stopped: AtomicBool,
    /// It is stopped, or has reached a bound.
    is_over: AtomicBool,
    /// The bound that was reached.
    reached: Mutex<Option<String>>,
    printed: Mutex<String>,
}

impl RunShared {
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Has every thread stop at its next call.
    pub(super) fn stop(&self) {
        self.progress.stopped.store(true, Ordering::SeqCst);
        self.progress.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.progress.stopped.load(Ordering::SeqCst)
    }

    /// Whether the script may do nothing any more.
    pub(super) fn is_over(&self) -> bool {
        self.progress.is_over.load(Ordering::SeqCst)
    }

    /// Whether nobody waits for the run any more.
    fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// A place for one more thread, while there is one.
    pub(super) fn take_thread(self: &Arc<Self>) -> Option<ThreadPermit> {
        let most = self.limits.parallel.saturating_sub(1);
        let place = ThreadPermit(self.clone());
        (self.progress.threads.fetch_add(1, Ordering::SeqCst) < most).then_some(place)
    }

    /// The bound that was reached, if one was.
    pub(super) fn reached_limit(&self) -> Option<String> {
        self.progress.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends the run, since a bound is reached. No script catches that.
    pub(super) fn reach(&self, limit: String) -> Box<EvalAltResult> {
        let mut reached = self.progress.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.get_or_insert(limit);
        self.progress.is_over.store(true, Ordering::SeqCst);
        EvalAltResult::ErrorTerminated(Dynamic::from(RunStopped), Position::NONE).into()
    }

    /// What was printed, how many calls there were, and how many operations.
    pub(super) fn used(&self) -> (String, u64, u64) {
        let printed = self.progress.printed.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let (calls, operations) = (
            self.progress.calls.load(Ordering::Relaxed),
            self.progress.operations.load(Ordering::Relaxed),
        );
        (printed, calls, operations)
    }

    /// Whether a result may be so long besides what was printed.
    pub(super) fn has_room_for(&self, value: &Value) -> bool {
        let printed = self.progress.printed.lock().unwrap_or_else(PoisonError::into_inner).len();
        printed + value.to_string().len() <= self.limits.output
    }

    /// Counts operations of a thread. Says whether all threads together have had theirs.
    fn count_operations(&self, more: u64) -> bool {
        let most = self.limits.operations;
        let all = self.progress.operations.fetch_add(more, Ordering::Relaxed) + more;
        if all > most {
            let _ = self.reach(format!(
                "it took {most} operations, and may take no more (`runs.operations`)"
            ));
        }
        all > most
    }

    /// Counts one more call.
    fn count_call(&self) -> ScriptResult<()> {
        let most = self.limits.calls;
        match self.progress.calls.fetch_add(1, Ordering::Relaxed) < most {
            true => Ok(()),
            false => {
                self.progress.calls.fetch_sub(1, Ordering::Relaxed);
                let problem = format!("it made {most} calls, and may make no more (`runs.calls`)");
                Err(self.reach(problem))
            }
        }
    }
}

/// The place of a thread.
pub(super) struct ThreadPermit(Arc<RunShared>);

impl Drop for ThreadPermit {
    fn drop(&mut self) {
        self.0.progress.threads.fetch_sub(1, Ordering::SeqCst);
    }
}

/// One thread of a run.
pub(super) struct RunBranch {
    pub(super) shared: Arc<RunShared>,
    /// What the keys of its calls begin with.
    prefix: String,
    /// How deep it is within `parallel`.
    depth: usize,
    next: u64,
    /// How many of its operations are not counted among those of the run yet.
    uncounted: u64,
}

impl RunBranch {
    pub(super) fn new(shared: Arc<RunShared>, prefix: String, depth: usize) -> Self {
        Self { shared, prefix, depth, next: 1, uncounted: 0 }
    }
}

thread_local! {
    static THREAD: RefCell<Option<RunBranch>> = const { RefCell::new(None) };
}

/// Runs a part of a script on this thread.
pub(super) fn within<R>(thread: RunBranch, script: impl FnOnce() -> R) -> R {
    let before = THREAD.replace(Some(thread));
    let result = script();
    if let Some(RunBranch { shared, uncounted, .. }) = THREAD.replace(before) {
        shared.count_operations(uncounted);
    }
    result
}

/// What the run shares that this thread belongs to.
pub(super) fn shared() -> ScriptResult<Arc<RunShared>> {
    let shared = THREAD.with_borrow(|thread| thread.as_ref().map(|thread| thread.shared.clone()));
    shared.ok_or_else(|| super::super::error::mistake("tools are called in a run"))
}

/// How deep this thread is within `parallel`.
pub(super) fn depth() -> usize {
    THREAD.with_borrow(|thread| thread.as_ref().map_or(0, |thread| thread.depth))
}

/// The key of the next call of this thread.
pub(super) fn next_key() -> String {
    THREAD.with_borrow_mut(|thread| match thread {
        None => String::new(),
        Some(thread) => {
            let key = format!("{}{}", thread.prefix, thread.next);
            thread.next += 1;
            key
        }
    })
}

/// Runs a part of the script whose calls have keys below this one.
pub(super) fn below<R>(key: &str, script: impl FnOnce() -> R) -> R {
    let enter = |prefix: String, next: u64| {
        THREAD.with_borrow_mut(|thread| {
            let thread = thread.as_mut()?;
            Some((
                std::mem::replace(&mut thread.prefix, prefix),
                std::mem::replace(&mut thread.next, next),
            ))
        })
    };
    let before = enter(format!("{key}."), 1);
    let result = script();
    if let Some((prefix, next)) = before {
        enter(prefix, next);
    }
    result
}

/// Has the host do something, and waits for it on this thread. Its place among those that run is free meanwhile.
pub(super) fn ask<T, F>(what: impl FnOnce(Arc<dyn RunHost>, String) -> F) -> ScriptResult<T>
where
    F: Future<Output = Result<T, RunStopped>>,
{
    let shared = shared()?;
    if shared.is_over() || shared.is_given_up() {
        return Err(stop_or_limit(&shared));
    }
    shared.count_call()?;
    let asked = what(shared.host.clone(), next_key());
    let abandoned = shared.abandoned.clone();
    let answer = running_call::block_on(&shared.runtime, async move {
        // First what it asks for: mostly it is there at once.
        match select(pin!(asked), abandoned).await {
            Either::Left((answer, _)) => answer,
            Either::Right(_) => Err(RunStopped),
        }
    });
    answer.map_err(|RunStopped| stop(&shared))
}

/// The host of the run.
pub(super) fn host() -> ScriptResult<Arc<dyn RunHost>> {
    Ok(shared()?.host.clone())
}

/// The `data` of the run.
pub(super) fn data() -> Option<Dynamic> {
    THREAD.with_borrow(|thread| thread.as_ref().map(|thread| thread.shared.data.clone()))
}

/// The time that the run sees.
pub(super) fn began() -> SystemTime {
    let began = THREAD.with_borrow(|thread| thread.as_ref().map(|thread| thread.shared.began));
    began.unwrap_or(SystemTime::UNIX_EPOCH)
}

/// Counts one more operation of this thread. Says whether all threads together have had theirs, or the run is stopped.
pub(super) fn count() -> bool {
    const EVERY: u64 = 64;
    THREAD.with_borrow_mut(|thread| {
        let Some(RunBranch { shared, uncounted, .. }) = thread else { return false };
        *uncounted += 1;
        // A function of the engine's own may have kept the error for itself that ends the run.
        if shared.is_over() {
            return true;
        }
        *uncounted >= EVERY && shared.count_operations(std::mem::take(uncounted))
    })
}

/// Keeps what a script prints, as far as there is room.
pub(super) fn print(text: &str) {
    THREAD.with_borrow(|thread| {
        let Some(RunBranch { shared, .. }) = thread else { return };
        if shared.is_over() {
            return;
        }
        let mut printed = shared.progress.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let room = shared.limits.output.saturating_sub(printed.len());
        let is_full = printed.ends_with(CUT);
        if !is_full && text.len() + CUT.len() < room {
            printed.push_str(text);
            printed.push('\n');
        } else if !is_full {
            // It prints more than anybody reads.
            let end = text.floor_char_boundary(room.saturating_sub(CUT.len()));
            printed.push_str(&text[..end]);
            printed.push_str(CUT);
        }
    });
}

/// What stands where printed text was cut.
const CUT: &str = "… the rest is left out";
