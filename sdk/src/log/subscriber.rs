//! The crate `tracing`, written to the host's log: its events, with the spans that they are in.

use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Current, Id, Record};
use tracing_core::{Dispatch, Event, Metadata, Subscriber, dispatcher};

use super::{Level, write_owned};

thread_local! {
    /// The spans that this thread is in, the innermost last.
    static ENTERED: RefCell<Vec<Id>> = const { RefCell::new(Vec::new()) };
}

#[derive(Default)]
struct HostLog {
    /// A span is where its id says; a place is taken again once its span is closed.
    spans: Mutex<Vec<Option<Span>>>,
}

struct Span {
    metadata: &'static Metadata<'static>,
    fields: Fields,
    holders: usize,
}

pub(super) fn install() {
    if !dispatcher::has_been_set() {
        // Another thread may have been faster, with the same.
        let _ = dispatcher::set_global_default(Dispatch::new(HostLog::default()));
    }
}

impl HostLog {
    fn spans(&self) -> MutexGuard<'_, Vec<Option<Span>>> {
        self.spans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<R>(&self, id: &Id, change: impl FnOnce(&mut Option<Span>) -> R) -> Option<R> {
        self.spans().get_mut(place(id)).map(change)
    }
}

/// Ids count from one.
fn place(id: &Id) -> usize {
    id.into_u64() as usize - 1
}

impl Subscriber for HostLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, attributes: &Attributes<'_>) -> Id {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let span = Span { metadata: attributes.metadata(), fields, holders: 1 };
        let mut spans = self.spans();
        let free = spans.iter().position(Option::is_none).unwrap_or(spans.len());
        if free == spans.len() {
            spans.push(None);
        }
        spans[free] = Some(span);
        Id::from_u64(free as u64 + 1)
    }

    fn record(&self, id: &Id, values: &Record<'_>) {
        // Values may log while they are formatted.
        let mut fields = Fields::default();
        values.record(&mut fields);
        self.with(id, |span| span.as_mut().map(|span| span.fields.others.extend(fields.others)));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut said = Fields::default();
        event.record(&mut said);
        let mut fields = vec![("target".to_string(), event.metadata().target().to_string())];
        let mut names = Vec::new();
        for id in ENTERED.with_borrow(Vec::clone) {
            self.with(&id, |span| {
                if let Some(span) = span {
                    names.push(span.metadata.name());
                    fields.extend(span.fields.others.iter().cloned());
                }
            });
        }
        if !names.is_empty() {
            fields.insert(1, ("span".to_string(), names.join(":")));
        }
        fields.extend(said.others);
        let level = match *event.metadata().level() {
            tracing_core::Level::TRACE => Level::Trace,
            tracing_core::Level::DEBUG => Level::Debug,
            tracing_core::Level::INFO => Level::Info,
            tracing_core::Level::WARN => Level::Warn,
            tracing_core::Level::ERROR => Level::Error,
        };
        write_owned(level, &said.message, &fields);
    }

    fn enter(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(id.clone()));
    }

    fn exit(&self, id: &Id) {
        ENTERED.with_borrow_mut(|entered| {
            if let Some(last) = entered.iter().rposition(|entered| entered == id) {
                entered.remove(last);
            }
        });
    }

    fn clone_span(&self, id: &Id) -> Id {
        self.with(id, |span| span.as_mut().map(|span| span.holders += 1));
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        let closes = |span: &mut Option<Span>| {
            let Some(held) = span else { return false };
            held.holders -= 1;
            let is_over = held.holders == 0;
            if is_over {
                *span = None;
            }
            is_over
        };
        self.with(&id, closes).unwrap_or(false)
    }

    fn current_span(&self) -> Current {
        let innermost = ENTERED.with_borrow(|entered| entered.last().cloned());
        let innermost = innermost.and_then(|id| {
            let metadata = self.with(&id, |span| span.as_ref().map(|span| span.metadata));
            Some(Current::new(id, metadata??))
        });
        innermost.unwrap_or_else(Current::none)
    }
}

#[derive(Default)]
struct Fields {
    /// The field of this name.
    message: String,
    others: Vec<(String, String)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            name => self.others.push((name.to_string(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }
}
