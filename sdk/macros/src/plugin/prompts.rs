//! The exports of prompts and of the completion of arguments.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

use super::distinct;

pub(super) fn prompts(prompts: &[Path]) -> TokenStream {
    let kind = quote!(::tenon_sdk::prompt::PromptTemplate);
    let distinct = distinct(prompts, &kind);
    let entries = prompts
        .iter()
        .map(|path| quote_spanned!(path.span()=> ::tenon_sdk::prompt::entry::<#path>()));
    quote! {
        #distinct
        use __bindings::prompts::exports::tenon::plugin::prompts as __prompts;

        const __PROMPTS: &[::tenon_sdk::prompt::Entry] = &[#(#entries),*];

        impl __prompts::Guest for __PluginExports {
            async fn list_prompts(
                cursor: Option<String>,
                _: __types::CallContext,
            ) -> Result<__prompts::PromptPage, __types::Error> {
                __private::install();
                ::tenon_sdk::prompt::list(__PROMPTS, cursor)
            }

            async fn get_prompt(
                name: String,
                arguments: Vec<(String, String)>,
                context: __types::CallContext,
            ) -> Result<__prompts::Prompt, __types::Error> {
                __private::install();
                ::tenon_sdk::prompt::get(__PROMPTS, &name, arguments, context.into()).await
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::prompts::export_prompts!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}

/// The export, where something is listed, and the checks that it is listed where it has to be.
pub(super) fn completions(
    completions: &[Path],
    prompts: &[Path],
    resources: &[Path],
) -> TokenStream {
    let kind = quote!(::tenon_sdk::completion::CompleteArguments);
    let prompts = prompts.iter().map(|path| {
        let kind = quote!(<#path as ::tenon_sdk::prompt::PromptTemplate>);
        let reference = quote!(::tenon_sdk::completion::Reference::Prompt(#kind::NAME));
        (path.span(), kind, reference)
    });
    let resources = resources.iter().map(|path| {
        let kind = quote!(<#path as ::tenon_sdk::resource::Resource>);
        let text = quote!(#kind::URI);
        let reference = quote!(::tenon_sdk::completion::Reference::ResourceTemplate(#text));
        (path.span(), kind, reference)
    });
    let all: Vec<_> = prompts.chain(resources).collect();
    let forgotten = all.iter().map(|(span, kind, reference)| {
        quote_spanned! {*span=>
            const _: () = ::core::assert!(
                !#kind::COMPLETES
                    || #reference.is_among(&[
                        #(<#completions as ::tenon_sdk::completion::CompleteArguments>::REFERENCE),*
                    ]),
                "a parameter of it has `#[complete]`: list it under `completions` as well",
            );
        }
    });
    let references: Vec<_> = all.iter().map(|(_, _, reference)| reference).collect();
    let unlisted = completions.iter().map(|path| {
        quote_spanned! {path.span()=>
            const _: () = ::core::assert!(
                <#path as #kind>::REFERENCE.is_among(&[#(#references),*]),
                "list it under `prompts` or `resources` as well",
            );
        }
    });
    let export = (!completions.is_empty()).then(|| export(completions, &references));
    quote! {
        #(#forgotten)*
        #(#unlisted)*
        #export
    }
}

fn export(completions: &[Path], references: &[&TokenStream]) -> TokenStream {
    let entries = completions
        .iter()
        .map(|path| quote_spanned!(path.span()=> ::tenon_sdk::completion::entry::<#path>()));
    quote! {
        use __bindings::completions::exports::tenon::plugin::completions as __completions;

        impl __completions::Guest for __PluginExports {
            async fn complete_argument(
                argument: __completions::ArgumentCompletion,
                context: __types::CallContext,
            ) -> Result<__completions::Suggestions, __types::Error> {
                __private::install();
                ::tenon_sdk::completion::complete(
                    const { &[#(#entries),*] },
                    const { &[#(#references),*] },
                    argument,
                    context.into(),
                )
                .await
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::completions::export_completions!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}
