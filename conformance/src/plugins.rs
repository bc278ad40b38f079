//! The plugins that are let loose, and the two hosts that they are let loose on.

use std::fmt::Write;
use std::time::Duration;
use tenon_host::Limits;

use crate::rhai_scripts;

/// A host that the suite builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServicesSource {
    /// As its embedder has it: with that approver and that network, where the embedder brings them.
    Theirs,
    /// The same, with an approver, secrets and a network that the suite has put in last.
    Ours,
}

/// A hostile plugin.
pub(crate) struct Hostile {
    /// Its id, without what all begin with.
    pub(crate) id: &'static str,
    pub(crate) code: Code,
    /// Its `[capabilities]`.
    capabilities: String,
    /// Its `[limits]`, where they are not those of the host.
    limits: Option<Limits>,
}

/// What a plugin is made of.
#[derive(Clone, Copy)]
pub(crate) enum Code {
    Component(&'static [u8]),
    /// The same on an instance that calls share.
    Shared(&'static [u8]),
    /// A component that does nothing but import an interface.
    Importing(&'static str),
    Script(&'static str),
}

/// Plugins that import what nobody granted them, and the capability that it belongs to; nothing,
/// where no host has it.
pub(crate) const IMPORTING: &[(&str, &str, Option<&str>)] = &[
    ("imports-messaging", "tenon:plugin/messaging@0.2.0", Some("messaging")),
    ("imports-memory", "tenon:plugin/memory@0.2.0", Some("memory")),
    ("imports-inference", "tenon:plugin/inference@0.2.0", Some("providers")),
    ("imports-tools", "tenon:plugin/host-tools@0.2.0", Some("tools")),
    ("imports-secrets", "tenon:plugin/secrets@0.2.0", Some("secrets")),
    ("imports-stdio-child", "tenon:bridge/stdio-child@0.2.0", Some("stdio-child")),
    ("imports-http-2", "wasi:http/outgoing-handler@0.2.3", Some("network")),
    ("imports-http-3", "wasi:http/client@0.3.0", Some("network")),
    ("imports-processes", "tenon:plugin/processes@0.2.0", None),
    ("imports-user", "tenon:plugin/user@0.2.0", Some("user")),
    ("imports-keyvalue", "wasi:keyvalue/store@0.2.0-draft2", Some("state")),
    ("imports-blobstore", "wasi:blobstore/blobstore@0.2.0", None),
];

const CALLER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/caller.wasm"));
const ESCAPE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/escape.wasm"));
const ESCAPE_HTTP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/escape_http.wasm"));
const EVERYTHING: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/everything_rust.wasm"));
const HOARD_TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/hoard_table.wasm"));
const MISBEHAVE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/misbehave.wasm"));

/// What the ids of all of them begin with, so that they meet no other plugin of the host.
pub(crate) const PREFIX: &str = "conformance-";

/// The id of a plugin in full.
pub(crate) fn id(short: &str) -> String {
    format!("{PREFIX}{short}")
}

/// What a plugin of [`LIMITED`] may use of everything but what it is about: far more than it comes
/// to, also on a machine that has much else to do.
pub(crate) fn ample() -> Limits {
    Limits {
        memory: 128 << 20,
        table_elements: 50_000,
        cpu: Duration::from_secs(40),
        wall: Duration::from_secs(50),
        transfer: 64 << 20,
        download: 8 << 20,
        output: 2 << 20,
        host_calls: 1_000_000,
        log_rate: LOG_RATE as u32,
        ..Limits::default()
    }
}

/// How many lines a second may come to the log, and how many at once.
pub(crate) const LOG_RATE: usize = 20;
pub(crate) const LOG_BURST: usize = 5 * LOG_RATE;

/// The limits of plugins that are about one: by the beginning of their ids.
pub(crate) fn limits_of(about: &str) -> Limits {
    let ample = ample();
    match about {
        "cpu" | "greedy" => Limits { cpu: Duration::from_millis(300), ..ample },
        "wall" => Limits { wall: Duration::from_secs(1), ..ample },
        "memory" => Limits { memory: 32 << 20, ..ample },
        "table" => Limits { table_elements: 5_000, ..ample },
        "transfer" => Limits { transfer: 8 << 20, ..ample },
        "output" => Limits { output: 64 << 10, ..ample },
        "calls" => Limits { host_calls: 5_000, ..ample },
        "download" => Limits { download: 1 << 20, wall: Duration::from_secs(5), ..ample },
        _ => ample,
    }
}

/// Plugins that are about one limit: what it is, and the ids of those who run into it as a fresh
/// component, as a shared one, and as a script.
pub(crate) const LIMITED: &[(&str, [&str; 3])] = &[
    ("cpu", ["cpu", "cpu-shared", "cpu-script"]),
    ("wall", ["wall", "wall-shared", "wall-script"]),
    ("memory", ["memory", "memory-shared", "memory-script"]),
    ("table", ["table", "table-shared", "table-script"]),
    ("transfer", ["transfer", "transfer-shared", "transfer-script"]),
    ("output", ["output", "output-shared", "output-script"]),
    ("calls", ["calls", "calls-shared", "calls-script"]),
    ("log", ["log", "log-shared", "log-script"]),
    ("console", ["console", "console-shared", "console-script"]),
    ("plain", ["plain", "plain-shared", "plain-script"]),
    ("plain-table", ["plain-table", "plain-table-shared", "plain-table-script"]),
];

const FILES: &str = r#"filesystem = [
    "readwrite:{fixture}/pub/**",
    "readwrite:{fixture}/own/**",
    "readwrite:{fixture}/code/**",
    "readwrite:{fixture}/code/named/.git/**",
    "read:{fixture}/ro/**",
    "read:{fixture}/mixed/*.md",
    "write:{fixture}/log/*",
]
"#;

/// All that is tried on files: what is protected by its name, too.
const FREE_FILES: &str = r#"filesystem = [
    "read:/**",
    "read:/dev/zero",
    "read:/proc/self/comm",
    "read:/proc/self/fd/**",
    "readwrite:{fixture}/**",
    "readwrite:{fixture}/code/.bashrc",
    "readwrite:{fixture}/code/.env",
    "readwrite:{fixture}/code/.git/**",
    "readwrite:{fixture}/code/.GIT",
    "readwrite:{fixture}/code/.github/**",
    "readwrite:{fixture}/code/.tenon",
    "readwrite:{fixture}/code/.vscode/**",
    "readwrite:{fixture}/code/HEAD",
    "readwrite:{fixture}/code/nested/tenon.toml",
    "readwrite:{fixture}/code/plain/.envrc",
    "readwrite:{fixture}/code/plain/.mcp.json",
    "readwrite:{fixture}/code/plain/CLAUDE.md",
    "readwrite:{fixture}/code/plain/plugin.toml",
    "readwrite:{fixture}/code/plain/y/tenon.toml",
    "readwrite:{fixture}/code/tenon.toml",
    "readwrite:{fixture}/code/x/tenon.toml",
    # What stands before a wildcard is resolved, and this is a link.
    "readwrite:{fixture}/cod*/.config",
]
"#;

const ENVIRONMENT: &str = r#"environment = ["SEEN", "SEEN_TOKEN", "UNSET"]
"#;

const WEB: &str = r#"network = [
    "http://{server}/ok/*",
    "http://{server}/redirect",
    "GET http://{server}/echo",
]
"#;

/// All that is tried on this machine.
const FREE_WEB: &str = r#"network = [
    "http://{server}/*",
    "https://{server}/*",
    "http://{other}/*",
    "http://localhost:{port}/*",
    "http://127.0.0.2:{port}/*",
    "http://[::ffff:127.0.0.1]:{port}/*",
    "http://0.0.0.0:{port}/*",
]
"#;

