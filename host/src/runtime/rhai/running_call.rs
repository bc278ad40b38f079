//! The call that a thread runs a script for: its time, what it has used, and its way to the host.

use rhai::{Dynamic, EvalAltResult, EvalContext, Position};
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::pin::pin;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use tenon_config::limits::{Limits, MAX_DURATION};
use tenon_repoll::while_helping;
use tenon_types::Error;
use tokio::runtime::Handle;
use tracing::{Instrument, Span};

use super::engine::{MAX_VALUE_DEPTH, weigh, weigh_own, weigh_unshared};
use super::error::{ScriptResult, mistake};
use super::inline_run::InlineSlice;
use super::threads;
use crate::call::{Caller, CallerClient};
use crate::capability::granted::GrantedCapabilities;
use crate::capability::network::Network;
use crate::capability::notify::PluginNotifier;
use crate::capability::served_calls::AskContext;
use crate::capability::services::AskingPlugin;
use crate::observe::PluginLog;

/// How often one call may use captured variables that hold more than a plain value. The engine does
/// not see how deep closures that capture closures are nested; each level takes one such use, so
/// this bounds the depth, and with it the stack that dropping them takes.
pub(super) const MAX_CAPTURED_VALUES: u32 = 200_000;

/// How often, in uses of captured variables, it may be looked at what they hold.
const WEIGH_EVERY: u32 = 16;

/// The least and the most time between two looks at what captured variables hold.
const MIN_TIME_BETWEEN_WEIGHING: Duration = Duration::from_micros(200);
const MAX_TIME_BETWEEN_WEIGHING: Duration = Duration::from_millis(20);

/// How often, in uses of variables, it may be looked at what all of them hold.
const WEIGH_SCOPE_EVERY: u32 = 64;

/// The least and the most time between two looks at what variables hold.
const MIN_TIME_BETWEEN_SCOPES: Duration = Duration::from_millis(1);
const MAX_TIME_BETWEEN_SCOPES: Duration = Duration::from_millis(50);

/// How long a captured variable is not looked at that was locked: the engine waits fifty milliseconds for it.
const SKIPPED_IF_LOCKED: Duration = Duration::from_secs(1);

/// Says how many bytes the thread that asks has allocated and not freed, in all its time; less than nothing where it has freed what
/// others have allocated.
static THREAD_MEMORY: OnceLock<fn() -> i64> = OnceLock::new();

/// Bounds what scripts hold also while it is in no variable, such as the arguments of a call that are computed one after the other:
/// twice `limits.memory`. For that it has to be known how many bytes a thread has allocated and not freed in all its time, which the
/// allocator of a program can count. The first function that is set counts.
pub fn count_thread_memory(held: fn() -> i64) {
    let _ = THREAD_MEMORY.set(held);
}

fn held_by_thread() -> i64 {
    THREAD_MEMORY.get().map_or(0, |held| held())
}

/// How often a script that waits for the host looks whether anybody still waits for it.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Why a script was ended from outside: the token of `ErrorTerminated`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TerminationReason {
    GivenUp,
    OutOfTime,
    /// It used captured variables more often than [`MAX_CAPTURED_VALUES`].
    TooManyCaptures,
    /// Its variables hold more than this many bytes.
    TooMuchMemory(usize),
    /// It would write out a value that is too large.
    ValueTooLarge,
    /// It asked the host more often than this.
    TooManyHostCalls(u64),
    /// It cannot go on in the slice that it was tried in, and begins again on a thread for scripts.
    NeedsThread,
}

