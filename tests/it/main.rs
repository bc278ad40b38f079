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
mod cases;
mod cli;
mod client;
mod confined;
mod conformance;
mod contract;
#[cfg(unix)]
mod dev;
mod editions;
mod eval;
mod everything;
#[cfg(target_os = "linux")]
mod example_guests;
mod examples;
mod fidelity;
mod files;
mod first_steps;
mod guards;
mod harness;
mod hooks;
mod host_imports;
mod hostile;
mod http;
mod install;
mod kinds;
mod large;
mod lazy;
mod libraries;
#[cfg(unix)]
mod login;
mod manifests;
mod misbehave;
mod misbehaving_servers;
mod mistakes;
mod network;
mod observed;
mod one_way;
mod pipeline;
mod provider;
mod readers;
mod registry;
mod released;
mod reload;
mod remote;
mod runs;
mod schemas;
mod serve;
mod servers_config;
mod sessions;
mod shared;
mod skills;
mod starts;
mod state;
mod suite;
mod support;
mod templates;
mod test_host;
#[cfg(unix)]
mod trust;
mod ways_out;
