//! `log`: a plugin's words for the operator, through `tracing`, at a bounded rate and length.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use wasmtime::component::Linker;

use super::Host;
use crate::bindings::log::{self, Level};
use crate::runtime::wasm::HostState;
use crate::secret::Redactor;
use crate::text::cut;

/// The most bytes of a message, and of its fields together.
const LENGTH: usize = 8 << 10;

/// What is left of a plugin's allowance, over all of its instances.
pub(crate) struct Allowance {
    /// Messages a second, for long.
    rate: f64,
    bucket: Mutex<Bucket>,
}

/// How many seconds' worth may come at once.
const BURST: f64 = 5.0;

struct Bucket {
    left: f64,
    filled: Instant,
    /// How many were dropped since the last one that was written.
    dropped: u64,
}

impl Allowance {
    /// So many messages a second, for long.
    pub(crate) fn of(rate: u32) -> Self {
        let rate = f64::from(rate);
        let bucket = Bucket { left: rate * BURST, filled: Instant::now(), dropped: 0 };
        Self { rate, bucket: Mutex::new(bucket) }
    }

    /// Takes a message's worth. Gives how many were dropped before it, or nothing when this one
    /// must be.
    pub(super) fn take(&self, now: Instant) -> Option<u64> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.left = (bucket.left + passed * self.rate).min(self.rate * BURST);
        bucket.filled = now;
        // Who has used it up waits for a second's worth, not for each message.
        let needed = if bucket.dropped > 0 { self.rate } else { 1.0 };
        if bucket.left < needed {
            bucket.dropped += 1;
            return None;
        }
        bucket.left -= 1.0;
        Some(std::mem::take(&mut bucket.dropped))
    }
}

/// A plugin's voice in the log, whatever it speaks through: one allowance for all, and no secret
/// gets out.
pub(crate) struct Voice {
    plugin: Arc<str>,
    allowance: Allowance,
    redactor: Redactor,
}

impl Voice {
    /// The voice of a plugin that may write so many messages a second.
    pub(crate) fn new(plugin: Arc<str>, redactor: Redactor, rate: u32) -> Self {
        Self { plugin, allowance: Allowance::of(rate), redactor }
    }
    /// Writes a message, if the allowance lasts.
    pub(crate) fn write(&self, level: Level, message: &str, fields: &[(String, String)]) {
        let plugin = &*self.plugin;
        let Some(dropped) = self.allowance.take(Instant::now()) else { return };
        if dropped > 0 {
            tracing::warn!(plugin, dropped, "messages were dropped: the plugin writes too many");
        }
        let message = self.redactor.text(message);
        let message = cut(&message, LENGTH);
        let shown = shown(fields.iter().map(|(key, value)| (key, self.redactor.text(value))));
        match level {
            Level::Trace => tracing::trace!(plugin, "{message}{shown}"),
            Level::Debug => tracing::debug!(plugin, "{message}{shown}"),
            Level::Info => tracing::info!(plugin, "{message}{shown}"),
            Level::Warn => tracing::warn!(plugin, "{message}{shown}"),
            Level::Error => tracing::error!(plugin, "{message}{shown}"),
        }
    }

    /// What of a text may be shown.
    pub(crate) fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor.text(text)
    }
}

impl fmt::Debug for Voice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Voice of {}", self.plugin)
    }
}

/// Fields as they stand behind a message.
fn shown<'a>(fields: impl Iterator<Item = (&'a String, Cow<'a, str>)>) -> String {
    let mut shown = String::new();
    for (key, value) in fields {
        if shown.len() >= LENGTH {
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        shown.push_str(&format!("{}={:?}", cut(key, LENGTH), cut(&value, LENGTH)));
    }
    shown.truncate(shown.floor_char_boundary(LENGTH));
    if shown.is_empty() { shown } else { format!(" ({shown})") }
}

pub(super) fn link(linker: &mut Linker<HostState>) -> wasmtime::Result<()> {
    log::add_to_linker::<_, Host>(linker, |state| state)
}

impl log::Host for HostState {
    fn write(
        &mut self,
        level: Level,
        message: String,
        fields: Vec<(String, String)>,
    ) -> wasmtime::Result<()> {
        self.span().in_scope(|| self.setting.voice.write(level, &message, &fields));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let allowance = Allowance::of(100);
        let now = Instant::now();
        let written = (0..507).filter(|_| allowance.take(now).is_some()).count();
        assert_eq!(written, 500);
        assert_eq!(allowance.take(now + Duration::from_secs(1)), Some(7));
    }
}
