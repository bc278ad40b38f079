//! Tests of the whole: real guests, real servers, the real command.

#[deny(dead_code)]
mod guests {
    // The paths of the guests, written by the build script.
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

mod approval;
mod architecture;
mod authoring;
mod bad_input;
mod bridge;
mod call;
mod call_approval;
mod call_kinds;
mod cases;
mod cli;
mod client_features;
mod confined;
mod conformance;
mod contract;
#[cfg(unix)]
mod dev;
mod editions;
mod eval;
mod everything;
mod examples;
mod fidelity;
mod files;
mod first_steps;
mod guards;
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
mod mcp_duties;
mod misbehave;
mod misbehaving_servers;
mod network;
#[cfg(target_os = "linux")]
mod outbound_guests;
mod pipeline;
mod plugin_duties;
mod provider;
mod registry;
mod released;
mod reload;
mod remote;
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
mod telemetry;
mod template_projects;
mod test_host;
#[cfg(unix)]
mod trust;
