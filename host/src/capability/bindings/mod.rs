//! The package `tenon:plugin`, generated for the host. Only capabilities and the adapter for this version of the
//! contract see it; everybody else has the types of [`tenon_types`], into which [`convert`] makes these.
//!
//! One world holds every interface, so that each type exists once, whichever kind of plugin it
//! comes from. Which of the exports a component has is found out from its type; see
//! `runtime::wasm`.

pub(crate) mod convert;

mod generated {
    #![allow(missing_docs, unreachable_pub, unused_qualifications, unused_variables, unused)]
    #![allow(clippy::all, rustdoc::all, unused_doc_comments)]

    wasmtime::component::bindgen!({
        path: ["wit/plugin", "wit/bridge"],
        inline: "
        package tenon:host;
        world every {
            include tenon:plugin/streaming-provider@0.2.0;
            include tenon:plugin/tool@0.2.0;
            include tenon:plugin/hook@0.2.0;
            include tenon:plugin/eval@0.2.0;
            include tenon:bridge/mcp-bridge@0.2.0;
            import tenon:plugin/messaging@0.2.0;
            import tenon:plugin/memory@0.2.0;
            import tenon:plugin/inference@0.2.0;
            import tenon:plugin/host-tools@0.2.0;
            import tenon:plugin/secrets@0.2.0;
            import tenon:plugin/user@0.2.0;
        }
    ",
        world: "tenon:host/every",
        imports: { default: trappable },
        exports: { default: async | store },
    });
}

pub(crate) use generated::exports::tenon::plugin::{
    cancellation, completions, evals, hooks, lifecycle, prompts, provider_stream, providers,
    resources, subscriptions, tools,
};
pub(crate) use generated::tenon::bridge::{mcp_server, stdio_child};
pub(crate) use generated::tenon::plugin::{
    config, host_tools, inference, log, memory, messaging, model, notify, secrets, types, user,
};
