//! How figures are written in tables.

use std::time::Duration;

/// A time, in the unit that suits it.
pub(crate) fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..10.0 => format!("{micros:.2} µs"),
        ..100.0 => format!("{micros:.1} µs"),
        ..1e3 => format!("{micros:.0} µs"),
        ..1e4 => format!("{:.2} ms", micros / 1e3),
        ..1e5 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.0} ms", micros / 1e3),
    }
}

/// How often something can be done in a second that takes so long.
pub(crate) fn rate(time: Duration) -> String {
    format!("{:.0}/s", time.as_secs_f64().recip())
}

/// An amount of memory.
pub(crate) fn memory(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}

/// How many times as much as Tenon's it is.
pub(crate) fn ratio(of: f64, tenon: f64) -> String {
    format!("{:.2}", of / tenon)
}

/// The same of times.
pub(crate) fn times(of: Duration, tenon: Duration) -> String {
    ratio(of.as_secs_f64(), tenon.as_secs_f64())
}
