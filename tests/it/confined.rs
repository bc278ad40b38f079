//! MCP servers in a sandbox: the same rows for a server and for components, and what only a process can try. How the sandbox holds
//! against a program that knows all tricks is tested beside it, in `host/confinement`.

#![cfg(target_os = "linux")]

use async_trait::async_trait;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tenon_host::services::{Connector, GrantAll, Resolver, Stream};
use tenon_host::{Builder, Call, Caller, HostEnvironment, NetworkTraffic, PluginState};

use crate::guests;
use crate::http_server::serve;
use crate::support::{
    LAUNCHER_WITHOUT_NAMESPACES, Project, REACHING_SERVER, RunningPlatform, host_environment,
    stderr, stdout, tenon,
};

/// What is granted to the plugins of a row: the words of the capability, in which `@` is the folder of the project and
/// `PORT` that of the server.
type Grant = (&'static str, &'static str);

/// A tool, its arguments, and a grant without which it is refused and with which it succeeds. The same tools are those of a
/// server in a sandbox and of components.
const ROWS: &[(&str, &str, Grant)] = &[
    ("read_file", r#"{ "path": "@/granted/a.txt" }"#, ("filesystem", "read:@/granted/**")),
    ("read_file", r#"{ "path": "@/granted/a.txt" }"#, ("filesystem", "read:@/granted/a.txt")),
    ("read_file", r#"{ "path": "@/granted/to-b" }"#, ("filesystem", "read:@/**")),
    ("list_dir", r#"{ "path": "@/granted" }"#, ("filesystem", "read:@/granted/**")),
    (
        "write_file",
        r#"{ "path": "@/granted/new.txt", "text": "x" }"#,
        ("filesystem", "readwrite:@/granted/**"),
    ),
    ("remove", r#"{ "path": "@/granted/a.txt" }"#, ("filesystem", "readwrite:@/granted/**")),
    (
        "rename",
        r#"{ "from": "@/granted/a.txt", "to": "@/granted/c.txt" }"#,
        ("filesystem", "readwrite:@/granted/**"),
    ),
    ("fetch", r#"{ "url": "http://127.0.0.1:PORT/ok" }"#, ("network", "http://127.0.0.1:PORT/*")),
    ("fetch", r#"{ "url": "http://127.0.0.1:PORT/ok" }"#, ("network", "http://127.0.0.1:PORT/ok")),
];

/// A project with a server in a sandbox, and with components that have the same tools.
fn project(filesystem: &[String], network: &[String]) -> Project {
    let server = format!(
        "plugins.folders = [\"own\"]
         [[plugins.mcp]]
         name = \"server\"
         command = {REACHING_SERVER:?}
         capabilities = {{ filesystem = {filesystem:?}, network = {network:?} }}"
    );
    let project = Project::new(&server);
    let components = [
        ("files", guests::FILES, format!("filesystem = {filesystem:?}")),
        ("fetch", guests::FETCH, format!("network = {network:?}")),
    ];
    for (id, component, capabilities) in components {
        let manifest = format!(
            "plugin.id = {id:?}\nruntime = {{ kind = \"wasm\", path = \"c.wasm\" }}\ncapabilities = {{ {capabilities} }}"
        );
        project.write(&format!("own/{id}/plugin.toml"), manifest);
        project.write(&format!("own/{id}/c.wasm"), std::fs::read(component).unwrap());
    }
    project.write("granted/a.txt", "granted");
    project.write("other/b.txt", "other");
    std::os::unix::fs::symlink("../other/b.txt", project.path("granted/to-b")).unwrap();
    project
}

/// What starts servers: as most systems let it, and where users may make no namespaces.
fn launchers() -> [&'static Path; 2] {
    [tenon(), Path::new(LAUNCHER_WITHOUT_NAMESPACES)]
}

async fn platform(project: Project, adjust: impl FnOnce(Builder) -> Builder) -> RunningPlatform {
    platform_with(tenon(), project, adjust).await
}

async fn platform_with(
    launcher: &Path,
    project: Project,
    adjust: impl FnOnce(Builder) -> Builder,
) -> RunningPlatform {
    let builder = project.builder().approver(GrantAll).server_launcher(launcher).start_servers();
    let platform = adjust(builder).build().await.expect("the platform is built");
    for report in platform.plugins().iter() {
        assert_eq!(report.state, PluginState::Ready, "{report:?}");
    }
    RunningPlatform::new(platform, project)
}

/// What a tool says, and whether it did what it was told.
async fn call(platform: &RunningPlatform, name: &str, arguments: Value) -> Result<String, String> {
    let call = Call { name: name.into(), arguments, caller: Caller::default() };
    match platform.call(call).await {
        Ok(result) if !result.is_error => Ok(result.plain_text()),
        Ok(result) => Err(result.plain_text()),
        Err(error) => Err(error.to_string()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_and_a_component_reach_the_same() {
    for launcher in launchers() {
        a_server_reaches_what_a_component_does(launcher).await;
    }
}

async fn a_server_reaches_what_a_component_does(launcher: &Path) {
    let web = serve().await;
    let port = web.address.port().to_string();
    let mut rows = 0;
    for (tool, arguments, (capability, value)) in ROWS {
        for is_granted in [false, true] {
            // Something else is granted, so that the components load.
            let project = project(&["read:/no/such/**".into()], &["https://a.example/*".into()]);
            let folder = project.path("").canonicalize().unwrap().display().to_string();
            let folder = folder.trim_end_matches('/');
            let filled_in = |text: &str| text.replace('@', folder).replace("PORT", &port);
            if is_granted {
                let granted = filled_in(value);
                for file in ["tenon.toml", "own/files/plugin.toml", "own/fetch/plugin.toml"] {
                    let text = std::fs::read_to_string(project.path(file)).unwrap();
                    let former = match *capability {
                        "filesystem" => "read:/no/such/**",
                        _ => "https://a.example/*",
                    };
                    project.write(file, text.replace(former, &granted));
                }
            }
            let platform = platform_with(launcher, project, |builder| builder).await;
            let component = if *capability == "network" { "fetch" } else { "files" };
            let arguments: Value = serde_json::from_str(&filled_in(arguments)).unwrap();
            for plugin in ["server", component] {
                // What one has removed or renamed is there for the other.
                std::fs::write(platform.project.path("granted/a.txt"), "granted").unwrap();
                let said = call(&platform, &format!("{plugin}__{tool}"), arguments.clone()).await;
                assert_eq!(said.is_ok(), is_granted, "{plugin} {tool} {arguments}: {said:?}");
                rows += 1;
            }
        }
    }
    assert_eq!(rows, 4 * ROWS.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_gets_no_further_than_its_box() {
    for launcher in launchers() {
        a_server_gets_no_further(launcher).await;
    }
}

async fn a_server_gets_no_further(launcher: &Path) {
    let web = serve().await;
    let elsewhere = "https://a.example/*".to_string();
    let project = project(&["readwrite:./granted/**".into()], &[elsewhere]);
    let platform = platform_with(launcher, project, |builder| builder).await;
    let path =
        |name: &str| platform.project.path(name).canonicalize().unwrap().display().to_string();
    let (secret, address) = (path("other/b.txt"), web.address.to_string());
    let link = format!("{}/link", path("granted"));
    let rows = [
        ("connect", json!({ "address": address })),
        ("fetch", json!({ "url": web.url("/ok") })),
        ("read_file", json!({ "path": secret })),
        ("read_file", json!({ "path": format!("{}/to-b", path("granted")) })),
        ("read_file", json!({ "path": format!("/proc/{}/environ", std::process::id()) })),
        ("rename", json!({ "from": secret, "to": link })),
        ("write_file", json!({ "path": path("tenon.toml"), "text": "x" })),
    ];
    for (tool, arguments) in rows {
        let said = call(&platform, &format!("server__{tool}"), arguments.clone()).await;
        assert!(said.is_err(), "{tool} {arguments}: {said:?}");
    }
    let said = call(&platform, "server__fetch", json!({ "url": web.url("/ok") })).await;
    assert!(said.unwrap_err().contains("its entry would request it with `network = [\"http://"));
    // It still works.
    let read = json!({ "path": path("granted/a.txt") });
    assert_eq!(call(&platform, "server__read_file", read).await, Ok("granted".into()));
    // Which of the two sandboxes it is in, its host knows.
    let confinement = platform.server("server").unwrap().confinement.unwrap();
    assert!(confinement.is_confined);
    assert_eq!(confinement.lacks_namespaces, launcher != tenon());
    assert_eq!(web.heard(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_leads_where_a_grant_does() {
    for launcher in launchers() {
        tunnels_lead_where_grants_do(launcher).await;
    }
}

async fn tunnels_lead_where_grants_do(launcher: &Path) {
    let web = serve().await;
    let address = web.address.to_string();
    let check = async |granted: String, expected: &str| {
        let project = project(&["read:/no/such/**".into()], std::slice::from_ref(&granted));
        let platform = platform_with(launcher, project, |builder| builder).await;
        let said = call(&platform, "server__tunnel", json!({ "address": address })).await;
        let said = said.unwrap_or_else(|error| error);
        assert!(said.contains(expected), "{granted}: {said}");
    };
    // What is requested through it is not seen, with TLS by nobody.
    check(format!("https://{address}/only/this"), "HTTP/1.1").await;
    check(format!("http://{address}"), "HTTP/1.1").await;
    assert_eq!(web.heard(), ["GET /hello", "GET /hello"]);
    // So one path, or one method, is not enough where the proxy could check it.
    check(format!("http://{address}/only/this"), "403 Forbidden").await;
    check(format!("GET http://{address}"), "403 Forbidden").await;
    check("https://a.example/*".into(), "403 Forbidden").await;
    assert_eq!(web.heard(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_sends_and_receives_is_counted() {
    let web = serve().await;
    let url = web.url("/ok");
    let project = project(&["read:/no/such/**".into()], std::slice::from_ref(&url));
    let platform = platform(project, |builder| builder).await;
    let traffic = || platform.server("server").unwrap().network.unwrap();
    assert_eq!(traffic(), NetworkTraffic::default());
    let mut heard = String::new();
    for count in 1..3 {
        heard = call(&platform, "server__fetch", json!({ "url": url })).await.unwrap();
        // What the server sends, as it writes it.
        let sent =
            format!("GET {url} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", web.address);
        assert_eq!(traffic().sent_bytes, count * sent.len() as u64);
        assert_eq!(traffic().received_bytes, count * heard.len() as u64);
    }
    assert!(heard.starts_with("HTTP/1.1 200"), "{heard}");
}

/// A network on which every name leads to the metadata service of a cloud, and nothing is connected to.
#[derive(Clone, Default)]
struct RecordingNetwork(Arc<Mutex<Vec<SocketAddr>>>);

#[async_trait]
impl Resolver for RecordingNetwork {
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new([169, 254, 169, 254].into(), port)])
    }
}

#[async_trait]
impl Connector for RecordingNetwork {
    async fn connect(&self, address: SocketAddr) -> io::Result<Box<dyn Stream>> {
        self.0.lock().unwrap().push(address);
        Err(io::ErrorKind::ConnectionRefused.into())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_that_lead_to_private_addresses_are_refused() {
    let network = RecordingNetwork::default();
    let granted = ["http://api.example.org/*", "https://api.example.org/*"].map(String::from);
    let project = project(&["read:/no/such/**".into()], &granted);
    let platform =
        platform(project, |builder| builder.resolver(network.clone()).connector(network.clone()));
    let platform = platform.await;
    let rows = [
        ("fetch", json!({ "url": "http://api.example.org/latest/meta-data" })),
        ("tunnel", json!({ "address": "api.example.org:443" })),
        ("fetch", json!({ "url": "http://169.254.169.254/latest/meta-data" })),
        ("tunnel", json!({ "address": "169.254.169.254:443" })),
    ];
    for (tool, arguments) in rows {
        let said = call(&platform, &format!("server__{tool}"), arguments).await.unwrap_err();
        assert!(said.contains("403 Forbidden"), "{tool}: {said}");
    }
    assert_eq!(*network.0.lock().unwrap(), []);
}

#[tokio::test]
async fn a_policy_that_requires_confinement_refuses_servers_without_it() {
    let check = async |policy: &str,
                       launcher: bool,
                       capabilities: &str,
                       expected: Result<bool, &str>| {
        let project = Project::new(&format!(
            "{policy}\n[[plugins.mcp]]\nname = \"server\"\ncommand = {REACHING_SERVER:?}\n{capabilities}"
        ));
        let builder = project.builder().approver(GrantAll).start_servers();
        let builder = if launcher { builder.server_launcher(tenon()) } else { builder };
        let platform = builder.build().await.unwrap();
        let report = platform.plugins().iter().find(|of| of.plugin == "server").unwrap().clone();
        match expected {
            Ok(is_confined) => {
                assert_eq!(report.state, PluginState::Ready, "{report:?}");
                let confinement = report.server.unwrap().confinement.unwrap();
                assert_eq!(confinement.is_confined, is_confined, "{policy} {capabilities}");
            }
            Err(expected) => {
                assert_eq!(report.state, PluginState::Refused, "{report:?}");
                let detail = report.detail.unwrap();
                assert!(detail.contains(expected), "{policy} {capabilities}: {detail}");
            }
        }
        platform.shutdown().await;
    };
    let (with, without) = ("capabilities = {}", "");
    check("", true, with, Ok(true)).await;
    check("", true, without, Ok(false)).await;
    check("", false, with, Ok(false)).await;
    check("policy.confine = \"off\"", true, with, Ok(false)).await;
    let required = "policy.confine = \"required\"";
    check(required, true, with, Ok(true)).await;
    check(required, true, without, Err("the policy requires that servers are confined")).await;
    check(required, false, with, Err("this host has no launcher")).await;
}

#[tokio::test]
async fn a_server_changes_nothing_that_the_hosts_own_folders_lie_in() {
    let check = async |granted: &str, expected: PluginState| {
        let project = project(&[granted.into()], &["https://a.example/*".into()]);
        let host_environment = HostEnvironment {
            state: Some(project.path("own/state")),
            servers: Some(project.path("lists/servers.json")),
            ..host_environment()
        };
        let builder = project.builder().host_environment(host_environment);
        let builder = builder.approver(GrantAll).server_launcher(tenon()).start_servers();
        let platform = builder.build().await.unwrap();
        let report = platform.plugins().iter().find(|of| of.plugin == "server").unwrap().clone();
        assert_eq!(report.state, expected, "{granted}: {report:?}");
        if expected == PluginState::Refused {
            let detail = report.detail.unwrap();
            assert!(detail.contains("which decides what Tenon starts and allows"), "{detail}");
        }
        platform.shutdown().await;
    };
    check("readwrite:./**", PluginState::Refused).await;
    check("write:./own/**", PluginState::Refused).await;
    // There is none yet.
    check("write:./lists/**", PluginState::Refused).await;
    check("read:./**", PluginState::Ready).await;
    check("readwrite:./granted/**", PluginState::Ready).await;
}

#[tokio::test]
async fn what_a_server_cannot_be_granted_is_told() {
    let check = async |entry: &str, expected: &str| {
        let project = Project::new(&format!("[[plugins.mcp]]\nname = \"server\"\n{entry}"));
        let platform = project.builder().build().await.unwrap();
        let said: Vec<String> = platform.diagnostics().iter().map(ToString::to_string).collect();
        assert!(said.iter().any(|said| said.contains(expected)), "{entry}: {said:?}");
    };
    check(
        "command = \"x\"\ncapabilities.secrets = [\"key\"]",
        "a server can be granted `filesystem` and `network`, and not `secrets`",
    )
    .await;
    check("url = \"https://a.example/\"\ncapabilities = {}", "its server runs elsewhere").await;
    check("command = \"x\"\ncapabilities.filesystem = [\"/x\"]", "it must begin with `read:`")
        .await;
}

#[test]
fn commands_say_what_is_confined() {
    let servers = format!(
        "[[plugins.mcp]]\nname = \"boxed\"\ncommand = {REACHING_SERVER:?}\ncapabilities = {{}}
         [[plugins.mcp]]\nname = \"free\"\ncommand = {REACHING_SERVER:?}"
    );
    let project = Project::new(&servers);
    let said = stdout(&project.tenon(&["doctor", "boxed"]));
    assert!(said.contains(", confined"), "{said}");
    let said = stdout(&project.tenon(&["doctor", "free"]));
    assert!(said.contains(", unconfined"), "{said}");
    let said = stdout(&project.tenon(&["doctor"]));
    assert!(said.ends_with("2 of 2 plugins are ready, 1 of them unconfined\n"), "{said}");
    // The cache of what it downloads is its own, and stays.
    let output = project.tenon(&["call", "boxed__environment"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("npm_config_cache") && !said.contains("http_proxy"), "{said}");
    // What it runs with is approved with what it reaches.
    let narrow = format!(
        "[[plugins.mcp]]\nname = \"narrow\"\ncommand = {REACHING_SERVER:?}\nargs = [\"--quiet\"]
         capabilities.filesystem = [\"read:./notes/*.md\"]"
    );
    let project = Project::new(&narrow);
    let output = project.tenon(&["approve", "narrow"]);
    let said = stdout(&output);
    for line in ["  argument  --quiet\n", "/notes/*.md — it reaches all of "] {
        assert!(said.contains(line), "{said}");
    }
    let said = stdout(&project.tenon(&["inspect", "narrow"]));
    assert!(said.contains("/notes/*.md — it reaches all of "), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_of_a_server_has_so_much_memory_and_no_more() {
    let check = async |limit: &str, expected: bool| {
        let configuration = format!(
            "{limit}plugins.mcp = [{{ name = \"server\", command = {REACHING_SERVER:?}, capabilities = {{}} }}]"
        );
        let platform = platform(Project::new(&configuration), |builder| builder).await;
        // A program of its own: the server stays.
        let words = ["/bin/sh", "-c", "head -c 300000000 /dev/zero | tail | wc -c"];
        let said = call(&platform, "server__run", json!({ "words": words })).await;
        assert_eq!(
            said.as_deref().map(str::trim) == Ok("300000000"),
            expected,
            "{limit}: {said:?}"
        );
    };
    check("", true).await;
    check("limits.server_memory_mib = 200\n", false).await;
}

/// What a command says of a server, as JSON, and its exit code.
fn recorded(project: &Project, arguments: &[&str]) -> (Value, Option<i32>) {
    let output = project.tenon(&[&["--json"], arguments].concat());
    let said = stderr(&output);
    let printed = serde_json::from_slice(&output.stdout);
    (printed.unwrap_or_else(|error| panic!("{error}: {said}")), output.status.code())
}

#[test]
fn what_a_server_needs_is_learned_and_traced_and_enough() {
    let configure = |project: &Project, capabilities: &str| {
        let entry = format!("{{ name = \"s\", command = {REACHING_SERVER:?}{capabilities} }}");
        project.write("tenon.toml", format!("plugins.mcp = [{entry}]"));
    };
    let project = Project::new("");
    for (name, text) in [("notes/a.md", "a"), ("notes/sub/b.md", "b"), ("other/c.md", "c")] {
        project.write(name, text);
    }
    let path = |name: &str| project.path(name).canonicalize().unwrap().display().to_string();
    let notes = path("notes");
    let calls = [
        format!("read_file path={notes}/a.md"),
        format!("read_file {{\"path\": \"{notes}/sub/b.md\"}}"),
        format!(
            "s__write_file {}",
            json!({ "path": format!("{}/c.md", path("other")), "text": "x y" })
        ),
        "fetch url=http://127.0.0.1:1/".to_string(),
        "connect address=127.0.0.1:1".to_string(),
    ];
    let calls: Vec<&str> = calls.iter().flat_map(|call| ["--call", call]).collect();
    // The project is the home folder, and `other` has the same name there.
    let expected = json!({
        "filesystem": ["read:~/notes/**", "write:~/other/**"],
        "network": ["http://127.0.0.1:1/*"],
    });
    let capabilities = |shown: &Value| shown["capabilities"].clone();
    let missing = |shown: &Value| shown["missing"].clone();

    configure(&project, "");
    std::fs::write(project.path("other/c.md"), "c").unwrap();
    let (learned, code) = recorded(&project, &[&["confine", "s", "--learn"][..], &calls].concat());
    assert_eq!(capabilities(&learned), expected, "{learned}");
    assert_eq!(learned["connections"], json!(["127.0.0.1:1"]));
    // Nobody listens there.
    assert_eq!(code, Some(1));
    assert_eq!(std::fs::read_to_string(project.path("other/c.md")).unwrap(), "x y");

    configure(&project, ", capabilities = {}");
    std::fs::write(project.path("other/c.md"), "c").unwrap();
    let (traced, code) = recorded(&project, &[&["doctor", "s", "--trace"][..], &calls].concat());
    assert_eq!(capabilities(&traced), expected, "{traced}");
    assert_eq!((code, &traced["state"]), (Some(1), &json!("ready")));
    assert_eq!(std::fs::read_to_string(project.path("other/c.md")).unwrap(), "c");

    let toml = toml_of(&expected);
    configure(&project, &format!(", capabilities = {toml}"));
    let approved = project.tenon(&["approve", "s", "--yes"]);
    assert!(approved.status.success(), "{}", stderr(&approved));
    let (traced, code) =
        recorded(&project, &[&["doctor", "s", "--trace"][..], &calls[..6]].concat());
    assert_eq!((code, missing(&traced)), (Some(0), json!({})), "{traced}");
    assert_eq!(capabilities(&traced), expected);
    assert_eq!(std::fs::read_to_string(project.path("other/c.md")).unwrap(), "x y");
}

/// A table of lists of texts, as it stands in TOML.
fn toml_of(table: &Value) -> String {
    let rows = table.as_object().unwrap().iter().map(|(name, values)| format!("{name} = {values}"));
    format!("{{ {} }}", rows.collect::<Vec<_>>().join(", "))
}

#[test]
fn only_servers_of_this_machine_are_recorded_and_only_confined_ones_traced() {
    let project = Project::new(&format!(
        "plugins.mcp = [
            {{ name = \"s\", command = {REACHING_SERVER:?} }},
            {{ name = \"elsewhere\", url = \"http://127.0.0.1:1/\" }},
        ]"
    ));
    let check = |arguments: &[&str], code: i32, expected: &str| {
        let output = project.tenon(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    };
    check(&["doctor", "s", "--trace"], 2, "`tenon confine s --learn` proposes capabilities");
    check(&["doctor", "--trace"], 2, "required arguments were not provided");
    check(&["confine", "elsewhere", "--learn"], 2, "no MCP server that runs on this machine");
    check(&["confine", "none", "--learn"], 2, "there is no plugin \"none\"");
    check(&["confine", "s"], 2, "--learn");
    // Whose policy wants every server confined, has none run with all files.
    let text = std::fs::read_to_string(project.path("tenon.toml")).unwrap();
    let entry = text.replace("reaching-server\" }", "reaching-server\", capabilities = {} }");
    project.write("tenon.toml", format!("policy.confine = \"required\"\n{entry}"));
    check(&["confine", "s", "--learn"], 3, "with its needs recorded it would reach every file");
}
