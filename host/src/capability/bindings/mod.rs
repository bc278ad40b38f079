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
        path: "wit",
        inline: "
        package tenon:host;
        world every {
            include tenon:plugin/streaming-provider@0.1.0;
            include tenon:plugin/tool@0.1.0;
            include tenon:plugin/hook@0.1.0;
            include tenon:plugin/eval@0.1.0;
            include tenon:plugin/mcp-bridge@0.1.0;
            import tenon:plugin/services@0.1.0;
            import tenon:plugin/inference@0.1.0;
            import tenon:plugin/tools@0.1.0;
            import tenon:plugin/secrets@0.1.0;
        }
    ",
        world: "tenon:host/every",
        imports: { default: trappable },
        exports: { default: async | store },
    });
}

pub(crate) use generated::exports::tenon::plugin::{
    completions, eval_handler, hook_handler, plugin as lifecycle, prompts, provider_handler,
    provider_stream, resources, subscriptions, tool_handler,
};
pub(crate) use generated::tenon::plugin::{
    config, inference, log, mcp_host, model, notify, secrets, services, stdio_child, tools, types,
};
