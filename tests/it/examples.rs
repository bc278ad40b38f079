//! The examples of the host, run.

use crate::guests;
use crate::support::{DEMO_SERVER, Project};
use tenon_host::services::GrantAll;

#[path = "../../host/examples/agent.rs"]
#[allow(unreachable_pub)]
mod agent;

#[path = "../../host/examples/own_tools.rs"]
#[allow(unreachable_pub)]
mod own_tools;

/// Hooks that change what the agent thinks, one of them with the help of an MCP server.
const SCRIPT: &str = r#"
    fn BeforePlan(context) { context.goal += "!"; }
    fn OnLearning(context) {
        context.learning.noted = call_tool("demo__echo", #{ text: "noted" });
    }
"#;

/// The project that the agent works in: plugins of every kind.
fn project() -> Project {
    let project = Project::new(&format!(
        "[plugins]\nfolders = [\"own\"]\nmcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\n\
         wasm = [{:?}, {:?}, {:?}]",
        guests::REDACT,
        guests::CHECKS,
        guests::ECHO_PROVIDER
    ));
    let manifest = "plugin.id = \"habits\"\nruntime = { kind = \"rhai\", path = \"habits.rhai\" }\n\
                    capabilities.tools = [\"demo__*\"]";
    project.write("own/habits/plugin.toml", manifest);
    project.write("own/habits/habits.rhai", SCRIPT);
    project
}

#[tokio::test]
async fn the_agent_reaches_every_point_in_order() {
    let project = project();
    let platform = project.builder().approver(GrantAll).build().await.unwrap();
    let agent = agent::Agent::new(platform.clone(), vec!["politely".into()]);
    let finished = agent.work("use sk-abcdefghijklmnop").await.expect("the goal is reached");
    platform.shutdown().await;
    insta::assert_snapshot!(format!("{}\n\n{}", finished.log.join("\n"), finished.answer));
    let points = finished.log.iter().map(|line| line.split(' ').next().unwrap());
    let mut points: Vec<&str> = points.collect();
    points.sort_unstable();
    points.dedup();
    assert_eq!(points.len(), 12, "{points:?}");
}

#[tokio::test]
async fn a_host_has_tools_of_its_own() {
    let said = own_tools::run().await.expect("the example works");
    assert_eq!(
        said,
        [
            "notebook__add: note 1",
            "notebook__add: invalid-input: arguments of notebook__add: at /text: \"\" is shorter than 1 character",
            "notebook__list: buy tea",
        ]
    );
}
