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
/// Messages that the host sends, to channels.
pub const MESSAGING: &str = "messaging";
/// What the host remembers.
pub const MEMORY: &str = "memory";
/// Other plugins' tools.
pub const TOOLS: &str = "tools";
/// Language models.
pub const PROVIDERS: &str = "providers";

/// What the plugin keeps between calls, by its scope.
pub const STATE: &str = "state";

/// The scopes of what a plugin keeps, the narrowest first.
pub const STATE_SCOPES: &[&str] = &["session", "project", "user"];

/// Questions to the user.
pub const USER: &str = "user";

/// How the user can be asked.
const USER_USES: &[&str] = &["ask", "ask-url"];

/// What can be done with the host's memory.
const MEMORY_USES: &[&str] = &["search"];

/// The packages of WASI that every plugin gets, but for clocks.
const WASI: &[&str] = &["wasi:io", "wasi:random", "wasi:cli", "wasi:filesystem", "wasi:sockets"];

/// The package of clocks, which the bridge to a server elsewhere gets as well.
const CLOCKS: &[&str] = &["wasi:clocks"];

/// One capability.
pub struct CapabilityRow {
    /// Its name; for one that is lent on request, the key of the manifest's `[capabilities]`.
    pub name: &'static str,
    /// The imports it stands for: packages (`wasi:http`) and interfaces (`tenon:plugin/log`),
    /// without versions.
    pub imports: &'static [&'static str],
    /// Imports of another capability, which all plugins get, through which it is used.
    pub through: &'static [&'static str],
    /// Who gets it.
    pub availability: Eligibility,
    /// Whether bridges to MCP servers get it without a request: what any server may ask its client for. The client says
    /// what it offers.
    pub is_to_bridges: bool,
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
pub static CAPABILITIES: &[CapabilityRow] = &[
    CapabilityRow {
        name: "log",
        imports: &["tenon:plugin/log"],
        through: &[],
        availability: Eligibility::All,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "config",
        imports: &["tenon:plugin/config"],
        through: &[],
        availability: Eligibility::All,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "notify",
        imports: &["tenon:plugin/notify"],
        through: &[],
        availability: Eligibility::All,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "clocks",
        imports: CLOCKS,
        through: &[],
        availability: Eligibility::PluginsAndRemoteBridge,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "wasi",
        imports: WASI,
        through: &[],
        availability: Eligibility::Plugins,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "stdio-child",
        imports: &["tenon:bridge/stdio-child"],
        through: &[],
        availability: Eligibility::StdioBridge,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: "mcp-server",
        imports: &["tenon:bridge/mcp-server"],
        through: &[],
        availability: Eligibility::Bridges,
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: MESSAGING,
        imports: &["tenon:plugin/messaging"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Patterns,
            line: r#"messaging = ["*"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: MEMORY,
        imports: &["tenon:plugin/memory"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Among(MEMORY_USES),
            line: r#"memory = ["search"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: USER,
        imports: &["tenon:plugin/user"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Among(USER_USES),
            line: r#"user = ["ask"]"#,
        },
        is_to_bridges: true,
        is_available: true,
    },
    CapabilityRow {
        name: STATE,
        imports: &["wasi:keyvalue"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Among(STATE_SCOPES),
            line: r#"state = ["project"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: PROVIDERS,
        imports: &["tenon:plugin/inference"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Patterns,
            line: r#"providers = ["*"]"#,
        },
        is_to_bridges: true,
        is_available: true,
    },
    CapabilityRow {
        name: TOOLS,
        imports: &["tenon:plugin/host-tools"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Patterns,
            line: r#"tools = ["*"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: FILESYSTEM,
        imports: &[],
        through: &["wasi:filesystem"],
        availability: Eligibility::OnRequest {
            values: ValueKind::Paths,
            line: r#"filesystem = ["read:~/notes/**"]"#,
        },
        is_to_bridges: false,
        is_available: cfg!(unix),
    },
    CapabilityRow {
        name: NETWORK,
        imports: &["wasi:http"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Urls,
            line: r#"network = ["https://api.example.com/*"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: ENVIRONMENT,
        imports: &[],
        through: &["wasi:cli/environment"],
        availability: Eligibility::OnRequest {
            values: ValueKind::Names,
            line: r#"environment = ["LANG"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
    CapabilityRow {
        name: SECRETS,
        imports: &["tenon:plugin/secrets"],
        through: &[],
        availability: Eligibility::OnRequest {
            values: ValueKind::Names,
            line: r#"secrets = ["api-key"]"#,
        },
        is_to_bridges: false,
        is_available: true,
    },
];

impl CapabilityRow {
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
