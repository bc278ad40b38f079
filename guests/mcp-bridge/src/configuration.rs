//! What the host tells the bridge, as the plugin's configuration.

use mcp_client::{Era, Features, HandshakeMode, MODERN, Root, Settings};
use serde::Deserialize;

use crate::bindings::tenon::plugin::config;

/// See the module.
#[derive(Deserialize)]
#[serde(default)]
pub(crate) struct Configuration {
    /// How long the handshake may take, in milliseconds.
    pub(crate) startup_timeout_ms: u64,
    /// How long a request may take that has no limit of its own, in milliseconds.
    request_timeout_ms: u64,
    /// Whether the server is told on whose behalf it is called.
    pub(crate) passthrough: bool,
    protocol: HandshakeMode,
    /// The revision in which this server was last spoken to.
    revision: Option<String>,
    /// Whether there is somebody to fill in forms, to open pages, and a model to answer.
    forms: bool,
    pages: bool,
    sampling: bool,
    /// Whether clients name their roots, where there are none here.
    client_roots: bool,
    roots: Vec<Root>,
    log_level: Option<String>,
    /// How long the server may be silent before it is asked whether it lives, in milliseconds.
    ping_ms: Option<u64>,
    /// Where the server is, if it is no child.
    #[cfg(feature = "http")]
    pub(crate) http: crate::transport::RemoteSettings,
}

impl Default for Configuration {
    fn default() -> Self {
        Self {
            startup_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            passthrough: false,
            protocol: HandshakeMode::Auto,
            revision: None,
            forms: false,
            pages: false,
            sampling: false,
            client_roots: false,
            roots: Vec::new(),
            log_level: None,
            ping_ms: None,
            #[cfg(feature = "http")]
            http: Default::default(),
        }
    }
}

impl Configuration {
    pub(crate) fn read() -> Self {
        serde_json::from_str(&config::all()).unwrap_or_default()
    }

    /// Which era is tried first. Requests over HTTP do not end a server that does not know them.
    #[cfg(feature = "http")]
    fn order(&self) -> HandshakeMode {
        match self.protocol {
            HandshakeMode::Auto if self.http.speaks_streamable_http() => HandshakeMode::Probe,
            protocol => protocol,
        }
    }

    /// Which era is tried first.
    #[cfg(not(feature = "http"))]
    fn order(&self) -> HandshakeMode {
        self.protocol
    }

    /// What of it is for the client.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            name: "tenon".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            timeout: self.request_timeout_ms,
            protocol: self.order(),
            era: self.revision.as_deref().map(|revision| match revision {
                MODERN => Era::Modern,
                _ => Era::Legacy,
            }),
            features: Features {
                forms: self.forms,
                pages: self.pages,
                sampling: self.sampling,
                roots: self.client_roots,
            },
            roots: self.roots.clone(),
            log_level: self.log_level.clone(),
            ping: self.ping_ms,
        }
    }
}
