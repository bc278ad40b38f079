//! `plugin!`

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use std::collections::BTreeSet;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Ident, Path, Result, Token, bracketed, token};

#[derive(Default)]
struct Parts {
    tools: Vec<Path>,
    hooks: Vec<Path>,
    evals: Vec<Path>,
    provider: Option<Path>,
    streams: bool,
}

impl Parse for Parts {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut parts = Self::default();
        let mut seen = BTreeSet::new();
        if input.is_empty() {
            return Err(syn::Error::new(
                Span::call_site(),
                "say what the plugin has: `plugin!(tools: [greet])`",
            ));
        }
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            let part =
                if key == "streaming_provider" { "provider".into() } else { key.to_string() };
            if !seen.insert(part) {
                return Err(syn::Error::new(
                    key.span(),
                    "this part was there before: join the two",
                ));
            }
            input.parse::<Token![:]>()?;
            match key.to_string().as_str() {
                "tools" => parts.tools = list(&key, input)?,
                "hooks" => parts.hooks = list(&key, input)?,
                "evals" => parts.evals = list(&key, input)?,
                "provider" => parts.provider = Some(input.parse()?),
                "streaming_provider" => {
                    parts.provider = Some(input.parse()?);
                    parts.streams = true;
                }
                _ => {
                    return Err(syn::Error::new(
                        key.span(),
                        "unknown part: `tools`, `hooks`, `evals`, `provider` and \
                         `streaming_provider` are known",
                    ));
                }
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(parts)
    }
}

fn list(key: &Ident, input: ParseStream<'_>) -> Result<Vec<Path>> {
    if !input.peek(token::Bracket) {
        return Err(input.error(format!("list them in brackets: `{key}: [greet, count]`")));
    }
    let content;
    let brackets = bracketed!(content in input);
    let list = Punctuated::<Path, Token![,]>::parse_terminated(&content)?;
    match list.is_empty() {
        true => Err(syn::Error::new(
            brackets.span.join(),
            format!("name at least one, or leave out `{key}`"),
        )),
        false => Ok(list.into_iter().collect()),
    }
}

pub(crate) fn expand(tokens: TokenStream) -> Result<TokenStream> {
    let parts: Parts = syn::parse2(tokens)?;
    let lifecycle = lifecycle(&parts);
    let tools = (!parts.tools.is_empty()).then(|| tools(&parts.tools));
    let hooks = (!parts.hooks.is_empty()).then(|| hooks(&parts.hooks));
    let evals = (!parts.evals.is_empty()).then(|| evals(&parts.evals));
    let provider = parts.provider.as_ref().map(|path| provider(path, parts.streams));
    Ok(quote! {
        const _: () = {
            // Paths of the author's own stand below: none of these names is one that they use.
            use ::tenon_sdk::__private as __private;
            use ::tenon_sdk::__private::bindings as __bindings;
            use ::tenon_sdk::__private::types as __types;

            // Elsewhere, in native tests, nothing is exported: the names of the exports are none
            // that a linker takes.
            #[allow(dead_code)]
            struct __PluginExports;
            #lifecycle
            #tools
            #hooks
            #evals
            #provider
        };
    })
}

fn lifecycle(parts: &Parts) -> TokenStream {
    let Parts { tools, hooks, evals, provider, .. } = parts;
    let provider = provider.iter();
    quote! {
        use __bindings::plugin::exports::tenon::plugin::plugin as __lifecycle;

        impl __lifecycle::Guest for __PluginExports {
            async fn register() -> Result<__lifecycle::Registration, __types::Error> {
                __private::install();
                let mut hooks = Vec::new();
                #(for point in <#hooks as ::tenon_sdk::hook::Hook>::points() {
                    if !hooks.contains(&point) {
                        hooks.push(point);
                    }
                })*
                Ok(__lifecycle::Registration {
                    identity: __lifecycle::Identity {
                        name: env!("CARGO_PKG_NAME").to_string(),
                        version: env!("CARGO_PKG_VERSION").to_string(),
                        description: env!("CARGO_PKG_DESCRIPTION").to_string(),
                    },
                    tools: vec![#(<#tools as ::tenon_sdk::tool::Tool>::definition()),*],
                    hooks,
                    providers: vec![#(__lifecycle::ProviderDefinition {
                        name: <#provider as ::tenon_sdk::provider::Provider>::NAME.to_string(),
                        description: <#provider as ::tenon_sdk::provider::Provider>::DESCRIPTION.to_string(),
                    }),*],
                    evals: vec![#(<#evals as ::tenon_sdk::eval::Eval>::definition()),*],
                    resources: false,
                    prompts: false,
                })
            }

            async fn shutdown() {}
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::plugin::export_plugin!(__PluginExports with_types_in ::tenon_sdk::bindings::plugin);
    }
}