const WILD: &str = r#"network = ["http://*:{port}/*", "http://*:*/*"]
"#;

const NAMES: &str = r#"network = [
    "https://*/*",
    "http://*:*/*",
    "https://*.example.com/*",
    "http://metadata.example.com/*",
    "http://localhost:{port}/*",
]
"#;

/// The same, and each address that is not public by its number.
const NAMED: &str = r#"network = [
    "https://*/*",
    "http://*:*/*",
    "http://localhost:{port}/*",
    "http://{server}/*",
    "https://127.0.0.1/*",
    "https://10.0.0.5/*",
    "https://169.254.169.254/*",
    "http://169.254.169.254/*",
    "https://[::ffff:127.0.0.1]/*",
    "https://[64:ff9b::7f00:1]/*",
    "https://[fd00::1]/*",
    "https://0.0.0.0/*",
    "https://[::1]/*",
    "https://[::ffff:10.0.0.5]/*",
]
"#;

const ASKS: &str = r#"tools = [
    "conformance-witness__ec*",
    "conformance-asking__call",
    "conformance-script__call",
    "conformance-script__fork",
]
providers = ["conformance-witness/known"]
messaging = ["ops"]
memory = ["search"]
secrets = ["api-key", "unset"]
"#;

/// All that is asked for.
const FREE_ASKS: &str = r#"tools = ["*"]
providers = ["*"]
messaging = ["*"]
memory = ["search"]
user = ["ask"]
state = ["project"]
secrets = ["api-key", "unset", "other"]
"#;

