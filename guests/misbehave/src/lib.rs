//! A plugin that goes wrong in the way its caller asks for, for tests of the host. Each tool is one
//! way; a few go right, so that there is something to compare with.
//!
//! The setting `register` makes the registration go wrong: `"error"`, `"trap"`, `"spin"`, `"nonsense"` or
//! `"version"`.

#![cfg_attr(not(target_arch = "wasm32"), allow(dead_code))]

use std::cell::RefCell;
use std::future::{pending, poll_fn};
use std::hint::black_box;
use std::net::TcpStream;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

use tenon_sdk::__private::bindings;
use tenon_sdk::__private::types::{
    CallContext, Content, ContentBlock, Error, ToolAnnotations, ToolDefinition, ToolResult,
};
use tenon_sdk::provider::{
    Completion, CompletionRequest, CompletionSummary, Delta, ModelInfo, StopReason, TokenUsage,
};
use tenon_sdk::{config, log};

use bindings::base::tenon::plugin::notify;
use bindings::cancellation::exports::tenon::plugin::cancellation;
use bindings::evals::exports::tenon::plugin::evals::{self, EvalDefinition, Evaluation, Verdict};
use bindings::hooks::exports::tenon::plugin::hooks::{
    self, HookEvent, HookMode, HookOutcome, HookRegistration,
};
use bindings::lifecycle::exports::tenon::plugin::lifecycle::{self, Identity};
use bindings::provider_stream::exports::tenon::plugin::provider_stream;
use bindings::providers::exports::tenon::plugin::providers::{self, ProviderDefinition};
use bindings::tools::exports::tenon::plugin::tools;

struct Misbehave;

#[cfg(target_arch = "wasm32")]
mod exports {
    use super::{Misbehave, bindings};

    bindings::lifecycle::export_lifecycle!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::cancellation::export_cancellation!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::tools::export_tools!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::hooks::export_hooks!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::evals::export_evals!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::providers::export_providers!(Misbehave with_types_in bindings::wrapped_exports);
    bindings::provider_stream::export_provider_stream!(Misbehave with_types_in bindings::wrapped_exports);
}

/// The tools, and what each does.
const TOOLS: &[(&str, &str)] = &[
    ("echo", "Behaves: answers with its `text`"),
    ("fail", "Behaves: answers with a result that is an error, saying `text`"),
    ("meet", "Behaves: answers when it was called twice, which only a shared instance can"),
    ("hang", "Says that it has begun, and waits for ever without using the processor"),
    ("hang_politely", "Waits until it is cancelled"),
    ("spin", "Computes for ever"),
    ("spin_politely", "Computes for ever, giving others a turn"),
    ("hoard", "Takes all the memory it can get"),
    ("take_memory", "Takes so many MiB of memory as `text` says"),
    ("answer_with", "Answers with so many MiB as `text` says"),
    ("ask_host", "Asks the host for its configuration as often as `text` says"),
    ("recurse", "Calls itself for ever"),
    ("panic", "Panics"),
    ("trap", "Executes an instruction that traps"),
    ("exit", "Ends the process it believes to be"),
    ("flood_output", "Answers with more than anybody can take"),
    ("flood_log", "Logs without end"),
    ("flood_console", "Writes to its standard output without end"),
    ("flood_host", "Asks the host for its configuration without end"),
    ("nonsense", "Answers with structured content that is no JSON"),
    ("denied", "Answers with an error of the contract"),
    ("read_file", "Reads the file `text`"),
    ("environment", "Answers with its environment"),
    ("connect", "Connects to the address `text`"),
    ("connect_to", "Does so, and answers the kind of the error"),
    ("open_file", "Reads the file `text`, and answers what is in it or the kind of the error"),
    ("compute", "Counts to `text`"),
    ("wait", "Waits for `text` milliseconds"),
    ("take_turns", "Gives others a turn for `text` milliseconds"),
    ("go_down", "Calls itself `text` times, each within the one before"),
    ("log_lines", "Logs `text` times"),
    ("write_lines", "Writes to its standard output `text` times"),
    ("take_handles", "Holds so many objects of the host's as `text` says"),
    ("take_random", "Takes so many random bytes at once as `text` says"),
];