/// The call that runs on a thread.
struct ThreadCall {
    /// The bounds of a call on its caller's thread.
    slice: Option<InlineSlice>,
    given_up: Arc<AtomicBool>,
    /// Why it ends. A function of the engine's own may have kept that error for itself.
    over: Option<TerminationReason>,
    /// How many operations it took, those of the functions included that the engine's own functions call.
    operations: u64,
    most_operations: u64,
    until: Instant,
    /// How much time the threads of a run have together.
    cpu: Duration,
    captured: u32,
    /// The captured variables that were used, each once, with the time until which it is not looked at; and their addresses.
    cells: Vec<(Dynamic, Instant)>,
    cell_addresses: HashSet<usize>,
    /// What is the host's, and was captured by no function; with its address.
    shared_with_host: Option<(Dynamic, usize)>,
    /// When it is looked again how much they hold.
    weighed_next: Instant,
    began: Instant,
    /// What its thread held when it began.
    held_before: i64,
    /// What captured variables held, by address, and how many bytes that were.
    seen: HashSet<usize>,
    captured_bytes: usize,
    most_captured_bytes: usize,
    /// How many bytes the variables of each function hold, from the outermost on, as far as they were looked at.
    frames: Vec<usize>,
    /// When it is looked again what they hold.
    frames_weighed_next: Instant,
    /// What all threads of a run have used, where it is one of them; and what of that is this thread's.
    of_run: Option<Arc<ThreadTotals>>,
    counted: ThreadUsage,
    /// How long it has waited for the host, which is not its own time.
    waited: Duration,
    host_calls: u64,
    most_host_calls: u64,
    outside: Option<HostAccess>,
}

/// What the threads of a run have used together.
#[derive(Debug, Default)]
pub(super) struct ThreadTotals {
    /// Their time, in microseconds.
    cpu: AtomicU64,
    /// How many bytes their variables hold.
    held: AtomicUsize,
    /// How many bytes they have allocated and not freed.
    allocated: AtomicI64,
}

/// What a thread has counted of itself.
#[derive(Default)]
struct ThreadUsage {
    cpu: u64,
    held: usize,
    allocated: i64,
}

/// A call's way to the host.
#[derive(Clone)]
pub(super) struct HostAccess {
    pub(super) granted: Arc<GrantedCapabilities>,
    /// The network, if anything of it was granted.
    pub(super) network: Option<Arc<Network>>,
    /// On whose behalf the script was called.
    pub(super) caller: Caller,
    /// Where the host works while the script waits.
    pub(super) runtime: Handle,
    pub(super) plugin: Arc<str>,
    pub(super) log: Arc<PluginLog>,
    pub(super) news: Arc<PluginNotifier>,
    /// The call that the script serves.
    pub(super) call_id: Option<String>,
}

impl HostAccess {
    /// What the script asks of a user or a model.
    pub(super) fn request(&self) -> AskContext {
        let Caller { agent_id, session_id, client, outer, .. } = &self.caller;
        let requester = AskingPlugin {
            plugin: self.granted.plugin().to_string(),
            call_id: self.call_id.clone(),
            agent_id: agent_id.clone(),
            session_id: session_id.clone(),
            is_host: false,
        };
        let calls = outer.innermost().cloned().into_iter().collect();
        AskContext { requester, client: client.clone(), calls }
    }
}

/// What a call has used.
pub(super) struct CallUsage {
    pub(super) cpu: Duration,
    pub(super) host_calls: u64,
}

thread_local! {
    /// How often scripts of this thread have used a variable.
    static VARIABLE_USES: Cell<u32> = const { Cell::new(0) };
    static RUNNING: RefCell<Option<ThreadCall>> = const { RefCell::new(None) };
}

impl ThreadCall {
    fn new(limits: &Limits, began: Instant) -> Self {
        Self {
            slice: None,
            given_up: Arc::default(),
            over: None,
            operations: 0,
            most_operations: limits.operations(),
            until: began + limits.cpu.min(MAX_DURATION),
            cpu: limits.cpu,
            captured: 0,
            cells: Vec::new(),
            cell_addresses: HashSet::new(),
            shared_with_host: None,
            weighed_next: began + MAX_TIME_BETWEEN_WEIGHING,
            began,
            held_before: held_by_thread(),
            seen: HashSet::new(),
            captured_bytes: 0,
            most_captured_bytes: limits.memory,
            frames: Vec::new(),
            frames_weighed_next: began + MIN_TIME_BETWEEN_SCOPES,
            of_run: None,
            counted: ThreadUsage::default(),
            waited: Duration::ZERO,
            host_calls: 0,
            most_host_calls: limits.host_calls,
            outside: None,
        }
    }

