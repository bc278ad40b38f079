//! What MCP clients get of a platform: over a pair of streams and over HTTP, in both eras.

mod command;
mod http;
mod issuer;
mod narrowed_profiles;
mod principals;
mod served_project;
mod stdio;
mod token_bound;

use serde_json::{Value, json};
use tenon_host::Platform;
use tenon_host::services::GrantAll;
use tenon_serve::{AllClientFeatures, Profile, Server, Settings};

use crate::guests;
use crate::support::{DEMO_SERVER, Project};

/// The revision of the newer era.
const MODERN: &str = "2026-07-28";

/// A project with a component that has everything, a script that asks, and a server.
fn project() -> Project {
    let project = Project::new(&format!(
        "plugins.mcp = [{{ name = \"demo\", command = {DEMO_SERVER:?} }}]\nlimits.cpu = \"1h\""
    ));
    project.add_served_plugins(guests::EVERYTHING_RUST);
    project
}

/// A server of the project, whose tools have their own names.
async fn server(project: &Project) -> (Server, Platform) {
    server_with(project, |_| {}).await
}

async fn server_with(project: &Project, change: impl FnOnce(&mut Settings)) -> (Server, Platform) {
    let builder = project.builder().workspace(project.path("")).state(project.path("state"));
    let builder = builder.approver(GrantAll).client_features(AllClientFeatures);
    let platform = builder.build().await.expect("it is built");
    let mut settings = Settings::with_profile(Profile { prefix: false, ..Profile::default() });
    change(&mut settings);
    let server = Server::new(platform.clone(), settings).expect("there is a server");
    (server, platform)
}

/// The `_meta` of a modern request.
fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
        "io.modelcontextprotocol/clientInfo": { "name": "it", "version": "1" },
    })
}

/// A modern request, from a client whose user fills in forms.
fn modern(id: u64, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta(json!({ "elicitation": {} }));
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn legacy(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn initialize(id: u64, capabilities: Value) -> Value {
    let client = json!({ "name": "it", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": client });
    legacy(id, "initialize", params)
}

/// The text of a tool's result.
fn text(result: &Value) -> &str {
    result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}
