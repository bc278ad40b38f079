//! What a script tells while it runs: how far a call has come, and that resources or contributions have changed.

use rhai::{Engine, FLOAT, INT};

use super::error::ScriptResult;
use super::running_call::with_host;
use crate::call::mask::Unmasked;
use crate::capability::notify::ProgressingCall;

/// Puts what tells news into an engine.
pub(super) fn add(engine: &mut Engine) {
    engine
        .register_fn("progress", |done: INT| progress(done as FLOAT, None, None))
        .register_fn("progress", |done: FLOAT| progress(done, None, None))
        .register_fn("progress", |done: INT, total: INT| {
            progress(done as FLOAT, Some(total as FLOAT), None)
        })
        .register_fn("progress", |done: FLOAT, total: FLOAT| progress(done, Some(total), None))
        .register_fn("progress", |done: INT, total: INT, message: &str| {
            progress(done as FLOAT, Some(total as FLOAT), Some(message))
        })
        .register_fn("progress", |done: FLOAT, total: FLOAT, message: &str| {
            progress(done, Some(total), Some(message))
        })
        .register_fn("resource_updated", |uri: &str| {
            let uri = Unmasked::new(uri.to_string());
            with_host(|host| host.news.resource_updated(&host.plugin, &host.log, uri))
        })
        .register_fn("contributions_changed", || {
            with_host(|host| host.news.contributions_changed(&host.plugin))
        });
}

fn progress(done: FLOAT, total: Option<FLOAT>, message: Option<&str>) -> ScriptResult<()> {
    let message = Unmasked::new(message.map(str::to_string));
    with_host(|host| {
        let Some(call_id) = &host.call_id else { return };
        let call = ProgressingCall { id: call_id, client: host.caller.progress_client() };
        host.news.progress(&host.plugin, &host.log, call, done, total, message);
    })
}
