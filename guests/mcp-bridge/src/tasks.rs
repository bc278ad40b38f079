//! What drives the futures of the bridge to a child: the tasks that its exports begin.
//!
//! It stands in place of the executor that comes with `wit-bindgen`, which costs a bridged call as
//! much as all the rest of the guest: a task makes a stream and a set of waitables each time it first
//! waits, only so that other tasks can wake it, and gives way once more after every point of waiting.
//! Here tasks lend these to each other, as [`Bell`]s, and wait at once. What reads from the child runs
//! in the turns of a call that waits for an answer, so that a lone call is not woken twice for it;
//! see [`keep`].
//!
//! Imported functions find their task by the C ABI of `wit-bindgen`'s `cabi.rs`: `wasip3_task_set`
//! and the structure that it is given.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::mem;
use std::pin::Pin;
use std::ptr::null_mut;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use wit_bindgen::rt::async_support::{StreamOps, UnitStreamOps};

type Future = Pin<Box<dyn std::future::Future<Output = ()>>>;

thread_local! {
    /// What was spawned by the task that has its turn.
    static SPAWNED: RefCell<Vec<Future>> = RefCell::default();
    /// The tasks that have begun and not exited, the oldest first.
    static TASKS: RefCell<VecDeque<Arc<Task>>> = RefCell::default();
    static KEPT: RefCell<Option<Kept>> = RefCell::default();
    /// The bells that no task needs now.
    static BELLS: RefCell<Vec<Bell>> = RefCell::default();
}

/// Runs a future as part of the task that has its turn, also after its export has answered.
pub(crate) fn spawn(future: impl std::future::Future<Output = ()> + 'static) {
    SPAWNED.with_borrow_mut(|spawned| spawned.push(Box::pin(future)));
}

/// Runs a future for as long as the instance lives. It belongs to no task: one that waits, and does
/// not exit before another can, waits for it as well, and runs it in its turns. There is one such
/// future.
pub(crate) fn keep(future: impl std::future::Future<Output = ()> + 'static) {
    let task = Arc::<Task>::default();
    let waker = task.clone().into();
    let kept = Kept { future: Some(Box::pin(future)), task, waker, holder: None };
    let former = KEPT.replace(Some(kept));
    assert!(former.is_none(), "one future is kept");
    Kept::poll();
}

/// The runtime that the generated bindings are made for.
pub(crate) mod runtime {
    pub(crate) use wit_bindgen::rt::*;

    pub(crate) mod async_support {
        pub(crate) use crate::tasks::{callback, start_task};
        pub(crate) use wit_bindgen::rt::async_support::*;
    }
}

/// A set of waitables, and in it a stream whose one use is that writing to it wakes who waits.
struct Bell {
    set: u32,
    reader: u32,
    writer: u32,
    /// There is a read, which may have been answered.
    armed: bool,
    /// It was rung, and nobody has heard it yet.
    rung: bool,
}

/// What reading from a stream says when it has to wait.
const BLOCKED: u32 = u32::MAX;

impl Bell {
    fn take() -> Self {
        if let Some(bell) = BELLS.with_borrow_mut(Vec::pop) {
            return bell;
        }
        let ends = UnitStreamOps.new();
        // The lower half is the reader.
        let (reader, writer) = (ends as u32, (ends >> 32) as u32);
        // SAFETY: these take handles and no memory.
        let set = unsafe {
            let set = intrinsics::waitable_set_new();
            intrinsics::waitable_join(reader, set);
            set
        };
        Self { set, reader, writer, armed: false, rung: false }
    }

    fn arm(&mut self) {
        if !mem::replace(&mut self.armed, true) {
            // SAFETY: a unit has no bytes that could be read to anywhere.
            let code = unsafe { UnitStreamOps.start_read(self.reader, null_mut(), 1) };
            assert_eq!(code, BLOCKED, "nobody writes to a bell that nobody listens to");
        }
    }

    fn ring(&mut self) {
        if self.armed && !mem::replace(&mut self.rung, true) {
            // SAFETY: a unit has no bytes that could be written.
            unsafe { UnitStreamOps.start_write(self.writer, null_mut(), 1) };
        }
    }

    /// The ringing was heard.
    fn heard(&mut self) {
        self.armed = false;
        self.rung = false;
    }
}

/// What a task shares with its wakers, with the imported functions that it calls, and with tasks
/// that leave to it what they waited for.
#[derive(Default)]
struct Task {
    woken: Cell<bool>,
    /// Whoever wakes it has to ring for it.
    asleep: Cell<bool>,
    /// It has nothing left to do of its own.
    idle: Cell<bool>,
    bell: RefCell<Option<Bell>>,
    waitables: RefCell<Vec<Waitable>>,
}

