//! The conformance suite, as embedders run it: hosts that are configured as usual pass, and what an
//! embedder breaks is noticed, in the rows that are about it.

use async_trait::async_trait;
use serde_json::json;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tenon_config::discover::Sources;
use tenon_conformance::{Capability, Report, RowResult, Suite, Verdict};
use tenon_host::services::{
    ApprovalRequest, Approver, Connector, GrantAll, GrantDecision, Messaging, OutgoingMessage,
    Resolver, Secret, SecretStore, Stream, SystemNetwork,
};
use tenon_host::types::{Error, HookPoint, ToolDefinition, ToolResult};
use tenon_host::{Allocation, Builder, Builtin, Config, HostEnvironment, Limits};

use crate::support::host_environment;

/// Everything, with guests that other tests have compiled.
fn whole() -> Suite {
    Suite::new().cache(host_environment().cache.expect("tests have a cache"))
}

/// A bit of everything.
fn excerpt() -> Suite {
    whole()
        .only("pub/a.txt")
        .only("network/wasi-0.3/get http://{server}/ok")
        .only("environment/")
        .only("messaging/")
        .only("tools/")
        .only("nothing/rhai")
}

/// The names of what failed.
fn failed(report: &Report) -> Vec<&str> {
    report.failures().map(|outcome| outcome.expectation.name.as_str()).collect()
}

