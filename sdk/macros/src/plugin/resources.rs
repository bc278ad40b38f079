//! The exports of resources and of news of them.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

/// The trait that all of them have.
fn kind() -> TokenStream {
    quote!(::tenon_sdk::resource::Resource)
}

pub(super) fn resources(resources: &[Path]) -> TokenStream {
    let kind = kind();
    let distinct = resources.iter().enumerate().map(|(i, path)| {
        let before = &resources[..i];
        quote_spanned! {path.span()=>
            const _: () = ::core::assert!(
                !__private::is_among(
                    <#path as #kind>::URI,
                    &[#(<#before as #kind>::URI),*],
                ),
                "another resource of this plugin has the same URI",
            );
        }
    });
    let entries = entries(resources);
    quote! {
        #(#distinct)*
        use __bindings::resources::exports::tenon::plugin::resources as __resources;

        const __RESOURCES: &[::tenon_sdk::resource::Entry] = &[#entries];

        impl __resources::Guest for __PluginExports {
            async fn list_resources(
                cursor: Option<String>,
                context: __types::CallContext,
            ) -> Result<__resources::ResourcePage, __types::Error> {
                __private::install();
                ::tenon_sdk::resource::list(__RESOURCES, cursor, context.into()).await
            }

            async fn list_templates(
                cursor: Option<String>,
                _: __types::CallContext,
            ) -> Result<__resources::TemplatePage, __types::Error> {
                __private::install();
                ::tenon_sdk::resource::list_templates(__RESOURCES, cursor)
            }

            async fn read_resource(
                uri: String,
                context: __types::CallContext,
            ) -> Result<Vec<__types::ResourceContents>, __types::Error> {
                __private::install();
                ::tenon_sdk::resource::read(__RESOURCES, &uri, context.into()).await
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::resources::export_resources!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}

/// The entries of a table.
fn entries(resources: &[Path]) -> TokenStream {
    let entries = resources
        .iter()
        .map(|path| quote_spanned!(path.span()=> ::tenon_sdk::resource::entry::<#path>()));
    quote!(#(#entries),*)
}

pub(super) fn subscriptions(subscriptions: &[Path], resources: &[Path]) -> TokenStream {
    let kind = kind();
    let listed = subscriptions.iter().map(|path| {
        quote_spanned! {path.span()=>
            const _: () = ::core::assert!(
                __private::is_among(
                    <#path as #kind>::URI,
                    &[#(<#resources as #kind>::URI),*],
                ),
                "list it under `resources` as well: what cannot be read has no news",
            );
        }
    });
    let entries = entries(subscriptions);
    quote! {
        #(#listed)*
        use __bindings::subscriptions::exports::tenon::plugin::subscriptions as __subscriptions;

        impl __subscriptions::Guest for __PluginExports {
            async fn subscribe(
                uri: String,
                _: __types::CallContext,
            ) -> Result<(), __types::Error> {
                __private::install();
                const ENTRIES: &[::tenon_sdk::resource::Entry] = &[#entries];
                ::tenon_sdk::resource::subscribe(ENTRIES, uri)
            }

            async fn unsubscribe(
                uri: String,
                _: __types::CallContext,
            ) -> Result<(), __types::Error> {
                __private::install();
                ::tenon_sdk::resource::unsubscribe(&uri);
                Ok(())
            }
        }
        #[cfg(target_arch = "wasm32")]
        ::tenon_sdk::bindings::subscriptions::export_subscriptions!(__PluginExports with_types_in ::tenon_sdk::bindings::wrapped_exports);
    }
}
