//! Tests of the whole: real guests, real servers, the real command.

#[deny(dead_code)]
mod guests {
    // The paths of the guests, written by the build script.
    include!(concat!(env!("OUT_DIR"), "/guests.rs"));
}

mod approval;
mod authoring;
mod bad_input;
mod bridge;
mod call;
mod cli;
mod client;
mod conformance;
mod contract;
mod editions;
mod eval;
mod examples;
mod fidelity;
mod files;
mod first_steps;
mod guards;
mod harness;
mod hooks;
mod hostile;
mod http;
mod install;
mod kinds;
#[cfg(target_os = "linux")]
mod large;
mod layers;
mod lazy;
mod lent;
mod libraries;
mod manifests;
mod manners;
mod misbehave;
mod network;
mod observed;
mod one_way;
mod pipeline;
mod provider;
mod reaching;
mod readers;
mod registry;
mod released;
mod reload;
mod remote;
mod schemas;
mod servers_config;
mod shared;
mod starts;
mod suite;
mod support;
mod templates;
#[cfg(unix)]
mod trust;
mod ways_out;
