//! What plugins say to the operator, through `tracing`: at a bounded rate and length, and without secrets.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tenon_config::secret::{KnownSecrets, Redactor};
use tenon_types::text::{cut, one_line};
use tenon_types::{LogLevel, OutgoingMessage};

use crate::call::client::{CallerClient, LogMessage};
use crate::call::mask::{MaskSecrets, Masked, Unmasked};

/// The most bytes of a message, and of its fields together.
const MAX_MESSAGE_BYTES: usize = 8 << 10;

/// What is left of a plugin's allowance, over all of its instances.
pub(crate) struct RateLimiter {
    /// Messages a second, for long.
    rate: f64,
    bucket: Mutex<TokenBucket>,
}

/// How many seconds' worth may come at once.
const BURST_SECONDS: f64 = 5.0;

struct TokenBucket {
    left: f64,
    filled: Instant,
    /// How many were dropped since the last one that was written.
    dropped: u64,
}

impl RateLimiter {
    /// So many messages a second, for long.
    pub(crate) fn of(rate: u32) -> Self {
        let rate = f64::from(rate);
        let bucket = TokenBucket { left: rate * BURST_SECONDS, filled: Instant::now(), dropped: 0 };
        Self { rate, bucket: Mutex::new(bucket) }
    }

    /// Takes a message's worth. Gives how many were dropped before it, or nothing when this one
    /// must be.
    pub(crate) fn take(&self, now: Instant) -> Option<u64> {
        let mut bucket = self.bucket.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_duration_since(bucket.filled).as_secs_f64();
        bucket.left = (bucket.left + passed * self.rate).min(self.rate * BURST_SECONDS);
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

    /// How many were dropped of which nobody was told.
    fn untold(&mut self) -> u64 {
        let bucket = self.bucket.get_mut().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut bucket.dropped)
    }
}

/// A plugin's voice, whatever it speaks through: one allowance for all of its logs, and no secret gets out,
/// neither one of its own nor one of another plugin that is loaded.
pub(crate) struct PluginLog {
    plugin: Arc<str>,
    limiter: RateLimiter,
    own: Arc<Redactor>,
    logged: SplitSecretBuffer,
    sent: SplitSecretBuffer,
    /// The secrets of all plugins, if there are others.
    shared: Arc<KnownSecrets>,
}

impl PluginLog {
    /// The voice of a plugin that may write so many messages a second.
    pub(crate) fn new(plugin: Arc<str>, redactor: Redactor, rate: u32) -> Self {
        let (logged, sent) = (SplitSecretBuffer::default(), SplitSecretBuffer::default());
        let (limiter, shared) = (RateLimiter::of(rate), Arc::default());
        Self { plugin, limiter, own: Arc::new(redactor), logged, sent, shared }
    }

    /// The same among other plugins.
    pub(crate) fn among(mut self, shared: Arc<KnownSecrets>) -> Self {
        self.shared = shared;
        self
    }

    /// Writes a message in one line, if anybody would see it and the allowance lasts. Gives whether
    /// the allowance did.
    pub(crate) fn write(
        &self,
        level: LogLevel,
        message: &str,
        fields: &[(String, String)],
    ) -> bool {
        self.write_for(None, level, message, fields)
    }

