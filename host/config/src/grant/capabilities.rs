//! The table of capabilities: a row says which imports a capability stands for, who gets it and what its values
//! are. What it does is in a file of `host/src/capability`.

use super::ValueKind;

/// Files.
pub const FILESYSTEM: &str = "filesystem";
/// HTTP.
pub const NETWORK: &str = "network";
/// Variables of the host's environment.
pub const ENVIRONMENT: &str = "environment";
/// Values that the host keeps.
pub const SECRETS: &str = "secrets";
/// What the host does for people.
pub const SERVICES: &str = "services";
/// Other plugins' tools.
pub const TOOLS: &str = "tools";
/// Language models.
pub const PROVIDERS: &str = "providers";

/// The services that there are, and who gets a message.
const SERVICE_NAMES: &[&str] = &["send-message", "send-message:*", "search-memory"];

/// The packages of WASI that every plugin gets, but for clocks.
const WASI: &[&str] = &["wasi:io", "wasi:random", "wasi:cli", "wasi:filesystem", "wasi:sockets"];

/// The package of clocks, which the bridge to a server elsewhere gets as well.
const CLOCKS: &[&str] = &["wasi:clocks"];

/// One capability.
pub struct Capability {
    /// Its name; for one that is lent on request, the key of the manifest's `[capabilities]`.
    pub name: &'static str,
    /// The imports it stands for: packages (`wasi:http`) and interfaces (`tenon:plugin/log`),
    /// without versions.
    pub imports: &'static [&'static str],
    /// Imports of another capability, which all plugins get, through which it is used.
    pub through: &'static [&'static str],
    /// Who gets it.
    pub availability: Eligibility,
    /// Whether this host can lend it on this system.
    is_available: bool,
}

/// Who gets a capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Eligibility {
    /// Every component. It reaches nothing outside of the host.
    All,
    /// Every plugin, and no bridge.
    Plugins,
    /// Every plugin, and the bridge to a server elsewhere.
    PluginsAndRemoteBridge,
    /// The bridges to MCP servers, and no other component.
    Bridges,
    /// The bridge to an MCP server that is a child, and no other component.
    StdioBridge,
    /// Plugins whose manifest requests it and whose user approved.
    OnRequest {
        /// What its values are.
        values: ValueKind,
        /// An example of the line that requests it.
        line: &'static str,
    },
}

impl Eligibility {
    /// Whether every plugin gets it, without a request.
    pub fn is_to_every_plugin(self) -> bool {
        matches!(self, Self::All | Self::Plugins | Self::PluginsAndRemoteBridge)
    }
}

/// All capabilities that the host knows.
pub static CAPABILITIES: &[Capability] = &[
    Capability {
        name: "log",
        imports: &["tenon:plugin/log"],
        through: &[],
        availability: Eligibility::All,
        is_available: true,
    },
    Capability {
        name: "config",
        imports: &["tenon:plugin/config"],
        through: &[],
        availability: Eligibility::All,
        is_available: true,
    },
    Capability {
        name: "notify",
        imports: &["tenon:plugin/notify"],
        through: &[],
        availability: Eligibility::All,
        is_available: true,
    },
    Capability {
        name: "clocks",
        imports: CLOCKS,
        through: &[],
        availability: Eligibility::PluginsAndRemoteBridge,
        is_available: true,
    },
    Capability {
        name: "wasi",
        imports: WASI,
        through: &[],
        availability: Eligibility::Plugins,
        is_available: true,
    },
    Capability {
        name: "stdio-child",
        imports: &["tenon:plugin/stdio-child"],
        through: &[],
        availability: Eligibility::StdioBridge,
        is_available: true,
    },
    Capability {
        name: "mcp-host",
        imports: &["tenon:plugin/mcp-host"],
        through: &[],
        availability: Eligibility::Bridges,
        is_available: true,
    },
    Capability {
        name: SERVICES,
        imports: &["tenon:plugin/services"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Among(SERVICE_NAMES),
            line: r#"services = ["send-message"]"#,
        },
        is_available: true,
    },
    Capability {
        name: PROVIDERS,
        imports: &["tenon:plugin/inference"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Patterns,
            line: r#"providers = ["*"]"#,
        },
        is_available: true,
    },
    Capability {
        name: TOOLS,
        imports: &["tenon:plugin/tools"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Patterns,
            line: r#"tools = ["*"]"#,
        },
        is_available: true,
    },
    Capability {
        name: FILESYSTEM,
        imports: &[],
        through: &["wasi:filesystem"],
        availability: Eligibility::OnRequest {
            values: ValueKind::Paths,
            line: r#"filesystem = ["read:~/notes/**"]"#,
        },
        is_available: cfg!(unix),
    },
    Capability {
        name: NETWORK,
        imports: &["wasi:http"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Urls,
            line: r#"network = ["https://api.example.com/*"]"#,
        },
        is_available: true,
    },
    Capability {
        name: ENVIRONMENT,
        imports: &[],
        through: &["wasi:cli/environment"],
        availability: Eligibility::OnRequest {
            values: ValueKind::Names,
            line: r#"environment = ["LANG"]"#,
        },
        is_available: true,
    },
    Capability {
        name: SECRETS,
        imports: &["tenon:plugin/secrets"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Names,
            line: r#"secrets = ["api-key"]"#,
        },
        is_available: true,
    },
];

impl Capability {
    /// The capability of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        CAPABILITIES.iter().find(|capability| capability.name == name)
    }

    /// The capability that an import such as `wasi:http/types@0.2.4` belongs to.
    pub fn of_import(import: &str) -> Option<&'static Self> {
        let interface = import.split('@').next().unwrap_or(import);
        let package = interface.split('/').next().unwrap_or(interface);
        { CAPABILITIES.iter() }.find(|capability| {
            capability.imports.iter().any(|name| *name == interface || *name == package)
        })
    }

    /// Whether a host of this version can lend it.
    pub fn can_be_lent(&self) -> bool {
        self.is_available
    }
}
