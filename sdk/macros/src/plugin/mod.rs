//! `plugin!`

mod exports;
mod prompts;
mod resources;

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use std::collections::BTreeSet;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{Ident, Path, Result, Token, bracketed, token};

use exports::{evals, hooks, provider, tools};
use prompts::{completions, prompts};
use resources::{resources, subscriptions};

#[derive(Default)]
struct Parts {
    tools: Vec<Path>,
    hooks: Vec<Path>,
    evals: Vec<Path>,
    resources: Vec<Path>,
    /// Those of the resources that can be subscribed to.
    subscriptions: Vec<Path>,
    prompts: Vec<Path>,
    /// Those of the resources and prompts that suggest values of their arguments.
    completions: Vec<Path>,
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
                "resources" => parts.resources = list(&key, input)?,
                "subscriptions" => parts.subscriptions = list(&key, input)?,
                "prompts" => parts.prompts = list(&key, input)?,
                "completions" => parts.completions = list(&key, input)?,
                "provider" => parts.provider = Some(input.parse()?),
                "streaming_provider" => {
                    parts.provider = Some(input.parse()?);
                    parts.streams = true;
                }
                _ => {
                    return Err(syn::Error::new(
                        key.span(),
                        "unknown part: `tools`, `hooks`, `evals`, `resources`, `subscriptions`, \
                         `prompts`, `completions`, `provider` and `streaming_provider` are known",
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
    let mark = mark();
    let lifecycle = lifecycle();
    let tools = (!parts.tools.is_empty()).then(|| tools(&parts.tools));
    let hooks = (!parts.hooks.is_empty()).then(|| hooks(&parts.hooks));
    let evals = (!parts.evals.is_empty()).then(|| evals(&parts.evals));
    let resources = (!parts.resources.is_empty()).then(|| resources(&parts.resources));
    let subscriptions = (!parts.subscriptions.is_empty())
        .then(|| subscriptions(&parts.subscriptions, &parts.resources));
    let prompts = (!parts.prompts.is_empty()).then(|| prompts(&parts.prompts));
    let completions = completions(&parts.completions, &parts.prompts, &parts.resources);
    let provider = parts.provider.as_ref().map(|path| provider(path, parts.streams));
    Ok(quote! {
        #mark

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
            #resources
            #subscriptions
            #prompts
            #completions
            #provider
        };
    })
}

/// What `plugin!` leaves where it stands, for [`required`].
pub(crate) fn mark() -> TokenStream {
    quote! {
        #[doc(hidden)]
        #[allow(dead_code)]
        pub(crate) const __TENON_PLUGIN: bool = true;
    }
}

/// Fails in a component whose crate has no `plugin!` in its root: nothing would be exported. Elsewhere a function needs no
/// `plugin!`: in tests, and in crates whose functions another crate lists.
pub(crate) fn required() -> Option<TokenStream> {
    // No `cfg` tells of the kind of a crate, so this asks the compiler, in whose process macros run.
    let arguments: Vec<String> = std::env::args().collect();
    let kinds = arguments.iter().zip(arguments.iter().skip(1));
    let is_component =
        kinds.clone().any(|(option, kind)| option == "--crate-type" && kind == "cdylib")
            || arguments.iter().any(|argument| argument == "--crate-type=cdylib");
    is_component.then(|| {
        quote! {
            #[cfg(target_arch = "wasm32")]
            ::tenon_sdk::__require_plugin!();
        }
    })
}

fn lifecycle() -> TokenStream {
    quote! {
        use __bindings::cancellation::exports::tenon::plugin::cancellation as __cancellation;
        use __bindings::lifecycle::exports::tenon::plugin::lifecycle as __lifecycle;

        impl __lifecycle::Guest for __PluginExports {
            async fn start() -> Result<__lifecycle::Identity, __types::Error> {
                __private::install();
                Ok(__lifecycle::Identity {
                    name: env!("CARGO_PKG_NAME").to_string(),
                    version: env!("CARGO_PKG_VERSION").to_string(),
                    description: env!("CARGO_PKG_DESCRIPTION").to_string(),
                    extra: None,
                })
            }

            async fn stop() {}
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::lifecycle::export_lifecycle!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);

        impl __cancellation::Guest for __PluginExports {
            async fn cancel(call_id: String) {
                __private::cancel(&call_id);
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::cancellation::export_cancellation!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
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