fn passes(report: &Report) {
    assert!(report.passed(), "{report}");
    assert_eq!(report.of(Verdict::Untried).count(), 0, "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_as_it_comes_conforms() {
    let report = whole().run(|builder| builder).await;
    passes(&report);
    for capability in [
        Capability::Nothing,
        Capability::Filesystem,
        Capability::Network,
        Capability::Environment,
        Capability::Secrets,
        Capability::Messaging,
        Capability::Memory,
        Capability::Providers,
        Capability::Tools,
        Capability::Limits,
    ] {
        let mut of = report.outcomes.iter().map(|outcome| outcome.expectation.capability);
        assert!(of.any(|of| of == capability), "{capability}");
    }
    let form = serde_json::to_value(&report).expect("it has a form in JSON");
    let first = &form["outcomes"][0];
    assert_eq!(first["name"], "nothing/std/read /etc/passwd");
    assert_eq!((&first["capability"], &first["access"]), (&json!("nothing"), &json!("std")));
    assert_eq!(first["verdict"], "passed");
    let control = first["control"].as_str().expect("it says what shows that it could be otherwise");
    assert_eq!(control, "where it is granted: an answer that begins with \"ok \"");
}

/// A host's own services.
#[derive(Clone, Default)]
struct Own {
    messages: Arc<Mutex<Vec<String>>>,
}

#[async_trait]
impl Messaging for Own {
    async fn send(&self, _: &str, message: OutgoingMessage) -> Result<(), Error> {
        self.messages.lock().unwrap().push(message.text);
        Ok(())
    }
}

#[async_trait]
impl SecretStore for Own {
    async fn secret(&self, _: &str, _: &str) -> Option<Secret> {
        Some(Secret::new("a secret of the host's own"))
    }
}

#[async_trait]
impl Approver for Own {
    /// Everything there is, whatever was requested.
    async fn approve(&self, request: &ApprovalRequest) -> GrantDecision {
        let mut granted = request.capabilities.clone();
        for (capability, value) in [
            ("filesystem", "readwrite:/**"),
            ("network", "http://*:*/*"),
            ("environment", "HIDDEN"),
            ("secrets", "other"),
            ("messaging", "*"),
            ("memory", "search"),
            ("providers", "*"),
            ("tools", "*"),
        ] {
            granted.entry(capability.into()).or_default().push(value.into());
        }
        granted.into()
    }
}

#[async_trait]
impl Resolver for Own {
    /// Everything is here.
    async fn resolve(&self, _: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec![SocketAddr::new([127, 0, 0, 1].into(), port)])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_tight_and_generous_where_it_may_be_conforms() {
    let own = Own::default();
    let tight = Limits {
        memory: 64 << 20,
        cpu: Duration::from_secs(2),
        wall: Duration::from_secs(5),
        transfer: 4 << 20,
        output: 512 << 10,
        host_calls: 100_000,
        handles: 1_000,
        ..Limits::default()
    };
    let schema = json!({ "type": "object" });
    let host = |builder: Builder| {
        let tool = ToolDefinition::new("x", "is the host's own", &schema);
        let plugin = Builtin::new("own", "is the host's own")
            .tool(tool, |_, _| async { Ok(ToolResult::text("x")) });
        builder
            .allocation(Allocation::Pool { instances: 200 })
            .limits_at_most(tight.clone())
            .builtin("own", plugin)
            .messaging(own.clone())
            .secrets(own.clone())
            .approver(own.clone())
            .resolver(own.clone())
            .connector(SystemNetwork)
    };
    let report = whole().run(host).await;
    passes(&report);
    // Nobody got a message of a test.
    assert!(own.messages.lock().unwrap().is_empty());
}

#[tokio::test]
async fn limits_cannot_be_raised_from_without() {
    let generous =
        "[limits]\ncpu = \"1h\"\nwall = \"1h\"\nmemory_mib = 4000\nhost_calls = 4000000000";
    let report = whole()
        .only("limits/component/compute")
        .only("limits/component/give others a turn")
        .only("limits/component/wait")
        .only("limits/component/hoard memory")
        .only("limits/component/call the host")
        .run(|builder| {
            let config = Config::parse(generous, "generous.toml").unwrap();
            builder.config(config).limits_at_most(Limits::most())
        })
        .await;
    passes(&report);
    assert_eq!(report.outcomes.len(), 7, "{report}");
}

/// Whether something failed, and only what should show that the attempt could succeed.
fn only_controls_failed(outcome: &RowResult) -> bool {
    let places = ["where it is granted: ", "of what is granted beside it: "];
    let of_control = |seen: &String| places.iter().any(|place| seen.starts_with(place));
    !outcome.seen.is_empty() && outcome.seen.iter().all(of_control)
}

/// Says the same to everybody.
struct FixedApproval(GrantDecision);

#[async_trait]
impl Approver for FixedApproval {
    async fn approve(&self, _: &ApprovalRequest) -> GrantDecision {
        self.0.clone()
    }
}

#[tokio::test]
async fn an_approver_that_grants_nothing_fails_what_should_work() {
    let nothing = || FixedApproval(GrantDecision::Granted(Default::default()));
    let report = whole()
        .only("/read pub/a.txt")
        .only("environment/")
        .only("messaging/rhai")
        .only("tools/rhai")
        .only("nothing/")
        .run(|builder| builder.approver(nothing()))
        .await;
    for outcome in &report.outcomes {
        let name = &outcome.expectation.name;
        let is_of_nothing = outcome.expectation.capability == Capability::Nothing;
        // Who asks for nothing is refused as ever, and nothing shows that it could be otherwise.
        let is_held = is_of_nothing && only_controls_failed(outcome);
        // What the suite approves itself is as it was.
        let fails = !is_of_nothing && !name.contains("approved");
        assert_eq!(outcome.verdict == Verdict::Failed, fails || is_held, "{name} in {report}");
    }
    let held = |name: &str| report.failures().any(|outcome| outcome.expectation.name == name);
    assert!(held("nothing/std/read /etc/passwd") && held("nothing/rhai/call a tool"), "{report}");
    assert!(held("nothing/import/be loaded with tenon:plugin/host-tools"), "{report}");
    let undecided = || FixedApproval(GrantDecision::Undecided);
    let report = excerpt().run(|builder| builder.approver(undecided())).await;
    assert!(report.to_string().contains("which is not approved"), "{report}");
}

#[tokio::test]
async fn a_host_that_has_other_plugins_fails_and_says_so() {
    let report = excerpt().run(|builder| builder.sources(Sources::default())).await;
    assert_eq!(report.failures().count(), report.outcomes.len(), "{report}");
    let said = report.to_string();
    assert!(said.contains("the host does not have the plugin \"conformance-files\""), "{said}");
    let report = excerpt()
        .only("filesystem/std/read")
        .run(|builder| builder.builtin("conformance-files", Builtin::new("files", "is in the way")))
        .await;
    assert!(report.to_string().contains("reserved"), "{report}");
    let minimal = "policy.profile = \"minimal\"";
    let report = excerpt()
        .run(|builder| builder.config(Config::parse(minimal, "minimal.toml").unwrap()))
        .await;
    assert!(report.to_string().contains("the profile `minimal`"), "{report}");
    // Nobody is there to whom anything is granted, and nothing is refused less for that.
    for outcome in report.failures() {
        let is_of_nothing = outcome.expectation.capability == Capability::Nothing;
        assert!(!is_of_nothing || only_controls_failed(outcome), "{report}");
    }
}

#[tokio::test]
async fn other_surroundings_are_noticed() {
    let report = excerpt()
        .run(|builder| {
            let environment = [("SEEN".into(), "another".into())].into();
            builder.host_environment(HostEnvironment { environment, ..HostEnvironment::default() })
        })
        .await;
    let of_variables = |name: &&str| name.starts_with("environment/");
    assert!(!report.passed() && failed(&report).iter().all(of_variables), "{report}");
}

/// A connector that does not care where it should connect to.
struct MisdirectingConnector(SocketAddr);

#[async_trait]
impl Connector for MisdirectingConnector {
    async fn connect(&self, _: SocketAddr) -> io::Result<Box<dyn Stream>> {
        SystemNetwork.connect(self.0).await
    }
}

#[tokio::test]
async fn connections_that_lead_elsewhere_are_noticed() {
    let server = crate::http_server::serve().await;
    let report =
        excerpt().run(|builder| builder.connector(MisdirectingConnector(server.address))).await;
    let of_network = |name: &&str| name.starts_with("network/") || name.contains("/get http");
    assert!(!report.passed() && failed(&report).iter().all(of_network), "{report}");
    assert!(report.to_string().contains("requests to the server: [], where"), "{report}");
}

#[tokio::test]
async fn a_hook_that_is_in_the_way_is_noticed() {
    let report = excerpt()
        .run(|builder| {
            let hook = Builtin::new("guard", "forbids everything").hook(
                HookPoint::BeforeToolCall,
                |_| async {
                    use tenon_host::types::HookDecision;
                    Ok(HookDecision::Veto("nobody may".into()))
                },
            );
            builder.builtin("guard", hook)
        })
        .await;
    assert_eq!(report.failures().count(), report.outcomes.len());
    assert!(report.to_string().contains("vetoed: plugin \"guard\" vetoed it"), "{report}");
}

#[tokio::test]
async fn a_host_that_panics_is_reported() {
    struct Panics;

    #[async_trait]
    impl Approver for Panics {
        async fn approve(&self, _: &ApprovalRequest) -> GrantDecision {
            panic!("I cannot decide")
        }
    }

    let panics = |_: Builder| -> Builder { panic!("I have no host") };
    let report = excerpt().run(panics).await;
    assert_eq!(report.failures().count(), report.outcomes.len());
    assert!(report.to_string().contains("set-up panicked: I have no host"), "{report}");
    let report = excerpt().run(|builder| builder.approver(Panics)).await;
    assert!(report.to_string().contains("the host panicked: I cannot decide"), "{report}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pool_that_is_too_small_is_noticed() {
    let suite = excerpt().only("limits/component/wait too long");
    let report = suite.run(|builder| builder.allocation(Allocation::Pool { instances: 1 })).await;
    assert!(!report.passed(), "{report}");
}

#[tokio::test]
async fn a_report_says_first_what_failed_and_can_be_awaited_anywhere() {
    let report = excerpt().run(|builder| builder.approver(GrantAll)).await;
    passes(&report);
    let suite = whole().only("messaging/rhai/send");
    let running = async move {
        suite
            .run(|builder| builder.approver(FixedApproval(GrantDecision::Undecided)))
            .await
            .to_string()
    };
    let said = tokio::spawn(running).await.expect("it does not panic");
    let expected = "3 failed, 0 untried, 2 passed\n\n\
        FAILED  messaging/rhai/send a message to a channel that was granted\n  \
          expected  the answer \"sent\"\n  \
          control   where it is not granted: a refusal, with the line that requests `messaging`\n  \
          seen      plugin \"conformance-script\" is refused: it requests ";
    assert!(said.starts_with(expected), "{said}");
}

#[tokio::test]
async fn nothing_that_was_chosen_is_nothing_that_passes() {
    let report = Suite::new().only("no such expectation").run(|builder| builder).await;
    assert!(!report.passed());
}
