//! Checks against schemas that may cost any amount of time, memory and stack.
//!
//! They are done by a component that the host embeds: the validator of the host, compiled to
//! WebAssembly. An instance is made for each check. It is granted nothing and has the limits of the
//! plugin that the schema is from, so that whatever a schema does is contained as what the plugin
//! itself does: it ends in time, takes memory and stack of its own alone, gives way to others, and
//! is dropped with the call.

use futures::future::{BoxFuture, FutureExt, Shared};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tenon_config::config::InstanceMode;
use tenon_config::files::Digest;
use tenon_config::grant::Grants;
use tenon_config::limits::{LimitExceeded, Limits, SchemaLimitExceeded};
use tenon_types::{CallContext, Json};

use super::{
    MAX_BACKTRACKS, MAX_COMPILED_PATTERN_BYTES, MAX_NULLS, MAX_PROBLEM_LENGTH, NullViolations,
    is_secret, problem,
};
use crate::call::{Failure, within};
use crate::capability::{Asyncness, ComponentRole, InstanceConfig, LinkSet};
use crate::runtime::wasm::{LinkedComponent, WasmPlugin, WasmRuntime};
use crate::runtime::{Allocation, Plugin};

/// The validator as a component, compiled when this crate was built.
pub(crate) static CHECKER: &[u8] = include_bytes!(env!("TENON_SCHEMA_CHECKER"));

/// The least memory of a check: a plugin that may use less itself has schemas all the same.
const MIN_MEMORY_BYTES: usize = 64 << 20;

/// The least time of a check.
pub(super) const MIN_TIME: Duration = Duration::from_secs(1);

/// Where schemas are used that have no bound.
pub(crate) struct SchemaSandbox {
    wasm: Option<Arc<WasmRuntime>>,
    /// Compiling takes a second or two the first time. Who does not wait for it any more leaves it to
    /// those who come later.
    component: OnceLock<Shared<BoxFuture<'static, Result<LinkedComponent, String>>>>,
}

/// What the component answers.
#[derive(Debug, Default, Deserialize)]
struct CheckResult {
    refused: Option<String>,
    unreadable: Option<String>,
    place: Option<String>,
    problem: Option<String>,
    masked: Option<String>,
}

impl Default for SchemaSandbox {
    /// One with an engine of its own, which is there when it is needed.
    fn default() -> Self {
        Self { wasm: None, component: OnceLock::new() }
    }
}

impl SchemaSandbox {
    /// One on the engine of plugins.
    pub(crate) fn new(wasm: Arc<WasmRuntime>) -> Self {
        Self { wasm: Some(wasm), component: OnceLock::new() }
    }

    /// Waits until it can be used.
    pub(super) async fn prepare(&self) -> Result<(), Failure> {
        self.linked().await.map(drop)
    }

    /// Compiles a schema, or says what is wrong with it.
    pub(super) async fn compile(
        &self,
        schema: &str,
        limits: &Limits,
        time: Duration,
    ) -> Result<Result<(), String>, Failure> {
        let limits = Limits { cpu: time, ..limits.clone() };
        match self.run(CheckerTool::Check, schema, None, &limits).await {
            Ok(CheckResult { refused: Some(problem), .. }) => Ok(Err(problem)),
            Ok(_) => Ok(Ok(())),
            Err(Failure::LimitExceeded(limit)) => {
                Ok(Err(format!("compiling it reached the {limit}; simplify it")))
            }
            Err(Failure::Contract(problem)) => Ok(Err(problem)),
            Err(failure) => Err(failure),
        }
    }

    /// What is wrong with a value, which is what a plugin says `what` of, such as the arguments of
    /// one of its tools. Of many things that are wrong it is one.
    ///
    /// # Errors
    ///
    /// Where it cannot be told within the limits of the plugin; that is the plugin's failure.
    pub(crate) async fn problems(
        &self,
        schema: &str,
        value: &Value,
        what: &'static str,
        limits: &Limits,
    ) -> Result<Vec<String>, Failure> {
        self.linked().await?;
        let checked =
            within(limits.wall, self.run(CheckerTool::Check, schema, Some(value), limits));
        let limit = |limit| Err(Failure::LimitExceeded(LimitExceeded::Schema { what, limit }));
        let found = match checked.await {
            Ok(found) => found,
            Err(Failure::LimitExceeded(LimitExceeded::Cpu(time))) => {
                return limit(SchemaLimitExceeded::Time(time));
            }
            Err(Failure::Deadline(time)) => return limit(SchemaLimitExceeded::Time(time)),
            Err(Failure::LimitExceeded(LimitExceeded::Memory(memory))) => {
                return limit(SchemaLimitExceeded::Memory(memory));
            }
            Err(Failure::LimitExceeded(LimitExceeded::Depth)) => {
                return limit(SchemaLimitExceeded::Depth);
            }
            Err(failure) => return Err(failure),
        };
        match found {
            CheckResult { unreadable: Some(_), .. } => limit(SchemaLimitExceeded::Depth),
            CheckResult { refused: Some(refused), .. } => {
                Err(Failure::Contract(format!("the schema of {what} cannot be used: {refused}")))
            }
            CheckResult { problem: Some(told), place, masked, .. } => {
                let place = place.unwrap_or_default();
                Ok(vec![match is_secret(&place) {
                    true => problem(&place, &masked.unwrap_or_default()),
                    false => problem(&place, &told),
                }])
            }
            CheckResult { .. } => Ok(Vec::new()),
        }
    }

