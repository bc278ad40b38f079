//! W3C Trace Context: continuing the trace of a caller.
//!
//! Source: <https://www.w3.org/TR/trace-context/>, version 00 of `traceparent`.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The place of a call in a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceParent {
    trace: u128,
    parent: u64,
    flags: u8,
}

impl TraceParent {
    /// Reads a `traceparent`. A version that is not known is read as far as this one goes, as the
    /// specification has it; what is no `traceparent` begins no trace.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, parent, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let lengths = (version.len(), trace.len(), parent.len(), flags.len());
        let is_hex =
            |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if lengths != (2, 32, 16, 2) || ![version, trace, parent, flags].into_iter().all(is_hex) {
            return None;
        }
        if version == "ff" || version == "00" && parts.next().is_some() {
            return None;
        }
        let trace = u128::from_str_radix(trace, 16).ok().filter(|trace| *trace != 0)?;
        let parent = u64::from_str_radix(parent, 16).ok().filter(|parent| *parent != 0)?;
        Some(Self { trace, parent, flags: u8::from_str_radix(flags, 16).ok()? })
    }

    /// The same trace, one call deeper.
    pub(crate) fn child(self) -> Self {
        static STATE: OnceLock<RandomState> = OnceLock::new();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let parent = STATE.get_or_init(RandomState::new).hash_one(number).max(1);
        Self { parent, ..self }
    }

    /// The trace's id, in hexadecimal.
    pub(crate) fn trace_id(&self) -> String {
        format!("{:032x}", self.trace)
    }

    /// The id of the call itself, in hexadecimal.
    pub(crate) fn span_id(&self) -> String {
        format!("{:016x}", self.parent)
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace, parent, flags } = self;
        write!(f, "00-{trace:032x}-{parent:016x}-{flags:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn what_is_no_traceparent_begins_no_trace() {
        let check = |text: &str, expected: bool| {
            assert_eq!(TraceParent::parse(text).is_some(), expected, "{text}");
        };
        check(EXAMPLE, true);
        check("cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", true);
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later", false);
        check("ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", false);
        check("00-00000000000000000000000000000000-00f067aa0ba902b7-01", false);
        check("00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", false);
        check("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", false);
        check("00-4bf9-00f067aa0ba902b7-01", false);
        check("", false);
    }

    #[test]
    fn a_child_is_in_the_same_trace_and_has_a_place_of_its_own() {
        let parent = TraceParent::parse(EXAMPLE).unwrap();
        assert_eq!(parent.to_string(), EXAMPLE);
        let (one, other) = (parent.child(), parent.child());
        assert_eq!(one.trace_id(), parent.trace_id());
        assert_ne!(one.span_id(), parent.span_id());
        assert_ne!(one.span_id(), other.span_id());
        assert!(one.to_string().ends_with("-01"));
    }
}