    /// Ends the call at its next operation at the latest, for the first reason that there is.
    fn end_for(&mut self, why: TerminationReason) -> TerminationReason {
        *self.over.get_or_insert(why)
    }

    /// Whether the captured variables hold more than they may. Each use of one may be followed by a change, so it is looked
    /// again and again, in a fifth of the script's time or so.
    fn holds_too_much(&mut self) -> bool {
        let now = Instant::now();
        if now < self.weighed_next {
            return false;
        }
        let mut bytes = 0;
        for (cell, locked_until) in &mut self.cells {
            if now < *locked_until {
                continue;
            }
            match cell.is_locked() {
                // The script is changing it, or calls a function of it. To find that out takes a while.
                true => *locked_until = now + SKIPPED_IF_LOCKED,
                false => bytes += weigh_own(cell, MAX_VALUE_DEPTH),
            }
        }
        let took = now.elapsed();
        self.weighed_next =
            now + took + (4 * took).clamp(MIN_TIME_BETWEEN_WEIGHING, MAX_TIME_BETWEEN_WEIGHING);
        bytes > self.most_captured_bytes
    }

    /// Counts the time of a thread of a run. Says whether all threads together have had theirs.
    fn count_cpu(&mut self, now: Instant) -> bool {
        let Some(run) = &self.of_run else { return false };
        let own = now.duration_since(self.began).saturating_sub(self.waited);
        let own = u64::try_from(own.as_micros()).unwrap_or(u64::MAX);
        let more = own.saturating_sub(self.counted.cpu);
        self.counted.cpu += more;
        let all = run.cpu.fetch_add(more, Ordering::Relaxed) + more;
        Duration::from_micros(all) > self.cpu
    }

    /// Counts what the variables of a function hold that is so deep within others. Gives what all hold.
    fn count_held(&mut self, level: usize, bytes: usize) -> usize {
        self.frames.resize(level, 0);
        self.frames.push(bytes);
        let own = self.frames.iter().sum();
        let Some(run) = &self.of_run else { return own };
        let before = std::mem::replace(&mut self.counted.held, own);
        // What is taken away was added before.
        let all = run.held.fetch_add(own.wrapping_sub(before), Ordering::Relaxed);
        all.wrapping_add(own.wrapping_sub(before))
    }

    /// What it holds is gone.
    fn forget_held(&mut self) {
        if let Some(run) = &self.of_run {
            run.held.fetch_sub(std::mem::take(&mut self.counted.held), Ordering::Relaxed);
            let allocated = std::mem::take(&mut self.counted.allocated);
            run.allocated.fetch_sub(allocated, Ordering::Relaxed);
        }
    }

    /// Counts what the thread has allocated since this began, also for what is in no variable. Says whether it is too much, with
    /// what the other threads of a run have. Collections have room for more than they hold, so it may be twice as much.
    fn has_allocated_too_much(&mut self) -> bool {
        let own = held_by_thread() - self.held_before;
        let all = match &self.of_run {
            None => own,
            Some(run) => {
                let more = own - std::mem::replace(&mut self.counted.allocated, own);
                run.allocated.fetch_add(more, Ordering::Relaxed) + more
            }
        };
        let most = i64::try_from(self.most_captured_bytes).unwrap_or(i64::MAX);
        all > most.saturating_mul(2)
    }

    /// Empties the captured variables. A function that is in a variable which it has captured would never be freed.
    fn forget_captured(&mut self) {
        let of_host = self.shared_with_host.take().map(|(cell, _)| cell);
        let captured = std::mem::take(&mut self.cells).into_iter().map(|(cell, _)| cell);
        for mut cell in captured.chain(of_host) {
            let held = cell.write_lock::<Dynamic>().map(|mut held| std::mem::take(&mut *held));
            // Nothing is locked any more when it is dropped.
            drop(held);
        }
    }

