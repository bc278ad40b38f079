//! For tests: what is logged.

use std::io;
use std::sync::{Arc, LazyLock, Mutex};
use tracing::Dispatch;

#[derive(Clone, Default)]
struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Subscribers that hear nothing and are always there. With one alone, tracing asks only that of the thread that
/// comes to a message first whether anybody wants it, and another test's thread has none.
static ALWAYS_THERE: LazyLock<[Dispatch; 2]> = LazyLock::new(|| {
    [(), ()].map(|()| {
        let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN);
        Dispatch::new(subscriber.with_writer(io::sink).finish())
    })
});

/// What is logged on this thread, warnings and errors, a line for each.
pub fn logged(work: impl FnOnce()) -> String {
    LazyLock::force(&ALWAYS_THERE);
    let kept = LogBuffer::default();
    let writer = kept.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::WARN)
        .without_time()
        .with_target(false)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, work);
    let kept = kept.0.lock().expect("nobody panicked").clone();
    String::from_utf8(kept).expect("it is text")
}
