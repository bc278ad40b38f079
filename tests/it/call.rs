//! The way of a tool call: what each step makes of it, whatever the kind of plugin.

use serde_json::{Value, json};
use tenon_host::invoke::OUTPUT_MISMATCH;
use tenon_host::wire;

use crate::guests;
use crate::support::{Project, call, text};

#[tokio::test]
async fn a_result_that_is_not_what_its_schema_promised_is_marked_and_kept() {
    let project = Project::new("plugins.scripts = [\"sums.rhai\"]");
    let schema =
        "#{ type: \"object\", properties: #{ sum: #{ type: \"integer\" } }, required: [\"sum\"] }";
    let tool = |name: &str, body: &str| {
        format!(
            "tool(#{{ name: {name:?}, description: \"d\", output_schema: {schema} }}, |a| {body});\n"
        )
    };
    let script = [
        tool("right", "#{ sum: 13 }"),
        tool("wrong", "#{ sum: \"thirteen\" }"),
        tool("none", "\"thirteen\""),
        tool("sorry", "throw \"cannot count\""),
    ];
    project.write("sums.rhai", script.concat());
    let platform = project.platform().await;
    let check = async |name: &str, expected: Option<&str>| {
        let result = call(&platform, &format!("sums__{name}"), json!({})).await.unwrap();
        let form = wire::tool_result(&result);
        let marked = form["_meta"][OUTPUT_MISMATCH].as_str();
        assert_eq!(marked, expected, "{name}");
        assert!(!result.content.is_empty(), "{name}");
    };
    check("right", None).await;
    check("wrong", Some("at /sum: \"thirteen\" is not of type \"integer\"")).await;
    check("none", Some("there is no structured content")).await;
    // An error owes nothing.
    check("sorry", None).await;
}

#[tokio::test]
async fn settings_reach_scripts_as_they_reach_components() {
    let project = Project::new(&format!(
        "[plugins]\nscripts = [\"s.rhai\"]\nwasm = [{:?}]\n[settings.s]\nname = \"Ada\"",
        guests::TEXT_TOOLS
    ));
    let script = "tool(#{ name: \"who\", description: \"d\" }, |a| config(\"name\"));";
    project.write("s.rhai", script);
    let platform = project.platform().await;
    assert_eq!(text(&platform, "s__who", Value::Object(Default::default())).await, "Ada");
}
