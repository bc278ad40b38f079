//! Every client over every transport with every server: the official SDKs, over stdio and HTTP, in front of `tenon serve`,
//! and servers of either era behind the bridge. All cells see the same.

use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;

use crate::relay::{RECORD, Relay, messages_in};
use crate::support::{Project, stderr, stdout, tenon};
use crate::{Served, rmcp_client};
use tenon_serve::HttpSettings;
use tenon_tests::newer_node;

/// The server of each era behind the bridge.
const SERVER: &str = env!("CARGO_BIN_EXE_either-era-server");

/// The names of both, which are their eras.
pub(super) const SERVERS: [&str; 2] = ["legacy", "modern"];

/// The longest that a client may take for all that it does, on a busy machine.
const MAX_TIME: Duration = Duration::from_secs(300);

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Era {
    Legacy,
    Modern,
}

/// An SDK, and its major version where several are tested.
enum Sdk {
    Rust,
    Python(u8),
    TypeScript(u8),
}

/// A row of the matrix.
pub(super) struct SdkClient {
    name: &'static str,
    sdk: Sdk,
    era: Era,
}

/// The clients. The first major version of two SDKs knows the legacy era only.
pub(super) const CLIENTS: [SdkClient; 8] = [
    SdkClient { name: "rmcp_of_the_legacy_era", sdk: Sdk::Rust, era: Era::Legacy },
    SdkClient { name: "rmcp_of_the_modern_era", sdk: Sdk::Rust, era: Era::Modern },
    SdkClient { name: "python_1", sdk: Sdk::Python(1), era: Era::Legacy },
    SdkClient { name: "python_2_of_the_legacy_era", sdk: Sdk::Python(2), era: Era::Legacy },
    SdkClient { name: "python_2_of_the_modern_era", sdk: Sdk::Python(2), era: Era::Modern },
    SdkClient { name: "typescript_1", sdk: Sdk::TypeScript(1), era: Era::Legacy },
    SdkClient { name: "typescript_2_of_the_legacy_era", sdk: Sdk::TypeScript(2), era: Era::Legacy },
    SdkClient { name: "typescript_2_of_the_modern_era", sdk: Sdk::TypeScript(2), era: Era::Modern },
];

/// How a client reaches `tenon serve`.
pub(super) enum Connection<'a> {
    /// By starting it: a shell, with these arguments, in the project.
    Stdio {
        project: &'a Project,
        arguments: Vec<String>,
    },
    Http(&'a Relay),
}

impl Connection<'_> {
    /// How to connect, as the programs are told.
    fn settings(&self) -> Value {
        match self {
            Self::Stdio { arguments, .. } => json!({ "command": "sh", "args": arguments }),
            Self::Http(relay) => json!({ "url": relay.url() }),
        }
    }
}

impl SdkClient {
    pub(super) fn trial(&self) -> String {
        format!("{}_sees_the_same_of_servers_of_either_era", self.name)
    }

    /// What the client sees of all servers.
    async fn report(&self, folder: &Path, project: &Project, connection: &Connection<'_>) -> Value {
        let era = if self.era == Era::Modern { "modern" } else { "legacy" };
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/clients");
        let mut program = match self.sdk {
            Sdk::Rust => return rmcp_client::report(self.era, connection).await,
            Sdk::Python(major) => {
                let environment = if major == 1 { "python-1" } else { "python" };
                let mut python = project.program(folder.join(environment).join("bin/python"));
                python.arg(clients.join(format!("matrix_{major}.py")));
                // Nothing is written into the folder of the sources.
                python.env("PYTHONDONTWRITEBYTECODE", "1");
                python
            }
            Sdk::TypeScript(major) => {
                let mut node = project.program(newer_node(folder));
                node.arg(clients.join("matrix.cjs")).arg(folder).arg(major.to_string());
                node
            }
        };
        let mut settings = connection.settings();
        settings["era"] = era.into();
        settings["servers"] = json!(SERVERS);
        program.arg(settings.to_string()).stdin(Stdio::null());
        let output = Command::from(program).kill_on_drop(true).output().await;
        let output = output.expect("the client starts");
        assert!(output.status.success(), "{}{}", stdout(&output), stderr(&output));
        serde_json::from_slice(&output.stdout).expect("the client prints JSON")
    }
}

