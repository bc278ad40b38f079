//! The host's log.

pub use crate::bindings::base::tenon::plugin::log::Level;
use crate::imports::log;

/// Writes a message at a level, with fields for machines.
///
/// The host adds the plugin's name, and bounds how much a plugin may write.
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<_> =
        fields.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    log::write(level, message, &fields);
}

macro_rules! levels {
    ($($name:ident = $level:ident),*) => {$(
        #[doc = concat!("Writes a message at the level `", stringify!($name), "`.")]
        pub fn $name(message: impl AsRef<str>) {
            write(Level::$level, message.as_ref(), &[]);
        }
    )*};
}

levels!(trace = Trace, debug = Debug, info = Info, warn = Warn, error = Error);
