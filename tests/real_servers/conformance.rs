//! The official conformance suite for clients, with the command as the client.

use futures::StreamExt;
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use tokio::process::Command;

use crate::support::{Project, stderr, stdout, tenon};
use crate::{Servers, named};
use tenon_tests::newer_node;

/// A scenario of the official conformance suite, which has a server for it.
struct Scenario {
    name: &'static str,
    /// The revision of the protocol that the server speaks.
    revision: &'static str,
    /// What the client runs against the server, `s`: lines of a shell script.
    commands: &'static str,
    /// The last line that the client prints.
    prints: &'static str,
    /// How many checks the scenario has.
    checks: usize,
}

const DEFAULTS: Scenario = Scenario {
    name: "elicitation-sep1034-client-defaults",
    revision: "2025-11-25",
    commands: "tenon tools\n\
               tenon call s__test_client_elicitation_defaults --answers answers.json",
    // The suite checks no more of the defaults than their types.
    prints: r#"Elicitation completed: {"age":30,"name":"John Doe","score":95.5,"status":"active","verified":true}"#,
    checks: 5,
};

const SUM: &str = r#"tenon tools
tenon call s__add_numbers '{"a": 19, "b": 23}'"#;

const ECHO_OF_A_SCHEMA: &str = r#"tenon --json tools > tools.json
node -e '
  const tools = JSON.parse(require("fs").readFileSync("tools.json"));
  const { inputSchema } = tools.find((tool) => tool.name === "s__json_schema_2020_12_tool");
  console.log(JSON.stringify({ schema: inputSchema }));
' > arguments.json
tenon call s__json_schema_echo @arguments.json"#;

/// The others that need neither OAuth nor an extension. With the name of a plugin, `tenon tools`
/// succeeds even where it leaves out a tool.
const SCENARIOS: [Scenario; 12] = [
    Scenario {
        name: "initialize",
        revision: "2025-11-25",
        commands: "tenon tools",
        prints: "",
        checks: 1,
    },
    Scenario {
        name: "tools_call",
        revision: "2025-11-25",
        commands: SUM,
        prints: "The sum of 19 and 23 is 42",
        checks: 2,
    },
    Scenario {
        name: "tools_call",
        revision: "2026-07-28",
        commands: SUM,
        prints: "The sum of 19 and 23 is 42",
        checks: 2,
    },
    Scenario {
        name: "sse-retry",
        revision: "2025-11-25",
        commands: "tenon tools\n\
                   tenon call s__test_reconnection",
        prints: "Reconnection test completed successfully",
        checks: 3,
    },
    Scenario {
        name: "request-metadata",
        revision: "2026-07-28",
        commands: "tenon tools --answers answers.json",
        prints: "",
        // Two more are skipped, for the client offers neither roots nor a model.
        checks: 6,
    },
    Scenario {
        name: "sep-2322-client-request-state",
        revision: "2026-07-28",
        commands: "tenon tools\n\
                   for tool in echo_state no_state unrelated no_result_type; do\n\
                   tenon call s__test_mrtr_$tool --answers answers.json\n\
                   done",
        prints: "no-result-type-test-ok",
        checks: 5,
    },
    Scenario {
        name: "http-standard-headers",
        revision: "2026-07-28",
        commands: "tenon tools\n\
                   tenon resources list s\n\
                   tenon resources templates s\n\
                   tenon resources read s file:///path/to/file%20name.txt\n\
                   tenon prompts list s\n\
                   tenon prompts get s test_prompt\n\
                   tenon call s__my-hyphenated-tool",
        prints: "Headers test completed",
        checks: 10,
    },
    Scenario {
        name: "http-custom-headers",
        revision: "2026-07-28",
        commands: r#"tenon tools
node -e '
  for (const { name, arguments: all } of JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT).toolCalls) {
    require("fs").writeFileSync(`${name}.json`, JSON.stringify(all));
  }
'
for tool in test_custom_headers test_custom_headers_null; do
tenon call s__$tool @$tool.json
done"#,
        prints: "Custom headers test completed",
        checks: 18,
    },
    Scenario {
        name: "http-invalid-tool-headers",
        revision: "2026-07-28",
        commands: "tenon tools s\n\
                   tenon call s__valid_tool '{\"region\": \"north\"}'",
        prints: "Tool call received",
        checks: 12,
    },
    Scenario {
        name: "json-schema-ref-no-deref",
        revision: "2026-07-28",
        commands: "tenon tools s",
        prints: "",
        checks: 1,
    },
    Scenario {
        name: "json-schema-2020-12-preservation",
        revision: "2025-11-25",
        commands: ECHO_OF_A_SCHEMA,
        prints: "echoed",
        checks: 9,
    },
    Scenario {
        name: "json-schema-2020-12-preservation",
        revision: "2026-07-28",
        commands: ECHO_OF_A_SCHEMA,
        prints: "echoed",
        checks: 9,
    },
];

