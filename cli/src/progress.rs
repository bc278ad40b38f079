//! How far a call, a download or the start of servers has come, in the last line of a terminal. It is on standard error, and only while
//! there is somebody to see it: the line is written over by the next, and gone when the call is over.

use std::convert::Infallible;
use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tenon_host::types::text::one_line;
use tenon_host::{Event, Platform, StartQueueProgress, Subscription};

use crate::Common;

/// Whether the line is there.
static SHOWN: AtomicBool = AtomicBool::new(false);

/// Standard error, without the line: what is written there begins one of its own.
pub(crate) fn stderr() -> Stderr {
    clear();
    io::stderr()
}

fn clear() {
    if SHOWN.swap(false, Ordering::Relaxed) {
        say("\r\x1b[K");
    }
}

/// Waits for a call of the platform, the only one that the host makes, and shows meanwhile how far
/// it has come.
pub(crate) async fn shown<T>(
    common: &Common,
    platform: &Platform,
    call: impl Future<Output = T>,
) -> T {
    if !is_seen(common) {
        return call.await;
    }
    let mut line = CallProgress { events: platform.events(), call: None };
    tokio::select! {
        // First, as what a server said before it answered was before that.
        biased;
        never = line.follow() => match never {},
        result = call => result,
    }
}

/// Whether there is somebody to see it.
pub(crate) fn is_seen(common: &Common) -> bool {
    let terminal =
        io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    terminal && !common.json
}

/// Shows words in place of those before.
fn show(words: &str) {
    // The line does not go on in the next one, however narrow the terminal is.
    say(&format!("\r\x1b[?7l{words}\x1b[K\x1b[?7h"));
    SHOWN.store(true, Ordering::Relaxed);
}

/// What is shown of a download. Dropped, it is gone.
pub(crate) struct DownloadProgress {
    name: String,
    total: Option<f64>,
    shown: String,
}

impl DownloadProgress {
    /// A download of so many bytes; nothing where nobody would see it.
    pub(crate) fn new(common: &Common, name: &str, total: Option<u64>) -> Option<Self> {
        let (name, total) = (name.to_string(), total.map(mib));
        is_seen(common).then(|| Self { name, total, shown: String::new() })
    }

    /// So many bytes have come.
    pub(crate) fn at(&mut self, bytes: u64) {
        let Some(words) = words(mib(bytes), self.total, Some(&format!("MiB  {}", self.name)))
        else {
            return;
        };
        if words != self.shown {
            show(&words);
            self.shown = words;
        }
    }
}

impl Drop for DownloadProgress {
    fn drop(&mut self) {
        clear();
    }
}

/// What is shown of servers that start. Dropped, it is gone, and no more is shown.
pub(crate) struct ServerStartProgress {
    is_over: Arc<Mutex<bool>>,
}

impl ServerStartProgress {
    pub(crate) fn new() -> Self {
        Self { is_over: Arc::default() }
    }

    /// What is to be told how far they are.
    pub(crate) fn observer(&self) -> impl Fn(&StartQueueProgress<'_>) + Send + Sync + 'static {
        let is_over = self.is_over.clone();
        move |progress| {
            let is_over = is_over.lock().unwrap_or_else(PoisonError::into_inner);
            if !*is_over {
                let StartQueueProgress { ready, failed, total, starting, .. } = progress;
                show(&starting_words(*ready, *failed, *total, starting));
            }
        }
    }
}

impl Drop for ServerStartProgress {
    fn drop(&mut self) {
        *self.is_over.lock().unwrap_or_else(PoisonError::into_inner) = true;
        clear();
    }
}

/// How many of the servers that are waited for are named.
const MAX_NAMED: usize = 3;

/// How far the start of servers is, as people see it.
fn starting_words(ready: usize, failed: usize, total: usize, starting: &[Arc<str>]) -> String {
    let mut words = format!("starting servers: {ready} of {total} are ready");
    if failed > 0 {
        words.push_str(&format!(", {failed} failed"));
    }
    let names: Vec<&str> = starting.iter().take(MAX_NAMED).map(|name| &**name).collect();
    if !names.is_empty() {
        words.push_str(&format!("; waiting for {}", names.join(", ")));
    }
    match starting.len().saturating_sub(MAX_NAMED) {
        0 => words,
        more => format!("{words} and {more} more"),
    }
}

/// Bytes in MiB, with one decimal.
fn mib(bytes: u64) -> f64 {
    (bytes as f64 / f64::from(1 << 20) * 10.0).round() / 10.0
}

/// What is shown of a call. Dropped, it is gone.
struct CallProgress {
    events: Subscription,
    /// The call; what plugins call on its way has lines nowhere.
    call: Option<String>,
}

impl CallProgress {
    async fn follow(&mut self) -> Infallible {
        while let Some(event) = self.events.next().await {
            // Of what has come together only the last is to be seen.
            let (mut event, mut latest) = (Some(event), None);
            while let Some(one) = event {
                latest = self.words(one).or(latest);
                event = self.events.try_next();
            }
            if let Some(words) = latest {
                show(&words);
            }
        }
        std::future::pending().await
    }