    /// The same, for the client of the call that the plugin works on as well.
    pub(crate) fn write_for(
        &self,
        client: Option<&CallerClient>,
        level: LogLevel,
        message: &str,
        fields: &[(String, String)],
    ) -> bool {
        let client = client.filter(|client| client.wants_log(level));
        // What nobody sees must not use up the room of what somebody is to see.
        let is_seen = match level {
            LogLevel::Trace => tracing::enabled!(tracing::Level::TRACE),
            LogLevel::Debug => tracing::enabled!(tracing::Level::DEBUG),
            LogLevel::Info => tracing::enabled!(tracing::Level::INFO),
            LogLevel::Warn => tracing::enabled!(tracing::Level::WARN),
            LogLevel::Error => tracing::enabled!(tracing::Level::ERROR),
        };
        if !is_seen && client.is_none() {
            return true;
        }
        let plugin = &*self.plugin;
        let Some(dropped) = self.limiter.take(Instant::now()) else { return false };
        tell_dropped(plugin, dropped);
        let message = self.logged.next(&self.redactor(), message);
        let message = one_line(cut(&message, MAX_MESSAGE_BYTES));
        let masked = |(key, value): &'_ (String, String)| {
            (self.without_secrets(key).into_owned(), self.without_secrets(value).into_owned())
        };
        let shown = shown(fields.iter().map(masked));
        if let Some(client) = client {
            let text = format!("{message}{shown}");
            client.log(LogMessage::new(self.plugin.clone(), level, text));
        }
        match level {
            LogLevel::Trace => tracing::trace!(plugin, "{message}{shown}"),
            LogLevel::Debug => tracing::debug!(plugin, "{message}{shown}"),
            LogLevel::Info => tracing::info!(plugin, "{message}{shown}"),
            LogLevel::Warn => tracing::warn!(plugin, "{message}{shown}"),
            LogLevel::Error => tracing::error!(plugin, "{message}{shown}"),
        }
        true
    }

    /// What the plugin said, without secrets.
    pub(crate) fn masked<T: MaskSecrets>(&self, said: Unmasked<T>) -> Masked<T> {
        said.mask(&self.redactor())
    }

    /// A message that the plugin sends, without secrets, also such as began in those before it.
    pub(crate) fn masked_message(
        &self,
        message: Unmasked<OutgoingMessage>,
    ) -> Masked<OutgoingMessage> {
        let redactor = self.redactor();
        message.mask(&redactor).map(|message| {
            let text = self.sent.next(&redactor, &message.text).into_owned();
            OutgoingMessage { text, ..message }
        })
    }

    fn redactor(&self) -> Arc<Redactor> {
        self.shared.redactor().unwrap_or_else(|| self.own.clone())
    }

    /// What of a text may be shown.
    pub(crate) fn without_secrets<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.redactor().text(text)
    }

    /// What of the beginning of a longer text may be shown, as its bytes came.
    pub(crate) fn beginning_without_secrets(&self, text: &[u8]) -> String {
        self.redactor().beginning(text)
    }
}

/// Texts that are said one after the other, over which a secret may be split.
#[derive(Default)]
struct SplitSecretBuffer {
    /// What of those so far may begin a secret that the next one ends.
    unfinished: Mutex<String>,
}

impl SplitSecretBuffer {
    /// What of a text may be shown that comes after those before it.
    fn next<'a>(&self, redactor: &Redactor, text: &'a str) -> Cow<'a, str> {
        let mut unfinished = self.unfinished.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *unfinished);
        if before.is_empty() {
            *unfinished = redactor.unfinished(text).to_string();
            return redactor.text(text);
        }
        *unfinished = redactor.unfinished(&format!("{before}{text}")).to_string();
        let mut text = text.to_string();
        redactor.together(&mut [&mut before, &mut text]);
        text.into()
    }
}

/// The last messages may have been dropped as well.
impl Drop for PluginLog {
    fn drop(&mut self) {
        tell_dropped(&self.plugin, self.limiter.untold());
    }
}

fn tell_dropped(plugin: &str, dropped: u64) {
    if dropped > 0 {
        tracing::warn!(
            plugin,
            dropped,
            "messages were dropped: the plugin writes more than `limits.log_rate` allows"
        );
    }
}

impl fmt::Debug for PluginLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Voice of {}", self.plugin)
    }
}

