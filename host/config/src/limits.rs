//! What one plugin may use. Every limit is on by default.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Value, json};
use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::toml_parse::some_time;

/// The most pages of a listing.
pub const MAX_PAGES: usize = 1_000;

/// The limits of one plugin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The maximum linear memory of one instance in bytes, all of its memories together. For a script it is how
    /// much its captured variables hold in one call.
    pub memory: usize,
    /// The maximum number of table elements of one instance.
    pub table_elements: usize,
    /// The maximum number of core instances, of tables and of memories of one instance.
    pub instances: usize,
    /// The maximum CPU time of one call; on a shared instance, of the work until it waits. Checked every
    /// [`TICK`]. For a script it is the time since its thread began the call, and its operations are limited
    /// as well; see [`Limits::operations`].
    pub cpu: Duration,
    /// The maximum time from the start of a call to its answer. It is paused while a user or model is asked
    /// on behalf of the call (`ClientFeatures`).
    pub wall: Duration,
    /// The maximum size in bytes of one answer, or of the arguments of one import.
    pub transfer: usize,
    /// The maximum body of a network response in bytes. That of a request is [`Limits::transfer`].
    pub download: usize,
    /// The maximum size of a tool's result in bytes. A longer one is truncated; the whole is stored, and the
    /// result has its URI.
    pub output: usize,
    /// The maximum number of host resources (streams, pollables, …) of an instance.
    pub handles: usize,
    /// The maximum number of host calls in one call of the plugin. On a shared instance it applies to all
    /// calls in flight together, within [`Limits::wall`].
    pub host_calls: u64,
    /// The maximum rate of log messages per second, with bursts of five seconds' worth. Further messages are
    /// dropped and counted.
    pub log_rate: u32,
    /// The maximum size in bytes of what the plugin keeps in each of its buckets (`state`).
    pub state: usize,
    /// The maximum number of live instances of a plugin that has one for each session. Where another session
    /// begins, the one that was not used for longest ends.
    pub sessions: usize,
    /// How long an instance of a session lives without a call.
    pub session_idle: Duration,
    /// How long an MCP server that the host starts runs without a call or a subscription. The next call
    /// starts it again.
    pub server_idle: Duration,
    /// How much memory of its own each process of a confined MCP server may have, in bytes.
    pub server_memory: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            table_elements: 100_000,
            instances: 64,
            cpu: Duration::from_secs(10),
            wall: Duration::from_secs(30),
            transfer: 64 << 20,
            download: 64 << 20,
            output: 1 << 20,
            handles: 10_000,
            host_calls: 1_000_000,
            log_rate: 100,
            state: 10 << 20,
            sessions: 100,
            session_idle: Duration::from_secs(30 * 60),
            server_idle: Duration::from_secs(24 * 60 * 60),
            server_memory: 4 << 30,
        }
    }
}

impl Limits {
    /// Returns the most that a manifest may ask for, unless operator or host set less.
    pub fn most() -> Self {
        Self {
            memory: 4 << 30,
            table_elements: 1_000_000,
            instances: 256,
            cpu: Duration::from_secs(60),
            wall: Duration::from_secs(600),
            transfer: 256 << 20,
            output: 64 << 20,
            handles: 100_000,
            host_calls: 100_000_000,
            log_rate: 1000,
            download: 1 << 30,
            state: 1 << 30,
            sessions: 10_000,
            session_idle: Duration::from_secs(24 * 60 * 60),
            server_idle: Duration::from_secs(24 * 60 * 60),
            server_memory: 64 << 30,
        }
    }

    /// Returns these limits, each capped by another's.
    pub fn at_most(self, most: &Self) -> Self {
        Self {
            memory: self.memory.min(most.memory),
            table_elements: self.table_elements.min(most.table_elements),
            instances: self.instances.min(most.instances),
            cpu: self.cpu.min(most.cpu),
            wall: self.wall.min(most.wall),
            transfer: self.transfer.min(most.transfer),
            output: self.output.min(most.output),
            handles: self.handles.min(most.handles),
            host_calls: self.host_calls.min(most.host_calls),
            log_rate: self.log_rate.min(most.log_rate),
            download: self.download.min(most.download),
            state: self.state.min(most.state),
            sessions: self.sessions.min(most.sessions),
            session_idle: self.session_idle.min(most.session_idle),
            server_idle: self.server_idle.min(most.server_idle),
            server_memory: self.server_memory.min(most.server_memory),
        }
    }

