//! Profiles that offer some of what there is, and list no tools: what they leave out is not there for scripts of `run`, for
//! `search` or for `call`, however it is named.

use serde_json::{Value, json};
use tenon_serve::{Profile, ToolMode};

use super::served_project::ServedProject;
use super::text;
use crate::support::{self, Project};

/// Of each kind something that a profile can offer, and something that it can leave out. Each counts how often it was used.
const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ path: #{ type: "string" } }, required: ["path"] };
    tool(#{ name: "look", description: "Looks at a note", schema: schema }, |a| `look ${state.increment("look", 1)}`);
    tool(#{ name: "burn", description: "Burns a note", schema: schema }, |a| `burn ${state.increment("burn", 1)}`);
    resource(#{ uri: "note:///open", name: "open" }, |a| `open ${state.increment("open", 1)}`);
    resource(#{ uri: "note:///sealed", name: "sealed" }, |a| `sealed ${state.increment("sealed", 1)}`);
    prompt(#{ name: "review", description: "Asks for a review" }, |a| `review ${state.increment("review", 1)}`);
    tool(#{ name: "counts", description: "Counts what was burnt, unsealed and reviewed" }, |a| {
        `${state.get("burn", 0)} ${state.get("sealed", 0)} ${state.get("review", 0)}`
    });
"#;

/// What comes of a call: its text, or the code of an error and a part of its text.
type Expected<'a> = Result<&'a str, (&'a str, &'a str)>;

/// Nobody is asked for a token.
const TOKEN: &str = "none";

async fn serve(profile: Profile) -> ServedProject {
    let project = Project::with_notes("", SCRIPT);
    ServedProject::new(project, |settings| settings.profile = profile, |_| {}).await
}

/// Asserts that this has come of a call.
fn assert_came(answer: &Value, expected: Expected<'_>, row: &str) {
    let result = &answer["result"];
    match expected {
        Ok(expected) => {
            assert_ne!(result["isError"], true, "{row}: {answer}");
            assert_eq!(text(answer), expected, "{row}: {answer}");
        }
        Err((code, words)) => {
            assert_eq!(result["isError"], true, "{row}: {answer}");
            assert_eq!(result["_meta"]["tenon/error"]["code"], code, "{row}: {answer}");
            assert!(text(answer).contains(words), "{row}: {answer}");
        }
    }
}

/// A client of a profile that offers one tool, one resource and no prompts.
struct NarrowedClient {
    served: ServedProject,
    /// How the tool is called that is offered.
    look: (&'static str, Value),
    looks: usize,
}

impl NarrowedClient {
    async fn new(mode: ToolMode, look: (&'static str, Value)) -> Self {
        let profile = Profile {
            tools: Some(vec!["notes__look".into()]),
            resources: Some(vec!["note:///open".into()]),
            prompts: Some(Vec::new()),
            mode,
            ..Profile::default()
        };
        Self { served: serve(profile).await, look, looks: 0 }
    }

    /// Calls a tool. Asserts that this comes of it, that nothing was used that is not offered, and that what is offered works
    /// afterwards.
    async fn check(&mut self, tool: &str, arguments: Value, expected: Expected<'_>) {
        let row = format!("{tool} {arguments}");
        let answer = self.served.call(TOKEN, tool, arguments).await;
        assert_came(&answer, expected, &row);
        let counts = support::text(&self.served.platform, "notes__counts", json!({})).await;
        assert_eq!(counts, "0 0 0", "{row}: {answer}");
        self.looks += 1;
        let (tool, arguments) = self.look.clone();
        let next = self.served.call(TOKEN, tool, arguments).await;
        assert_came(&next, Ok(&format!("look {}", self.looks)), &row);
    }

    /// The same of what `search` finds, in either mode.
    async fn check_search(&mut self) {
        let known = self.served.call(TOKEN, "search", json!({ "query": "notes__look" })).await;
        let known = text(&known).to_string();
        assert!(known.contains("Looks at a note"), "{known}");
        let (nothing, known) = ("no tool has one of these words", known.as_str());
        for (query, expected) in [
            ("burn", nothing),
            ("read resource, get prompt", nothing),
            // One tool alone has the other word.
            ("notes__burn", known),
            ("notes.burn", known),
            ("note", known),
            ("", known),
        ] {
            self.check("search", json!({ "query": query }), Ok(expected)).await;
        }
    }
}

#[tokio::test]
async fn a_script_has_nothing_that_its_profile_leaves_out() {
    let look = json!({ "script": "notes.look(#{ path: \"/a\" })" });
    let mut client = NarrowedClient::new(ToolMode::Code, ("run", look)).await;
    // Names that a script computes with these are known only when it runs. No line of it has them: an error that does is about
    // them.
    let data = json!({ "tool": "burn", "uri": "note:///sealed", "prompt": "review" });
    let invalid = |words| Err(("invalid-script", words));
    let trapped = |words| Err(("trapped", words));
    let failed = |words| Err(("failed", words));
    let no_tool = "there is no tool \"notes__burn\"";
    for (script, expected) in [
        // A tool, as a function.
        ("notes.burn(#{ path: \"/a\" })", invalid("`notes` has no tool `burn`")),
        ("if false { notes.burn(#{ path: \"/a\" }) }", invalid("`notes` has no tool `burn`")),
        ("let own = notes; own.burn(#{ path: \"/a\" })", trapped("Function not found: burn")),
        // By its name.
        ("call_tool(\"notes__burn\", #{ path: \"/a\" })", invalid(no_tool)),
        ("call_tool(\"notes.burn\", #{ path: \"/a\" })", invalid("`notes` has no tool `burn`")),
        // By a name that is computed.
        ("call_tool(\"notes__\" + data.tool, #{ path: \"/a\" })", failed(no_tool)),
        (
            "call_tool(\"notes.\" + data.tool, #{ path: \"/a\" })",
            failed("there is no tool \"notes.burn\""),
        ),
        ("parallel([|| call_tool(\"notes__\" + data.tool, #{ path: \"/a\" })])", failed(no_tool)),
        ("step(\"s\", || call_tool(\"notes__\" + data.tool, #{ path: \"/a\" }))", failed(no_tool)),
        (
            "let c = \"\"; try { call_tool(\"notes__\" + data.tool, #{ path: \"/a\" }) } catch { c = \"caught\"; } c",
            Ok("caught"),
        ),
        // To be looked up.
        ("tools.search(\"burn\")", Ok("[]")),
        ("tools.search(\"note\").map(|found| found.name)", Ok(r#"["notes__look"]"#)),
        ("tools.search(\"notes__burn\").map(|found| found.name)", Ok(r#"["notes__look"]"#)),
        ("tools.search(\"\").map(|found| found.name)", Ok(r#"["notes__look"]"#)),
        ("tools.describe(\"notes__burn\")", failed(no_tool)),
        ("tools.describe(\"notes.\" + data.tool)", failed("there is no tool \"notes.burn\"")),
        // A resource.
        ("resources.read(\"notes\", data.uri)", failed("\"note:///sealed\"")),
        ("resources.list(\"notes\").map(|listed| listed.uri)", Ok(r#"["note:///open"]"#)),
        ("resources.read(\"notes\", \"note:///open\")[0].text", Ok("open 1")),
        // A prompt.
        ("prompts.get(\"notes\", data.prompt, #{})", failed("\"review\"")),
        ("prompts.list(\"notes\")", Ok("[]")),
        // The tools of the host that do the same would know no profile.
        ("notes.read_resource(#{ uri: data.uri })", invalid("`notes` has no tool `read_resource`")),
        (
            "call_tool(\"notes__read_resource\", #{ uri: data.uri })",
            invalid("there is no tool \"notes__read_resource\""),
        ),
        (
            "call_tool(\"notes__get_\" + \"prompt\", #{ name: data.prompt })",
            failed("there is no tool \"notes__get_prompt\""),
        ),
        (
            "call_tool(\"read_resource\", #{ plugin: \"notes\", uri: data.uri })",
            invalid("there is no tool \"read_resource\""),
        ),
    ] {
        client.check("run", json!({ "script": script, "data": data }), expected).await;
    }
    client.check_search().await;
    client.served.end().await;
}

#[tokio::test]
async fn nothing_is_found_or_called_that_a_profile_leaves_out() {
    let look = json!({ "name": "notes__look", "arguments": { "path": "/a" } });
    let mut client = NarrowedClient::new(ToolMode::Search, ("call", look)).await;
    for (name, arguments, words) in [
        ("notes__burn", json!({ "path": "/a" }), "there is no tool \"notes__burn\"; `search`"),
        ("notes.burn", json!({ "path": "/a" }), "there is no tool \"notes.burn\"; `search`"),
        ("burn", json!({ "path": "/a" }), "there is no tool \"burn\"; `search`"),
        (
            "notes__read_resource",
            json!({ "uri": "note:///sealed" }),
            "there is no tool \"notes__read_resource\"",
        ),
        (
            "notes__get_prompt",
            json!({ "name": "review" }),
            "there is no tool \"notes__get_prompt\"",
        ),
    ] {
        let call = json!({ "name": name, "arguments": arguments });
        client.check("call", call, Err(("invalid-input", words))).await;
    }
    client.check_search().await;
    client.served.end().await;
}

#[tokio::test]
async fn a_script_is_offered_prompts_by_the_names_that_clients_have_for_them() {
    for (prefix, pattern, is_offered) in [
        (true, "notes__review", true),
        (true, "review", false),
        (false, "review", true),
        (false, "notes__review", false),
    ] {
        let prompts = Some(vec![pattern.to_string()]);
        let mode = ToolMode::Code;
        let served = serve(Profile { prompts, prefix, mode, ..Profile::default() }).await;
        let (listed, got) = match is_offered {
            true => (r#"["review"]"#, Ok("review 1")),
            false => ("[]", Err(("failed", "\"review\""))),
        };
        for (script, expected) in [
            ("prompts.list(\"notes\").map(|listed| listed.name)", Ok(listed)),
            ("prompts.get(\"notes\", data, #{}).messages[0].content.text", got),
        ] {
            let run = json!({ "script": script, "data": "review" });
            let answer = served.call(TOKEN, "run", run).await;
            assert_came(&answer, expected, &format!("{prefix} {pattern} {script}"));
        }
        let counts = support::text(&served.platform, "notes__counts", json!({})).await;
        assert_eq!(counts, if is_offered { "0 0 1" } else { "0 0 0" }, "{prefix} {pattern}");
        served.end().await;
    }
}
