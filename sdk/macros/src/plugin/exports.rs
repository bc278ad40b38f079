//! The exports of tools, hooks, evaluations and providers.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use super::distinct;

pub(super) fn tools(tools: &[Path]) -> TokenStream {
    let distinct = distinct(tools, &quote!(::tenon_sdk::tool::Tool));
    let serve =
        tools.iter().map(|path| quote_spanned!(path.span()=> ::tenon_sdk::tool::serve::<#path>));
    quote! {
        #distinct
        use __bindings::tools::exports::tenon::plugin::tools as __tools;

        impl __tools::Guest for __PluginExports {
            async fn list_tools() -> Result<Vec<__types::ToolDefinition>, __types::Error> {
                __private::install();
                Ok(vec![#(<#tools as ::tenon_sdk::tool::Tool>::definition()),*])
            }

            async fn call_tool(
                name: String,
                arguments: String,
                context: __types::CallContext,
            ) -> Result<__types::ToolResult, __types::Error> {
                __private::install();
                #(if name == <#tools as ::tenon_sdk::tool::Tool>::NAME {
                    return #serve(arguments, context.into()).await;
                })*
                Err(__private::unknown("tool", &name))
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::tools::export_tools!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}

pub(super) fn hooks(hooks: &[Path]) -> TokenStream {
    let kind = quote!(::tenon_sdk::hook::Hook);
    let agree = hooks.iter().enumerate().map(|(i, path)| {
        let before = &hooks[..i];
        quote_spanned! {path.span()=>
            #(const _: () = ::core::assert!(
                ::tenon_sdk::hook::agree(
                    <#path as #kind>::POINTS,
                    <#path as #kind>::AUDIT,
                    <#before as #kind>::POINTS,
                    <#before as #kind>::AUDIT,
                ),
                "another handler of this plugin is called at the same point, and one of the two is \
                 `audit`: both or none",
            );)*
        }
    });
    quote! {
        #(#agree)*
        use __bindings::hooks::exports::tenon::plugin::hooks as __hooks;

        impl __hooks::Guest for __PluginExports {
            async fn list_hooks() -> Result<Vec<__hooks::HookRegistration>, __types::Error> {
                __private::install();
                let all = [#(::tenon_sdk::hook::registrations::<#hooks>()),*];
                Ok(::tenon_sdk::hook::joined(all.into_iter().flatten()))
            }

            async fn handle_event(
                event: __hooks::HookEvent,
                call: __types::CallContext,
            ) -> Result<__hooks::HookOutcome, __types::Error> {
                __private::install();
                let mut context = event.event_context;
                let mut outcome = __hooks::HookOutcome::Continue;
                #(if !matches!(outcome, __hooks::HookOutcome::Veto(_))
                    && <#hooks as ::tenon_sdk::hook::Hook>::POINTS.contains(&&*event.point)
                {
                    let next = <#hooks as ::tenon_sdk::hook::Hook>::handle(
                        &event.point,
                        &context,
                        call.clone().into(),
                    )
                    .await
                    .map_err(::tenon_sdk::Failure::into_error)?;
                    outcome = ::tenon_sdk::hook::fold(&mut context, outcome, next);
                })*
                Ok(outcome)
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::hooks::export_hooks!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}

pub(super) fn evals(evals: &[Path]) -> TokenStream {
    let distinct = distinct(evals, &quote!(::tenon_sdk::eval::Eval));
    quote! {
        #distinct
        use __bindings::evals::exports::tenon::plugin::evals as __evals;

        impl __evals::Guest for __PluginExports {
            async fn list_evals() -> Result<Vec<__evals::EvalDefinition>, __types::Error> {
                __private::install();
                Ok(vec![#(<#evals as ::tenon_sdk::eval::Eval>::definition()),*])
            }

            async fn evaluate(
                strategy: String,
                subject: String,
                options: String,
                context: __types::CallContext,
            ) -> Result<__evals::Evaluation, __types::Error> {
                __private::install();
                #(if strategy == <#evals as ::tenon_sdk::eval::Eval>::NAME {
                    return <#evals as ::tenon_sdk::eval::Eval>::evaluate(&subject, &options, context.into())
                        .await
                        .map_err(::tenon_sdk::Failure::into_error);
                })*
                Err(__private::unknown("strategy", &strategy))
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::evals::export_evals!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}

pub(super) fn provider(provider: &Path, streams: bool) -> TokenStream {
    let stream = streams.then(|| {
        quote! {
            use __bindings::provider_stream::exports::tenon::plugin::provider_stream as __provider_stream;

            impl __provider_stream::Guest for __PluginExports {
                async fn complete_stream(
                    request: ::tenon_sdk::provider::CompletionRequest,
                    context: __types::CallContext,
                ) -> Result<::tenon_sdk::provider::Answer, __types::Error> {
                    __private::install();
                    ::tenon_sdk::provider::serve::<#provider>(request, context.into())
                }
            }
            #[cfg(target_arch = "wasm32")]
            ::tenon_sdk::bindings::provider_stream::export_provider_stream!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
        }
    });
    quote! {
        use __bindings::providers::exports::tenon::plugin::providers as __providers;

        impl __providers::Guest for __PluginExports {
            async fn list_providers() -> Result<Vec<__providers::ProviderDefinition>, __types::Error> {
                __private::install();
                Ok(vec![__providers::ProviderDefinition {
                    name: <#provider as ::tenon_sdk::provider::Provider>::NAME.to_string(),
                    description: <#provider as ::tenon_sdk::provider::Provider>::DESCRIPTION.to_string(),
                }])
            }

            async fn list_models() -> Result<Vec<::tenon_sdk::provider::ModelInfo>, __types::Error> {
                __private::install();
                <#provider as ::tenon_sdk::provider::Provider>::models()
                    .await
                    .map_err(::tenon_sdk::Failure::into_error)
            }

            async fn complete(
                request: ::tenon_sdk::provider::CompletionRequest,
                context: __types::CallContext,
            ) -> Result<::tenon_sdk::provider::Completion, __types::Error> {
                __private::install();
                <#provider as ::tenon_sdk::provider::Provider>::complete(request, context.into())
                    .await
                    .map_err(::tenon_sdk::Failure::into_error)
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::providers::export_providers!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
        #stream
    }
}
