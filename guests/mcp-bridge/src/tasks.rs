//! What drives the futures of the bridge to a child: the tasks that its exports begin.
//!
//! It stands in place of the executor that comes with `wit-bindgen`, which costs a bridged call as
//! much as all the rest of the guest: a task makes a stream and a set of waitables each time it first
//! waits, only so that other tasks can wake it, and gives way once more after every point of waiting.
//! Here tasks lend these to each other, as [`Bell`]s, and wait at once.
//!
//! Imported functions find their task by the C ABI of `wit-bindgen`'s `cabi.rs`: `wasip3_task_set`
//! and the structure that it is given.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::mem;
use std::pin::Pin;
use std::ptr::null_mut;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use wit_bindgen::rt::async_support::{StreamOps, UnitStreamOps};

type Future = Pin<Box<dyn std::future::Future<Output = ()>>>;

thread_local! {
    /// What was spawned by the task that is being polled.
    static SPAWNED: RefCell<Vec<Future>> = RefCell::default();
    /// The bells that no task needs now.
    static BELLS: RefCell<Vec<Bell>> = RefCell::default();
}

/// Runs a future as part of the task that is being polled, also after its export has answered.
pub(crate) fn spawn(future: impl std::future::Future<Output = ()> + 'static) {
    SPAWNED.with_borrow_mut(|spawned| spawned.push(Box::pin(future)));
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
    /// Somebody listens: there is a read, which may have been answered.
    armed: bool,
    /// It was rung, and who listens has not heard it yet.
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

    /// Leaves it to the next task.
    fn put_back(mut self) {
        if self.armed {
            // SAFETY: the handle is ours. A read cannot be given up while it is in a set.
            unsafe {
                intrinsics::waitable_join(self.reader, 0);
                UnitStreamOps.cancel_read(self.reader);
                intrinsics::waitable_join(self.reader, self.set);
            }
            self.heard();
        }
        BELLS.with_borrow_mut(|bells| bells.push(self));
    }
}

/// What a task shares with its wakers and with the imported functions that it calls.
struct Task {
    state: Cell<State>,
    bell: RefCell<Option<Bell>>,
    /// What the task waits for, and whom to tell when it comes to pass.
    waitables: RefCell<Vec<Waitable>>,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    /// It is being polled.
    Polled,
    /// It was woken, or is over.
    Woken,
    /// Whoever wakes it has to ring for it.
    Asleep,
}

struct Waitable {
    handle: u32,
    callback: Callback,
    argument: *mut c_void,
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
        if self.state.replace(State::Woken) == State::Asleep
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

    /// Tells whoever waits for it what came to pass.
    fn deliver(&self, waitable: u32, code: u32) {
        if let Some(bell) = &mut *self.bell.borrow_mut()
            && bell.reader == waitable
        {
            return bell.heard();
        }
        if let Some(Waitable { callback, argument, .. }) = self.forget(waitable) {
            // SAFETY: who registered it vouches for both until it is told or unregistered.
            unsafe { callback(argument, code) };
        }
    }

    /// Waits for something no longer.
    fn forget(&self, waitable: u32) -> Option<Waitable> {
        let mut waitables = self.waitables.borrow_mut();
        let at = waitables.iter().position(|known| known.handle == waitable)?;
        // SAFETY: the handle belongs to who registered it, and is not dropped before.
        unsafe { intrinsics::waitable_join(waitable, 0) };
        Some(waitables.swap_remove(at))
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

/// The event that the task is cancelled.
const CANCEL: u32 = 6;

impl Running {
    fn turn(&mut self, event: u32, waitable: u32, code: u32) -> Next {
        match event {
            CANCEL => return Next::Exit,
            NONE => {}
            _ => {
                self.task.state.set(State::Woken);
                self.task.deliver(waitable, code);
            }
        }
        self.task.state.set(State::Polled);
        self.poll();
        if self.futures.is_empty() && self.task.waitables.borrow().is_empty() {
            return Next::Exit;
        }
        if self.task.state.get() == State::Woken {
            return Next::Yield;
        }
        self.task.state.set(State::Asleep);
        self.task.with_bell(|bell| {
            bell.arm();
            Next::Wait { set: bell.set }
        })
    }

    fn poll(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        self.futures.retain_mut(|future| future.as_mut().poll(&mut context).is_pending());
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
        self.task.state.set(State::Woken);
        if let Some(bell) = self.task.bell.take() {
            bell.put_back();
        }
    }
}

/// Begins the task of an export.
pub(crate) fn start_task(future: impl std::future::Future<Output = ()> + 'static) -> i32 {
    let task = Arc::new(Task {
        state: Cell::new(State::Polled),
        bell: RefCell::default(),
        waitables: RefCell::default(),
    });
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
    // SAFETY: `start_task` has put it there, and it is freed only where the task exits. Imported
    // functions find the task for as long as it has its turn.
    unsafe {
        let running = intrinsics::context_get().cast::<Running>();
        let task = (*running).task.clone();
        let mut found = abi::Task::of(&task);
        let before = intrinsics::task_set(&raw mut found);
        let next = (*running).turn(event, waitable, code);
        if matches!(next, Next::Exit) {
            drop(Box::from_raw(running));
        }
        intrinsics::task_set(before);
        next.encode()
    }
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

    impl Task {
        /// Lends a task, for as long as it lives.
        pub(super) fn of(task: &Arc<super::Task>) -> Self {
            let task = Arc::as_ptr(task).cast_mut().cast();
            Self { version: 2, task, register, unregister, operations: &OPERATIONS }
        }
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
        let set = task.with_bell(|bell| bell.set);
        // SAFETY: both handles are the component's.
        unsafe { intrinsics::waitable_join(handle, set) };
        waitables.push(Waitable { handle, callback, argument });
        null_mut()
    }

    unsafe extern "C" fn unregister(task: *mut c_void, handle: u32) -> *mut c_void {
        // SAFETY: as above.
        let task = unsafe { &*task.cast::<super::Task>() };
        task.forget(handle).map_or(null_mut(), |waitable| waitable.argument)
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

    pub(super) unsafe fn waitable_join(_: u32, _: u32) {
        unreachable!("{NOWHERE}")
    }

    pub(super) unsafe fn task_set(_: *mut abi::Task) -> *mut abi::Task {
        unreachable!("{NOWHERE}")
    }
}
