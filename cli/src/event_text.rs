//! Events of the platform, for people.

use std::time::Duration;
use tenon_host::{CallEvent, DiskChange, Event, Step, Usage};

/// What an event says of plugins that change; nothing where it is about something else.
pub(crate) fn change_text(event: &Event) -> Option<String> {
    Some(match event {
        Event::Changed { plugin, change } => format!("{plugin}: {}", state(*change)),
        Event::Reloaded { plugin, change: DiskChange::Removed } => format!("{plugin}: unloaded"),
        Event::Reloaded { plugin, change: DiskChange::Added } => format!("{plugin}: loaded"),
        Event::Reloaded { plugin, change: DiskChange::Modified } => format!("{plugin}: reloaded"),
        Event::NotReloaded { plugin: Some(plugin), problem } => {
            format!("{plugin}: not loaded: {problem}")
        }
        Event::NotReloaded { plugin: None, problem } => format!("not read: {problem}"),
        Event::Registered { plugin } => format!("{plugin}: registered again"),
        Event::NotRegistered { plugin, problem } => {
            format!("{plugin}: did not register again: {problem}")
        }
        Event::Missed { events } => format!("{events} events were missed"),
        _ => return None,
    })
}

fn state(change: DiskChange) -> &'static str {
    match change {
        DiskChange::Added => "added",
        DiskChange::Modified => "modified",
        DiskChange::Removed => "removed",
    }
}

/// What an event says of a call; nothing where it is about something else, or tells nothing new.
pub(crate) fn call_text(event: &Event) -> Option<String> {
    let Event::Call(CallEvent { tool, step, .. }) = event else { return None };
    Some(match step {
        Step::Refused { message } => format!("{tool}: refused: {message}"),
        Step::Ended { outcome, error: Some(error), usage } => {
            format!("{tool}: {outcome}, {}: {error}", usage_text(usage))
        }
        Step::Ended { outcome, error: None, usage } => {
            format!("{tool}: {outcome}, {}", usage_text(usage))
        }
        _ => return None,
    })
}

/// What a call took: its time, the plugin's processor time and memory, and how often it called the host.
fn usage_text(usage: &Usage) -> String {
    let milliseconds = |micros: u64| {
        let time = Duration::from_micros(micros);
        format!("{:.1} ms", time.as_secs_f64() * 1e3)
    };
    let mut text = milliseconds(usage.wall_micros);
    if let Some(cpu) = usage.cpu_micros {
        text += &format!(", {} of processor time", milliseconds(cpu));
    }
    if let Some(bytes) = usage.memory_bytes {
        text += &format!(", {:.1} MiB", bytes as f64 / f64::from(1 << 20));
    }
    if let Some(calls) = usage.host_calls.filter(|calls| *calls > 0) {
        text += &format!(", {calls} calls of the host");
    }
    text
}