    /// Ends a slice for what only a thread for scripts can do. Says whether there was one.
    fn leave_slice(&mut self) -> bool {
        if let Some(slice) = &mut self.slice {
            slice.is_left = true;
        }
        self.slice.is_some()
    }

    /// Counts a call of the host.
    fn count_host_call(&mut self) -> Result<(), Box<EvalAltResult>> {
        if self.leave_slice() {
            return Err(end(TerminationReason::NeedsThread));
        }
        self.host_calls += 1;
        match self.host_calls > self.most_host_calls {
            true => Err(end(TerminationReason::TooManyHostCalls(self.most_host_calls))),
            false => Ok(()),
        }
    }
}

/// The call that this thread was running before: a branch of a run goes on within another part of it, and a tool that a run
/// calls may be a script itself. It goes on where this is dropped.
struct RestoreGuard(Option<ThreadCall>);

impl Drop for RestoreGuard {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

fn begin(running: ThreadCall) -> RestoreGuard {
    RestoreGuard(RUNNING.replace(Some(running)))
}

/// Runs a part of a script within its time. What its functions have captured is emptied when it ends, so that what it gives
/// shares nothing with them.
pub(super) fn within<R>(
    limits: &Limits,
    given_up: Arc<AtomicBool>,
    outside: Option<HostAccess>,
    script: impl FnOnce() -> R,
) -> (R, CallUsage) {
    let began = Instant::now();
    within_running(ThreadCall { given_up, outside, ..ThreadCall::new(limits, began) }, script)
}

/// The same for a thread of a run: the time of all threads together is bounded, and so is what their variables hold.
pub(super) fn within_run<R>(
    limits: &Limits,
    given_up: Arc<AtomicBool>,
    of_run: &Arc<ThreadTotals>,
    script: impl FnOnce() -> R,
) -> R {
    let of_run = Some(of_run.clone());
    // Operations are counted for all threads together.
    let most_operations = u64::MAX;
    let running = ThreadCall::new(limits, Instant::now());
    within_running(ThreadCall { given_up, of_run, most_operations, ..running }, script).0
}

fn within_running<R>(running: ThreadCall, script: impl FnOnce() -> R) -> (R, CallUsage) {
    let began = running.began;
    let _outer = begin(running);
    let result = script();
    let (mut waited, mut host_calls) = (Duration::ZERO, 0);
    if let Some(mut running) = RUNNING.take() {
        running.forget_captured();
        running.forget_held();
        running.count_cpu(Instant::now());
        (waited, host_calls) = (running.waited, running.host_calls);
    }
    (result, CallUsage { cpu: began.elapsed().saturating_sub(waited), host_calls })
}

/// Runs a part of a script within a slice, on whatever thread this is. Gives nothing where the slice is not enough: then the
/// part has done nothing, and can be run again.
pub(super) fn within_slice<R>(
    limits: &Limits,
    slice: InlineSlice,
    script: impl FnOnce() -> R,
) -> Option<(R, CallUsage)> {
    let began = Instant::now();
    let _outer = begin(ThreadCall { slice: Some(slice), ..ThreadCall::new(limits, began) });
    let result = script();
    let mut running = RUNNING.take();
    if let Some(running) = &mut running {
        running.forget_captured();
    }
    let is_left = running.and_then(|running| running.slice).is_none_or(|s| s.is_left);
    // What a slice ended with is no result, even where the script went on in spite of it.
    (!is_left).then(|| (result, CallUsage { cpu: began.elapsed(), host_calls: 0 }))
}

/// How often, in operations, a script is asked for its time and whether anybody still waits for it.
const CHECK_EVERY: u64 = 64;

/// Counts one more operation. Says whether the call is to end now.
///
/// The engine's own number is no help: where a function of its own calls one of the script, that one begins with the number
/// of its caller, which does not learn how many it took.
pub(super) fn ended() -> Option<TerminationReason> {
    RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut()?;
        running.operations += 1;
        let operations = running.operations;
        if running.over.is_some() {
            return running.over;
        }
        if let Some(slice) = &mut running.slice {
            return slice.is_over(operations).then_some(TerminationReason::NeedsThread);
        }
        if operations > running.most_operations {
            return Some(running.end_for(TerminationReason::OutOfTime));
        }
        // Also at the first one: a run may have more branches than a branch has operations.
        if operations % CHECK_EVERY != 1 {
            return None;
        }
        if running.given_up.load(Ordering::Relaxed) {
            return Some(running.end_for(TerminationReason::GivenUp));
        }
        if running.has_allocated_too_much() {
            let most = running.most_captured_bytes;
            return Some(running.end_for(TerminationReason::TooMuchMemory(most)));
        }
        let now = Instant::now();
        let is_out_of_time = running.count_cpu(now) || now >= running.until;
        is_out_of_time.then(|| running.end_for(TerminationReason::OutOfTime))
    })
}

