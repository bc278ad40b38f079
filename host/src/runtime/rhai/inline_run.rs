//! Slices: short runs of a script on its caller's thread.
//!
//! Most hooks compute for microseconds, and waking another thread for them takes longer. So a call is first run where it
//! is, within a slice. A script that does more than computing, or that computes for longer, leaves the slice before it has done
//! anything that could be noticed. It then begins again on a thread for scripts ([`super::threads`]).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The most operations of a slice. A value is nested at most as deep as it has operations, and [`RESERVED_STACK_BYTES`] are
/// enough to drop, copy or write the deepest one.
const MAX_OPERATIONS: u64 = 1_000;

/// The longest slice. It bounds how long the other tasks of a thread wait. Tests do not depend on what else a machine does.
const MAX_DURATION: Duration =
    if cfg!(test) { Duration::from_secs(60) } else { Duration::from_micros(200) };

/// How often, in operations, the time is looked at.
const CHECK_TIME_EVERY: u64 = 8;

/// The stack that a thread has to have left, in bytes, for a slice to begin. Threads of tokio have 2 MiB.
const MIN_STACK_BYTES: usize = 1 << 20;

/// The stack that is left free for what is no operation: dropping, copying and writing values.
const RESERVED_STACK_BYTES: usize = 768 << 10;

/// The longest arguments and contexts that are tried in a slice, in bytes of JSON.
pub(super) const MAX_INPUT_BYTES: usize = 64 << 10;

/// How many calls go to a thread for scripts at once after one that had left its slice.
const CALLS_WITHOUT_SLICE: u32 = 15;

/// The bounds of a slice that has begun.
pub(super) struct InlineSlice {
    until: Instant,
    /// Whether the script needs more than a slice.
    pub(super) is_left: bool,
}

impl InlineSlice {
    /// Begins a slice, where the thread has the stack for it.
    pub(super) fn begin(now: Instant) -> Option<Self> {
        let left = stacker::remaining_stack()?;
        (left >= MIN_STACK_BYTES).then(|| Self { until: now + MAX_DURATION, is_left: false })
    }

    /// Whether the slice ends after so many operations.
    pub(super) fn is_over(&mut self, operations: u64) -> bool {
        let is_out_of_time =
            || operations.is_multiple_of(CHECK_TIME_EVERY) && Instant::now() >= self.until;
        let has_stack =
            || stacker::remaining_stack().is_some_and(|left| left >= RESERVED_STACK_BYTES);
        self.is_left =
            self.is_left || operations > MAX_OPERATIONS || !has_stack() || is_out_of_time();
        self.is_left
    }
}

/// How a function of a script has done in slices.
#[derive(Default)]
pub(super) struct SliceBackoff {
    /// How many calls are still not tried in a slice.
    without: AtomicU32,
}