const BOTH_WEB: &str = r#"network = ["http://{server}/*", "http://public.example.com/*"]
"#;

/// As little as a component can be granted that imports all of it.
const LITTLE: &str = r#"tools = ["conformance-nobody__y"]
providers = ["nobody/none"]
messaging = ["none"]
memory = ["search"]
secrets = ["none"]
"#;

/// What a careless plugin requests.
const MUCH: &str = r#"tools = ["*"]
providers = ["*"]
messaging = ["*"]
memory = ["search"]
secrets = ["api-key", "other"]
"#;

/// The plugins of a variant.
pub(crate) fn plugins(variant: ServicesSource) -> Vec<Hostile> {
    use Code::{Component, Script, Shared};
    let of = |id, code, capabilities: &[&str]| Hostile {
        id,
        code,
        capabilities: capabilities.concat(),
        limits: None,
    };
    let asking = Script(rhai_scripts::ASKING);
    if variant == ServicesSource::Ours {
        return vec![
            of("names", Component(ESCAPE_HTTP), &[NAMES]),
            of("names-script", asking, &[NAMES]),
            of("secretive", Component(CALLER), &[ASKS]),
            of("narrow-files", Component(ESCAPE), &[FILES, ENVIRONMENT]),
            of("narrow-web", Component(ESCAPE_HTTP), &[WILD]),
            of("narrow-asking", Component(CALLER), &[MUCH]),
            of("narrow-script", asking, &[MUCH, WILD]),
            of(
                "wide-files",
                Component(ESCAPE),
                &["filesystem = [\"read:{fixture}/ro/**\"]\nenvironment = [\"SEEN\"]\n"],
            ),
            of("wide-web", Component(ESCAPE_HTTP), &["network = [\"http://{server}/ok/*\"]\n"]),
            of("wide-asking", Component(CALLER), &[ASKS]),
            of("wide-script", asking, &["memory = [\"search\"]\n"]),
            of("undecided", Component(ESCAPE), &[FILES]),
            of("stale", Component(ESCAPE), &[FILES]),
            of("decided", Component(ESCAPE), &[FILES]),
            of("little-asking", Component(CALLER), &[LITTLE]),
            of("recorded", Component(CALLER), &[ASKS]),
            of("named-web", Component(ESCAPE_HTTP), &[NAMED]),
            of("named-script", asking, &[NAMED]),
            of(
                "both-files",
                Component(ESCAPE),
                &[
                    "filesystem = [\"readwrite:{fixture}/**\"]\n",
                    "environment = [\"SEEN\", \"SEEN_TOKEN\", \"HIDDEN\"]\n",
                ],
            ),
            of("both-web", Component(ESCAPE_HTTP), &[BOTH_WEB]),
            of("both-asking", Component(CALLER), &[FREE_ASKS]),
            of("both-script", asking, &[FREE_ASKS, BOTH_WEB]),
        ];
    }
    let mut plugins = vec![
        of("files", Component(ESCAPE), &[FILES, ENVIRONMENT]),
        of("web", Component(ESCAPE_HTTP), &[WEB]),
        of("wild", Component(ESCAPE_HTTP), &[WILD]),
        of("asking", Component(CALLER), &[ASKS]),
        of("script", asking, &[ASKS, WEB]),
        of("wild-script", asking, &[WILD]),
        of("bare-files", Component(ESCAPE), &[]),
        of("bare-web", Component(ESCAPE_HTTP), &[]),
        of("bare-script", asking, &[]),
        of("bare-misbehaving", Component(MISBEHAVE), &[]),
        of("free-files", Component(ESCAPE), &[FREE_FILES]),
        of("free-misbehaving", Component(MISBEHAVE), &[FREE_FILES]),
        of("free-web", Component(ESCAPE_HTTP), &[FREE_WEB]),
        of("little-asking", Component(CALLER), &[LITTLE]),
        of("free-asking", Component(CALLER), &[FREE_ASKS]),
        of("free-script", asking, &[FREE_ASKS, FREE_WEB]),
        of("everything", Component(EVERYTHING), &[FREE_ASKS]),
        of("script-importing", Script(rhai_scripts::IMPORTING), &[]),
        of("script-not-importing", Script(rhai_scripts::NOT_IMPORTING), &[]),
        of("script-evaluating", Script(rhai_scripts::EVALUATING), &[]),
        of("bystander", Shared(MISBEHAVE), &[]),
        Hostile {
            limits: Some(Limits { cpu: Duration::from_secs(3600), ..ample() }),
            ..of("greedy", Component(MISBEHAVE), &[])
        },
        Hostile {
            limits: Some(limits_of("download")),
            ..of("download", Component(ESCAPE_HTTP), &["network = [\"http://{server}/*\"]\n"])
        },
        Hostile {
            limits: Some(limits_of("download")),
            ..of("download-script", asking, &["network = [\"http://{server}/*\"]\n"])
        },
    ];
    plugins.extend(IMPORTING.iter().map(|(id, name, _)| of(id, Code::Importing(name), &[])));
    for (about, ids) in LIMITED {
        let component = if about.ends_with("table") { HOARD_TABLE } else { MISBEHAVE };
        let codes = [Component(component), Shared(component), Script(rhai_scripts::MISBEHAVING)];
        for (id, code) in ids.iter().zip(codes) {
            let limits = Some(limits_of(about));
            plugins.push(Hostile { limits, ..of(id, code, &[]) });
        }
    }
    plugins
}