    /// What a schema says of nulls in a value.
    ///
    /// # Errors
    ///
    /// Where it cannot be told within the limits of the plugin.
    pub(crate) async fn nulls(
        &self,
        schema: &str,
        value: &Value,
        limits: &Limits,
    ) -> Result<NullViolations, Failure> {
        self.linked().await?;
        within(limits.wall, self.run(CheckerTool::Nulls, schema, Some(value), limits)).await
    }

    /// Calls a tool of the component.
    async fn run<T: DeserializeOwned>(
        &self,
        tool: CheckerTool,
        schema: &str,
        value: Option<&Value>,
        limits: &Limits,
    ) -> Result<T, Failure> {
        let linked = self.linked().await?;
        let (tool, own, most) = tool.of_component();
        let mut arguments = json!({
            "schema": schema,
            "value": value.map(Value::to_string),
            "backtracks": MAX_BACKTRACKS,
            "pattern": MAX_COMPILED_PATTERN_BYTES,
        });
        arguments[own] = json!(most);
        let arguments = Json::write(&arguments);
        let limits = Limits {
            memory: limits.memory.max(MIN_MEMORY_BYTES),
            cpu: limits.cpu.max(MIN_TIME),
            transfer: limits.transfer.max(2 * arguments.text().len()),
            ..Limits::default()
        };
        let setting = InstanceConfig::without_grants("schema-checker", limits);
        let checker = WasmPlugin::new(linked, setting, InstanceMode::Fresh);
        let context = CallContext {
            call_id: "schema".into(),
            agent_id: None,
            session_id: None,
            traceparent: None,
            time_left: None,
            extra: None,
        };
        let result = match checker.call_tool(tool, arguments, context).await {
            Ok(result) => result,
            // The stack of the validator's own ends in its memory.
            Err(Failure::Trapped(trap)) if trap.contains("out of bounds") => {
                return Err(Failure::LimitExceeded(LimitExceeded::Depth));
            }
            Err(Failure::Trapped(trap)) => {
                return Err(Failure::Contract(format!("the validator broke off on it: {trap}")));
            }
            Err(failure) => return Err(failure),
        };
        let structured = result.structured.unwrap_or_default();
        serde_json::from_str(&structured)
            .map_err(|error| Failure::Host(format!("the checker of schemas answers: {error}")))
    }

    async fn linked(&self) -> Result<LinkedComponent, Failure> {
        let linked = self.component.get_or_init(|| {
            let wasm = self.wasm.clone();
            // Compiling blocks.
            let linked = tokio::task::spawn_blocking(move || link(wasm));
            let linked = linked.map(|linked| linked.unwrap_or_else(|error| Err(error.to_string())));
            linked.boxed().shared()
        });
        let linked = linked.clone().await;
        linked.map_err(|problem| {
            Failure::Host(format!("the schema checker failed to load: {problem}"))
        })
    }
}

/// A tool of the component.
#[derive(Clone, Copy)]
enum CheckerTool {
    Check,
    Nulls,
}

impl CheckerTool {
    /// Its name, the name of the argument that only it has, and this argument.
    fn of_component(self) -> (&'static str, &'static str, usize) {
        match self {
            Self::Check => ("check", "description", MAX_PROBLEM_LENGTH),
            Self::Nulls => ("nulls", "most", MAX_NULLS),
        }
    }
}

fn link(wasm: Option<Arc<WasmRuntime>>) -> Result<LinkedComponent, String> {
    let own = || WasmRuntime::new(Allocation::OnDemand, None).map(Arc::new);
    let wasm = wasm.map_or_else(own, Ok).map_err(|error| error.to_string())?;
    let component =
        wasm.compile(CHECKER, &Digest::of(CHECKER)).map_err(|error| error.to_string())?;
    let nothing = Grants::default();
    let links = LinkSet::of(ComponentRole::Plugin(&nothing), Asyncness::Async);
    wasm.link(&component, links).map_err(|error| error.to_string())
}