/// What a task waits for, and whom to tell when it comes to pass.
struct Waitable {
    handle: u32,
    callback: Callback,
    argument: *mut c_void,
    /// The set that it is in. Nought is none.
    set: u32,
}

type Callback = unsafe extern "C" fn(*mut c_void, u32);

// SAFETY: a component has one thread.
unsafe impl Send for Task {}
// SAFETY: as above.
unsafe impl Sync for Task {}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.woken.replace(true)
            && self.asleep.get()
            && let Some(bell) = &mut *self.bell.borrow_mut()
        {
            bell.ring();
        }
    }
}

impl Task {
    fn with_bell<R>(&self, act: impl FnOnce(&mut Bell) -> R) -> R {
        act(self.bell.borrow_mut().get_or_insert_with(Bell::take))
    }

    /// Tells whoever waits for it what came to pass. Returns whether somebody did.
    fn deliver(&self, event: u32, waitable: u32, code: u32) -> bool {
        if let Some(bell) = &mut *self.bell.borrow_mut()
            && bell.reader == waitable
        {
            bell.heard();
            return true;
        }
        // A call that is over is dropped next, and leaves the set by itself.
        let leave = event != SUBTASK || code < RETURNED;
        let Some(Waitable { callback, argument, .. }) = self.forget(waitable, leave) else {
            return false;
        };
        // SAFETY: who registered it vouches for both until it is told or unregistered.
        unsafe { callback(argument, code) };
        true
    }

    /// Waits for something no longer.
    fn forget(&self, waitable: u32, leave: bool) -> Option<Waitable> {
        let mut waitables = self.waitables.borrow_mut();
        let at = waitables.iter().position(|known| known.handle == waitable)?;
        let forgotten = waitables.swap_remove(at);
        if leave && forgotten.set != 0 {
            // SAFETY: the handle belongs to who registered it, and is not dropped before.
            unsafe { intrinsics::waitable_join(waitable, 0) };
        }
        Some(forgotten)
    }

    /// Has all that it waits for in this set.
    fn wait_in(&self, set: u32) {
        for waitable in &mut *self.waitables.borrow_mut() {
            if mem::replace(&mut waitable.set, set) != set {
                // SAFETY: both handles are the component's.
                unsafe { intrinsics::waitable_join(waitable.handle, set) };
            }
        }
    }
}

/// The future that belongs to no task.
struct Kept {
    /// It is not here while it is polled, and when it is over.
    future: Option<Future>,
    /// What it waits for by itself. It has no bell.
    task: Arc<Task>,
    waker: Waker,
    /// The task that waits for it as well.
    holder: Option<Arc<Task>>,
}

impl Kept {
    fn with<R>(act: impl FnOnce(&mut Self) -> R) -> Option<R> {
        KEPT.with_borrow_mut(|kept| kept.as_mut().map(act))
    }

    fn is_woken() -> bool {
        Self::with(|kept| kept.task.woken.get()).unwrap_or_default()
    }

    /// Polls it. Imported functions find its task meanwhile, and not the one that has its turn.
    fn poll() {
        let taken = Self::with(|kept| {
            kept.task.woken.set(false);
            Some((kept.future.take()?, kept.task.clone(), kept.waker.clone()))
        });
        let Some((mut future, task, waker)) = taken.flatten() else { return };
        let polled = abi::within(&task, || future.as_mut().poll(&mut Context::from_waker(&waker)));
        Self::with(|kept| kept.future = polled.is_pending().then_some(future));
    }

    fn deliver(event: u32, waitable: u32, code: u32) {
        if let Some(task) = Self::with(|kept| kept.task.clone()) {
            task.deliver(event, waitable, code);
        }
    }

    /// Leaves it to a task that goes to sleep, where nobody has it who has something of its own to
    /// wait for.
    fn offer(task: &Arc<Task>) {
        let Some(holder) = Self::with(|kept| kept.holder.clone()) else { return };
        let holder = match holder {
            Some(holder) if Arc::ptr_eq(&holder, task) => holder,
            Some(holder) if !holder.idle.get() || task.idle.get() => holder,
            Some(holder) if Self::has_come(&holder) => holder,
            Some(_) | None => task.clone(),
        };
        Self::with(|kept| {
            kept.task.wait_in(holder.with_bell(|bell| bell.set));
            kept.holder = Some(holder);
        });
    }

    /// Whether what it waits for has come to pass, while its idle holder sleeps. The holder is about to
    /// be told then: wasmtime has made up its mind, and takes it for an error of its own if there is
    /// nothing left to tell. So the bell takes the place of what is told here.
    fn has_come(holder: &Arc<Task>) -> bool {
        let mut payload = [0; 2];
        let set = holder.with_bell(|bell| bell.set);
        // SAFETY: the set is ours, and the payload has place for both numbers.
        let event = unsafe { intrinsics::waitable_set_poll(set, &mut payload) };
        let [waitable, code] = payload;
        if event == NONE {
            return false;
        }
        if !holder.deliver(event, waitable, code) {
            Self::deliver(event, waitable, code);
        }
        holder.with_bell(|bell| {
            bell.arm();
            bell.ring();
        });
        true
    }