    /// Returns the limits that differ from the defaults, on one line.
    pub fn special(&self) -> String {
        let usual = Self::default().written();
        listed(self.written().into_iter().filter(|limit| !usual.contains(limit)).collect())
    }

    /// Returns the limits that a manifest can set, in the syntax of `[limits]`.
    pub fn written(&self) -> Vec<(&'static str, Value)> {
        let mib = |bytes: usize| json!(bytes >> 20);
        let time = |time: Duration| json!(humantime::format_duration(time).to_string());
        vec![
            ("memory_mib", mib(self.memory)),
            ("table_elements", json!(self.table_elements)),
            ("instances", json!(self.instances)),
            ("cpu", time(self.cpu)),
            ("wall", time(self.wall)),
            ("transfer_mib", mib(self.transfer)),
            ("download_mib", mib(self.download)),
            ("output_kib", json!(self.output >> 10)),
            ("host_calls", json!(self.host_calls)),
            ("log_rate", json!(self.log_rate)),
            ("state_mib", mib(self.state)),
            ("sessions", json!(self.sessions)),
            ("session_idle", time(self.session_idle)),
            ("server_idle", time(self.server_idle)),
            ("server_memory_mib", mib(self.server_memory)),
        ]
    }

    /// Returns the maximum number of operations of a script in one call: more than fit into [`Limits::cpu`]
    /// on any machine, as one takes several nanoseconds, so that time stops it unless the clock is wrong.
    pub fn operations(&self) -> u64 {
        u64::try_from(self.cpu.as_millis()).unwrap_or(u64::MAX).saturating_mul(500_000).max(1)
    }
}

impl Serialize for Limits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.written())
    }
}

impl fmt::Display for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(self.written()))
    }
}

/// Limits in one line.
fn listed(limits: Vec<(&'static str, Value)>) -> String {
    let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
    let limits = limits.into_iter().map(|(key, value)| format!("{key} {}", text(value)));
    limits.collect::<Vec<_>>().join(", ")
}

/// The longest wait that clocks can represent.
pub const MAX_DURATION: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The interval at which a running guest yields and its limits are checked.
pub const TICK: Duration = Duration::from_millis(10);

/// A limit that was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LimitExceeded {
    /// [`Limits::memory`]
    #[error("memory limit of {} MiB (`limits.memory_mib`)", .0 >> 20)]
    Memory(usize),
    /// [`Limits::table_elements`]
    #[error("limit of {0} table elements (`limits.table_elements`)")]
    Table(usize),
    /// [`Limits::cpu`]
    #[error("CPU limit of {0:?} (`limits.cpu`)")]
    Cpu(Duration),
    /// [`Limits::transfer`]
    #[error("limit of {} MiB for one transfer to the host (`limits.transfer_mib`)", .0 >> 20)]
    Transfer(usize),
    /// [`Limits::host_calls`]
    #[error("limit of {0} calls of the host (`limits.host_calls`)")]
    HostCalls(u64),
    /// The call depth, or the stack.
    #[error("limit of call depth, as when functions call each other without an end")]
    Depth,
    /// The size of one value in a script.
    #[error("limit of value size")]
    ValueSize,
    /// The limits of a check against a JSON Schema of the plugin.
    #[error(
        "limit for checking {what} against its JSON Schema, which is {limit}; simplify the schema, or let the plugin use more under `limits`"
    )]
    Schema {
        /// What was checked.
        what: &'static str,
        /// The limit that was reached.
        limit: SchemaLimitExceeded,
    },
}

/// The limit that a check against a JSON Schema reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaLimitExceeded {
    /// [`Limits::cpu`] or [`Limits::wall`]
    #[error("{0:?} of time")]
    Time(Duration),
    /// [`Limits::memory`]
    #[error("{} MiB of memory", .0 >> 20)]
    Memory(usize),
    /// The stack.
    #[error("the depth of schema and value")]
    Depth,
}

/// `[limits]`, here and in manifests.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsTable {
    memory_mib: Option<NonZeroU32>,
    table_elements: Option<NonZeroU32>,
    instances: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "some_time")]
    cpu: Option<Duration>,
    #[serde(default, deserialize_with = "some_time")]
    wall: Option<Duration>,
    transfer_mib: Option<NonZeroU32>,
    download_mib: Option<NonZeroU32>,
    output_kib: Option<NonZeroU32>,
    host_calls: Option<NonZeroU32>,
    log_rate: Option<NonZeroU32>,
    state_mib: Option<NonZeroU32>,
    sessions: Option<NonZeroU32>,
    #[serde(default, deserialize_with = "some_time")]
    session_idle: Option<Duration>,
    #[serde(default, deserialize_with = "some_time")]
    server_idle: Option<Duration>,
    server_memory_mib: Option<NonZeroU32>,
}