/// Checks that no two of them have the same name.
fn distinct(paths: &[Path], kind: &TokenStream) -> TokenStream {
    let checks = paths.iter().enumerate().map(|(i, path)| {
        let before = &paths[..i];
        quote_spanned! {path.span()=>
            const _: () = ::core::assert!(
                !__private::is_among(<#path as #kind>::NAME, &[#(<#before as #kind>::NAME),*]),
                "another one of this plugin has the same name: give this one a name of its own \
                 with `name = \"…\"`",
            );
        }
    });
    quote!(#(#checks)*)
}

fn tools(tools: &[Path]) -> TokenStream {
    let distinct = distinct(tools, &quote!(::tenon_sdk::tool::Tool));
    let serve =
        tools.iter().map(|path| quote_spanned!(path.span()=> ::tenon_sdk::tool::serve::<#path>));
    quote! {
        #distinct
        use __bindings::tool_handler::exports::tenon::plugin::tool_handler as __tool_handler;

        impl __tool_handler::Guest for __PluginExports {
            async fn call(
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

            async fn cancel(call_id: String) {
                __private::cancel(&call_id);
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::tool_handler::export_tool_handler!(__PluginExports with_types_in ::tenon_sdk::bindings::tool_handler);
    }
}

fn hooks(hooks: &[Path]) -> TokenStream {
    quote! {
        use __bindings::hook_handler::exports::tenon::plugin::hook_handler as __hook_handler;

        impl __hook_handler::Guest for __PluginExports {
            async fn handle(event: __hook_handler::Event) -> Result<__hook_handler::Outcome, __types::Error> {
                __private::install();
                let mut context = event.context;
                let mut outcome = __hook_handler::Outcome::Continue;
                #(if !matches!(outcome, __hook_handler::Outcome::Veto(_))
                    && <#hooks as ::tenon_sdk::hook::Hook>::points().contains(&event.point)
                {
                    let next = <#hooks as ::tenon_sdk::hook::Hook>::handle(
                        &event.point,
                        &context,
                        event.call.clone().into(),
                    )
                    .await
                    .map_err(::tenon_sdk::Failure::into_error)?;
                    outcome = ::tenon_sdk::hook::fold(&mut context, outcome, next);
                })*
                Ok(outcome)
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::hook_handler::export_hook_handler!(__PluginExports with_types_in ::tenon_sdk::bindings::hook_handler);
    }
}

fn evals(evals: &[Path]) -> TokenStream {
    let distinct = distinct(evals, &quote!(::tenon_sdk::eval::Eval));
    quote! {
        #distinct
        use __bindings::eval_handler::exports::tenon::plugin::eval_handler as __eval_handler;

        impl __eval_handler::Guest for __PluginExports {
            async fn evaluate(
                strategy: String,
                subject: String,
                options: String,
                context: __types::CallContext,
            ) -> Result<__eval_handler::Evaluation, __types::Error> {
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
        ::tenon_sdk::bindings::eval_handler::export_eval_handler!(__PluginExports with_types_in ::tenon_sdk::bindings::eval_handler);
    }
}

fn provider(provider: &Path, streams: bool) -> TokenStream {
    let stream = streams.then(|| {
        quote! {
            use __bindings::provider_stream::exports::tenon::plugin::provider_stream as __provider_stream;

            impl __provider_stream::Guest for __PluginExports {
                async fn stream(
                    request: ::tenon_sdk::provider::CompletionRequest,
                    context: __types::CallContext,
                ) -> Result<::tenon_sdk::provider::Answer, __types::Error> {
                    __private::install();
                    ::tenon_sdk::provider::serve::<#provider>(request, context.into())
                }
            }
            #[cfg(target_arch = "wasm32")]
            ::tenon_sdk::bindings::provider_stream::export_provider_stream!(__PluginExports with_types_in ::tenon_sdk::bindings::provider_stream);
        }
    });
    quote! {
        use __bindings::provider_handler::exports::tenon::plugin::provider_handler as __provider_handler;

        impl __provider_handler::Guest for __PluginExports {
            async fn models() -> Result<Vec<::tenon_sdk::provider::ModelInfo>, __types::Error> {
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
        ::tenon_sdk::bindings::provider_handler::export_provider_handler!(__PluginExports with_types_in ::tenon_sdk::bindings::provider_handler);
        #stream
    }
}
