//! What is written with `log` and `tracing` arrives in the host's log, where the features are on.

#![cfg(any(feature = "log", feature = "tracing"))]

use tenon_sdk::log::Level;
use tenon_sdk::testing::{Host, LogLine};

fn logged(write: impl FnOnce()) -> Vec<LogLine> {
    let host = Host::new();
    host.run(async { write() });
    host.logged()
}

fn check(logged: &LogLine, level: Level, message: &str, fields: &[(&str, &str)]) {
    let expected: Vec<_> = fields.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    assert_eq!((logged.level, logged.message.as_str()), (level, message));
    assert_eq!(logged.fields, expected);
}

#[cfg(feature = "log")]
#[test]
fn lines_of_log_are_written() {
    let lines = logged(|| {
        log::warn!(target: "here", "it is {}", "late");
        log::trace!(target: "there", hour = 3; "quite");
    });
    check(&lines[0], Level::Warn, "it is late", &[("target", "here")]);
    check(&lines[1], Level::Trace, "quite", &[("target", "there"), ("hour", "3")]);
}

#[cfg(feature = "tracing")]
#[test]
fn events_of_tracing_are_written_with_their_spans() {
    let lines = logged(|| {
        let outer = tracing::info_span!("outer", who = "Ada");
        let entered = outer.enter();
        tracing::info_span!("inner", n = 1).in_scope(|| {
            tracing::error!(target: "here", why = ?Some(2), "it {}", "fails");
        });
        drop(entered);
        tracing::debug!(target: "here", "alone");
    });
    let fields = [
        ("target", "here"),
        ("span", "outer:inner"),
        ("who", "Ada"),
        ("n", "1"),
        ("why", "Some(2)"),
    ];
    check(&lines[0], Level::Error, "it fails", &fields);
    check(&lines[1], Level::Debug, "alone", &[("target", "here")]);
}
