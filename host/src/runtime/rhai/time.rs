//! Time in scripts: the current time, spans between two moments, and both as text.
//!
//! The clock is the host's ([`Clock`](crate::services::Clock)), so that a test can set it.

use chrono::{DateTime, Datelike, SecondsFormat, TimeDelta, Timelike, Utc};
use rhai::{Engine, EvalAltResult, FLOAT, INT};
use std::sync::Arc;

use super::error::ScriptResult;
use crate::capability::services::Clock;

/// A moment, to the millisecond; a script's `Time`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScriptTime(DateTime<Utc>);

/// The time between two moments; a script's `Duration`. It is negative where the later is taken from the earlier.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ScriptDuration(TimeDelta);

impl ScriptTime {
    /// The moment in RFC 3339, in UTC.
    pub(super) fn text(self) -> String {
        self.0.to_rfc3339_opts(SecondsFormat::AutoSi, true)
    }

    fn parse(text: &str) -> ScriptResult<Self> {
        match DateTime::parse_from_rfc3339(text) {
            Ok(time) => Ok(Self(time.with_timezone(&Utc))),
            Err(error) => Err(format!(
                "{text:?} is no time of RFC 3339, such as 2026-01-31T08:30:00Z: {error}"
            )
            .into()),
        }
    }

    fn of_unix_ms(milliseconds: INT) -> ScriptResult<Self> {
        DateTime::from_timestamp_millis(milliseconds).map(Self).ok_or_else(out_of_range)
    }
}

impl ScriptDuration {
    /// The seconds, with their fraction.
    pub(super) fn seconds(self) -> FLOAT {
        self.0.num_milliseconds() as FLOAT / 1000.0
    }

    fn of(number: FLOAT, unit_in_milliseconds: FLOAT) -> ScriptResult<Self> {
        let milliseconds = (number * unit_in_milliseconds).round();
        // What is no number at all fits nowhere.
        let fits = milliseconds.abs() < INT::MAX as FLOAT;
        let span = fits.then(|| TimeDelta::try_milliseconds(milliseconds as INT)).flatten();
        span.map(Self).ok_or_else(out_of_range)
    }

    /// The span as people write it: `1d 2h 3m 4.5s`.
    fn text(self) -> String {
        let sign = if self.0 < TimeDelta::zero() { "-" } else { "" };
        let milliseconds = self.0.num_milliseconds().unsigned_abs();
        let (days, rest) = (milliseconds / 86_400_000, milliseconds % 86_400_000);
        let (hours, rest) = (rest / 3_600_000, rest % 3_600_000);
        let (minutes, rest) = (rest / 60_000, rest % 60_000);
        let mut parts = Vec::new();
        for (number, unit) in [(days, "d"), (hours, "h"), (minutes, "m")] {
            if number > 0 {
                parts.push(format!("{number}{unit}"));
            }
        }
        if rest > 0 || parts.is_empty() {
            parts.push(format!("{}s", rest as FLOAT / 1000.0));
        }
        format!("{sign}{}", parts.join(" "))
    }
}

fn out_of_range() -> Box<EvalAltResult> {
    "the time is out of range".into()
}

/// The units that spans are made of, by the functions that make them, in milliseconds.
const UNITS: &[(&str, FLOAT)] = &[
    ("milliseconds", 1.0),
    ("seconds", 1_000.0),
    ("minutes", 60_000.0),
    ("hours", 3_600_000.0),
    ("days", 86_400_000.0),
];

