//! The host's log.
//!
//! What is written with the crates `log` and `tracing` arrives there as well when the SDK has the
//! feature of that name: [`plugin!`](crate::plugin) and `testing::Host` see to it before any function
//! of the plugin runs.
//!
//! ```toml
//! tenon-sdk = { version = "0.1", features = ["log"] }
//! log = "0.4"
//! ```
//!
//! The message is the line's own, and its fields are those of the line, with the `target` and, of
//! `tracing`, the `span` and what it says. Both features make a component larger, and so do the
//! formatted values of either crate; the functions here cost next to nothing.

#[cfg(feature = "log")]
mod facade;
#[cfg(feature = "tracing")]
mod subscriber;

pub use crate::bindings::base::tenon::plugin::log::Level;
use crate::imports::log;

/// Writes a message at a level, with fields for machines.
///
/// The host adds the plugin's name, and bounds how much a plugin may write.
pub fn write(level: Level, message: &str, fields: &[(&str, &str)]) {
    let fields: Vec<_> =
        fields.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    write_owned(level, message, &fields);
}

fn write_owned(level: Level, message: &str, fields: &[(String, String)]) {
    log::write(level, message, fields);
}

/// Has the crates `log` and `tracing` write here, as far as the features say. Whoever was there
/// first stays.
#[doc(hidden)]
pub fn install() {
    #[cfg(feature = "log")]
    facade::install();
    #[cfg(feature = "tracing")]
    subscriber::install();
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