impl LimitsTable {
    /// These limits, with `others` where nothing is said.
    pub fn over(&self, others: &Limits) -> Limits {
        let bytes = |mib: NonZeroU32| (mib.get() as usize) << 20;
        let count = |number: NonZeroU32| number.get() as usize;
        Limits {
            memory: self.memory_mib.map_or(others.memory, bytes),
            table_elements: self.table_elements.map_or(others.table_elements, count),
            instances: self.instances.map_or(others.instances, count),
            cpu: self.cpu.unwrap_or(others.cpu),
            wall: self.wall.unwrap_or(others.wall),
            transfer: self.transfer_mib.map_or(others.transfer, bytes),
            download: self.download_mib.map_or(others.download, bytes),
            output: self.output_kib.map_or(others.output, |kib| (kib.get() as usize) << 10),
            host_calls: self.host_calls.map_or(others.host_calls, |calls| calls.get().into()),
            log_rate: self.log_rate.map_or(others.log_rate, NonZeroU32::get),
            state: self.state_mib.map_or(others.state, bytes),
            sessions: self.sessions.map_or(others.sessions, count),
            session_idle: self.session_idle.unwrap_or(others.session_idle),
            server_idle: self.server_idle.unwrap_or(others.server_idle),
            server_memory: self.server_memory_mib.map_or(others.server_memory, bytes),
            ..others.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_shown_as_they_are_written() {
        assert_eq!(Limits::default().special(), "");
        let limits = Limits {
            memory: 64 << 20,
            wall: Duration::from_millis(1500),
            output: 3 << 10,
            ..Limits::default()
        };
        assert_eq!(limits.special(), "memory_mib 64, wall 1s 500ms, output_kib 3");
        assert_eq!(
            limits.to_string(),
            "memory_mib 64, table_elements 100000, instances 64, cpu 10s, wall 1s 500ms, \
             transfer_mib 64, download_mib 64, output_kib 3, host_calls 1000000, log_rate 100, \
             state_mib 10, sessions 100, session_idle 30m, server_idle 1day, server_memory_mib 4096"
        );
        // Each can be read again.
        let table: toml::Table = limits
            .written()
            .into_iter()
            .map(|(key, value)| (key.to_string(), toml::Value::try_from(value).unwrap()))
            .collect();
        let read: LimitsTable = table.try_into().unwrap();
        assert_eq!(read.over(&Limits::default()), limits);
    }

    #[test]
    fn what_a_manifest_may_ask_for_has_an_end() {
        let (usual, most) = (Limits::default(), Limits::most());
        assert_eq!(
            most.to_string(),
            "memory_mib 4096, table_elements 1000000, instances 256, cpu 1m, wall 10m, \
             transfer_mib 256, download_mib 1024, output_kib 65536, host_calls 100000000, \
             log_rate 1000, state_mib 1024, sessions 10000, session_idle 1day, server_idle 1day, \
             server_memory_mib 65536"
        );
        assert_eq!((usual.handles, most.handles), (10_000, 100_000));
        assert_eq!(usual.clone().at_most(&most), usual);
        assert_eq!(most.clone().at_most(&usual), usual);
        assert_eq!(
            serde_json::to_value(&most).unwrap(),
            Value::Object(most.written().into_iter().map(|(key, v)| (key.into(), v)).collect())
        );
    }

    #[test]
    fn the_page_on_limits_has_each_default_and_maximum() {
        let page = include_str!("../../../docs/reference/limits.md");
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_string);
        let (usual, most) = (Limits::default().written(), Limits::most().written());
        for ((key, default), (_, most)) in usual.iter().zip(&most) {
            let row = format!("| `{key}` | {} | {} | ", text(default), text(most));
            assert!(page.contains(&row), "docs/reference/limits.md has no row {row}");
        }
    }

    #[test]
    fn a_script_may_take_as_many_operations_as_it_has_time_for() {
        let check = |cpu: Duration, expected: u64| {
            assert_eq!(Limits { cpu, ..Limits::default() }.operations(), expected, "{cpu:?}");
        };
        check(Duration::from_secs(10), 5_000_000_000);
        check(Duration::from_millis(1), 500_000);
        check(Duration::ZERO, 1);
        check(Duration::MAX, u64::MAX);
    }
}
