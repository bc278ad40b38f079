//! Every way in which a guest goes wrong is contained: it is named, and the next call works, on a
//! fresh instance and on a shared one.

use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tenon_host::{CallError, Failure, LimitExceeded};

use crate::guests;
use crate::support::{Project, RunningPlatform, call, text};

/// Limits of time that are soon reached, and such that nothing else comes after.
const SOON: (&str, &str) = ("300ms", "2s");
const LATE: (&str, &str) = ("60s", "90s");

/// A platform with the guest in both modes, limits of time, and others that are soon reached.
async fn platform((cpu, wall): (&str, &str)) -> RunningPlatform {
    let project = Project::new(&format!(
        r#"
        [plugins]
        wasm = [
            {{ path = {path:?}, id = "fresh" }},
            {{ path = {path:?}, id = "shared", instance = "shared" }},
            {{ path = {path:?}, id = "bystander", instance = "shared" }},
        ]
        [limits]
        memory_mib = 64
        cpu = "{cpu}"
        wall = "{wall}"
        transfer_mib = 8
        host_calls = 10000
        "#,
        path = guests::MISBEHAVE
    ));
    project.platform().await
}

/// Goes wrong in one way, in both modes, and looks whether anybody else noticed.
async fn check(way: &str, arguments: Value, expected: impl Fn(&Failure) -> bool) {
    // On a busy machine the time of what takes none may be over before it meets its limit.
    let is_about_time = ["hang", "spin", "spin_politely"].contains(&way);
    let platform = platform(if is_about_time { SOON } else { LATE }).await;
    for id in ["fresh", "shared"] {
        let began = Instant::now();
        let name = format!("{id}__{way}");
        let error = call(&platform, &name, arguments.clone()).await.expect_err("it goes wrong");
        let CallError::Failed { plugin, failure } = error else { panic!("{name}: {error}") };
        assert_eq!(&*plugin, id);
        assert!(expected(&failure), "{name}: {failure:?}");
        let most = Duration::from_secs(if is_about_time { 20 } else { 80 });
        assert!(began.elapsed() < most, "{name} took {:?}", began.elapsed());
        for other in [id, "bystander"] {
            let echo = format!("{other}__echo");
            assert_eq!(text(&platform, &echo, json!({ "text": "fine" })).await, "fine");
        }
    }
}

macro_rules! ways {
    ($($name:ident: $way:literal, $arguments:expr => $expected:pat),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            check($way, $arguments, |failure| matches!(failure, $expected)).await;
        }
    )*};
}

ways! {
    a_guest_that_waits_for_ever_is_given_up: "hang", json!({}) => Failure::Deadline(_),
    a_guest_that_computes_for_ever_is_stopped: "spin", json!({}) => Failure::LimitExceeded(LimitExceeded::Cpu(_)),
    a_guest_that_computes_politely_is_given_up: "spin_politely", json!({})
        => Failure::Deadline(_) | Failure::LimitExceeded(LimitExceeded::Cpu(_)),
    a_guest_that_hoards_memory_is_stopped: "hoard", json!({}) => Failure::LimitExceeded(LimitExceeded::Memory(_)),
    a_guest_that_recurses_traps: "recurse", json!({})
        => Failure::Trapped(_) | Failure::LimitExceeded(LimitExceeded::Depth),
    a_guest_that_traps_is_named: "trap", json!({}) => Failure::Trapped(_),
    a_guest_cannot_end_the_host: "exit", json!({}) => Failure::Trapped(_),
    a_flood_of_output_is_cut_off: "flood_output", json!({}) => Failure::LimitExceeded(LimitExceeded::Transfer(_)),
    a_flood_of_log_messages_is_stopped: "flood_log", json!({})
        => Failure::LimitExceeded(LimitExceeded::HostCalls(_)),
    a_flood_of_calls_of_the_host_is_stopped: "flood_host", json!({})
        => Failure::LimitExceeded(LimitExceeded::HostCalls(_)),
    a_flood_on_the_console_is_stopped: "flood_console", json!({})
        => Failure::LimitExceeded(LimitExceeded::HostCalls(_)),
    nonsense_for_an_answer_is_refused: "nonsense", json!({}) => Failure::Contract(_),
    an_error_of_the_contract_is_passed_on: "denied", json!({ "text": "no" })
        => Failure::Answered(tenon_host::types::Error { code: tenon_host::types::ErrorCode::Denied, .. }),
    there_are_no_files: "read_file", json!({ "text": "/etc/passwd" })
        => Failure::Answered(tenon_host::types::Error { code: tenon_host::types::ErrorCode::Denied, .. }),
    there_are_no_files_above_either: "read_file", json!({ "text": "../../../etc/passwd" })
        => Failure::Answered(tenon_host::types::Error { code: tenon_host::types::ErrorCode::Denied, .. }),
}