/// Counts the use of a variable. Now and then, in half of the script's time at most, it looks how much all variables hold: the
/// engine bounds each value where a function changes it, and not where something is assigned to a part of it.
pub(super) fn count_use(
    context: &EvalContext<'_, '_, '_, '_, '_, '_>,
) -> Result<(), Box<EvalAltResult>> {
    let uses = VARIABLE_USES.get().wrapping_add(1);
    VARIABLE_USES.set(uses);
    if !uses.is_multiple_of(WEIGH_SCOPE_EVERY) {
        return Ok(());
    }
    let too_much = RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut()?;
        let began = Instant::now();
        if began < running.frames_weighed_next {
            return None;
        }
        let mut seen = HashSet::new();
        let values = context.scope().iter_raw().map(|(_, _, value)| value);
        let bytes = values.map(|value| weigh_unshared(value, &mut seen, MAX_VALUE_DEPTH)).sum();
        let all = running.count_held(context.call_level(), bytes);
        let took = began.elapsed();
        running.frames_weighed_next =
            began + took + took.clamp(MIN_TIME_BETWEEN_SCOPES, MAX_TIME_BETWEEN_SCOPES);
        let most = running.most_captured_bytes;
        (all > most).then(|| running.end_for(TerminationReason::TooMuchMemory(most)))
    });
    too_much.map_or(Ok(()), |why| Err(end(why)))
}

/// Counts the use of a captured variable, and the bytes that it holds and that were not seen before.
pub(super) fn count_captured(variable: &Dynamic) -> Result<(), Box<EvalAltResult>> {
    let too_much = RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut()?;
        running.captured += 1;
        if running.captured > MAX_CAPTURED_VALUES {
            return Some(running.end_for(TerminationReason::TooManyCaptures));
        }
        let address = cell_address(variable);
        let of_host = running.shared_with_host.as_ref().map(|(_, address)| *address);
        if address.is_some() && address == of_host {
            return None;
        }
        if address.is_some_and(|address| running.cell_addresses.insert(address)) {
            running.cells.push((variable.clone(), running.began));
        }
        let is_plain = variable.is_string() || variable.is_int() || variable.is_bool();
        running.captured_bytes += match is_plain {
            true => 0,
            false => weigh(variable, &mut running.seen, MAX_VALUE_DEPTH),
        };
        let most = running.most_captured_bytes;
        let is_too_much = running.captured_bytes > most
            || running.captured.is_multiple_of(WEIGH_EVERY) && running.holds_too_much();
        is_too_much.then(|| running.end_for(TerminationReason::TooMuchMemory(most)))
    });
    too_much.map_or(Ok(()), |why| Err(end(why)))
}

/// Keeps a map that is shared with the host from being taken for one that a function has captured.
pub(super) fn mark_not_captured(shared: &Dynamic) {
    RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return };
        let address = cell_address(shared);
        running.shared_with_host = address.map(|address| (shared.clone(), address));
    });
}

