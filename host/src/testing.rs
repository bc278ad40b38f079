//! Single steps, for the benchmarks and tests of the whole. It is no part of the API, and only there with the feature
//! `testing`.

use http::Method;
use std::sync::Arc;
use tenon_config::HostEnvironment;
use tenon_config::admit::Admitted;
use tenon_config::grant::UrlGrant;
use tenon_types::{CallContext, Json};
use url::Url;

use crate::capability::network::NetworkGrants;
use crate::load::Loader;
use crate::observe::PluginNotifications;
use crate::{Allocation, RegisteredPlugin, load};

/// The component of the bridge to a server that is a child.
pub static BRIDGE: &[u8] = load::BRIDGE;

/// The component of the bridge to a server elsewhere.
pub static REMOTE_BRIDGE: &[u8] = load::REMOTE_BRIDGE;

/// The third step by itself.
pub struct BenchLoader(Loader);

impl BenchLoader {
    /// Sets up an engine.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be set up.
    pub fn new(allocation: Allocation, host_environment: &HostEnvironment) -> Self {
        let notifications = PluginNotifications::default();
        let loader = Loader::new(allocation, host_environment, notifications, Arc::default());
        Self(loader.expect("the engine is set up"))
    }

    /// Loads a plugin and lets it go.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be loaded.
    pub fn load(&self, admitted: Admitted) {
        drop(self.0.load(admitted).expect("the plugin loads"));
    }
}

/// Calls a tool without any of the steps around it, of a plugin that may have been replaced. Returns whether the
/// plugin answered.
pub async fn call_directly(
    plugin: &RegisteredPlugin,
    tool: &str,
    arguments: Json,
    context: CallContext,
) -> bool {
    plugin.loaded().plugin().call_tool(tool, arguments, context).await.is_ok()
}

/// What a plugin was granted of the web, by itself.
pub struct UrlGrants(NetworkGrants);

impl UrlGrants {
    /// The rules for a plugin that requested these grants, all of which were approved.
    pub fn new(grants: impl IntoIterator<Item = UrlGrant>) -> Self {
        Self(NetworkGrants::new(vec![grants.into_iter().map(Arc::new).collect()]))
    }

    /// Whether a `GET` of this URL may be sent, as far as the URL tells.
    ///
    /// # Panics
    ///
    /// Panics if it is no URL.
    pub fn allows_get(&self, url: &str) -> bool {
        self.0.allow(&Method::GET, &Url::parse(url).expect("it is a URL"))
    }
}