    /// Whether a task that has nothing more to do has to stay for it.
    fn needs_all() -> bool {
        let needed = Self::with(|kept| kept.future.is_some()).unwrap_or_default();
        needed && TASKS.with_borrow(|tasks| tasks.len() == 1)
    }

    /// Leaves it to another task, as this one exits: to the youngest, which most likely has it longest.
    fn pass_on(from: &Arc<Task>) {
        Self::with(|kept| {
            kept.holder.take_if(|holder| Arc::ptr_eq(holder, from))?;
            let next = TASKS.with_borrow(|tasks| {
                let busy = tasks.iter().rfind(|task| !task.idle.get());
                busy.or(tasks.back()).cloned()
            })?;
            kept.task.wait_in(next.with_bell(|bell| bell.set));
            kept.holder = Some(next);
            Some(())
        });
    }
}

/// A task with what it runs.
struct Running {
    task: Arc<Task>,
    waker: Waker,
    /// What the export runs, and what was spawned by it.
    futures: Vec<Future>,
}

/// What becomes of a task that has had its turn, as the canonical ABI wants it said.
enum Next {
    Exit,
    Yield,
    Wait { set: u32 },
}

impl Next {
    fn encode(self) -> u32 {
        match self {
            Self::Exit => 0,
            Self::Yield => 1,
            Self::Wait { set } => 2 | set << 4,
        }
    }
}

/// The event that is none.
const NONE: u32 = 0;

/// The event that a call of an imported function has come further.
const SUBTASK: u32 = 1;

/// How far the call has come that has returned. What is more is over as well.
const RETURNED: u32 = 2;

/// The event that the task is cancelled.
const CANCEL: u32 = 6;

impl Running {
    fn turn(&mut self, event: u32, waitable: u32, code: u32) -> Next {
        self.task.asleep.set(false);
        match event {
            CANCEL => return Next::Exit,
            NONE => {}
            _ if self.task.deliver(event, waitable, code) => {}
            _ => Kept::deliver(event, waitable, code),
        }
        if Kept::is_woken() {
            Kept::poll();
        }
        self.poll();
        let over = self.futures.is_empty() && self.task.waitables.borrow().is_empty();
        if Kept::is_woken() || !over && self.task.woken.get() {
            return Next::Yield;
        }
        if over && !Kept::needs_all() {
            return Next::Exit;
        }
        self.task.idle.set(over);
        let set = self.task.with_bell(|bell| {
            bell.arm();
            bell.set
        });
        self.task.wait_in(set);
        Kept::offer(&self.task);
        if Kept::is_woken() {
            return Next::Yield;
        }
        self.task.asleep.set(true);
        Next::Wait { set }
    }