impl Hostile {
    /// Its `plugin.toml`.
    pub(crate) fn manifest(&self) -> String {
        let runtime = match self.code {
            Code::Component(_) | Code::Importing(_) => r#"{ kind = "wasm", path = "code" }"#,
            Code::Shared(_) => r#"{ kind = "wasm", path = "code", instance = "shared" }"#,
            Code::Script(_) => r#"{ kind = "rhai", path = "code" }"#,
        };
        let mut text = format!("plugin.id = {:?}\nruntime = {runtime}\n", id(self.id));
        let _ = write!(text, "[capabilities]\n{}", self.capabilities);
        if let Some(limits) = &self.limits {
            let _ = write!(text, "[limits]\n{}", table(limits));
        }
        text
    }

    /// What it is made of, with places in the place of their names.
    pub(crate) fn code(&self, fill: impl Fn(&str) -> String) -> Vec<u8> {
        match self.code {
            Code::Component(bytes) | Code::Shared(bytes) => bytes.to_vec(),
            Code::Importing(name) => importing(name),
            Code::Script(text) => fill(text).into(),
        }
    }
}

/// A component that imports an interface, and passes it off as that of a plugin.
fn importing(name: &str) -> Vec<u8> {
    let named = |name: &str, sort: [u8; 2]| {
        let mut bytes = vec![1, 0, name.len() as u8];
        bytes.extend(name.as_bytes());
        bytes.extend(sort);
        bytes
    };
    let mut component = b"\0asm\x0d\0\x01\0".to_vec();
    // The types: one, of an instance that has nothing. The import and the export are such.
    component.extend([7, 3, 1, 0x42, 0]);
    let import = named(name, [5, 0]);
    component.extend([10, import.len() as u8]);
    component.extend(import);
    let mut export = named("tenon:plugin/lifecycle@0.2.0", [5, 0]);
    export.push(0);
    component.extend([11, export.len() as u8]);
    component.extend(export);
    component
}

/// `tenon.toml`: the operator holds back one plugin that asks for more.
pub(crate) fn configuration() -> String {
    let held = table(&Limits { cpu: limits_of("greedy").cpu, ..ample() });
    format!("plugins.folders = [\"own\"]\n[policy.plugins.{}.limits]\n{held}", id("greedy"))
}

/// Limits, as they are written.
fn table(limits: &Limits) -> String {
    let Limits { memory, table_elements, cpu, wall, transfer, download, output, .. } = limits;
    let Limits { host_calls, log_rate, .. } = limits;
    format!(
        "memory_mib = {}\ntable_elements = {table_elements}\ncpu = \"{}ms\"\nwall = \"{}ms\"\n\
         transfer_mib = {}\ndownload_mib = {}\noutput_kib = {}\nhost_calls = {host_calls}\n\
         log_rate = {log_rate}\n",
        memory >> 20,
        cpu.as_millis(),
        wall.as_millis(),
        transfer >> 20,
        download >> 20,
        output >> 10
    )
}