/// The address of what variables share.
fn cell_address(shared: &Dynamic) -> Option<usize> {
    shared.read_lock::<Dynamic>().map(|held| ptr::from_ref(&*held).addr())
}

/// Ends the call at its next operation: a function of the engine's own that cannot fail would write out a value that is too
/// large.
pub(super) fn end_for_value_size() {
    RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return };
        // What is too large for a slice may not be for a thread of its own.
        if !running.leave_slice() {
            running.end_for(TerminationReason::ValueTooLarge);
        }
    });
}

/// What a script came to, where nothing has ended it: its last function may have kept the reason for itself.
pub(super) fn unless_ended<T>(result: ScriptResult<T>) -> ScriptResult<T> {
    let why = RUNNING.with_borrow(|running| running.as_ref().and_then(|running| running.over));
    match (result, why) {
        (Ok(_), Some(why)) => Err(end(why)),
        (result, _) => result,
    }
}

fn end(why: TerminationReason) -> Box<EvalAltResult> {
    EvalAltResult::ErrorTerminated(Dynamic::from(why), Position::NONE).into()
}

/// Has the host keep something that the script says, and that nobody answers, for the client that the call is made for. It
/// counts as no call of the host.
pub(super) fn say(what: impl FnOnce(Option<&CallerClient>)) {
    let client = RUNNING.with_borrow_mut(|running| {
        let Some(running) = running else { return Some(None) };
        let client = |host: &HostAccess| host.caller.client.clone();
        (!running.leave_slice()).then(|| running.outside.as_ref().and_then(client))
    });
    // In a slice it is said when the script runs again.
    if let Some(client) = client {
        what(client.as_ref());
    }
}

/// Has the host do something at once. It counts as a call of the host.
pub(super) fn with_host<T>(what: impl FnOnce(&HostAccess) -> T) -> Result<T, Box<EvalAltResult>> {
    RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut();
        let outside = "the host can be asked in calls, not while the script is loaded";
        let running = running.ok_or_else(|| mistake(outside))?;
        running.count_host_call()?;
        running.outside.as_ref().map(what).ok_or_else(|| mistake(outside))
    })
}

/// Has the host do something on its own threads, and waits for it on this one. The time is not the
/// script's, and its place among those that run is free meanwhile. What the host refuses the script
/// gets to see as an error that it can catch.
pub(super) fn ask<T: Send + 'static, F>(
    what: impl FnOnce(HostAccess) -> F,
) -> Result<T, Box<EvalAltResult>>
where
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    let outside = RUNNING.with_borrow_mut(|running| {
        let running = running.as_mut()?;
        if let Err(error) = running.count_host_call() {
            return Some(Err(error));
        }
        Some(Ok((running.outside.clone()?, running.given_up.clone())))
    });
    let Some(outside) = outside.transpose()? else {
        return Err(mistake("the host can be asked in calls, not while the script is loaded"));
    };
    let (access, given_up) = outside;
    let runtime = access.runtime.clone();
    let began = Instant::now();
    let (reply, answer) = sync_channel(1);
    let working = what(access);
    let place = threads::place();
    let working = async move {
        let answer = working.await;
        // The script goes on when there is a place for it again.
        let place = match place {
            Some(places) => places.acquire_owned().await.ok(),
            None => None,
        };
        let _ = reply.send((answer, place));
    };
    let task = runtime.spawn(working.instrument(Span::current()));
    let answer = loop {
        match answer.recv_timeout(CHECK_INTERVAL) {
            Ok((answer, place)) => {
                threads::take_place(place);
                break answer;
            }
            Err(RecvTimeoutError::Timeout) if given_up.load(Ordering::Relaxed) => {
                task.abort();
                return Err(end(TerminationReason::GivenUp));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                break Err(Error::failed("the host is ending"));
            }
        }
    };
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            let waited = began.elapsed();
            running.waited += waited;
            running.until += waited;
        }
    });
    answer.map_err(|error| error.to_string().into())
}