    /// What is shown of an event.
    fn words(&mut self, event: Event) -> Option<String> {
        match event {
            Event::Call(event) => {
                self.call.get_or_insert_with(|| event.call.to_string());
                None
            }
            Event::Progress { call_id, progress, total, message, .. } => {
                // What comes after the point is the number of an attempt.
                let call = call_id.split('.').next();
                (call == self.call.as_deref())
                    .then(|| words(progress, total, message.as_deref()))?
            }
            _ => None,
        }
    }
}

impl Drop for CallProgress {
    fn drop(&mut self) {
        clear();
    }
}

/// How wide the bar is, in characters.
const BAR_WIDTH: usize = 20;

/// How long a message may be, in characters: what is beyond the edge of the terminal is not seen.
const MAX_MESSAGE_LENGTH: usize = 200;

/// How far it is, as people see it; nothing where the plugin gave no numbers that can be shown.
fn words(progress: f64, total: Option<f64>, message: Option<&str>) -> Option<String> {
    let number = number(progress)?;
    let whole =
        total.filter(|total| *total > 0.0).and_then(|total| Some((total, self::number(total)?)));
    let mut words = match whole {
        Some((total, of)) => {
            let share = (progress / total).clamp(0.0, 1.0);
            // Both are small and no less than nothing.
            let (done, percent) = ((share * BAR_WIDTH as f64) as usize, (share * 100.0) as u8);
            let bar = format!("{}{}", "=".repeat(done), " ".repeat(BAR_WIDTH - done));
            format!("[{bar}] {percent:>3}%  {number}/{of}")
        }
        None => number,
    };
    if let Some(message) = message {
        let message: String = one_line(message).chars().take(MAX_MESSAGE_LENGTH).collect();
        words.push_str(&format!("  {message}"));
    }
    Some(words)
}

/// A number with two decimals at most.
fn number(number: f64) -> Option<String> {
    // What is greater is longer than anybody reads.
    let shown = (number.abs() < 1e15).then(|| format!("{number:.2}"))?;
    Some(shown.trim_end_matches('0').trim_end_matches('.').to_string())
}

fn say(text: &str) {
    // Where standard error is closed there is nobody to tell.
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::{starting_words, words};

    #[test]
    fn what_is_shown_of_servers_that_start() {
        let check = |ready, failed, total, starting: &[&str], expected: &str| {
            let starting: Vec<_> = starting.iter().map(|name| (*name).into()).collect();
            assert_eq!(starting_words(ready, failed, total, &starting), expected);
        };
        let one = "starting servers: 0 of 1 are ready; waiting for a";
        check(0, 0, 1, &["a"], one);
        let many = "starting servers: 7 of 40 are ready, 2 failed; waiting for a, b, c and 2 more";
        check(7, 2, 40, &["a", "b", "c", "d", "e"], many);
        check(3, 0, 3, &[], "starting servers: 3 of 3 are ready");
    }

    #[test]
    fn what_is_shown_of_progress() {
        let check = |progress, total, message, expected: Option<&str>| {
            assert_eq!(words(progress, total, message).as_deref(), expected);
        };
        check(1.0, Some(4.0), Some("one"), Some("[=====               ]  25%  1/4  one"));
        check(9.0, Some(4.0), None, Some("[====================] 100%  9/4"));
        check(-1.0, Some(4.0), None, Some("[                    ]   0%  -1/4"));
        check(0.1 + 0.2, None, None, Some("0.3"));
        check(100.0, Some(0.0), Some("a\n\u{1b}[2Jb"), Some("100  a\\n\\u{1b}[2Jb"));
        check(1.0, Some(f64::INFINITY), None, Some("1"));
        check(f64::NAN, None, Some("x"), None);
        check(1e300, None, None, None);
    }
}
