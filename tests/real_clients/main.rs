//! MCP clients that nobody here wrote, in front of `tenon serve`: the official conformance suite, and the official SDKs.
//! The plugins behind it are a component, a script and a server, so that each kind is tested; in the matrix of all SDKs
//! they are servers of either era.
//!
//! `cargo xtask test` installs them, at the versions of the lock files in `real/`, and says where they are. Without them
//! these tests are listed as ignored, which one line says, and none of them passes.

#![allow(clippy::print_stderr)]

#[path = "../it/support.rs"]
#[allow(dead_code)]
mod support;

mod matrix;
mod relay;
mod rmcp_client;

use libtest_mimic::Arguments;
use serde_json::Value;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tenon_host::Platform;
use tenon_host::services::GrantAll;
use tenon_serve::{AllClientFeatures, HttpSettings, Profile, Server, Settings};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use support::{EVERYTHING_SERVER, MODERN_SERVER, Project, stderr, stdout, tenon};
use tenon_tests::{installed, newer_node, npm_script, run_on_two_threads, trial};

#[allow(dead_code)]
mod guests {
    // The paths of the guests, written by the build script.
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

/// What the tests need.
const NEEDED: &str = "real MCP client";

/// What says where the clients of each registry are.
const GROUPS: [&str; 2] = ["TENON_REAL_SERVERS_NPM", "TENON_REAL_SERVERS_PIP"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let folder = installed(&GROUPS);
    if folder.is_none() {
        eprintln!(
            "note: no real MCP clients are installed, so their tests are ignored; `cargo xtask test` installs them"
        );
    }
    let mut trials = Vec::new();
    macro_rules! trials {
        ($($name:ident),* $(,)?) => {$(
            let test = |folder: PathBuf| run_on_two_threads($name(&folder));
            trials.push(trial(stringify!($name), NEEDED, folder.clone(), test));
        )*};
    }
    trials!(
        the_conformance_suite_passes_in_the_legacy_era,
        the_conformance_suite_passes_in_the_modern_era,
        the_conformance_suite_notices_what_is_missing,
        the_official_sdks_list_what_is_served,
    );
    for client in &matrix::CLIENTS {
        let test = |folder: PathBuf| run_on_two_threads(matrix::check(&folder, client));
        trials.push(trial(client.trial(), NEEDED, folder.clone(), test));
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The tools that the server has, though the component has them as well.
const OF_THE_SERVER: [&str; 6] = [
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_sampling",
    "test_tool_with_progress",
];

/// A project with plugins of three kinds, which have together what the suite asks for.
fn project() -> Project {
    project_without(&[])
}

/// The same without some tools.
fn project_without(tools: &[&str]) -> Project {
    let project = Project::new("");
    let twice = OF_THE_SERVER.iter().map(|tool| format!("everything__{tool}"));
    let hidden: String = twice
        .chain(tools.iter().map(ToString::to_string))
        .map(|tool| format!("[tools.\"{tool}\"]\nenabled = false\n"))
        .collect();
    let server = format!(
        "plugins.mcp = [{{ name = \"server\", command = {EVERYTHING_SERVER:?}, args = [{:?}] }},
                        {{ name = \"modern\", command = {MODERN_SERVER:?} }}]",
        project.path("memory.json")
    );
    project.write("tenon.toml", format!("{server}\nlimits.cpu = \"1h\"\n{hidden}"));
    project.add_served_plugins(guests::EVERYTHING_RUST);
    project
}

/// A project that this process serves over HTTP.
struct Served {
    platform: Platform,
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    serving: JoinHandle<io::Result<()>>,
}

impl Served {
    async fn start(project: &Project, prefix: bool, settings: HttpSettings) -> Self {
        let builder = project.builder().workspace(project.path("")).state(project.path("state"));
        let builder = builder.approver(GrantAll).client_features(AllClientFeatures).start_servers();
        let platform = builder.build().await.expect("it is built");
        let profile = Settings::with_profile(Profile { prefix, ..Profile::default() });
        let server = Server::new(platform.clone(), profile).expect("there is a server");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a port");
        let address = listener.local_addr().expect("it has an address");
        let (stop, stopped) = oneshot::channel::<()>();
        let serving = tokio::spawn(async move {
            let stop = async {
                let _ = stopped.await;
            };
            server.serve_http(listener, settings, stop).await
        });
        Self { platform, address, stop, serving }
    }

    async fn stop(self) {
        drop(self.stop);
        self.serving.await.expect("it does not panic").expect("it ends well");
        self.platform.shutdown().await;
    }
}

/// Has the suite check a server of a project. Gives its exit code, and what it says.
async fn check(folder: &Path, requirements: &str, project: Project) -> (Option<i32>, String) {
    let mut settings = HttpSettings::default();
    // Short enough that one tool of the script takes longer.
    settings.stream_time = Duration::from_millis(500);
    let served = Served::start(&project, false, settings).await;
    let url = format!("http://{}/mcp", served.address);
    // With a list of known failures, of which there are none, warnings are failures as well.
    project.write("known.yml", "server: []\n");
    let mut suite = Command::new(newer_node(folder));
    suite.arg(npm_script(folder, "conformance")).args(["server", "--url", &url]);
    suite.args(["--requirements", requirements, "--expected-failures"]);
    suite.arg(project.path("known.yml")).stdin(Stdio::null()).kill_on_drop(true);
    let output = suite.output().await.expect("the suite starts");
    served.stop().await;
    (output.status.code(), format!("{}{}", stdout(&output), stderr(&output)))
}

/// The summary of what the suite says.
fn summary(said: &str) -> &str {
    said.find("=== SUMMARY ===").map_or(said, |start| &said[start..])
}

/// Extras that are not scored, all of whose checks pass.
fn assert_extras(said: &str, extras: &[&str]) {
    for extra in extras {
        let line = summary(said).lines().find(|line| line.starts_with(&format!("✓ {extra}: ")));
        let line = line.unwrap_or_else(|| panic!("{extra}: {}", summary(said)));
        assert!(line.ends_with(", 0 failed") && !line.contains(" 0 passed"), "{line}");
    }
}

async fn the_conformance_suite_passes_in_the_legacy_era(folder: &Path) {
    let (code, said) = check(folder, "2025-11-25", project()).await;
    assert_eq!(code, Some(0), "{}", summary(&said));
    assert_extras(
        &said,
        &["server-session-lifecycle", "server-sse-polling", "json-schema-2020-12"],
    );
}

async fn the_conformance_suite_passes_in_the_modern_era(folder: &Path) {
    let (code, said) = check(folder, "2026-07-28", project()).await;
    assert_eq!(code, Some(0), "{}", summary(&said));
    assert_extras(
        &said,
        &["http-header-validation", "http-custom-header-server-validation", "json-schema-2020-12"],
    );
}

async fn the_conformance_suite_notices_what_is_missing(folder: &Path) {
    let project = project_without(&["modern__test_input_required_result_list_roots"]);
    let (code, said) = check(folder, "2026-07-28", project).await;
    assert_eq!(code, Some(1), "{}", summary(&said));
}

async fn the_official_sdks_list_what_is_served(folder: &Path) {
    let project = project();
    let approved = project.tenon(&["approve", "--all", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("real/clients");
    let mut typescript = project.program("node");
    typescript.arg(clients.join("list-tools.cjs")).arg(folder);
    let mut python = project.program(folder.join("python/bin/python"));
    python.arg(clients.join("list_tools.py"));
    let mut lists = Vec::new();
    for (sdk, client) in [("TypeScript", typescript), ("Python", python)] {
        let mut client = Command::from(client);
        client.arg(tenon()).args(["serve", "--prefix", "false"]);
        let output = client.stdin(Stdio::null()).kill_on_drop(true).output();
        let output = output.await.expect("the client starts");
        assert!(output.status.success(), "{sdk}: {}", stderr(&output));
        let tools: Vec<Value> = serde_json::from_slice(&output.stdout).expect("it is JSON");
        for tool in ["test_simple_text", "test_custom_header", "test_image_content"] {
            assert!(tools.iter().any(|listed| listed["name"] == tool), "{sdk}: {tool}");
        }
        lists.push(tools);
    }
    assert_eq!(lists[0], lists[1]);
}
