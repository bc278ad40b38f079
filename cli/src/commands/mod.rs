pub(crate) mod skills;
pub(crate) mod state;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod uninstall;
pub(crate) mod watch;