impl SliceBackoff {
    /// Whether the next call is tried in a slice.
    pub(super) fn is_worth_trying(&self) -> bool {
        let counted = |calls: u32| calls.checked_sub(1);
        self.without.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted).is_err()
    }

    /// Notes that a slice was not enough.
    pub(super) fn left(&self) {
        self.without.store(CALLS_WITHOUT_SLICE, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::running_call::{self, within_slice};
    use super::super::tests::{compile_with, context, setting_within};
    use super::super::{RhaiPlugin, ScriptSetup};
    use super::*;
    use crate::call::client::{CallClient, LogMessage};
    use crate::call::{Caller, CurrentCall};
    use crate::capability::granted::{GrantedCapabilities, HostServices};
    use crate::capability::services::{ClientFeatures, Clock, Services};
    use crate::runtime::Plugin;
    use serde_json::{Value, json};
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex};
    use std::thread::{self, ThreadId};
    use std::time::SystemTime;
    use tenon_config::limits::Limits;
    use tenon_types::{LogLevel, ToolResult};

    /// A clock that notes which threads look at it.
    #[derive(Default, Clone)]
    struct ThreadRecordingClock(Arc<Mutex<Vec<ThreadId>>>);

    impl Clock for ThreadRecordingClock {
        fn now(&self) -> SystemTime {
            self.0.lock().unwrap().push(thread::current().id());
            SystemTime::UNIX_EPOCH
        }
    }

    /// A client that keeps what is logged.
    #[derive(Default)]
    struct RecordingClient(Mutex<Vec<String>>);

    impl ClientFeatures for RecordingClient {}

    impl CallClient for RecordingClient {
        fn wants_log(&self, _: LogLevel) -> bool {
            true
        }

        fn log(&self, message: LogMessage) {
            self.0.lock().unwrap().push(message.text);
        }
    }

    /// A tool that runs `body`, and the clock that it looks at.
    fn tool(body: &str) -> (RhaiPlugin, ThreadRecordingClock) {
        let clock = ThreadRecordingClock::default();
        let services = Services { clock: Arc::new(clock.clone()), ..Services::default() };
        let services = Arc::new(HostServices::new(services));
        let granted =
            Arc::new(GrantedCapabilities::new("test".into(), Default::default(), services));
        let setting = ScriptSetup { granted, ..setting_within(Duration::from_secs(5)) };
        let text = format!("tool(#{{ name: \"t\", description: \"d\" }}, |a| {{ {body} }});");
        (compile_with(setting, &text).expect("the script compiles"), clock)
    }

    async fn call(script: &RhaiPlugin, arguments: Value) -> ToolResult {
        script.call_tool("t", arguments.into(), context()).await.expect("an answer")
    }

    impl ThreadRecordingClock {
        /// Which of the threads that looked meanwhile were this one.
        fn take(&self) -> Vec<bool> {
            let seen = std::mem::take(&mut *self.0.lock().unwrap());
            seen.into_iter().map(|id| id == thread::current().id()).collect()
        }
    }

    #[tokio::test]
    async fn what_computes_shortly_runs_where_it_is_called() {
        let check = async |body: &str, arguments: Value, expected: &[bool]| {
            let (script, clock) = tool(body);
            call(&script, arguments).await;
            assert_eq!(clock.take(), expected, "{body}");
        };
        const HERE: bool = true;
        const ELSEWHERE: bool = false;
        check("now(); a.n", json!({ "n": 1 }), &[HERE]).await;
        check("now(); for i in 0..5_000 {}", json!({}), &[HERE, ELSEWHERE]).await;
        // Each call of a function counts.
        let calls = "now(); let l = []; l.pad(1_000, 0); l.map(|n| n + 1).len()";
        check(calls, json!({}), &[HERE, ELSEWHERE]).await;
        check("now(); log(\"x\");", json!({}), &[HERE, ELSEWHERE]).await;
        check("now();", json!({ "text": "x".repeat(MAX_INPUT_BYTES) }), &[ELSEWHERE]).await;
    }

    #[test]
    fn a_slice_ends_with_its_time_which_is_looked_at_now_and_then() {
        let mut slice = InlineSlice { until: Instant::now(), is_left: false };
        assert!(!slice.is_over(CHECK_TIME_EVERY + 1));
        assert!(slice.is_over(2 * CHECK_TIME_EVERY));
        assert!(slice.is_over(1), "it does not begin again");
    }

    #[tokio::test]
    async fn a_function_that_left_its_slice_is_not_tried_in_one_for_a_while() {
        let (script, clock) = tool("now(); if a.long { log(\"x\") }");
        call(&script, json!({ "long": true })).await;
        assert_eq!(clock.take(), [true, false]);
        for _ in 0..CALLS_WITHOUT_SLICE {
            call(&script, json!({ "long": false })).await;
            assert_eq!(clock.take(), [false]);
        }
        call(&script, json!({ "long": false })).await;
        assert_eq!(clock.take(), [true]);
    }

    #[tokio::test]
    async fn what_a_script_does_it_does_once() {
        // The engine ignores the errors of what compares items.
        let body = "let order = []; \
                    log(\"before\"); \
                    let items = [3, 1, 2]; \
                    items.sort(|a, b| { log(`${a} ${b}`); order.push(a); a - b }); \
                    try { call_tool(\"x\", #{}) } catch (e) { log(\"refused\") } \
                    print(\"after\"); \
                    items.to_string()";
        let (script, _) = tool(body);
        let client = Arc::new(RecordingClient::default());
        let caller = Caller { client: Some(client.clone().into()), ..Caller::default() };
        let current = CurrentCall::new(caller);
        let result = current.by(call(&script, json!({}))).await;
        assert_eq!(result.plain_text(), "[1, 2, 3]");
        let said = client.0.lock().unwrap().clone();
        let of = |text: &str| said.iter().filter(|line| *line == text).count();
        assert_eq!([of("before"), of("refused"), of("after")], [1, 1, 1], "{said:?}");
        assert_eq!(current.usage().host_calls, Some(1));
    }

    #[test]
    fn a_call_around_a_slice_goes_on_with_its_bounds() {
        on_a_thread_with(64 << 20, || {
            let limits = Limits::default();
            let given_up = Arc::<AtomicBool>::default();
            running_call::within(&limits, given_up.clone(), None, || {
                let slice = InlineSlice::begin(Instant::now()).expect("there is stack");
                assert!(within_slice(&limits, slice, || ()).is_some());
                // It is looked at now and then.
                let ended = || (0..64).find_map(|_| running_call::ended());
                assert_eq!(ended(), None);
                given_up.store(true, Ordering::SeqCst);
                assert_eq!(ended(), Some(running_call::TerminationReason::GivenUp));
            });
            assert_eq!(running_call::ended(), None);
        });
    }

    /// Runs something on a thread with so much stack.
    fn on_a_thread_with<R: Send>(stack: usize, run: impl FnOnce() -> R + Send) -> R {
        thread::scope(|scope| {
            let thread = thread::Builder::new().stack_size(stack).spawn_scoped(scope, run);
            thread.expect("a thread starts").join().expect("the thread ends")
        })
    }

    fn block_on<R>(future: impl Future<Output = R>) -> R {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
    }

    #[test]
    fn a_thread_with_little_stack_runs_no_slice() {
        let on_stack = |bytes: usize| {
            on_a_thread_with(bytes, || {
                let (script, clock) = tool("now();");
                block_on(call(&script, json!({})));
                clock.take()
            })
        };
        assert_eq!(on_stack(MIN_STACK_BYTES - 1), [false]);
        assert_eq!(on_stack(2 * MIN_STACK_BYTES), [true]);
    }

    #[test]
    fn the_deepest_value_of_a_slice_fits_the_stack_that_is_reserved() {
        let endless = |nest: &str, then: &str| {
            format!(
                "let v = 1; let n = 0; loop {{ v = {nest}; n += 1; if n % 16 == 0 {{ {then} }} }}"
            )
        };
        for (nest, then) in [
            ("[[[[v]]]]", ""),
            ("#{ v: #{ v: #{ v: v } } }", ""),
            ("[[[[v]]]]", "let w = v; w == v"),
            ("[[[[v]]]]", "v.to_string()"),
            ("#{ v: #{ v: #{ v: v } } }", "v.to_string()"),
        ] {
            // As little stack as a slice begins with, and all the time that its operations take.
            on_a_thread_with(MIN_STACK_BYTES + (32 << 10), || {
                let (plugin, _) = tool(&endless(nest, then));
                let script = &plugin.script;
                let slice = InlineSlice::begin(Instant::now()).expect("it begins");
                let slice =
                    InlineSlice { until: Instant::now() + Duration::from_secs(60), ..slice };
                let call = || script.call_tool("t", &json!({}).into());
                let ran = within_slice(&script.setting.limits, slice, call);
                assert!(ran.is_none(), "{nest} {then}: it is left after so many operations");
            });
        }
    }
}