/// Waits for something on this thread. The time is not the script's, and its place among those that run is free meanwhile.
pub(super) fn waiting<T>(runtime: &Handle, wait: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let place = threads::place();
    let result = wait();
    // The script goes on when there is a place for it again.
    threads::take_place(place.and_then(|places| threads::wait_for_place(&places, runtime)));
    RUNNING.with_borrow_mut(|running| {
        if let Some(running) = running {
            let waited = began.elapsed();
            running.waited += waited;
            running.until += waited;
        }
    });
    result
}

/// How long a thread looks for the end of what it waits for before it sleeps. Most calls take less; to sleep and to be woken
/// takes several times as long.
const MAX_SPIN: Duration = Duration::from_micros(20);

/// Wakes a thread, whether it sleeps or not.
struct ThreadWaker {
    thread: Thread,
    is_woken: AtomicBool,
}

impl Wake for ThreadWaker {
    fn wake(self: Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Waits for a future on this thread, which helps with the tasks that it waits for.
pub(super) fn block_on<T>(runtime: &Handle, future: impl Future<Output = T>) -> T {
    waiting(runtime, || {
        let _entered = runtime.enter();
        let mut future = pin!(future);
        let woken =
            Arc::new(ThreadWaker { thread: thread::current(), is_woken: AtomicBool::new(false) });
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        loop {
            let polled = while_helping(|| future.as_mut().poll(&mut context));
            if let Poll::Ready(result) = polled {
                return result;
            }
            let until = Instant::now() + MAX_SPIN;
            while !woken.is_woken.swap(false, Ordering::Acquire) {
                match Instant::now() < until {
                    true => std::hint::spin_loop(),
                    // It returns at once where the thread was woken meanwhile.
                    false => thread::park(),
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::engine::engine;
    use super::super::tests::setting_within;
    use super::*;

    /// Whether a script ends well that may take so many operations, and how many it took.
    fn run(script: &str, most_operations: u64) -> (bool, u64) {
        let setting = setting_within(Duration::from_secs(60));
        let engine = engine(&setting, &Arc::default(), &Arc::default());
        let running = ThreadCall::new(&setting.limits, Instant::now());
        let work = || {
            let ends_well = engine.run(script).is_ok();
            let operations =
                |running: &Option<ThreadCall>| running.as_ref().map(|of| of.operations);
            (ends_well, RUNNING.with_borrow(operations).unwrap_or_default())
        };
        within_running(ThreadCall { most_operations, ..running }, work).0
    }

    #[test]
    fn operations_count_once_whatever_calls_a_function() {
        let loops = "for i in 0..10000 {}";
        let (_, alone) = run(loops, u64::MAX);
        for call in [
            "[1, 2, 3].map(|n| n);",
            "[1, 2, 3].filter(|n| n > 1);",
            "[3, 1, 2].sort(|a, b| a - b);",
            "let f = |n| n; f.call(1);",
        ] {
            let (ends_well, operations) = run(&format!("{loops} {call}"), u64::MAX);
            assert!(ends_well, "{call}");
            assert!((alone + 1..alone + 200).contains(&operations), "{call}: {operations}");
        }
    }

    #[test]
    fn calls_of_short_functions_are_no_way_around_the_limit_of_operations() {
        let script = "let l = []; l.pad(1000, 0); l.map(|n| n);";
        assert!(run(script, 100_000).0);
        assert!(!run(script, 1_000).0);
    }

    #[test]
    fn a_call_whose_end_a_function_keeps_for_itself_ends_all_the_same() {
        let why = Some(TerminationReason::TooMuchMemory(1));
        let running = ThreadCall::new(&Limits::default(), Instant::now());
        within_running(ThreadCall { over: why, ..running }, || {
            for _ in 0..2 {
                assert_eq!(ended(), why);
            }
        });
    }
}