/// How a scenario ended.
struct ScenarioOutput {
    /// The exit code of the suite, and all that the suite said.
    code: Option<i32>,
    said: String,
    /// What the client printed.
    printed: String,
    /// The checks that passed.
    passed: Vec<String>,
}

impl Scenario {
    /// Has the suite run the command as the client, with these answers for whoever asks its user.
    async fn run(&self, servers: &Servers, answers: &Value) -> ScenarioOutput {
        let Self { name, revision, commands, .. } = self;
        Self::run_client(servers, name, revision, commands, answers).await
    }

    /// The same for a scenario of this name, with these commands.
    async fn run_client(
        servers: &Servers,
        name: &str,
        revision: &str,
        commands: &str,
        answers: &Value,
    ) -> ScenarioOutput {
        let project = Project::new("");
        project.write("answers.json", answers.to_string());
        // What is kept of another server that had the same port in an earlier run is not for this one.
        let headers = format!("{{ X-Project = {:?} }}", project.path(""));
        let entry = named("s", &format!("url = \"%s\", headers = {headers}"));
        let configure = format!("printf 'plugins.mcp = [{entry}]\\n' \"$1\" > tenon.toml");
        project.write("client.sh", format!("set -eu\n{configure}\n{commands}\n"));
        let mut suite = Command::from(project.program(newer_node(&servers.folder)));
        suite.arg(servers.script("conformance")).args(["client", "--command", "sh client.sh"]);
        suite.args(["--scenario", name, "--spec-version", revision]);
        suite.args(["--output-dir", "results", "--timeout", "180000"]);
        let tenon = tenon().parent().expect("it is in a folder");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = [tenon.to_path_buf()].into_iter().chain(std::env::split_paths(&path));
        suite.env("PATH", std::env::join_paths(path).expect("it was split before"));
        suite.stdin(Stdio::null()).kill_on_drop(true);
        let output = suite.output().await.expect("the suite starts");
        let said = format!("{}{}", stdout(&output), stderr(&output));

        // The name of a scenario may be that of a folder in a folder.
        let mut results = project.path("results");
        while !results.join("checks.json").exists() {
            let inner = fs::read_dir(&results).ok().and_then(|mut folders| folders.next()?.ok());
            results = inner.unwrap_or_else(|| panic!("{name} has no results: {said}")).path();
        }
        let read = |name: &str| fs::read_to_string(results.join(name)).expect("a result is read");
        let checks: Vec<Value> = serde_json::from_str(&read("checks.json")).expect("it is JSON");
        let passed = checks.iter().filter(|check| check["status"] == "SUCCESS");
        let passed = passed.filter_map(|check| Some(check["id"].as_str()?.to_string())).collect();
        ScenarioOutput { code: output.status.code(), said, printed: read("stdout.txt"), passed }
    }
}

