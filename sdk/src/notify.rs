//! News for the host. None of it answers, and the host may thin it out.
//!
//! How far a call has come is said with [`Context::progress`](crate::Context::progress).

use crate::imports::notify;

/// Says that the plugin lists other tools, resources, prompts or models than before. The host lists them
/// again soon.
pub fn contributions_changed() {
    notify::contributions_changed();
}

/// Says that the resource with this URI has changed. The host tells all who listen;
/// [`resource::is_subscribed`](crate::resource::is_subscribed) saves looking for changes of which nobody wants to
/// know.
pub fn resource_updated(uri: &str) {
    notify::resource_updated(uri);
}