    fn poll(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        if self.task.woken.replace(false) {
            self.futures.retain_mut(|future| future.as_mut().poll(&mut context).is_pending());
        }
        loop {
            let spawned = SPAWNED.take();
            if spawned.is_empty() {
                break;
            }
            for mut future in spawned {
                if future.as_mut().poll(&mut context) == Poll::Pending {
                    self.futures.push(future);
                }
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.futures.clear();
        self.task.asleep.set(false);
        TASKS.with_borrow_mut(|tasks| {
            // The oldest is nearly always the first to exit.
            let at = tasks.iter().position(|task| Arc::ptr_eq(task, &self.task));
            at.and_then(|at| tasks.remove(at))
        });
        Kept::pass_on(&self.task);
        // It stays as it is: armed, if it was, and with what was not heard yet.
        BELLS.with_borrow_mut(|bells| bells.extend(self.task.bell.take()));
    }
}

/// Begins the task of an export.
pub(crate) fn start_task(future: impl std::future::Future<Output = ()> + 'static) -> i32 {
    let task = Arc::<Task>::default();
    task.woken.set(true);
    TASKS.with_borrow_mut(|tasks| tasks.push_back(task.clone()));
    let waker = task.clone().into();
    let running = Box::new(Running { task, waker, futures: vec![Box::pin(future)] });
    // SAFETY: the place in the context is ours, and holds nothing yet.
    unsafe {
        intrinsics::context_set(Box::into_raw(running).cast());
        callback(NONE, 0, 0) as i32
    }
}

/// Gives a task its turn.
///
/// # Safety
///
/// The host calls it, for a task that [`start_task`] began and that has not exited.
pub(crate) unsafe fn callback(event: u32, waitable: u32, code: u32) -> u32 {
    // SAFETY: `start_task` has put it there, and it is freed only where the task exits.
    let running = unsafe { intrinsics::context_get() }.cast::<Running>();
    // SAFETY: as above.
    let task = unsafe { (*running).task.clone() };
    let next = abi::within(&task, || {
        // SAFETY: as above. Nobody else refers to it: it is given one turn at a time.
        let next = unsafe { (*running).turn(event, waitable, code) };
        if matches!(next, Next::Exit) {
            // SAFETY: it came from a `Box`, and is given no more turns.
            drop(unsafe { Box::from_raw(running) });
        }
        next
    });
    next.encode()
}

/// What imported functions know of the task that calls them: version 2 of the structures of
/// `cabi.rs`.
mod abi {
    use super::{Arc, Callback, Waitable, c_void, intrinsics, null_mut};

    #[repr(C)]
    pub(super) struct Task {
        version: u32,
        task: *mut c_void,
        register: Register,
        unregister: Unregister,
        operations: &'static Operations,
    }

    type Register = unsafe extern "C" fn(*mut c_void, u32, Callback, *mut c_void) -> *mut c_void;
    type Unregister = unsafe extern "C" fn(*mut c_void, u32) -> *mut c_void;

    #[repr(C)]
    struct Operations {
        register: Register,
        unregister: Unregister,
        clone: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
        drop: unsafe extern "C" fn(*mut c_void),
    }

    static OPERATIONS: Operations = Operations { register, unregister, clone, drop: release };

    /// Does something during which imported functions find this task.
    pub(super) fn within<R>(task: &Arc<super::Task>, act: impl FnOnce() -> R) -> R {
        let task = Arc::as_ptr(task).cast_mut().cast();
        let mut found = Task { version: 2, task, register, unregister, operations: &OPERATIONS };
        // SAFETY: it is there, and the task with it, until another takes its place.
        let before = unsafe { intrinsics::task_set(&raw mut found) };
        let done = act();
        // SAFETY: it was found by who called us, and is found by them again.
        unsafe { intrinsics::task_set(before) };
        done
    }

    unsafe extern "C" fn register(
        task: *mut c_void,
        handle: u32,
        callback: Callback,
        argument: *mut c_void,
    ) -> *mut c_void {
        // SAFETY: imported functions give back what they were lent or have cloned.
        let task = unsafe { &*task.cast::<super::Task>() };
        let mut waitables = task.waitables.borrow_mut();
        if let Some(known) = waitables.iter_mut().find(|known| known.handle == handle) {
            known.callback = callback;
            return std::mem::replace(&mut known.argument, argument);
        }
        waitables.push(Waitable { handle, callback, argument, set: 0 });
        null_mut()
    }

    unsafe extern "C" fn unregister(task: *mut c_void, handle: u32) -> *mut c_void {
        // SAFETY: as above.
        let task = unsafe { &*task.cast::<super::Task>() };
        task.forget(handle, true).map_or(null_mut(), |waitable| waitable.argument)
    }

    unsafe extern "C" fn clone(task: *mut c_void) -> *mut c_void {
        // SAFETY: as above; it came from an `Arc`, which lives.
        unsafe { Arc::increment_strong_count(task.cast::<super::Task>()) };
        task
    }

    unsafe extern "C" fn release(task: *mut c_void) {
        // SAFETY: it was cloned.
        unsafe { Arc::decrement_strong_count(task.cast::<super::Task>()) };
    }
}

/// The built-in functions of the canonical ABI that it takes, and the one of the C ABI.
#[cfg(target_arch = "wasm32")]
mod intrinsics {
    use super::{abi, c_void};

    #[link(wasm_import_module = "$root")]
    unsafe extern "C" {
        #[link_name = "[context-get-0]"]
        pub(super) fn context_get() -> *mut c_void;
        #[link_name = "[context-set-0]"]
        pub(super) fn context_set(value: *mut c_void);
        #[link_name = "[waitable-set-new]"]
        pub(super) fn waitable_set_new() -> u32;
        #[link_name = "[waitable-set-poll]"]
        pub(super) fn waitable_set_poll(set: u32, payload: *mut [u32; 2]) -> u32;
        #[link_name = "[waitable-join]"]
        pub(super) fn waitable_join(waitable: u32, set: u32);
    }

    unsafe extern "C" {
        #[link_name = "wasip3_task_set"]
        pub(super) fn task_set(task: *mut abi::Task) -> *mut abi::Task;
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod intrinsics {
    use super::{abi, c_void};

    const NOWHERE: &str = "only a component has tasks";

    pub(super) unsafe fn context_get() -> *mut c_void {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn context_set(_: *mut c_void) {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn waitable_set_new() -> u32 {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn waitable_set_poll(_: u32, _: *mut [u32; 2]) -> u32 {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn waitable_join(_: u32, _: u32) {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn task_set(_: *mut abi::Task) -> *mut abi::Task {
        unreachable!("{NOWHERE}")
    }
}