/// Has a client use all servers, over each transport.
pub(super) async fn check(folder: &Path, client: &SdkClient) {
    let server = |name: &str| {
        format!(
            "{{ name = {name:?}, command = {SERVER:?}, args = [{name:?}, {:?}] }}",
            unknown(name)
        )
    };
    let project = Project::new(&format!("plugins.mcp = [{}]", SERVERS.map(server).join(", ")));
    let approved = project.tenon(&["approve", "--all", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let tcp = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
    let mut settings = HttpSettings::default();
    settings.hosts.extend(tcp.local_addr().map(|address| address.to_string()));
    let served = Served::start(&project, true, settings).await;
    let relay = Relay::start(tcp, project.path("relay"), served.address).expect("it listens");
    let recorded = project.path("recorded");
    let serve = [RECORD, text(&recorded), text(tenon()), "serve"].map(String::from);
    let arguments = ["-c".to_string()].into_iter().chain(serve).collect();
    let connections =
        [Connection::Stdio { project: &project, arguments }, Connection::Http(&relay)];
    let [stdio, http] = connections.each_ref().map(|connection| async {
        let report = client.report(folder, &project, connection);
        timeout(MAX_TIME, report).await.expect("the client ends")
    });
    let (stdio, http) = tokio::join!(stdio, http);
    for (transport, report, messages) in
        [("stdio", stdio, messages_in(&recorded)), ("HTTP", http, relay.messages())]
    {
        for server in SERVERS {
            let cell = format!("over {transport}, {server} server");
            assert_eq!(report["revision"], client.revision(), "{cell}");
            assert_eq!(report["servers"][server], seen(server), "{cell}");
            assert_eq!(unchanged(&messages, server), UNKNOWN.map(String::from).into(), "{cell}");
        }
        // Of one server after the other.
        assert_eq!(progress(&messages), ["one", "two", "one", "two"], "over {transport}");
    }
    served.stop().await;
}

fn text(path: &Path) -> &str {
    path.to_str().expect("it is text")
}

impl SdkClient {
    /// The revision that the client and `tenon serve` agree on.
    fn revision(&self) -> &'static str {
        match self.era {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        }
    }
}

/// What every client sees of a server.
fn seen(server: &str) -> Value {
    let tools = ["ask", "cancelled", "count", "enough", "greet", "wait"];
    let uri = format!("test://{server}/note");
    json!({
        "tools": tools.map(|tool| format!("{server}__{tool}")),
        "greet": "Hello, Ada!",
        "resources": [uri],
        "read": format!("The note at {uri}"),
        "prompts": [format!("{server}__letter")],
        "prompt": "Write to Bob",
        "count": "counted to two",
        "progress": [[0.5, 1.5, "one"], [1.5, 1.5, "two"]],
        "enough": "enough",
        "wait": null,
        "cancelled": "a call was cancelled",
        "ask": "accept: blue",
        "asked": [format!("The plugin \"{server}\" asks: Which color?")],
    })
}

/// The progress of counting, in the order in which it came.
fn progress(messages: &[Box<RawValue>]) -> Vec<String> {
    let params = messages.iter().map(|message| parsed(message.get())["params"].take());
    let words = params.filter_map(|params| params["message"].as_str().map(str::to_string));
    words.filter(|word| ["one", "two"].contains(&&**word)).collect()
}

/// The members that no revision has, one in each object of MCP. Of one the contract for plugins has no place: `x-read`, in
/// the result that is around the contents of a resource.
const UNKNOWN: [&str; 11] = [
    "x-block",
    "x-block-meta",
    "x-contents",
    "x-form",
    "x-get",
    "x-message",
    "x-meta",
    "x-prompt",
    "x-resource",
    "x-result",
    "x-tool",
];

/// The value of all of them at one server, with whatever loses its form where it is read and written again.
fn unknown(server: &str) -> String {
    format!(
        r#"{{"of":"{server}","n":[1.0,1e3,-0,-1.5E-7,18446744073709551617,null,true],"o":{{}},"z":"\"é\ud83d\ude00"}}"#
    )
}

/// The one of them that the host reads, with the question that it is in, to show it to a user. Its value is the same, and its
/// numbers are written in another form.
const READ_BY_THE_HOST: &str = "x-form";

/// The unknown members whose value came as the server wrote it, byte for byte, in messages to a client.
///
/// # Panics
///
/// If the value of one of them has changed.
fn unchanged(messages: &[Box<RawValue>], server: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    messages.iter().for_each(|message| collect(message, server, &mut found));
    found
}

fn collect(value: &RawValue, server: &str, found: &mut BTreeSet<String>) {
    if let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(value.get()) {
        for (name, value) in members {
            if name.starts_with("x-") {
                let is_of = |server: &str| {
                    let written = unknown(server);
                    let value = value.get();
                    value == written
                        || name == READ_BY_THE_HOST && parsed(value) == parsed(&written)
                };
                assert!(SERVERS.into_iter().any(is_of), "{name} is {value}");
                let is_own = is_of(server);
                found.extend(is_own.then_some(name));
            } else {
                collect(value, server, found);
            }
        }
    } else if let Ok(items) = serde_json::from_str::<Vec<&RawValue>>(value.get()) {
        items.into_iter().for_each(|item| collect(item, server, found));
    }
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).expect("it is JSON")
}