/// Fields as they stand behind a message.
fn shown(fields: impl Iterator<Item = (String, String)>) -> String {
    let mut shown = String::new();
    for (key, value) in fields {
        if shown.len() >= MAX_MESSAGE_BYTES {
            break;
        }
        if !shown.is_empty() {
            shown.push(' ');
        }
        let value = format!("{:?}", cut(&value, MAX_MESSAGE_BYTES));
        shown.push_str(&format!("{}={}", one_line(cut(&key, MAX_MESSAGE_BYTES)), one_line(&value)));
    }
    shown.truncate(shown.floor_char_boundary(MAX_MESSAGE_BYTES));
    if shown.is_empty() { shown } else { format!(" ({shown})") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn logged(write: impl FnOnce(&PluginLog)) -> String {
        let log = PluginLog::new("p".into(), Default::default(), 1);
        tenon_config::log_capture::logged(move || write(&log))
    }

    #[test]
    fn a_secret_that_is_split_over_messages_is_not_sent_whole() {
        let secret = "hunter22";
        for pieces in
            [&["it is hunt", "er22, truly"][..], &["h", "u", "n", "t", "e", "r", "2", "2"]]
        {
            let log = PluginLog::new("p".into(), Redactor::of(&[secret]), 1);
            let sent = pieces.iter().map(|text| {
                let (channel, extra, text) = (None, None, text.to_string());
                let message = Unmasked::new(OutgoingMessage { channel, text, extra });
                log.masked_message(message).into_inner().text
            });
            let sent: String = sent.collect();
            assert!(!sent.contains(secret), "{sent}");
        }
    }

    #[test]
    fn what_nobody_sees_takes_no_room() {
        let said = logged(|log| {
            (0..1000).for_each(|_| assert!(log.write(LogLevel::Debug, "unseen", &[])));
            assert!(log.write(LogLevel::Warn, "seen", &[]));
            (1..5).for_each(|_| assert!(log.write(LogLevel::Warn, "more", &[])));
            assert!(!log.write(LogLevel::Warn, "too much", &[]));
        });
        assert!(said.starts_with(" WARN seen plugin=\"p\"\n"), "{said}");
        assert!(!said.contains("unseen") && !said.contains("too much"), "{said}");
    }

    #[test]
    fn a_message_is_one_line() {
        let said = logged(|log| {
            let fields = [("a\nb".to_string(), "c\u{2028}d".to_string())];
            log.write(LogLevel::Warn, "one\n WARN two", &fields);
        });
        assert_eq!(said, " WARN one\\n WARN two (a\\nb=\"c\\u{2028}d\") plugin=\"p\"\n");
    }

    #[test]
    fn a_secret_is_not_shown_in_parts() {
        let said = |texts: &[&str]| {
            let log = PluginLog::new("p".into(), Redactor::of(&["hunter22"]), 1);
            texts
                .iter()
                .map(|text| log.logged.next(&log.redactor(), text))
                .collect::<Vec<_>>()
                .concat()
        };
        let secret = "hunter22";
        for first in 1..secret.len() {
            let (start, end) = secret.split_at(first);
            let shown = said(&[&format!("a {start}"), &format!("{end} b")]);
            assert_eq!(shown, format!("a {start} b"));
            for second in 1..end.len() {
                let (middle, end) = end.split_at(second);
                let shown = said(&[start, middle, &format!("{end} b"), "c"]);
                assert_eq!(shown, format!("{start}{middle} bc"));
            }
        }
        // What only looked like the beginning of one is shown.
        assert_eq!(said(&["a hun", "t hun", "ter2", "2 b"]), "a hunt hunter2 b");
        assert_eq!(said(&["hunter22", "hunter22"]), "[redacted][redacted]");
    }

    #[test]
    fn a_flood_is_dropped_and_counted() {
        let limiter = RateLimiter::of(100);
        let now = Instant::now();
        let written = (0..507).filter(|_| limiter.take(now).is_some()).count();
        assert_eq!(written, 500);
        assert_eq!(limiter.take(now + Duration::from_secs(1)), Some(7));
    }

    #[test]
    fn the_last_messages_that_were_dropped_are_told_as_well() {
        let said = logged(|log| {
            (0..8).for_each(|_| {
                log.write(LogLevel::Error, "x", &[]);
            })
        });
        assert_eq!(said.matches("ERROR").count(), 5, "{said}");
        assert!(said.contains("dropped=3"), "{said}");
    }
}