pub(crate) async fn the_command_passes_scenarios_of_the_official_conformance_suite(
    servers: Servers,
) {
    let run = async |scenario: &Scenario| {
        let Scenario { name, revision, prints, checks, .. } = scenario;
        let ScenarioOutput { code, said, printed, passed } =
            scenario.run(&servers, &json!({ "accept": {} })).await;
        assert_eq!(code, Some(0), "{name}, {revision}: {said}");
        let all = format!("\nPassed: {checks}/{checks}, 0 failed, 0 warnings\n");
        assert!(said.contains(&all), "{name}, {revision}: {said}");
        assert_eq!(passed.len(), *checks, "{name}, {revision}: {passed:?}");
        let last = printed.lines().last().unwrap_or_default();
        assert!(prints.is_empty() || last == *prints, "{name}, {revision}: {printed}");
        passed
    };
    let passed = run(&DEFAULTS).await;
    let of_type = |kind: &str| format!("client-elicitation-sep1034-{kind}-default");
    assert_eq!(passed, ["string", "integer", "number", "enum", "boolean"].map(of_type));
    // Each takes several processes, and there may be few processors.
    let (others, run) = (futures::stream::iter(&SCENARIOS), &run);
    others.for_each_concurrent(2, |scenario| async move { drop(run(scenario).await) }).await;
}

/// A scenario of the suite that is about a login.
struct LoginScenario {
    name: &'static str,
    /// The revisions of the protocol that it is for.
    revisions: &'static [&'static str],
    client: ExpectedLogin,
}

/// What a client does in a scenario.
enum ExpectedLogin {
    /// Logs in, and calls a tool.
    Calls,
    /// The same, once more with the rights that were missing.
    CallsTwice,
    /// The same, and the call is refused again.
    IsRefused,
    /// Does not log in: the server, or who gives tokens, is not who it should be.
    Declines,
}

const LEGACY: &str = "2025-11-25";
const MODERN: &str = "2026-07-28";

/// All of the suite that are part of a revision. What is an extension, for clients without a user, is not offered.
const LOGINS: [LoginScenario; 27] = {
    use ExpectedLogin::{Calls, CallsTwice, Declines, IsRefused};
    const fn scenario(
        name: &'static str,
        revisions: &'static [&'static str],
        client: ExpectedLogin,
    ) -> LoginScenario {
        LoginScenario { name, revisions, client }
    }
    [
        scenario("metadata-default", &[LEGACY, MODERN], Calls),
        scenario("metadata-var1", &[LEGACY, MODERN], Calls),
        scenario("metadata-var2", &[LEGACY, MODERN], Calls),
        scenario("metadata-var3", &[LEGACY, MODERN], Calls),
        scenario("basic-cimd", &[LEGACY, MODERN], Calls),
        scenario("scope-from-www-authenticate", &[LEGACY, MODERN], Calls),
        scenario("scope-from-scopes-supported", &[LEGACY, MODERN], Calls),
        scenario("scope-omitted-when-undefined", &[LEGACY, MODERN], Calls),
        scenario("scope-step-up", &[LEGACY, MODERN], CallsTwice),
        scenario("scope-retry-limit", &[LEGACY, MODERN], IsRefused),
        scenario("token-endpoint-auth-basic", &[LEGACY, MODERN], Calls),
        scenario("token-endpoint-auth-post", &[LEGACY, MODERN], Calls),
        scenario("token-endpoint-auth-none", &[LEGACY, MODERN], Calls),
        scenario("pre-registration", &[LEGACY, MODERN], Calls),
        scenario("2025-03-26-oauth-metadata-backcompat", &["2025-03-26"], Calls),
        scenario("2025-03-26-oauth-endpoint-fallback", &["2025-03-26"], Calls),
        scenario("resource-mismatch", &[MODERN], Declines),
        scenario("offline-access-scope", &[MODERN], Calls),
        scenario("offline-access-not-supported", &[MODERN], Calls),
        scenario("authorization-server-migration", &[MODERN], CallsTwice),
        scenario("iss-supported", &[MODERN], Calls),
        scenario("iss-not-advertised", &[MODERN], Calls),
        scenario("iss-supported-missing", &[MODERN], Declines),
        scenario("iss-wrong-issuer", &[MODERN], Declines),
        scenario("iss-unexpected", &[MODERN], Declines),
        scenario("iss-normalized", &[MODERN], Declines),
        scenario("metadata-issuer-mismatch", &[MODERN], Declines),
    ]
};

