//! One suite of expectations over every kind of plugin. That it needs no word about kinds is what
//! "one ABI" means.

use serde_json::json;
use std::future::pending;
use tenon_host::types::{Json, ToolDefinition, ToolResult};
use tenon_host::{Builtin, Platform, PluginKind};

use crate::everything::manifest;
use crate::guests;
use crate::support::{DEMO_SERVER, EVERYTHING_SERVER, Project};

const SCRIPT: &str = r#"
    let schema = #{ type: "object", properties: #{ text: #{ type: "string" } } };
    tool(#{ name: "echo", description: "Echoes", schema: schema }, |a| a.text);
    tool(#{ name: "fail", description: "Fails", schema: schema }, |a| { throw a.text; });
    tool(#{ name: "hang", description: "Hangs", schema: schema }, |a| { loop {} });
"#;

fn builtin() -> Builtin {
    let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
    let text = |arguments: Json| arguments.member::<String>("text").unwrap_or_default();
    Builtin::new("subject", "For tests")
        .tool(ToolDefinition::new("echo", "Echoes", &schema), move |arguments, _| async move {
            Ok(ToolResult::text(text(arguments)))
        })
        .tool(ToolDefinition::new("fail", "Fails", &schema), move |arguments, _| async move {
            Ok(ToolResult::error(text(arguments)))
        })
        .tool(ToolDefinition::new("hang", "Hangs", &schema), |_, _| pending())
}

/// A platform whose one plugin has the id `subject` and is of a kind.
async fn subject(kind: PluginKind, shared: bool) -> Platform {
    let mode = if shared { "shared" } else { "fresh" };
    let configuration = match kind {
        PluginKind::Wasm => format!(
            "plugins.wasm = [{{ path = {:?}, id = \"subject\", instance = {mode:?} }}]",
            guests::MISBEHAVE
        ),
        PluginKind::Mcp => {
            format!("plugins.mcp = [{{ name = \"subject\", command = {DEMO_SERVER:?} }}]")
        }
        PluginKind::Rhai => "plugins.scripts = [\"subject.rhai\"]\nlimits.cpu = \"1h\"".into(),
        PluginKind::Builtin => String::new(),
    };
    let project = Project::new(&configuration);
    project.write("subject.rhai", SCRIPT);
    let builder = project.builder();
    let builder = match kind {
        PluginKind::Builtin => builder.builtin("subject", builtin()),
        PluginKind::Wasm | PluginKind::Mcp | PluginKind::Rhai => builder,
    };
    builder.build().await.expect("the platform is built")
}

/// A platform whose one plugin is a component that no compiler made.
async fn written_by_hand() -> Platform {
    let component = ::wat::parse_str(include_str!("../languages/wat/subject.wat"));
    let project = Project::new("plugins.wasm = [\"subject.wasm\"]");
    project.write("subject.wasm", component.expect("it is a component"));
    project.builder().build().await.expect("the platform is built")
}

/// Makes a test of each expectation, of a subject that is made as the first line says.
macro_rules! suite {
    ($suite:ident $subject:expr => $($expectation:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $expectation() {
            crate::$suite::$expectation($subject.await).await;
        }
    )*};
}

/// One module for each kind.
macro_rules! kinds {
    ($($module:ident: $subject:expr;)*) => {$(
        mod $module {
            #[allow(unused_imports, reason = "one of them needs no kind")]
            use super::{PluginKind, subject, written_by_hand};
            crate::plugin_duties::expectations!(suite! plugin_duties $subject =>);
        }
    )*};
}

kinds! {
    wasm_fresh: subject(PluginKind::Wasm, false);
    wasm_shared: subject(PluginKind::Wasm, true);
    wat: written_by_hand();
    mcp: subject(PluginKind::Mcp, true);
    rhai: subject(PluginKind::Rhai, false);
    builtin: subject(PluginKind::Builtin, false);
}

/// A project whose one plugin has the id `everything` and is of a kind.
async fn everything(kind: PluginKind) -> Project {
    let runtime = match kind {
        PluginKind::Wasm => "kind = \"wasm\", path = \"everything.wasm\", instance = \"shared\"",
        PluginKind::Rhai => "kind = \"rhai\", path = \"everything.rhai\"",
        PluginKind::Mcp | PluginKind::Builtin => {
            let project = Project::new("");
            let memory = project.path("memory");
            let server = format!(
                "plugins.mcp = [{{ name = \"everything\", command = {EVERYTHING_SERVER:?}, args = [{memory:?}] }}]"
            );
            project.write("tenon.toml", server);
            return project;
        }
    };
    let project = Project::new("plugins.folders = [\"own\"]");
    project.write("own/everything/plugin.toml", manifest(runtime));
    match kind {
        PluginKind::Wasm => {
            let component = std::fs::read(guests::EVERYTHING_RUST).expect("it is built");
            project.write("own/everything/everything.wasm", component);
        }
        _ => {
            let script = include_str!("../everything/everything.rhai");
            project.write("own/everything/everything.rhai", script);
        }
    }
    project
}

/// One module for each kind that has everything.
macro_rules! everything {
    ($($module:ident: $kind:expr;)*) => {$(
        mod $module {
            use super::{PluginKind, everything};
            crate::everything::expectations!(suite! everything everything($kind) =>);
        }
    )*};
}

everything! {
    everything_rust: PluginKind::Wasm;
    everything_rhai: PluginKind::Rhai;
    everything_server: PluginKind::Mcp;
}
