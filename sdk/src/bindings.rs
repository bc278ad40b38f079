//! The package `tenon:plugin`, generated: one module per interface that a plugin can export, so
//! that a component exports what it has and nothing else. All of them share the types of [`base`].

#![allow(missing_docs, unreachable_pub, unused_qualifications, clippy::all)]

/// The shared types and what plugins may import. What a plugin does not use, its component does not
/// import.
pub mod base {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-base {
                include tenon:plugin/base@0.1.0;
                import tenon:plugin/types@0.1.0;
                import tenon:plugin/model@0.1.0;
                import tenon:plugin/secrets@0.1.0;
                import tenon:plugin/services@0.1.0;
                import tenon:plugin/inference@0.1.0;
                import tenon:plugin/tools@0.1.0;
            }
        ",
        world: "tenon:sdk/sdk-base",
        generate_all,
        generate_unused_types: true,
        additional_derives: [Clone, PartialEq],
    });
}

/// `plugin`
pub mod plugin {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-plugin { export tenon:plugin/plugin@0.1.0; }
        ",
        world: "tenon:sdk/sdk-plugin",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_plugin",
        default_bindings_module: "tenon_sdk::bindings::plugin",
    });
}

/// `tool-handler`
pub mod tool_handler {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-tool-handler { export tenon:plugin/tool-handler@0.1.0; }
        ",
        world: "tenon:sdk/sdk-tool-handler",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_tool_handler",
        default_bindings_module: "tenon_sdk::bindings::tool_handler",
    });
}

/// `hook-handler`
pub mod hook_handler {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-hook-handler { export tenon:plugin/hook-handler@0.1.0; }
        ",
        world: "tenon:sdk/sdk-hook-handler",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_hook_handler",
        default_bindings_module: "tenon_sdk::bindings::hook_handler",
    });
}

/// `eval-handler`
pub mod eval_handler {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-eval-handler { export tenon:plugin/eval-handler@0.1.0; }
        ",
        world: "tenon:sdk/sdk-eval-handler",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
        },
        pub_export_macro: true,
        export_macro_name: "export_eval_handler",
        default_bindings_module: "tenon_sdk::bindings::eval_handler",
    });
}

/// `provider-handler`
pub mod provider_handler {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-provider-handler { export tenon:plugin/provider-handler@0.1.0; }
        ",
        world: "tenon:sdk/sdk-provider-handler",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
            "tenon:plugin/model@0.1.0": crate::bindings::base::tenon::plugin::model,
        },
        pub_export_macro: true,
        export_macro_name: "export_provider_handler",
        default_bindings_module: "tenon_sdk::bindings::provider_handler",
    });
}

/// `provider-stream`
pub mod provider_stream {
    wit_bindgen::generate!({
        path: "wit",
        inline: "
            package tenon:sdk;
            world sdk-provider-stream { export tenon:plugin/provider-stream@0.1.0; }
        ",
        world: "tenon:sdk/sdk-provider-stream",
        generate_all,
        additional_derives: [Clone, PartialEq],
        with: {
            "tenon:plugin/types@0.1.0": crate::bindings::base::tenon::plugin::types,
            "tenon:plugin/model@0.1.0": crate::bindings::base::tenon::plugin::model,
        },
        pub_export_macro: true,
        export_macro_name: "export_provider_stream",
        default_bindings_module: "tenon_sdk::bindings::provider_stream",
    });
}
