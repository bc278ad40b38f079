//! Exported functions of a guest that free the memory in which the host passed their parameters.
//!
//! Where the parameters of a function are more than sixteen core values, the host asks the guest for
//! memory and writes them there. What `wit-bindgen` 0.61 generates for an `async` function reads them and
//! leaves the memory allocated, about a hundred bytes for each call (`wit-bindgen-core`, `src/abi.rs`,
//! `GuestDeallocate`). [`exports!`] wraps the generated functions in ones that free it. A later `wit-bindgen`
//! may free the memory by itself, so those who use this crate pin its version exactly.

use std::alloc::Layout;

/// The alignment in bytes of all parameters in memory: that of the 64-bit number in `call-context`.
pub const ALIGNMENT: usize = 8;

/// Writes the module `exports` with the given interfaces of `tenon:plugin`, each with the path of the module
/// that `wit_bindgen::generate!` made for it. The module that holds `exports` stands after `with_types_in` in
/// the export macro of the generated bindings:
///
/// ```text
/// mod wrapped_exports {
///     tenon_exports::exports! { tools: crate::bindings::exports::tenon::plugin::tools; }
/// }
/// bindings::export!(Guest with_types_in wrapped_exports);
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

/// Makes of one table what is known of the interfaces, and the macro with the module of each.
macro_rules! interfaces {
    (($d:tt) $($interface:ident { $($name:literal $function:ident $size:literal)* })*) => {
        /// The functions of a component that take their parameters in memory: the interface, the function, and how
        /// many bytes its parameters take.
        pub const FUNCTIONS: &[(&str, &str, usize)] =
            &[$($((stringify!($interface), $name, $size),)*)*];

        #[doc(hidden)]
        #[macro_export]
        macro_rules! interface {
            $(($interface: $d($d path:ident)::+) => {
                $d crate::module! { $interface: $d($d path)::+, $($function: $size),* }
            };)*
        }
    };
}

// The names are those of the contract, with `_` in place of `-` where they name modules.
interfaces! { ($)
    cancellation {}
    completions { "complete-argument" _export_complete_argument_cabi 120 }
    evals { "evaluate" _export_evaluate_cabi 104 }
    hooks { "handle-event" _export_handle_event_cabi 96 }
    lifecycle {}
    prompts {
        "get-prompt" _export_get_prompt_cabi 96
        "list-prompts" _export_list_prompts_cabi 96
    }
    provider_stream { "complete-stream" _export_complete_stream_cabi 216 }
    providers { "complete" _export_complete_cabi 216 }
    resources {
        "list-resources" _export_list_resources_cabi 96
        "list-templates" _export_list_templates_cabi 96
        "read-resource" _export_read_resource_cabi 88
    }
    subscriptions {
        "subscribe" _export_subscribe_cabi 88
        "unsubscribe" _export_unsubscribe_cabi 88
    }
    tools { "call-tool" _export_call_tool_cabi 96 }
}

/// The module of one interface. Its own functions hide those that it takes over from the generated module.
#[doc(hidden)]
#[macro_export]
macro_rules! module {
    ($interface:ident: $($path:ident)::+, $($function:ident: $size:literal),*) => {
        pub mod $interface {
            use $($path)::+ as generated;
            pub use generated::*;

            $(
                pub unsafe fn $function<T: Guest>(parameters: *mut u8) -> i32 {
                    // The first poll of the generated future, which is done before this function returns,
                    // reads all parameters before it calls the guest's own code. Nothing reads them again.
                    unsafe {
                        let code = generated::$function::<T>(parameters);
                        $crate::free(parameters, $size);
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