/// How the registration is to go wrong.
fn wrong() -> Result<Option<String>, Error> {
    config::get::<String>("register")
}

impl lifecycle::Guest for Misbehave {
    async fn start() -> Result<Identity, Error> {
        let version = match wrong()?.as_deref() {
            Some("error") => return Err(Error::failed("I would rather not")),
            Some("trap") => panic!("I cannot register"),
            Some("spin") => spin(),
            Some("version") => "the newest",
            _ => env!("CARGO_PKG_VERSION"),
        };
        Ok(Identity {
            name: "misbehave".into(),
            version: version.into(),
            description: env!("CARGO_PKG_DESCRIPTION").into(),
            extra: None,
        })
    }

    async fn stop() {}
}

impl cancellation::Guest for Misbehave {
    async fn cancel(call_id: String) {
        CANCELLED.with_borrow_mut(|(calls, waiting)| {
            calls.push(call_id);
            waiting.drain(..).for_each(Waker::wake);
        });
    }
}

fn definition(name: &str, about: &str) -> ToolDefinition {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
    ToolDefinition {
        name: name.into(),
        title: None,
        description: about.into(),
        input_schema: schema.into(),
        output_schema: None,
        annotations: ToolAnnotations {
            read_only: None,
            destructive: None,
            idempotent: None,
            open_world: None,
        },
        capabilities: Vec::new(),
        extra: None,
    }
}

thread_local! {
    /// Calls of `meet` so far, and who waits for the second.
    static MET: RefCell<(u32, Option<Waker>)> = const { RefCell::new((0, None)) };
    /// The calls that were cancelled, and who waits to learn of it.
    static CANCELLED: RefCell<(Vec<String>, Vec<Waker>)> = const { RefCell::new((Vec::new(), Vec::new())) };
}

impl tools::Guest for Misbehave {
    async fn list_tools() -> Result<Vec<ToolDefinition>, Error> {
        let mut tools: Vec<_> = TOOLS.iter().map(|(name, about)| definition(name, about)).collect();
        if wrong()?.as_deref() == Some("nonsense") {
            tools[0].input_schema = "{".into();
            tools[1].name = String::new();
            tools[2].extra = Some("[]".into());
        }
        Ok(tools)
    }