/// That this guest connects where a host has sockets is shown in `network.rs`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_is_no_network() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    check("connect", json!({ "text": address.to_string() }), |failure| {
        matches!(
            failure,
            Failure::Answered(tenon_host::types::Error {
                code: tenon_host::types::ErrorCode::Denied,
                ..
            })
        )
    })
    .await;
    let nobody = server.accept().expect_err("nobody has connected");
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
    std::net::TcpStream::connect(address).expect("anybody can");
    server.accept().expect("somebody has connected");
}

#[tokio::test]
async fn a_guest_with_too_large_a_table_is_not_there() {
    let project = Project::new(&format!(
        "plugins.wasm = [{:?}]\nlimits.table_elements = 10",
        guests::MISBEHAVE
    ));
    let platform = project.platform().await;
    let detail = platform.plugins()[0].detail.clone().expect("it says why");
    assert!(detail.contains("limit of 10 table elements"), "{detail}");
}

#[tokio::test]
async fn a_script_cannot_flood_the_host_either() {
    let project = Project::new("plugins.scripts = [\"s.rhai\"]\nlimits.host_calls = 5");
    let script = "tool(#{ name: \"t\", description: \"d\" }, |a| {
        let found = 0;
        for i in 0..a.times { try { search_memory(\"x\"); } catch { found += 1; } }
        `${found}`
    });";
    project.write("s.rhai", script);
    let platform = project.platform().await;
    assert_eq!(text(&platform, "s__t", json!({ "times": 5 })).await, "5");
    let error = call(&platform, "s__t", json!({ "times": 6 })).await.unwrap_err();
    let CallError::Failed { failure, .. } = error else { panic!("{error}") };
    assert!(matches!(failure, Failure::LimitExceeded(LimitExceeded::HostCalls(5))), "{failure:?}");
}

#[tokio::test]
async fn the_last_words_of_a_guest_that_panics_are_told() {
    let platform = platform(SOON).await;
    let error = call(&platform, "fresh__panic", json!({ "text": "goodbye" })).await.unwrap_err();
    assert!(error.to_string().contains("I was told to: goodbye"), "{error}");
    assert_eq!(text(&platform, "fresh__echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn the_environment_is_empty() {
    let platform = platform(SOON).await;
    assert_eq!(text(&platform, "fresh__environment", json!({})).await, "[]");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_that_fails_to_register_is_left_out_and_says_why() {
    let check = async |way: &str, expected: &str| {
        let project = Project::new(&format!(
            "plugins.wasm = [{{ path = {0:?}, id = \"bad\" }}, {{ path = {0:?}, id = \"good\" }}]\n\
             limits = {{ cpu = \"200ms\" }}\nsettings.bad.register = {way:?}",
            guests::MISBEHAVE
        ));
        let platform = project.platform().await;
        let detail = platform.plugins()[0].detail.clone().expect("it says why");
        assert!(detail.contains(expected), "{way}: {detail}");
        assert_eq!(text(&platform, "good__echo", json!({ "text": "x" })).await, "x");
    };
    check("error", "I would rather not").await;
    check("trap", "I cannot register").await;
    check("spin", "CPU limit").await;
    check("nonsense", "\"echo\" is left out: its input schema: it is not JSON").await;
    check("version", "its version \"the newest\" is not a version number").await;
}

/// A tool, an amount that it may use, one that is too much, and the limit that it then meets.
type Amount = (&'static str, usize, usize, fn(&LimitExceeded) -> bool);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_much_may_be_used_as_the_limits_say_and_no_more() {
    // Time enough on a busy machine: it is the others that are tried.
    let project = Project::new(&format!(
        r#"
        plugins.wasm = [
            {{ path = {path:?}, id = "fresh" }},
            {{ path = {path:?}, id = "shared", instance = "shared" }},
        ]
        limits = {{ memory_mib = 64, transfer_mib = 8, host_calls = 10000, cpu = "60s", wall = "120s" }}
        "#,
        path = guests::MISBEHAVE
    ));
    let platform = project.platform().await;
    let rows: [Amount; 3] = [
        (
            "take_memory",
            48,
            80,
            |limit| matches!(limit, LimitExceeded::Memory(most) if *most == 64 << 20),
        ),
        (
            "answer_with",
            7,
            9,
            |limit| matches!(limit, LimitExceeded::Transfer(most) if *most == 8 << 20),
        ),
        ("ask_host", 9_000, 11_000, |limit| matches!(limit, LimitExceeded::HostCalls(10_000))),
    ];
    for (tool, within, beyond, is_limit) in rows {
        for id in ["fresh", "shared"] {
            let name = format!("{id}__{tool}");
            let amount = |amount: usize| json!({ "text": amount.to_string() });
            let answered = call(&platform, &name, amount(within)).await;
            answered.unwrap_or_else(|error| panic!("{name} of {within}: {error}"));
            // What is answered would be too long to be shown.
            let stopped = call(&platform, &name, amount(beyond)).await.map(drop);
            let Err(CallError::Failed { failure: Failure::LimitExceeded(limit), .. }) = &stopped
            else {
                panic!("{name} of {beyond}: {stopped:?}")
            };
            assert!(is_limit(limit), "{name} of {beyond}: {limit}");
        }
    }
}

#[tokio::test]
async fn a_guest_that_waits_has_all_the_time_that_it_may_take() {
    let project =
        Project::new(&format!("plugins.wasm = [{:?}]\nlimits.wall = \"3s\"", guests::MISBEHAVE));
    let platform = project.platform().await;
    let began = Instant::now();
    let error = call(&platform, "misbehave__hang", json!({})).await.expect_err("it is given up");
    assert!(began.elapsed() >= Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(error.to_string().contains("no answer within 3s"), "{error}");
}

/// Runs the command to its end, and gives what it said, how long that took, and how much of that the processor
/// worked for it.
#[cfg(target_os = "linux")]
fn measured(project: &Project, arguments: &[&str]) -> (String, Duration, Duration) {
    use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
    use std::fs::File;
    let said = project.path("said");
    let file = File::create(&said).expect("there is room for a file");
    let mut command = project.command(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
    let began = Instant::now();
    let mut child = command.spawn().expect("tenon starts");
    let pid = Pid::from_child(&child);
    // It has ended, and is still there to be looked at.
    waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("it ends");
    let took = began.elapsed();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).expect("it is there");
    child.wait().expect("it has ended");
    // Behind the name, which may have spaces, the twelfth and thirteenth: ticks, of which a second has
    // a hundred.
    let (_, fields) = stat.rsplit_once(')').expect("it has a name");
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|field| field.parse::<u64>().expect("it is a number")).sum();
    let worked = Duration::from_millis(10 * ticks);
    (std::fs::read_to_string(said).expect("it is text"), took, worked)
}

#[cfg(target_os = "linux")]
#[test]
fn what_computes_for_ever_works_for_its_time_and_not_for_longer() {
    let project = Project::new(&format!(
        "plugins = {{ wasm = [{:?}], scripts = [\"s.rhai\"] }}\n\
         limits = {{ cpu = \"2s\", wall = \"60s\" }}",
        guests::MISBEHAVE
    ));
    project.write(
        "s.rhai",
        "tool(#{ name: \"echo\", description: \"d\" }, |a| \"x\");
         tool(#{ name: \"spin\", description: \"d\" }, |a| { loop {} });",
    );
    for plugin in ["misbehave", "s"] {
        let run = |tool: &str| measured(&project, &["call", &format!("{plugin}__{tool}"), "{}"]);
        // The first one compiles.
        run("echo");
        let (_, _, at_least) = run("echo");
        let (said, took, worked) = run("spin");
        assert!(said.contains("CPU limit"), "{plugin}: {said}");
        let limit = Duration::from_secs(2);
        // What others do meanwhile may count as its time, and what it does not get cannot.
        assert!(took >= limit, "{plugin}: {took:?}");
        // With some room for what differs from one start of the command to the next.
        let most = at_least + limit.mul_f64(1.3);
        assert!(worked < most, "{plugin}: {worked:?} after {at_least:?}");
    }
}
