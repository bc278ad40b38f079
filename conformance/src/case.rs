//! What is expected of a host, as an embedder reads it.

use serde::Serialize;
use std::fmt;

/// What a plugin is after.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Capability {
    /// Anything at all, with nothing granted.
    Nothing,
    /// Files.
    Filesystem,
    /// HTTP, and connections of any other kind.
    Network,
    /// Variables of the environment.
    Environment,
    /// Secrets, for itself and for who reads its answers, its log and the record of calls.
    Secrets,
    /// Messages.
    Messaging,
    /// What the host remembers.
    Memory,
    /// Language models.
    Providers,
    /// Other tools.
    Tools,
    /// More of the machine than its share.
    Limits,
}

/// The way on which it tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[non_exhaustive]
pub enum ApiSurface {
    /// The standard library of a component.
    #[serde(rename = "std")]
    Std,
    /// WASI 0.2.
    #[serde(rename = "wasi-0.2")]
    Wasi02,
    /// WASI 0.3.
    #[serde(rename = "wasi-0.3")]
    Wasi03,
    /// An interface of `tenon:plugin` that a component imports.
    #[serde(rename = "import")]
    Import,
    /// A function of a Rhai script.
    #[serde(rename = "rhai")]
    Rhai,
    /// The code of a component, on an instance for this one call.
    #[serde(rename = "component")]
    Component,
    /// The code of a component, on an instance that calls share.
    #[serde(rename = "shared-component")]
    SharedComponent,
}

/// One thing that is tried on a host, and what must come of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ConformanceCase {
    /// Names it: capability, access and what is tried, with slashes between them.
    pub name: String,
    /// What the plugin is after.
    pub capability: Capability,
    /// The way on which it tries.
    pub access: ApiSurface,
    /// What it does.
    pub tried: String,
    /// What must come of it.
    pub expected: String,
    /// What shows that it could have come out otherwise: what must come of it where it is granted, or
    /// where it is not.
    pub control: String,
}

impl ConformanceCase {
    pub(crate) fn new(
        capability: Capability,
        access: ApiSurface,
        tried: String,
        expected: String,
        control: String,
    ) -> Self {
        let name = format!("{capability}/{access}/{tried}");
        Self { name, capability, access, tried, expected, control }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nothing => "nothing",
            Self::Filesystem => "filesystem",
            Self::Network => "network",
            Self::Environment => "environment",
            Self::Secrets => "secrets",
            Self::Messaging => "messaging",
            Self::Memory => "memory",
            Self::Providers => "providers",
            Self::Tools => "tools",
            Self::Limits => "limits",
        })
    }
}

impl fmt::Display for ApiSurface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Std => "std",
            Self::Wasi02 => "wasi-0.2",
            Self::Wasi03 => "wasi-0.3",
            Self::Import => "import",
            Self::Rhai => "rhai",
            Self::Component => "component",
            Self::SharedComponent => "shared-component",
        })
    }
}
