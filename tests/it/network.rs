//! The network, for components of both editions of WASI and for scripts: what is granted is
//! reached. What is not is tried by the table of the conformance suite.

use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_host::services::GrantAll;
use tenon_host::{CallError, Failure, PluginState};
use wasmtime_wasi::sockets::SocketAddrUse;

use crate::guests;
use crate::http_server::serve;
use crate::support::{Project, RunningPlatform, call_within, text};

/// The tools that fetch: two of the guest, one of the script.
const WAYS: [&str; 3] = ["w__fetch2", "w__fetch3", "r__fetch"];

const SCRIPT: &str = r#"
    tool(#{ name: "fetch", description: "d" }, |a| {
        try {
            let got = http_get(a.url);
            return `${got.status} ${got.body}`;
        } catch (error) {
            return `error: ${error}`;
        }
    });
    tool(#{ name: "header", description: "d" }, |a| http_get(a.url).headers[a.name]);
"#;

fn project(grants: &[String]) -> Project {
    let project = Project::new("plugins.folders = [\"own\"]");
    let manifest = |id: &str, runtime: &str| {
        format!("plugin.id = {id:?}\nruntime = {runtime}\ncapabilities.network = {grants:?}")
    };
    project.write("own/w/plugin.toml", manifest("w", r#"{ kind = "wasm", path = "w.wasm" }"#));
    project.write("own/w/w.wasm", std::fs::read(guests::ESCAPE_HTTP).unwrap());
    project.write("own/r/plugin.toml", manifest("r", r#"{ kind = "rhai", path = "r.rhai" }"#));
    project.write("own/r/r.rhai", SCRIPT);
    project
}

async fn platform(grants: &[String]) -> RunningPlatform {
    let project = project(grants);
    let builder = project.builder().approver(GrantAll);
    let platform = builder.build().await.expect("the platform is built");
    for report in platform.plugins().iter() {
        assert_eq!(report.state, PluginState::Ready, "{report:?}");
    }
    RunningPlatform::new(platform, project)
}

fn get(url: &str) -> Value {
    json!({ "method": "GET", "url": url })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_granted_is_reached() {
    let server = serve().await;
    let platform = platform(&[server.url("/ok/*")]).await;
    for way in WAYS {
        assert_eq!(text(&platform, way, get(&server.url("/ok/x?y"))).await, "200 ok", "{way}");
        assert_eq!(server.heard(), ["GET /ok/x?y"]);
    }
    // A grant that names no method is one of all.
    for way in &WAYS[..2] {
        let post = json!({ "method": "POST", "url": server.url("/ok/x"), "body": "x" });
        let said = text(&platform, way, post).await;
        assert!(said.starts_with("200"), "{way}: {said:.200}");
    }
    assert_eq!(server.heard(), ["POST /ok/x", "POST /ok/x"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_arrives_as_it_was_made() {
    let server = serve().await;
    let platform = platform(&[server.url("/*")]).await;
    let host = format!("host: {}", server.address);
    for way in &WAYS[..2] {
        let request = json!({
            "method": "PUT", "url": server.url("/echo"), "headers": ["x-a: b"], "body": "the body"
        });
        let said = text(&platform, way, request).await.to_lowercase();
        assert!(said.starts_with("200 put /echo http/1.1\r\n"), "{way}: {said:.200}");
        for expected in ["x-a: b\r\n", &host, "the body"] {
            assert!(said.contains(expected), "{way}: {said:.200}");
        }
    }
    assert_eq!(server.heard().len(), 2);
    let header = json!({ "url": server.url("/ok"), "name": "content-length" });
    assert_eq!(text(&platform, "r__header", header).await, "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_another_request() {
    let (server, other) = (serve().await, serve().await);
    let platform = platform(&[server.url("/redirect"), server.url("/ok")]).await;
    let redirect = |to: &str| get(&server.url(&format!("/redirect?{to}")));
    assert_eq!(text(&platform, "r__fetch", redirect("/ok")).await, "200 ok");
    // Where it leads is what is refused.
    for to in [other.url("/ok"), server.url("/secret")] {
        let said = text(&platform, "r__fetch", redirect(&to)).await;
        assert!(said.contains(&format!("GET {to} is not granted")), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn this_machine_is_reached_where_it_is_named() {
    let server = serve().await;
    let port = server.address.port();
    let platform = platform(&[format!("http://localhost:{port}/*")]).await;
    for way in WAYS {
        for name in ["localhost", "LocalHost"] {
            let said = text(&platform, way, get(&format!("http://{name}:{port}/ok"))).await;
            assert_eq!(said, "200 ok", "{way} of {name}");
        }
    }
    assert_eq!(server.heard().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_is_not_too_long_arrives_whole() {
    let server = serve().await;
    let project = project(&[server.url("/*")]);
    project.write(
        "tenon.toml",
        "plugins.folders = [\"own\"]\nlimits = { download_mib = 1, output_kib = 2048 }",
    );
    let platform = project.builder().approver(GrantAll).build().await.unwrap();
    let platform = RunningPlatform::new(platform, project);
    for way in WAYS {
        let said = text(&platform, way, get(&server.url("/big?1000000"))).await;
        assert_eq!(said.len(), "200 ".len() + 1_000_000, "{way}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_does_not_come_in_time_costs_its_call_the_deadline() {
    let server = serve().await;
    // The plugin itself may take longer, and so may its requests.
    let platform = platform(&[server.url("/*")]).await;
    let timeout = Duration::from_secs(1);
    let late = ["/slow", "/silent"].into_iter().flat_map(|path| WAYS.map(|way| (way, path)));
    let outcomes = late.map(async |(way, path)| {
        (way, path, call_within(&platform, way, get(&server.url(path)), timeout).await)
    });
    for (way, path, outcome) in futures::future::join_all(outcomes).await {
        assert!(
            matches!(outcome, Err(CallError::Failed { failure: Failure::Deadline(time), .. })
                if time <= timeout),
            "{way} {path}: {outcome:?}"
        );
    }
    let mut heard = server.heard();
    heard.sort();
    assert_eq!(heard, [["GET /silent"; 3], ["GET /slow"; 3]].concat());
    // What comes in time from the same server is there.
    for (path, answer) in [("/slow?2", "200 xx"), ("/silent?1", "200 ok"), ("/ok", "200 ok")] {
        for way in WAYS {
            assert_eq!(text(&platform, way, get(&server.url(path))).await, answer, "{way} {path}");
        }
    }
}

/// What was logged.
#[derive(Clone, Default)]
struct LogText(Arc<Mutex<Vec<u8>>>);

impl io::Write for LogText {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn the_operator_reads_what_was_refused() {
    let (log, platform) = (LogText::default(), platform(&["https://a.example".into()]).await);
    // With one subscriber alone, tracing asks only the thread that comes to a message first whether anybody
    // wants it.
    let _others = [(), ()].map(|()| {
        let silent = tracing_subscriber::fmt().with_writer(io::sink).finish();
        tracing_subscriber::util::SubscriberInitExt::set_default(silent)
    });
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let _logging = tracing_subscriber::util::SubscriberInitExt::set_default(subscriber);
    for way in WAYS {
        text(&platform, way, get("https://b.example/x?key=secret")).await;
        let log = String::from_utf8(std::mem::take(&mut log.0.lock().unwrap())).unwrap();
        let plugin = &way[..1];
        let words = format!(
            "plugin \"{plugin}\": GET https://b.example/x is not granted; its plugin.toml would \
             request it with `network = [\"https://b.example/*\"]` under [capabilities]"
        );
        let line = log.lines().find(|line| line.contains(&words)).expect(&log);
        assert!(
            line.contains(" WARN ") && line.contains(&format!("plugin=\"{plugin}\"")),
            "{line}"
        );
        assert!(!line.contains("secret"), "{line}");
    }
}

/// What is done with sockets, and what it answers where there are any.
const SOCKETS: [(&str, &str); 5] = [
    ("connect", "connected"),
    ("listen", "listening"),
    ("bind", "bound"),
    ("send", "sent"),
    ("look-up", "found"),
];

/// The tools that do it, one for each edition of WASI, and what they are told that may not.
const SOCKET_TOOLS: [(&str, &str); 2] =
    [("sockets2", "access-denied"), ("sockets3", "AccessDenied")];

/// The arguments of such a tool.
fn socket(what: &str, server: SocketAddr) -> Value {
    let address = match what {
        "listen" | "bind" => "127.0.0.1:0".to_string(),
        "look-up" => "localhost".to_string(),
        _ => server.to_string(),
    };
    json!({ "what": what, "address": address })
}

/// What is refused in the table of the conformance suite, where a host has the network in it.
#[tokio::test]
async fn there_are_sockets_where_a_host_has_any() {
    let server = serve().await;
    for (what, done) in SOCKETS {
        for (tool, _) in SOCKET_TOOLS {
            let arguments = socket(what, server.address);
            let said = with_sockets(guests::ESCAPE_HTTP, tool, arguments, |_| true).await;
            assert_eq!(said, done, "{tool}: {what}");
        }
    }
    assert_eq!(server.silent().await.unwrap(), 2);
}

/// What `there_is_no_network` of `misbehave.rs` tries, where a host has the network in it.
#[tokio::test]
async fn a_guest_that_connects_by_std_does_where_a_host_has_sockets() {
    let server = serve().await;
    let arguments = json!({ "text": server.address.to_string() });
    let said = with_sockets(guests::MISBEHAVE, "connect", arguments, |_| true).await;
    assert_eq!(said, "connected");
    assert_eq!(server.silent().await.unwrap(), 1);
}

/// Whether an address may be used for this.
type UseCheck = fn(SocketAddrUse) -> bool;

#[tokio::test]
async fn each_attempt_at_a_socket_comes_as_far_as_its_own_operation() {
    let server = serve().await;
    let others: [(&str, UseCheck); 4] = [
        ("connect", |used| !matches!(used, SocketAddrUse::TcpConnect)),
        ("listen", |used| !matches!(used, SocketAddrUse::TcpListen)),
        ("bind", |used| !matches!(used, SocketAddrUse::UdpBind)),
        ("send", |used| !matches!(used, SocketAddrUse::UdpSend)),
    ];
    for (what, is_allowed) in others {
        for (tool, denied) in SOCKET_TOOLS {
            let arguments = socket(what, server.address);
            let said = with_sockets(guests::ESCAPE_HTTP, tool, arguments, is_allowed).await;
            assert_eq!(said, format!("error: {denied} by {what}"), "{tool}");
        }
    }
    assert_eq!(server.silent().await.unwrap(), 0);
}

/// Calls a tool of a guest on a host that has the network in it, as far as addresses may be used, and nothing
/// of ours.
async fn with_sockets(guest: &str, tool: &str, arguments: Value, is_allowed: UseCheck) -> String {
    use tenon_tests::bare::{CallContext, GuestIndices, text_of};
    use wasmtime::component::{Component, Linker, ResourceTable, ResourceType, types};
    use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, DynPollable};
    use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

    struct WasiState(WasiCtx, ResourceTable);

    impl WasiView for WasiState {
        fn ctx(&mut self) -> WasiCtxView<'_> {
            WasiCtxView { ctx: &mut self.0, table: &mut self.1 }
        }
    }

    let engine = wasmtime::Engine::default();
    let guest = std::fs::read(guest).expect("the guest was built");
    let component = Component::new(&engine, guest).expect("it compiles");
    let mut linker = Linker::<WasiState>::new(&engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker).expect("WASI is linked");
    wasmtime_wasi::p3::add_to_linker(&mut linker).expect("WASI is linked");
    // What is not called.
    for (name, import) in component.component_type().imports(&engine) {
        let is_wasi = name.starts_with("wasi:") && !name.starts_with("wasi:http/");
        let types::ComponentItem::ComponentInstance(instance) = import.ty else { continue };
        if is_wasi {
            continue;
        }
        let mut into = linker.instance(name).expect("it has a name");
        for (name, export) in instance.exports(&engine) {
            let uncalled = || Err(wasmtime::format_err!("it is not there"));
            let added = match export.ty {
                types::ComponentItem::ComponentFunc(function) if function.async_() => into
                    .func_new_concurrent(name, move |_, _, _, _| {
                        Box::pin(async move { uncalled() })
                    }),
                types::ComponentItem::ComponentFunc(_) => {
                    into.func_new(name, move |_, _, _, _| uncalled())
                }
                types::ComponentItem::Resource(_) => {
                    // Some are those of WASI, by another name.
                    let resource = match name {
                        "pollable" => ResourceType::host::<DynPollable>(),
                        "input-stream" => ResourceType::host::<DynInputStream>(),
                        "output-stream" => ResourceType::host::<DynOutputStream>(),
                        "io-error" => ResourceType::host::<wasmtime::Error>(),
                        _ => ResourceType::host::<()>(),
                    };
                    into.resource(name, resource, |_, _| Ok(()))
                }
                _ => Ok(()),
            };
            added.expect("it is defined once");
        }
    }
    let pre = linker.instantiate_pre(&component).expect("it is linked");
    let tools = GuestIndices::new(&pre).expect("it has tools");
    let mut wasi = WasiCtx::builder();
    wasi.allow_tcp(true).allow_udp(true).allow_ip_name_lookup(true);
    wasi.socket_addr_check(move |_, used| Box::pin(async move { is_allowed(used) }));
    let wasi = wasi.build();
    let mut store = wasmtime::Store::new(&engine, WasiState(wasi, ResourceTable::new()));
    let instance = pre.instantiate_async(&mut store).await.expect("it is instantiated");
    let tools = tools.load(&mut store, &instance).expect("it has tools");
    let context = CallContext {
        call_id: "1".into(),
        agent_id: None,
        session_id: None,
        traceparent: None,
        time_left: None,
        extra: None,
    };
    let (tool, arguments) = (tool.to_string(), arguments.to_string());
    let called = store
        .run_concurrent(async |accessor| {
            tools.call_call_tool(accessor, tool, arguments, context).await
        })
        .await;
    text_of(called.expect("the loop runs").expect("no trap").expect("an answer"))
}

#[tokio::test]
async fn without_a_grant_there_is_no_web() {
    let project = project(&["http://127.0.0.1/*".into()]);
    for id in ["w", "r"] {
        let path = format!("own/{id}/plugin.toml");
        let manifest = std::fs::read_to_string(project.path(&path)).unwrap();
        let manifest = manifest.lines().filter(|line| !line.starts_with("capabilities"));
        project.write(&path, manifest.collect::<Vec<_>>().join("\n"));
    }
    let platform = project.builder().approver(GrantAll).build().await.unwrap();
    let platform = RunningPlatform::new(platform, project);
    let report = platform.plugins().iter().find(|r| r.plugin == "w").cloned().unwrap();
    assert_eq!(report.state, PluginState::Refused);
    assert!(report.detail.unwrap().contains("the capability `network` is not granted"));
    let said = text(&platform, "r__fetch", get("http://127.0.0.1/x?secret")).await;
    assert_eq!(
        said,
        "error: denied: plugin \"r\": GET http://127.0.0.1/x is not granted; its plugin.toml would \
         request it with `network = [\"http://127.0.0.1/*\"]` under [capabilities]"
    );
}

#[tokio::test]
async fn a_grant_that_makes_no_sense_is_told() {
    let project = project(&["ftp://a.example/*".into()]);
    let platform = project.builder().approver(GrantAll).build().await.unwrap();
    for report in platform.plugins().iter() {
        assert_eq!(report.state, PluginState::Failed);
        let detail = report.detail.clone().unwrap();
        assert!(detail.contains("network: invalid URL pattern `ftp://a.example/*`"), "{detail}");
    }
}