/// Puts time into an engine.
pub(super) fn add(engine: &mut Engine, clock: Arc<dyn Clock>) {
    let now = move || {
        let now = DateTime::<Utc>::from(clock.now()).timestamp_millis();
        ScriptTime::of_unix_ms(now)
    };
    engine
        .register_type_with_name::<ScriptTime>("Time")
        .register_type_with_name::<ScriptDuration>("Duration")
        // The engine's own `timestamp` is an instant, which has no text.
        .register_fn("timestamp", now.clone())
        .register_fn("now", now.clone())
        .register_get("elapsed", move |time: &mut ScriptTime| -> ScriptResult<ScriptDuration> {
            Ok(ScriptDuration(now()?.0 - time.0))
        })
        .register_fn("parse_time", ScriptTime::parse)
        .register_fn("time_of_unix_ms", ScriptTime::of_unix_ms);
    for (name, unit) in UNITS {
        engine
            .register_fn(*name, |number: INT| ScriptDuration::of(number as FLOAT, *unit))
            .register_fn(*name, |number: FLOAT| ScriptDuration::of(number, *unit))
            .register_get(*name, |span: &mut ScriptDuration| {
                span.0.num_milliseconds() as FLOAT / *unit
            });
    }
    engine
        .register_get("unix", |time: &mut ScriptTime| time.0.timestamp())
        .register_get("unix_ms", |time: &mut ScriptTime| time.0.timestamp_millis())
        .register_get("year", |time: &mut ScriptTime| INT::from(time.0.year()))
        .register_get("month", |time: &mut ScriptTime| INT::from(time.0.month()))
        .register_get("day", |time: &mut ScriptTime| INT::from(time.0.day()))
        .register_get("hour", |time: &mut ScriptTime| INT::from(time.0.hour()))
        .register_get("minute", |time: &mut ScriptTime| INT::from(time.0.minute()))
        .register_get("second", |time: &mut ScriptTime| INT::from(time.0.second()))
        .register_get("weekday", |time: &mut ScriptTime| {
            INT::from(time.0.weekday().number_from_monday())
        });
    for name in ["to_string", "to_debug"] {
        engine.register_fn(name, |time: &mut ScriptTime| time.text());
        engine.register_fn(name, |span: &mut ScriptDuration| span.text());
    }
    engine
        .register_fn("-", |a: ScriptTime, b: ScriptTime| ScriptDuration(a.0 - b.0))
        .register_fn("+", |a: ScriptTime, b: ScriptDuration| {
            a.0.checked_add_signed(b.0).map(ScriptTime).ok_or_else(out_of_range)
        })
        .register_fn("-", |a: ScriptTime, b: ScriptDuration| {
            a.0.checked_sub_signed(b.0).map(ScriptTime).ok_or_else(out_of_range)
        })
        .register_fn("+", |a: ScriptDuration, b: ScriptDuration| {
            a.0.checked_add(&b.0).map(ScriptDuration).ok_or_else(out_of_range)
        })
        .register_fn("-", |a: ScriptDuration, b: ScriptDuration| {
            a.0.checked_sub(&b.0).map(ScriptDuration).ok_or_else(out_of_range)
        });
    add_order::<ScriptTime>(engine);
    add_order::<ScriptDuration>(engine);
}

fn add_order<T: rhai::Variant + Copy + Ord>(engine: &mut Engine) {
    engine
        .register_fn("==", |a: T, b: T| a == b)
        .register_fn("!=", |a: T, b: T| a != b)
        .register_fn("<", |a: T, b: T| a < b)
        .register_fn("<=", |a: T, b: T| a <= b)
        .register_fn(">", |a: T, b: T| a > b)
        .register_fn(">=", |a: T, b: T| a >= b);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime};

    /// 2026-01-31T08:30:00.250Z.
    struct FixedClock;

    impl Clock for FixedClock {
        fn now(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH + Duration::from_millis(1_769_848_200_250)
        }
    }

    fn engine() -> Engine {
        let mut engine = Engine::new();
        add(&mut engine, Arc::new(FixedClock));
        engine
    }

    #[test]
    fn times_and_spans_are_computed_with_and_printed() {
        let engine = engine();
        let check = |script: &str, expected: &str| {
            let answer = engine.eval::<rhai::Dynamic>(&format!("`${{{script}}}`"));
            assert_eq!(answer.expect(script).to_string(), expected, "{script}");
        };
        check("now()", "2026-01-31T08:30:00.250Z");
        check("timestamp() == now()", "true");
        check("now() + hours(1.5)", "2026-01-31T10:00:00.250Z");
        check("now() - days(31)", "2025-12-31T08:30:00.250Z");
        check("parse_time(\"2026-01-31T09:30:00+02:00\")", "2026-01-31T07:30:00Z");
        check("now() - parse_time(\"2026-01-30T08:29:59Z\")", "1d 1.25s");
        check("parse_time(\"2026-01-31T08:00:00.250Z\") - now()", "-30m");
        check("parse_time(\"2026-01-31T08:00:00.250Z\").elapsed", "30m");
        check("now() > parse_time(\"2026-01-01T00:00:00Z\")", "true");
        check("seconds(90) + milliseconds(500)", "1m 30.5s");
        check("seconds(0)", "0s");
        check("(hours(2) - minutes(30)).minutes", "90.0");
        check("[now().year, now().month, now().day, now().weekday]", "[2026, 1, 31, 6]");
        check("[now().hour, now().minute, now().second]", "[8, 30, 0]");
        check("[now().unix, now().unix_ms]", "[1769848200, 1769848200250]");
        check("time_of_unix_ms(0)", "1970-01-01T00:00:00Z");
    }

    #[test]
    fn what_is_no_time_is_an_error() {
        let engine = engine();
        let check = |script: &str, expected: &str| {
            let error = engine.eval::<rhai::Dynamic>(script).expect_err(script).to_string();
            assert!(error.contains(expected), "{script}: {error}");
        };
        check("parse_time(\"tomorrow\")", "\"tomorrow\" is no time of RFC 3339");
        check("now() + days(1e12)", "out of range");
        check("days(1e300)", "out of range");
        check("seconds(0.0 / 0.0)", "out of range");
        check("time_of_unix_ms(9223372036854775807)", "out of range");
        check("days(100000000000) + days(100000000000)", "out of range");
    }
}