    async fn call_tool(
        name: String,
        arguments: String,
        context: CallContext,
    ) -> Result<ToolResult, Error> {
        let arguments: tenon_sdk::Value = tenon_sdk::serde_json::from_str(&arguments)
            .map_err(|error| Error::invalid_input(error.to_string()))?;
        let text = arguments["text"].as_str().unwrap_or_default().to_string();
        let answer = match name.as_str() {
            "echo" => text,
            "fail" => return Ok(ToolResult { is_error: true, ..result(text) }),
            "meet" => meet().await,
            "hang" => {
                notify::progress(&context.call_id, 0.0, None, None);
                pending().await
            }
            "hang_politely" => return Err(cancelled(&context.call_id).await),
            "spin" => spin(),
            "spin_politely" => loop {
                yield_now().await;
            },
            "hoard" => hoard(),
            "take_memory" => {
                let taken: Vec<_> = (0..amount(&text)?).map(|_| block()).collect();
                taken.len().to_string()
            }
            "answer_with" => "x".repeat(amount(&text)? << 20),
            "ask_host" => {
                for _ in 0..amount(&text)? {
                    black_box(config::get::<String>("register")?);
                }
                text
            }
            "recurse" => recurse(0).to_string(),
            "panic" => panic!("I was told to: {text}"),
            "trap" => trap(),
            "exit" => std::process::exit(3),
            "flood_output" => "x".repeat(32 << 20),
            "flood_log" => loop {
                log::info("again and again");
            },
            "flood_console" => loop {
                println!("again and again");
            },
            "flood_host" => loop {
                black_box(config::get::<String>("register")?);
            },
            "nonsense" => {
                return Ok(ToolResult { structured: Some("{".into()), ..result(text) });
            }
            "denied" => return Err(Error::denied(text)),
            "read_file" => std::fs::read_to_string(&text).map_err(failed)?,
            "environment" => format!("{:?}", std::env::vars().collect::<Vec<_>>()),
            "connect" => {
                TcpStream::connect(&text).map_err(failed)?;
                "connected".into()
            }
            "connect_to" => kind(TcpStream::connect(&text).map(|_| "connected".into())),
            "open_file" => kind(std::fs::read_to_string(&text)),
            "compute" => {
                (0..amount(&text)?).for_each(|n| {
                    black_box(n);
                });
                text
            }
            "wait" => {
                std::thread::sleep(milliseconds(&text)?);
                text
            }
            "take_turns" => {
                let (began, wanted) = (Instant::now(), milliseconds(&text)?);
                while began.elapsed() < wanted {
                    yield_now().await;
                }
                text
            }
            "go_down" => go_down(amount(&text)?).to_string(),
            "log_lines" => {
                (0..amount(&text)?).for_each(|_| log::info("again and again"));
                text
            }
            "write_lines" => {
                (0..amount(&text)?).for_each(|_| println!("again and again"));
                text
            }
            "take_handles" => {
                let take = |_| wasip2::clocks::monotonic_clock::subscribe_duration(u64::MAX);
                let taken: Vec<_> = (0..amount(&text)?).map(take).collect();
                taken.len().to_string()
            }
            "take_random" => {
                let bytes = wasip2::random::random::get_random_bytes(amount(&text)? as u64);
                bytes.len().to_string()
            }
            other => return Err(Error::not_found(other)),
        };
        Ok(result(answer))
    }
}

fn result(text: String) -> ToolResult {
    let block = ContentBlock { body: Content::Text(text), extra: None };
    ToolResult { content: vec![block], structured: None, is_error: false, extra: None }
}

