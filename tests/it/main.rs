//! Tests of the whole: real guests, real servers, the real command.

#[deny(dead_code)]
mod guests {
    // The paths of the guests, written by the build script.
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

mod approval;
mod architecture;
mod authoring;
mod bad_plugins;
mod bridge;
mod call_approval;
mod call_kinds;
mod cases;
mod cli;
mod client_features;
mod confined;
mod conformance;
#[cfg(unix)]
mod dev;
mod eval;
mod everything;
mod examples;
mod fidelity;
mod file_grants;
mod first_steps;
mod guard_tampering;
mod guest_interfaces;
mod harness;
mod hooks;
mod host_imports;
mod hostile_input;
mod hostile_schemas;
mod http_server;
mod install;
mod invisible_characters;
mod isolation;
mod kinds;
mod large;
mod lazy;
#[cfg(unix)]
mod login;
mod manifests;
mod masking;
mod mcp_duty_coverage;
mod misbehave;
mod misbehaving_servers;
mod network;
#[cfg(target_os = "linux")]
mod outbound_guests;
mod pipeline;
mod plugin_duties;
mod provider;
mod released_wit;
mod reload;
mod remote;
mod run_calls;
mod runs;
mod script_mistakes;
mod serve;
mod servers_config;
mod sessions;
mod shared;
mod skills;
mod starts;
mod state;
mod support;
mod sync_edition;
mod telemetry;
mod template_projects;
mod test_host;
mod tool_call;
mod tool_registry;
#[cfg(unix)]
mod trust;