/// What a browser does whose user says yes to everything.
const BROWSER: &str = r#"cat > browser <<END
#!/bin/sh
exec node -e 'fetch(process.argv[1]).then((page) => page.text())' "\$1"
END
chmod +x browser
export BROWSER="$PWD/browser"
"#;

impl LoginScenario {
    fn commands(&self) -> String {
        let (before, arguments) = match self.name {
            "basic-cimd" => {
                ("", "--client-metadata https://conformance-test.local/client-metadata.json")
            }
            "pre-registration" => (
                "context() { node -p \"JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT).$1\"; }\n\
                 context client_secret | tenon secret set suite-client\n\
                 id=$(context client_id)\n",
                "--client-id $id --client-secret suite-client",
            ),
            _ => ("", ""),
        };
        let login = format!("tenon login s {arguments}\n");
        let call = "tenon call s__test-tool\n";
        let client = match self.client {
            ExpectedLogin::Calls => format!("{login}{call}"),
            ExpectedLogin::CallsTwice => format!("{login}! {call}{login}{call}"),
            ExpectedLogin::IsRefused => format!("{login}! {call}{login}! {call}"),
            ExpectedLogin::Declines => format!("! {login}"),
        };
        format!("{BROWSER}{before}{client}")
    }
}

pub(crate) async fn the_command_logs_in_as_the_official_conformance_suite_wants(servers: Servers) {
    let scenarios = LOGINS
        .iter()
        .flat_map(|scenario| scenario.revisions.iter().map(move |revision| (scenario, *revision)));
    let run = async |scenario: &LoginScenario, revision: &str| {
        let (name, commands) = (format!("auth/{}", scenario.name), scenario.commands());
        let answers = json!({});
        let ran = Scenario::run_client(&servers, &name, revision, &commands, &answers);
        // The suite fails a client that leaves out a check. Some are made for each request.
        let ScenarioOutput { code, said, passed, .. } = ran.await;
        assert_eq!(code, Some(0), "{name}, {revision}: {said}");
        assert!(said.contains(", 0 failed, 0 warnings\n"), "{name}, {revision}: {said}");
        assert!(passed.iter().any(|id| id.starts_with("prm-") || id.starts_with("authorization-")));
    };
    let (scenarios, run) = (futures::stream::iter(scenarios), &run);
    let run = async |(scenario, revision)| run(scenario, revision).await;
    scenarios.for_each_concurrent(2, run).await;
}

pub(crate) async fn the_official_conformance_suite_fails_a_command_that_does_not_log_in(
    servers: Servers,
) {
    let name = "auth/metadata-default";
    let answers = json!({});
    let ran = Scenario::run_client(&servers, name, MODERN, "! tenon tools s\n", &answers);
    let ScenarioOutput { code, said, .. } = ran.await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("Expected Check Missing: authorization-request"), "{said}");
}

pub(crate) async fn the_official_conformance_suite_fails_a_command_that_does_not_accept_defaults(
    servers: Servers,
) {
    let not_a_number = json!({ "accept": { "age": "many" } });
    for (answers, action) in [(json!("decline"), "decline"), (not_a_number, "cancel")] {
        let ScenarioOutput { code, said, passed, .. } = DEFAULTS.run(&servers, &answers).await;
        assert_eq!(code, Some(1), "{answers}: {said}");
        assert!(said.contains("\nPassed: 0/6, 6 failed, 0 warnings\n"), "{answers}: {said}");
        let why = format!("Expected action 'accept', got '{action}'");
        assert!(said.contains(&why), "{answers}: {said}");
        assert_eq!(passed, [""; 0], "{answers}");
    }
}