async fn meet() -> String {
    MET.with_borrow_mut(|(calls, waiting)| {
        *calls += 1;
        if let Some(waker) = waiting.take() {
            waker.wake();
        }
    });
    poll_fn(|context| {
        MET.with_borrow_mut(|(calls, waiting)| match *calls {
            0 | 1 => {
                *waiting = Some(context.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(()),
        })
    })
    .await;
    "met".into()
}

async fn cancelled(call_id: &str) -> Error {
    poll_fn(|context| {
        CANCELLED.with_borrow_mut(|(calls, waiting)| {
            if calls.iter().any(|call| call == call_id) {
                return Poll::Ready(());
            }
            waiting.push(context.waker().clone());
            Poll::Pending
        })
    })
    .await;
    Error::cancelled("as you wish")
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn spin() -> ! {
    let mut n = 0_u64;
    loop {
        n = black_box(n.wrapping_add(1));
    }
}

fn amount(text: &str) -> Result<usize, Error> {
    text.parse().map_err(|error| Error::invalid_input(format!("{text}: {error}")))
}

fn milliseconds(text: &str) -> Result<Duration, Error> {
    Ok(Duration::from_millis(amount(text)? as u64))
}

/// A MiB of memory.
fn block() -> Vec<u8> {
    black_box(vec![1_u8; 1 << 20])
}

fn hoard() -> ! {
    let mut hoard = Vec::new();
    loop {
        hoard.push(block());
    }
}

#[allow(unconditional_recursion)]
fn recurse(depth: u64) -> u64 {
    let room = black_box([depth; 64]);
    recurse(depth + 1) + room[(depth % 64) as usize]
}

/// Gives how deep it came.
fn go_down(left: usize) -> usize {
    let room = black_box([left; 64]);
    match room[left % 64] {
        0 => 0,
        left => go_down(left - 1) + 1,
    }
}

/// That something failed, and whether it was forbidden.
fn failed(error: std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::PermissionDenied => Error::denied(error.to_string()),
        _ => Error::failed(error.to_string()),
    }
}

fn kind(done: std::io::Result<String>) -> String {
    done.unwrap_or_else(|error| format!("{:?}", error.kind()))
}

#[cfg(target_arch = "wasm32")]
fn trap() -> ! {
    core::arch::wasm32::unreachable()
}

#[cfg(not(target_arch = "wasm32"))]
fn trap() -> ! {
    std::process::abort()
}

impl hooks::Guest for Misbehave {
    async fn list_hooks() -> Result<Vec<HookRegistration>, Error> {
        let own = ["veto", "array", "no-json", "error", "trap", "hang"];
        let own = own.map(|name| format!("test:{name}"));
        let registration = |point| HookRegistration { point, mode: HookMode::Enforce, priority: 0 };
        Ok(own.into_iter().chain(["after-plan".into()]).map(registration).collect())
    }

    async fn handle_event(event: HookEvent, _: CallContext) -> Result<HookOutcome, Error> {
        let Some(way) = event.point.strip_prefix("test:") else {
            return Ok(HookOutcome::Veto("a point that cannot be vetoed".into()));
        };
        Ok(match way {
            "veto" => HookOutcome::Veto("because".into()),
            "array" => HookOutcome::Replace("[1]".into()),
            "no-json" => HookOutcome::Replace("{".into()),
            "error" => return Err(Error::failed("no")),
            "trap" => panic!("in a hook"),
            _ => pending().await,
        })
    }
}

impl evals::Guest for Misbehave {
    async fn list_evals() -> Result<Vec<EvalDefinition>, Error> {
        let definition = |name: &str| EvalDefinition {
            name: name.into(),
            description: "d".into(),
            options_schema: None,
        };
        Ok(["seven", "trap"].map(definition).into())
    }

    async fn evaluate(
        strategy: String,
        _: String,
        _: String,
        _: CallContext,
    ) -> Result<Evaluation, Error> {
        match strategy.as_str() {
            "seven" => Ok(Evaluation {
                score: 7.0,
                verdict: Verdict::Pass,
                findings: Vec::new(),
                extra: None,
            }),
            _ => panic!("in an evaluation"),
        }
    }
}

impl providers::Guest for Misbehave {
    async fn list_providers() -> Result<Vec<ProviderDefinition>, Error> {
        Ok(vec![ProviderDefinition { name: "p".into(), description: "d".into() }])
    }

    async fn list_models() -> Result<Vec<ModelInfo>, Error> {
        Err(Error::failed("no models today"))
    }

    async fn complete(request: CompletionRequest, _: CallContext) -> Result<Completion, Error> {
        Err(Error::not_found(request.model))
    }
}

impl provider_stream::Guest for Misbehave {
    /// The model says how the stream goes wrong: `endless`, `silent`, `cut`, `error` or `trap`.
    async fn complete_stream(
        request: CompletionRequest,
        _: CallContext,
    ) -> Result<tenon_sdk::provider::Answer, Error> {
        use bindings::provider_stream::{wit_future, wit_stream};
        let (mut writer, reader) = wit_stream::new::<Delta>();
        let (end, ended) = wit_future::new(|| Err(Error::failed("dropped")));
        tenon_sdk::__private::spawn_local(async move {
            let word = || Delta::Text("word ".into());
            writer.write_one(word()).await;
            match request.model.as_str() {
                "endless" => while writer.write_one(word()).await.is_none() {},
                "silent" => pending().await,
                "trap" => panic!("in a stream"),
                "error" => {
                    drop(writer);
                    let _ = end.write(Err(Error::failed("in the middle"))).await;
                    return;
                }
                _ => return,
            }
            let summary = CompletionSummary {
                model: request.model,
                stop_reason: StopReason::EndTurn,
                usage: TokenUsage { input: 0, output: 0, cached_input: 0, reasoning: 0 },
                extra: None,
            };
            let _ = end.write(Ok(summary)).await;
        });
        Ok((reader, ended))
    }
}
