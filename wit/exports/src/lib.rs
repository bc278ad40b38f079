//! Exported functions of a guest that free the memory in which the host passed their parameters.
//!
//! Where the parameters of a function are more than sixteen core values, the host asks the guest for
//! memory and writes them there. What `wit-bindgen` 0.61 generates for an `async` function reads them and
//! leaves the memory allocated, about a hundred bytes for each call (`wit-bindgen-core`, `src/abi.rs`,
//! `GuestDeallocate`). [`exports!`] wraps the generated functions in ones that free it. A later `wit-bindgen`
//! may free the memory by itself, so those who use this crate pin its version exactly.

use std::alloc::Layout;

/// The functions of a component that take their parameters in memory: the interface, the function, and how
/// many bytes its parameters take.
pub const FUNCTIONS: &[(&str, &str, usize)] = &[
    ("completions", "complete-argument", size::COMPLETE_ARGUMENT),
    ("evals", "evaluate", size::EVALUATE),
    ("hooks", "handle-event", size::HANDLE_EVENT),
    ("prompts", "get-prompt", size::GET_PROMPT),
    ("prompts", "list-prompts", size::LIST_PROMPTS),
    ("provider-stream", "complete-stream", size::COMPLETE_STREAM),
    ("providers", "complete", size::COMPLETE),
    ("resources", "list-resources", size::LIST_RESOURCES),
    ("resources", "list-templates", size::LIST_TEMPLATES),
    ("resources", "read-resource", size::READ_RESOURCE),
    ("subscriptions", "subscribe", size::SUBSCRIBE),
    ("subscriptions", "unsubscribe", size::UNSUBSCRIBE),
    ("tools", "call-tool", size::CALL_TOOL),
];

/// The alignment in bytes of all parameters in memory: that of the 64-bit number in `call-context`.
pub const ALIGNMENT: usize = 8;

#[doc(hidden)]
pub mod size {
    pub const CALL_TOOL: usize = 96;
    pub const COMPLETE: usize = 216;
    pub const COMPLETE_ARGUMENT: usize = 120;
    pub const COMPLETE_STREAM: usize = 216;
    pub const EVALUATE: usize = 104;
    pub const GET_PROMPT: usize = 96;
    pub const HANDLE_EVENT: usize = 96;
    pub const LIST_PROMPTS: usize = 96;
    pub const LIST_RESOURCES: usize = 96;
    pub const LIST_TEMPLATES: usize = 96;
    pub const READ_RESOURCE: usize = 88;
    pub const SUBSCRIBE: usize = 88;
    pub const UNSUBSCRIBE: usize = 88;
}

/// Writes the module `exports` with the given interfaces of `tenon:plugin`, each with the path of the module
/// that `wit_bindgen::generate!` made for it. The module that holds `exports` stands after `with_types_in` in
/// the export macro of the generated bindings:
///
/// ```text
/// mod freeing {
///     tenon_exports::exports! { tools: crate::bindings::exports::tenon::plugin::tools; }
/// }
/// bindings::export!(Guest with_types_in freeing);
/// ```
#[macro_export]
macro_rules! exports {
    ($($interface:ident: $($path:ident)::+;)*) => {
        #[doc(hidden)]
        pub mod exports {
            pub mod tenon {
                pub mod plugin {
                    $($crate::interface! { $interface: $($path)::+ })*
                }
            }
        }
    };
}

/// The module of one interface. Its own functions hide those that it takes over from the generated module.
#[doc(hidden)]
#[macro_export]
macro_rules! interface {
    (completions: $($path:ident)::+) => {
        $crate::interface! { completions: $($path)::+, _export_complete_argument_cabi: COMPLETE_ARGUMENT }
    };
    (evals: $($path:ident)::+) => {
        $crate::interface! { evals: $($path)::+, _export_evaluate_cabi: EVALUATE }
    };
    (hooks: $($path:ident)::+) => {
        $crate::interface! { hooks: $($path)::+, _export_handle_event_cabi: HANDLE_EVENT }
    };
    (prompts: $($path:ident)::+) => {
        $crate::interface! {
            prompts: $($path)::+, _export_get_prompt_cabi: GET_PROMPT, _export_list_prompts_cabi: LIST_PROMPTS
        }
    };
    (provider_stream: $($path:ident)::+) => {
        $crate::interface! { provider_stream: $($path)::+, _export_complete_stream_cabi: COMPLETE_STREAM }
    };
    (providers: $($path:ident)::+) => {
        $crate::interface! { providers: $($path)::+, _export_complete_cabi: COMPLETE }
    };
    (resources: $($path:ident)::+) => {
        $crate::interface! {
            resources: $($path)::+,
            _export_list_resources_cabi: LIST_RESOURCES,
            _export_list_templates_cabi: LIST_TEMPLATES,
            _export_read_resource_cabi: READ_RESOURCE
        }
    };
    (subscriptions: $($path:ident)::+) => {
        $crate::interface! {
            subscriptions: $($path)::+,
            _export_subscribe_cabi: SUBSCRIBE,
            _export_unsubscribe_cabi: UNSUBSCRIBE
        }
    };
    (tools: $($path:ident)::+) => {
        $crate::interface! { tools: $($path)::+, _export_call_tool_cabi: CALL_TOOL }
    };
    // These have few parameters.
    (cancellation: $($path:ident)::+) => {
        $crate::interface! { cancellation: $($path)::+, }
    };
    (lifecycle: $($path:ident)::+) => {
        $crate::interface! { lifecycle: $($path)::+, }
    };
    ($interface:ident: $($path:ident)::+, $($function:ident: $size:ident),*) => {
        pub mod $interface {
            use $($path)::+ as generated;
            pub use generated::*;

            $(
                pub unsafe fn $function<T: Guest>(parameters: *mut u8) -> i32 {
                    // The generated function polls its future once, which reads all parameters before it
                    // calls the guest's own code, and never uses the memory again.
                    unsafe {
                        let code = generated::$function::<T>(parameters);
                        $crate::free(parameters, $crate::size::$size);
                        code
                    }
                }
            )*
        }
    };
}

/// Frees parameters.
///
/// # Safety
///
/// The memory is what the host was given by `cabi_realloc` for parameters of this size, and is not used again.
#[doc(hidden)]
pub unsafe fn free(parameters: *mut u8, size: usize) {
    let layout =
        Layout::from_size_align(size, ALIGNMENT).expect("a few hundred bytes, and a power of two");
    // SAFETY: the caller says so, and `cabi_realloc` takes its memory from the global allocator.
    unsafe { std::alloc::dealloc(parameters, layout) }
}
