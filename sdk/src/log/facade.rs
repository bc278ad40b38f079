//! The crate `log`, written to the host's log.

use ::log::kv::{Error, Key, Value, VisitSource};
use ::log::{LevelFilter, Log, Metadata, Record};

use super::{Level, write_owned};

struct HostLog;

pub(super) fn install() {
    if ::log::set_logger(&HostLog).is_ok() {
        ::log::set_max_level(LevelFilter::Trace);
    }
}

impl Log for HostLog {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        let mut fields = Fields(vec![("target".into(), record.target().into())]);
        // `Fields` takes whatever there is.
        let _ = record.key_values().visit(&mut fields);
        let level = match record.level() {
            ::log::Level::Trace => Level::Trace,
            ::log::Level::Debug => Level::Debug,
            ::log::Level::Info => Level::Info,
            ::log::Level::Warn => Level::Warn,
            ::log::Level::Error => Level::Error,
        };
        write_owned(level, &record.args().to_string(), &fields.0);
    }

    fn flush(&self) {}
}

struct Fields(Vec<(String, String)>);

impl<'a> VisitSource<'a> for Fields {
    fn visit_pair(&mut self, key: Key<'a>, value: Value<'a>) -> Result<(), Error> {
        self.0.push((key.to_string(), value.to_string()));
        Ok(())
    }
}
