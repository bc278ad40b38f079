//! The package `tenon:plugin`, generated: one module per interface that a plugin can export, so
//! that a component exports what it has and nothing else. All of them share the types of [`base`].

#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

/// The shared types and what plugins may import. What a plugin does not use, its component does not
/// import.
pub mod base {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-base {
                include tenon:plugin/base@0.2.0;
                import tenon:plugin/types@0.2.0;
                import tenon:plugin/model@0.2.0;
                import tenon:plugin/secrets@0.2.0;
                import tenon:plugin/messaging@0.2.0;
                import tenon:plugin/memory@0.2.0;
                import tenon:plugin/inference@0.2.0;
                import tenon:plugin/host-tools@0.2.0;
                import tenon:plugin/user@0.2.0;
            }
        ",
        world: "tenon:sdk/sdk-base",
        generate_all,
        generate_unused_types: true,
        additional_derives: [Clone, PartialEq],
    });
}

/// `wasi:keyvalue`
#[cfg(target_arch = "wasm32")]
pub mod keyvalue {
    wit_bindgen::generate!({
        path: "wit/keyvalue",
        world: "wasi:keyvalue/imports",
        generate_all,
    });
}

/// `lifecycle`
pub mod lifecycle {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-lifecycle { export tenon:plugin/lifecycle@0.2.0; }
        ",
        world: "tenon:sdk/sdk-lifecycle",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
        default_bindings_module: "tenon_sdk::bindings::lifecycle",
    });
}

/// `cancellation`
pub mod cancellation {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-cancellation { export tenon:plugin/cancellation@0.2.0; }
        ",
        world: "tenon:sdk/sdk-cancellation",
        generate_all,
        pub_export_macro: true,
        export_macro_name: "export_cancellation",
        default_bindings_module: "tenon_sdk::bindings::cancellation",
    });
}

/// `tools`
pub mod tools {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-tools { export tenon:plugin/tools@0.2.0; }
        ",
        world: "tenon:sdk/sdk-tools",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_tools",
        default_bindings_module: "tenon_sdk::bindings::tools",
    });
}

/// `hooks`
pub mod hooks {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-hooks { export tenon:plugin/hooks@0.2.0; }
        ",
        world: "tenon:sdk/sdk-hooks",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_hooks",
        default_bindings_module: "tenon_sdk::bindings::hooks",
    });
}

/// `evals`
pub mod evals {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-evals { export tenon:plugin/evals@0.2.0; }
        ",
        world: "tenon:sdk/sdk-evals",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_evals",
        default_bindings_module: "tenon_sdk::bindings::evals",
    });
}

/// `resources`
pub mod resources {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-resources { export tenon:plugin/resources@0.2.0; }
        ",
        world: "tenon:sdk/sdk-resources",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_resources",
        default_bindings_module: "tenon_sdk::bindings::resources",
    });
}

/// `subscriptions`
pub mod subscriptions {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-subscriptions { export tenon:plugin/subscriptions@0.2.0; }
        ",
        world: "tenon:sdk/sdk-subscriptions",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_subscriptions",
        default_bindings_module: "tenon_sdk::bindings::subscriptions",
    });
}

/// `prompts`
pub mod prompts {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-prompts { export tenon:plugin/prompts@0.2.0; }
        ",
        world: "tenon:sdk/sdk-prompts",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_prompts",
        default_bindings_module: "tenon_sdk::bindings::prompts",
    });
}

/// `completions`
pub mod completions {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-completions { export tenon:plugin/completions@0.2.0; }
        ",
        world: "tenon:sdk/sdk-completions",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_completions",
        default_bindings_module: "tenon_sdk::bindings::completions",
    });
}

/// `providers`
pub mod providers {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-providers { export tenon:plugin/providers@0.2.0; }
        ",
        world: "tenon:sdk/sdk-providers",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
            "tenon:plugin/model@0.2.0": crate::bindings::base::tenon::plugin::model,
        },
        pub_export_macro: true,
        export_macro_name: "export_providers",
        default_bindings_module: "tenon_sdk::bindings::providers",
    });
}

/// `provider-stream`
pub mod provider_stream {
    wit_bindgen::generate!({
        path: "wit/plugin",
        inline: "
            package tenon:sdk;
            world sdk-provider-stream { export tenon:plugin/provider-stream@0.2.0; }
        ",
        world: "tenon:sdk/sdk-provider-stream",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.2.0": crate::bindings::base::tenon::plugin::types,
            "tenon:plugin/model@0.2.0": crate::bindings::base::tenon::plugin::model,
        },
        pub_export_macro: true,
        export_macro_name: "export_provider_stream",
        default_bindings_module: "tenon_sdk::bindings::provider_stream",
    });
}

/// The exports of all these modules, wrapped so that they free the memory of their parameters.
pub mod wrapped_exports {
    tenon_exports::exports! {
        cancellation: crate::bindings::cancellation::exports::tenon::plugin::cancellation;
        completions: crate::bindings::completions::exports::tenon::plugin::completions;
        evals: crate::bindings::evals::exports::tenon::plugin::evals;
        hooks: crate::bindings::hooks::exports::tenon::plugin::hooks;
        lifecycle: crate::bindings::lifecycle::exports::tenon::plugin::lifecycle;
        prompts: crate::bindings::prompts::exports::tenon::plugin::prompts;
        provider_stream: crate::bindings::provider_stream::exports::tenon::plugin::provider_stream;
        providers: crate::bindings::providers::exports::tenon::plugin::providers;
        resources: crate::bindings::resources::exports::tenon::plugin::resources;
        subscriptions: crate::bindings::subscriptions::exports::tenon::plugin::subscriptions;
        tools: crate::bindings::tools::exports::tenon::plugin::tools;
    }
}
